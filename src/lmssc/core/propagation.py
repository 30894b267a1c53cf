"""The class scores F: labels propagated over the graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.targets import Targets
from lmssc.core.weak_components import WeakComponents
from lmssc.numerics.conjugate_gradient import conjugate_gradient, solver_tolerance
from lmssc.numerics.sparse_ops import threaded_product
from lmssc.numerics.two_level_preconditioner import coarse_correction


class Propagation(NamedTuple):
    """Class scores of all samples, and the samples that no label reaches."""

    scores: NDArray
    unreached: NDArray


def propagate(
    laplacian: sparse.csr_array,
    targets: Targets,
    start: NDArray | None = None,
    tol: float = 1e-10,
    *,
    normalised: bool = False,
) -> Propagation:
    """Update of F: F_l = Y_l, and F_u = −L_uu⁻¹·L_ul·Y_l, the minimiser of Tr(FᵀLF).

    In a connected component without a label L_uu is singular; its samples get the frequencies of the labelled
    classes, which is a minimiser too, because it is constant there.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n)
        L, symmetric.
    targets : Targets
        Y.
    start : ndarray of shape (n, c), optional
        Scores to start the solver from.
    tol : float
        Relative residual of the solver.
    normalised : bool
        Whether L is normalised: then its rows do not sum to 0, and a part of the graph on weak edges has no level.

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
    groups = WeakComponents.of(laplacian, labelled)
    unreached = groups.unreached_samples(len(targets))
    frequencies = targets.frequencies.astype(laplacian.dtype)
    scores[unreached] = frequencies
    known = np.flatnonzero(labelled | unreached)
    if len(known) < len(targets):
        # All rows take part, those that are known with zeros: to cut them out of L takes longer.
        guess = np.tile(frequencies, (len(targets), 1)) if start is None else start.copy()
        guess[known] = 0
        product = threaded_product(laplacian)
        rhs = -product(np.where(labelled[:, None], scores, scores.dtype.type(0)))
        rhs[known] = 0
        diagonal = laplacian.diagonal()
        diagonal[known] = 1
        unknown_diagonal = np.delete(diagonal, known)
        # A sample whose edges all weigh next to nothing adds nothing to the residual either, however wrong it is.
        uneven = min(1.0, 1e3 * float(unknown_diagonal.min() / unknown_diagonal.max()))
        # As wide as the scores, which numpy is several times faster with.
        inverse = np.repeat(1 / diagonal[:, None], targets.n_classes, axis=1)
        correct = coarse_correction(laplacian, labelled | unreached)

        image, preconditioned = np.empty_like(rhs), np.empty_like(rhs)

        def precondition(residual: NDArray) -> NDArray:
            np.multiply(residual, inverse, out=preconditioned)
            if correct is not None:
                correct(residual, preconditioned)
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
        if not normalised:
            groups.level(solution)
        scores = solution
    return Propagation(scores, unreached)
