"""How far to trust the second opinion: labels that are held out from it and from the graph decide."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmssc.core.held_out import MAX_CALIBRATION_SAMPLES, HeldOutLabels
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import Opinion, OpinionRegression, anchor_weight
from lmssc.core.self_consistency import has_few_labels
from lmssc.core.targets import Targets
from lmssc.numerics.climb import climb

# Trusts t to choose from, besides 0; and those with which the mixtures are tried.
TRUSTS = (0.1, 0.25, 0.5, 0.75, 0.9)
MIXTURES = (0.25, 0.75)
# Log-likelihood of the held-out labels that any trust has to gain, and that full trust has to gain on top: with few
# labels, less is chance. On 36 of 37 data sets these are the best for all others: benchmarks/second_opinion.py.
MIN_GAIN = 1.0
GAIN_OF_FULL_TRUST = 8.0
# The cost of trust protects a graph that finds held-out labels: it is whole if the graph gains as much log-likelihood
# over the class frequencies, and less in proportion if it gains less. Fewer held-out labels cannot tell: with 21 of
# them, Sonar lost 0.75 points.
GAIN_OF_GRAPH = 4.0
MIN_HELD_OUT = 40
# Share of samples with a label above which the cost of trust falls, in inverse proportion: what a graph knows more than
# a regression, it knows from samples without a label.
LABELLED_SHARE = 0.15
# The least η, relative to the share of samples with a label; a walk over the graph from a sample without a label ends
# at one about as often, so that Q decides about a fifth. It helps where labels are far, which few labels cannot tell.
LEAST_WEIGHT = 0.25
# With more samples there is no least: beyond those that judge, the second opinion takes as long as all else.
MAX_SAMPLES = MAX_CALIBRATION_SAMPLES
# Propagation with more of the second opinion is not tried if a mere mixture of both predictions gains less than this.
MIN_MIXTURE_GAIN = 0.5
# With more classes than this, and fewer than three labels for each, it is not tried: that would take half of a fit, and
# with so few labels held-out ones choose the regression where it loses.
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
        Balanced scores of the held-out samples, with the trust that labels of other folds choose, or the given one.
    regression : OpinionRegression or None
        The regression on the samples of `HeldOutLabels`; None if it was not needed.
    kernel : ndarray of shape (n, m), or None
        Kernel between these samples and its landmarks; None if it was not needed.
    """

    trust: float
    scores: NDArray
    regression: OpinionRegression | None = None
    kernel: NDArray | None = None


def judge_opinion(held: HeldOutLabels, trust: float | None = None, least: float = 0.0) -> JudgedOpinion:
    """Choose the trust that maximises the log-likelihood of the held-out labels minus a cost of trust.

    If none is worth its cost, the least trust remains, unless nearly all held-out labels are found.

    Parameters
    ----------
    held : HeldOutLabels
        Labels held out in folds, and the warm start without those of each fold.
    trust : float, optional
        Take this trust instead.
    least : float, default=0
        The trust if no more is worth its cost.

    Returns
    -------
    JudgedOpinion
    """
    by_graph = held.balanced([fold.warm.scores for fold in held.folds])
    too_few_labels = held.targets.n_classes > MAX_CLASSES_OF_FEW_LABELS and has_few_labels(held.targets)
    if trust == 0 or not held.folds or (trust is None and too_few_labels):
        return JudgedOpinion(trust or 0.0, by_graph)
    graph_logs = held.log_likelihoods(by_graph)
    before = float(graph_logs.sum())
    if trust is None and -before < MIN_MIXTURE_GAIN:  # no mixture can gain as much
        return JudgedOpinion(0.0, by_graph)
    regression = OpinionRegression(held.views, held.targets, laplacian=held.complete)

    def settle_for(trust: float, kernel: NDArray | None = None) -> JudgedOpinion:
        if not trust:
            return JudgedOpinion(0.0, by_graph, regression, kernel)
        kernel = regression.kernel(held.views) if kernel is None else kernel
        return JudgedOpinion(trust, held_out_scores(held, regression, kernel, trust), regression, kernel)

    if trust is not None:
        return settle_for(trust)
    by_regression = np.concatenate([regression.held_out_distributions(fold.rows) for fold in held.folds])
    mixtures = [(1 - t) * by_graph + t * by_regression for t in MIXTURES]
    if max(map(held.log_likelihood, mixtures)) < before + MIN_MIXTURE_GAIN:
        return settle_for(least)
    kernel = regression.kernel(held.views)
    evidence = evidence_for_graph(held, before)

    @cache
    def scores(trust: float) -> NDArray:
        return held_out_scores(held, regression, kernel, trust)

    gains: dict[float, NDArray] = {}

    def gain(trust: float) -> float:
        if trust not in gains:
            gains[trust] = held.log_likelihoods(scores(trust)) - graph_logs
        return float(gains[trust].sum()) - cost_of_trust(trust, evidence)

    best = climb(TRUSTS, gain)
    if gain(best) <= 0:
        return settle_for(least, kernel)
    otherwise = scores(least) if least else by_graph
    return JudgedOpinion(best, unseen_scores(held, gains, scores, evidence, otherwise), regression, kernel)


def least_trust(targets: Targets) -> float:
    """The trust in the second opinion that remains if held-out labels do not ask for more.

    Its η is `LEAST_WEIGHT` times the share of samples with a label. With more than `MAX_SAMPLES` samples it is 0.

    Examples
    --------
    >>> round(least_trust(Targets.from_codes(np.array([0, 1, -1, -1, -1]), 2)), 3)
    0.091
    """
    weight = LEAST_WEIGHT * float(targets.labelled.mean()) if len(targets) <= MAX_SAMPLES else 0.0
    return weight / (1 + weight)


def unseen_scores(
    held: HeldOutLabels,
    gains: dict[float, NDArray],
    scores: Callable[[float], NDArray],
    evidence: float,
    otherwise: NDArray,
) -> NDArray:
    """Scores of the held-out samples, those of each fold with the trust that the labels of the other folds choose.

    Labels that had a part in the choice make it look better than it is, and would make the calibration too sure.

    Parameters
    ----------
    held : HeldOutLabels
        Labels held out in folds.
    gains : dict of float to ndarray of shape (m,)
        Log-likelihood that each trust gains for each held-out label.
    scores : callable
        Trust ↦ scores of the held-out samples.
    evidence : float
        As for `cost_of_trust`.
    otherwise : ndarray of shape (m, c)
        Scores if they choose none.

    Returns
    -------
    ndarray of shape (m, c)
    """
    result = otherwise.copy()
    for number in range(len(held.folds)):
        own = held.fold_numbers == number
        of_others = {trust: gain[~own].sum() - cost_of_trust(trust, evidence) for trust, gain in gains.items()}
        best = max(of_others, key=lambda trust: of_others[trust])
        if of_others[best] > 0:
            result[own] = scores(best)[own]
    return result


def evidence_for_graph(held: HeldOutLabels, found: float) -> float:
    """How far held-out labels and the share of labels speak for the graph, from 0 to 1.

    It is the log-likelihood that the graph gains over class frequencies, relative to `GAIN_OF_GRAPH` and at most 1, if
    held-out labels are enough to tell; less in proportion if more than `LABELLED_SHARE` of the samples have a label.

    Parameters
    ----------
    held : HeldOutLabels
        Labels held out in folds.
    found : float
        Their log-likelihood by the graph.

    Returns
    -------
    float
    """
    merit = found - held.log_likelihood_by_frequencies() if len(held.rows) >= MIN_HELD_OUT else GAIN_OF_GRAPH
    return min(max(merit / GAIN_OF_GRAPH, 0.0), 1.0) * min(1.0, LABELLED_SHARE / held.targets.labelled.mean())


def cost_of_trust(trust: float, evidence: float) -> float:
    """Log-likelihood of the held-out labels that a trust has to gain.

    Parameters
    ----------
    trust : float
        t.
    evidence : float
        How far the graph deserves to be preferred, from 0 to 1: `evidence_for_graph`.

    Returns
    -------
    float

    Examples
    --------
    >>> cost_of_trust(0.5, evidence=1.0), cost_of_trust(0.5, evidence=0.5), cost_of_trust(0.5, evidence=0.0)
    (5.0, 2.5, 0.5)
    """
    return max(MIN_MIXTURE_GAIN, evidence * (MIN_GAIN + GAIN_OF_FULL_TRUST * trust))


def held_out_scores(held: HeldOutLabels, regression: OpinionRegression, kernel: NDArray, trust: float) -> NDArray:
    """Balanced scores of the held-out samples, propagated with some trust.

    Parameters
    ----------
    held : HeldOutLabels
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
        again = propagate(fold.warm.laplacian, fold.targets, fold.warm.scores, TOLERANCE, opinion=opinion)
        found.append(again.scores)
    return held.balanced(found)
