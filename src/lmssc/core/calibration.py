"""From class scores to probabilities: prior correction of the classes, and calibration of the confidence."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.core.log_loss import LogLoss, merge_floor
from lmssc.data.folds import assign_folds
from lmssc.numerics.newton import minimize_within

N_FOLDS = 5
"""Folds of held-out labels."""
MAX_PRIOR_RATIO = 2.0
"""The prior correction of a class is clipped to [½, 2]: beyond, it may come from an outlier."""


@dataclass(frozen=True)
class CalibrationPrior:
    """Prior and limits of a `Calibration`, with which few held-out labels are not overfitted.

    Attributes
    ----------
    temperature : float
        Most likely temperature T: with few labels scores are less certain than they could be.
    log_temperature_std : float
        Standard deviation of log T.
    min_temperature, max_temperature : float
        Limits of T.
    doubt_penalty : float
        Log-likelihood that a doubt ε = 1 costs: that of one more parameter in Akaike's criterion. More would keep the
        labels of overlapping classes, of which each gains little, from ever being doubted.
    min_labels_for_doubt, doubt_penalty_of_few : float
        With fewer held-out labels, doubt cannot be told from chance, and costs this much instead.
    max_doubt : float
        Limit of ε: with more, rounding would decide which class is the most likely.
    rare_ratio : float
        A class is rare if the largest class has more than this many times its labels.
    rarity_penalty : float
        Log-likelihood that ρ = 1 costs, as a share of the information of one label of the rarest class.
    max_rarity : float
        Limit of ρ.
    min_group_samples : int
        Fewer samples that lack equally many views share the calibration of all samples.
    min_score : float
        Smaller scores count as this, so that a single held-out label does not decide the fit.
    """

    temperature: float = 0.7
    log_temperature_std: float = 0.5
    min_temperature: float = 0.05
    max_temperature: float = 100.0
    doubt_penalty: float = 1.0
    min_labels_for_doubt: float = 30
    doubt_penalty_of_few: float = 5.0
    max_doubt: float = 0.99
    rare_ratio: float = 10.0
    rarity_penalty: float = 0.3
    max_rarity: float = 8.0
    min_group_samples: int = 10
    min_score: float = 1e-4


PRIOR = CalibrationPrior()


def temper(scores: NDArray, temperature: float) -> NDArray:
    """Rows to the power 1/temperature, normalised to sum to 1; zeros stay zeros.

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
    """Prior correction: scores reweighted by class, rows normalised to sum to 1.

    Propagation favours classes with many labels, and classes whose labels are central in the graph. With q_j the share
    of class j among the labels (plus one label of each class) and m_j its share among the scores of all samples, scores
    are multiplied by q_j^(−b)·(q_j/m_j)^min(1, 2b), with q_j/m_j clipped to [½, 2].

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        F, of all samples.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 without a label.
    power : float
        b. With 0 scores stay as they are; with 0.5 the totals of the classes are about proportional to the root of
        their number of labels; with 1 they are about equal.

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
    return reweigh(scores, class_weights(codes, scores.mean(axis=0, dtype=np.float64), power))


def class_weights(codes: NDArray, masses: NDArray, power: float) -> NDArray:
    """What `balance` multiplies the scores of each class by; `masses` is the mean over all samples of its scores."""
    counts = np.bincount(codes[codes >= 0], minlength=len(masses)) + 1
    shares = counts / counts.sum()
    ratios = np.clip(shares / np.maximum(masses, np.finfo(float).tiny), 1 / MAX_PRIOR_RATIO, MAX_PRIOR_RATIO)
    return shares**-power * ratios ** min(1.0, 2 * power)


def reweigh(scores: NDArray, weights: NDArray) -> NDArray:
    """Scores times the weight of their class, rows normalised to sum to 1."""
    weighted = scores * weights.astype(scores.dtype)
    return weighted / weighted.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Calibration:
    """Map from class scores f to probabilities: p = (1 − ε)·g + ε/c with g ∝ f^(1/T)·r^ρ.

    Attributes
    ----------
    temperature : float
        T: below 1 probabilities are more certain than the scores, above 1 less.
    doubt : float
        ε, from 0 to 1: no probability exceeds 1 − ε + ε/c.
    rarity : float
        ρ: how much the scores of rare classes are lowered. Only this can change which class is the most likely.

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

    def __call__(self, scores: NDArray, abundance: NDArray | None = None) -> NDArray:
        """Probabilities of the classes; `abundance` is r, by default 1 for every class."""
        powers = temper(scores, self.temperature)
        if self.rarity and abundance is not None:
            powers = powers * (abundance**self.rarity).astype(scores.dtype)
            powers /= powers.sum(axis=1, keepdims=True)
        kept = scores.dtype.type(1 - self.doubt)
        return kept * powers + (1 - kept) / scores.dtype.type(scores.shape[1])


def abundances(counts: NDArray) -> NDArray:
    """Abundance r of each class, by its number of labels plus one: 1 from a tenth of the largest class on.

    Examples
    --------
    >>> abundances(np.array([999, 99, 49, 0]))
    array([1.  , 1.  , 0.5 , 0.01])
    """
    relative = (counts + 1) / (counts.max() + 1)
    return np.minimum(1.0, PRIOR.rare_ratio * relative)


def fit_calibration(
    scores: NDArray,
    targets: NDArray,
    abundance: NDArray | None = None,
    prior_temperature: float = PRIOR.temperature,
    *,
    penalise: bool = True,
    n_labels: float | None = None,
) -> Calibration:
    """Maximum a posteriori calibration, given samples with known classes.

    log T has a normal prior. Doubt and rarity are penalised, so that both are 0 without evidence.

    Parameters
    ----------
    scores : ndarray of shape (m, c)
        Scores of samples.
    targets : ndarray of shape (m, c)
        Their classes: each row sums to the weight of its sample, all in the column of its class, or divided.
    abundance : ndarray of shape (c,), optional
        r of each class: see `abundances`.
    prior_temperature : float
        Most likely T.
    penalise : bool
        Whether doubt and rarity are penalised.
    n_labels : float, optional
        Number of labels that are held out in all, if these are some of them.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> right, by_chance = (np.array([[p, 1 - p], [1 - p, p]] * 50) for p in (0.9, 0.6))
    >>> round(fit_calibration(sure, right, prior_temperature=1.0).temperature, 1)
    1.0
    >>> fit_calibration(sure, by_chance)(sure).max().round(1)
    np.float64(0.6)
    >>> fit_calibration(np.empty((0, 2)), np.empty((0, 2)))
    Calibration(temperature=0.7, doubt=0.0, rarity=0.0)
    """
    if not len(scores):
        return Calibration(prior_temperature)
    n_classes = scores.shape[1]
    logs = np.log(np.maximum(scores, PRIOR.min_score), dtype=np.float64)
    targets = np.asarray(targets, dtype=np.float64)
    offsets = np.zeros(n_classes) if abundance is None else np.log(abundance)
    few = (targets.sum() if n_labels is None else n_labels) < PRIOR.min_labels_for_doubt
    penalties = (0.0, 0.0)
    if penalise:
        doubt_penalty = PRIOR.doubt_penalty_of_few if few else PRIOR.doubt_penalty
        penalties = (doubt_penalty, -PRIOR.rarity_penalty * float(offsets.min()))
    centre = float(np.log(prior_temperature))
    repeats = np.ones(n_classes)
    if not offsets.any():
        logs, targets, repeats = merge_floor(logs, targets, float(np.log(PRIOR.min_score)))
    offsets = offsets[: len(repeats)]

    derivatives = LogLoss.of(logs, targets, offsets, repeats, n_classes)

    def loss(parameters: NDArray) -> tuple[float, NDArray, NDArray]:
        value, gradient, hessian = derivatives(parameters)
        away = (parameters[0] - centre) / PRIOR.log_temperature_std
        value += away**2 / 2 + float(np.dot(penalties, parameters[1:]))
        gradient += np.array([away / PRIOR.log_temperature_std, *penalties])
        hessian[0, 0] += 1 / PRIOR.log_temperature_std**2
        return value, gradient, hessian

    bounds = np.array(
        [
            (np.log(PRIOR.min_temperature), np.log(PRIOR.max_temperature)),
            (0.0, PRIOR.max_doubt),
            (0.0, PRIOR.max_rarity if offsets.any() else 0.0),
        ]
    )
    # From little and from much doubt: there may be a local optimum at each.
    tries = [minimize_within(loss, np.array([centre, doubt, 0.0]), bounds) for doubt in (0.05, 0.5)]
    found = min(tries, key=lambda result: result[1])[0]
    return Calibration(float(np.exp(found[0])), float(found[1]), float(found[2]))


@dataclass(frozen=True)
class GroupedCalibration:
    """One calibration for each number of missing views that enough samples have, and one for all others.

    Predictions for samples that lack views are less accurate; one calibration for all samples would be overconfident
    there and underconfident elsewhere.

    Examples
    --------
    >>> calibration = GroupedCalibration(Calibration(), {1: Calibration(doubt=1.0)})
    >>> calibration(np.array([[0.9, 0.1], [0.9, 0.1]]), n_missing=np.array([0, 1]))
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    overall: Calibration
    groups: dict[int, Calibration]

    def __call__(self, scores: NDArray, n_missing: NDArray, abundance: NDArray | None = None) -> NDArray:
        """Probabilities of the classes; `n_missing` is the number of views that each sample lacks."""
        result = self.overall(scores, abundance)
        for number, calibration in self.groups.items():
            rows = n_missing == number
            result[rows] = calibration(scores[rows], abundance)
        return result


def fit_by_missing(
    scores: NDArray,
    targets: NDArray,
    n_missing: NDArray,
    abundance: NDArray | None = None,
    prior: GroupedCalibration | None = None,
    *,
    penalise: bool = True,
) -> GroupedCalibration:
    """`fit_calibration` for all samples, and for at least 10 that lack equally many views with the overall T as prior.

    With `prior`, a calibration of earlier scores of the same samples, its T are the prior: those of samples that lack
    views differ from the overall T as much as they did there.

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]] * 50)
    >>> found = fit_by_missing(sure, np.full((100, 2), 0.5), np.repeat([0, 1], [95, 5]))
    >>> list(found.groups)
    [0]
    """
    before = GroupedCalibration(Calibration(PRIOR.temperature), {}) if prior is None else prior
    overall = fit_calibration(scores, targets, abundance, before.overall.temperature, penalise=penalise)
    change = overall.temperature / before.overall.temperature
    found = {}
    numbers, counts = np.unique(n_missing, return_counts=True)
    if len(numbers) > 1:
        for number in numbers[counts >= PRIOR.min_group_samples].tolist():
            own = n_missing == number
            found[number] = fit_calibration(
                scores[own],
                targets[own],
                abundance,
                change * before.groups.get(number, before.overall).temperature,
                penalise=penalise,
                n_labels=float(targets.sum()),
            )
    return GroupedCalibration(overall, found)


def calibration_sample(codes: NDArray, most: int) -> NDArray:
    """The first `most` samples, and the first two labelled ones of each class, or the only one.

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


def held_out_folds(codes: NDArray) -> list[NDArray]:
    """Labelled samples that are held out together, fold by fold.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of each sample, −1 without a label, in random order.

    Returns
    -------
    list of ndarray of int
        The only labelled sample of a class is never held out.

    Examples
    --------
    >>> held_out_folds(np.array([0, 0, 1, 1, 2, -1]))
    [array([0, 2]), array([1, 3])]
    """
    fold = assign_folds(codes, N_FOLDS, rotate=True)
    rows = [np.flatnonzero(fold == number) for number in range(N_FOLDS)]
    return [held for held in rows if len(held)]
