"""The arrays of all parts as one, in canonical order: in memory, or in temporary files."""

import tempfile
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.parts.executor import Executor, Part
from lmssc.data.memmap import memory_map, release
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.exact import concat_ranges

# Rows that are in memory at a time.
BATCH_ROWS = 1 << 18


def empty_array(shape: tuple[int, ...], dtype: np.dtype, *, on_disk: bool) -> NDArray:
    """An array that is not filled yet: a memory map of an unnamed temporary file, or in memory.

    Examples
    --------
    >>> empty_array((2, 3), np.dtype(float), on_disk=True).shape
    (2, 3)
    """
    if not on_disk or not np.prod(shape):
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, dtype, "w+", 0, shape))


def rows_in_order(
    executor: Executor, function: Callable[..., NDArray], *shared: Any, order: NDArray, on_disk: bool
) -> NDArray:
    """Rows that `function(part, *shared)` makes of the samples of each part, in canonical order.

    Parameters
    ----------
    executor : Executor
        The parts.
    function : callable
        Makes the rows of a part.
    *shared
        Further arguments of it.
    order : ndarray of int of shape (n,)
        Canonical number of each sample of the fit.
    on_disk : bool
        Whether the result is in a temporary file.

    Returns
    -------
    ndarray of shape (n, …)
    """
    result: NDArray | None = None
    for number, (first, end) in enumerate(pairwise(executor.bounds)):
        chosen = [number == p for p in range(len(executor.bounds) - 1)]
        rows = executor.map(_of_chosen, function, shared, each=chosen)[number]
        if result is None:
            result = empty_array((int(executor.bounds[-1]), *rows.shape[1:]), rows.dtype, on_disk=on_disk)
        result[order[first:end]] = rows
        release(result)
    return np.asarray(result)


def _of_chosen(part: Part, function: Callable[..., Any], shared: tuple[Any, ...], chosen: bool) -> Any:
    return function(part, *shared) if chosen else None


def graph_in_order(executor: Executor, order: NDArray, *, on_disk: bool) -> sparse.csr_array:
    """S of all samples, in canonical order; rows are sorted."""
    n_samples = int(executor.bounds[-1])
    counts = np.empty(n_samples, dtype=np.int64)
    counts[order] = np.concatenate(executor.map(_row_lengths))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    index_type = np.int32 if indptr[-1] < np.iinfo(np.int32).max else np.int64
    data = indices = np.empty(0)
    for number, (first, end) in enumerate(pairwise(executor.bounds)):
        chosen = [number == p for p in range(len(executor.bounds) - 1)]
        graph = executor.map(_of_chosen, _graph, (), each=chosen)[number]
        if number == 0:
            data = empty_array((int(indptr[-1]),), graph.dtype, on_disk=on_disk)
            indices = empty_array((int(indptr[-1]),), np.dtype(index_type), on_disk=on_disk)
        own = order[first:end]
        columns = order[graph.indices].astype(index_type)
        renumbered = sparse.csr_array((graph.data, columns, graph.indptr), shape=graph.shape)
        renumbered.sort_indices()
        places = concat_ranges(indptr[own], counts[own])
        data[places], indices[places] = renumbered.data, renumbered.indices
        release(data)
        release(indices)
    return _as_csr(data, indices, indptr.astype(index_type), (n_samples, n_samples))


def _row_lengths(part: Part) -> NDArray:
    return np.diff(part["graph"].indptr)


def _graph(part: Part) -> sparse.csr_array:
    return part["graph"]


def take_in_order(rows: NDArray, index: NDArray) -> NDArray:
    """`rows[index]`, in a temporary file if the rows are on disk.

    Examples
    --------
    >>> take_in_order(np.array([5, 6, 7]), np.array([2, 0]))
    array([7, 5])
    """
    if memory_map(rows) is None:
        return rows[index]
    result = empty_array((len(index), *rows.shape[1:]), rows.dtype, on_disk=True)
    for batch in gen_batches(len(index), BATCH_ROWS):
        result[batch] = rows[index[batch]]
        release(rows)
        release(result)
    return result


def renumber_graph(graph: sparse.csr_array, nodes: NDArray, samples: NDArray) -> sparse.csr_array:
    """The graph with row `nodes[i]` as row i and column `samples[j]` for column j; on disk if it is.

    Examples
    --------
    >>> graph = sparse.csr_array([[0.0, 1.0], [0.5, 0.0]])
    >>> renumber_graph(graph, np.array([1, 0]), np.array([1, 0])).toarray()
    array([[0. , 0.5],
           [1. , 0. ]])
    """
    shape = (len(nodes), len(nodes))
    if memory_map(graph) is None:
        return _renumbered(graph, nodes, samples, shape)
    indptr = np.concatenate([[0], np.cumsum(np.diff(graph.indptr)[nodes])]).astype(graph.indices.dtype)
    data = empty_array((int(indptr[-1]),), graph.dtype, on_disk=True)
    indices = empty_array((int(indptr[-1]),), graph.indices.dtype, on_disk=True)
    for batch in gen_batches(len(nodes), BATCH_ROWS):
        some = _renumbered(graph, nodes[batch], samples, shape)
        entries = slice(indptr[batch.start], indptr[batch.stop])
        data[entries], indices[entries] = some.data, some.indices
        for array in (graph, data, indices):
            release(array)
    return _as_csr(data, indices, indptr, shape)


def _renumbered(graph: sparse.csr_array, nodes: NDArray, samples: NDArray, shape: tuple[int, int]) -> sparse.csr_array:
    rows = graph[nodes]
    columns = samples.astype(rows.indices.dtype)[rows.indices]
    result = sparse.csr_array((rows.data, columns, rows.indptr), shape=(len(nodes), shape[1]))
    result.sort_indices()
    return result


def _as_csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: tuple[int, int]) -> sparse.csr_array:
    """A sparse array of these arrays, which the constructor might copy."""
    result = sparse.csr_array(shape, dtype=data.dtype)
    result.data, result.indices, result.indptr = data, indices, indptr
    result.has_sorted_indices = True
    return result
