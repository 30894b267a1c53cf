"""A coarse level for the propagation: what blocks of samples have in common is solved for at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.numerics.parallel import slices_of, threaded_map
from lmssc.numerics.sparse_ops import consecutive_rows, threaded_product

# Samples to a block, at least, and how many blocks there are at most. Halves of halves fit the numbering.
SAMPLES_PER_BLOCK = 150
MOST_BLOCKS = 2048
# Blocks that a thread works on at a time.
BLOCKS_SHARED = 128
# What keeps the coarse matrix from being singular, in units of its diagonal.
RIDGE = 1e-6


def coarse_correction(laplacian: sparse.csr_array, known: NDArray) -> Callable[[NDArray, NDArray], None]:
    """Approximate inverse of L_uu on scores that are the same within each block of samples.

    A step along it mends at once what conjugate gradients otherwise carry from neighbour to neighbour. With P the
    samples' membership in blocks of consecutive ones, it is P·(PᵀL_uuP)⁻¹·Pᵀ. It helps only if consecutive samples are
    close in space, as `spatial_order` numbers them.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n)
        L, of samples in spatial order.
    known : ndarray of bool of shape (n,)
        Samples whose scores are known.

    Returns
    -------
    callable
        Adds P·(PᵀL_uuP)⁻¹·Pᵀ·R to a result, nothing where scores are known.

    Examples
    --------
    >>> from lmssc.core.graph import laplacian
    >>> n = 20_000
    >>> L = laplacian(sparse.diags_array([np.ones(n - 1)] * 2, offsets=[1, -1]).tocsr())
    >>> known = np.arange(n) == 0
    >>> residual, result = np.ones((n, 1)), np.zeros((n, 1))
    >>> coarse_correction(L, known)(residual, result)
    >>> bool(result[0] == 0), bool((result[1:] > 0).all())
    (True, True)
    """
    n_samples = len(known)
    n_blocks = min(MOST_BLOCKS, 2 ** int(np.log2(max(1.0, n_samples / SAMPLES_PER_BLOCK))))
    starts = np.arange(n_blocks) * n_samples // n_blocks
    factor = _factor(laplacian, known, starts)
    sizes = np.diff(starts, append=n_samples)
    ones = (~known).astype(laplacian.dtype)
    index_type = laplacian.indices.dtype
    block = np.repeat(np.arange(n_blocks, dtype=index_type), sizes)
    everyone = np.arange(n_samples + 1, dtype=index_type)
    spread = threaded_product(sparse.csr_array((ones, block, everyone), shape=(n_samples, n_blocks)))
    ends = np.append(starts, n_samples).astype(index_type)
    gather = threaded_product(sparse.csr_array((ones, everyone[:-1], ends), shape=(n_blocks, n_samples)))

    def correct(residual: NDArray, result: NDArray) -> None:
        spread(linalg.cho_solve((factor, True), gather(residual), check_finite=False), result, add=True)

    return correct


def _factor(laplacian: sparse.csr_array, known: NDArray, starts: NDArray) -> NDArray:
    """Cholesky factor of PᵀL_uuP, whose diagonal is summed from weights, so that rounding cannot make it indefinite."""
    n_blocks = len(starts)
    ends = np.append(starts[1:], len(known))
    # What is known counts as one more block, which has no row.
    block = np.repeat(np.arange(n_blocks, dtype=laplacian.indices.dtype), ends - starts)
    block[known] = n_blocks

    def rows_of(share: slice) -> NDArray:
        rows = consecutive_rows(laplacian, slice(starts[share][0], ends[share][-1]))
        own = known[starts[share][0] : ends[share][-1]]
        entries = np.where(np.repeat(own, np.diff(rows.indptr)), 0, rows.data).astype(np.float64)
        bounds = np.append(rows.indptr[starts[share] - starts[share][0]], rows.nnz)
        # Entries of the same place are added.
        return sparse.csr_array((entries, block[rows.indices], bounds), shape=(len(bounds) - 1, n_blocks + 1)).toarray()

    weights = -np.concatenate(threaded_map(rows_of, slices_of(n_blocks, BLOCKS_SHARED)))
    coarse = -(weights[:, :-1] + weights[:, :-1].T) / 2  # single precision sums the two sides a little differently
    np.fill_diagonal(coarse, 0)
    diagonal = weights[:, -1] - coarse.sum(axis=1)
    diagonal[diagonal <= 0] = 1  # a block of known samples
    np.fill_diagonal(coarse, (1 + RIDGE) * diagonal)
    return linalg.cholesky(coarse, lower=True, overwrite_a=True, check_finite=False).astype(laplacian.dtype, copy=False)
