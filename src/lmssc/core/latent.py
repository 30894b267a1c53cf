"""The latent factorisation: loadings W of each view and the shared latent positions H."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.optimize import nnls

from lmssc.data.views import Views
from lmssc.numerics.conjugate_gradient import conjugate_gradient, solver_tolerance
from lmssc.numerics.knn.exact import BLOCK_BYTES
from lmssc.numerics.sparse_ops import threaded_product

SWEEPS_A_ROUND = 5
# Smallest over largest squared singular value down to which a polar factor may be computed from the squares.
WELL_CONDITIONED = 1e-4
# A group of samples that lack the same views leaves directions of H all but undetermined there, which takes
# thousands of steps to settle. Every step lowers J, so what is left is for the next iteration.
MOST_COUPLED_STEPS = 50


def nonnegative_loadings(
    cross: NDArray, gram: NDArray, start: NDArray | None = None, tol: float = 1e-10, max_rounds: int = 500
) -> NDArray:
    """Update of W for one view: min ‖X − H·Wᵀ‖² over W ≥ 0, by coordinate descent.

    The rows of W are non-negative least squares that share the Gram matrix G = HᵀH; with C = XᵀH a sweep sets,
    for each component j in turn and all rows at once, w_j = ( w_j + (c_j − W·g_j)/g_jj )₊. Each such step is the
    exact minimiser over w_j, so the loss never rises. Where columns of H are alike sweeps creep; a step to the
    minimiser over the loadings that are not zero, as far as it stays non-negative, follows every few sweeps.

    Parameters
    ----------
    cross : ndarray of shape (d, r)
        C = XᵀH.
    gram : ndarray of shape (r, r)
        G = HᵀH.
    start : ndarray of shape (d, r), optional
        Loadings to start from; zeros by default.
    tol : float
        A row is done when no step in a sweep moved it further than `tol` times its largest loading.
    max_rounds : int
        Most rounds of sweeps; rows that are not done then are solved one by one.

    Returns
    -------
    ndarray of shape (d, r)
        W. The loadings of a component of which H has nothing but rounding errors are 0.

    Examples
    --------
    >>> nonnegative_loadings(np.array([[2.0, -1.0]]), np.eye(2))
    array([[2., 0.]])
    """
    tol = solver_tolerance(cross.dtype, tol)
    norms = np.sqrt(np.diag(gram))
    used = norms > 100 * np.finfo(norms.dtype).eps * norms.max()
    result = np.zeros_like(cross)
    if not used.any():
        return result
    # Columns of H of unit norm, so that components of all sizes are solved with the same care.
    norms = norms[used]
    gram = gram[np.ix_(used, used)] / np.outer(norms, norms)
    cross = cross[:, used] / norms
    best = result[:, used] if start is None else start[:, used] * norms
    open_rows, loadings = np.arange(len(cross)), best.copy()
    for _ in range(max_rounds):
        for _ in range(SWEEPS_A_ROUND):
            furthest = _sweep(loadings, cross[open_rows], gram)
        best[open_rows] = loadings
        moving = furthest > tol * loadings.max(axis=1)
        open_rows = open_rows[moving]
        if not len(open_rows):
            break
        loadings = _face_step(loadings[moving], cross[open_rows], gram)
    best[open_rows] = _active_sets(cross[open_rows], gram)
    result[:, used] = best / norms
    return result


def _active_sets(cross: NDArray, gram: NDArray) -> NDArray:
    """The minimisers of rows for which steps are too slow, one by one: with G = AᵀA and Aᵀb = c that of ‖A·w − b‖²."""
    values, vectors = linalg.eigh(gram.astype(np.float64))
    kept = values > len(gram) * 100 * np.finfo(gram.dtype).eps * values[-1]
    roots = np.sqrt(values[kept])
    factor, targets = roots[:, None] * vectors[:, kept].T, cross @ vectors[:, kept] / roots
    solutions = [nnls(factor, target, maxiter=100 * len(gram))[0] for target in targets]
    return np.array(solutions, dtype=cross.dtype).reshape(cross.shape)


def _sweep(loadings: NDArray, cross: NDArray, gram: NDArray) -> NDArray:
    """One step in each component, in place; how far each row moved at most."""
    furthest = np.zeros(len(loadings), dtype=loadings.dtype)
    for j in range(gram.shape[0]):
        new = np.maximum(loadings[:, j] + (cross[:, j] - loadings @ gram[:, j]) / gram[j, j], 0)
        furthest = np.maximum(furthest, np.abs(new - loadings[:, j]))
        loadings[:, j] = new
    return furthest


def _face_step(loadings: NDArray, cross: NDArray, gram: NDArray) -> NDArray:
    """From each row towards its minimiser over the loadings that are not zero, up to the first that becomes zero."""
    result = np.empty_like(loadings)
    rows = max(1, BLOCK_BYTES // gram.nbytes)
    for first in range(0, len(loadings), rows):
        block = loadings[first : first + rows]
        free = block > 0
        slope = np.where(free, cross[first : first + rows] - block @ gram, 0)
        faces = gram * (free[:, :, None] & free[:, None, :])
        cutoff = len(gram) * 100 * float(np.finfo(gram.dtype).eps)
        move = np.einsum("ijk,ik->ij", np.linalg.pinv(faces, rcond=cutoff, hermitian=True), slope) * free
        falling = move < 0
        ratio = np.where(falling, block / -np.where(falling, move, -1), np.inf)
        step = np.minimum(ratio.min(axis=1, keepdims=True), 1)
        result[first : first + rows] = np.where(ratio <= step, 0, np.maximum(block + step * move, 0))
    return result


def orthonormal_loadings(XtH: Sequence[NDArray]) -> list[NDArray]:
    """Update of W for all views together: min Σ_v ‖X^v − H·W^vᵀ‖² over stacked W with WᵀW = I.

    With the columns of the stacked W orthonormal the loss is ‖X‖² − 2·Tr(WᵀXᵀH) + ‖H‖², so the minimiser is the
    orthogonal polar factor of XᵀH. It fixes the scale that W and H share.

    Parameters
    ----------
    XtH : sequence of ndarray of shape (d_v, r)
        X^vᵀH of each view, Σ d_v ≥ r.

    Examples
    --------
    >>> W = orthonormal_loadings([np.array([[3.0, 0.0]]), np.array([[0.0, 0.5]])])
    >>> [w.tolist() for w in W]
    [[[1.0, 0.0]], [[0.0, 1.0]]]
    """
    stacked = np.vstack(XtH)
    values, basis = linalg.eigh(stacked.T @ stacked)
    if values[0] > WELL_CONDITIONED * values[-1]:
        # C(CᵀC)^−½, and one Newton step that takes away what squaring lost; several times faster than an SVD.
        factor = stacked @ (basis / np.sqrt(values) @ basis.T)
        factor = factor @ (1.5 * np.eye(len(values), dtype=factor.dtype) - 0.5 * factor.T @ factor)
    else:
        left, _, right = linalg.svd(stacked, full_matrices=False)
        factor = left @ right
    return np.vsplit(factor, np.cumsum([len(cross) for cross in XtH])[:-1])


def update_latent(
    views: Views,
    loadings: Sequence[NDArray],
    laplacian: sparse.csr_array,
    beta: float,
    start: NDArray,
    metric: NDArray | None = None,
    tol: float = 1e-10,
    ridge: NDArray | None = None,
) -> NDArray:
    """Update of H: min Σ_v ‖X^v − H·W^vᵀ‖² + β·Tr(HᵀLHM), M diagonal, with h·R·hᵀ more for rows that lack views.

    H·A + β·L·H·M = B with A = Σ W^vᵀW^v and B = Σ X^vW^v. With UᵀAU = Λ and UᵀMU = I, H = KUᵀ falls into r
    independent systems (λ_j·I + βL)·k_j = (BU)_j, solved by one run of conjugate gradients. A direction that no loading
    uses (λ_j = 0) has (BU)_j = 0 and gets k_j = 0; so does a component without loadings.

    Where samples lack views, a sample's A is the sum over the views it has, and R; the systems are then coupled and
    are solved as one.

    Parameters
    ----------
    views : Views
        The scaled views.
    loadings : sequence of ndarray of shape (d_v, r)
        W^v.
    laplacian : csr_array of shape (n, n)
        L.
    beta : float
        β.
    start : ndarray of shape (n, r)
        Positions to start the solver from.
    metric : ndarray of shape (r,), optional
        Diagonal of M, positive; ones if None.
    tol : float
        Relative residual of the solver.
    ridge : ndarray of shape (r, r), optional
        R, for samples that lack views; zeros if None.

    Returns
    -------
    ndarray of shape (n, r)
        H.

    Examples
    --------
    >>> views = Views.from_arrays([np.array([[1.0], [3.0]])])
    >>> L = sparse.csr_array([[1.0, -1.0], [-1.0, 1.0]])
    >>> update_latent(views, [np.array([[1.0]])], L, beta=0.5, start=np.zeros((2, 1))).round(3)
    array([[1.5],
           [2.5]])
    """
    alive = np.any([loading.any(axis=0) for loading in loadings], axis=0)
    if ridge is not None:  # it ties what loadings use to what they do not
        alive[:] = True
    if not alive.any():
        return np.zeros_like(start)
    loadings = [loading[:, alive] for loading in loadings]
    grams = [loading.T @ loading for loading in loadings]
    # U = M^−½·Q with Q the eigenvectors of M^−½·A·M^−½.
    roots = np.sqrt(np.ones_like(start[0]) if metric is None else metric)[alive]
    eigenvalues, basis = linalg.eigh(sum(grams) / np.outer(roots, roots))
    basis /= roots[:, None]
    # What rounding leaves of an eigenvalue that is zero.
    seen = eigenvalues > eigenvalues[-1] * len(eigenvalues) * 100 * np.finfo(eigenvalues.dtype).eps
    if ridge is not None:
        seen[:] = True
    eigenvalues, basis = eigenvalues[seen], basis[:, seen]
    rhs = views.dot([loading @ basis for loading in loadings])
    degrees = laplacian.diagonal()[:, None]
    product = threaded_product(laplacian)

    if views.complete:
        inverse = 1 / (eigenvalues + beta * degrees)
        image, preconditioned = np.empty_like(rhs), np.empty_like(rhs)

        def operator(latent: NDArray) -> NDArray:
            product(latent, image)
            np.multiply(image, beta, out=image)
            np.add(image, latent * eigenvalues, out=image)
            return image

        def precondition(residual: NDArray) -> NDArray:
            return np.multiply(residual, inverse, out=preconditioned)
    else:
        inside = None if ridge is None else basis.T @ ridge @ basis
        patterns = _solve_patterns(views, [basis.T @ gram @ basis for gram in grams], inside)

        def operator(latent: NDArray) -> NDArray:
            image = beta * product(latent)
            for rows, gram, _, _ in patterns:
                image[rows] += latent[rows] @ gram
            return image

        def precondition(residual: NDArray) -> NDArray:
            solution = np.empty_like(residual)
            for rows, _, values, vectors in patterns:
                solution[rows] = (residual[rows] @ vectors / (values + beta * degrees[rows])) @ vectors.T
            return solution

    # U with a row for each component, of zeros for those without loadings.
    whole, scaled = np.zeros((2, len(alive), basis.shape[1]), dtype=basis.dtype)
    whole[alive], scaled[alive] = basis, basis * roots[:, None] ** 2
    solution = conjugate_gradient(
        operator,
        rhs,
        start @ scaled,
        precondition,
        tol=solver_tolerance(rhs.dtype, tol),
        max_iter=5000 if views.complete else MOST_COUPLED_STEPS,
        coupled=not views.complete,
    )
    return solution @ whole.T


def _solve_patterns(
    views: Views, grams: Sequence[NDArray], ridge: NDArray | None
) -> list[tuple[NDArray, NDArray, NDArray, NDArray]]:
    """For each set of views that some samples have: these samples, their A, and its eigen-decomposition."""
    patterns = []
    for rows, has in views.patterns():
        gram = np.sum([gram for gram, there in zip(grams, has, strict=True) if there], axis=0)
        if ridge is not None and not has.all():
            gram = gram + ridge
        values, vectors = linalg.eigh(gram)
        patterns.append((rows, gram, np.maximum(values, 0), vectors))
    return patterns
