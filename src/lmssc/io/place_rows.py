"""Move the rows of a view to the places of their samples."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.memmap import MIN_MAPPED_BYTES, copy_to_disk, memory_map, slices
from lmssc.numerics.matrices import Matrix


def place_rows(data: Matrix, place: NDArray, count: int) -> Matrix:
    """Move rows to their places; rows that are missing become NaN, or empty if sparse. What is on disk stays there.

    Parameters
    ----------
    data : ndarray or CSR array of shape (m, d)
        Rows.
    place : ndarray of int of shape (m,)
        The new number of each row, none of them twice.
    count : int
        Number of rows of the result.

    Returns
    -------
    ndarray, memmap or CSR array of shape (count, d)

    Examples
    --------
    >>> place_rows(np.array([[1.0], [2.0]]), np.array([2, 0]), 3).ravel()
    array([ 2., nan,  1.])
    """
    if len(place) == count and np.array_equal(place, np.arange(count)):
        return data
    if sparse.issparse(data):
        move = sparse.csr_array(
            (np.ones(len(place), dtype=data.dtype), (place, np.arange(len(place)))), shape=(count, len(place))
        )
        moved = (move @ data).tocsr()
        moved.sort_indices()
        return moved
    source = np.full(count, -1)
    source[place] = np.arange(len(place))
    if memory_map(data) is not None and data.nbytes >= MIN_MAPPED_BYTES:
        rows = slices(count, data.shape[1] * data.itemsize)
        return copy_to_disk((_take_rows(data, source[part]) for part in rows), data.shape[1], data.dtype)
    return _take_rows(data, source)


def _take_rows(data: NDArray, source: NDArray) -> NDArray:
    """Rows by their numbers; −1 is a row of NaN."""
    taken = np.full((len(source), data.shape[1]), np.nan, dtype=data.dtype)
    taken[source >= 0] = data[source[source >= 0]]
    return taken
