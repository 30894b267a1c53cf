"""The arrays of all parts as one, in canonical order: in memory, or in temporary files."""

import os
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.parts.executor import Executor, Message, Part
from lmssc.core.parts.halo import rows_for_others, sample_numbers, with_halo
from lmssc.data.memmap import file_of, memory_map, open_file, release
from lmssc.data.shared_files import NewFile, Readers, readers_of
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.topk import concat_ranges

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
    if on_disk and executor.shared is not None:
        return _leave_rows(executor, function, shared, order)
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
    if executor.shared is not None:
        return _leave_graph(executor, order, indptr.astype(index_type))
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


def _leave_rows(executor: Executor, function: Callable[..., NDArray], shared: tuple, order: NDArray) -> NDArray:
    """`rows_in_order` in a file of the shared folder: each part sends its rows to the part that writes them."""
    own = [order[first:end] for first, end in pairwise(executor.bounds)]
    kinds = executor.exchange(_send_rows, _join_rows, executor.bounds, function, shared, each=own)
    shape, dtype = kinds[0]
    file = NewFile(str(executor.shared), (int(executor.bounds[-1]), *shape), np.dtype(dtype))
    executor.map(_write_rows, file)
    return file.open()


def _send_rows(part: Part, bounds: NDArray, function: Callable[..., NDArray], shared: tuple, own: NDArray) -> dict:
    return _by_owner(bounds, own, function(part, *shared))


def _by_owner(bounds: NDArray, numbers: NDArray, *arrays: NDArray) -> dict[int, list[NDArray]]:
    """Rows as messages to the parts that write them: canonical numbers, and the rows of each array."""
    owner = np.searchsorted(bounds, numbers, side="right") - 1
    chosen = {int(target): np.flatnonzero(owner == target) for target in np.unique(owner)}
    return {target: [numbers[rows], *(array[rows] for array in arrays)] for target, rows in chosen.items()}


def _join_rows(part: Part, messages: Mapping[int, Message], *_: object) -> tuple[tuple[int, ...], str]:
    """Rows in canonical order; their shape and type."""
    numbers, rows = (np.concatenate([message[i] for message in messages.values()]) for i in range(2))
    part["result"] = rows[np.argsort(numbers)]
    return rows.shape[1:], rows.dtype.str


def _write_rows(part: Part, file: NewFile) -> None:
    file.write(part.start, part["result"])
    del part["result"]


def _leave_graph(executor: Executor, order: NDArray, indptr: NDArray) -> sparse.csr_array:
    """`graph_in_order` in files of the shared folder."""
    own = [order[first:end].astype(indptr.dtype) for first, end in pairwise(executor.bounds)]
    executor.exchange(_send_numbers, _renumber_columns, each=own)
    types = executor.exchange(_send_graph, _join_graph, executor.bounds, each=own)
    folder, size = str(executor.shared), (int(indptr[-1]),)
    files = [NewFile(folder, size, np.dtype(dtype)) for dtype in (types[0], indptr.dtype)]
    executor.map(_write_graph, files, each=[int(indptr[first]) for first in executor.bounds[:-1]])
    rows = NewFile(folder, indptr.shape, indptr.dtype)
    rows.write(0, indptr)
    n_samples = int(executor.bounds[-1])
    return _as_csr(files[0].open(), files[1].open(), rows.open(), (n_samples, n_samples))


def _send_numbers(part: Part, own: NDArray) -> dict[int, Message]:
    return rows_for_others(part, "edge", own)


def _renumber_columns(part: Part, messages: Mapping[int, Message], own: NDArray) -> None:
    """Set the graph of the part with canonical numbers of the columns, sorted in each row."""
    graph, samples = part["graph"], sample_numbers(part, "edge")
    by_sample = np.argsort(samples)
    numbers = with_halo(own, messages)[by_sample][np.searchsorted(samples[by_sample], graph.indices)]
    result = sparse.csr_array((graph.data, numbers, graph.indptr), shape=graph.shape)
    result.sort_indices()
    part["canonical_graph"] = result


def _send_graph(part: Part, bounds: NDArray, own: NDArray) -> dict[int, list[NDArray]]:
    """Rows of the graph as messages to the parts that write them: numbers, lengths, columns and weights."""
    graph = part["canonical_graph"]
    messages = _by_owner(bounds, own, np.arange(len(part)))
    for message in messages.values():
        some = graph[message.pop()]
        message += [np.diff(some.indptr), some.indices, some.data]
    return messages


def _join_graph(part: Part, messages: Mapping[int, Message], *_: object) -> str:
    numbers, lengths, columns, weights = (np.concatenate([m[i] for m in messages.values()]) for i in range(4))
    order, starts = np.argsort(numbers), np.cumsum(lengths) - lengths
    places = concat_ranges(starts[order], lengths[order])
    part["columns"], part["weights"] = columns[places], weights[places]
    del part["canonical_graph"]
    return weights.dtype.str


def _write_graph(part: Part, files: Sequence[NewFile], first: int) -> None:
    for file, name in zip(files, ("weights", "columns"), strict=True):
        file.write(first, part[name])
        del part[name]


def _row_lengths(part: Part) -> NDArray:
    return np.diff(part["graph"].indptr)


def _graph(part: Part) -> sparse.csr_array:
    return part["graph"]


def _same(rows: NDArray) -> NDArray:
    return rows


def take_in_order(rows: NDArray, index: NDArray, function: Callable[[NDArray], NDArray] = _same) -> NDArray:
    """`function(rows[index])`, in a temporary file if the rows are on disk; the function keeps shapes and types.

    Examples
    --------
    >>> take_in_order(np.array([5, 6, 7]), np.array([2, 0]))
    array([7, 5])
    >>> take_in_order(np.array([5, 6, 7]), np.array([2, 0]), np.negative)
    array([-7, -5])
    """
    if memory_map(rows) is None:
        return function(rows[index])
    readers = readers_of(rows)
    if readers is not None:
        return leave_rows(readers, function, rows, index, rows.shape[1:], rows.dtype)
    result = empty_array((len(index), *rows.shape[1:]), rows.dtype, on_disk=True)
    for batch in gen_batches(len(index), BATCH_ROWS):
        result[batch] = function(rows[index[batch]])
        release(rows)
        release(result)
    return result


def leave_rows(
    readers: Readers,
    function: Callable[..., NDArray],
    rows: NDArray,
    index: NDArray,
    shape: tuple[int, ...],
    dtype: np.dtype,
) -> NDArray:
    """`function(rows[some])` of the samples `index`, written by other processes to a file of their folder.

    Parameters
    ----------
    readers : Readers
        Those who read and write.
    function : callable
        Makes rows of rows.
    rows : ndarray of shape (m, …)
        A memory map.
    index : ndarray of int of shape (n,)
        Rows to take.
    shape : tuple of int
        Shape of a row of the result.
    dtype : dtype
        Its type.

    Returns
    -------
    ndarray of shape (n, …)
        A memory map.
    """
    file = NewFile(readers.folder, (len(index), *shape), dtype)
    tasks = [(function, file_of(rows), index[some], file, some.start) for some in gen_batches(len(index), BATCH_ROWS)]
    deque(readers.run(_write_taken, tasks), maxlen=0)
    return file.open()


def _write_taken(function: Callable[..., NDArray], rows: Any, index: NDArray, file: NewFile, first: int) -> None:
    file.write(first, function(open_file(rows)[index]))


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
        return renumber_rows(graph, nodes, samples, shape[1])
    indptr = np.concatenate([[0], np.cumsum(np.diff(graph.indptr)[nodes])]).astype(graph.indices.dtype)
    readers = readers_of(graph)
    if readers is not None:
        return _renumber_by_others(readers, graph, nodes, samples, indptr)
    data = empty_array((int(indptr[-1]),), graph.dtype, on_disk=True)
    indices = empty_array((int(indptr[-1]),), graph.indices.dtype, on_disk=True)
    for batch in gen_batches(len(nodes), BATCH_ROWS):
        some = renumber_rows(graph, nodes[batch], samples, shape[1])
        entries = slice(indptr[batch.start], indptr[batch.stop])
        data[entries], indices[entries] = some.data, some.indices
        for array in (graph, data, indices):
            release(array)
    return _as_csr(data, indices, indptr, shape)


def _renumber_by_others(
    readers: Readers, graph: sparse.csr_array, nodes: NDArray, samples: NDArray, indptr: NDArray
) -> sparse.csr_array:
    """`renumber_graph`, written by other processes to files of their folder."""
    columns = NewFile(readers.folder, samples.shape, graph.indices.dtype)
    columns.write(0, samples)
    files = [NewFile(readers.folder, (int(indptr[-1]),), dtype) for dtype in (graph.dtype, graph.indices.dtype)]
    tasks = [
        (file_of(graph), nodes[some], columns, files, int(indptr[some.start]))
        for some in gen_batches(len(nodes), BATCH_ROWS)
    ]
    deque(readers.run(_write_renumbered, tasks), maxlen=0)
    os.unlink(columns.path)
    return _as_csr(files[0].open(), files[1].open(), indptr, (len(nodes), len(nodes)))


def _write_renumbered(graph: Any, nodes: NDArray, samples: NewFile, files: Sequence[NewFile], first: int) -> None:
    whole = open_file(graph)
    some = renumber_rows(whole, nodes, samples.open(), whole.shape[1])
    files[0].write(first, some.data)
    files[1].write(first, some.indices)


def renumber_rows(graph: sparse.csr_array, nodes: NDArray, samples: NDArray, n_columns: int) -> sparse.csr_array:
    """Row `nodes[i]` of a graph as row i, with column `samples[j]` for column j of so many; in memory.

    Examples
    --------
    >>> renumber_rows(sparse.csr_array([[0.0, 1.0], [0.5, 0.0]]), np.array([1]), np.array([2, 0]), 3).toarray()
    array([[0. , 0. , 0.5]])
    """
    rows = graph[nodes]
    columns = samples.astype(rows.indices.dtype, copy=False)[rows.indices]
    result = sparse.csr_array((rows.data, columns, rows.indptr), shape=(len(nodes), n_columns))
    result.sort_indices()
    return result


def _as_csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: tuple[int, int]) -> sparse.csr_array:
    """A sparse array of these arrays, which the constructor might copy."""
    result = sparse.csr_array(shape, dtype=data.dtype)
    result.data, result.indices, result.indptr = data, indices, indptr
    result.has_sorted_indices = True
    return result
