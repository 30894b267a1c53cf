"""Products with a large sparse matrix, on as many threads as the numerical libraries may use."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.threads import count_threads, threaded_map

# Fewer rows take less time than it takes to share them out.
FEWEST_ROWS = 20000


def threaded_product(matrix: sparse.csr_array) -> Callable[[NDArray], NDArray]:
    """M ↦ (X ↦ M·X), each thread with some of the rows; the same to the last digit on any number of threads.

    Examples
    --------
    >>> product = threaded_product(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    >>> product(np.array([[1.0], [3.0]]))
    array([[6.],
           [1.]])
    """
    n_rows = matrix.shape[0]
    n_threads = count_threads()
    if n_threads == 1 or max(matrix.shape) < FEWEST_ROWS:
        return matrix.__matmul__
    shares = np.linspace(0, matrix.nnz, n_threads + 1)[1:-1]
    bounds = np.concatenate([[0], np.searchsorted(matrix.indptr, shares), [n_rows]])
    blocks = [slice(first, end) for first, end in pairwise(bounds)]
    parts = [consecutive_rows(matrix, block) for block in blocks]

    def product(rows: NDArray) -> NDArray:
        result = np.empty((n_rows, *rows.shape[1:]), dtype=np.result_type(matrix, rows))

        def fill(block: slice, part: sparse.csr_array) -> None:
            result[block] = part @ rows

        threaded_map(fill, blocks, parts)
        return result

    return product


def consecutive_rows(matrix: sparse.csr_array, block: slice) -> sparse.csr_array:
    """Some consecutive rows, without a copy of what is in them.

    Examples
    --------
    >>> consecutive_rows(sparse.csr_array([[0, 2], [1, 0], [3, 4]]), slice(1, 3)).toarray()
    array([[1, 0],
           [3, 4]])
    """
    starts = matrix.indptr[block.start : block.stop + 1]
    entries = slice(starts[0], starts[-1])
    content = matrix.data[entries], matrix.indices[entries], starts - starts[0]
    return sparse.csr_array(content, shape=(len(starts) - 1, matrix.shape[1]), copy=False)
