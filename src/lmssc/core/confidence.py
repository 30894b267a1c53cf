"""Confidence of a fit: held-out labels calibrate the warm start, and the final scores are calibrated to match it.

Afterwards the estimators lower the confidence in components of the graph whose labels are all of one class, of which no
label can be held out: see `one_class_components`.
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.calibration import (
    Calibration,
    GroupedCalibration,
    abundances,
    balance,
    calibration_sample,
    fit_by_missing,
    held_out_scores,
)
from lmssc.core.fit_config import FitConfig
from lmssc.core.label_regression import NystroemRows
from lmssc.core.objective import Objective
from lmssc.core.permutation import Permutation
from lmssc.core.propagation import Propagation
from lmssc.core.warm_start import WarmStart, warm_start
from lmssc.numerics.knn.approximate import choose_search

MAX_CALIBRATION_SAMPLES = 3000
"""The confidence is calibrated on at most this many samples, and two of each class."""

HELD_OUT_TOLERANCE = 1e-5
"""Relative residual of the solver while labels are held out: the calibration needs no more digits."""


@dataclass(frozen=True)
class StartConfidence:
    """Confidence of the warm start, to which the final scores are calibrated.

    Held-out labels cannot calibrate the final scores: the final graph was built with them, and finds 94–100 % of them
    again; a whole fit for each fold would take five times as long. Nor can T and ε of the start be reused: the
    iterations sharpen the scores more than they improve the predictions. So the calibration of the final scores is
    fitted to the calibrated probabilities of the start.

    Attributes
    ----------
    calibration : GroupedCalibration
        Calibration of the scores of the warm start.
    samples : ndarray of int of shape (m,), or None
        Some unlabelled samples, in canonical order.
    probabilities : ndarray of shape (m, c), or None
        Their calibrated probabilities.
    """

    calibration: GroupedCalibration = field(default_factory=lambda: GroupedCalibration(Calibration(), {}))
    samples: NDArray | None = None
    probabilities: NDArray | None = None


@dataclass(frozen=True)
class FirstGraph:
    """What the warm start and its calibration both begin with.

    Attributes
    ----------
    embedded : ndarray of shape (n, r)
        Z.
    graph : csr_array of shape (n, n)
        S on Z alone.
    features : NystroemRows
        Features of Z for the label regression.
    label_weight : float
        Weight of the expected scores, in units of squared distances in Z.
    """

    embedded: NDArray
    graph: sparse.csr_array
    features: NystroemRows
    label_weight: float


def calibrate_start(
    objective: Objective, first: FirstGraph, start: WarmStart, permutation: Permutation, config: FitConfig
) -> StartConfidence:
    """Calibrate the scores of the warm start, and predict some unlabelled samples with them.

    Parameters
    ----------
    objective : Objective
        The problem, in the order of the fit.
    first : FirstGraph
        What the warm start began with.
    start : WarmStart
        Its result.
    permutation : Permutation
        Order of the fit.
    config : FitConfig
        Parameters of the fit.

    Returns
    -------
    StartConfidence
    """
    calibration = _held_out_calibration(objective, first, permutation, config)
    codes, n_samples = objective.targets.codes, len(start.scores)
    samples = np.arange(min(n_samples, MAX_CALIBRATION_SAMPLES))
    positions = permutation.first(MAX_CALIBRATION_SAMPLES, of=n_samples)
    unlabelled = (codes[positions] < 0) & ~start.unreached[positions]
    samples, positions = samples[unlabelled], positions[unlabelled]
    scores = balance(start.scores, codes, config.balance)[positions]
    n_missing = permutation.undo(objective.views.missing_counts())[samples]
    abundance = class_abundances(codes, objective.targets.n_classes)
    return StartConfidence(calibration, samples, calibration(scores, n_missing, abundance))


def _held_out_calibration(
    objective: Objective, first: FirstGraph, permutation: Permutation, config: FitConfig
) -> GroupedCalibration:
    """Calibration by labels that are held out in turn while the warm start is repeated without them."""
    targets, n_missing = objective.targets, objective.views.missing_counts()
    n_samples, tol = len(first.embedded), max(objective.tolerance(), HELD_OUT_TOLERANCE)
    search = choose_search(n_samples, config.neighbor_recall)
    if not permutation.is_identity or n_samples > MAX_CALIBRATION_SAMPLES:
        order = permutation.first(n_samples, of=n_samples)
        chosen = order[calibration_sample(targets.codes[order], MAX_CALIBRATION_SAMPLES)]
        targets, n_missing, embedded = targets.take(chosen), n_missing[chosen], first.embedded[chosen]
        objective = replace(objective, groups=None if objective.groups is None else objective.groups[chosen])
        graph = objective.connect(embedded, search)
        first = FirstGraph(embedded, graph, NystroemRows(embedded), first.label_weight)
    learn = partial(objective.connect, search=search)

    def refit(remaining: NDArray) -> NDArray:
        known = targets.hide(np.flatnonzero(remaining < 0))
        again = warm_start(first.embedded, first.graph, known, first.label_weight, learn, first.features, tol)
        return balance(again.scores, remaining, config.balance)

    scores, held_out = held_out_scores(targets.codes, refit)
    abundance = class_abundances(targets.codes, targets.n_classes)
    return fit_by_missing(scores, targets.matrix(scores.dtype)[held_out], n_missing[held_out], abundance)


def calibrate_scores(
    found: Propagation, codes: NDArray, n_missing: NDArray, start: StartConfidence, prior_power: float
) -> tuple[NDArray, Calibration]:
    """Probabilities of the final scores, all in canonical order.

    Labelled samples keep their labels, and samples without a label in their component their class frequencies.

    Parameters
    ----------
    found : Propagation
        Final scores F, and the samples without a label in their component.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 without a label.
    n_missing : ndarray of int of shape (n,)
        Number of views that each sample lacks.
    start : StartConfidence
        Confidence of the warm start.
    prior_power : float
        Exponent of the prior correction, as for `balance`.

    Returns
    -------
    probabilities : ndarray of shape (n, c)
    calibration : Calibration
        The calibration of samples in general; those that lack views may have another.
    """
    scores, unreached = found
    balanced, abundance = balance(scores, codes, prior_power), class_abundances(codes, scores.shape[1])
    calibration = start.calibration
    if start.samples is not None and start.probabilities is not None:
        reached = ~unreached[start.samples]
        rows, probabilities = start.samples[reached], start.probabilities[reached]
        prior = calibration.overall.temperature
        calibration = fit_by_missing(balanced[rows], probabilities, n_missing[rows], abundance, prior, penalise=False)
    fixed = (codes >= 0) | unreached
    return np.where(fixed[:, None], scores, calibration(balanced, n_missing, abundance)), calibration.overall


def class_abundances(codes: NDArray, n_classes: int) -> NDArray:
    """`abundances` of the classes of labelled samples; `codes` are −1 without a label.

    Examples
    --------
    >>> class_abundances(np.repeat([0, 1, -1], [99, 1, 50]), 2)
    array([1. , 0.2])
    """
    return abundances(np.bincount(codes[codes >= 0], minlength=n_classes))
