"""The class scores F: labels propagated over the graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.solvers import conjugate_gradient, solver_tolerance


class Propagation(NamedTuple):
    """Class scores of all samples, and the samples that no label reaches."""

    scores: NDArray
    unreached: NDArray


def one_hot(codes: NDArray, n_classes: int, dtype: np.dtype) -> NDArray:
    """One-hot rows Y; a code of −1 (no label) gives a row of zeros.

    Examples
    --------
    >>> one_hot(np.array([1, -1]), 2, np.dtype(float))
    array([[0., 1.],
           [0., 0.]])
    """
    return (codes[:, None] == np.arange(n_classes)).astype(dtype)


def propagate(
    laplacian: sparse.csr_array,
    codes: NDArray,
    n_classes: int,
    start: NDArray | None = None,
    tol: float = 1e-10,
) -> Propagation:
    """Update of F: F_l = Y_l, and F_u = −L_uu⁻¹·L_ul·Y_l, the minimiser of Tr(FᵀLF).

    In a connected component without a label L_uu is singular; its samples get the frequencies of the labelled
    classes, which is a minimiser too, because it is constant there.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n)
        L, symmetric.
    codes : ndarray of shape (n,)
        Class of each sample, −1 where it is not known.
    n_classes : int
        Number of classes c.
    start : ndarray of shape (n, c), optional
        Scores to start the solver from.
    tol : float
        Relative residual of the solver.

    Returns
    -------
    Propagation
        `scores` (n, c), whose rows sum to 1 up to the solver's tolerance, and `unreached`, a boolean array.

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> propagate(L, np.array([0, -1, 1]), 2).scores
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    labelled = codes >= 0
    scores = one_hot(codes, n_classes, laplacian.dtype)
    _, component = connected_components(laplacian, directed=False)
    unreached = ~np.isin(component, component[labelled])
    frequencies = scores[labelled].mean(axis=0)
    scores[unreached] = frequencies
    unknown = np.flatnonzero(~labelled & ~unreached)
    if len(unknown):
        rows = laplacian[unknown]
        inner = rows[:, unknown]
        rhs = -(rows[:, labelled] @ scores[labelled])
        guess = np.broadcast_to(frequencies, rhs.shape) if start is None else start[unknown]
        diagonal = inner.diagonal()[:, None]
        # A sample whose edges all weigh next to nothing adds nothing to the residual either, however wrong it is.
        uneven = min(1.0, 1e3 * float(diagonal.min() / diagonal.max()))
        scores[unknown] = conjugate_gradient(
            inner.__matmul__,
            rhs,
            guess,
            lambda residual: residual / diagonal,
            tol=uneven * solver_tolerance(laplacian.dtype, tol),
        )
    return Propagation(scores, unreached)
