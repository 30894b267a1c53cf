"""Nearest neighbours of very many points: from an index, with the share that it finds measured and held."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.neighbors import BLOCK_DISTANCES, Blocks, MovingPoints, Neighbors, listed_distances, other_neighbors

# From so many samples on an index is faster than an exact search, as measured on two cores.
FEWEST_SAMPLES = 10_000
# Share of the nearest neighbours that has to be found.
TARGET = 0.95
# Share of what may be missed that new lists leave for the moves to come.
SPARED = 0.3
# Samples on which the share is measured.
SAMPLED = 200
# Points to each neighbour that bound how far it is, and points that are looked at at a time.
SAMPLED_POINTS = 500
BLOCK_POINTS = 4096
# Rows of lists that are ranked at a time: they fit into the cache.
RANKED_ROWS = 4096
# Length of the lists that are kept, in units of the neighbours that are needed.
KEPT = 3
# Clusters of the index for each root of a sample, as long as each has so many; samples that each is learned from, and
# rounds of learning.
CLUSTERS_PER_ROOT = 10
SMALLEST_CLUSTER = 100
SAMPLES_PER_CLUSTER = 40
CLUSTER_ROUNDS = 4
# The clusters nearest to a point are looked for among so many times as many that are nearest to its own.
NEAR_OWN = 16
# Rows that are too few for a search by index to be worth it.
FEW_ROWS = 100


class IndexedPoints:
    """Neighbours of points that move a little from one search to the next, most of them.

    Lists are made with an inverted file of faiss, in which as many clusters are looked at as the target needs, and are
    ranked again by where the points are now. When the share of the true neighbours that they hold, measured on some
    points against an exact search, falls below the target, they are made anew.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("faiss")
    >>> points = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    >>> near = IndexedPoints()
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
        truth = _reach(points, points[rows], needed + 1)
        found = None
        if self._lists is not None:
            # The first part of the lists is enough as long as it is good enough.
            for part in (length, self._lists.shape[1]):
                self.recall = _recall(_rank(points, self._lists[rows, :part], rows), truth, needed)
                if self.recall >= self._target:
                    found = _rank(points, self._lists[:, :part])
                    # Where the points are now tells better which part comes first.
                    self._lists[:, :part] = found.indices
                    break
        if found is None:
            self._renew(points, rows, truth, needed, max(length, KEPT * needed))
            found = _rank(points, self._lists[:, :length])  # type: ignore[index]
        return Neighbors(found.indices[:, :length], found.squared_distances[:, :length])

    def search_more(self, points: NDArray, rows: NDArray, length: int) -> Neighbors:
        """Longer lists of the points `rows` than those of `search`: those that are kept, or exact ones."""
        # Whoever asks has seen half of that.
        if self._lists is None or length // 2 >= self._lists.shape[1] or len(rows) <= FEW_ROWS:
            return other_neighbors(points, length, rows)
        return _rank(points, self._lists[rows], rows)

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

    def _renew(self, points: NDArray, rows: NDArray, truth: NDArray, needed: int, length: int) -> None:
        """Make the lists anew."""
        self.n_full_searches += 1
        single = np.ascontiguousarray(points, dtype=np.float32)

        def recall(index: Any) -> float:
            own = index.quantizer.search(single[rows], 1)[1][:, 0]
            listed = _search_own(index, single, rows, own, length + 1)
            return _recall(_rank(points, _without_self(listed, rows), rows), truth, needed)

        # Some of what may be missed is left for the moves to come.
        index, self.recall = _make_index(single, recall, self._target + SPARED * (1 - self._target))
        self._lists = np.empty((len(points), length), dtype=np.int32)
        members, own = _members(index)
        for block in _blocks(len(points), length):
            part = members[block]
            self._lists[part] = _without_self(_search_own(index, single, part, own[block], length + 1), part)


def nearest_by_index(points: NDArray, queries: NDArray, needed: int, length: int) -> Neighbors:
    """Nearest points of each query: `length` of each, with a recall of the first `needed` of 95 % at least.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("faiss")
    >>> points = np.random.default_rng(0).normal(size=(3000, 8))
    >>> bool((nearest_by_index(points, points[:9], 5, 12).indices[:, 0] == np.arange(9)).all())
    True
    """
    single = np.ascontiguousarray(queries, dtype=np.float32)
    some = np.linspace(0, len(queries) - 1, min(SAMPLED, len(queries)), dtype=np.intp)
    truth = _reach(points, queries[some], needed)

    def ranked(index: Any, rows: NDArray) -> Neighbors:
        distances, listed = index.search(single[rows], length)
        if points.dtype != np.float32:
            distances = listed_distances(points, queries[rows], listed)
        distances[listed < 0] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")
        return Neighbors(np.take_along_axis(listed, order, 1), np.take_along_axis(distances, order, 1))

    def recall(index: Any) -> float:
        return _recall(ranked(index, some), truth, needed)

    index = _make_index(np.ascontiguousarray(points, dtype=np.float32), recall, TARGET)[0]
    # Queries that are near each other look at the same clusters, which then are in the cache.
    order = np.argsort(index.quantizer.search(single, 1)[1][:, 0], kind="stable")
    found = Neighbors(np.empty((len(queries), length), np.int64), np.empty((len(queries), length), points.dtype))
    for block in _blocks(len(queries), length):
        rows = order[block]
        found.indices[rows], found.squared_distances[rows] = ranked(index, rows)
    return found


def _make_index(points: NDArray, recall: Callable[[Any], float], target: float) -> tuple[Any, float]:
    """An inverted file that looks at as many clusters as the target needs, and the recall that it then has."""
    faiss = import_optional("faiss", purpose="approximate neighbours", extra="large")
    n_points, n_features = points.shape
    n_clusters = int(min(CLUSTERS_PER_ROOT * np.sqrt(n_points), n_points / SMALLEST_CLUSTER)) or 1
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_features), n_features, n_clusters)
    index.cp.niter = CLUSTER_ROUNDS
    index.train(np.ascontiguousarray(points[:: max(1, n_points // (n_clusters * SAMPLES_PER_CLUSTER))]))
    index.add(points)
    index.nprobe = min(2, n_clusters)
    while (found := recall(index)) < target and index.nprobe < n_clusters:
        index.nprobe = min(n_clusters, max(index.nprobe + 1, int(1.25 * index.nprobe)))
    return index, found


def _members(index: Any) -> tuple[NDArray, NDArray]:
    """The points of an inverted file, cluster by cluster, and the cluster of each."""
    faiss = import_optional("faiss", purpose="approximate neighbours", extra="large")
    lists = index.invlists
    sizes = [lists.list_size(number) for number in range(index.nlist)]
    members = [faiss.rev_swig_ptr(lists.get_ids(number), size).copy() for number, size in enumerate(sizes) if size]
    return np.concatenate(members), np.repeat(np.arange(index.nlist), sizes)


def _search_own(index: Any, points: NDArray, rows: NDArray, own: NDArray, length: int) -> NDArray:
    """What the index finds near points that are in it.

    To find the clusters that are nearest to a point among all takes as long as to look into them. Here they are looked
    for among those that are nearest to the point's own cluster, `own`.
    """
    centroids = index.quantizer.reconstruct_n(0, index.nlist)
    origin = centroids.mean(axis=0)
    centroids -= origin
    squares = np.einsum("ij,ij->i", centroids, centroids)
    n_near = min(index.nlist, NEAR_OWN * index.nprobe)
    order = np.argsort(own, kind="stable")
    clusters, first = np.unique(own[order], return_index=True)
    near = np.argpartition(squares - 2 * centroids[clusters] @ centroids.T, n_near - 1, axis=1)[:, :n_near]
    probed = np.empty((len(rows), index.nprobe), dtype=np.int64)
    for members, candidates in zip(np.split(order, first[1:]), near, strict=True):
        distances = squares[candidates] - 2 * (points[rows[members]] - origin) @ centroids[candidates].T
        probed[members] = candidates[np.argpartition(distances, index.nprobe - 1, axis=1)[:, : index.nprobe]]
    # Distances to the clusters, which are not needed, but asked for by older versions.
    return index.search_preassigned(points[rows], length, probed, np.zeros(probed.shape, dtype=np.float32))[1]


def _blocks(n_rows: int, length: int) -> list[slice]:
    rows = max(1, BLOCK_DISTANCES // length)
    return [slice(first, first + rows) for first in range(0, n_rows, rows)]


def _reach(points: NDArray, queries: NDArray, needed: int) -> NDArray:
    """Squared distance of some queries to the last of their nearest points, by an exact search."""
    some = points[:: max(1, len(points) // max(SAMPLED, SAMPLED_POINTS * needed))]
    # Among fewer points the last is no nearer; what is beyond it is not looked at.
    distances, errors = Blocks.of(some).distances(queries)
    limits = np.partition(distances, needed - 1, axis=1)[:, needed - 1] + 2 * errors
    rows, columns = [], []
    for first in range(0, len(points), BLOCK_POINTS):
        distances, errors = Blocks.of(points[first : first + BLOCK_POINTS]).distances(queries)
        row, column = np.divmod(np.flatnonzero(distances <= (limits + errors)[:, None]), distances.shape[1])
        rows.append(row)
        columns.append(first + column)
    row, column = np.concatenate(rows), np.concatenate(columns)
    near = listed_distances(points, queries[row], column[:, None])[:, 0]
    order = np.lexsort((near, row))
    ends = np.searchsorted(row[order], np.arange(len(queries)))
    return near[order][ends + needed - 1]


def _recall(found: Neighbors, reach: NDArray, needed: int) -> float:
    """Share of the nearest others that was found: those that are no further than the last of them."""
    near = found.squared_distances <= (1 + 1e-6) * reach[:, None]
    return float(np.minimum(near.sum(axis=1), needed).mean() / needed)


class _Distances:
    """`listed_distances` of many lists to the same points; of single precision several times faster."""

    def __init__(self, points: NDArray) -> None:
        self._points, self._flat = points, None
        if points.dtype == np.float32:
            self._faiss = import_optional("faiss", purpose="approximate neighbours", extra="large")
            self._flat = self._faiss.IndexFlatL2(points.shape[1])
            self._flat.add(np.ascontiguousarray(points))

    def __call__(self, queries: NDArray, listed: NDArray) -> NDArray:
        """Squared distances of each query to what is listed for it."""
        if self._flat is None:
            return listed_distances(self._points, queries, listed)
        result = np.empty(listed.shape, dtype=np.float32)
        single, numbers = np.ascontiguousarray(queries), np.ascontiguousarray(listed, dtype=np.int64)
        pointers = [self._faiss.swig_ptr(array) for array in (single, result, numbers)]
        self._flat.compute_distance_subset(len(single), pointers[0], listed.shape[1], *pointers[1:])
        return result


def _without_self(listed: NDArray, rows: NDArray) -> NDArray:
    """Lists without the point itself; what an index leaves empty (−1) is filled with the next point after it."""
    listed = np.where(listed < 0, rows[:, None], listed)
    order = np.argsort(listed == rows[:, None], axis=1, kind="stable")
    return np.take_along_axis(listed, order, 1)[:, :-1]


def _rank(points: NDArray, listed: NDArray, rows: NDArray | None = None) -> Neighbors:
    """Lists of `rows` (all if None), nearest first; an entry that is the point itself ends the list."""
    rows = np.arange(len(points)) if rows is None else rows
    found = Neighbors(np.empty_like(listed), np.empty(listed.shape, dtype=points.dtype))
    measure = _Distances(points)
    for first in range(0, len(rows), RANKED_ROWS):
        block = slice(first, first + RANKED_ROWS)
        numbers = listed[block]
        distances = measure(points[rows[block]], numbers)
        distances[numbers == rows[block, None]] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")
        found.indices[block] = np.take_along_axis(numbers, order, 1)
        found.squared_distances[block] = np.take_along_axis(distances, order, 1)
    return found


def has_index(n_samples: int) -> bool:
    """Whether so many samples are searched by an index: they are many, and faiss is installed."""
    return n_samples >= FEWEST_SAMPLES and find_spec("faiss") is not None


def choose_search(n_samples: int) -> MovingPoints | IndexedPoints:
    """Exact neighbours, or for very many samples, if faiss is installed, most of them.

    Examples
    --------
    >>> type(choose_search(1000)).__name__
    'MovingPoints'
    """
    return IndexedPoints() if has_index(n_samples) else MovingPoints()
