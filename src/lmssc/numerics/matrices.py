"""Matrices, dense or sparse."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

# A dense array, a CSR array or rows of a memory map. scipy has no types that could tell them apart.
Matrix = Any
# From this many columns on, a product with a few columns in double precision is faster the other way round.
MIN_WIDE = 400


def stored_like(example: Matrix, block: Matrix) -> Matrix:
    """`block` in the storage of `example`: dense, or CSR.

    Examples
    --------
    >>> type(stored_like(sparse.eye_array(2), np.ones((1, 2)))).__name__
    'csr_array'
    """
    if sparse.issparse(example):
        return sparse.csr_array(block)
    return block.toarray() if sparse.issparse(block) else block


def times_columns(matrix: Matrix, columns: NDArray) -> NDArray:
    """M·A for a matrix, dense or sparse, and a few columns A; of a wide dense matrix as (Aᵀ·Mᵀ)ᵀ.

    BLAS takes up to a third less time for a product whose first dimension is the large one.

    Examples
    --------
    >>> times_columns(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [0.0]])).ravel()
    array([1., 3.])
    """
    if sparse.issparse(matrix) or matrix.shape[1] < MIN_WIDE or matrix.dtype != np.float64:
        return matrix @ columns
    return np.ascontiguousarray((columns.T @ matrix.T).T)


def transpose_times_columns(matrix: Matrix, columns: NDArray) -> NDArray:
    """Mᵀ·A for a matrix, dense or sparse, and a few columns A; of a dense matrix as (Aᵀ·M)ᵀ, as `times_columns`.

    Examples
    --------
    >>> transpose_times_columns(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [0.0]])).ravel()
    array([1., 2.])
    """
    return matrix.T @ columns if sparse.issparse(matrix) else np.ascontiguousarray((columns.T @ matrix).T)


def pseudo_inverse(matrix: NDArray) -> NDArray:
    """Pseudo-inverse of a symmetric matrix; eigenvalues with no finite inverse count as 0.

    Examples
    --------
    >>> pseudo_inverse(np.diag([2.0, 1e-40]).astype(np.float32))
    array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    >>> bool(np.isfinite(pseudo_inverse(np.diag([1e-40, 1e-42]).astype(np.float32))).all())
    True
    """
    return linalg.pinvh(matrix, atol=2 / float(np.finfo(matrix.dtype).max))
