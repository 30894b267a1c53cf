"""Conjugate gradients for many right-hand sides at once."""

from collections.abc import Callable
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.parallel import slices_of, threaded_map

Result = TypeVar("Result")

# Rows that are taken for one long row; numbers of each array that are worked on at a time, as many as fit into the
# cache; and such blocks that are enough for a thread.
JOINED_ROWS = 64
BLOCK_NUMBERS = 1 << 16
BLOCKS_SHARED = 16


def solver_tolerance(dtype: np.dtype, tol: float = 1e-10) -> float:
    """Relative residual that `dtype` can reach: `tol`, or what rounding leaves of it.

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

    Every column has its own step lengths, as if it were solved alone, but one call of `operator` serves them
    all. The quadratic ½⟨x, Mx⟩ − ⟨b, x⟩ falls in each step, so a warm start is never made worse, whatever `tol`.

    Parameters
    ----------
    operator : callable
        X ↦ M·X for an array of the shape of `rhs`; it may return the same array each time.
    rhs : ndarray of shape (n, m)
        B.
    start : ndarray of shape (n, m)
        Where to begin. Columns whose right-hand side is zero begin (and end) at zero.
    precondition : callable
        R ↦ an approximation of M⁻¹·R, symmetric positive definite; division by the diagonal of M, for example. It may
        return the same array each time.
    tol : float
        A column is done when its residual is at most `tol` times its right-hand side.
    max_iter : int
        Most steps.
    coupled : bool
        The columns are one system of n·m unknowns, because the operator mixes them.
    diagonal : ndarray of shape (n,), optional
        That of M, to tell curvature from what rounding makes of none: a column ends where it has no more.

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
    columns = _Columns(rhs.shape, coupled)
    (size,) = columns.dots((rhs, rhs))
    X = np.ascontiguousarray(np.where(size > 0, start, rhs.dtype.type(0)))
    R = np.ascontiguousarray(rhs - operator(X))
    Z = precondition(R)
    direction = Z.copy(order="C")
    residual, left = columns.dots((R, Z), (R, R))
    target = tol**2 * size
    rounding = None if diagonal is None else 4 * np.finfo(rhs.dtype).eps * diagonal
    for _ in range(max_iter):
        active = left > target
        if not active.any():
            break
        image = operator(direction)
        (curvature,) = columns.dots((direction, image))
        active &= curvature > (0 if rounding is None else columns.squares(direction, rounding))
        if not active.any():
            break
        step = np.divide(residual, curvature, out=np.zeros_like(residual), where=active)
        columns.add((X, step, direction), (R, -step, image))
        Z = precondition(R)
        previous = residual
        residual, left = columns.dots((R, Z), (R, R))
        ratio = np.divide(residual, previous, out=np.zeros_like(residual), where=active & (previous > 0))
        columns.turn(direction, ratio, Z)
    return X


class _Columns:
    """Sums and multiples of the columns of arrays that have one shape, some rows at a time, many rows on all threads.

    Several short rows are taken for one long row, which numpy is several times faster with; arrays that change must be
    stored by rows.
    """

    def __init__(self, shape: tuple[int, int], coupled: bool) -> None:
        n_rows, n_columns = shape
        at_once = JOINED_ROWS * max(1, BLOCK_NUMBERS // (JOINED_ROWS * n_columns))
        blocks = slices_of(n_rows, at_once)
        self._shares = [blocks[share] for share in slices_of(len(blocks), BLOCKS_SHARED)]
        self._repeats = min(at_once, n_rows)
        self._coupled = coupled

    def dots(self, *pairs: tuple[NDArray, NDArray]) -> NDArray:
        """Σ_i p_ij·q_ij of each pair of arrays."""
        return self._sum(lambda rows: [_dots(P[rows], Q[rows]) for P, Q in pairs])

    def squares(self, P: NDArray, weights: NDArray) -> NDArray:
        """Σ_i w_i·p_ij²."""
        return self._sum(lambda rows: [weights[rows] @ np.square(P[rows])])[0]

    def add(self, *sums: tuple[NDArray, NDArray, NDArray]) -> None:
        """Add to each column of an array a multiple of that of another."""
        repeated = [np.tile(factors, self._repeats) for _, factors, _ in sums]

        def add_rows(rows: slice) -> None:
            for (result, _, change), factors in zip(sums, repeated, strict=True):
                flat = result[rows].reshape(-1)
                flat += factors[: len(flat)] * change[rows].reshape(-1)

        self._map(add_rows)

    def turn(self, result: NDArray, factors: NDArray, change: NDArray) -> None:
        """Multiply each column, and add another to it."""
        repeated = np.tile(factors, self._repeats)

        def turn_rows(rows: slice) -> None:
            flat = result[rows].reshape(-1)
            flat *= repeated[: len(flat)]
            flat += change[rows].reshape(-1)

        self._map(turn_rows)

    def _sum(self, of_rows: Callable[[slice], list[NDArray]]) -> NDArray:
        sums = np.sum(self._map(of_rows), axis=0)
        return np.broadcast_to(sums.sum(axis=1, keepdims=True), sums.shape) if self._coupled else sums

    def _map(self, of_rows: Callable[[slice], Result]) -> list[Result]:
        """The function of each block."""
        return list(chain.from_iterable(threaded_map(lambda share: [of_rows(rows) for rows in share], self._shares)))


def _dots(P: NDArray, Q: NDArray) -> NDArray:
    """Σ_i p_ij·q_ij."""
    n_columns = P.shape[1]
    whole = len(P) - len(P) % JOINED_ROWS
    joined = [part[:whole].reshape(-1, JOINED_ROWS * n_columns) for part in (P, Q)]
    sums = np.einsum("ij,ij->j", *joined).reshape(JOINED_ROWS, n_columns).sum(axis=0)
    return sums + np.einsum("ij,ij->j", P[whole:], Q[whole:])
