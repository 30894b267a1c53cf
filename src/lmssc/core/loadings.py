"""Update of the loadings W: non-negative least squares by block principal pivoting, or orthonormal columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import lsq_linear, nnls

from lmssc.numerics.conjugate_gradient import solver_tolerance


@dataclass(frozen=True)
class LoadingsSettings:
    """Settings of the two updates of W."""

    n_full_exchanges: int = 3
    """Rounds of full exchanges that a row may take without fewer wrong signs, before it exchanges one entry at a
    time."""
    max_rounds: int = 200
    """Rounds of pivoting; rows that are not done then are solved by `scipy.optimize.nnls`."""
    max_condition: float = 1e10
    """Condition number of the Gram matrix above which signs are rounding errors and all rows are solved by
    `scipy.optimize.nnls`."""
    min_eigenvalue_ratio: float = 1e-4
    """Smallest over largest eigenvalue of CᵀC down to which the polar factor of C is computed from CᵀC."""


SETTINGS = LoadingsSettings()


def nonnegative_loadings(cross: NDArray, gram: NDArray, start: NDArray | None = None) -> NDArray:
    """Update of W for one view: min ‖X − H·Wᵀ‖² over W ≥ 0, exactly.

    Each row w of W minimises wᵀGw − 2cᵀw over w ≥ 0, with c the same row of C = XᵀH and G = HᵀH.

    Parameters
    ----------
    cross : ndarray of shape (d, r)
        C = XᵀH.
    gram : ndarray of shape (r, r)
        G = HᵀH.
    start : ndarray of shape (d, r), optional
        Solution of a similar problem. Its positive entries are the first guess of which entries are positive.

    Returns
    -------
    ndarray of shape (d, r)
        W. A component of H that is zero up to rounding gets zero loadings.

    Examples
    --------
    >>> nonnegative_loadings(np.array([[2.0, -1.0], [1.0, 1.0]]), np.array([[1.0, 0.5], [0.5, 1.0]])).round(4)
    array([[2.    , 0.    ],
           [0.6667, 0.6667]])
    """
    norms = np.sqrt(np.diag(gram))
    used = norms > 100 * np.finfo(norms.dtype).eps * norms.max()
    result = np.zeros_like(cross)
    if not used.any():
        return result
    # Components of unit norm, so that small ones are solved as precisely as large ones.
    norms = norms[used]
    gram, cross = gram[np.ix_(used, used)] / np.outer(norms, norms), cross[:, used] / norms
    # Rounding hides condition numbers beyond 1/ε.
    if np.linalg.cond(gram) > min(SETTINGS.max_condition, 0.01 / float(np.finfo(gram.dtype).eps)):
        loadings = _nnls(cross, gram)
    else:
        free = np.zeros(cross.shape, dtype=bool) if start is None else start[:, used] > 0
        loadings = _block_principal_pivoting(cross, gram, free)
    result[:, used] = loadings / norms
    return result


def _block_principal_pivoting(cross: NDArray, gram: NDArray, free: NDArray) -> NDArray:
    """Minimisers of wᵀGw − 2cᵀw over w ≥ 0, for all rows; `free` is a guess of the positive entries.

    Each row solves for its free entries with the others fixed at 0, and then exchanges the entries with a wrong sign:
    free ones below 0, and fixed ones with a gradient below 0. It exchanges all of them as long as their number falls,
    else only the last one, which ends after finitely many rounds.
    """
    inverse = np.linalg.inv(gram)
    # Values that are zero up to rounding do not have a wrong sign.
    slack = solver_tolerance(cross.dtype, 1e-12) * np.abs(cross).max(axis=1, keepdims=True)
    result = np.zeros_like(cross)
    fewest = np.full(len(cross), cross.shape[1] + 1)
    full_exchanges = np.full(len(cross), SETTINGS.n_full_exchanges)
    rows = np.arange(len(cross))
    for _ in range(SETTINGS.max_rounds):
        loadings = _solve_free(cross[rows], gram, inverse, free[rows])
        gradient = loadings @ gram - cross[rows]
        result[rows] = np.maximum(loadings, 0)
        wrong = np.where(free[rows], loadings < -slack[rows], gradient < -slack[rows])
        count = wrong.sum(axis=1)
        rows, wrong, count = rows[count > 0], wrong[count > 0], count[count > 0]
        if not len(rows):
            return result
        fewer = count < fewest[rows]
        fewest[rows] = np.minimum(fewest[rows], count)
        full_exchanges[rows] = np.where(fewer, SETTINGS.n_full_exchanges, full_exchanges[rows] - 1)
        single = np.flatnonzero(full_exchanges[rows] < 0)
        last = wrong.shape[1] - 1 - wrong[single, ::-1].argmax(axis=1)
        wrong[single] = False
        wrong[single, last] = True
        free[rows] ^= wrong
    result[rows] = _nnls(cross[rows], gram)
    return result


def _solve_free(cross: NDArray, gram: NDArray, inverse: NDArray, free: NDArray) -> NDArray:
    """Unconstrained minimiser of each row over its free entries, with the others at 0.

    Rows with equally many free entries are solved together. Where most entries are free, the smaller system of the
    fixed ones is solved instead.
    """
    width = cross.shape[1]
    sizes = free.sum(axis=1)
    result = np.zeros_like(cross)
    unbounded = cross @ inverse
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        by_free = size <= width - size
        chosen = free[rows] if by_free else ~free[rows]
        columns = np.nonzero(chosen)[1].reshape(len(rows), size if by_free else width - size)
        matrix = gram if by_free else inverse
        block = matrix[columns[:, :, None], columns[:, None, :]]
        if by_free:
            solution = np.linalg.solve(block, np.take_along_axis(cross[rows], columns, 1)[:, :, None])[:, :, 0]
            result[rows[:, None], columns] = solution
        else:
            # G·w = c + m with multipliers m at the fixed entries: w = G⁻¹c + G⁻¹m, where m makes these entries 0.
            fixed = np.take_along_axis(unbounded[rows], columns, 1)
            multipliers = np.zeros((len(rows), width), dtype=cross.dtype)
            np.put_along_axis(multipliers, columns, -np.linalg.solve(block, fixed[:, :, None])[:, :, 0], 1)
            result[rows] = np.where(chosen, 0, unbounded[rows] + multipliers @ inverse)
    return result


def _nnls(cross: NDArray, gram: NDArray) -> NDArray:
    """Minimisers of ‖A·w − b‖² over w ≥ 0, row by row, with A and b from G = AᵀA and c = Aᵀb."""
    values, vectors = linalg.eigh(gram.astype(np.float64))
    nonzero = values > len(gram) * 100 * np.finfo(gram.dtype).eps * values[-1]
    roots = np.sqrt(values[nonzero])
    A, targets = roots[:, None] * vectors[:, nonzero].T, cross @ vectors[:, nonzero] / roots
    solutions = [_nnls_of(A, target) for target in targets]
    return np.array(solutions, dtype=cross.dtype).reshape(cross.shape)


def _nnls_of(A: NDArray, target: NDArray) -> NDArray:
    """Minimiser of ‖A·w − b‖² over w ≥ 0."""
    try:
        return nnls(A, target, maxiter=100 * A.shape[1])[0]
    except (RuntimeError, linalg.LinAlgError):  # where rounding decides about signs; older versions raise the latter
        return np.maximum(lsq_linear(A, target, (0, np.inf), method="bvls").x, 0)


def orthonormal_loadings(XtH: Sequence[NDArray]) -> list[NDArray]:
    """Update of W for all views together: min Σ_v ‖X^v − H·W^vᵀ‖² over stacked W with WᵀW = I.

    If the stacked W has orthonormal columns the loss is ‖X‖² − 2·Tr(WᵀXᵀH) + ‖H‖², so the minimiser is the orthogonal
    polar factor of XᵀH. The constraint fixes the scale that W and H share.

    Parameters
    ----------
    XtH : sequence of ndarray of shape (d_v, r)
        X^vᵀH of each view, Σ d_v ≥ r.

    Returns
    -------
    list of ndarray of shape (d_v, r)
        W^v.

    Examples
    --------
    >>> W = orthonormal_loadings([np.array([[3.0, 0.0]]), np.array([[0.0, 0.5]])])
    >>> [w.tolist() for w in W]
    [[[1.0, 0.0]], [[0.0, 1.0]]]
    """
    stacked = np.vstack(XtH)
    # The factor does not depend on the scale. A power of two changes no digit, and squares of large numbers fit again.
    stacked = np.ldexp(stacked, -np.frexp(np.abs(stacked).max(initial=0))[1])
    values, basis = linalg.eigh(stacked.T @ stacked)
    if values[0] > SETTINGS.min_eigenvalue_ratio * values[-1]:
        # C(CᵀC)^−½, several times faster than an SVD. One Newton step restores the digits that squaring lost.
        factor = stacked @ (basis / np.sqrt(values) @ basis.T)
        factor = factor @ (1.5 * np.eye(len(values), dtype=factor.dtype) - 0.5 * factor.T @ factor)
    else:
        left, _, right = linalg.svd(stacked, full_matrices=False)
        factor = left @ right
    return np.vsplit(factor, np.cumsum([len(cross) for cross in XtH])[:-1])
