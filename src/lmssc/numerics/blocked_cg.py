"""Conjugate gradients for many right-hand sides of one large sparse system, every pass over them in the cache."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.numerics.conjugate_gradient import iterate
from lmssc.numerics.parallel import threaded_map
from lmssc.numerics.sparse_ops import consecutive_rows

MIN_COLUMNS = 16
"""With fewer right-hand sides, calls of numpy take longer than what they do: see `conjugate_gradient`."""
BLOCK_SIZE = 200
"""Rows of a block without a coarse level: with 100 columns, four arrays of so many rows fit into the cache."""
ROWS_PER_PART = 800
"""Rows of a product that are computed at a time, about."""


@dataclass(frozen=True)
class CoarseBlocks:
    """Coarse level of a preconditioner: one unknown per block of consecutive rows.

    Attributes
    ----------
    starts : ndarray of int of shape (b,)
        First row of each block; a block may be empty.
    factor : ndarray of shape (b, b)
        Lower Cholesky factor of the coarse matrix.
    """

    starts: NDArray
    factor: NDArray

    def solve(self, sums: NDArray) -> NDArray:
        """Values of the blocks for the sums of the residual over each."""
        return linalg.cho_solve((self.factor, True), sums, check_finite=False)


class BlockedMatrix:
    """A symmetric positive definite matrix M, scaled to a diagonal of ones, and cut into parts of consecutive rows.

    Parameters
    ----------
    matrix : csr_array of shape (n, n)
        M.
    coarse : CoarseBlocks, optional
        Coarse level of M, which the preconditioner adds to the inverse of the diagonal.

    Examples
    --------
    >>> M = BlockedMatrix(sparse.csr_array([[4.0, 1.0], [1.0, 3.0]]))
    >>> M.solve(np.array([[1.0], [2.0]]), tol=1e-10).round(4)
    array([[0.0909],
           [0.6364]])
    """

    def __init__(self, matrix: sparse.csr_array, coarse: CoarseBlocks | None = None) -> None:
        n_rows, diagonal = matrix.shape[0], matrix.diagonal()
        self.roots = np.sqrt(np.where(diagonal > 0, diagonal, 1)).astype(matrix.dtype)
        self.coarse = coarse
        starts = np.arange(0, n_rows, BLOCK_SIZE) if coarse is None else coarse.starts
        self.bounds = np.append(starts, n_rows)
        scaled = matrix.copy()
        scaled.data /= self.roots[scaled.indices] * np.repeat(self.roots, np.diff(scaled.indptr))
        per_part = max(1, ROWS_PER_PART * len(starts) // max(n_rows, 1))
        firsts = np.append(np.arange(0, len(starts), per_part), len(starts))
        # Blocks and rows of each part.
        self.parts = [
            (range(first, end), slice(int(self.bounds[first]), int(self.bounds[end])))
            for first, end in pairwise(firsts)
        ]
        self.rows = [consecutive_rows(scaled, rows) for _, rows in self.parts]

    def solve(self, rhs: NDArray, tol: float, outputs: sparse.csr_array | None = None, max_iter: int = 5000) -> NDArray:
        """X of M·X = B, or C·X.

        Parameters
        ----------
        rhs : ndarray of shape (n, m)
            B, C-contiguous. It is overwritten.
        tol : float
            A column is done when the norm of its residual is at most `tol` times that of its right-hand side, in both
            each row divided by the root of its diagonal entry.
        outputs : csr_array of shape (p, n), optional
            C. If C·X is all that is wanted, X itself is never formed.
        max_iter : int
            Maximum number of steps.

        Returns
        -------
        ndarray of shape (n, m), or (p, m) with outputs
        """
        if outputs is not None:
            outputs = outputs.copy()
            outputs.data /= self.roots[outputs.indices]
        if not rhs.size:
            return rhs if outputs is None else np.zeros((outputs.shape[0], rhs.shape[1]), dtype=rhs.dtype)
        rhs /= self.roots[:, None]
        system = _BlockedSystem(self, rhs, outputs)
        iterate(system, tol, max_iter)
        if outputs is None:
            system.solution /= self.roots[:, None]
        return system.solution


class _BlockedSystem:
    """Vectors of a `BlockedMatrix`: a `conjugate_gradient.System` that reads and writes each as rarely as possible.

    z is never stored, and X is updated while the directions are in the cache.
    """

    def __init__(self, matrix: BlockedMatrix, rhs: NDArray, outputs: sparse.csr_array | None) -> None:
        n_rows, n_columns = rhs.shape
        self.matrix, self.outputs, self.R = matrix, outputs, rhs
        self.solution = np.zeros((n_rows if outputs is None else outputs.shape[0], n_columns), dtype=rhs.dtype)
        self.direction, self._image = np.zeros_like(rhs), np.empty_like(rhs)
        self._step = np.zeros(n_columns, dtype=rhs.dtype)
        self._coarse: NDArray | None = None

    def begin(self) -> tuple[NDArray, NDArray, NDArray]:
        residual, left = self._precondition()
        self.turn(np.zeros_like(residual))
        return left, residual, left

    def curvature(self) -> tuple[NDArray, NDArray]:
        def multiply(part: tuple[range, slice], rows: sparse.csr_array) -> NDArray:
            image = rows @ self.direction
            self._image[part[1]] = image
            return _dots(self.direction[part[1]], image)

        curvature = np.sum(threaded_map(multiply, self.matrix.parts, self.matrix.rows), axis=0)
        return curvature, np.zeros_like(curvature)

    def advance(self, step: NDArray) -> tuple[NDArray, NDArray]:
        self._step = step.astype(self.R.dtype)
        if self.outputs is not None:
            self.solution += self._step * (self.outputs @ self.direction)
        return self._precondition()

    def _precondition(self) -> tuple[NDArray, NDArray]:
        """⟨r, z⟩ and ⟨r, r⟩ after the step: z is r and what the coarse level adds to it."""
        matrix, bounds, coarse, moved = self.matrix, self.matrix.bounds, self.matrix.coarse, self._step.any()
        sums = np.zeros((len(bounds) - 1, self.R.shape[1]), dtype=self.R.dtype)
        steps = self._repeated(self._step)

        def update(part: tuple[range, slice]) -> NDArray:
            squares = np.zeros(self.R.shape[1])
            for block in part[0]:
                rows = slice(bounds[block], bounds[block + 1])
                residual = self.R[rows]
                if moved:
                    residual -= steps[: len(residual)] * self._image[rows]
                squares += _dots(residual, residual)
                if coarse is not None:
                    np.dot(matrix.roots[rows], residual, out=sums[block])
            return squares

        squares = np.sum(threaded_map(update, matrix.parts), axis=0)
        if coarse is None:
            return squares, squares
        self._coarse = coarse.solve(sums)
        return squares + _dots(sums, self._coarse), squares

    def turn(self, ratio: NDArray) -> None:
        matrix, bounds = self.matrix, self.matrix.bounds
        ratios, steps = self._repeated(ratio.astype(self.R.dtype)), self._repeated(self._step)

        def update(part: tuple[range, slice]) -> None:
            for block in part[0]:
                rows = slice(bounds[block], bounds[block + 1])
                direction = self.direction[rows]
                if self.outputs is None:
                    self.solution[rows] += steps[: len(direction)] * direction
                direction *= ratios[: len(direction)]
                direction += self.R[rows]
                if self._coarse is not None:
                    direction += np.outer(matrix.roots[rows], self._coarse[block])

        threaded_map(update, matrix.parts)

    def _repeated(self, factors: NDArray) -> NDArray:
        """Factors of the columns in each row of a block: numpy multiplies arrays of one shape several times faster."""
        return np.repeat(factors[None], np.diff(self.matrix.bounds).max(), axis=0)


def _dots(P: NDArray, Q: NDArray) -> NDArray:
    """Σ_i p_ij·q_ij."""
    return np.einsum("ij,ij->j", P, Q)
