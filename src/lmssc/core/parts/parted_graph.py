"""The graph S and its Laplacian in parts: each part has the rows of its samples."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.graph import MAX_NEIGHBORS, adaptive_alpha, join_rows, project_rows
from lmssc.core.laplacian import laplacian_rows
from lmssc.core.parts.executor import Executor, Message, Part, collect, total
from lmssc.core.parts.halo import connect, localise, sample_numbers
from lmssc.core.parts.neighbors import PartedKNN, send_points, stored_lists
from lmssc.numerics.knn.exact import Neighbors


def learn_graph(search: PartedKNN, n_neighbors: int, beta: float, *, new_alpha: bool, shared_alpha: bool) -> None:
    """Update of S from the "points" of all parts, and of L; see `lmssc.core.graph.learn_graph`.

    Parameters
    ----------
    search : PartedKNN
        Neighbour search.
    n_neighbors : int
        k.
    beta : float
        β.
    new_alpha : bool
        Whether α is set anew, as "alpha" of each part; otherwise the parts have it.
    shared_alpha : bool
        Whether all samples get the mean α, if it is set anew.
    """
    executor, n_points = search.executor, search.n_points
    length = min(2 * n_neighbors + 2, n_points - 1)
    search.search(n_neighbors + 1, length)
    if new_alpha:
        sums = executor.map(_set_alpha, n_neighbors, beta)
        if shared_alpha:
            executor.map(_share_alpha, total(sums) / n_points)
        else:  # rows have at most k neighbours
            length = min(n_neighbors + 2, length)
    most = max(length, min(MAX_NEIGHBORS, n_points - 1))
    counts = executor.map(_project_lists, beta, length, length >= most, n_points)
    while sum(counts):
        length = min(2 * length, most)
        if search.keeps_lists(sum(counts), length):
            counts = executor.exchange(send_points, _project_stored, beta, length >= most, n_points)
        else:
            counts = _project_exact(search, counts, beta, length, length >= most)
    executor.exchange(_send_edges, _set_laplacian, executor.bounds, n_points)
    connect(executor, "edge")


def _set_alpha(part: Part, n_neighbors: int, beta: float) -> float:
    alpha = adaptive_alpha(part["distances"], n_neighbors, beta)
    part["alpha"] = alpha
    return float(alpha.sum(dtype=np.float64))


def _share_alpha(part: Part, alpha: float) -> None:
    part["alpha"] = np.full_like(part["alpha"], alpha)


def _width(part: Part, beta: float) -> NDArray:
    return 4 * beta * part["alpha"]


def _project_lists(part: Part, beta: float, length: int, last: bool, n_points: int) -> int:
    """The rows whose list is long enough; the number of the others."""
    listed = sample_numbers(part, "list")[part["lists"][:, :length]]
    found = Neighbors(listed, part["distances"][:, :length])
    part["graph"] = sparse.csr_array((len(part), n_points), dtype=found.squared_distances.dtype)
    return _add_rows(part, found, np.arange(len(part)), beta, last)


def _add_rows(part: Part, found: Neighbors, pending: NDArray, beta: float, last: bool) -> int:
    """Add to the graph the rows `pending`, as far as their lists are long enough; the number of the others."""
    done, left = project_rows(found, pending, _width(part, beta), last=last)
    graph, n_points = part["graph"], part["graph"].shape[1]
    if done:
        rows = join_rows(done, len(part), n_points)
        part["graph"] = rows if not graph.nnz else (graph + rows).tocsr()
    part["pending"] = left
    return len(left)


def _project_stored(part: Part, messages: Mapping[int, Message], beta: float, last: bool, _: int) -> int:
    pending = part["pending"]
    return _add_rows(part, stored_lists(part, messages, pending), pending, beta, last) if len(pending) else 0


def _project_exact(search: PartedKNN, counts: list[int], beta: float, length: int, last: bool) -> list[int]:
    executor = search.executor
    rows = np.concatenate(executor.map(_pending_samples))
    found = search.search_more(rows, length)
    ends = np.cumsum([0, *counts])
    each = [Neighbors(*(array[first:end] for array in found)) for first, end in pairwise(ends)]
    return executor.map(_project_found, beta, last, each=each)


def _pending_samples(part: Part) -> NDArray:
    return part.start + part["pending"]


def _project_found(part: Part, beta: float, last: bool, found: Neighbors) -> int:
    pending = part["pending"]
    return _add_rows(part, found, pending, beta, last) if len(pending) else 0


def _send_edges(part: Part, bounds: NDArray, _: int) -> Mapping[int, Message]:
    """To each other part the edges that lead to its samples: end, start and weight."""
    graph: sparse.csr_array = part["graph"]
    rows = np.repeat(np.arange(part.start, part.stop, dtype=np.int32), np.diff(graph.indptr))
    owner = np.searchsorted(bounds, graph.indices, side="right") - 1
    messages = {}
    for number in np.unique(owner):
        if number != part.number:
            chosen = np.flatnonzero(owner == number)
            messages[int(number)] = [graph.indices[chosen], rows[chosen], graph.data[chosen]]
    return messages


def _set_laplacian(part: Part, messages: Mapping[int, Message], bounds: NDArray, n_points: int) -> None:
    """L of the samples of the part, with local numbers of the columns; and the halo of its edges."""
    graph: sparse.csr_array = part["graph"]
    rows = np.repeat(np.arange(part.start, part.stop, dtype=np.int32), np.diff(graph.indptr))
    inside = np.flatnonzero((graph.indices >= part.start) & (graph.indices < part.stop))
    edges = [[graph.indices[inside], rows[inside], graph.data[inside]], *messages.values()]
    ends, starts, weights = (np.concatenate([message[i] for message in edges]) for i in range(3))
    entries = (weights, (ends - np.int32(part.start), starts))
    transposed = sparse.csr_array(entries, shape=(len(part), n_points))
    matrix = laplacian_rows(graph, transposed, part.start)
    columns = localise(part, "edge", matrix.indices)
    shape = (len(part), len(part) + len(part["edge_halo"]))
    local = sparse.csr_array((matrix.data, columns, matrix.indptr), shape=shape)
    part["laplacian"] = local
    part["diagonal"] = local.diagonal()


def take_edges(part: Part, name: str, rows: NDArray) -> sparse.csr_array:
    """Some rows of the graph or of the Laplacian, with samples as columns."""
    if name == "graph":
        return part["graph"][rows]
    some, samples = part["laplacian"][rows], sample_numbers(part, "edge")
    return sparse.csr_array((some.data, samples[some.indices], some.indptr), shape=(len(rows), 2**31 - 1))


def subgraph(executor: Executor, name: str, rows: NDArray) -> tuple[sparse.csr_array, NDArray]:
    """Some rows of the graph or of the Laplacian on the samples that they mention alone; and these samples.

    All other rows are empty.
    """
    found = collect(executor, take_edges, rows, name)
    samples = np.union1d(rows, found.indices)
    lengths = np.zeros(len(samples), dtype=np.int64)
    lengths[np.searchsorted(samples, rows)] = np.diff(found.indptr)
    order = np.argsort(rows, kind="stable")
    found = found[order]
    columns = np.searchsorted(samples, found.indices)
    entries = (found.data, columns, np.concatenate([[0], np.cumsum(lengths)]))
    return sparse.csr_array(entries, shape=(len(samples), len(samples))), samples
