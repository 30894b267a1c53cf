"""How a view is stored: dense, or sparse if nearly all of its values are zero."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.memmap import memory_map
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix

# A dense view with at most this share of non-zeros is stored sparsely: beyond, dense products are faster.
MAX_SPARSE_SHARE = 0.03
# Values examined at a time.
BATCH_VALUES = 1 << 18


def smaller(block: Matrix, *, has_gaps: bool = False) -> Matrix:
    """Store a sparse block densely if that takes less memory, and a dense one that is nearly all zeros sparsely.

    Memory maps stay as they are, and so do dense blocks in which single values are missing: a sparse row whose stored
    values are all missing would be a missing row.

    Examples
    --------
    >>> type(smaller(sparse.csr_array(np.ones((3, 3))))).__name__
    'ndarray'
    >>> type(smaller(np.eye(100))).__name__
    'csr_array'
    """
    if memory_map(block) is not None:
        return block
    if not sparse.issparse(block):
        return _without_zeros(block) if not has_gaps and _is_nearly_all_zeros(block) else block
    as_sparse = block.nnz * (block.data.itemsize + block.indices.itemsize)
    return block.toarray() if as_sparse > np.prod(block.shape) * block.data.itemsize else block


def _is_nearly_all_zeros(block: NDArray) -> bool:
    """Whether at most `MAX_SPARSE_SHARE` of the values are not zero; reads a dense block up to that share only."""
    left = MAX_SPARSE_SHARE * block.size
    for rows in gen_batches(len(block), max(1, BATCH_VALUES // block.shape[1])):
        left -= np.count_nonzero(block[rows] != 0)  # numpy counts booleans much faster than numbers
        if left < 0:
            return False
    return True


def _without_zeros(block: NDArray) -> sparse.csr_array:
    """The block as a CSR array; indices into some flat rows at a time are found much faster than pairs of indices."""
    width, columns, values, counts = block.shape[1], [], [], [np.zeros(1, dtype=np.intp)]
    for rows in gen_batches(len(block), max(1, BATCH_VALUES // width)):
        part = np.ascontiguousarray(block[rows]).ravel()
        found = np.flatnonzero(part != 0)
        row, column = np.divmod(found, width)
        columns.append(column.astype(np.int32))
        values.append(part[found])
        counts.append(np.bincount(row, minlength=rows.stop - rows.start))
    starts = np.cumsum(np.concatenate(counts))
    index_type = np.int32 if starts[-1] < np.iinfo(np.int32).max else np.int64
    indices = np.concatenate(columns).astype(index_type, copy=False)
    return sparse.csr_array((np.concatenate(values), indices, starts.astype(index_type)), shape=block.shape)
