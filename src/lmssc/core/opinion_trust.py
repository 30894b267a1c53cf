"""How far to trust the second opinion: labels that are held out from it and from the graph decide."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmssc.core.held_out import HiddenLabels
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import Opinion, OpinionRegression, anchor_weight

# Trusts t to choose from, besides 0.
TRUSTS = (0.1, 0.25, 0.5, 0.75, 0.9)
# Log-likelihood of the held-out labels that any trust has to gain, and that full trust has to gain on top: with few
# labels, less is chance.
MIN_GAIN = 4.0
GAIN_OF_FULL_TRUST = 4.0
# Propagation with the second opinion is not tried if a mere mixture of both predictions gains less than this.
MIN_MIXTURE_GAIN = 1.0
# Relative residual of the propagations that are compared.
TOLERANCE = 1e-6


class JudgedOpinion(NamedTuple):
    """Trust in the second opinion.

    Attributes
    ----------
    trust : float
        t, from 0 to below 1.
    scores : ndarray of shape (m, c)
        Balanced scores of the held-out samples, with this trust.
    regression : OpinionRegression or None
        The regression on the samples of `HiddenLabels`; None if it was not needed.
    """

    trust: float
    scores: NDArray
    regression: OpinionRegression | None


def judge_opinion(held: HiddenLabels, trust: float | None = None) -> JudgedOpinion:
    """Choose the trust in the second opinion: that with the most likely held-out labels, less a cost of trust.

    Parameters
    ----------
    held : HiddenLabels
        Labels held out in folds, and the warm start without those of each fold.
    trust : float, optional
        Take this trust instead.

    Returns
    -------
    JudgedOpinion
    """
    by_graph = held.balanced([fold.start.scores for fold in held.folds])
    if trust == 0 or not held.folds:
        return JudgedOpinion(trust or 0.0, by_graph, None)
    regression = OpinionRegression(held.views, held.targets)
    if trust is not None:
        return JudgedOpinion(trust, held_out_scores(held, regression, (trust,))[0], regression)
    before = held.log_likelihood(by_graph)
    by_regression = np.concatenate([regression.held_out_distributions(fold.rows) for fold in held.folds])
    mixtures = [(1 - t) * by_graph + t * by_regression for t in TRUSTS]
    if max(map(held.log_likelihood, mixtures)) < before + MIN_MIXTURE_GAIN:
        return JudgedOpinion(0.0, by_graph, regression)
    scores = dict(zip(TRUSTS, held_out_scores(held, regression, TRUSTS), strict=True))
    gains = {t: held.log_likelihood(scores[t]) - before - MIN_GAIN - GAIN_OF_FULL_TRUST * t for t in TRUSTS}
    best = max(TRUSTS, key=gains.__getitem__)
    return JudgedOpinion(best, scores[best], regression) if gains[best] > 0 else JudgedOpinion(0, by_graph, regression)


def held_out_scores(held: HiddenLabels, regression: OpinionRegression, trusts: tuple[float, ...]) -> list[NDArray]:
    """Balanced scores of the held-out samples, propagated with each trust."""
    kernel = regression.kernel(held.views)
    by_fold = []
    for fold in held.folds:
        opinions = regression.distributions(kernel, regression.coefficients(fold.rows))
        found = [fold.start.scores]
        for trust in trusts:
            opinion = Opinion(opinions, anchor_weight(trust))
            again = propagate(fold.start.laplacian, fold.targets, found[-1], TOLERANCE, opinion=opinion)
            found.append(again.scores)
        by_fold.append(found[1:])
    return [held.balanced(scores) for scores in zip(*by_fold, strict=True)]
