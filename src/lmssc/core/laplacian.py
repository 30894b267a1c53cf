"""The Laplacian of a graph, and how much neighbours differ."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.parallel import count_threads, threaded_map
from lmssc.numerics.sparse_ops import ROWS_PER_THREAD, consecutive_rows, diagonal_minus, stack_rows, threaded_product


def laplacian(graph: sparse.csr_array, *, normalised: bool = False) -> sparse.csr_array:
    """L = D − W, W = (S + Sᵀ)/2 and D its row sums; normalised: D^−½·L·D^−½.

    A sample without neighbours has a row of zeros in both.

    Examples
    --------
    >>> laplacian(sparse.csr_array([[0.0, 1.0], [0.5, 0.0]])).toarray()
    array([[ 0.75, -0.75],
           [-0.75,  0.75]])
    """
    transposed = graph.T.tocsr()

    def part(rows: slice) -> sparse.csr_array:
        return laplacian_rows(consecutive_rows(graph, rows), consecutive_rows(transposed, rows), rows.start)

    # One thread makes all rows at once, which need not be stacked then.
    size = ROWS_PER_THREAD if count_threads() > 1 else max(graph.shape[0], 1)
    result = stack_rows(threaded_map(part, gen_batches(graph.shape[0], size)))
    if not normalised:
        return result
    degrees = (graph.sum(axis=1) + graph.sum(axis=0)) / 2
    roots = np.sqrt(np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0))
    scale = sparse.diags_array(roots, dtype=roots.dtype)
    return (scale @ result @ scale).tocsr()


def laplacian_rows(graph: sparse.csr_array, transposed: sparse.csr_array, first: int) -> sparse.csr_array:
    """Consecutive rows of L, from number `first` on, given the same rows of S and of Sᵀ."""
    affinity = graph + transposed
    affinity.data *= affinity.dtype.type(0.5)
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    return diagonal_minus(affinity, degrees, first)


def symmetrise(graph: sparse.csr_array) -> sparse.csr_array:
    """(S + Sᵀ)/2.

    Examples
    --------
    >>> symmetrise(sparse.csr_array([[0.0, 1.0], [0.5, 0.0]])).toarray()
    array([[0.  , 0.75],
           [0.75, 0.  ]])
    """
    return ((graph + graph.T) * graph.dtype.type(0.5)).tocsr()


def roughness(laplacian: sparse.csr_array, rows: NDArray) -> float:
    """Tr(RᵀLR).

    Examples
    --------
    >>> roughness(sparse.csr_array([[1.0, -1.0], [-1.0, 1.0]]), np.array([[0.0], [3.0]]))
    9.0
    """
    return float(np.vdot(rows, threaded_product(laplacian)(rows)))
