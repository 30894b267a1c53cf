"""From class scores to probabilities: prior correction of the classes, and calibration of the confidence."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lmssc.core.calibration_loss import PRIOR, ClassDoubtLoss
from lmssc.core.log_loss import LogLoss, merge_floor
from lmssc.data.folds import assign_folds
from lmssc.numerics.newton import minimize_within

N_FOLDS = 5
"""Folds of held-out labels."""


LOG_TEMPERATURES = (float(np.log(PRIOR.min_temperature)), float(np.log(PRIOR.max_temperature)))
"""Limits of ln T."""


def temper(scores: NDArray, temperature: float) -> NDArray:
    """Rows to the power 1/temperature, normalised to sum to 1; zeros stay zeros.

    Examples
    --------
    >>> temper(np.array([[0.75, 0.25], [1.0, 0.0]]), temperature=0.5)
    array([[0.9, 0.1],
           [1. , 0. ]])
    """
    powers = np.maximum(scores, 0)
    powers /= powers.max(axis=1, keepdims=True)
    # In place, and not by `**`, which takes ten times as long where the result is next to zero.
    with np.errstate(divide="ignore"):
        np.log(powers, out=powers)
    powers *= powers.dtype.type(1 / temperature)
    np.exp(powers, out=powers)
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


@dataclass(frozen=True)
class Calibration:
    """Map from class scores f to probabilities: p = (1 − e)·g + e/c with g ∝ f^(1/T)·r^ρ and 1 − e = (1 − ε)·(1 − δ).

    Attributes
    ----------
    temperature : float
        T: below 1 probabilities are more certain than the scores, above 1 less.
    doubt : float
        ε, from 0 to 1: no probability exceeds 1 − ε + ε/c.
    rarity : float
        ρ: how much the scores of rare classes are lowered. Only this can change which class is the most likely.
    class_doubt : ndarray of shape (c,), or None
        δ of each class, for samples whose most likely class it is; None is 0 for all.

    Examples
    --------
    >>> calibration = Calibration(temperature=0.5, doubt=0.2)
    >>> calibration(np.array([[0.75, 0.25], [1.0, 0.0]]))
    array([[0.82, 0.18],
           [0.9 , 0.1 ]])
    >>> Calibration(rarity=1.0)(np.array([[0.6, 0.4]]), np.array([1.0, 1 / 6]))
    array([[0.75, 0.25]])
    >>> Calibration(class_doubt=np.array([0.0, 0.5]))(np.array([[0.9, 0.1], [0.1, 0.9]]))
    array([[0.9, 0.1],
           [0.3, 0.7]])
    """

    temperature: float = 1.0
    doubt: float = 0.0
    rarity: float = 0.0
    class_doubt: NDArray | None = None

    def __call__(self, scores: NDArray, abundance: NDArray | None = None) -> NDArray:
        """Probabilities of the classes; `abundance` as of `abundances`, by default 1 for every class."""
        powers = temper(scores, self.temperature)
        if self.rarity and abundance is not None:
            powers *= (rareness(abundance) ** self.rarity).astype(scores.dtype)
            powers /= powers.sum(axis=1, keepdims=True)
        kept = scores.dtype.type(1 - self.doubt)
        if self.class_doubt is not None:
            kept = kept * (1 - self.class_doubt).astype(scores.dtype)[powers.argmax(axis=1), None]
        powers *= kept
        powers += (1 - kept) / scores.dtype.type(scores.shape[1])
        return powers


def abundances(counts: NDArray) -> NDArray:
    """Labels of each class, plus one, relative to those of the largest class.

    Examples
    --------
    >>> abundances(np.array([999, 99, 49, 0]))
    array([1.   , 0.1  , 0.05 , 0.001])
    """
    return (counts + 1) / (counts.max() + 1)


def rareness(abundance: NDArray) -> NDArray:
    """The r of each class: 1 from a third of the labels of the largest class on, less below.

    Examples
    --------
    >>> rareness(np.array([1.0, 0.4, 0.1]))
    array([1. , 1. , 0.3])
    """
    return np.minimum(1.0, PRIOR.rare_ratio * abundance)


def doubt_cost(abundance: NDArray) -> NDArray:
    """Log-likelihood that δ = 1 costs each class; infinite for the largest.

    Examples
    --------
    >>> doubt_cost(np.array([1.0, 0.5, 0.0]))
    array([inf, 1. , 0.5])
    """
    with np.errstate(divide="ignore"):
        return PRIOR.class_doubt_penalty / (1 - abundance)


def fit_calibration(
    scores: NDArray,
    targets: NDArray,
    abundance: NDArray | None = None,
    prior_temperature: float = PRIOR.temperature,
    *,
    penalise: bool = True,
    n_labels: float | None = None,
    costs: NDArray | None = None,
    n_classes: int | None = None,
    shared: Calibration | None = None,
) -> Calibration:
    """Maximum a posteriori calibration, given samples with known classes.

    log T has a normal prior. Rarity, and doubt of few labels, are penalised, so that both are 0 without evidence.

    Parameters
    ----------
    scores : ndarray of shape (m, c)
        Scores of samples.
    targets : ndarray of shape (m, c)
        Their classes: each row sums to the weight of its sample, all in the column of its class, or divided.
    abundance : ndarray of shape (c,), optional
        Labels of each class relative to the largest: see `abundances`.
    prior_temperature : float
        Most likely T.
    penalise : bool
        Whether rarity, and doubt of few labels, are penalised.
    n_labels : float, optional
        Number of labels that are held out in all, if these are some of them.
    costs : ndarray of shape (c,), optional
        Log-likelihood that a doubt δ = 1 of its own costs each class, ∞ for none; by default no class has one.
    n_classes : int, optional
        Number of classes, if the last column stands for all those that have neither scores nor targets.
    shared : Calibration, optional
        The result without `costs`, if it is known.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> right, by_chance = (np.array([[p, 1 - p], [1 - p, p]] * 50) for p in (0.9, 0.6))
    >>> round(fit_calibration(sure, right, prior_temperature=1.0).temperature, 1)
    1.0
    >>> round(float(fit_calibration(sure, by_chance)(sure).max()), 1)
    0.6
    >>> fit_calibration(np.empty((0, 2)), np.empty((0, 2)))
    Calibration(temperature=0.7, doubt=0.0, rarity=0.0, class_doubt=None)
    """
    if not len(scores):
        return Calibration(prior_temperature)
    repeats = np.ones(scores.shape[1])
    if n_classes is None:
        n_classes = scores.shape[1]
    repeats[-1] += n_classes - len(repeats)
    logs = np.log(np.maximum(scores, PRIOR.min_score), dtype=np.float64)
    targets = np.asarray(targets, dtype=np.float64)
    offsets = np.zeros(len(repeats)) if abundance is None else np.log(rareness(abundance))
    few = (targets.sum() if n_labels is None else n_labels) < PRIOR.min_labels_for_doubt
    penalties = (0.0, 0.0)
    if penalise:
        doubt_penalty = PRIOR.doubt_penalty_of_few if few else 0.0
        penalties = (doubt_penalty, -PRIOR.rarity_penalty * float(offsets.min()))
    centre = float(np.log(prior_temperature))
    if not offsets.any() and n_classes == len(repeats):
        logs, targets, repeats = merge_floor(logs, targets, float(np.log(PRIOR.min_score)))
    offsets = offsets[: len(repeats)]

    if shared is None:
        shared = _share_doubt(LogLoss.of(logs, targets, offsets, repeats, n_classes), centre, penalties)
    if costs is None:
        return shared
    doubting = ClassDoubtLoss(logs, targets, shared.rarity * offsets, repeats, n_classes, centre, penalties[0])
    return _doubt_classes(shared, doubting, shared(scores, abundance).argmax(axis=1), costs)


def _share_doubt(derivatives: LogLoss, centre: float, penalties: tuple[float, float]) -> Calibration:
    """The calibration with the same doubt for all classes; `penalties` are those of ε = 1 and ρ = 1."""

    def loss(parameters: NDArray) -> tuple[float, NDArray, NDArray]:
        value, gradient, hessian = derivatives(parameters)
        away = (parameters[0] - centre) / PRIOR.log_temperature_std
        value += away**2 / 2 + penalties[0] * parameters[1] + penalties[1] * parameters[2]
        gradient[0] += away / PRIOR.log_temperature_std
        gradient[1:] += penalties
        hessian[0, 0] += 1 / PRIOR.log_temperature_std**2
        return value, gradient, hessian

    max_rarity = 0.0 if derivatives.offsets is None else PRIOR.max_rarity
    bounds = np.array([LOG_TEMPERATURES, (0.0, PRIOR.max_doubt), (0.0, max_rarity)])
    # From little and from much doubt: there may be a local optimum at each.
    tries = [minimize_within(loss, np.array([centre, doubt, 0.0]), bounds) for doubt in (0.05, 0.5)]
    found = min(tries, key=lambda result: result[1])[0]
    return Calibration(float(np.exp(found[0])), float(found[1]), float(found[2]))


def _doubt_classes(shared: Calibration, loss: ClassDoubtLoss, answers: NDArray, costs: NDArray) -> Calibration:
    """The calibration with doubts of some classes, and T and ε fitted again; the same if no class gains by it.

    `answers` are the most likely classes of the samples of the loss. ρ is fixed, so that they stay the same.
    """
    can_doubt = np.isfinite(costs[answers])
    doubted = np.unique(answers[can_doubt])
    slots = np.where(can_doubt, np.searchsorted(doubted, answers), len(doubted))
    loss = replace(loss, slots=slots, costs=costs[doubted])
    start = np.array([np.log(shared.temperature), shared.doubt, *np.zeros(len(doubted))])
    if not (loss(start)[1][2:] < 0).any():
        return shared
    bounds = [LOG_TEMPERATURES, (0.0, PRIOR.max_doubt), *[(0.0, PRIOR.max_class_doubt)] * len(doubted)]
    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    class_doubt = np.zeros(len(costs))
    class_doubt[doubted] = found[2:]
    return Calibration(float(np.exp(found[0])), float(found[1]), shared.rarity, class_doubt)


@dataclass(frozen=True)
class GroupedCalibration:
    """One calibration for each kind of samples of which there are enough, and one for all others; see `kinds_of`.

    Predictions for samples that lack views or links are less accurate; one calibration for all samples would be
    overconfident there and underconfident elsewhere.

    Examples
    --------
    >>> calibration = GroupedCalibration(Calibration(), {1: Calibration(doubt=1.0)})
    >>> calibration(np.array([[0.9, 0.1], [0.9, 0.1]]), kinds=np.array([0, 1]))
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    overall: Calibration
    groups: dict[int, Calibration]

    def __call__(self, scores: NDArray, kinds: NDArray, abundance: NDArray | None = None) -> NDArray:
        """Probabilities of the classes; `kinds` says what each sample lacks."""
        result = self.overall(scores, abundance)
        for kind, calibration in self.groups.items():
            rows = kinds == kind
            result[rows] = calibration(scores[rows], abundance)
        return result


def fit_by_kind(
    scores: NDArray,
    targets: NDArray,
    kinds: NDArray,
    abundance: NDArray | None = None,
    prior: GroupedCalibration | None = None,
    *,
    penalise: bool = True,
    shared: Calibration | None = None,
) -> GroupedCalibration:
    """`fit_calibration` for all samples, and for each kind with at least 10 of them, with the overall T as prior.

    With `prior`, a calibration of earlier scores of the same samples, its T are the prior: those of samples that lack
    views differ from the overall T as much as they did there. Without penalties, classes have doubts of their own only
    if they had them there. `shared` is as for `fit_calibration`, for all samples.

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> found = fit_by_kind(sure, np.full((100, 2), 0.5), np.repeat([0, 1], [95, 5]))
    >>> list(found.groups)
    [0]
    """
    before = GroupedCalibration(Calibration(PRIOR.temperature), {}) if prior is None else prior

    def costs(before: Calibration) -> NDArray | None:
        if penalise:
            return None if abundance is None else doubt_cost(abundance)
        return None if before.class_doubt is None else np.where(before.class_doubt > 0, 0.0, np.inf)

    temperature = before.overall.temperature
    overall = fit_calibration(
        scores, targets, abundance, temperature, penalise=penalise, costs=costs(before.overall), shared=shared
    )
    change = overall.temperature / before.overall.temperature
    found = {}
    present, counts = np.unique(kinds, return_counts=True)
    if len(present) > 1:
        for kind in present[counts >= PRIOR.min_group_samples].tolist():
            own = kinds == kind
            usual = before.groups.get(kind, before.overall)
            found[kind] = fit_calibration(
                scores[own],
                targets[own],
                abundance,
                change * usual.temperature,
                penalise=penalise,
                n_labels=float(targets.sum()),
                costs=costs(usual),
            )
    return GroupedCalibration(overall, found)


def calibration_sample(codes: NDArray, most: int, min_labels: int) -> NDArray:
    """The first `most` samples, and of the labelled ones the first `min_labels` and the first two of each class.

    A share of few labels would be fewer still, and they would judge a fit that has many more.

    Examples
    --------
    >>> calibration_sample(np.array([0, -1, 0, 1, 1, 1, -1]), most=4, min_labels=0)
    array([0, 1, 2, 3, 4])
    >>> calibration_sample(np.array([0, -1, 0, 1, 1, 1, -1]), most=4, min_labels=5)
    array([0, 1, 2, 3, 4, 5])
    """
    chosen = np.arange(min(most, len(codes)))
    if len(codes) <= most:
        return chosen
    labelled = np.flatnonzero(codes >= 0)
    by_class = labelled[np.argsort(codes[labelled], kind="stable")]
    starts = np.searchsorted(codes[by_class], codes[by_class])
    first_two = by_class[np.arange(len(by_class)) - starts < 2]
    return np.unique(np.concatenate([chosen, labelled[:min_labels], first_two]))


def held_out_folds(codes: NDArray, draw: NDArray) -> list[NDArray]:
    """Labelled samples that are held out together, fold by fold.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of each sample, −1 without a label.
    draw : ndarray of shape (n,)
        Random number of each sample; the folds are dealt in ascending order.

    Returns
    -------
    list of ndarray of int
        The only labelled sample of a class is never held out.

    Examples
    --------
    >>> held_out_folds(np.array([0, 0, 1, 1, 2, -1]), np.arange(6))
    [array([0, 2]), array([1, 3])]
    """
    fold = assign_folds(codes, N_FOLDS, draw, rotate=True)
    rows = [np.flatnonzero(fold == number) for number in range(N_FOLDS)]
    return [held for held in rows if len(held)]
