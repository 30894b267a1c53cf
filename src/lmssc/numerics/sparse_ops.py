"""Products and stacks of large sparse matrices, on all threads."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from lmssc.numerics.parallel import threaded_map

ROWS_PER_BATCH = 8192
"""Rows of a product that are computed at a time: they fit into the cache."""
ROWS_PER_THREAD = 25_000
"""Rows of a graph that a thread changes at a time."""
MAX_EDGES = 1 << 25
"""Edges whose components are found at once; scipy needs several times their memory."""
MIN_SEARCHED_EDGES = 1 << 17
"""Among fewer edges, the components are found in one call of scipy."""


def threaded_product(matrix: sparse.csr_array) -> Callable[..., NDArray]:
    """The function X ↦ M·X, computed in batches of rows on all threads.

    The function takes an optional array `out` for the result, and with `add=True` adds the product to it. Allocating a
    large array takes longer than filling it.

    Examples
    --------
    >>> product = threaded_product(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    >>> product(np.array([[1.0], [3.0]]))
    array([[6.],
           [1.]])
    """
    n_rows = matrix.shape[0]
    # All batches have about the same number of entries.
    n_parts = max(1, max(matrix.shape) // ROWS_PER_BATCH)
    shares = np.linspace(0, matrix.nnz, n_parts + 1)[1:-1]
    bounds = np.concatenate([[0], np.searchsorted(matrix.indptr, shares), [n_rows]])
    blocks = [slice(first, end) for first, end in pairwise(bounds)]
    parts = [consecutive_rows(matrix, block) for block in blocks]

    def product(rows: NDArray, out: NDArray | None = None, *, add: bool = False) -> NDArray:
        if out is None:
            out = np.empty((n_rows, *rows.shape[1:]), dtype=np.result_type(matrix, rows))

        def fill(block: slice, part: sparse.csr_array) -> None:
            if add:
                out[block] += part @ rows
            else:
                out[block] = part @ rows

        threaded_map(fill, blocks, parts)
        return out

    return product


def consecutive_rows(matrix: sparse.csr_array, block: slice) -> sparse.csr_array:
    """Some consecutive rows, as a view of the entries; the matrix itself for all of them.

    Examples
    --------
    >>> consecutive_rows(sparse.csr_array([[0, 2], [1, 0], [3, 4]]), slice(1, 3)).toarray()
    array([[1, 0],
           [3, 4]])
    """
    if block.start == 0 and block.stop >= matrix.shape[0]:
        return matrix
    starts = matrix.indptr[block.start : block.stop + 1]
    entries = slice(starts[0], starts[-1])
    part = sparse.csr_array((len(starts) - 1, matrix.shape[1]), dtype=matrix.dtype)
    # The constructor would copy the entries.
    part.data, part.indices, part.indptr = matrix.data[entries], matrix.indices[entries], starts - starts[0]
    return part


def rows_of_zeros(rows: NDArray) -> sparse.csr_array:
    """Dense rows that are nearly all zeros as a sparse matrix, several times faster than by scipy.

    Examples
    --------
    >>> rows_of_zeros(np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]])).indices
    array([1, 0])
    """
    entries = np.flatnonzero(rows != 0)
    starts = np.searchsorted(entries, rows.shape[1] * np.arange(len(rows) + 1))
    return sparse.csr_array((rows.ravel()[entries], entries % rows.shape[1], starts), shape=rows.shape)


def diagonal_minus(matrix: sparse.csr_array, diagonal: NDArray, first: int) -> sparse.csr_array:
    """D − M for the rows of a square matrix from number `first` on; zeros are not stored.

    Examples
    --------
    >>> diagonal_minus(sparse.csr_array([[0.0, 1.0], [2.0, 0.0]]), np.array([5.0, 6.0]), 0).toarray()
    array([[ 5., -1.],
           [-2.,  6.]])
    """
    numbers = np.arange(matrix.shape[0] + 1, dtype=matrix.indices.dtype)
    return sparse.csr_array((diagonal, first + numbers[:-1], numbers), shape=matrix.shape) - matrix


def stack_rows(parts: list[sparse.csr_array]) -> sparse.csr_array:
    """Matrices stacked vertically, copied on all threads.

    Examples
    --------
    >>> stack_rows([sparse.csr_array([[0, 2]]), sparse.csr_array([[1, 0], [3, 4]])]).toarray()
    array([[0, 2],
           [1, 0],
           [3, 4]])
    """
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.nnz for part in parts])
    index_type = parts[0].indices.dtype if ends[-1] < np.iinfo(np.int32).max else np.int64
    data, indices = np.empty(ends[-1], dtype=parts[0].dtype), np.empty(ends[-1], dtype=index_type)

    def put(part: sparse.csr_array, end: int) -> None:
        data[end - part.nnz : end], indices[end - part.nnz : end] = part.data, part.indices

    threaded_map(put, parts, ends)
    bounds = [part.indptr[:-1] + (end - part.nnz) for part, end in zip(parts, ends, strict=True)]
    indptr = np.concatenate([*bounds, ends[-1:]]).astype(index_type)
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, parts[0].shape[1]))


def components_of(graph: sparse.csr_array) -> tuple[int, NDArray]:
    """Number of connected components, whatever the direction of the edges, and the component of each vertex.

    Examples
    --------
    >>> components_of(sparse.csr_array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]))
    (2, array([0, 0, 1], dtype=int32))
    """
    if graph.nnz <= MAX_EDGES:
        few = graph.nnz <= MIN_SEARCHED_EDGES
        return connected_components(graph, directed=False) if few else _components_beside_first(graph)
    n_vertices = graph.shape[0]
    component = np.arange(n_vertices, dtype=np.int32)
    number = n_vertices
    ends = np.unique(np.searchsorted(graph.indptr, np.arange(0, graph.nnz + MAX_EDGES, MAX_EDGES)).clip(0, n_vertices))
    for first, end in pairwise(ends):
        rows = consecutive_rows(graph, slice(first, end))
        start = np.repeat(component[first:end], np.diff(rows.indptr))
        pairs = np.unique(start.astype(np.int64) * number + component[rows.indices])
        joined = sparse.csr_array((np.ones(len(pairs), bool), np.divmod(pairs, number)), shape=(number, number))
        number, names = connected_components(joined, directed=False)
        component = names[component]
    return number, component


def _components_beside_first(graph: sparse.csr_array) -> tuple[int, NDArray]:
    """`components_of`, fast if most vertices can be reached from the first: no transpose is needed for these."""
    n_vertices = graph.shape[0]
    reached = breadth_first_order(graph, 0, return_predecessors=False)
    if 2 * len(reached) < n_vertices:
        return connected_components(graph, directed=False)
    # All of these become vertex 0; no edge leads from them to the others.
    number = np.ones(n_vertices, dtype=np.int32)
    number[reached] = 0
    others = np.flatnonzero(number)
    number[others] = np.arange(1, len(others) + 1)
    rows = graph[others]
    start = np.repeat(number[others], np.diff(rows.indptr))
    ends = (start, number[rows.indices])
    joined = sparse.csr_array((np.ones(len(start), bool), ends), shape=(len(others) + 1, len(others) + 1))
    n_components, names = connected_components(joined, directed=False)
    return n_components, names[number]
