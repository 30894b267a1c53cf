"""What each weight of the views' own graphs would gain, and a leave-one-set-out check of how the weight is chosen.

For every set, rate and repeat: one warm start; for each weight w, the gain in log-likelihood of the held-out labels,
and the accuracy on the unlabelled samples if F is propagated with it, into results/accuracy/view_graph.csv, where
"trust" is w/(1 + w). Then, for each set, the two constants of the choice that are best on all *other* sets, and what
they gain on this one, into results/accuracy/view_graph_loso.csv. A second call resumes.
"""

import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from development import STAND_INS, TEXTS
from second_opinion import NAMES, run_sets

from lmssc import LMSSC
from lmssc.core import begin, view_forms, view_graph
from lmssc.core.laplacian import laplacian
from lmssc.core.prior_correction import balance
from lmssc.core.propagation import propagate
from lmssc.evaluation.splits import stratified_split


def run_one(views, target, rate, repeat):
    """The gain and the accuracy of each weight on one split."""
    order, given = stratified_split(target, rate, repeat)
    truth, found = target[order], {}

    def keep(objective, warm, weight, graph):
        found["objective"], found["warm"] = objective, warm
        return objective, warm

    def judge(held, objective, config):
        found["held"] = held
        return 0.0, held

    with (
        mock.patch.object(view_forms, "FORMS", ()),  # one start, which is looked into
        mock.patch.object(begin, "judge_view_graph", judge),
        mock.patch.object(begin, "_with_view_graph", keep),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        clf = LMSSC(max_iter=1).fit({name: view[order] for name, view in views.items()}, np.where(given, truth, -1))
    objective, warm, held = found["objective"], found["warm"], found["held"]
    targets, true = objective.targets, truth[clf._order.samples]
    extra = laplacian(view_graph.mean_view_graph(objective.views, objective.n_neighbors))
    before = view_graph._log_likelihood(held) if held.folds else 0.0
    for weight in (0.0, *view_graph.WEIGHTS):
        scores, gain = warm.scores, 0.0
        if weight:
            scores = propagate(warm.laplacian + weight * extra, targets, scores, 1e-6).scores
            if held.folds and held.complete:
                gain = view_graph._log_likelihood(view_graph._propagate_folds(held, weight * extra)) - before
        codes = balance(scores, targets.codes, clf.balance).argmax(axis=1)
        right = clf.classes_[clf._class_order[codes]] == true
        yield {"trust": weight / (1 + weight), "gain": gain, "accuracy": 100 * right[targets.codes < 0].mean()}


if __name__ == "__main__":
    names = [name for name in (*STAND_INS, *NAMES) if name not in TEXTS]
    run_sets(run_one, __doc__, names, Path("results/accuracy/view_graph.csv"))
