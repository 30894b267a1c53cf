"""From class scores to answers: classes with too much held back, and confidence that means what it says."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lmssc.data.folds import assign_folds, hide

FOLDS = 5
# What is taken for the temperature before any label was held out: with few labels scores are flatter than sure.
USUAL = 0.7
# How far its logarithm is likely to be from that.
SPREAD = 0.5
# By how many times a class has too much or too little, at most: what is beyond may be an outlier's doing.
MOST_MISSING = 2.0
LOWEST, HIGHEST = 0.05, 100.0
# What doubt must gain in the logarithm of the likelihood, if it is all: few labels are no reason for it.
DOUBT_COST = 5.0
# A class is rare if the largest one has more than so many times its labels.
RARE = 10.0
# What rarity must gain, as a share of what one label of the rarest class says.
RARITY_COST = 0.3
MOST_RARITY = 8.0
# Samples from which on a group is calibrated on its own.
FEWEST_IN_GROUP = 20
# Scores below this are no more certain: one label that was held out must not decide all.
LEAST = 1e-4


def temper(scores: NDArray, temperature: float) -> NDArray:
    """Rows to the power 1/temperature, made to sum to 1; zeros stay zeros, and labels labels.

    Examples
    --------
    >>> temper(np.array([[0.75, 0.25], [1.0, 0.0]]), temperature=0.5)
    array([[0.9, 0.1],
           [1. , 0. ]])
    """
    scores = np.maximum(scores, 0)
    powers = (scores / scores.max(axis=1, keepdims=True)) ** scores.dtype.type(1 / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def balance(scores: NDArray, codes: NDArray, power: float) -> NDArray:
    """Scores that are free of what a class has only because of where its labels are and how many, made to sum to 1.

    Propagated labels favour the classes that have many, and those whose few labels happen to lie in the middle of
    things. With q_j the share of class j among the labels (and one label more of each class) and m_j that among the
    scores of all samples, scores are multiplied by q_j^(−b)·(q_j/m_j)^min(1, 2b); q_j/m_j counts as 2 at most and as ½
    at least.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        F, of all samples.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 where it is not known.
    power : float
        b. With 0 scores stay as they are, with 0.5 the totals of the classes are about as the roots of their numbers of
        labels, with 1 about equal.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> F = np.array([[1.0, 0.0], [0.0, 1.0], [0.55, 0.45], [0.9, 0.1], [0.8, 0.2]])
    >>> balance(F, np.array([0, 1, -1, -1, -1]), power=0.5).round(2)  # class 0 has more than its share
    array([[1.  , 0.  ],
           [0.  , 1.  ],
           [0.4 , 0.6 ],
           [0.83, 0.17],
           [0.68, 0.32]])
    """
    scores = np.maximum(scores, 0)
    counts = np.bincount(codes[codes >= 0], minlength=scores.shape[1]) + 1
    shares = counts / counts.sum()
    masses = scores.mean(axis=0, dtype=np.float64)
    missing = np.clip(shares / np.maximum(masses, np.finfo(float).tiny), 1 / MOST_MISSING, MOST_MISSING)
    weighted = scores * (shares**-power * missing ** min(1.0, 2 * power)).astype(scores.dtype)
    return weighted / weighted.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Calibration:
    """How class scores become probabilities: p = (1 − ε)·g + ε/c with g ∝ f^(1/T)·r^κ.

    Attributes
    ----------
    temperature : float
        T: below 1 the answers are surer than the scores, above 1 less sure.
    doubt : float
        ε, from 0 to 1: what is beyond all doubt has the probability 1 − ε + ε/c.
    rarity : float
        κ: how much less rare classes get than their scores say. Only this can change which class is the likeliest.

    Examples
    --------
    >>> calibration = Calibration(temperature=0.5, doubt=0.2)
    >>> calibration(np.array([[0.75, 0.25], [1.0, 0.0]]))
    array([[0.82, 0.18],
           [0.9 , 0.1 ]])
    >>> Calibration(rarity=1.0)(np.array([[0.6, 0.4]]), np.array([1.0, 0.5]))
    array([[0.75, 0.25]])
    """

    temperature: float = 1.0
    doubt: float = 0.0
    rarity: float = 0.0

    def __call__(self, scores: NDArray, rarity: NDArray | None = None) -> NDArray:
        """Probabilities of the classes; `rarity` is r, 1 for every class if it is not given."""
        powers = temper(scores, self.temperature)
        if self.rarity and rarity is not None:
            powers = powers * (rarity**self.rarity).astype(scores.dtype)
            powers /= powers.sum(axis=1, keepdims=True)
        kept = scores.dtype.type(1 - self.doubt)
        return kept * powers + (1 - kept) / scores.dtype.type(scores.shape[1])


def rarities(counts: NDArray) -> NDArray:
    """How rare each class is by its number of labels (and one more): 1 for all that have a tenth of the most.

    Examples
    --------
    >>> rarities(np.array([999, 99, 49, 0]))
    array([1.  , 1.  , 0.5 , 0.01])
    """
    relative = (counts + 1) / (counts.max() + 1)
    return np.minimum(1.0, RARE * relative)


def fit_calibration(
    scores: NDArray,
    targets: NDArray,
    rarity: NDArray | None = None,
    usual: float = USUAL,
    *,
    cautious: bool = True,
) -> Calibration:
    """The calibration that makes classes most likely, drawn to the usual one where there are few.

    The logarithm of T is drawn to that of the usual T. Doubt and rarity have a cost, so that both are 0 unless there is
    evidence.

    Parameters
    ----------
    scores : ndarray of shape (m, c)
        Scores of samples.
    targets : ndarray of shape (m, c)
        What is known of their classes: a row has the weight of its sample as its sum, in the column of its class, or
        shared out.
    rarity : ndarray of shape (c,), optional
        r of each class.
    usual : float
        The usual temperature.
    cautious : bool
        Whether doubt and rarity have a cost.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> right, by_chance = (np.array([[p, 1 - p], [1 - p, p]] * 50) for p in (0.9, 0.6))
    >>> round(fit_calibration(sure, right, usual=1.0).temperature, 1)
    1.0
    >>> fit_calibration(sure, by_chance)(sure).max().round(1)
    np.float64(0.6)
    >>> fit_calibration(np.empty((0, 2)), np.empty((0, 2)))
    Calibration(temperature=0.7, doubt=0.0, rarity=0.0)
    """
    if not len(scores):
        return Calibration(usual)
    n_classes = scores.shape[1]
    logs = np.log(np.maximum(scores, LEAST), dtype=np.float64)
    targets = np.asarray(targets, dtype=np.float64)
    offsets = np.zeros(n_classes) if rarity is None else np.log(rarity)
    doubt_cost = DOUBT_COST if cautious else 0.0
    rarity_cost = -RARITY_COST * float(offsets.min()) if cautious else 0.0
    centre = float(np.log(usual))

    def loss(parameters: NDArray) -> tuple[float, NDArray]:
        log_temperature, doubt, power = parameters
        scaled = logs / np.exp(log_temperature)
        exponents = scaled + power * offsets
        powers = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        powers /= powers.sum(axis=1, keepdims=True)
        probabilities = np.maximum((1 - doubt) * powers + doubt / n_classes, np.finfo(float).tiny)
        away = (log_temperature - centre) / SPREAD
        value = -(targets * np.log(probabilities)).sum() + away**2 / 2 + doubt_cost * doubt + rarity_cost * power
        slopes = -targets / probabilities
        inner = (1 - doubt) * powers * slopes
        inner -= powers * inner.sum(axis=1, keepdims=True)
        gradient = [
            away / SPREAD - (inner * scaled).sum(),
            doubt_cost + (slopes * (1 / n_classes - powers)).sum(),
            rarity_cost + (inner * offsets).sum(),
        ]
        return float(value), np.array(gradient, dtype=np.float64)

    bounds = [
        (np.log(LOWEST), np.log(HIGHEST)),
        (0.0, 1.0),
        (0.0, MOST_RARITY if offsets.any() else 0.0),
    ]
    # With little doubt and with much: there may be a best one for each.
    starts = ([centre, 0.0, 0.0], [centre, 0.5, 0.0])
    tries = [minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B") for start in starts]
    found = min(tries, key=lambda result: result.fun).x
    return Calibration(float(np.exp(found[0])), float(found[1]), float(found[2]))


@dataclass(frozen=True)
class GroupedCalibration:
    """A calibration for each group of samples that has enough, and one for the others.

    Samples that lack views are often wrong where those that have all are right; one calibration of both would take the
    confidence of the one for the other.

    Examples
    --------
    >>> calibration = GroupedCalibration(Calibration(), {1: Calibration(doubt=1.0)})
    >>> calibration(np.array([[0.9, 0.1], [0.9, 0.1]]), groups=np.array([0, 1]))
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    overall: Calibration
    groups: dict[int, Calibration]

    def __call__(self, scores: NDArray, groups: NDArray, rarity: NDArray | None = None) -> NDArray:
        """Probabilities of the classes; `groups` are the numbers of the samples' groups."""
        result = self.overall(scores, rarity)
        for group, calibration in self.groups.items():
            rows = groups == group
            result[rows] = calibration(scores[rows], rarity)
        return result


def fit_groups(
    scores: NDArray,
    targets: NDArray,
    groups: NDArray,
    rarity: NDArray | None = None,
    usual: float = USUAL,
    *,
    cautious: bool = True,
) -> GroupedCalibration:
    """`fit_calibration` on all samples, and on each group of at least 20, drawn to that of all.

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> found = fit_groups(sure, np.full((100, 2), 0.5), np.repeat([0, 1], [90, 10]))
    >>> list(found.groups)
    [0]
    """
    overall = fit_calibration(scores, targets, rarity, usual, cautious=cautious)
    found = {}
    numbers, counts = np.unique(groups, return_counts=True)
    if len(numbers) > 1:
        for number in numbers[counts >= FEWEST_IN_GROUP].tolist():
            own = groups == number
            found[number] = fit_calibration(scores[own], targets[own], rarity, overall.temperature, cautious=cautious)
    return GroupedCalibration(overall, found)


def calibration_sample(codes: NDArray, most: int) -> NDArray:
    """The first samples, and so many more that each class has two labels among them, if it has two at all.

    Examples
    --------
    >>> calibration_sample(np.array([0, -1, 0, 1, 1, 1, -1]), most=4)
    array([0, 1, 2, 3, 4])
    """
    chosen = np.arange(min(most, len(codes)))
    if len(codes) <= most:
        return chosen
    labelled = np.flatnonzero(codes >= 0)
    by_class = labelled[np.argsort(codes[labelled], kind="stable")]
    starts = np.searchsorted(codes[by_class], codes[by_class])
    first_two = by_class[np.arange(len(by_class)) - starts < 2]
    return np.union1d(chosen, first_two)


def held_out_scores(codes: NDArray, refit: Callable[[NDArray], NDArray]) -> tuple[NDArray, NDArray]:
    """Scores of labelled samples from fits in which their labels were hidden, and the numbers of these samples.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of each sample, −1 where it is not known, in an order by chance.
    refit : callable
        Codes ↦ scores of shape (n, c).

    Returns
    -------
    scores : ndarray of shape (m, c)
    rows : ndarray of int of shape (m,)
        The only sample with a label of a class is not held out.

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 1, 2, -1])
    >>> scores, rows = held_out_scores(codes, lambda hidden: (hidden[:, None] == [0, 1, 2]).astype(float))
    >>> scores.shape, float(scores.sum()), np.sort(rows)
    ((4, 3), 0.0, array([0, 1, 2, 3]))
    """
    fold = assign_folds(codes, FOLDS, rotate=True)
    parts = []
    for number in range(FOLDS):
        held = np.flatnonzero(fold == number)
        if len(held):
            parts.append((np.maximum(refit(hide(codes, held))[held], 0), held))
    if not parts:
        return np.empty((0, max(1, int(codes.max()) + 1))), np.empty(0, dtype=np.intp)
    scores, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
    return scores, rows
