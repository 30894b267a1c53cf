"""Numbering of the samples by where they are, so that what is near in the graph is near in memory."""

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.parallel import threaded_map

# Samples that are not told apart any more (a block of the coarse level), and samples that a direction is found from.
SMALLEST_PART = 300
SAMPLED = 2000


def spatial_order(points: NDArray) -> NDArray:
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
    >>> order = spatial_order(points)
    >>> int(np.count_nonzero(np.abs(np.diff(points[order, 0])) > 5))
    1
    """
    order = np.arange(len(points))
    parts = [(0, len(points))]

    def halve(part: tuple[int, int]) -> list[tuple[int, int]]:
        first, end = part
        middle, chosen = (first + end) // 2, order[first:end]
        along = points[chosen] @ _widest_direction(points[chosen[:: max(1, len(chosen) // SAMPLED)]])
        order[first:end] = chosen[np.argpartition(along, middle - first)]
        return [(first, middle), (middle, end)]

    while parts:
        large = [(first, end) for first, end in parts if end - first > SMALLEST_PART]
        parts = list(chain.from_iterable(threaded_map(halve, large)))
    return order


def _widest_direction(points: NDArray) -> NDArray:
    """The first principal direction."""
    centred = points - points.mean(axis=0)
    return np.linalg.eigh(centred.T @ centred)[1][:, -1]
