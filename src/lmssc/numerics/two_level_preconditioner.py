"""Coarse level of a two-level preconditioner for label propagation: one unknown per block of samples."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.parallel import threaded_map
from lmssc.numerics.sparse_ops import consecutive_rows, threaded_product


@dataclass(frozen=True)
class CoarseSettings:
    """Settings of the coarse level."""

    min_block_size: int = 150
    max_blocks: int = 2048
    """There is a power of two of blocks, which fits the halves of `spatial_order`: at most `max_blocks`, each of at
    least `min_block_size` samples."""
    blocks_per_task: int = 128
    """Blocks per task of a thread."""
    ridge: float = 1e-6
    """Relative increase of the diagonal, which keeps the coarse matrix from being singular."""


SETTINGS = CoarseSettings()


def coarse_correction(laplacian: sparse.csr_array, known: NDArray) -> Callable[..., None]:
    """Approximate inverse of L_uu for scores that are constant within blocks of consecutive samples.

    It is P·(PᵀL_uuP)⁻¹·Pᵀ, with P the membership of the samples in the blocks. It corrects smooth errors at once, which
    conjugate gradients alone only carry from neighbour to neighbour. It helps only if consecutive samples are close in
    space, as `spatial_order` numbers them.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n)
        L.
    known : ndarray of bool of shape (n,)
        Whether the score of a sample is known.

    Returns
    -------
    callable
        Adds P·(PᵀL_uuP)⁻¹·Pᵀ·R to a result, zero where scores are known. With `plain=True` it starts no threads, which
        is several times faster for one column.

    Examples
    --------
    >>> from lmssc.core.laplacian import laplacian
    >>> n = 20_000
    >>> L = laplacian(sparse.diags_array([np.ones(n - 1)] * 2, offsets=[1, -1]).tocsr())
    >>> known = np.arange(n) == 0
    >>> residual, result = np.ones((n, 1)), np.zeros((n, 1))
    >>> coarse_correction(L, known)(residual, result)
    >>> bool(result[0] == 0), bool((result[1:] > 0).all())
    (True, True)
    """
    n_samples = len(known)
    starts, factor = coarse_level(laplacian, known)
    n_blocks = len(starts)
    sizes = np.diff(starts, append=n_samples)
    ones = (~known).astype(laplacian.dtype)
    index_type = laplacian.indices.dtype
    block = np.repeat(np.arange(n_blocks, dtype=index_type), sizes)
    everyone = np.arange(n_samples + 1, dtype=index_type)
    spread = threaded_product(sparse.csr_array((ones, block, everyone), shape=(n_samples, n_blocks)))
    ends = np.append(starts, n_samples).astype(index_type)
    gather = threaded_product(sparse.csr_array((ones, everyone[:-1], ends), shape=(n_blocks, n_samples)))

    def correct(residual: NDArray, result: NDArray, *, plain: bool = False) -> None:
        if plain:
            sums = np.add.reduceat(residual * ones[:, None], starts)
            solution = linalg.cho_solve((factor, True), sums, check_finite=False)
            result += ones[:, None] * np.repeat(solution, sizes, axis=0)
            return
        spread(linalg.cho_solve((factor, True), gather(residual), check_finite=False), result, add=True)

    return correct


def coarse_level(laplacian: sparse.csr_array, known: NDArray) -> tuple[NDArray, NDArray]:
    """First sample of each block, and the lower Cholesky factor of PᵀL_uuP; the parameters are as above.

    Examples
    --------
    >>> from lmssc.core.laplacian import laplacian
    >>> L = laplacian(sparse.diags_array([np.ones(399)] * 2, offsets=[1, -1]).tocsr())
    >>> starts, factor = coarse_level(L, np.arange(400) == 0)
    >>> starts, (factor @ factor.T).round(3)
    (array([  0, 200]), array([[ 2., -1.],
           [-1.,  1.]]))
    """
    starts = block_starts(len(known))
    return starts, _factor(laplacian, known, starts)


def block_starts(n_samples: int) -> NDArray:
    """First sample of each block.

    Examples
    --------
    >>> block_starts(700)
    array([  0, 175, 350, 525])
    """
    n_blocks = min(SETTINGS.max_blocks, 2 ** int(np.log2(max(1.0, n_samples / SETTINGS.min_block_size))))
    return np.arange(n_blocks) * n_samples // n_blocks


def _factor(laplacian: sparse.csr_array, known: NDArray, starts: NDArray) -> NDArray:
    """Cholesky factor of PᵀL_uuP. Its diagonal is a sum of weights, so rounding cannot make it indefinite."""
    n_blocks = len(starts)
    ends = np.append(starts[1:], len(known))
    # Known samples form one more block, which has no row.
    block = np.repeat(np.arange(n_blocks, dtype=laplacian.indices.dtype), ends - starts)
    block[known] = n_blocks

    def rows_of(share: slice) -> NDArray:
        own = slice(starts[share][0], ends[share][-1])
        rows = consecutive_rows(laplacian, own)
        return coarse_rows(rows, known[own], block[rows.indices], starts[share] - own.start, n_blocks)

    rows = np.concatenate(threaded_map(rows_of, gen_batches(n_blocks, SETTINGS.blocks_per_task)))
    return coarse_factor(rows, laplacian.dtype)


def coarse_rows(rows: sparse.csr_array, known: NDArray, block: NDArray, starts: NDArray, n_blocks: int) -> NDArray:
    """Sums of some rows of L over blocks of rows and of columns.

    Parameters
    ----------
    rows : csr_array of shape (m, n)
        Consecutive rows of L.
    known : ndarray of bool of shape (m,)
        Which of them do not count, because the scores of their samples are known.
    block : ndarray of int of shape (nnz,)
        Block of the column of each entry, `n_blocks` if its score is known.
    starts : ndarray of int of shape (b,)
        First row of each block of rows; the first is 0.
    n_blocks : int
        Number of blocks of columns.

    Returns
    -------
    ndarray of shape (b, n_blocks + 1)
    """
    entries = np.where(np.repeat(known, np.diff(rows.indptr)), 0, rows.data).astype(np.float64)
    bounds = np.append(rows.indptr[starts], rows.nnz)
    # Duplicate entries are summed.
    return sparse.csr_array((entries, block, bounds), shape=(len(starts), n_blocks + 1)).toarray()


def coarse_factor(rows: NDArray, dtype: np.dtype) -> NDArray:
    """Cholesky factor of the coarse matrix, from what `coarse_rows` made of all rows."""
    weights = -rows
    coarse = -(weights[:, :-1] + weights[:, :-1].T) / 2  # symmetric up to rounding in single precision
    np.fill_diagonal(coarse, 0)
    diagonal = weights[:, -1] - coarse.sum(axis=1)
    diagonal[diagonal <= 0] = 1  # a block of known samples
    np.fill_diagonal(coarse, (1 + SETTINGS.ridge) * diagonal)
    return linalg.cholesky(coarse, lower=True, overwrite_a=True, check_finite=False).astype(dtype, copy=False)
