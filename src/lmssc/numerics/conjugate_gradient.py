"""Conjugate gradients for many right-hand sides at once."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.parallel import threaded_map

Result = TypeVar("Result")


@dataclass(frozen=True)
class ColumnBatches:
    """How arrays are cut into batches of rows."""

    n_joined_rows: int = 64
    """Rows that are reshaped to one long row, which numpy handles several times faster than short ones."""
    n_values: int = 1 << 16
    """Entries of each array per batch: they fit into the cache."""
    n_per_task: int = 16
    """Batches per task of a thread."""


BATCHES = ColumnBatches()


def solver_tolerance(dtype: np.dtype, tol: float = 1e-10) -> float:
    """Relative residual that is reachable in `dtype`: at least `tol`, and at least 8 ε.

    Examples
    --------
    >>> solver_tolerance(np.dtype("float64"))
    1e-10
    >>> solver_tolerance(np.dtype("float32")) > 1e-7
    True
    """
    return max(tol, 8 * float(np.finfo(dtype).eps))


def conjugate_gradient(
    operator: Callable[[NDArray], NDArray],
    rhs: NDArray,
    start: NDArray,
    precondition: Callable[[NDArray], NDArray],
    *,
    tol: float = 1e-10,
    max_iter: int = 5000,
    coupled: bool = False,
    diagonal: NDArray | None = None,
) -> NDArray:
    """Solve M·X = B for a symmetric positive definite M, for all columns of B together.

    Every column has its own step lengths, as if it were solved alone, but all share the calls of `operator`. The
    quadratic ½⟨x, Mx⟩ − ⟨b, x⟩ falls in each step, so the result is never worse than the start, whatever `tol`.

    Parameters
    ----------
    operator : callable
        X ↦ M·X for an array of the shape of `rhs`. It may return the same array each time.
    rhs : ndarray of shape (n, m)
        B.
    start : ndarray of shape (n, m)
        First guess of X. Columns with a right-hand side of zero are zero.
    precondition : callable
        R ↦ an approximation of M⁻¹·R, symmetric positive definite, such as division by the diagonal of M. It may return
        the same array each time.
    tol : float
        A column is done when the norm of its residual is at most `tol` times that of its right-hand side.
    max_iter : int
        Maximum number of steps.
    coupled : bool
        Whether the operator mixes the columns, which makes them one system of n·m unknowns.
    diagonal : ndarray of shape (n,), optional
        Diagonal of M. A column stops when the curvature ⟨p, Mp⟩ along its direction p is no more than rounding.

    Returns
    -------
    ndarray of shape (n, m)
        X.

    Examples
    --------
    >>> M = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> B = np.array([[1.0, 0.0], [2.0, 0.0]])
    >>> conjugate_gradient(lambda X: M @ X, B, np.zeros_like(B), lambda R: R / np.diag(M)[:, None]).round(4)
    array([[0.0909, 0.    ],
           [0.6364, 0.    ]])
    """
    if not rhs.size:
        return np.zeros_like(rhs)
    system = _InMemory(operator, rhs, start, precondition, coupled, diagonal)
    iterate(system, tol, max_iter)
    return system.X


class System(Protocol):
    """A linear system M·X = B for all columns of B, and where its solution has got to."""

    def begin(self) -> tuple[NDArray, NDArray, NDArray]:
        """⟨b, b⟩, ⟨r, z⟩ and ⟨r, r⟩ of each column; r is the residual, and z what the preconditioner makes of it."""

    def curvature(self) -> tuple[NDArray, NDArray]:
        """⟨p, Mp⟩ of each direction p, and how much of it is no more than rounding."""

    def advance(self, step: NDArray) -> tuple[NDArray, NDArray]:
        """⟨r, z⟩ and ⟨r, r⟩ after X has moved by `step` along the directions."""

    def turn(self, ratio: NDArray) -> None:
        """The next directions: z, plus `ratio` times the last ones."""


def iterate(system: System, tol: float, max_iter: int) -> None:
    """Conjugate gradients, wherever the vectors are: `conjugate_gradient` says what they do."""
    size, residual, left = system.begin()
    target = tol**2 * size
    for _ in range(max_iter):
        active = left > target
        if not active.any():
            break
        curvature, rounding = system.curvature()
        active &= curvature > rounding
        if not active.any():
            break
        previous = residual
        step = np.divide(residual, curvature, out=np.zeros_like(residual), where=active)
        residual, left = system.advance(step)
        system.turn(np.divide(residual, previous, out=np.zeros_like(residual), where=active & (previous > 0)))


class _InMemory:
    """A system whose vectors are arrays in memory."""

    def __init__(
        self,
        operator: Callable[[NDArray], NDArray],
        rhs: NDArray,
        start: NDArray,
        precondition: Callable[[NDArray], NDArray],
        coupled: bool,
        diagonal: NDArray | None,
    ) -> None:
        self._operator, self._precondition = operator, precondition
        self._columns = Columns(rhs.shape, coupled)
        self._rhs, self._start = rhs, start
        self._rounding = None if diagonal is None else rounding_of(diagonal, rhs.dtype)

    def begin(self) -> tuple[NDArray, NDArray, NDArray]:
        (size,) = self._columns.dots((self._rhs, self._rhs))
        self.X = np.ascontiguousarray(np.where(size > 0, self._start, self._rhs.dtype.type(0)))
        self.R = np.ascontiguousarray(self._rhs - self._operator(self.X))
        self.Z = self._precondition(self.R)
        self.direction = self.Z.copy(order="C")
        residual, left = self._columns.dots((self.R, self.Z), (self.R, self.R))
        return size, residual, left

    def curvature(self) -> tuple[NDArray, NDArray]:
        self._image = self._operator(self.direction)
        (curvature,) = self._columns.dots((self.direction, self._image))
        if self._rounding is None:
            return curvature, np.zeros_like(curvature)
        return curvature, self._columns.squares(self.direction, self._rounding)

    def advance(self, step: NDArray) -> tuple[NDArray, NDArray]:
        self._columns.add((self.X, step, self.direction), (self.R, -step, self._image))
        self.Z = self._precondition(self.R)
        residual, left = self._columns.dots((self.R, self.Z), (self.R, self.R))
        return residual, left

    def turn(self, ratio: NDArray) -> None:
        self._columns.scale_and_add(self.direction, ratio, self.Z)


def rounding_of(diagonal: NDArray, dtype: np.dtype) -> NDArray:
    """Weights w for which Σ w_i·p_i² bounds the rounding error of ⟨p, Mp⟩; `diagonal` is that of M."""
    return 4 * np.finfo(dtype).eps * diagonal


class Columns:
    """Column-wise dot products and updates of arrays of one shape, in batches of rows on all threads.

    Arrays that are updated must be C-contiguous.
    """

    def __init__(self, shape: tuple[int, ...], coupled: bool = False) -> None:
        n_rows, n_columns = shape
        joined = BATCHES.n_joined_rows
        batch_size = joined * max(1, BATCHES.n_values // (joined * n_columns))
        batches = list(gen_batches(n_rows, batch_size))
        self._tasks = [batches[task] for task in gen_batches(len(batches), BATCHES.n_per_task)]
        self._repeats = min(batch_size, n_rows)
        self._coupled = coupled
        self._is_small = len(batches) == 1

    def dots(self, *pairs: tuple[NDArray, NDArray]) -> NDArray:
        """Σ_i p_ij·q_ij of each pair of arrays."""
        if self._is_small:
            return self._joined(np.array([np.einsum("ij,ij->j", P, Q) for P, Q in pairs]))
        return self._sum(lambda rows: [_dots(P[rows], Q[rows]) for P, Q in pairs])

    def squares(self, P: NDArray, weights: NDArray) -> NDArray:
        """Σ_i w_i·p_ij²."""
        return self._sum(lambda rows: [weights[rows] @ np.square(P[rows])])[0]

    def add(self, *sums: tuple[NDArray, NDArray, NDArray]) -> None:
        """Add to each column of an array a multiple of the same column of another: (result, factors, other)."""
        if self._is_small:
            for result, factors, change in sums:
                result += factors * change
            return
        repeated = [np.tile(factors, self._repeats) for _, factors, _ in sums]

        def add_rows(rows: slice) -> None:
            for (result, _, change), factors in zip(sums, repeated, strict=True):
                flat = result[rows].reshape(-1)
                flat += factors[: len(flat)] * change[rows].reshape(-1)

        self._map(add_rows)

    def scale_and_add(self, result: NDArray, factors: NDArray, change: NDArray) -> None:
        """Multiply each column by its factor, then add the same column of `change`."""
        if self._is_small:
            result *= factors
            result += change
            return
        repeated = np.tile(factors, self._repeats)

        def update(rows: slice) -> None:
            flat = result[rows].reshape(-1)
            flat *= repeated[: len(flat)]
            flat += change[rows].reshape(-1)

        self._map(update)

    def _sum(self, of_rows: Callable[[slice], list[NDArray]]) -> NDArray:
        return self._joined(np.sum(self._map(of_rows), axis=0))

    def _joined(self, sums: NDArray) -> NDArray:
        """The sums of columns that are one system."""
        return np.broadcast_to(sums.sum(axis=1, keepdims=True), sums.shape) if self._coupled else sums

    def _map(self, of_rows: Callable[[slice], Result]) -> list[Result]:
        """`of_rows` of each batch."""
        return list(chain.from_iterable(threaded_map(lambda task: [of_rows(rows) for rows in task], self._tasks)))


def _dots(P: NDArray, Q: NDArray) -> NDArray:
    """Σ_i p_ij·q_ij."""
    n_columns, n_joined = P.shape[1], BATCHES.n_joined_rows
    whole = len(P) - len(P) % n_joined
    joined = [part[:whole].reshape(-1, n_joined * n_columns) for part in (P, Q)]
    sums = np.einsum("ij,ij->j", *joined).reshape(n_joined, n_columns).sum(axis=0)
    return sums + np.einsum("ij,ij->j", P[whole:], Q[whole:])
