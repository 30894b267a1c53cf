"""Statistical tests of an accuracy, a confidence, or a change of accuracy, given few labels."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

# Half-width of a 95 % interval that is narrow enough for a verdict: 5 percentage points.
MAX_HALF_WIDTH = 0.05
# 95 % of the normal distribution are within this many standard deviations.
Z = 1.959963984540054

Calibration = Literal["fits", "too sure", "too modest", "too few"]
Change = Literal["worse", "better", "same", "too few"]


def wilson(rate: float, n: int) -> tuple[float, float]:
    """95 % confidence interval (Wilson score) of a rate measured on `n` samples.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(0.9, 10)], [round(bound, 3) for bound in wilson(0.9, 1000)]
    ([0.596, 0.982], [0.88, 0.917])
    """
    centre = (rate + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (n + Z**2) * math.sqrt(rate * (1 - rate) * n + Z**2 / 4)
    # Exact at 0 and 1, so that rounding cannot exclude a confidence of 100 %.
    return (centre - half if rate > 0 else 0.0), (centre + half if rate < 1 else 1.0)


def labels_that_tell(rate: float) -> int:
    """Smallest number of labels whose Wilson interval around `rate` is at most ±5 percentage points.

    Examples
    --------
    >>> labels_that_tell(0.5), labels_that_tell(0.9), labels_that_tell(1.0)
    (381, 141, 35)
    """
    # Setting the half-width of `wilson` to MAX_HALF_WIDTH gives a quadratic equation in n + Z².
    a = rate * (1 - rate)
    root = math.sqrt(a**2 + MAX_HALF_WIDTH**2 * (1 - 4 * a))
    return math.ceil(Z**2 * ((a + root) / (2 * MAX_HALF_WIDTH**2) - 1))


def judge_confidence(claimed: float, rate: float, n: int) -> Calibration:
    """Compare a mean confidence with the share of right answers.

    Parameters
    ----------
    claimed : float
        Mean confidence.
    rate : float
        Share of answers that are right.
    n : int
        Number of answers.

    Returns
    -------
    str
        "too sure" or "too modest" if `claimed` is outside the 95 % interval of `rate`. Inside it, "fits" if the
        interval is at most ±5 percentage points, else "too few": almost any confidence would be inside.

    Examples
    --------
    >>> judge_confidence(0.428, 0.568, 44), judge_confidence(0.428, 0.568, 440), judge_confidence(0.56, 0.568, 440)
    ('too few', 'too modest', 'fits')
    """
    low, high = wilson(rate, n)
    if min(claimed, 1.0) > high:  # rounding may put a mean above 1
        return "too sure"
    if claimed < low:
        return "too modest"
    return "fits" if n >= labels_that_tell(rate) else "too few"


def judge_change(before: NDArray, after: NDArray) -> tuple[Change, int]:
    """Decide whether answers for the same samples became better or worse.

    Parameters
    ----------
    before, after : ndarray of bool of shape (n,)
        Whether each answer is right, before and after.

    Returns
    -------
    str
        "worse" or "better" by McNemar's exact test at 5 %. Otherwise "same" if the 95 % interval of the change is at
        most ±5 percentage points (Agresti and Min, 2005), else "too few".
    int
        Number of labels for an interval that narrow, if the same share of answers changes.

    Examples
    --------
    >>> right = np.ones(40, dtype=bool)
    >>> judge_change(right, right), judge_change(right[:6], ~right[:6]), judge_change(right[:5], ~right[:5])[0]
    (('same', 38), ('worse', 66), 'too few')
    """
    lost, won = int((before & ~after).sum()), int((after & ~before).sum())
    changed, step = (lost + won) / len(before), (won - lost) / len(before)
    n = np.arange(1, math.ceil((Z / MAX_HALF_WIDTH) ** 2) + 1)  # for the last, any interval is narrow enough
    # Add half a change in each direction: no change among few labels is no certainty.
    variance = (changed * n + 1) / (n + 2) - (step * n / (n + 2)) ** 2
    enough = int(n[np.argmax(Z * np.sqrt(variance / (n + 2)) <= MAX_HALF_WIDTH)])
    if lost + won and binomtest(lost, lost + won).pvalue < 0.05:
        return ("worse" if lost > won else "better"), enough
    return ("same" if len(before) >= enough else "too few"), enough


def gap_by_chance(confidence: NDArray, n_bins: int, random_state: int = 0) -> float:
    """95th percentile of the calibration error due to chance alone, if every confidence is correct.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Confidence of each answer.
    n_bins : int
        Number of bins of the confidence.
    random_state : int
        Seed of the simulation.

    Returns
    -------
    float
        95th percentile of the expected calibration error over 1,000 simulations.

    Examples
    --------
    >>> confidence = np.full(20, 0.9)
    >>> round(gap_by_chance(confidence, 10), 2), round(gap_by_chance(np.tile(confidence, 100), 10), 2)
    (0.1, 0.01)
    """
    rng = np.random.default_rng(random_state)
    error = np.zeros(1000)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    for number in np.unique(bins):
        claims = confidence[bins == number]
        right = (rng.uniform(size=(len(error), len(claims))) < claims).sum(axis=1)
        error += np.abs(right - claims.sum())
    return float(np.quantile(error / len(confidence), 0.95))
