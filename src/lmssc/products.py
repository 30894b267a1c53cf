"""Products with a large sparse matrix, on as many threads as the numerical libraries may use."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.threads import count_threads

# Fewer rows take less time than it takes to share them out.
FEWEST_ROWS = 20000


@contextmanager
def threaded_product(matrix: sparse.csr_array) -> Iterator[Callable[[NDArray], NDArray]]:
    """M ↦ (X ↦ M·X), each thread with some of the rows; the same to the last digit on any number of threads.

    Examples
    --------
    >>> with threaded_product(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]])) as product:
    ...     product(np.array([[1.0], [3.0]]))
    array([[6.],
           [1.]])
    """
    n_rows = matrix.shape[0]
    n_threads = count_threads() if n_rows >= FEWEST_ROWS else 1
    if n_threads == 1:
        yield matrix.__matmul__
        return
    shares = np.linspace(0, matrix.nnz, n_threads + 1)[1:-1]
    bounds = np.concatenate([[0], np.searchsorted(matrix.indptr, shares), [n_rows]])
    blocks = [slice(first, end) for first, end in pairwise(bounds)]
    parts = [_rows(matrix, block) for block in blocks]
    with ThreadPoolExecutor(n_threads) as pool:

        def product(rows: NDArray) -> NDArray:
            result = np.empty((n_rows, rows.shape[1]), dtype=np.result_type(matrix, rows))

            def fill(block: slice, part: sparse.csr_array) -> None:
                result[block] = part @ rows

            list(pool.map(fill, blocks, parts))
            return result

        yield product


def _rows(matrix: sparse.csr_array, block: slice) -> sparse.csr_array:
    """Some consecutive rows, without a copy of what is in them."""
    starts = matrix.indptr[block.start : block.stop + 1]
    entries = slice(starts[0], starts[-1])
    content = matrix.data[entries], matrix.indices[entries], starts - starts[0]
    return sparse.csr_array(content, shape=(len(starts) - 1, matrix.shape[1]), copy=False)
