"""The class scores F: labels propagated over the graph."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.core.graph import connect_new
from lmssc.core.targets import Targets
from lmssc.core.weak_components import WeakComponents
from lmssc.numerics.conjugate_gradient import conjugate_gradient, solver_tolerance
from lmssc.numerics.sparse_ops import threaded_product
from lmssc.numerics.two_level_preconditioner import coarse_correction

# Up to this many unknown rows of F, a dense Cholesky factorisation takes less time than conjugate gradients.
MAX_DIRECT = 400


class Propagation(NamedTuple):
    """Class scores of all samples, and which samples are in components without a label."""

    scores: NDArray
    unreached: NDArray


def propagate(
    laplacian: sparse.csr_array,
    targets: Targets,
    start: NDArray | None = None,
    tol: float = 1e-10,
    *,
    normalised: bool = False,
    spatially_ordered: bool = False,
) -> Propagation:
    """Update of F: F_l = Y_l, and F_u = −L_uu⁻¹·L_ul·Y_l, the minimiser of Tr(FᵀLF).

    In a connected component without a label L_uu is singular. Its samples get the class frequencies of the labelled
    samples, which is a minimiser too, because it is constant there.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n)
        L, symmetric.
    targets : Targets
        Y.
    start : ndarray of shape (n, c), optional
        Initial scores of the solver.
    tol : float
        Relative residual of the solver.
    normalised : bool
        Whether L is normalised. Its rows then do not sum to 0, so the means of weakly tied components are not
        corrected.
    spatially_ordered : bool
        Whether samples that are close in space have close indices: the solver then uses a coarse level.

    Returns
    -------
    Propagation
        `scores` (n, c), whose rows sum to 1 up to the solver's tolerance, and `unreached`, a boolean array.

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> propagate(L, Targets.from_codes(np.array([0, -1, 1]), 2)).scores
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    labelled = targets.labelled
    scores = targets.matrix(laplacian.dtype)
    components = WeakComponents.of(laplacian, labelled)
    unreached = components.unreached_samples(len(targets))
    frequencies = targets.frequencies.astype(laplacian.dtype)
    scores[unreached] = frequencies
    known = labelled | unreached
    n_unknown = len(known) - int(known.sum())
    direct = None
    # Without weak components, strong edges join every unknown sample to a label, and rounding cannot decide.
    if 0 < n_unknown <= MAX_DIRECT and components.unreached.all():
        direct = _solve_directly(laplacian, scores, labelled, known)
    if direct is not None:
        scores[~known] = direct
    elif n_unknown:
        guess = np.tile(frequencies, (len(targets), 1)) if start is None else start.copy()
        coarse = coarse_correction(laplacian, known) if spatially_ordered else None
        solution = _solve_unknown(laplacian, scores, labelled, known, guess, tol, coarse)
        if not normalised:
            components.correct_component_means(solution)
        scores = solution
    return Propagation(scores, unreached)


def _solve_directly(
    laplacian: sparse.csr_array, scores: NDArray, labelled: NDArray, is_known: NDArray
) -> NDArray | None:
    """F_u by a Cholesky factorisation of L_uu; None if rounding has made L_uu indefinite."""
    rows = laplacian[~is_known].toarray().astype(np.float64, copy=False)
    try:
        factor = linalg.cho_factor(rows[:, ~is_known], overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    return linalg.cho_solve(factor, -rows[:, labelled] @ scores[labelled], overwrite_b=True, check_finite=False)


def _solve_unknown(
    laplacian: sparse.csr_array,
    scores: NDArray,
    labelled: NDArray,
    is_known: NDArray,
    guess: NDArray,
    tol: float,
    coarse: Callable[[NDArray, NDArray], None] | None,
) -> NDArray:
    """Scores that solve L_uu·F_u = −L_ul·Y_l, by conjugate gradients; those that are known stay as they are."""
    # All rows take part, the known ones as zeros: cutting them out of L takes longer.
    known = np.flatnonzero(is_known)
    guess[known] = 0
    product = threaded_product(laplacian)
    rhs = -product(np.where(labelled[:, None], scores, scores.dtype.type(0)))
    rhs[known] = 0
    diagonal = laplacian.diagonal()
    diagonal[known] = 1
    unknown_diagonal = np.delete(diagonal, known)
    # A sample whose edges are all next to zero hardly adds to the residual, however wrong its scores are.
    uneven = min(1.0, 1e3 * float(unknown_diagonal.min() / unknown_diagonal.max()))
    # As wide as the scores: numpy multiplies arrays of one shape several times faster than it broadcasts.
    inverse = np.repeat(1 / diagonal[:, None], scores.shape[1], axis=1)
    image, preconditioned = np.empty_like(rhs), np.empty_like(rhs)

    def precondition(residual: NDArray) -> NDArray:
        np.multiply(residual, inverse, out=preconditioned)
        if coarse is not None:
            coarse(residual, preconditioned)
        return preconditioned

    def operator(rows: NDArray) -> NDArray:
        product(rows, out=image)
        image[known] = 0
        return image

    solution = conjugate_gradient(
        operator,
        rhs,
        guess,
        precondition,
        tol=uneven * solver_tolerance(laplacian.dtype, tol),
        diagonal=diagonal,
    )
    solution[known] = scores[known]
    return solution


def rescue_disconnected(
    embedded: NDArray, found: Propagation, initially_disconnected: NDArray, n_neighbors: int
) -> Propagation:
    """Scores for samples that only the expected scores P cut off from all labels: the mean of their neighbours in Z.

    Parameters
    ----------
    embedded : ndarray of shape (n, r)
        Z.
    found : Propagation
        F and the samples without a label in their component, on the last graph.
    initially_disconnected : ndarray of bool of shape (n,)
        Samples without a label in their component on the first graph, which is on Z alone; they stay as they are.
    n_neighbors : int
        k.

    Returns
    -------
    Propagation

    Examples
    --------
    >>> Z = np.array([[0.0], [1.0], [1.2]])
    >>> found = Propagation(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), np.array([False, False, True]))
    >>> rescue_disconnected(Z, found, np.zeros(3, dtype=bool), 1).scores[2]
    array([0., 1.])
    """
    rescued = found.unreached & ~initially_disconnected
    if not rescued.any():
        return found
    reached = ~found.unreached
    weights = connect_new(embedded[reached], embedded[rescued], min(n_neighbors, int(reached.sum())))
    scores = found.scores.copy()
    scores[rescued] = weights @ found.scores[reached]
    return Propagation(scores, found.unreached & ~rescued)
