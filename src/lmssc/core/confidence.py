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
    balance,
    calibration_sample,
    fit_groups,
    held_out_scores,
    rarities,
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


@dataclass(frozen=True)
class StartConfidence:
    """Confidence of the warm start.

    The iterations make the scores sharper, but the predictions not as much more accurate. So the final scores are
    calibrated to the probabilities of the warm start, which come from held-out labels.

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
    missing = permutation.undo(objective.views.missing_counts())[samples]
    rarity = class_rarities(codes, objective.targets.n_classes)
    return StartConfidence(calibration, samples, calibration(scores, missing, rarity))


def _held_out_calibration(
    objective: Objective, first: FirstGraph, permutation: Permutation, config: FitConfig
) -> GroupedCalibration:
    """Calibration by labels that are held out in turn while the warm start is repeated without them."""
    targets, missing = objective.targets, objective.views.missing_counts()
    n_samples, tol = len(first.embedded), objective.tolerance()
    search = choose_search(n_samples, config.neighbor_recall)
    if not permutation.is_identity or n_samples > MAX_CALIBRATION_SAMPLES:
        order = permutation.first(n_samples, of=n_samples)
        chosen = order[calibration_sample(targets.codes[order], MAX_CALIBRATION_SAMPLES)]
        targets, missing, embedded = targets.take(chosen), missing[chosen], first.embedded[chosen]
        objective = replace(objective, groups=None if objective.groups is None else objective.groups[chosen])
        graph = objective.connect(embedded, search)
        first = FirstGraph(embedded, graph, NystroemRows(embedded), first.label_weight)
    learn = partial(objective.connect, search=search)

    def refit(hidden: NDArray) -> NDArray:
        known = targets.hide(np.flatnonzero(hidden < 0))
        again = warm_start(first.embedded, first.graph, known, first.label_weight, learn, first.features, tol)
        return balance(again.scores, hidden, config.balance)

    scores, held_out = held_out_scores(targets.codes, refit)
    rarity = class_rarities(targets.codes, targets.n_classes)
    return fit_groups(scores, targets.matrix(scores.dtype)[held_out], missing[held_out], rarity)


def calibrate_scores(
    found: Propagation, codes: NDArray, missing: NDArray, start: StartConfidence, prior_power: float
) -> tuple[NDArray, Calibration]:
    """Probabilities of the final scores, all in canonical order.

    Labelled samples keep their labels, and samples without a label in their component their class frequencies.

    Parameters
    ----------
    found : Propagation
        Final scores F, and the samples without a label in their component.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 without a label.
    missing : ndarray of int of shape (n,)
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
    balanced, rarity = balance(scores, codes, prior_power), class_rarities(codes, scores.shape[1])
    calibration = start.calibration
    if start.samples is not None and start.probabilities is not None:
        reached = ~unreached[start.samples]
        rows, probabilities = start.samples[reached], start.probabilities[reached]
        prior = calibration.overall.temperature
        calibration = fit_groups(balanced[rows], probabilities, missing[rows], rarity, prior, penalise=False)
    fixed = (codes >= 0) | unreached
    return np.where(fixed[:, None], scores, calibration(balanced, missing, rarity)), calibration.overall


def class_rarities(codes: NDArray, n_classes: int) -> NDArray:
    """`rarities` of the classes of labelled samples; `codes` are −1 without a label.

    Examples
    --------
    >>> class_rarities(np.repeat([0, 1, -1], [99, 1, 50]), 2)
    array([1. , 0.2])
    """
    return rarities(np.bincount(codes[codes >= 0], minlength=n_classes))
