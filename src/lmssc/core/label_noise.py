"""Labels that may be wrong: how likely each is, and how far it is to be trusted."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from lmssc.core.calibration import Calibration, fit_calibration
from lmssc.core.calibration_loss import PRIOR
from lmssc.core.hidden_folds import HiddenFolds, LatentProblem, hidden_scores
from lmssc.core.targets import STIFFNESS, Targets

MIN_NOISE = 0.1
"""Share of wrong labels that is tried if none shows."""
CLEAR_NOISE = 0.05
"""Estimated share of wrong labels that is believed at once; less has to find more of the hidden labels."""
MIN_WRONG = 1e-3
"""No label is trusted more than if it were wrong with this probability, once there is noise at all."""


@dataclass(frozen=True)
class LabelDoubt:
    """What labels that were hidden in turn say about each label.

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Class scores of each sample without its own label; NaN for labels that were never hidden.
    wrong : ndarray of shape (n,)
        Probability that the label of each sample is wrong; 0 without a label, NaN if it was never hidden.
    noise : float
        Estimated share of wrong labels; 0 if trusting labels less finds no more of those that are hidden.
    """

    scores: NDArray
    wrong: NDArray
    noise: float


def doubt_labels(
    problem: LatentProblem, targets: Targets, folds: HiddenFolds, noise: float | None = None
) -> LabelDoubt:
    """How likely each label is wrong, by how much the others disagree.

    Labels are hidden in turn; then again, with labels that the first round doubts trusted less, because a wrong label
    misleads its neighbours too. If that does not find more of the hidden labels, there is no noise worth the name.

    Parameters
    ----------
    problem : LatentProblem
        The samples.
    targets : Targets
        Their labels.
    folds : HiddenFolds
        Which labels are hidden together.
    noise : float, optional
        Share of wrong labels; estimated if it is not given.

    Returns
    -------
    LabelDoubt
    """
    plain = hidden_scores(problem, targets, folds)
    first = judge_labels(plain, targets, noise)
    shown = noise is not None or first.noise >= CLEAR_NOISE
    if not shown:  # wrong labels that follow a rule look like classes that overlap
        first = judge_labels(plain, targets, MIN_NOISE)
    if first.noise == 0:
        return first
    again = hidden_scores(problem, trust_labels(targets, first), folds)
    if not shown and not _finds_more(again, plain, targets):
        # Nothing gained by doubt. One wrong label more is always possible: the ranking is worth having.
        return replace(judge_labels(plain, targets, 1 / (targets.n_labelled + 2)), noise=0.0)
    second = judge_labels(again, targets, noise)
    return second if second.noise >= CLEAR_NOISE else judge_labels(again, targets, first.noise)


def _finds_more(scores: NDArray, others: NDArray, targets: Targets) -> bool:
    """Whether hidden labels are found again more often by these scores, by more than chance."""
    rows = np.flatnonzero(targets.labelled & ~np.isnan(scores).any(axis=1))
    found, before = (one[rows].argmax(axis=1) == targets.codes[rows] for one in (scores, others))
    gained, lost = int((found & ~before).sum()), int((before & ~found).sum())
    return gained - lost > np.sqrt(gained + lost)


def judge_labels(scores: NDArray, targets: Targets, noise: float | None = None) -> LabelDoubt:
    """Probability that each label is wrong, given the scores of the others for its sample.

    A label is right with probability 1 − ν, otherwise any other class is as likely. With g ∝ f^(1/T) the distribution
    that the others give, the label y is wrong with probability 1 − (1 − ν)·g_y / ((1 − ε)·g_y + ε/c), ε = ν·c/(c − 1).
    T and ε are those of the calibration of the hidden labels.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        Scores of each sample without its own label, NaN for some.
    targets : Targets
        The labels.
    noise : float, optional
        ν; by default the ε that makes the hidden labels most likely gives it.

    Returns
    -------
    LabelDoubt

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0] * 20 + [1] * 20), 2)
    >>> scores = np.repeat([[0.95, 0.05], [0.05, 0.95]], 20, axis=0)
    >>> scores[0] = [0.05, 0.95]
    >>> found = judge_labels(scores, targets, noise=0.05)
    >>> bool(found.wrong[0] > 0.5), bool(found.wrong[1:].max() < 0.05)
    (True, True)
    """
    codes, n_classes = targets.codes, targets.n_classes
    rows = np.flatnonzero(targets.labelled & ~np.isnan(scores).any(axis=1))
    wrong = np.where(targets.labelled, np.nan, 0.0)
    own, truth = np.maximum(scores[rows], 0), np.eye(n_classes)[codes[rows]]
    most = n_classes / (n_classes - 1)
    if noise is None:
        calibration = fit_calibration(own, truth)
    else:
        calibration = _fit_temperature(own, truth, min(noise * most, PRIOR.max_doubt))
    doubt = calibration.doubt
    if len(rows):
        given = replace(calibration, doubt=0.0)(own)[np.arange(len(rows)), codes[rows]].astype(np.float64)
        likelihood = (1 - doubt) * given + doubt / n_classes
        wrong[rows] = 1 - (1 - doubt / most) * given / np.maximum(likelihood, np.finfo(float).tiny)
        wrong[rows] = np.clip(wrong[rows], 0, 1) if doubt else 0.0
    return LabelDoubt(scores, wrong, doubt / most)


def _fit_temperature(scores: NDArray, truth: NDArray, doubt: float) -> Calibration:
    """The calibration of `fit_calibration` for a given ε."""

    def loss(log_temperature: float) -> float:
        found = Calibration(float(np.exp(log_temperature)), doubt)(np.maximum(scores, PRIOR.min_score))
        away = (log_temperature - np.log(PRIOR.temperature)) / PRIOR.log_temperature_std
        return -float((truth * np.log(np.maximum(found, np.finfo(float).tiny))).sum()) + away**2 / 2

    bounds = np.log([PRIOR.min_temperature, PRIOR.max_temperature])
    return Calibration(float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x)), doubt)


def trust_labels(targets: Targets, doubt: LabelDoubt) -> Targets:
    """The targets with as much trust in each label as its odds of being right; labels never hidden stay certain.

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0, 1, -1]), 2)
    >>> trust_labels(targets, LabelDoubt(np.zeros((3, 2)), np.array([0.5, np.nan, 0.0]), 0.1)).trust
    array([0.3, inf, inf])
    """
    odds = (1 - doubt.wrong) / np.maximum(doubt.wrong, MIN_WRONG)
    known = targets.labelled & ~np.isnan(doubt.wrong) & (doubt.noise > 0)
    trust = np.where(known, STIFFNESS * odds, np.inf)
    return replace(targets, trust=trust if targets.trust is None else np.minimum(trust, targets.trust))
