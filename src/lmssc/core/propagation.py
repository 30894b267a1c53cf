"""The class scores F: labels propagated over the graph."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.dense_propagation import (
    MAX_SAMPLES,
    as_sparse,
    propagate_densely,
    reach_all,
    strong_edges,
)
from lmssc.core.direct_propagation import (
    is_cheaper_directly,
    is_sharing_cheaper,
    scores_without,
    solve_directly,
)
from lmssc.core.graph import connect_new
from lmssc.core.second_opinion import Opinion
from lmssc.core.targets import Targets
from lmssc.core.weak_components import WeakComponents
from lmssc.numerics.conjugate_gradient import conjugate_gradient, solver_tolerance
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.sparse_ops import threaded_product
from lmssc.numerics.two_level_preconditioner import coarse_correction

# Largest number of samples without a label for which a factor is used with a second opinion, with which conjugate
# gradients need few steps; and where it counts as little as this, or less, and all digits are wanted.
MAX_DIRECT_WITH_OPINION, MAX_DIRECT_WITH_LITTLE = 300, 1000
LITTLE_WEIGHT, ALL_DIGITS = 0.1, 1e-9


class Propagation(NamedTuple):
    """Class scores of all samples, and which samples are in components without a label."""

    scores: NDArray
    unreached: NDArray


def propagate(
    laplacian: Matrix,
    targets: Targets,
    start: NDArray | None = None,
    tol: float = 1e-10,
    *,
    normalised: bool = False,
    spatially_ordered: bool = False,
    opinion: Opinion | None = None,
) -> Propagation:
    """Update of F: F_l = Y_l, and F_u = −L_uu⁻¹·L_ul·Y_l, the minimiser of Tr(FᵀLF).

    A label with finite trust μ_i does not fix f_i: Σ_i μ_i·‖f_i − y_i‖² is added to what F minimises, so that
    (L + M)F = MY with M = diag(μ), and the neighbours can overrule it.

    With a second opinion, F_u = (L_uu + ηI)⁻¹·(ηQ_u − L_ul·Y_l), the minimiser of Tr(FᵀLF) + η·Σ_u ‖f_u − q_u‖².

    In a connected component without a label L_uu is singular. Its samples get the class frequencies of the labelled
    samples, which is a minimiser too, because it is constant there; with a second opinion they get the minimiser.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n), or ndarray if there are few samples
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
    opinion : Opinion, optional
        Q and η. They make the system so well conditioned that neither coarse level nor correction is needed.

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
    if len(targets.uncertain):
        options = {"normalised": normalised, "spatially_ordered": spatially_ordered}
        return _propagate_uncertain(as_sparse(laplacian), targets, start, tol, opinion, **options)
    if len(targets) <= MAX_SAMPLES:
        found = propagate_densely(laplacian.toarray() if sparse.issparse(laplacian) else laplacian, targets, opinion)
        if found is not None:
            return Propagation(found, np.zeros(len(targets), dtype=bool))
    laplacian = as_sparse(laplacian)
    labelled = targets.labelled
    scores = targets.matrix(laplacian.dtype)
    components = WeakComponents.of(laplacian, labelled)
    unreached = components.unreached_samples(len(targets))
    frequencies = targets.frequencies.astype(laplacian.dtype)
    scores[unreached] = frequencies
    known = labelled | unreached if opinion is None else labelled
    n_unknown = len(known) - int(known.sum())
    direct = None
    # Without weak components, strong edges join every unknown sample to a label, and rounding cannot decide.
    if opinion is None:
        cheaper = is_cheaper_directly(n_unknown, *scores.shape) and bool(components.unreached.all())
    else:
        many_steps = opinion.weight <= LITTLE_WEIGHT and tol <= ALL_DIGITS
        cheaper = n_unknown <= (MAX_DIRECT_WITH_LITTLE if many_steps else MAX_DIRECT_WITH_OPINION)
    if n_unknown and cheaper:
        direct = solve_directly(laplacian, scores, labelled, known, opinion, tol)
    if direct is not None:
        scores[~known] = direct
    elif n_unknown:
        guess = np.tile(frequencies, (len(targets), 1)) if start is None else start.copy()
        coarse = coarse_correction(laplacian, known) if spatially_ordered and opinion is None else None
        solution = _solve_unknown(laplacian, scores, labelled, known, guess, tol, coarse, opinion)
        if not normalised and opinion is None:
            components.correct_component_means(solution)
        scores = solution
    return Propagation(scores, unreached)


def propagate_without(
    laplacian: Matrix, targets: Targets, folds: Sequence[NDArray], tol: float = 1e-10
) -> list[Propagation]:
    """`propagate` without the labels of each fold in turn; where a dense factor is cheap, all folds share it.

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
    >>> targets = Targets.from_codes(np.array([0, -1, 0, 1]), 2)
    >>> propagate_without(L, targets, [np.array([2])])[0].scores[:, 0].round(2)
    array([1.  , 0.67, 0.33, 0.  ])
    """
    labelled = targets.labelled
    n_labelled = int(labelled.sum())
    shared: Sequence[NDArray | None] = [None] * len(folds)
    n_unknown = len(labelled) - n_labelled
    shape = n_unknown, n_labelled, targets.n_classes, len(folds)
    if not len(targets.uncertain) and is_sharing_cheaper(laplacian, *shape):
        shared = scores_without(laplacian, targets.matrix(laplacian.dtype), labelled, folds)
    strong = strong_edges(laplacian) if isinstance(laplacian, np.ndarray) else None
    found = []
    for rows, scores in zip(folds, shared, strict=True):
        known = targets.without_labels(rows)
        if strong is None:
            # Without weak components, strong edges join every sample to a label that is not held out.
            joined = not len(WeakComponents.of(laplacian, known.labelled).members)
        else:
            joined = reach_all(strong, known.labelled)
        if scores is None or not joined:
            found.append(propagate(laplacian, known, tol=tol))
        else:
            nothing = np.zeros(len(labelled), dtype=bool)
            found.append(Propagation(scores.astype(laplacian.dtype, copy=False), nothing))
    return found


def _propagate_uncertain(
    laplacian: sparse.csr_array,
    targets: Targets,
    start: NDArray | None,
    tol: float,
    opinion: Opinion | None,
    **options: bool,
) -> Propagation:
    """`propagate` with labels of finite trust: each hangs on its sample by an edge, and is itself certain."""
    uncertain, n_samples = targets.uncertain, len(targets)
    weights = np.asarray(targets.trust)[uncertain].astype(laplacian.dtype)
    labels = np.arange(len(uncertain))
    shape = (n_samples, len(uncertain))
    edges = sparse.csr_array((-weights, (uncertain, labels)), shape=shape)
    own = sparse.csr_array((weights, (uncertain, uncertain)), shape=laplacian.shape)
    joined = sparse.block_array([[laplacian + own, edges], [edges.T, sparse.diags_array(weights)]], format="csr")
    if start is not None:
        start = np.concatenate([start, start[uncertain]])
    if opinion is not None:
        opinion = opinion.take(lambda rows: np.concatenate([rows, rows[uncertain]]))
    found = propagate(joined, targets.with_label_nodes(uncertain), start, tol, opinion=opinion, **options)
    return Propagation(found.scores[:n_samples].copy(), found.unreached[:n_samples].copy())


def _solve_unknown(
    laplacian: sparse.csr_array,
    scores: NDArray,
    labelled: NDArray,
    is_known: NDArray,
    guess: NDArray,
    tol: float,
    coarse: Callable[[NDArray, NDArray], None] | None,
    opinion: Opinion | None,
) -> NDArray:
    """Scores that solve (L_uu + ηI)·F_u = ηQ_u − L_ul·Y_l, by conjugate gradients; known ones stay as they are."""
    # All rows take part, the known ones as zeros: cutting them out of L takes longer.
    known = np.flatnonzero(is_known)
    guess[known] = 0
    product = threaded_product(laplacian)
    rhs = -product(np.where(labelled[:, None], scores, scores.dtype.type(0)))
    diagonal = laplacian.diagonal()
    weight = scores.dtype.type(0 if opinion is None else opinion.weight)
    if opinion is not None:
        rhs += weight * opinion.scores.astype(rhs.dtype, copy=False)
        diagonal = diagonal + weight
    rhs[known] = 0
    diagonal[known] = 1
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
        if weight:
            np.add(image, weight * rows, out=image)
        image[known] = 0
        return image

    tol = _unevenness(np.delete(diagonal, known)) * solver_tolerance(laplacian.dtype, tol)
    solution = conjugate_gradient(operator, rhs, guess, precondition, tol=tol, diagonal=diagonal)
    solution[known] = scores[known]
    return solution


def _unevenness(diagonal: NDArray) -> float:
    """Factor of the tolerance: a sample with edges next to zero hardly adds to the residual, however wrong it is."""
    return min(1.0, 1e3 * float(diagonal.min() / diagonal.max()))


def rescue_disconnected(
    embedded: NDArray, found: Propagation, initially_disconnected: NDArray, n_neighbors: int
) -> Propagation:
    """Scores for samples that reach a label in the graph on Z, but not with P: the mean of their neighbours in Z.

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
