"""What another form of measurements would gain, and a leave-one-set-out check of how it is chosen.

For every set, rate and repeat: fits with standardised columns and with the form that the regression proposes, into
results/accuracy/view_forms.csv: accuracy and log loss on the unlabelled samples, and how much better held-out labels
are found (mean difference of their losses, in standard errors and as a share of the loss). Then, for each set, the
number of standard errors to ask for that is best on all *other* sets, and what the rule gains with it on this one,
into results/accuracy/view_forms_loso.csv. A second call resumes.
"""

import argparse
import itertools
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from development import NAMES, STAND_INS, TEXTS, WHEELS, load_views
from fresh import read_rows
from second_opinion import RATES

from lmssc import LMSSC
from lmssc.core import view_forms
from lmssc.core.start import Start
from lmssc.evaluation.splits import stratified_split
from lmssc.persistence.atomic import write_csv

FIELDS = ("dataset", "rate", "repeat", "form", "errors", "gain", "accuracy", "log_loss")
LOSO_FIELDS = ("dataset", "errors", "at 5 %", "at 10 %", "at 30 %")
STANDARDISED = "standardised"
# Standard errors to choose from.
ERRORS = (0.0, 0.5, 1.0, 1.5, 2.0)


def fit_with(n_errors, views, y):
    """A fit that takes the proposed form if it gains so many standard errors, and what it gained."""
    found = {"errors": 0.0, "gain": 0.0}
    is_better = Start.is_better

    def judge(start, plain):
        before, after = plain.confidence.losses, start.confidence.losses
        gain = before - after
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        found["errors"] = float(gain.mean() / error) if error > 0 else 0.0
        found["gain"] = float(gain.mean() / before.mean())
        return is_better(start, plain, n_errors)

    with (
        mock.patch.object(Start, "is_better", judge),
        mock.patch.object(view_forms, "MIN_GAIN", -np.inf),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return LMSSC().fit(views, y), found


def run_one(views, target, rate, repeat):
    """Accuracy and losses on one split with standardised columns and, if another form is proposed, with it."""
    order, given = stratified_split(target, rate, repeat)
    truth = target[order]
    shuffled, y = {name: view[order] for name, view in views.items()}, np.where(given, truth, -1)
    for n_errors in (np.inf, -np.inf):
        clf, found = fit_with(n_errors, shuffled, y)
        form = name_of_form(clf)
        if n_errors < 0 and form == STANDARDISED:
            return
        answers = clf.label_distributions_[~given]
        likelihood = answers[np.arange(len(answers)), np.searchsorted(clf.classes_, truth[~given])]
        yield {
            "form": form,
            "errors": 0.0 if form == STANDARDISED else round(found["errors"], 3),
            "gain": 0.0 if form == STANDARDISED else round(found["gain"], 4),
            "accuracy": round(100 * float((clf.transduction_ == truth)[~given].mean()), 3),
            "log_loss": round(-float(np.log(np.maximum(likelihood, 1e-9)).mean()), 4),
        }


def name_of_form(clf):
    """What became of the views that "auto" takes for measurements."""
    if clf.whitening_:
        return f"whitened {clf.whitening_:g}"
    kept = any("variances of columns kept" in reason for reason in clf.scaling_reasons_.values())
    return "centred" if kept else STANDARDISED


def choose(records, n_errors):
    """What the rule of `begin_formed` gains on one split, in points of accuracy."""
    plain, *proposed = records
    for one in proposed:
        if float(one["errors"]) > n_errors and float(one["gain"]) > view_forms.MIN_GAIN:
            return float(one["accuracy"]) - float(plain["accuracy"])
    return 0.0


def leave_one_set_out(records):
    """What the number of errors that is best on all other sets gains on each set."""
    by_split = {}
    for record in records:
        by_split.setdefault((record["dataset"], float(record["rate"]), record["repeat"]), []).append(record)
    gains = {n: {split: choose(rows, n) for split, rows in by_split.items()} for n in ERRORS}
    for name in dict.fromkeys(dataset for dataset, _, _ in by_split):
        others = {n: np.mean([gain for split, gain in found.items() if split[0] != name]) for n, found in gains.items()}
        best = max(ERRORS, key=others.__getitem__)
        own = [np.mean([gain for split, gain in gains[best].items() if split[:2] == (name, rate)]) for rate in RATES]
        yield dict(zip(LOSO_FIELDS, (name, best, *(round(float(gain), 2) for gain in own)), strict=True))


def main():
    """Run the requested data sets, and write the tables."""
    names = [name for name in (*STAND_INS, *NAMES) if name not in TEXTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy/view_forms.csv"))
    arguments = parser.parse_args()
    records = read_rows(arguments.out)
    done = {(record["dataset"], float(record["rate"]), int(record["repeat"])) for record in records}
    for name in arguments.datasets:
        splits = [split for split in itertools.product(RATES, range(arguments.repeats)) if (name, *split) not in done]
        if not splits:
            continue
        print(name, file=sys.stderr, flush=True)
        views, target = load_views(name, arguments.wheels)
        codes = np.unique(np.asarray(target), return_inverse=True)[1]
        for rate, repeat in splits:
            own = {"dataset": name, "rate": rate, "repeat": repeat}
            records += [{**own, **record} for record in run_one(views, codes, rate, repeat)]
        write_csv(arguments.out, FIELDS, records)
    write_csv(arguments.out.with_name(arguments.out.stem + "_loso.csv"), LOSO_FIELDS, list(leave_one_set_out(records)))


if __name__ == "__main__":
    main()
