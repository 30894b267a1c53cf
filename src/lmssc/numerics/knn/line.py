"""Nearest neighbours of points on a line, exactly, by sorting them."""

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.parallel import threaded_map

# Queries whose candidates are compared at a time.
BATCH_QUERIES = 4096


def nearest_on_line(points: NDArray, queries: NDArray, length: int) -> NDArray:
    """The nearest points of each query, in no order, for points with one coordinate.

    The nearest are among as many points below the query and as many above it, in the order of the points.

    Parameters
    ----------
    points, queries : ndarray of shape (n, 1) and (m, 1)
        Coordinates.
    length : int
        Number of neighbours, at most n.

    Returns
    -------
    ndarray of int of shape (m, length)

    Examples
    --------
    >>> np.sort(nearest_on_line(np.array([[9.0], [0.0], [3.0], [1.0]]), np.array([[2.5], [20.0]]), 2))
    array([[2, 3],
           [0, 2]])
    """
    order = np.argsort(points[:, 0], kind="stable")
    sorted_points = points[order, 0]
    width = min(2 * length, len(order))
    result = np.empty((len(queries), length), dtype=np.intp)

    def fill(batch: slice) -> None:
        values = queries[batch, 0]
        first = np.clip(np.searchsorted(sorted_points, values) - length, 0, len(order) - width)
        window = first[:, None] + np.arange(width)
        distances = np.abs(sorted_points[window] - values[:, None])
        nearest = np.argpartition(distances, length - 1, axis=1)[:, :length]
        result[batch] = order[np.take_along_axis(window, nearest, 1)]

    threaded_map(fill, gen_batches(len(queries), BATCH_QUERIES))
    return result
