"""Approximate nearest neighbours of many points, with a recall that is measured and held."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.exact import BruteForceL2, Neighbors, listed_distances, other_neighbors, without_self
from lmssc.numerics.knn.ivf import IVFIndex, has_small_clusters
from lmssc.numerics.knn.line import nearest_on_line
from lmssc.numerics.knn.repeated import ExactKNN
from lmssc.numerics.knn.topk import indices_of_keys, sort_keys, values_of_keys
from lmssc.numerics.parallel import threaded_map
from lmssc.numerics.scale import is_large

TARGET = 0.95
"""Recall of the neighbours by default."""


@dataclass(frozen=True)
class ApproximateSettings:
    """Settings of the approximate search."""

    missed_by_probes: float = 3.0
    missed_with_small: float = 1.8
    """The clusters nearest to a query may miss this many times the neighbours that may be missed in the end. The
    clusters nearest to the other queries of its cluster hold most of these, which leaves a reserve for moves. Small
    clusters have fewer other queries, and to search many points again takes long."""
    n_measured: int = 100
    """Number of queries on which the recall is measured."""
    sample_per_neighbor: int = 500
    """The exact search first bounds the distance of the farthest neighbour, in a sample of this many points per
    neighbour."""
    exact_batch_size: int = 4096
    """Number of points per batch of the exact search."""
    sort_batch_size: int = 4096
    """Number of lists that are sorted at a time: they fit into the cache."""
    list_factor: int = 3
    """Length of the stored lists, relative to the number of neighbours needed."""
    max_exact_rows: int = 100
    """`search_more` searches up to this many rows exactly."""


SETTINGS = ApproximateSettings()


class ApproximateKNN:
    """Approximate neighbours of points that move a little from one search to the next.

    The first search takes candidate lists from an inverted file. Later ones only sort these lists by the present
    distances, as long as the recall, measured on some points against an exact search, meets the target; when it does
    not, the index is built again.

    Parameters
    ----------
    target : float
        Recall to hold, from 0 to 1.

    Attributes
    ----------
    recall : float
        Measured recall of the last search.
    n_full_searches : int
        How many times an index was built.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    >>> search = ApproximateKNN()
    >>> search.search(points, 5, 12).indices.shape, search.recall >= 0.95
    ((3000, 12), True)
    """

    def __init__(self, target: float = TARGET) -> None:
        self.recall = 0.0
        self.n_full_searches = 0
        self._target = target
        self._lists: NDArray | None = None

    def search(self, points: NDArray, needed: int, length: int) -> Neighbors:
        """Nearest other points of every point: `length` of each; the recall is that of the first `needed`."""
        measured = measured_rows(len(points))
        everyone = np.arange(len(points))
        truth = without_self(nearest_of_few(points, points[measured], needed + 1), measured)
        if self._lists is not None:
            # The first part of the lists is sorted alone as long as its recall is high enough.
            for n_sorted in (length, self._lists.shape[1]):
                distances = sort_lists(points, points[measured], self._lists[measured, :n_sorted], measured)
                self.recall = measure_recall(distances, truth)
                if self.recall >= self._target:
                    distances = sort_lists(points, points, self._lists[:, :n_sorted], everyone, length)
                    return Neighbors(self._lists[:, :length], distances)
        self.n_full_searches += 1
        list_length = min(max(length, SETTINGS.list_factor * needed), len(points) - 1)
        # One more for the point itself, which comes last (or, among many duplicates, another one does).
        found, self.recall = _search_index(points, points, list_length + 1, truth, measured, self._target, everyone)
        self._lists = found.indices[:, :-1]
        return Neighbors(self._lists[:, :length], found.squared_distances[:, :length])

    def search_more(self, points: NDArray, rows: NDArray, length: int) -> Neighbors:
        """Longer lists of the points `rows`, after `search`: the stored lists, or exact ones."""
        if len(rows) <= SETTINGS.max_exact_rows:
            return without_self(nearest_of_few(points, points[rows], length + 1), rows)
        # The caller has seen half of `length` already.
        if self._lists is None or length // 2 >= self._lists.shape[1]:
            return other_neighbors(points, length, rows)
        listed = self._lists[rows]
        return Neighbors(listed, sort_lists(points, points[rows], listed, rows))

    def renumber(self, order: NDArray) -> None:
        """Adapt to points that come in another order from now on."""
        if self._lists is not None:
            self._lists = np.argsort(order).astype(self._lists.dtype)[self._lists[order]]

    def state(self) -> NDArray | None:
        """The candidate lists."""
        return self._lists

    def set_state(self, state: NDArray | None) -> None:
        """Continue from what `state` returned."""
        self._lists = state


def nearest_by_index(points: NDArray, queries: NDArray, needed: int, length: int, target: float = TARGET) -> Neighbors:
    """Nearest points of each query, approximately: `length` of each; the first `needed` have a recall of `target`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(3000, 8))
    >>> bool((nearest_by_index(points, points[:9], 5, 12).indices[:, 0] == np.arange(9)).all())
    True
    """
    measured = measured_rows(len(queries))
    truth = nearest_of_few(points, queries[measured], needed)
    return _search_index(points, queries, length, truth, measured, target)[0]


def measured_rows(n_rows: int) -> NDArray:
    """Evenly spaced rows on which the recall is measured."""
    return np.linspace(0, n_rows - 1, min(SETTINGS.n_measured, n_rows), dtype=np.intp)


def _search_index(
    points: NDArray,
    queries: NDArray,
    length: int,
    truth: Neighbors,
    measured: NDArray,
    target: float,
    own: NDArray | None = None,
) -> tuple[Neighbors, float]:
    """Nearest points of each query by a new index, and the recall.

    `truth` has the true neighbours of the queries `measured`; `own` is the index of each query among the points, if the
    queries are points.
    """
    if points.shape[1] == 1:
        listed = nearest_on_line(points, queries, length)
        distances = sort_lists(points, queries, listed, own)
        return Neighbors(listed, distances), measure_recall(distances[measured], truth)
    single = np.ascontiguousarray(points, dtype=np.float32)
    index = IVFIndex(single, _order_by_first(points) if own is None else None)
    single_queries = single if own is not None else np.ascontiguousarray(queries, dtype=np.float32)
    clusters = index.own if own is not None else index.assign(single_queries)
    probed = probed_recall(target, len(points))
    n_probe = index.n_probe(single_queries[measured], index.own[truth.indices], probed)
    while True:
        listed = index.search(single_queries, clusters, n_probe, length)
        distances = sort_lists(points, queries, listed, own)
        recall = measure_recall(distances[measured], truth)
        if recall >= target or n_probe >= index.n_clusters:
            return Neighbors(listed, distances), recall
        n_probe *= 2


def _order_by_first(points: NDArray) -> NDArray:
    """An order that does not follow that of the points, nor the last digits: by size of the first coordinate.

    The last coordinates may be predicted scores in single precision, whose rounding would reorder the points.

    Examples
    --------
    >>> _order_by_first(np.array([[-3.0, 0.0], [1.0, 1.0], [2.0, 0.5]]))
    array([1, 2, 0])
    """
    return np.argsort(np.abs(points[:, 0]), kind="stable")


def probed_recall(target: float, n_points: int) -> float:
    """Share of the neighbours that the clusters nearest to a query have to hold for a recall of `target`."""
    missed = SETTINGS.missed_with_small if has_small_clusters(n_points) else SETTINGS.missed_by_probes
    return max(0.0, 1 - missed * (1 - target))


def sample_step(n_points: int, needed: int) -> int:
    """One of so many points is in the sample that bounds the distance of the farthest neighbour."""
    return max(1, n_points // max(SETTINGS.n_measured, SETTINGS.sample_per_neighbor * needed))


def distance_limits(sample: NDArray, queries: NDArray, needed: int) -> NDArray:
    """For each query, a squared distance within which there are `needed` points, because those of a sample are."""
    distances, _ = BruteForceL2.of(sample).distances(queries)
    nearest = np.argpartition(distances, needed - 1, axis=1)[:, :needed]
    return listed_distances(sample, queries, nearest).max(axis=1)


def nearest_of_few(points: NDArray, queries: NDArray, needed: int) -> Neighbors:
    """Nearest points of a few queries among many points, exactly; ties by index.

    All points are compared, which takes less time than to build a tree for up to some thousand queries.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(3000, 8))
    >>> nearest_of_few(points, points[:2], 1).indices
    array([[0],
           [1]])
    """
    # The farthest neighbour in a sample is no nearer than the farthest one of all; points beyond it are skipped.
    limits = distance_limits(points[:: sample_step(len(points), needed)], queries, needed)
    return select_nearest(*points_within(points, queries, limits), len(queries), needed)


def points_within(points: NDArray, queries: NDArray, limits: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Pairs of a query and a point within its limit, and perhaps some more: query, point and squared distance."""

    def find_near(batch: slice) -> tuple[NDArray, NDArray]:
        distances, errors = BruteForceL2.of(points[batch]).distances(queries)
        row, column = np.divmod(np.flatnonzero(distances <= (limits + errors)[:, None]), distances.shape[1])
        return row, batch.start + column

    found = threaded_map(find_near, gen_batches(len(points), SETTINGS.exact_batch_size))
    row, column = (np.concatenate(part) for part in zip(*found, strict=True))
    return row, column, listed_distances(points, queries[row], column[:, None])[:, 0]


def select_nearest(row: NDArray, column: NDArray, squared_distances: NDArray, n_queries: int, needed: int) -> Neighbors:
    """The `needed` nearest points of each query, from pairs that `points_within` found."""
    order = np.lexsort((squared_distances, row))
    starts = np.searchsorted(row[order], np.arange(n_queries))
    chosen = order[starts[:, None] + np.arange(needed)]
    return Neighbors(column[chosen], squared_distances[chosen])


def measure_recall(squared_distances: NDArray, truth: Neighbors) -> float:
    """Share of the true neighbours that was found: points at most as far as the farthest of them."""
    needed = truth.indices.shape[1]
    near = squared_distances <= (1 + 1e-6) * truth.squared_distances[:, -1:]
    return float(np.minimum(near.sum(axis=1), needed).mean() / needed)


def sort_lists(
    points: NDArray, queries: NDArray, listed: NDArray, own: NDArray | None = None, length: int | None = None
) -> NDArray:
    """Sort the lists of the queries in place, nearest first; squared distances of the first `length`, or of all.

    A query that is a point itself, with index `own`, counts as infinitely far from itself.
    """
    result = np.empty((len(queries), listed.shape[1] if length is None else length), dtype=points.dtype)

    def sort_batch(batch: slice) -> None:
        distances = listed_distances(points, queries[batch], listed[batch])
        if own is not None:
            distances[listed[batch] == own[batch, None]] = np.inf
        listed[batch], distances = _by_distance(listed[batch], distances)
        result[batch] = distances[:, : result.shape[1]]

    threaded_map(sort_batch, gen_batches(len(queries), SETTINGS.sort_batch_size))
    return result


def _by_distance(listed: NDArray, distances: NDArray) -> tuple[NDArray, NDArray]:
    """Lists and distances, nearest first."""
    if distances.dtype == np.float32:
        keys = sort_keys(distances, listed)
        keys.sort(axis=1)
        return indices_of_keys(keys), values_of_keys(keys)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(listed, order, 1), np.take_along_axis(distances, order, 1)


def has_index(n_samples: int, target: float = TARGET) -> bool:
    """Whether neighbours come from an index: there are many samples, and the recall may be below 1.

    Examples
    --------
    >>> has_index(1000), has_index(100_000), has_index(100_000, target=1)
    (False, True, False)
    """
    return is_large(n_samples) and target < 1


def choose_search(n_samples: int, target: float = TARGET, n_more: int | None = None) -> ExactKNN | ApproximateKNN:
    """The search for this number of samples: exact, or for many samples approximate with this recall.

    `n_more` is the number of coordinates that many later searches will add to those of the first, if that is known.

    Examples
    --------
    >>> type(choose_search(1000)).__name__, type(choose_search(100_000)).__name__
    ('ExactKNN', 'ApproximateKNN')
    """
    return ApproximateKNN(target) if has_index(n_samples, target) else ExactKNN(n_more)
