"""How far to trust the second opinion: labels that are held out from it and from the graph decide."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmssc.core.held_out import HiddenLabels
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import Opinion, OpinionRegression, anchor_weight
from lmssc.core.self_consistency import has_few_labels

# Trusts t to choose from, besides 0; and those with which the mixtures are tried.
TRUSTS = (0.1, 0.25, 0.5, 0.75, 0.9)
MIXTURES = (0.25, 0.75)
# Log-likelihood of the held-out labels that any trust has to gain, and that full trust has to gain on top: with few
# labels, less is chance. On 36 of 37 data sets these are the best for all others: benchmarks/second_opinion.py.
MIN_GAIN = 1.0
GAIN_OF_FULL_TRUST = 8.0
# The cost of trust protects a graph that finds held-out labels: it is whole if the graph gains as much log-likelihood
# over the class frequencies, and less in proportion if it gains less. Fewer held-out labels cannot tell.
GAIN_OF_GRAPH = 4.0
MIN_HELD_OUT = 20
# Propagation with the second opinion is not tried if a mere mixture of both predictions gains less than this.
MIN_MIXTURE_GAIN = 0.5
# With more classes than this, and fewer than three labels for each, it is not tried: that would take half of a fit, and
# with so few labels hidden ones choose the regression where it loses.
MAX_CLASSES_OF_FEW_LABELS = 200
# Relative residual of the propagations that are compared.
TOLERANCE = 1e-4


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
    kernel : ndarray of shape (n, m), or None
        Kernel between these samples and its landmarks; None if it was not needed.
    """

    trust: float
    scores: NDArray
    regression: OpinionRegression | None = None
    kernel: NDArray | None = None


def judge_opinion(held: HiddenLabels, trust: float | None = None) -> JudgedOpinion:
    """Choose the trust that maximises the log-likelihood of the held-out labels minus a cost of trust.

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
    many = held.targets.n_classes > MAX_CLASSES_OF_FEW_LABELS and has_few_labels(held.targets)
    if trust == 0 or not held.folds or (trust is None and many):
        return JudgedOpinion(trust or 0.0, by_graph)
    before = held.log_likelihood(by_graph)
    if trust is None and -before < MIN_MIXTURE_GAIN:  # no mixture can gain as much
        return JudgedOpinion(0.0, by_graph)
    regression = OpinionRegression(held.views, held.targets)
    if trust is not None:
        kernel = regression.kernel(held.views)
        return JudgedOpinion(trust, held_out_scores(held, regression, kernel, trust), regression, kernel)
    by_regression = np.concatenate([regression.held_out_distributions(fold.rows) for fold in held.folds])
    mixtures = [(1 - t) * by_graph + t * by_regression for t in MIXTURES]
    if max(map(held.log_likelihood, mixtures)) < before + MIN_MIXTURE_GAIN:
        return JudgedOpinion(0.0, by_graph, regression)
    kernel = regression.kernel(held.views)
    merit = before - held.log_likelihood_by_frequencies() if len(by_graph) >= MIN_HELD_OUT else GAIN_OF_GRAPH

    @cache
    def scores(trust: float) -> NDArray:
        return held_out_scores(held, regression, kernel, trust)

    @cache
    def gain(trust: float) -> float:
        return held.log_likelihood(scores(trust)) - before - cost_of_trust(trust, merit)

    best = climb(TRUSTS, gain)
    if gain(best) <= 0:
        return JudgedOpinion(0.0, by_graph, regression, kernel)
    return JudgedOpinion(best, scores(best), regression, kernel)


def cost_of_trust(trust: float, merit: float) -> float:
    """Log-likelihood of the held-out labels that a trust has to gain.

    Parameters
    ----------
    trust : float
        t.
    merit : float
        Log-likelihood that the graph gains over the class frequencies.

    Returns
    -------
    float

    Examples
    --------
    >>> cost_of_trust(0.5, merit=10.0), cost_of_trust(0.5, merit=2.0), cost_of_trust(0.5, merit=-1.0)
    (5.0, 2.5, 0.5)
    """
    proven = min(max(merit / GAIN_OF_GRAPH, 0.0), 1.0)
    return max(MIN_MIXTURE_GAIN, proven * (MIN_GAIN + GAIN_OF_FULL_TRUST * trust))


def climb(choices: Sequence[float], value: Callable[[float], float]) -> float:
    """The choice with the largest value, if values first rise and then fall: from the middle, uphill.

    Examples
    --------
    >>> climb([1, 2, 3, 4, 5], lambda x: -abs(x - 2))
    2
    """
    place = len(choices) // 2
    for step in (-1, 1):
        while 0 <= place + step < len(choices) and value(choices[place + step]) > value(choices[place]):
            place += step
    return choices[place]


def held_out_scores(held: HiddenLabels, regression: OpinionRegression, kernel: NDArray, trust: float) -> NDArray:
    """Balanced scores of the held-out samples, propagated with some trust.

    Parameters
    ----------
    held : HiddenLabels
        Labels held out in folds, and the warm start without those of each fold.
    regression : OpinionRegression
        The regression on its samples.
    kernel : ndarray of shape (n, m)
        Kernel between the samples and the landmarks of the regression.
    trust : float
        t.

    Returns
    -------
    ndarray of shape (m, c)
    """
    found = []
    for fold in held.folds:
        opinions = regression.distributions(kernel, regression.coefficients(fold.rows))
        opinion = Opinion(opinions, anchor_weight(trust))
        again = propagate(fold.start.laplacian, fold.targets, fold.start.scores, TOLERANCE, opinion=opinion)
        found.append(again.scores)
    return held.balanced(found)
