"""The loss that a calibration minimises, with its first and second derivatives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class LogLoss:
    """−Σ t_ij·ln p_ij of the calibrated probabilities p = (1 − ε)·g + ε/c with g = softmax(log f / T + ρ·log r).

    The derivatives of g by log T and ρ are g·a and g·b, with a and b the derivatives of the exponents less their means
    under g. They are only needed where t is not zero: with one class for each sample, at one number in each row.

    Attributes
    ----------
    logs : ndarray of shape (m, k)
        log f, less the largest of its row.
    offsets : ndarray of shape (k,), or None
        log r; None is 0 for all.
    repeats : ndarray of shape (k,)
        Number of classes that each column stands for.
    n_classes : int
        c.
    targets : ndarray of shape (t,)
        t where it is not zero.
    places : ndarray of int of shape (t,)
        Position of these among all numbers of an (m, k) array.
    rows : ndarray of int of shape (t,), or slice
        Row of each.
    """

    logs: NDArray
    offsets: NDArray | None
    repeats: NDArray
    n_classes: int
    targets: NDArray
    places: NDArray
    rows: NDArray | slice

    @classmethod
    def of(cls, logs: NDArray, targets: NDArray, offsets: NDArray, repeats: NDArray, n_classes: int) -> "LogLoss":
        """From the targets of all columns."""
        places = np.flatnonzero(targets)
        of_place = places // targets.shape[1]
        one_each = np.array_equal(of_place, np.arange(len(targets)))
        rows = slice(None) if one_each else of_place
        logs = logs - logs.max(axis=1, keepdims=True)
        known = targets.ravel()[places]
        return cls(logs, offsets if offsets.any() else None, repeats, n_classes, known, places, rows)

    def __call__(self, parameters: NDArray) -> tuple[float, NDArray, NDArray]:
        """The loss at (log T, ε, ρ), its gradient and its Hessian matrix.

        Examples
        --------
        >>> loss = LogLoss.of(np.log([[0.9, 0.1]]), np.array([[1.0, 0.0]]), np.zeros(2), np.ones(2), 2)
        >>> round(loss(np.array([0.0, 0.0, 0.0]))[0], 4)  # −ln 0.9
        0.1054
        """
        log_temperature, doubt, power = parameters.tolist()
        scaled = self.logs * np.exp(-log_temperature)
        weights = np.exp(scaled if self.offsets is None else scaled + power * self.offsets)
        total = weights @ self.repeats
        products = weights * scaled
        mean = (products @ self.repeats) / total
        variance = ((products * scaled) @ self.repeats) / total - mean**2
        g, kept = weights.ravel()[self.places] / total[self.rows], 1 - doubt
        a = mean[self.rows] - scaled.ravel()[self.places]
        p = np.maximum(kept * g + doubt / self.n_classes, TINY)
        ratio, ga, kept_g = self.targets / p, g * a, kept * g
        size = 2 if self.offsets is None else 3
        slopes = np.empty((size, len(g)))
        np.multiply(kept, ga, out=slopes[0])
        np.subtract(1 / self.n_classes, g, out=slopes[1])
        curvatures = {(0, 0): slopes[0] * (a - 1) - kept_g * variance[self.rows], (0, 1): -ga}
        if self.offsets is not None:
            own = self.repeats * self.offsets
            mean_offset = (weights @ own) / total
            covariance = (products @ own) / total - mean * mean_offset
            spread = (weights @ (own * self.offsets)) / total - mean_offset**2
            b = self.offsets[self.places % len(self.offsets)] - mean_offset[self.rows]
            np.multiply(kept_g, b, out=slopes[2])
            curvatures[0, 2] = kept_g * (a * b + covariance[self.rows])
            curvatures[1, 2] = -g * b
            curvatures[2, 2] = kept_g * (b**2 - spread[self.rows])
        gradient, hessian = np.zeros(3), np.zeros((3, 3))
        gradient[:size] = -(slopes @ ratio)
        hessian[:size, :size] = (slopes * (ratio / p)) @ slopes.T
        for (i, j), curvature in curvatures.items():
            hessian[i, j] -= ratio @ curvature
            hessian[j, i] = hessian[i, j]
        return -float(self.targets @ np.log(p)), gradient, hessian


def merge_floor(logs: NDArray, targets: NDArray, floor: float) -> tuple[NDArray, NDArray, NDArray]:
    """Logarithms and targets with most classes that have neither score nor target as one column, and its multiplicity.

    With many classes nearly all of them have the smallest score in each row, and all of these the same probability.
    `floor` is the logarithm of the smallest score.

    Examples
    --------
    >>> logs, targets, repeats = merge_floor(np.array([[-1.0] + [-9] * 9]), np.array([[0.0, 1.0] + [0.0] * 8]), -9.0)
    >>> logs, targets, repeats
    (array([[-1., -9., -9.]]), array([[0., 1., 0.]]), array([1., 1., 8.]))
    """
    matters = (logs > floor) | (targets > 0)
    width, n_classes = int(matters.sum(axis=1).max()), logs.shape[1]
    if n_classes < 2 * (width + 1):
        return logs, targets, np.ones(n_classes)
    order = np.argsort(~matters, axis=1, kind="stable")[:, :width]
    logs, targets = (np.take_along_axis(part, order, 1) for part in (logs, targets))
    rest = np.ones((len(logs), 1))
    repeats = np.append(np.ones(width), n_classes - width)
    return np.hstack([logs, floor * rest]), np.hstack([targets, 0 * rest]), repeats
