"""Propagation over the graph of few samples, whose Laplacian is a dense array: building sparse ones takes longer."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs

from lmssc.core.second_opinion import Opinion
from lmssc.core.targets import Targets
from lmssc.core.weak_components import WEAK_EDGE
from lmssc.numerics.matrices import Matrix

# With at most this many samples, a dense factor takes less time than to build what a sparse one needs.
MAX_SAMPLES = 500
# Root of the smallest pivot of a matrix with a unit diagonal that rounding leaves some digits of.
MIN_PIVOT = 1e-6


def dense_laplacian(graph: sparse.csr_array, links: sparse.csr_array | None = None) -> NDArray:
    """L = D − (S + Sᵀ)/2 as a dense array, plus that of the links.

    Examples
    --------
    >>> dense_laplacian(sparse.csr_array([[0.0, 1.0], [0.5, 0.0]]))
    array([[ 0.75, -0.75],
           [-0.75,  0.75]])
    """
    n_samples = graph.shape[0]
    row = np.repeat(np.arange(n_samples), np.diff(graph.indptr))
    half = graph.data * graph.dtype.type(-0.5)
    result = np.zeros(graph.shape, dtype=graph.dtype)
    # No edge is stored twice, so that each entry is written once and added to once.
    result.ravel()[row * n_samples + graph.indices] = half
    result.ravel()[graph.indices * np.intp(n_samples) + row] += half
    diagonal = np.einsum("ii->i", result)  # a view
    diagonal[:] = 0
    diagonal[:] = -result.sum(axis=1)
    return result if links is None else result + links.toarray()


def as_sparse(laplacian: Matrix) -> sparse.csr_array:
    """L as a sparse matrix."""
    return sparse.csr_array(laplacian) if isinstance(laplacian, np.ndarray) else laplacian


def strong_edges(laplacian: NDArray) -> NDArray:
    """Which samples are joined by an edge that is not weak, as in `WeakComponents`.

    Examples
    --------
    >>> strong_edges(np.array([[1.0, -1.0, 0.0], [-1.0, 1.001, -0.001], [0.0, -0.001, 0.001]]))
    array([[False,  True, False],
           [ True, False, False],
           [False, False, False]])
    """
    least = laplacian.dtype.type(-WEAK_EDGE) * laplacian.diagonal()
    return laplacian < np.minimum(least[:, None], least)


def reach_all(strong: NDArray, labelled: NDArray) -> bool:
    """Whether paths of strong edges lead from the labelled samples to all others.

    Examples
    --------
    >>> path = np.array([[False, True, False], [True, False, False], [False, False, False]])
    >>> reach_all(path, np.array([True, False, False])), reach_all(path, np.array([True, False, True]))
    (False, True)
    """
    reached, latest = labelled, np.flatnonzero(labelled)
    while len(latest):
        now = reached | strong[latest].any(axis=0)
        latest = np.flatnonzero(now & ~reached)
        reached = now
    return bool(reached.all())


def is_joined(laplacian: NDArray, labelled: NDArray) -> bool:
    """Whether paths of strong edges lead from the labelled samples to all others.

    Examples
    --------
    >>> is_joined(np.array([[1.0, -1.0, 0.0], [-1.0, 1.001, -0.001], [0.0, -0.001, 0.001]]), np.arange(3) == 0)
    False
    """
    # Edges that would be strong at any sample usually suffice, and are found by one comparison.
    surely = laplacian < laplacian.dtype.type(-WEAK_EDGE) * laplacian.diagonal().max()
    return reach_all(surely, labelled) or reach_all(strong_edges(laplacian), labelled)


def solve_densely(matrix: NDArray, rhs: NDArray) -> NDArray | None:
    """X with A·X = B, for A symmetric and positive definite; None if rounding makes it singular. A is overwritten.

    Examples
    --------
    >>> solve_densely(np.array([[2.0, -1.0], [-1.0, 1.0]]), np.array([[1.0], [0.0]])).ravel().round(9)
    array([1., 1.])
    """
    # Scaled to a unit diagonal, so that samples whose edges are all next to zero are as accurate as the others.
    unit = 1 / np.sqrt(matrix.diagonal().astype(np.float64))
    matrix *= unit
    matrix *= unit[:, None]
    # It is symmetric: itself or its transpose is in the order of Fortran, and takes no further copy.
    ordered = matrix if matrix.flags.f_contiguous else matrix.T
    factor, info = dpotrf(ordered, lower=1, clean=0, overwrite_a=1)
    if info or not factor.diagonal().min() >= MIN_PIVOT:  # which is also true of NaN
        return None
    solution: NDArray = dpotrs(factor, unit[:, None] * rhs, lower=1)[0]
    solution *= unit[:, None]
    return solution


def propagate_densely(laplacian: NDArray, targets: Targets, opinion: Opinion | None = None) -> NDArray | None:
    """F of `propagate`, with labels that are certain; None if not all samples are joined to a label by strong edges.

    Examples
    --------
    >>> L = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> propagate_densely(L, Targets.from_codes(np.array([0, -1, 1]), 2)).round(9)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    labelled = targets.labelled
    scores = targets.matrix(laplacian.dtype)
    unknown = ~labelled
    if labelled.all():
        return scores
    if not is_joined(laplacian, labelled):
        return None
    rows = laplacian[unknown]
    rhs = -(rows[:, labelled].astype(np.float64, copy=False) @ scores[labelled].astype(np.float64, copy=False))
    matrix = rows[:, unknown].astype(np.float64, copy=False)
    if opinion is not None:
        rhs += opinion.weight * opinion.scores[unknown]
        np.einsum("ii->i", matrix)[:] += opinion.weight
    found = solve_densely(matrix, rhs)
    if found is None:
        return None
    scores[unknown] = found
    return scores
