"""Active learning: the most uncertain samples, and those whose labels tell most about all others."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.core.laplacian import laplacian
from lmssc.core.sparse_scores import largest_entries
from lmssc.numerics.conjugate_gradient import conjugate_gradient

RESTART = 1e-2
"""Probability that a random walk over the graph ends at a step: how far the influence of a label reaches."""
MIN_UNCERTAINTY = 1e-6
# Relative residual of the solver; more digits do not change the choices.
TOLERANCE = 1e-3


def uncertainties(distributions: NDArray, unreached: NDArray) -> NDArray:
    """Uncertainty of each sample: 1 minus the margin of its two most likely classes; 1 if no label reaches it.

    Parameters
    ----------
    distributions : ndarray of shape (n, c)
        Distribution over the classes of each sample.
    unreached : ndarray of int or bool
        Samples without a label in their component of the graph.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> uncertainties(np.array([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [0.9, 0.1, 0.0]]), np.array([2])).round(1)
    array([1. , 0.2, 1. ])
    """
    if sparse.issparse(distributions):
        two = largest_entries(distributions.copy(), 2)
        best = np.asarray(two.max(axis=1).toarray()).ravel()
        uncertainty = 1 - (2 * best - np.asarray(two.sum(axis=1)).ravel())
    else:
        best = np.partition(distributions, -2, axis=1)
        uncertainty = 1 - (best[:, -1] - best[:, -2])
    uncertainty[unreached] = 1
    return uncertainty


def sigma_optimal_batch(
    graph: sparse.csr_array, uncertainty: NDArray, labelled: NDArray, candidates: NDArray, n: int
) -> NDArray:
    """Batch of samples whose labels together remove most of the uncertainty about all samples.

    The unlabelled samples are a Gaussian field with the precision M = L_uu + ε·diag(L_uu), where ε is the probability
    that a random walk ends, and the covariance C = M⁻¹. A label of sample i reduces the covariance by c_i·c_iᵀ / C_ii.
    With the uncertainties w, (C·w)_i / C_ii is the uncertainty that it removes, as in Σ-optimality [1]_. The sample
    with the largest

        w_i · (C·w)_i / C_ii

    is chosen: the factor w_i is there because a label that is certain beforehand removes nothing. Then this w_j is
    lowered by the share C_ji / C_ii that the label removes, and C becomes that of the remaining samples, so that no two
    choices are redundant. C_ii is replaced by its bound 1/M_ii, and in a component without a label by
    1/M_ii + 1/(ε·volume), so that small components count less. So each choice takes one solve instead of one for each
    sample.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Weights of the neighbours of each sample.
    uncertainty : ndarray of shape (n,)
        Uncertainty of each sample, from 0 to 1.
    labelled : ndarray of bool
        Which samples have a label.
    candidates : ndarray of bool
        Which unlabelled samples may be chosen.
    n : int
        Size of the batch.

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
    end = RESTART * np.where(degree > 0, degree, full.diagonal().mean() or 1.0)  # for samples without neighbours
    precision = (inner + sparse.diags_array(end)).tocsr()
    diagonal = precision.diagonal()

    _, component = connected_components(full, directed=False)
    lonely = ~np.isin(component, component[labelled])[unknown]
    component = component[unknown]
    room = 1 / (1 / diagonal + lonely / np.bincount(component, end)[component])

    allowed = candidates[unknown].copy()
    free = np.ones(len(unknown))  # 0 for chosen samples
    weights = np.maximum(uncertainty[unknown], MIN_UNCERTAINTY).astype(np.float64)

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
    remaining = weights.copy()
    chosen: list[int] = []
    for _ in range(min(n, int(allowed.sum()))):
        one = int(np.where(allowed, remaining * reach * room, -1).argmax())
        column = solve(np.eye(1, len(unknown), one)[0])
        settled = np.clip(column / column[one], 0, 1)
        reach = reach - settled * reach[one]
        remaining *= 1 - settled
        allowed[one], free[one] = False, 0
        room = np.where(component == component[one], diagonal, room)
        chosen.append(one)
    return unknown[chosen]
