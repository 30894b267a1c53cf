"""Newton's method for a few variables within bounds."""

from collections.abc import Callable
from math import hypot

import numpy as np
from numpy.typing import NDArray

# A step is shortened at most so often, by half each time; it must gain this share of what the slope promises.
MAX_HALVINGS, MIN_GAIN = 40, 1e-4
# At most so many steps; one that promises to gain less than this share of the value is the last.
MAX_STEPS, TOLERANCE = 100, 1e-9
# Curvatures below this share of the largest count as this much.
MIN_CURVATURE = 1e-8
TINY = float(np.finfo(float).tiny)


def minimize_within(
    function: Callable[[NDArray], tuple[float, NDArray, NDArray]],
    start: NDArray,
    bounds: NDArray,
) -> tuple[NDArray, float]:
    """A local minimum of a smooth function of a few variables, each within its bounds.

    Newton steps along the variables that are not held at a bound, with negative curvatures turned round, shortened
    until the function falls.

    Parameters
    ----------
    function : callable
        x ↦ value, gradient and Hessian matrix.
    start : ndarray of shape (d,)
        Where to begin, within the bounds.
    bounds : ndarray of shape (d, 2)
        The smallest and the largest value of each variable.

    Returns
    -------
    x : ndarray of shape (d,)
    value : float

    Examples
    --------
    >>> parabola = lambda x: (float(((x - 2) ** 2).sum()), 2 * (x - 2), 2 * np.eye(2))
    >>> minimize_within(parabola, np.zeros(2), np.array([[0.0, 1.0], [0.0, 5.0]]))
    (array([1., 2.]), 1.0)
    """
    low, high = bounds.T
    x = np.minimum(np.maximum(start, low), high)
    value, gradient, hessian = function(x)
    for _ in range(MAX_STEPS):
        free = np.flatnonzero(((x > low) | (gradient < 0)) & ((x < high) | (gradient > 0)))
        if not len(free):
            break
        step = np.zeros_like(x)
        step[free] = _newton_step(hessian[free[:, None], free], gradient[free])
        if -float(gradient @ step) <= TOLERANCE * max(1.0, abs(value)):
            return np.minimum(np.maximum(x + step, low), high), value
        for _ in range(MAX_HALVINGS):
            trial = np.minimum(np.maximum(x + step, low), high)  # `clip` takes several times as long
            found = function(trial)
            if found[0] <= value + MIN_GAIN * float(gradient @ (trial - x)):
                break
            step /= 2
        else:  # rounding
            break
        x, (value, gradient, hessian) = trial, found
    return x, value


def _newton_step(hessian: NDArray, gradient: NDArray) -> NDArray:
    """−|H|⁻¹·g, where |H| has the absolute curvatures of H, none of them tiny."""
    if len(gradient) == 2:  # most often; LAPACK takes ten times as long
        (p, q), (_, r) = hessian.tolist()
        half, apart = (p + r) / 2, hypot((p - r) / 2, q)
        low, high = half - apart, half + apart
        if low > MIN_CURVATURE * high:
            g, h = gradient.tolist()
            return np.array([q * h - r * g, q * g - p * h]) / (low * high)
    curvatures, axes = np.linalg.eigh(hessian)
    curvatures = np.abs(curvatures)
    curvatures = np.maximum(curvatures, MIN_CURVATURE * curvatures.max() + TINY)
    return -axes @ ((axes.T @ gradient) / curvatures)
