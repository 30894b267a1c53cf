"""Which samples to label next: those that are least certain, and those whose labels say most about the others."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.core.graph import laplacian
from lmssc.numerics.conjugate_gradient import conjugate_gradient

RESTART = 1e-2
"""Share of each step at which a walk over the graph ends: how far a label is taken to tell of others."""
LEAST_DOUBT = 1e-6
# Relative residual of the solves; the order of the choices does not depend on more.
TOLERANCE = 1e-3


def doubts(distributions: NDArray, unreached: NDArray) -> NDArray:
    """How uncertain each sample is: 1 minus the distance of its two likeliest classes; 1 if no label reaches it.

    Parameters
    ----------
    distributions : ndarray of shape (n, c)
        Distribution over the classes of each sample.
    unreached : ndarray of int or bool
        Samples that no label reaches.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> doubts(np.array([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [0.9, 0.1, 0.0]]), np.array([2])).round(1)
    array([1. , 0.2, 1. ])
    """
    best = np.partition(distributions, -2, axis=1)
    doubt = 1 - (best[:, -1] - best[:, -2])
    doubt[unreached] = 1
    return doubt


def sigma_optimal_batch(
    graph: sparse.csr_array, doubt: NDArray, labelled: NDArray, candidates: NDArray, n: int
) -> NDArray:
    """Samples whose labels, all together, would settle most of the doubt about all samples.

    On a Gaussian field with the precision M = L_uu + ε·diag(L_uu) of the samples without a label (ε ends a walk now
    and then), C = M⁻¹ is their covariance, and a label of sample i takes c_i·c_iᵀ / C_ii off it. With doubts w,
    (C·w)_i / C_ii is the doubt that it settles, as in Σ-optimality [1]_; the sample with the largest

        w_i · (C·w)_i / C_ii

    is taken, because a label that is known beforehand settles nothing; then the first w_j is lowered by the share
    C_ji / C_ii of it that the label settles. C_ii is replaced by its bound 1/M_ii, and in a
    component without a label by 1/M_ii + 1/(ε·volume), so that a small one counts less; so a choice takes one solve
    instead of one for each sample. After it C is that of the samples that are left: no two choices say the same.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Weights of the neighbours of each sample.
    doubt : ndarray of shape (n,)
        How uncertain each sample is, from 0 to 1.
    labelled : ndarray of bool
        Which samples have a label.
    candidates : ndarray of bool
        Which of the others may be chosen.
    n : int
        How many are wanted.

    Returns
    -------
    ndarray of int
        The most informative first; fewer than n if there are fewer candidates.

    References
    ----------
    .. [1] Ma, Garnett and Schneider, "Σ-optimality for active learning on Gaussian random fields", NIPS 2013.

    Examples
    --------
    Two groups, one with a label:

    >>> edges = np.zeros((7, 7))
    >>> edges[0, 1] = edges[1, 2] = edges[3, 4] = edges[4, 5] = edges[4, 6] = 1
    >>> labelled = np.arange(7) == 0
    >>> sigma_optimal_batch(sparse.csr_array(edges), np.ones(7), labelled, ~labelled, 2)
    array([4, 1])
    """
    full = laplacian(graph)
    unknown = np.flatnonzero(~labelled)
    inner = full[unknown][:, unknown].astype(np.float64)
    degree = inner.diagonal()
    end = RESTART * np.where(degree > 0, degree, full.diagonal().mean() or 1.0)  # a sample may have no neighbours
    precision = (inner + sparse.diags_array(end)).tocsr()
    diagonal = precision.diagonal()

    _, component = connected_components(full, directed=False)
    lonely = ~np.isin(component, component[labelled])[unknown]
    component = component[unknown]
    room = 1 / (1 / diagonal + lonely / np.bincount(component, end)[component])

    allowed = candidates[unknown].copy()
    free = np.ones(len(unknown))  # 0 where a label is taken as given
    weights = np.maximum(doubt[unknown], LEAST_DOUBT).astype(np.float64)

    def solve(rhs: NDArray) -> NDArray:
        held, divisor = free[:, None], diagonal[:, None]
        return conjugate_gradient(
            lambda X: held * (precision @ X),
            rhs[:, None],
            np.zeros((len(rhs), 1)),
            lambda R: R / divisor,
            tol=TOLERANCE,
        )[:, 0]

    reach = solve(weights)  # C·w
    open_doubt = weights.copy()
    chosen: list[int] = []
    for _ in range(min(n, int(allowed.sum()))):
        one = int(np.where(allowed, open_doubt * reach * room, -1).argmax())
        column = solve(np.eye(1, len(unknown), one)[0])
        settled = np.clip(column / column[one], 0, 1)
        reach = reach - settled * reach[one]
        open_doubt *= 1 - settled
        allowed[one], free[one] = False, 0
        room = np.where(component == component[one], diagonal, room)
        chosen.append(one)
    return unknown[chosen]
