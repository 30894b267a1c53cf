"""Prior of the calibration of the confidence, and the loss of doubts that classes have of their own."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CalibrationPrior:
    """Prior and limits of a `Calibration`, with which few held-out labels are not overfitted."""

    temperature: float = 0.7
    """Most likely temperature T: with few labels scores are less certain than they could be."""
    log_temperature_std: float = 0.5
    """Standard deviation of log T."""
    min_temperature: float = 0.05
    max_temperature: float = 100.0
    """Limits of T."""
    min_labels_for_doubt: float = 30
    doubt_penalty_of_few: float = 5.0
    """With fewer held-out labels, doubt cannot be told from chance, and ε = 1 costs this much log-likelihood. With more
    it is free: a cost would keep labels of overlapping classes, which gain little each, from being doubted."""
    max_doubt: float = 0.99
    """Limit of ε: with more, rounding would decide which class is the most likely."""
    rare_ratio: float = 3.0
    """A class is rare if the largest class has more than this many times its labels. `balance` then answers it where it
    is much less than 50 % likely, which no doubt can express: with two classes an answer has at least 50 %."""
    max_rarity: float = 8.0
    rarity_penalty: float = 0.3
    """Limit of ρ, and log-likelihood that ρ = 1 costs, as a share of the information of a label of the rarest class."""
    max_class_doubt: float = 0.95
    class_doubt_penalty: float = 0.5
    """Limit of δ, and log-likelihood that a doubt δ = 1 of a class costs, if it has few labels beside the largest
    class. Classes that have as many share the doubt ε, which is fitted to them already: see `doubt_cost`."""
    min_group_samples: int = 10
    """Fewer samples of one kind, which lack equally many views and links, share the calibration of all samples."""
    min_score: float = 1e-4
    """Smaller scores count as this, so that a single held-out label does not decide the fit."""


PRIOR = CalibrationPrior()


@dataclass(frozen=True)
class ClassDoubtLoss:
    """Penalised loss of a calibration whose ρ is known, and its gradient, by ln T, ε and δ of some classes.

    Attributes
    ----------
    logs, targets : ndarray of shape (m, w)
        Logarithms of the scores, and the classes.
    offsets : ndarray of shape (w,)
        ρ·ln r of each class.
    repeats : ndarray of shape (w,)
        Number of classes that each column stands for: see `merge_floor`.
    n_classes : int
        c.
    centre : float
        Most likely ln T.
    doubt_penalty : float
        Of ε = 1.
    slots : ndarray of int of shape (m,)
        Which δ holds for each sample; for those that have none, the number of δ.
    costs : ndarray
        Penalties of δ = 1.
    """

    logs: NDArray
    targets: NDArray
    offsets: NDArray
    repeats: NDArray
    n_classes: int
    centre: float
    doubt_penalty: float
    slots: NDArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    costs: NDArray = field(default_factory=lambda: np.empty(0))

    def __call__(self, parameters: NDArray) -> tuple[float, NDArray]:
        """Loss and gradient at (ln T, ε, δ, ...)."""
        (log_temperature, doubt), own = parameters[:2], parameters[2:]
        rest = 1 - np.append(own, 0.0)[self.slots]
        kept = ((1 - doubt) * rest)[:, None]
        scaled = self.logs / np.exp(log_temperature)
        exponents = scaled + self.offsets
        powers = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        powers /= (powers @ self.repeats)[:, None]
        probabilities = np.maximum(kept * powers + (1 - kept) / self.n_classes, np.finfo(float).tiny)
        away = (log_temperature - self.centre) / PRIOR.log_temperature_std
        value = (
            away**2 / 2 + self.doubt_penalty * doubt + self.costs @ own - np.vdot(self.targets, np.log(probabilities))
        )
        slopes = -self.targets / probabilities
        inner = kept * powers * slopes
        inner -= powers * inner.sum(axis=1, keepdims=True)
        doubting = (slopes * (1 / self.n_classes - powers)).sum(axis=1)
        by_temperature = away / PRIOR.log_temperature_std - ((inner * scaled) @ self.repeats).sum()
        by_class = np.bincount(self.slots, (1 - doubt) * doubting, len(own) + 1)[:-1]
        return float(value), np.array([by_temperature, self.doubt_penalty + rest @ doubting, *(self.costs + by_class)])
