"""Nearest neighbours of very many points: from an index, with the share that it finds measured and held."""

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.numerics.knn.exact import (
    BruteForceL2,
    IncrementalKNN,
    Neighbors,
    listed_distances,
    numbers_of,
    other_neighbors,
    sortable,
    without_self,
)
from lmssc.numerics.knn.ivf import IVFIndex
from lmssc.numerics.parallel import slices_of, threaded_map
from lmssc.numerics.scale import is_large

# Share of the nearest neighbours that has to be found by default.
TARGET = 0.95
# What the clusters near to a sample may miss, in units of what may be missed in the end: those near to the samples
# around it have most of the rest, which leaves some for the moves to come.
MISSED_FIRST = 3.0
# Samples on which the share is measured.
SAMPLED = 100
# Points to each neighbour that bound how far it is, and points that are looked at at a time.
SAMPLED_POINTS = 500
BLOCK_POINTS = 4096
# Rows of lists that are ranked at a time: they fit into the cache.
RANKED_ROWS = 4096
# Length of the lists that are kept, in units of the neighbours that are needed.
KEPT = 3
# Rows that are too few for a search by index to be worth it.
FEW_ROWS = 100


class ApproximateKNN:
    """Neighbours of points that move a little from one search to the next, most of them.

    Lists are made from clusters of the points, of which as many are looked into as the target needs, and are sorted
    again by where the points are now. When the share of the true neighbours that they hold, measured on some
    points against an exact search, falls below the target, they are made anew.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("faiss")
    >>> points = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    >>> near = ApproximateKNN()
    >>> near.search(points, 5, 12).indices.shape, near.recall >= 0.95
    ((3000, 12), True)
    """

    def __init__(self, target: float = TARGET) -> None:
        self.recall = 0.0
        self.n_full_searches = 0
        self._target = target
        self._lists: NDArray | None = None

    def search(self, points: NDArray, needed: int, length: int) -> Neighbors:
        """Nearest others of every point: `length` of each, of which the first `needed` are held to the target."""
        rows = np.linspace(0, len(points) - 1, min(SAMPLED, len(points)), dtype=np.intp)
        everyone = np.arange(len(points))
        truth = without_self(_exact(points, points[rows], needed + 1), rows)
        if self._lists is not None:
            # The first part of the lists is enough as long as it is good enough.
            for part in (length, self._lists.shape[1]):
                distances = _sort(points, points[rows], self._lists[rows, :part], rows)
                self.recall = _recall(distances, truth)
                if self.recall >= self._target:
                    # Where the points are now tells better which part comes first.
                    distances = _sort(points, points, self._lists[:, :part], everyone, length)
                    return Neighbors(self._lists[:, :length], distances)
        self.n_full_searches += 1
        kept = min(max(length, KEPT * needed), len(points) - 1)
        # One more: the point itself, or among many duplicates another, comes last.
        found, self.recall = _from_clusters(points, points, kept + 1, truth, rows, self._target, everyone)
        self._lists = found.indices[:, :-1]
        return Neighbors(self._lists[:, :length], found.squared_distances[:, :length])

    def search_more(self, points: NDArray, rows: NDArray, length: int) -> Neighbors:
        """Longer lists of the points `rows` than those of `search`: those that are kept, or exact ones."""
        # Whoever asks has seen half of that.
        if len(rows) <= FEW_ROWS:
            return without_self(_exact(points, points[rows], length + 1), rows)
        if self._lists is None or length // 2 >= self._lists.shape[1]:
            return other_neighbors(points, length, rows)
        listed = self._lists[rows]
        distances = _sort(points, points[rows], listed, rows)
        return Neighbors(listed, distances)

    def renumber(self, order: NDArray) -> None:
        """From now on the points come in another order."""
        if self._lists is not None:
            self._lists = np.argsort(order).astype(self._lists.dtype)[self._lists[order]]

    def kept(self) -> NDArray | None:
        """The lists."""
        return self._lists

    def keep(self, lists: NDArray | None) -> None:
        """Go on from what `kept` gave."""
        self._lists = lists


def nearest_by_index(points: NDArray, queries: NDArray, needed: int, length: int, target: float = TARGET) -> Neighbors:
    """Nearest points of each query: `length` of each, with a recall of the first `needed` of `target` at least.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("faiss")
    >>> points = np.random.default_rng(0).normal(size=(3000, 8))
    >>> bool((nearest_by_index(points, points[:9], 5, 12).indices[:, 0] == np.arange(9)).all())
    True
    """
    some = np.linspace(0, len(queries) - 1, min(SAMPLED, len(queries)), dtype=np.intp)
    truth = _exact(points, queries[some], needed)
    return _from_clusters(points, queries, length, truth, some, target)[0]


def _from_clusters(
    points: NDArray,
    queries: NDArray,
    length: int,
    truth: Neighbors,
    some: NDArray,
    target: float,
    own: NDArray | None = None,
) -> tuple[Neighbors, float]:
    """Nearest points of each query, and the recall of the true ones of `some`; `own`: which points the queries are."""
    single = np.ascontiguousarray(points, dtype=np.float32)
    clusters = IVFIndex(single)
    looked_for = single if own is not None else np.ascontiguousarray(queries, dtype=np.float32)
    cluster = clusters.own if own is not None else clusters.assign(looked_for)
    share = max(0.0, 1 - MISSED_FIRST * (1 - target))
    n_probe = clusters.count_needed(looked_for[some], truth.indices, share)
    while True:
        listed = clusters.search(looked_for, cluster, n_probe, length)
        distances = _sort(points, queries, listed, own)
        recall = _recall(distances[some], truth)
        if recall >= target or n_probe >= clusters.size:
            return Neighbors(listed, distances), recall
        n_probe *= 2


def _exact(points: NDArray, queries: NDArray, needed: int) -> Neighbors:
    """Nearest points of a few queries among very many, by an exact search."""
    some = points[:: max(1, len(points) // max(SAMPLED, SAMPLED_POINTS * needed))]
    # Among fewer points the last is no nearer; what is beyond it is not looked at.
    distances, errors = BruteForceL2.of(some).distances(queries)
    limits = np.partition(distances, needed - 1, axis=1)[:, needed - 1] + 2 * errors

    def find_near(block: slice) -> tuple[NDArray, NDArray]:
        distances, errors = BruteForceL2.of(points[block]).distances(queries)
        row, column = np.divmod(np.flatnonzero(distances <= (limits + errors)[:, None]), distances.shape[1])
        return row, block.start + column

    found = threaded_map(find_near, slices_of(len(points), BLOCK_POINTS))
    row, column = (np.concatenate(part) for part in zip(*found, strict=True))
    squared_distances = listed_distances(points, queries[row], column[:, None])[:, 0]
    order = np.lexsort((squared_distances, row))
    starts = np.searchsorted(row[order], np.arange(len(queries)))
    chosen = order[starts[:, None] + np.arange(needed)]
    return Neighbors(column[chosen], squared_distances[chosen])


def _recall(squared_distances: NDArray, truth: Neighbors) -> float:
    """Share of the nearest others that was found: those that are no further than the last of them."""
    needed = truth.indices.shape[1]
    near = squared_distances <= (1 + 1e-6) * truth.squared_distances[:, -1:]
    return float(np.minimum(near.sum(axis=1), needed).mean() / needed)


def _distances(points: NDArray, queries: NDArray, listed: NDArray) -> NDArray:
    """`listed_distances`; of single precision several times faster."""
    if points.dtype != np.float32 or not points.flags.c_contiguous:
        return listed_distances(points, queries, listed)
    faiss = import_optional("faiss", purpose="approximate neighbours", extra="large")
    result = np.empty(listed.shape, dtype=np.float32)
    single, numbers = np.ascontiguousarray(queries), np.ascontiguousarray(listed, dtype=np.int64)
    pointers = [faiss.swig_ptr(array) for array in (result, single, points, numbers)]
    faiss.fvec_L2sqr_by_idx(*pointers, points.shape[1], *listed.shape)
    return result


def _sort(
    points: NDArray, queries: NDArray, listed: NDArray, own: NDArray | None = None, length: int | None = None
) -> NDArray:
    """Sort what is listed of each query, nearest first, in place; squared distances to the first `length`, or to all.

    A query that is a point itself, `own`, is the furthest from itself.
    """
    result = np.empty((len(queries), listed.shape[1] if length is None else length), dtype=points.dtype)

    def sort_block(block: slice) -> None:
        distances = _distances(points, queries[block], listed[block])
        if own is not None:
            distances[listed[block] == own[block, None]] = np.inf
        listed[block], distances = _by_distance(listed[block], distances)
        result[block] = distances[:, : result.shape[1]]

    threaded_map(sort_block, slices_of(len(queries), RANKED_ROWS))
    return result


def _by_distance(listed: NDArray, distances: NDArray) -> tuple[NDArray, NDArray]:
    """Both, nearest first."""
    if distances.dtype == np.float32:
        both = sortable(distances, listed)
        both.sort(axis=1)
        return numbers_of(both), (both >> 32).astype(np.int32).view(np.float32)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(listed, order, 1), np.take_along_axis(distances, order, 1)


def has_index(n_samples: int, target: float = TARGET) -> bool:
    """Whether so many samples are searched by an index: they are many, some may be missed, and faiss is installed."""
    return is_large(n_samples) and target < 1 and find_spec("faiss") is not None


def choose_search(n_samples: int, target: float = TARGET) -> IncrementalKNN | ApproximateKNN:
    """Exact neighbours, or for very many samples, if faiss is installed, such a share of them.

    Examples
    --------
    >>> type(choose_search(1000)).__name__
    'IncrementalKNN'
    """
    return ApproximateKNN(target) if has_index(n_samples, target) else IncrementalKNN()
