"""Numbering of the samples by where they are, so that what is near in the graph is near in memory."""

import numpy as np
from numpy.typing import NDArray

from lmssc.neighbors import Blocks

# From so many samples on it pays: fewer fit into the cache.
FEWEST_SAMPLES = 10_000
# Samples to each place that the others are sorted by, and how many of these there are at most.
SAMPLES_PER_PLACE = 200
MOST_PLACES = 2000
BLOCK_ROWS = 4096


def order_by_place(points: NDArray) -> NDArray:
    """An order in which samples that are near each other stand near each other.

    Each sample goes to the nearest of some of them, and these are put in a row by going on to the nearest that is left.

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
    apart = max(SAMPLES_PER_PLACE, len(points) // MOST_PLACES)
    chosen = points[:: min(apart, max(1, len(points) // 8) | 1)]
    centres = Blocks.of(chosen)
    nearest = np.concatenate(
        [
            centres.distances(points[first : first + BLOCK_ROWS])[0].argmin(axis=1)
            for first in range(0, len(points), BLOCK_ROWS)
        ]
    )
    between = centres.distances(chosen)[0]
    rank = np.empty(len(between), dtype=np.intp)
    current = 0
    for number in range(len(between)):
        rank[current] = number
        between[:, current] = np.inf
        current = int(between[current].argmin())
    return np.argsort(rank[nearest], kind="stable")
