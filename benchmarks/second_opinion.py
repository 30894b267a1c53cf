"""What each trust in the second opinion would gain, and a leave-one-set-out check of how the trust is chosen.

For every set, rate and repeat: one fit without the second opinion; for each trust, the gain in log-likelihood of the
held-out labels, and the accuracy on the unlabelled samples if F is propagated with it over the final graph, into
results/accuracy/second_opinion.csv. Then, for each set, the two constants of the choice that are best on all *other*
sets, and what they gain on this one, into results/accuracy/second_opinion_loso.csv. A second call resumes.
"""

import argparse
import csv
import itertools
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from development import NAMES, STAND_INS, WHEELS, load_views

from lmssc import LMSSC
from lmssc.core import begin, fit, opinion_trust, view_forms
from lmssc.core.prior_correction import balance
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import Opinion, OpinionRegression, anchor_weight
from lmssc.evaluation.splits import stratified_split
from lmssc.persistence.atomic import write_csv

RATES = (0.05, 0.1, 0.3)
FIELDS = ("dataset", "rate", "repeat", "trust", "gain", "accuracy")
LOSO_FIELDS = ("dataset", "min_gain", "gain_of_full_trust", "at 5 %", "at 10 %", "at 30 %")
# Costs of trust to choose from: of any trust, and of full trust on top.
MIN_GAINS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
FULL_GAINS = (0.0, 2.0, 4.0, 6.0, 8.0)
# A point that is lost in a cell counts as much as so many that are gained: nobody expects a default to harm.
LOSS_WEIGHT = 3.0


def judge_all(found, held, _trust):
    """Stands in for `judge_opinion`: keeps the gain of each trust, and trusts none."""
    by_graph = held.balanced([fold.warm.scores for fold in held.folds])
    found["gains"] = dict.fromkeys(opinion_trust.TRUSTS, 0.0)
    if held.folds:
        regression = OpinionRegression(held.views, held.targets, laplacian=held.complete)
        before = held.log_likelihood(by_graph)
        kernel = regression.kernel(held.views)
        for trust in opinion_trust.TRUSTS:
            scores = opinion_trust.held_out_scores(held, regression, kernel, trust)
            found["gains"][trust] = held.log_likelihood(scores) - before
    return opinion_trust.JudgedOpinion(0.0, by_graph)


def run_one(views, target, rate, repeat):
    """The gain and the accuracy of each trust on one split."""
    order, given = stratified_split(target, rate, repeat)
    truth, found = target[order], {}
    finish = fit._final_answers

    def keep(views, start, state, config):
        found["objective"], found["state"], found["undo"] = start.objective, state, start.permutation.undo
        return finish(views, start, state, config)

    with (
        mock.patch.object(view_forms, "FORMS", ()),  # one start, which is looked into
        mock.patch.object(begin, "judge_opinion", lambda held, trust, least: judge_all(found, held, trust)),
        mock.patch.object(fit, "_final_answers", keep),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        clf = LMSSC().fit({name: view[order] for name, view in views.items()}, np.where(given, truth, -1))
    objective, state, undo = found["objective"], found["state"], found["undo"]
    targets = objective.targets
    regression = OpinionRegression(objective.views, targets, laplacian=True).finish(0.5)
    opinions, true = regression(objective.views), truth[clf._order.samples]
    unlabelled = undo(targets.codes) < 0
    for trust in (0.0, *opinion_trust.TRUSTS):
        scores = state.scores
        if trust:
            opinion = Opinion(opinions, anchor_weight(trust))
            scores = propagate(state.laplacian, targets, scores, 1e-6, opinion=opinion).scores
        codes = undo(balance(scores, targets.codes, clf.balance)).argmax(axis=1)
        right = clf.classes_[clf._class_order[codes]] == true
        yield {"trust": trust, "gain": found["gains"].get(trust, 0.0), "accuracy": 100 * right[unlabelled].mean()}


def choose(records, min_gain, full_gain):
    """The accuracy gained on one split, with these costs of trust."""
    plain, *others = records
    best = max(others, key=lambda one: one["gain"] - full_gain * one["trust"])
    chosen = best if best["gain"] > min_gain + full_gain * best["trust"] else plain
    return chosen["accuracy"] - plain["accuracy"]


def leave_one_set_out(records):
    """What the constants that are best on all other sets gain on each set, in points of accuracy."""
    by_split = {}
    for record in records:
        by_split.setdefault((record["dataset"], record["rate"], record["repeat"]), []).append(record)
    gains = {
        costs: {split: choose(rows, *costs) for split, rows in by_split.items()}
        for costs in itertools.product(MIN_GAINS, FULL_GAINS)
    }
    for name in dict.fromkeys(dataset for dataset, _, _ in by_split):

        def elsewhere(costs, name=name):
            cells = {}
            for (dataset, rate, _), gain in gains[costs].items():
                cells.setdefault((dataset, rate), []).append(gain)
            means = [float(np.mean(part)) for (dataset, _), part in cells.items() if dataset != name]
            return sum(mean if mean > 0 else LOSS_WEIGHT * mean for mean in means)

        best = max(gains, key=elsewhere)
        own = {
            rate: np.mean([gain for split, gain in gains[best].items() if split[:2] == (name, rate)]) for rate in RATES
        }
        yield dict(zip(LOSO_FIELDS, (name, *best, *(round(float(own[rate]), 2) for rate in RATES)), strict=True))


def read(path):
    """Records of an earlier call."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        {
            "dataset": row["dataset"],
            "repeat": int(row["repeat"]),
            **{name: float(row[name]) for name in ("rate", "trust", "gain", "accuracy")},
        }
        for row in rows
    ]


def run_sets(run_one, description, names, out):
    """Run the requested data sets, and write the tables."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=out)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    records = read(arguments.out)
    done = {(record["dataset"], record["rate"], record["repeat"]) for record in records}
    for repeat, name in itertools.product(range(arguments.repeats), arguments.datasets):
        wanted = [rate for rate in RATES if (name, rate, repeat) not in done]
        if not wanted:
            continue
        print(name, repeat, file=sys.stderr, flush=True)
        views, target = load_views(name, arguments.wheels)
        codes = np.unique(np.asarray(target), return_inverse=True)[1]
        for rate in wanted:
            own = {"dataset": name, "rate": rate, "repeat": repeat}
            records += [{**own, **record} for record in run_one(views, codes, rate, repeat)]
        write_csv(arguments.out, FIELDS, records)
    table = list(leave_one_set_out(records))
    write_csv(arguments.out.with_name(arguments.out.stem + "_loso.csv"), LOSO_FIELDS, table)
    for row in table:
        print(*row.values(), sep="\t")


if __name__ == "__main__":
    run_sets(run_one, __doc__, [*STAND_INS, *NAMES], Path("results/accuracy/second_opinion.csv"))
