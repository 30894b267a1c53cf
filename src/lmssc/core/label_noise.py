"""Labels that may be wrong: how likely each is, and how far it is to be trusted."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from lmssc.core.calibration import Calibration, fit_calibration
from lmssc.core.calibration_loss import PRIOR
from lmssc.core.held_out_folds import HeldOutFolds, LatentProblem, fold_scores
from lmssc.core.targets import STIFFNESS, Targets

FIRST_NOISE = 0.15
"""Share of wrong labels that the estimate starts from."""
N_ROUNDS = 3
"""Rounds in which labels are held out, each with the trust that the last one found."""
PRIOR_LABELS = 5.0
"""The estimated share of wrong labels is shrunk to 0 as by so many labels that are right."""
MIN_NOISE = 0.05
"""A smaller estimate is what classes that overlap give without any noise, and counts as none."""
UNDERESTIMATE = 1.5
"""There are so many times as many wrong labels as the estimate says: they mislead those that judge them."""
MAX_NOISE = 0.4
"""Most noise that is assumed: with more, labels would say next to nothing."""
MAX_ODDS = 20.0
"""Odds of being right beyond which no label is trusted, once there is noise at all."""


@dataclass(frozen=True)
class LabelDoubt:
    """What labels that were held out in turn say about each label.

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Class scores of each sample without its own label; NaN for labels that were never held out.
    wrong : ndarray of shape (n,)
        Probability that the label of each sample is wrong; 0 without a label, NaN if it was never held out.
    noise : float
        Estimated share of wrong labels; 0 if it is too small to be told from classes that overlap.
    """

    scores: NDArray
    wrong: NDArray
    noise: float


def doubt_labels(
    problem: LatentProblem, targets: Targets, folds: HeldOutFolds, noise: float | None = None
) -> LabelDoubt:
    """How likely each label is wrong, by how much the others disagree.

    Labels are held out in turn, in rounds: each round trusts labels as far as the last one found, the first all alike,
    because a wrong label misleads its neighbours too. The share of wrong labels is estimated along the way, as in
    expectation maximisation, and shrunk to 0. It counts only if the labels are more likely with it than without: where
    classes overlap, labels contradict each other that are all right.

    Parameters
    ----------
    problem : LatentProblem
        The samples.
    targets : Targets
        Their labels.
    folds : HeldOutFolds
        Which labels are held out together.
    noise : float, optional
        Share of wrong labels; estimated if it is not given.

    Returns
    -------
    LabelDoubt
    """
    share = FIRST_NOISE if noise is None else noise
    found = LabelDoubt(np.empty(0), np.where(targets.labelled, share, 0.0), share)
    for _ in range(N_ROUNDS):
        scores = fold_scores(problem, trust_labels(targets, found), folds)
        found = judge_labels(scores, targets, share)
        if noise is None:
            share = float(np.nansum(found.wrong) / (targets.n_labelled + PRIOR_LABELS))
    if noise is not None:
        return found
    if share >= MIN_NOISE:
        assumed = min(UNDERESTIMATE * share, MAX_NOISE)
        if evidence_of_noise(scores, targets, assumed) > 0:
            return judge_labels(scores, targets, assumed)
    # One wrong label more is always possible: the ranking is worth having.
    return replace(judge_labels(scores, targets, 1 / (targets.n_labelled + 2)), noise=0.0)


def judge_labels(scores: NDArray, targets: Targets, noise: float | None = None) -> LabelDoubt:
    """Probability that each label is wrong, given the scores of the others for its sample.

    A label is right with probability 1 − ν, otherwise any other class is as likely. With g ∝ f^(1/T) the distribution
    that the others give, the label y is wrong with probability 1 − (1 − ν)·g_y / ((1 − ε)·g_y + ε/c), ε = ν·c/(c − 1).
    T and ε are those of the calibration of the held-out labels.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        Scores of each sample without its own label, NaN for some.
    targets : Targets
        The labels.
    noise : float, optional
        ν; by default the ε that makes the held-out labels most likely gives it.

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
    wrong = np.where(targets.labelled, np.nan, 0.0)
    rows, own, truth = _held_out(scores, targets)
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


def evidence_of_noise(scores: NDArray, targets: Targets, noise: float) -> float:
    """How much more likely the held-out labels are if a share of all labels is wrong than if none is, as a logarithm.

    Parameters are as for `judge_labels`.

    Examples
    --------
    >>> targets = Targets.from_codes(np.repeat([0, 1], 20), 2)
    >>> sure = np.repeat([[0.99, 0.01], [0.01, 0.99]], 20, axis=0)
    >>> sure[:4] = [0.01, 0.99]
    >>> overlap = np.repeat([[0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.4, 0.6]], 5, axis=0)
    >>> overlap = np.vstack([overlap, overlap[:, ::-1]])
    >>> bool(evidence_of_noise(sure, targets, 0.1) > 0), bool(evidence_of_noise(overlap, targets, 0.1) > 0)
    (True, False)
    """
    _, own, truth = _held_out(scores, targets)
    doubt = min(noise * targets.n_classes / (targets.n_classes - 1), PRIOR.max_doubt)
    with_noise, without = (_log_likelihood(own, truth, _fit_temperature(own, truth, amount)) for amount in (doubt, 0.0))
    return with_noise - without


def _held_out(scores: NDArray, targets: Targets) -> tuple[NDArray, NDArray, NDArray]:
    """Labelled samples that have scores, these scores, and their labels as a matrix."""
    rows = np.flatnonzero(targets.labelled & ~np.isnan(scores).any(axis=1))
    return rows, np.maximum(scores[rows], 0), np.eye(targets.n_classes)[targets.codes[rows]]


def _log_likelihood(scores: NDArray, truth: NDArray, calibration: Calibration) -> float:
    found = calibration(np.maximum(scores, PRIOR.min_score))
    return float((truth * np.log(np.maximum(found, np.finfo(float).tiny))).sum())


def _fit_temperature(scores: NDArray, truth: NDArray, doubt: float) -> Calibration:
    """The calibration of `fit_calibration` for a given ε."""

    def loss(log_temperature: float) -> float:
        found = _log_likelihood(scores, truth, Calibration(float(np.exp(log_temperature)), doubt))
        away = (log_temperature - np.log(PRIOR.temperature)) / PRIOR.log_temperature_std
        return -found + away**2 / 2

    bounds = np.log([PRIOR.min_temperature, PRIOR.max_temperature])
    return Calibration(float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x)), doubt)


def trust_labels(targets: Targets, doubt: LabelDoubt) -> Targets:
    """The targets with as much trust in each label as its odds of being right; labels never held out stay certain.

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0, 1, -1]), 2)
    >>> trust_labels(targets, LabelDoubt(np.zeros((3, 2)), np.array([0.5, np.nan, 0.0]), 0.1)).trust
    array([0.3, inf, inf])
    """
    odds = np.minimum((1 - doubt.wrong) / np.maximum(doubt.wrong, np.finfo(float).tiny), MAX_ODDS)
    known = targets.labelled & ~np.isnan(doubt.wrong) & (doubt.noise > 0)
    trust = np.where(known, STIFFNESS * odds, np.inf)
    return replace(targets, trust=trust if targets.trust is None else np.minimum(trust, targets.trust))
