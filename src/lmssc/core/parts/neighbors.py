"""Neighbour lists in parts: the search of `ApproximateKNN`, with the points of each part where they are.

Clusters are learned from a sample of all points. A part searches the clusters near to its samples, of which others send
it their points. It finds the same candidates as a search in memory, up to rounding, however many parts there are.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lmssc.core.parts.executor import Executor, Message, Part, gather, total
from lmssc.core.parts.halo import connect, localise, rows_for_others, sample_numbers, with_halo
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.approximate import (
    SETTINGS,
    distance_limits,
    has_index,
    measure_recall,
    measured_rows,
    points_within,
    probed_recall,
    sample_step,
    select_nearest,
    sort_lists,
)
from lmssc.numerics.knn.exact import BATCHES, Neighbors, nearest_neighbors, without_self
from lmssc.numerics.knn.ivf import SETTINGS as IVF
from lmssc.numerics.knn.ivf import ClusteredPoints, Clusters, count_clusters
from lmssc.numerics.knn.kmeans import rows_by_cluster

# Queries of an exact search at a time.
EXACT_QUERIES = 1000


class PartedKNN:
    """Neighbours of the points of all parts, which move a little from one search to the next.

    After `search`, each part has "lists", the local numbers of the neighbours of each sample, nearest first, and
    "distances", the squared distances of the first of them.

    Parameters
    ----------
    executor : Executor
        The parts, which have their "points".
    target : float
        Recall to hold; with 1, or few points, the search is exact.

    Attributes
    ----------
    recall : float
        Measured recall of the last search.
    """

    def __init__(self, executor: Executor, target: float) -> None:
        self.executor, self.target = executor, target
        self.recall = 1.0
        self.n_points = int(executor.bounds[-1])
        self.list_length = 0
        self.approximate = has_index(self.n_points, target)

    def search(self, needed: int, length: int) -> None:
        """Find at least `needed` and up to `length` neighbours of every point; the recall is that of `needed`."""
        if not self.approximate:
            self._search_exactly(length)
            return
        measured = measured_rows(self.n_points)
        queries = gather(self.executor, "points", measured)
        truth = without_self(self.exact(queries, needed + 1), measured)
        if self.list_length:
            for n_sorted in (length, self.list_length):
                if self._sort(n_sorted, length, measured, truth):
                    return
        self.list_length = min(max(length, SETTINGS.list_factor * needed), self.n_points - 1)
        self._build(length, queries, truth, measured)

    def _search_exactly(self, length: int) -> None:
        """Compare all points with all others."""
        points = np.concatenate(self.executor.map(_points))
        self.executor.map(_all_nearest, points, length)
        connect(self.executor, "list")
        self.list_length = length

    def _sort(self, n_sorted: int, length: int, measured: NDArray, truth: Neighbors, *, new: bool = False) -> bool:
        """Sort the first `n_sorted` of all lists by the present distances; whether the recall is high enough."""
        self.executor.exchange(send_points, _sort_lists, n_sorted, length, new)
        self.recall = measure_recall(gather(self.executor, "distances", measured), truth)
        return self.recall >= self.target

    def _build(self, length: int, queries: NDArray, truth: Neighbors, measured: NDArray) -> None:
        """New lists from new clusters."""
        executor, n_clusters = self.executor, count_clusters(self.n_points)
        sample = gather(executor, "points", np.arange(0, self.n_points, IVF.training_step))
        index = Clusters(np.ascontiguousarray(sample, dtype=np.float32), n_clusters)
        sizes = np.array(executor.map(_assign, index))
        centre = (total(executor.map(_point_sum)) / self.n_points).astype(np.float32)
        clusters = gather(executor, "cluster", truth.indices.ravel()).reshape(truth.indices.shape)
        n_probe = index.n_probe(queries.astype(np.float32), clusters, probed_recall(self.target, self.n_points))
        while True:
            self._probe(index, sizes, min(n_probe, index.n_clusters), centre)
            enough = self._sort(self.list_length + 1, length, measured, truth, new=True)
            if enough or n_probe >= index.n_clusters:
                return
            n_probe *= 2

    def _probe(self, index: Clusters, sizes: NDArray, n_probe: int, centre: NDArray) -> None:
        """Candidates from the clusters nearest to each sample, or to another one of its cluster."""
        near = index.near(np.arange(index.n_clusters), n_probe)
        used = [np.flatnonzero(own) for own in sizes]
        reached = np.zeros(near.shape, dtype=bool)
        found = self.executor.map(_reach, index, n_probe, each=[near[own] for own in used])
        for own, part in zip(used, found, strict=True):
            reached[own] |= part
        sizes_of_all, everywhere = sizes.sum(axis=0), np.empty(len(near), dtype=bool)
        for batch in gen_batches(len(near), BATCHES.rows_of_distances(near.shape[1])):
            n_candidates = np.where(reached[batch], sizes_of_all[near[batch]], 0).sum(axis=1)
            everywhere[batch] = n_candidates <= self.list_length
        wanted = np.zeros((len(used), index.n_clusters), dtype=bool)
        for number, own in enumerate(used):
            wanted[number, near[own][reached[own]]] = True
            wanted[number] |= everywhere[own].any()
        each = [(near[own], reached[own] | everywhere[own, None], everywhere[own]) for own in used]
        del near, reached  # which are large, and `each` has them as well
        self.executor.exchange(_send_clusters, _search_clusters, wanted, self.list_length, centre, each=each)
        connect(self.executor, "list")

    def exact(self, queries: NDArray, needed: int) -> Neighbors:
        """Nearest points of a few queries among all points, exactly; indices are samples."""
        step = sample_step(self.n_points, needed)
        sample = gather(self.executor, "points", np.arange(0, self.n_points, step))
        found = []
        for batch in gen_batches(len(queries), EXACT_QUERIES):
            limits = distance_limits(sample, queries[batch], needed)
            pairs = zip(*self.executor.map(_points_within, queries[batch], limits), strict=True)
            row, column, distances = map(np.concatenate, pairs)
            found.append(select_nearest(row, column, distances, len(limits), needed))
        return Neighbors(*map(np.concatenate, zip(*found, strict=True)))

    def search_more(self, rows: NDArray, length: int) -> Neighbors:
        """Longer lists of the samples `rows`, exactly; indices are samples."""
        queries = gather(self.executor, "points", rows)
        return without_self(self.exact(queries, length + 1), rows)

    def keeps_lists(self, n_rows: int, length: int) -> bool:
        """Whether longer lists of so many samples come from the stored lists, as in `ApproximateKNN.search_more`."""
        return self.approximate and n_rows > SETTINGS.max_exact_rows and length // 2 < self.list_length


def _points(part: Part) -> NDArray:
    return part["points"]


def send_points(part: Part, *_: object) -> Mapping[int, Message]:
    """Send the points that other parts have in their neighbour lists."""
    return rows_for_others(part, "list", part["points"])


def _point_sum(part: Part) -> NDArray:
    return part["points"].sum(axis=0, dtype=np.float64)


def _points_within(part: Part, queries: NDArray, limits: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    row, column, squared_distances = points_within(part["points"], queries, limits)
    return row, part.start + column, squared_distances


def _all_nearest(part: Part, points: NDArray, length: int) -> None:
    own = np.arange(part.start, part.stop)
    found = without_self(nearest_neighbors(points, part["points"], length + 1), own)
    part["lists"] = localise(part, "list", found.indices)
    part["distances"] = found.squared_distances


def _single(part: Part) -> NDArray:
    return np.ascontiguousarray(part["points"], dtype=np.float32)


def _assign(part: Part, index: Clusters) -> NDArray:
    """Find the cluster of each sample; the number of samples in each."""
    own = index.assign(_single(part))
    part["cluster"] = own.astype(np.int32)
    return np.bincount(own, minlength=index.n_clusters)


def _rows_of_used(part: Part) -> list[NDArray]:
    """Rows of each cluster that the part has samples of."""
    clusters = part["cluster"]
    return [rows for rows in rows_by_cluster(clusters, int(clusters.max()) + 1) if len(rows)]


def _reach(part: Part, index: Clusters, n_probe: int, near: NDArray) -> NDArray:
    """Which of the clusters near to each cluster of the part are reached by one of its samples."""
    points = _single(part)
    rows = _rows_of_used(part)
    return np.array([index.reached(own, points[some], n_probe) for own, some in zip(near, rows, strict=True)])


def _send_clusters(part: Part, wanted: NDArray, *_: object) -> Mapping[int, Message]:
    """To each other part the samples of the clusters that it wants: numbers, clusters and points."""
    clusters, points, messages = part["cluster"], _single(part), {}
    for number in range(len(wanted)):
        rows = np.flatnonzero(wanted[number][clusters])
        if number != part.number and len(rows):
            messages[number] = [(part.start + rows).astype(np.int32), clusters[rows], points[rows]]
    return messages


def _search_clusters(
    part: Part,
    messages: Mapping[int, Message],
    wanted: NDArray,
    length: int,
    centre: NDArray,
    own: tuple[NDArray, NDArray, NDArray],
) -> None:
    """Nearest candidates of each sample, in no order."""
    near, reached, everywhere = own
    points, clusters = _single(part), part["cluster"]
    mine = [np.arange(part.start, part.stop, dtype=np.int32), clusters, points]
    together = sorted({**messages, part.number: mine}.items())
    samples, where = (np.concatenate([arrays[i] for _, arrays in together]) for i in range(2))
    candidates = ClusteredPoints([arrays[2] for _, arrays in together], where, wanted.shape[1], centre)
    # One more than asked for: a sample finds itself.
    found = np.empty((len(part), length + 1), dtype=np.int32)
    for number, rows in enumerate(_rows_of_used(part)):
        chosen = np.arange(wanted.shape[1]) if everywhere[number] else near[number][reached[number]]
        found[rows] = samples[candidates.search(points[rows], chosen, length + 1)]
    part["lists"] = localise(part, "list", found)


def _sort_lists(part: Part, messages: Mapping[int, Message], n_sorted: int, length: int, drop_last: bool) -> None:
    """Sort the first `n_sorted` of each list by distance; the sample itself comes last, and new lists drop it."""
    points, lists = part["points"], part["lists"].copy()
    some = np.ascontiguousarray(lists[:, :n_sorted])
    part["distances"] = sort_lists(with_halo(points, messages), points, some, np.arange(len(part)), length)
    lists[:, :n_sorted] = some
    part["lists"] = np.ascontiguousarray(lists[:, :-1]) if drop_last else lists


def stored_lists(part: Part, messages: Mapping[int, Message], rows: NDArray) -> Neighbors:
    """The stored lists of some rows, sorted; indices are samples."""
    listed = part["lists"][rows]
    points = part["points"]
    distances = sort_lists(with_halo(points, messages), points[rows], listed, rows)
    return Neighbors(sample_numbers(part, "list")[listed], distances)
