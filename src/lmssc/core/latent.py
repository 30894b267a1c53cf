"""Update of the latent positions H: one linear system with the graph Laplacian."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.data.views import Views
from lmssc.numerics.conjugate_gradient import conjugate_gradient, solver_tolerance
from lmssc.numerics.sparse_ops import threaded_product

MAX_STEPS = 5000
"""Conjugate-gradient steps where all samples have all views: more than any system took."""
MAX_COUPLED_STEPS = 50
"""Conjugate-gradient steps where views are missing. A group of samples that lack the same views leaves directions of H
almost undetermined, which take thousands of steps. Every step lowers J, so the next iteration can continue."""


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
    """Update of H: min Σ_v ‖X^v − H·W^vᵀ‖² + β·Tr(HᵀLHM), M diagonal; plus Σ h·R·hᵀ over the rows that lack views.

    The minimiser solves H·A + β·L·H·M = B with A = Σ W^vᵀW^v and B = Σ X^vW^v. With UᵀAU = Λ, UᵀMU = I and H = KUᵀ
    it splits into r independent systems (λ_j·I + βL)·k_j = (BU)_j, which one run of conjugate gradients solves. A
    direction that no loading uses has λ_j = 0 and (BU)_j = 0, and gets k_j = 0; so does a component without loadings.

    Where samples lack views, the A of a sample is the sum over the views it has, plus R. This couples the systems, and
    they are solved as one.

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
        H before the update, where the solver starts.
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
    found = find_basis(loadings, metric, ridge)
    if found is None:
        return np.zeros_like(start)
    rhs = views.dot(found.loadings)
    if views.complete:
        system = _independent_systems(laplacian, beta, found.eigenvalues, rhs)
    else:
        basis = found.inner
        inside = None if ridge is None else basis.T @ ridge @ basis
        patterns = _solve_patterns(views, [basis.T @ gram @ basis for gram in found.grams], inside)
        system = _coupled_system(laplacian, beta, patterns)
    solution = conjugate_gradient(
        system.operator,
        rhs,
        start @ found.scaled,
        system.precondition,
        tol=solver_tolerance(rhs.dtype, tol),
        max_iter=MAX_STEPS if views.complete else MAX_COUPLED_STEPS,
        coupled=not views.complete,
    )
    return solution @ found.whole.T


class LatentBasis(NamedTuple):
    """The basis U in which the update of H splits into independent systems.

    Attributes
    ----------
    loadings : list of ndarray of shape (d_v, m)
        W^v·U, whose product with X^v is the right-hand side.
    grams : list of ndarray
        W^vᵀW^v, of components that have loadings.
    inner : ndarray
        U, of these components.
    eigenvalues : ndarray of shape (m,)
        Λ.
    whole, scaled : ndarray of shape (r, m)
        U and M·U, zero for components without loadings: H = KUᵀ and K = HMU.
    """

    loadings: list[NDArray]
    grams: list[NDArray]
    inner: NDArray
    eigenvalues: NDArray
    whole: NDArray
    scaled: NDArray


def find_basis(
    loadings: Sequence[NDArray], metric: NDArray | None = None, ridge: NDArray | None = None
) -> LatentBasis | None:
    """U with UᵀAU = Λ and UᵀMU = I, as `update_latent` explains; None if there are no loadings at all.

    Examples
    --------
    >>> find_basis([np.array([[2.0, 0.0], [0.0, 1.0]])]).eigenvalues
    array([4., 1.])
    """
    alive = np.any([loading.any(axis=0) for loading in loadings], axis=0)
    if ridge is not None:  # R couples components with loadings to those without
        alive[:] = True
    if not alive.any():
        return None
    loadings = [loading[:, alive] for loading in loadings]
    grams = [loading.T @ loading for loading in loadings]
    # U = M^−½·Q with Q the eigenvectors of M^−½·A·M^−½.
    roots = np.sqrt(np.ones_like(loadings[0], shape=len(alive)) if metric is None else metric)[alive]
    matrix = sum(grams) / np.outer(roots, roots)
    eigenvalues, basis = np.diag(matrix).copy(), np.eye(len(matrix), dtype=matrix.dtype)
    rounding = len(matrix) * 100 * np.finfo(matrix.dtype).eps
    if (np.abs(matrix - np.diag(eigenvalues)) > rounding * eigenvalues.max()).any():
        eigenvalues, basis = linalg.eigh(matrix)
    # Otherwise, as with orthonormal loadings, rounding would choose Q, and with it what a loose tolerance leaves of H.
    basis /= roots[:, None]
    if ridge is None:
        # Smaller eigenvalues are zero up to rounding.
        nonzero = eigenvalues > eigenvalues.max() * rounding
        eigenvalues, basis = eigenvalues[nonzero], basis[:, nonzero]
    # U and M·U with a row for each component: zeros for components without loadings.
    whole, scaled = np.zeros((2, len(alive), basis.shape[1]), dtype=basis.dtype)
    whole[alive], scaled[alive] = basis, basis * roots[:, None] ** 2
    return LatentBasis([loading @ basis for loading in loadings], grams, basis, eigenvalues, whole, scaled)


class _System(NamedTuple):
    """The linear system for K: the product with its matrix, and a preconditioner."""

    operator: Callable[[NDArray], NDArray]
    precondition: Callable[[NDArray], NDArray]


class _Pattern(NamedTuple):
    """Samples that have the same views."""

    rows: NDArray
    gram: NDArray  # their A, in the basis U
    values: NDArray  # eigenvalues of A
    vectors: NDArray  # eigenvectors of A


def _independent_systems(laplacian: sparse.csr_array, beta: float, eigenvalues: NDArray, rhs: NDArray) -> _System:
    """(λ_j·I + βL)·k_j for every column, with the diagonal as the preconditioner."""
    inverse = 1 / (eigenvalues + beta * laplacian.diagonal()[:, None])
    product = threaded_product(laplacian)
    image, preconditioned = np.empty_like(rhs), np.empty_like(rhs)

    def operator(latent: NDArray) -> NDArray:
        product(latent, image)
        np.multiply(image, beta, out=image)
        np.add(image, latent * eigenvalues, out=image)
        return image

    def precondition(residual: NDArray) -> NDArray:
        return np.multiply(residual, inverse, out=preconditioned)

    return _System(operator, precondition)


def _coupled_system(laplacian: sparse.csr_array, beta: float, patterns: Sequence[_Pattern]) -> _System:
    """k·A + β·L·k with the A of each sample, and as the preconditioner its inverse with the diagonal of L for L."""
    product, degrees = threaded_product(laplacian), laplacian.diagonal()[:, None]

    def operator(latent: NDArray) -> NDArray:
        image = beta * product(latent)
        for pattern in patterns:
            image[pattern.rows] += latent[pattern.rows] @ pattern.gram
        return image

    def precondition(residual: NDArray) -> NDArray:
        solution = np.empty_like(residual)
        for rows, _, values, vectors in patterns:
            solution[rows] = (residual[rows] @ vectors / (values + beta * degrees[rows])) @ vectors.T
        return solution

    return _System(operator, precondition)


def _solve_patterns(views: Views, grams: Sequence[NDArray], ridge: NDArray | None) -> list[_Pattern]:
    """The samples of each set of views, with A summed over these views, plus R if it is not all of them."""
    patterns = []
    for rows, has in views.patterns():
        gram = np.sum([gram for gram, there in zip(grams, has, strict=True) if there], axis=0)
        if ridge is not None and not has.all():
            gram = gram + ridge
        values, vectors = linalg.eigh(gram)
        patterns.append(_Pattern(rows, gram, np.maximum(values, 0), vectors))
    return patterns
