"""Numbering of the samples by where they are, so that what is near in the graph is near in memory."""

import numpy as np
from numpy.typing import NDArray

# From so many samples on it pays: fewer fit into the cache.
FEWEST_SAMPLES = 10_000
# Samples that are not told apart any more (a block of the coarse level), and samples that a direction is found from.
SMALLEST_PART = 300
SAMPLED = 2000


def order_by_place(points: NDArray) -> NDArray:
    """An order in which samples that are near each other stand near each other.

    The samples are halved across the direction in which they spread most, and each half again.

    Parameters
    ----------
    points : ndarray of shape (n, r)
        Where the samples are.

    Returns
    -------
    ndarray of int of shape (n,)
        Samples in their new order.

    Examples
    --------
    >>> points = np.array([[0.0], [9.0], [0.1], [9.1]] * 200)
    >>> order = order_by_place(points)
    >>> int(np.count_nonzero(np.abs(np.diff(points[order, 0])) > 5))
    1
    """
    order = np.arange(len(points))
    parts = [(0, len(points))]
    while parts:
        first, end = parts.pop()
        if end - first <= SMALLEST_PART:
            continue
        middle = (first + end) // 2
        part = order[first:end]
        along = points[part] @ _widest_direction(points[part[:: max(1, len(part) // SAMPLED)]])
        order[first:end] = part[np.argpartition(along, middle - first)]
        parts += [(first, middle), (middle, end)]
    return order


def _widest_direction(points: NDArray) -> NDArray:
    """The first principal direction."""
    centred = points - points.mean(axis=0)
    return np.linalg.eigh(centred.T @ centred)[1][:, -1]
