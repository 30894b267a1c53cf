"""Confidence of a fit: held-out labels calibrate the warm start, and the final scores are calibrated to match it.

Afterwards the estimators lower the confidence in components of the graph whose labels are all of one class, of which no
label can be held out: see `one_class_components`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmssc.core.calibration import Calibration, GroupedCalibration, fit_by_kind
from lmssc.core.held_out import MAX_CALIBRATION_SAMPLES, HeldOutLabels, class_abundances
from lmssc.core.objective import Objective
from lmssc.core.permutation import Permutation
from lmssc.core.prior_correction import balance
from lmssc.core.propagation import Propagation
from lmssc.core.warm_start import WarmStart


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
        Some unlabelled samples, by their canonical indices.
    probabilities : ndarray of shape (m, c), or None
        Their calibrated probabilities.
    losses : ndarray of shape (l,), or None
        −ln p of each held-out label, after calibration, in the order of the samples.
    held_out : tuple of ndarray of int of shape (l,) and ndarray of shape (l, c), or None
        Samples whose labels were held out, in canonical order, and their calibrated probabilities without them; None
        if they are some of many samples.
    """

    calibration: GroupedCalibration = field(default_factory=lambda: GroupedCalibration(Calibration(), {}))
    samples: NDArray | None = None
    probabilities: NDArray | None = None
    losses: NDArray | None = None
    held_out: tuple[NDArray, NDArray] | None = None


def calibrate_start(
    objective: Objective,
    warm: WarmStart,
    held: HeldOutLabels,
    held_scores: NDArray,
    permutation: Permutation,
    prior_power: float,
) -> StartConfidence:
    """Calibrate the scores of the warm start by held-out labels.

    Parameters
    ----------
    objective : Objective
        The problem, in the order of the fit.
    warm : WarmStart
        The warm start.
    held : HeldOutLabels
        The held-out labels.
    held_scores : ndarray of shape (l, c)
        Balanced scores of the samples that they are of.
    permutation : Permutation
        Order of the fit.
    prior_power : float
        Exponent of the prior correction, as for `balance`.

    Returns
    -------
    StartConfidence
    """
    calibration = held.calibrate(held_scores)
    samples, probabilities = unlabelled_probabilities(
        objective, warm.scores, warm.unreached, calibration, permutation, prior_power
    )
    losses = held.losses(held_scores, calibration)[np.argsort(held.rows)]
    held_out = (held.rows, held.probabilities(held_scores, calibration)) if held.complete else None
    return StartConfidence(calibration, samples, probabilities, losses, held_out)


def unlabelled_probabilities(
    objective: Objective,
    scores: NDArray,
    unreached: NDArray,
    calibration: GroupedCalibration,
    permutation: Permutation,
    prior_power: float,
) -> tuple[NDArray, NDArray]:
    """Some samples without a label, by canonical index, and their probabilities from the scores of all samples."""
    codes, n_samples = objective.targets.codes, len(scores)
    samples = permutation.first_samples(MAX_CALIBRATION_SAMPLES, of=n_samples)
    positions = permutation.first(MAX_CALIBRATION_SAMPLES, of=n_samples)
    unlabelled = (codes[positions] < 0) & ~unreached[positions]
    samples, positions = samples[unlabelled], positions[unlabelled]
    balanced = balance(scores, codes, prior_power)[positions]
    kinds = permutation.undo(objective.sample_kinds())[samples]
    return samples, calibration(balanced, kinds, class_abundances(codes, objective.targets.n_classes))


def calibrate_scores(
    found: Propagation, codes: NDArray, kinds: NDArray, confidence: StartConfidence, prior_power: float
) -> tuple[NDArray, GroupedCalibration]:
    """Probabilities of the final scores, all in canonical order.

    Labelled samples keep their labels, and samples without a label in their component their class frequencies.

    Parameters
    ----------
    found : Propagation
        Final scores F, and the samples without a label in their component.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 without a label.
    kinds : ndarray of int of shape (n,)
        What each sample lacks: see `kinds_of`.
    confidence : StartConfidence
        Confidence of the warm start.
    prior_power : float
        Exponent of the prior correction, as for `balance`.

    Returns
    -------
    probabilities : ndarray of shape (n, c)
    calibration : GroupedCalibration
        With which `calibrated` repeats this for other scores.
    """
    scores, unreached = found
    calibration = confidence.calibration
    if confidence.samples is not None and confidence.probabilities is not None:
        balanced, abundance = balance(scores, codes, prior_power), class_abundances(codes, scores.shape[1])
        reached = ~unreached[confidence.samples]
        rows, probabilities = confidence.samples[reached], confidence.probabilities[reached]
        calibration = fit_by_kind(balanced[rows], probabilities, kinds[rows], abundance, calibration, penalise=False)
    return calibrated(found, codes, kinds, calibration, prior_power), calibration


def calibrated(
    found: Propagation, codes: NDArray, kinds: NDArray, calibration: GroupedCalibration, prior_power: float
) -> NDArray:
    """Probabilities of scores with a calibration that is known; parameters as for `calibrate_scores`.

    Examples
    --------
    >>> found = Propagation(np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.2]]), np.zeros(3, dtype=bool))
    >>> sharper = GroupedCalibration(Calibration(temperature=0.5), {})
    >>> calibrated(found, np.array([0, 1, -1]), np.zeros(3, dtype=int), sharper, prior_power=0.0)[2].round(2)
    array([0.94, 0.06])
    """
    scores, unreached = found
    balanced, abundance = balance(scores, codes, prior_power), class_abundances(codes, scores.shape[1])
    fixed = (codes >= 0) | unreached
    return np.where(fixed[:, None], scores, calibration(balanced, kinds, abundance))
