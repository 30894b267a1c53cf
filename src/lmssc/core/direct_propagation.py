"""Propagation by a factor, dense or sparse: faster than conjugate gradients for few samples, or many classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs
from scipy.sparse.linalg import splu

from lmssc.core.dense_propagation import solve_densely
from lmssc.core.second_opinion import Opinion
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.sparse_ops import rows_of_zeros

# Largest number of samples without a label for which a dense factor is considered.
MAX_DIRECT = 5000
# An iterative solution takes about as long as this many operations of a dense one, and as many more for each score.
ITERATIVE_COST, ITERATIVE_COST_PER_SCORE = 5e8, 1e4
# Root of the smallest pivot of a matrix with a unit diagonal that rounding leaves some digits of.
MIN_PIVOT = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}
# From this many samples on, a factor in single precision, whose solutions are refined, takes half of the time.
MIN_SINGLE = 300
# A sparse factor takes less time for at least so many samples with at most so many entries in a row of L_uu on average:
# for up to `MAX_MEDIUM` samples, and for more.
MIN_SPARSE, MAX_MEDIUM, MAX_MEDIUM_ENTRIES, MAX_ENTRIES = 400, 1200, 15, 8
# Numbers of right-hand sides that a sparse factor solves for at a time: they stay in the cache.
SOLVED_NUMBERS = 1 << 16
# With many right-hand sides it does if at most this share of it is not zero: dense products are that much faster.
MAX_FILL = 0.05
# Relative residual of a refined solution, and the most refinements; a matrix that needs more is factorised in double.
REFINED, MAX_REFINEMENTS = 1e-13, 8
# Where a tolerance is given, the residual is this share of it, as long as a further refinement costs less than the
# factor: with at most this many right-hand sides for each sample.
MARGIN, MAX_RHS_PER_SAMPLE = 1e-3, 1 / 6
# More targets of labelled samples than these, nearly all of them zeros, are multiplied as a sparse matrix.
MAX_DENSE_LABELS = 100_000


def is_cheaper_directly(n_unknown: int, n_samples: int, n_classes: int) -> bool:
    """Whether a dense Cholesky factor of L_uu takes less time than conjugate gradients: few samples, or many classes.

    Examples
    --------
    >>> is_cheaper_directly(900, 1000, 10), is_cheaper_directly(2500, 3000, 10), is_cheaper_directly(2500, 3000, 999)
    (True, False, True)
    """
    operations = n_unknown**3 / 3 + 2 * n_unknown**2 * n_classes
    return n_unknown <= MAX_DIRECT and operations <= _iterative_cost(n_samples, n_classes)


class Block(NamedTuple):
    """The rows and columns of some samples in L + ηI, scaled to a unit diagonal.

    On a unit diagonal, samples whose edges are all next to zero are as accurate as the others.

    Attributes
    ----------
    row, column : ndarray of int of shape (nnz,)
        Position of each stored entry, row by row.
    values : ndarray of shape (nnz,)
        The entries.
    unit : ndarray of shape (m,)
        1 over the root of the diagonal.
    """

    row: NDArray
    column: NDArray
    values: NDArray
    unit: NDArray

    @classmethod
    def of(cls, laplacian: sparse.csr_array, chosen: NDArray, weight: float = 0.0) -> "Block":
        """The block of the samples `chosen`, a boolean array, with η = `weight`."""
        position = np.cumsum(chosen) - 1
        row = np.repeat(np.arange(len(chosen)), np.diff(laplacian.indptr))
        kept = chosen[row] & chosen[laplacian.indices]
        row, column = position[row[kept]], position[laplacian.indices[kept]]
        unit = 1 / np.sqrt(laplacian.diagonal()[chosen].astype(np.float64) + weight)
        return cls(row, column, np.where(row == column, 1.0, laplacian.data[kept] * unit[row] * unit[column]), unit)

    def to_csr(self) -> sparse.csr_array:
        """The block as a matrix."""
        size = len(self.unit)
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.row, minlength=size))])
        return sparse.csr_array((self.values, self.column, starts), shape=(size, size))

    def is_sparse(self) -> bool:
        """Whether a sparse factor takes less time than a dense one."""
        size = len(self.unit)
        limit = MAX_MEDIUM_ENTRIES if size <= MAX_MEDIUM else MAX_ENTRIES
        return size >= MIN_SPARSE and len(self.row) <= limit * size

    def solve_sparsely(self, rhs: NDArray) -> NDArray | None:
        """X with (L + ηI)·X = B by a sparse factor; None if rounding makes it singular, or it is not worth it.

        Examples
        --------
        >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
        >>> Block.of(L, np.array([False, True, True])).solve_sparsely(np.array([[1.0], [0.0]])).round(9).ravel()
        array([1., 1.])
        """
        try:  # the matrix is symmetric, so that its rows are its columns
            symmetric = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
            # With so few entries in a column, panels of several columns take a tenth longer.
            factor = splu(self.to_csr().T, "MMD_AT_PLUS_A", panel_size=1, **symmetric)
        except RuntimeError:
            return None
        many = rhs.shape[1] > MAX_RHS_PER_SAMPLE * len(rhs) and len(rhs) >= MIN_SPARSE
        if many and factor.nnz > MAX_FILL * len(rhs) ** 2:
            return None
        if factor.U.diagonal().min() < MIN_PIVOT[np.dtype(np.float64)] ** 2:
            return None
        solution, unit = np.empty_like(rhs), self.unit[:, None]
        for some in gen_batches(rhs.shape[1], max(1, SOLVED_NUMBERS // len(rhs))):
            np.multiply(unit, factor.solve(unit * rhs[:, some]), out=solution[:, some])
        return solution


@dataclass(frozen=True)
class DenseFactor:
    """Cholesky factor of a `Block`.

    Attributes
    ----------
    factor : ndarray of shape (m, m)
        The factor; its upper triangle is not used.
    unit : ndarray of shape (m,)
        1 over the root of the diagonal.
    matrix : csr_array of shape (m, m), or None
        The scaled matrix, if the factor is in single precision.
    """

    factor: NDArray
    unit: NDArray
    matrix: sparse.csr_array | None

    @classmethod
    def of(cls, block: Block, dtype: np.dtype | None = None) -> "DenseFactor | None":
        """The factor of a block; None if rounding makes it singular.

        By default it is in single precision for many samples, if that leaves enough digits to refine solutions.
        """
        size = len(block.unit)
        if dtype is None and size >= MIN_SINGLE:
            single = cls.of(block, np.dtype(np.float32))
            if single is not None:
                return single
        dtype = np.dtype(np.float64) if dtype is None else dtype
        dense = np.zeros((size, size), dtype=dtype, order="F")
        dense[block.column, block.row] = block.values  # it is symmetric; this order is that of the memory
        factorise = spotrf if dtype == np.float32 else dpotrf
        factor, info = factorise(dense, lower=1, clean=0, overwrite_a=1)
        if info or factor.diagonal().min() < MIN_PIVOT[dtype]:
            return None
        return cls(factor, block.unit, None if dtype == np.float64 else block.to_csr())

    def solve(self, rhs: NDArray, tol: float = 0.0) -> NDArray | None:
        """X with (L + ηI)·X = B, with the relative residual `tol`; None if refinements do not converge."""
        scaled = self.unit[:, None] * rhs
        if self.matrix is None:
            return self.unit[:, None] * dpotrs(self.factor, scaled, lower=1)[0]
        margin = MARGIN if rhs.shape[1] <= MAX_RHS_PER_SAMPLE * len(rhs) else 1.0
        limit = max(REFINED, margin * tol) * np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
        solution, residual = np.zeros_like(scaled), scaled
        for _ in range(MAX_REFINEMENTS):
            solution += spotrs(self.factor, residual.astype(np.float32), lower=1)[0]
            residual = scaled - self.matrix @ solution
            if (np.sqrt(np.einsum("ij,ij->j", residual, residual)) <= limit).all():
                return self.unit[:, None] * solution
        return None


def factorise_and_solve(
    laplacian: Matrix, chosen: NDArray, rhs: NDArray, weight: float = 0.0, tol: float = 0.0
) -> NDArray | None:
    """X with (L + ηI)·X = B for the rows and columns of the samples `chosen`; None if rounding makes it singular.

    A dense L is for η = 0 only.

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> factorise_and_solve(L, np.array([False, True, True]), np.array([[1.0], [0.0]])).ravel()
    array([1., 1.])
    """
    if not rhs.size:
        return rhs
    if isinstance(laplacian, np.ndarray):
        return solve_densely(laplacian[chosen][:, chosen].astype(np.float64, copy=False), rhs)
    block = Block.of(laplacian, chosen, weight)
    solution = block.solve_sparsely(rhs) if block.is_sparse() else None
    if solution is not None:
        return solution
    factor = DenseFactor.of(block)
    solution = None if factor is None else factor.solve(rhs, tol)
    if solution is None and factor is not None and factor.factor.dtype != np.float64:
        factor = DenseFactor.of(block, np.dtype(np.float64))
        solution = None if factor is None else factor.solve(rhs, tol)
    return solution


def solve_directly(
    laplacian: sparse.csr_array,
    scores: NDArray,
    labelled: NDArray,
    is_known: NDArray,
    opinion: Opinion | None = None,
    tol: float = 0.0,
) -> NDArray | None:
    """F_u by a Cholesky factor of L_uu + ηI, with the relative residual `tol`; None if rounding makes it singular."""
    unknown = ~is_known
    rhs = _pull_of_labels(laplacian, scores, labelled, unknown)
    weight = 0.0 if opinion is None else opinion.weight
    if opinion is not None:
        rhs += weight * opinion.scores[unknown]
    return factorise_and_solve(laplacian, unknown, rhs, weight, tol)


def _pull_of_labels(laplacian: sparse.csr_array, scores: NDArray, labelled: NDArray, unknown: NDArray) -> NDArray:
    """−L_ul·Y_l, in float64."""
    if scores.size <= MAX_DENSE_LABELS:
        return -(laplacian @ np.where(labelled[:, None], scores, 0).astype(np.float64))[unknown]
    given = rows_of_zeros(scores[labelled].astype(np.float64, copy=False))
    counts = np.zeros(len(labelled), dtype=given.indptr.dtype)
    counts[labelled] = np.diff(given.indptr)
    starts = np.concatenate([[0], np.cumsum(counts)])
    labels = sparse.csr_array((given.data, given.indices, starts), shape=scores.shape)
    pull = laplacian[unknown] @ labels
    np.negative(pull.data, out=pull.data)
    return pull.toarray()


def is_sharing_cheaper(laplacian: Matrix, n_unknown: int, n_labelled: int, n_classes: int, n_folds: int) -> bool:
    """Whether one dense factor for all folds takes less time than solutions for each.

    It has a right-hand side for each label. With many classes the folds together have no more, and what remains for
    each fold to do, with dense matrices, takes longer than a sparse factor.

    Examples
    --------
    >>> L = sparse.eye_array(3000, format="csr")
    >>> [is_sharing_cheaper(L, *sizes, n_folds=5) for sizes in ((900, 100, 10), (2400, 300, 7), (900, 2000, 1000))]
    [True, False, False]
    """
    many = n_labelled * n_classes > MAX_DENSE_LABELS and n_classes > MAX_RHS_PER_SAMPLE * n_unknown
    if many and sparse.issparse(laplacian):
        return False
    operations = n_unknown**3 / 3 + 2 * n_unknown**2 * n_labelled
    iterative = n_folds * _iterative_cost(n_unknown + n_labelled, n_classes)
    return operations <= iterative and is_cheaper_directly(n_unknown, n_unknown + n_labelled, n_labelled)


def _iterative_cost(n_samples: int, n_classes: int) -> float:
    """What conjugate gradients cost, in operations of a dense factor."""
    return ITERATIVE_COST + ITERATIVE_COST_PER_SCORE * n_samples * n_classes


def scores_without(
    laplacian: Matrix, targets: NDArray, labelled: NDArray, folds: Sequence[NDArray]
) -> list[NDArray | None]:
    """F without the labels of each fold, from one factor of L_uu; each is None if rounding makes a system singular.

    With M = −L_uu⁻¹·L_ul and Q = L_ll + L_lu·M, held-out labels h and the others k have F_h = −Q_hh⁻¹·Q_hk·Y_k, and all
    other samples F_u = M_uh·F_h + M_uk·Y_k.

    Parameters
    ----------
    laplacian : csr_array or ndarray of shape (n, n)
        L.
    targets : ndarray of shape (n, c)
        Y.
    labelled : ndarray of bool of shape (n,)
        Samples with a label, held out or not.
    folds : sequence of ndarray of int
        Samples whose labels are held out together. All must be joined to a label that is not held out.

    Returns
    -------
    list of ndarray of shape (n, c), or None

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
    >>> Y = np.array([[1.0, 0], [0, 0], [1, 0], [0, 1]])
    >>> scores_without(L, Y, np.array([True, False, True, True]), [np.array([2])])[0][:, 0].round(2)
    array([1.  , 0.67, 0.33, 0.  ])
    """
    known = np.flatnonzero(labelled)
    columns = laplacian[:, known]
    columns = (columns.toarray() if sparse.issparse(columns) else columns).astype(np.float64, copy=False)
    rest, given = columns[~labelled], targets[known].astype(np.float64)
    influence = factorise_and_solve(laplacian, ~labelled, -rest)
    if influence is None:
        return [None] * len(folds)
    if given.size > MAX_DENSE_LABELS:  # nearly all numbers of both are zeros
        rest, given = rows_of_zeros(rest), rows_of_zeros(given)
    schur = columns[labelled] + rest.T @ influence
    found: list[NDArray | None] = []
    for rows in folds:
        held_out = np.isin(known, rows)
        kept = given[~held_out]
        try:
            factor = linalg.cho_factor(schur[np.ix_(held_out, held_out)])
        except linalg.LinAlgError:
            found.append(None)
            continue
        own = -linalg.cho_solve(factor, schur[np.ix_(held_out, ~held_out)] @ kept)
        scores = targets.astype(np.float64)
        scores[known[held_out]] = own
        scores[~labelled] = influence[:, held_out] @ own + influence[:, ~held_out] @ kept
        found.append(scores)
    return found
