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
    offsets : ndarray of shape (k,)
        log r.
    repeats : ndarray of shape (k,), or None
        Number of classes that each column stands for; None is 1 for all.
    n_classes : int
        c.
    targets : ndarray of shape (m, k), or (m, 1)
        t, of all columns or of the one that is not zero.
    columns : ndarray of int of shape (m,), or None
        Position of that one among all numbers of an (m, k) array; None for all columns.
    """

    logs: NDArray
    offsets: NDArray
    repeats: NDArray | None
    n_classes: int
    targets: NDArray
    columns: NDArray | None

    @classmethod
    def of(cls, logs: NDArray, targets: NDArray, offsets: NDArray, repeats: NDArray, n_classes: int) -> "LogLoss":
        """From the targets of all columns."""
        columns = None
        if (np.count_nonzero(targets, axis=1) == 1).all():
            columns = targets.argmax(axis=1) + targets.shape[1] * np.arange(len(targets))
            targets = targets.ravel()[columns, None]
        logs = logs - logs.max(axis=1, keepdims=True)
        return cls(logs, offsets, None if (repeats == 1).all() else repeats, n_classes, targets, columns)

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
        rare = bool(self.offsets.any())
        weights = np.exp(scaled + power * self.offsets if rare else scaled)
        if self.repeats is not None:
            weights *= self.repeats
        weights /= weights.sum(axis=1, keepdims=True)
        products = weights * scaled
        mean = products.sum(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", products, scaled)[:, None] - mean**2
        g, kept = self._at_targets(weights if self.repeats is None else weights / self.repeats), 1 - doubt
        a = mean - self._at_targets(scaled)
        p = np.maximum(kept * g + doubt / self.n_classes, TINY)
        ratio = self.targets / p
        ga = g * a
        slopes = [kept * ga, 1 / self.n_classes - g]
        curvatures = {(0, 0): slopes[0] * (a - 1) - kept * g * variance, (0, 1): -ga}
        if rare:
            mean_offset = (weights @ self.offsets)[:, None]
            covariance = (products @ self.offsets)[:, None] - mean * mean_offset
            b = self._at_targets(np.broadcast_to(self.offsets, scaled.shape)) - mean_offset
            slopes.append(kept * g * b)
            curvatures[0, 2] = kept * g * (a * b + covariance)
            curvatures[1, 2] = -g * b
            curvatures[2, 2] = kept * g * (b**2 - (weights @ self.offsets**2)[:, None] + mean_offset**2)
        gradient, hessian = np.zeros(3), np.zeros((3, 3))
        for i, slope in enumerate(slopes):
            relative = slope * ratio
            gradient[i] = -relative.sum()
            relative /= p
            for j in range(i, len(slopes)):
                hessian[i, j] = np.vdot(relative, slopes[j])
        for place, curvature in curvatures.items():
            hessian[place] -= np.vdot(ratio, curvature)
        for i, j in ((1, 0), (2, 0), (2, 1)):
            hessian[i, j] = hessian[j, i]
        return -float(np.vdot(self.targets, np.log(p))), gradient, hessian

    def _at_targets(self, values: NDArray) -> NDArray:
        """The values where the targets may differ from zero."""
        return values if self.columns is None else values.ravel()[self.columns, None]


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
