"""Conjugate gradients for many right-hand sides at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lmssc.threads import slices_of

# Numbers of each array that are updated at a time.
BLOCK_NUMBERS = 1 << 16


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
        X ↦ M·X for an array of the shape of `rhs`.
    rhs : ndarray of shape (n, m)
        B.
    start : ndarray of shape (n, m)
        Where to begin. Columns whose right-hand side is zero begin (and end) at zero.
    precondition : callable
        R ↦ an approximation of M⁻¹·R, symmetric positive definite; division by the diagonal of M, for example.
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

    def dot(P: NDArray, Q: NDArray) -> NDArray:
        columns = np.einsum("ij,ij->j", P, Q)
        return np.full_like(columns, columns.sum()) if coupled else columns

    size = dot(rhs, rhs)
    X = np.where(size > 0, start, rhs.dtype.type(0))
    R = rhs - operator(X)
    scratch = np.empty_like(R)
    blocks = slices_of(len(R), max(1, BLOCK_NUMBERS // R.shape[1]))
    direction = precondition(R)
    residual = dot(R, direction)
    target = tol**2 * size
    least = None if diagonal is None else 4 * np.finfo(rhs.dtype).eps * diagonal[:, None]
    for _ in range(max_iter):
        active = dot(R, R) > target
        if not active.any():
            break
        image = operator(direction)
        curvature = dot(direction, image)
        active &= curvature > (0 if least is None else dot(direction, np.multiply(least, direction, out=scratch)))
        if not active.any():
            break
        step = np.divide(residual, curvature, out=np.zeros_like(residual), where=active)
        # Some rows at a time, which stay in the cache.
        for rows in blocks:
            X[rows] += np.multiply(step, direction[rows], out=scratch[rows])
            R[rows] -= np.multiply(step, image[rows], out=scratch[rows])
        preconditioned = precondition(R)
        previous, residual = residual, dot(R, preconditioned)
        ratio = np.divide(residual, previous, out=np.zeros_like(residual), where=active & (previous > 0))
        for rows in blocks:
            direction[rows] *= ratio
            direction[rows] += preconditioned[rows]
    return X
