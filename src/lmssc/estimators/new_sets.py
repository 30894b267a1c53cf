"""Scores of new samples for prediction sets, and of held-out samples that are answered as new ones are."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.core.held_out_folds import ALWAYS_KNOWN, HeldOutFolds, LatentFit, LatentProblem, split_labels
from lmssc.core.targets import Targets
from lmssc.estimators.trust_state import NewRows


def new_scores(
    model: Any, problem: LatentProblem, targets: Targets, folds: HeldOutFolds, found: NewRows
) -> tuple[NDArray, NDArray]:
    """Scores of held-out labelled samples as if they were new, and of new samples, each by the fit of its fold.

    Neighbours are those by Z and by the expected scores of the fold. The expected scores of the whole fit have seen the
    labels that are held out, and would bring them among samples of their class.

    Parameters
    ----------
    model : LMSSC
        The fitted model.
    problem : LatentProblem
        Its samples.
    targets : Targets
        All labels.
    folds : HeldOutFolds
        Which labels are held out together.
    found : NewRows
        The new samples.

    Returns
    -------
    held_out : ndarray of shape (n, c)
        NaN for samples without a label, and for labels that are not held out.
    scores : ndarray of shape (m, c)
        NaN for copies of samples of fit, which have a fold and a score there.
    """
    latent, nodes = model.latent_[model._order.samples], found.nodes
    own_fold = np.where(nodes >= 0, folds.number[nodes], -1)  # where the labels of copies are held out
    fold_of_new = np.where(own_fold >= 0, own_fold, folds.of_new(found.along))
    held_out = np.full((len(targets), targets.n_classes), np.nan)
    scores = np.full((len(nodes), targets.n_classes), np.nan)
    for members, remaining in split_labels(targets, folds):
        answer = _Answers(model, problem, problem.fit(remaining))
        rows = members[targets.labelled[members]]
        opinions = None if problem.opinions is None else problem.opinions[rows]
        held_out[rows] = problem.blend(answer.as_new(latent[rows], _take(problem.groups, rows), rows), opinions)
        here = fold_of_new == folds.number[members[0]]
        # A copy of a sample whose label is known to the fit is judged without that label.
        for chosen, own in ((here & (nodes < 0), None), (here & (own_fold == ALWAYS_KNOWN), nodes)):
            part = np.flatnonzero(chosen)
            scores[part] = answer.as_new(found.latent[part], _take(found.groups, part), _take(own, part))
        scores[here] = problem.blend(scores[here], _take(found.opinions, here))
    return held_out, scores


class _Answers:
    """Answers for new samples by the fit of a fold."""

    def __init__(self, model: Any, problem: LatentProblem, fit: LatentFit) -> None:
        Z = problem.embedded
        points = Z if fit.expected is None else np.hstack([Z, fit.expected]).astype(Z.dtype, copy=False)
        self.fit = fit
        self._average = replace(model._average(), points=points, regressor=fit.regressor)

    def as_new(self, latent: NDArray, groups: NDArray | None, own: NDArray | None) -> NDArray:
        """Means over the neighbours of samples other than `own`."""
        if not len(latent):
            return np.empty((0, self.fit.scores.shape[1]))
        return self._average(latent, self.fit.scores, groups, own)[0]


def _take(values: NDArray | None, rows: NDArray) -> NDArray | None:
    return None if values is None else values[rows]
