"""Non-negative least squares for many right-hand sides by block principal pivoting."""

import numpy as np
from numpy.typing import NDArray

from lmssc.core.latent import nonnegative_loadings
from lmssc.numerics.conjugate_gradient import solver_tolerance

# Rounds in which all wrong signs of a row are exchanged at once although that did not make them fewer.
PATIENCE = 3
MOST_ROUNDS = 200
# Beyond this condition of the Gram matrix signs are rounding errors, and coordinate descent is the safer way.
WORST_CONDITION = 1e10


def pivoted_loadings(cross: NDArray, gram: NDArray, start: NDArray | None = None) -> NDArray:
    """Rows w ≥ 0 that minimise wᵀGw − 2cᵀw, for all rows c of C, exactly.

    A row guesses which of its entries are free, solves for these with the others at 0, and exchanges entries whose
    sign is wrong (a free one below 0, a gradient below 0 at an entry held at 0): all of them as long as they become
    fewer, else the last one alone, which ends after finitely many rounds. Rows with equally many free entries are
    solved together; where most are free, by way of the few that are not.

    Parameters
    ----------
    cross : ndarray of shape (d, r)
        C = XᵀH.
    gram : ndarray of shape (r, r)
        G = HᵀH.
    start : ndarray of shape (d, r), optional
        A solution of a similar problem, whose positive entries are the first guess.

    Returns
    -------
    ndarray of shape (d, r)
        The same as `lmssc.core.latent.nonnegative_loadings`, in a fraction of its time where G is well conditioned;
        that function is called where it is not.

    Examples
    --------
    >>> pivoted_loadings(np.array([[2.0, -1.0], [1.0, 1.0]]), np.array([[1.0, 0.5], [0.5, 1.0]])).round(4)
    array([[2.    , 0.    ],
           [0.6667, 0.6667]])
    """
    norms = np.sqrt(np.diag(gram))
    # A component of which H has nothing but rounding errors gets no loadings.
    used = norms > 100 * np.finfo(norms.dtype).eps * norms.max()
    if not used.any():
        return np.zeros_like(cross)
    if not used.all():
        result = np.zeros_like(cross)
        start = None if start is None else start[:, used]
        result[:, used] = pivoted_loadings(cross[:, used], gram[np.ix_(used, used)], start)
        return result
    # Rounding hides how bad a condition is beyond 1/ε.
    worst = min(WORST_CONDITION, 0.01 / float(np.finfo(gram.dtype).eps))
    if np.linalg.cond(gram / np.outer(norms, norms)) > worst:
        return nonnegative_loadings(cross, gram, start)
    gram, cross = gram / np.outer(norms, norms), cross / norms
    inverse = np.linalg.inv(gram)
    free = np.zeros(cross.shape, dtype=bool) if start is None else start > 0
    # Signs of numbers that are zero but for rounding are not wrong.
    slack = solver_tolerance(cross.dtype, 1e-12) * np.abs(cross).max(axis=1, keepdims=True)
    result = np.zeros_like(cross)
    fewest = np.full(len(cross), cross.shape[1] + 1)
    patience = np.full(len(cross), PATIENCE)
    rows = np.arange(len(cross))
    for _ in range(MOST_ROUNDS):
        loadings = _solve_faces(cross[rows], gram, inverse, free[rows])
        gradient = loadings @ gram - cross[rows]
        result[rows] = np.maximum(loadings, 0)
        wrong = np.where(free[rows], loadings < -slack[rows], gradient < -slack[rows])
        count = wrong.sum(axis=1)
        rows, wrong, count = rows[count > 0], wrong[count > 0], count[count > 0]
        if not len(rows):
            return result / norms
        fewer = count < fewest[rows]
        fewest[rows] = np.minimum(fewest[rows], count)
        patience[rows] = np.where(fewer, PATIENCE, patience[rows] - 1)
        single = np.flatnonzero(patience[rows] < 0)
        last = wrong.shape[1] - 1 - wrong[single, ::-1].argmax(axis=1)
        wrong[single] = False
        wrong[single, last] = True
        free[rows] ^= wrong
    return nonnegative_loadings(cross, gram, result) / norms


def _solve_faces(cross: NDArray, gram: NDArray, inverse: NDArray, free: NDArray) -> NDArray:
    """The minimiser of each row with all entries that are not free at 0, signs as they come."""
    width = cross.shape[1]
    sizes = free.sum(axis=1)
    result = np.zeros_like(cross)
    unbounded = cross @ inverse
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        by_free = size <= width - size
        few = size if by_free else width - size
        chosen = free[rows] if by_free else ~free[rows]
        columns = np.nonzero(chosen)[1].reshape(len(rows), few)
        matrix = gram if by_free else inverse
        block = matrix[columns[:, :, None], columns[:, None, :]]
        if by_free:
            solution = np.linalg.solve(block, np.take_along_axis(cross[rows], columns, 1)[:, :, None])[:, :, 0]
            result[rows[:, None], columns] = solution
        else:
            # G·w = c + m with multipliers m where w is held at 0: w = G⁻¹c + G⁻¹m, and m makes these entries 0.
            held = np.take_along_axis(unbounded[rows], columns, 1)
            multipliers = np.zeros((len(rows), width), dtype=cross.dtype)
            np.put_along_axis(multipliers, columns, -np.linalg.solve(block, held[:, :, None])[:, :, 0], 1)
            result[rows] = np.where(chosen, 0, unbounded[rows] + multipliers @ inverse)
    return result
