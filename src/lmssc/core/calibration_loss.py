"""What the calibration of the confidence minimises: penalised log-likelihood of held-out labels, and its gradient."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


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
    class_doubt_penalty : float
        Log-likelihood that a doubt δ = 1 of a class costs, if it has few labels beside the largest class. Classes that
        have as many share the doubt ε, which is fitted to them already: see `doubt_cost`.
    max_class_doubt : float
        Limit of δ.
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
    class_doubt_penalty: float = 0.5
    max_class_doubt: float = 0.95
    min_group_samples: int = 10
    min_score: float = 1e-4


PRIOR = CalibrationPrior()


@dataclass(frozen=True)
class CalibrationLoss:
    """What `fit_calibration` minimises, and its gradient, as a function of ln T, ε, ρ and δ of some classes.

    Attributes
    ----------
    logs, targets : ndarray of shape (m, w)
        Logarithms of the scores, and the classes.
    repeats : ndarray of shape (w,)
        Number of classes that each column stands for: see `merge_floor`.
    offsets : ndarray of shape (w,)
        ln r of each class.
    n_classes : int
        c.
    centre : float
        Most likely ln T.
    penalties : tuple of float
        Of ε = 1 and of ρ = 1.
    slots : ndarray of int of shape (m,), or None
        Which δ holds for each sample; those that have none are beyond the last.
    costs : ndarray
        Penalties of δ = 1.
    """

    logs: NDArray
    targets: NDArray
    repeats: NDArray
    offsets: NDArray
    n_classes: int
    centre: float
    penalties: tuple[float, float]
    slots: NDArray | None = None
    costs: NDArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(
        cls, scores: NDArray, targets: NDArray, offsets: NDArray, centre: float, penalties: tuple[float, float]
    ) -> "CalibrationLoss":
        """The loss of scores and their classes."""
        n_classes = scores.shape[1]
        logs = np.log(np.maximum(scores, PRIOR.min_score), dtype=np.float64)
        targets = np.asarray(targets, dtype=np.float64)
        logs, targets, repeats = (logs, targets, np.ones(n_classes)) if offsets.any() else merge_floor(logs, targets)
        return cls(logs, targets, repeats, offsets[: len(repeats)], n_classes, centre, penalties)

    def __call__(self, parameters: NDArray) -> tuple[float, NDArray]:
        """Loss and gradient."""
        (log_temperature, doubt, power), own = parameters[:3], parameters[3:]
        doubt_penalty, rarity_penalty = self.penalties
        # 1 − δ of each sample
        rest = np.ones((1, 1)) if self.slots is None else 1 - np.append(own, 0.0)[self.slots, None]
        total = 1 - (1 - doubt) * rest
        scaled = self.logs / np.exp(log_temperature)
        exponents = scaled + power * self.offsets
        powers = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        powers /= (powers * self.repeats).sum(axis=1, keepdims=True)
        probabilities = np.maximum((1 - total) * powers + total / self.n_classes, np.finfo(float).tiny)
        away = (log_temperature - self.centre) / PRIOR.log_temperature_std
        value = -(self.targets * np.log(probabilities)).sum() + away**2 / 2 + doubt_penalty * doubt
        value += rarity_penalty * power + self.costs @ own
        slopes = -self.targets / probabilities
        inner = (1 - total) * powers * slopes
        inner -= powers * inner.sum(axis=1, keepdims=True)
        doubting = (slopes * (1 / self.n_classes - powers)).sum(axis=1)
        gradient = [
            away / PRIOR.log_temperature_std - (inner * self.repeats * scaled).sum(),
            doubt_penalty + (rest[:, 0] * doubting).sum(),
            rarity_penalty + (inner * self.offsets).sum(),
        ]
        if self.slots is not None:
            by_class = np.bincount(self.slots, (1 - doubt) * doubting, len(own) + 1)[:-1]
            gradient.extend(self.costs + by_class)
        return float(value), np.array(gradient, dtype=np.float64)


def merge_floor(logs: NDArray, targets: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Logarithms and targets with most classes that have neither score nor target as one column, and its multiplicity.

    With many classes nearly all of them have the smallest score in each row, and all of these the same probability.

    Examples
    --------
    >>> low = np.log(PRIOR.min_score)
    >>> logs, targets, repeats = merge_floor(np.array([[-1.0] + [low] * 9]), np.array([[0.0, 1.0] + [0.0] * 8]))
    >>> logs.round(1), targets, repeats
    (array([[-1. , -9.2, -9.2]]), array([[0., 1., 0.]]), array([1., 1., 8.]))
    """
    floor = np.log(PRIOR.min_score)
    matters = (logs > floor) | (targets > 0)
    width, n_classes = int(matters.sum(axis=1).max()), logs.shape[1]
    if n_classes < 2 * (width + 1):
        return logs, targets, np.ones(n_classes)
    order = np.argsort(~matters, axis=1, kind="stable")[:, :width]
    logs, targets = (np.take_along_axis(part, order, 1) for part in (logs, targets))
    rest = np.ones((len(logs), 1))
    repeats = np.append(np.ones(width), n_classes - width)
    return np.hstack([logs, floor * rest]), np.hstack([targets, 0 * rest]), repeats
