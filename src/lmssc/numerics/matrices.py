"""Matrices, dense or sparse."""

from typing import Any

from scipy import sparse

# A dense array, a CSR array or rows of a memory map. scipy has no types that could tell them apart.
Matrix = Any


def stored_like(example: Matrix, block: Matrix) -> Matrix:
    """`block` in the storage of `example`: dense, or CSR.

    Examples
    --------
    >>> import numpy as np
    >>> type(stored_like(sparse.eye_array(2), np.ones((1, 2)))).__name__
    'csr_array'
    """
    if sparse.issparse(example):
        return sparse.csr_array(block)
    return block.toarray() if sparse.issparse(block) else block
