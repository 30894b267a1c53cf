"""Metrics of a method: accuracy, calibration and memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t, ttest_rel
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "calibration_error")


def expected_calibration_error(right: NDArray, confidence: NDArray, n_bins: int = 15) -> float:
    """Mean gap between confidence and accuracy, over bins of equal width of the confidence.

    Parameters
    ----------
    right : ndarray of bool
        Whether each prediction is right.
    confidence : ndarray
        Probability of each prediction.
    n_bins : int
        Number of bins.

    Returns
    -------
    float

    Examples
    --------
    >>> round(expected_calibration_error(np.array([True, False]), np.array([0.9, 0.9])), 6)
    0.4
    """
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(right))


def score(truth: NDArray, proba: NDArray, predicted: NDArray) -> dict[str, float]:
    """All `METRICS` of the predictions of a method.

    Parameters
    ----------
    truth : ndarray of int of shape (n,)
        True classes, as columns of `proba`.
    proba : ndarray of shape (n, c)
        Distributions over the classes.
    predicted : ndarray of int of shape (n,)
        Predicted classes, as columns of `proba`.

    Returns
    -------
    dict

    Examples
    --------
    >>> scores = score(np.array([0, 1]), np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([0, 1]))
    >>> scores["accuracy"], round(scores["calibration_error"], 6)
    (1.0, 0.2)
    """
    right = predicted == truth
    present = np.unique(truth)
    return {
        "accuracy": float(accuracy_score(truth, predicted)),
        "balanced_accuracy": float(np.mean([right[truth == c].mean() for c in present]))
        if len(present) < proba.shape[1]
        else float(balanced_accuracy_score(truth, predicted)),
        "macro_f1": float(f1_score(truth, predicted, labels=present, average="macro", zero_division=0)),
        "log_loss": float(log_loss(truth, proba.astype(np.float64), labels=np.arange(proba.shape[1]))),
        "calibration_error": expected_calibration_error(right, proba[np.arange(len(truth)), predicted]),
    }


def paired_p_value(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """Paired t-test of two methods on the splits that both have.

    Parameters
    ----------
    one, other : dict of split → score
        Scores of the two methods.

    Returns
    -------
    float
        NaN with fewer than two splits; 1 if all scores are equal, 0 if they differ by the same on every split.

    Examples
    --------
    >>> round(paired_p_value({0: 0.8, 1: 0.9, 2: 0.7}, {0: 0.7, 1: 0.7, 2: 0.6}), 3)
    0.057
    """
    common = [split for split in one if split in other]
    mine, its = (np.array([values[split] for split in common]) for values in (one, other))
    if len(common) < 2:
        return float("nan")
    lead = mine - its
    if np.ptp(lead) <= 1e-12 * np.abs(mine).max():  # equal differences up to rounding: the t-test is undefined
        return 0.0 if (mine != its).any() else 1.0
    return float(ttest_rel(mine, its).pvalue)


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Confidence interval of the mean, by Student's t.

    Parameters
    ----------
    values : sequence of float
        Scores on splits.
    level : float
        Confidence.

    Returns
    -------
    low, high : float
        NaN with fewer than two values.

    Examples
    --------
    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 2:
        return float("nan"), float("nan")
    half = float(t.ppf((1 + level) / 2, len(numbers) - 1) * numbers.std(ddof=1) / np.sqrt(len(numbers)))
    return float(numbers.mean()) - half, float(numbers.mean()) + half


class PeakMemory:
    """Peak memory of the process above its start, in megabytes, as Linux counts it; NaN on other systems.

    Examples
    --------
    >>> with PeakMemory() as memory:
    ...     block = np.ones(10_000_000)
    >>> bool(np.isnan(memory.megabytes) or memory.megabytes > 50)
    True
    """

    megabytes = float("nan")

    def __enter__(self) -> "PeakMemory":
        self._before = self._read("VmRSS")
        try:
            Path("/proc/self/clear_refs").write_text("5")  # reset the peak
        except OSError:
            self._before = float("nan")
        return self

    def __exit__(self, *_: object) -> None:
        self.megabytes = float(np.maximum(self._read("VmHWM") - self._before, 0)) / 1024  # NaN stays

    @staticmethod
    def _read(name: str) -> float:
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
        except OSError:
            return float("nan")
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name}:")), float("nan"))
