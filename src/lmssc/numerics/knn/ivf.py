"""An inverted file (IVF): points in clusters, and a search of the clusters nearest to each query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.exact import BATCHES, BruteForceL2
from lmssc.numerics.knn.kmeans import TwoLevelKMeans, rows_by_cluster
from lmssc.numerics.knn.topk import argtopk, concat_ranges
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class IVFSettings:
    """Settings of `IVFIndex`."""

    cluster_size: int = 150
    """n_clusters = n / cluster_size."""
    small_cluster_size: int = 75
    min_points_for_small: int = 750_000
    """From so many points on, clusters are smaller: the more points, the more clusters share the neighbours of a query,
    and queries of one cluster are compared with fewer points. Below, calls for more clusters cost what this saves."""
    training_step: int = 6
    """Clusters are learned from every sixth point."""
    n_near: int = 32
    """A query's nearest centroid is looked for among this many centroids that are nearest to the one that two-level
    k-means found. With 32, neighbours are spread over as few clusters as with flat k-means."""
    n_near_per_probe: int = 16
    """The `n_probe` clusters nearest to a query are looked for among `n_near_per_probe · n_probe` clusters that are
    nearest to its own."""


SETTINGS = IVFSettings()


def count_clusters(n_points: int) -> int:
    """Number of clusters of so many points.

    Examples
    --------
    >>> count_clusters(30_000), count_clusters(1_000_000)
    (200, 13333)
    """
    size = SETTINGS.small_cluster_size if has_small_clusters(n_points) else SETTINGS.cluster_size
    return max(1, n_points // size)


def has_small_clusters(n_points: int) -> bool:
    """Whether there are so many points that their clusters are small."""
    return n_points >= SETTINGS.min_points_for_small


class Clusters:
    """Clusters by k-means, and which of them are near to queries.

    Parameters
    ----------
    sample : ndarray of float32 of shape (m, d)
        Points that the clusters are learned from.
    n_clusters : int
        Number of clusters.

    Examples
    --------
    >>> clusters = Clusters(np.repeat(np.eye(4, dtype=np.float32), 100, axis=0), 4)
    >>> clusters.assign(np.eye(4, dtype=np.float32))
    array([0, 1, 2, 3])
    """

    def __init__(self, sample: NDArray, n_clusters: int) -> None:
        self._kmeans = TwoLevelKMeans(sample, n_clusters)
        self._centroids = BruteForceL2.of(self._kmeans.centroids)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self._kmeans.centroids)

    def assign(self, queries: NDArray) -> NDArray:
        """Cluster of each query: the nearest centroid, almost always."""
        clusters = self._kmeans.assign(queries)
        assigned = np.empty_like(clusters)

        def fill(near: NDArray, rows: NDArray) -> None:
            # The candidates come in no order; sorting them breaks ties by index.
            near = np.sort(near)
            assigned[rows] = near[self._centroids.take(near).distances(queries[rows])[0].argmin(axis=1)]

        self._for_each_cluster(fill, clusters, SETTINGS.n_near)
        return assigned

    def n_probe(self, queries: NDArray, neighbor_clusters: NDArray, recall: float) -> int:
        """How many of the clusters nearest to each query hold this share of the queries' neighbours.

        Parameters
        ----------
        queries : ndarray of float32 of shape (m, d)
            Some queries.
        neighbor_clusters : ndarray of int of shape (m, k)
            Clusters of their true neighbours.
        recall : float
            Share of the neighbours, from 0 to 1.
        """
        distances = self._centroids.distances(queries)[0]
        to_neighbors = np.take_along_axis(distances, neighbor_clusters, 1)
        ranks = [np.count_nonzero(distances < column[:, None], axis=1) for column in to_neighbors.T]
        return int(np.quantile(ranks, recall, method="higher")) + 1

    def near(self, clusters: NDArray, n_probe: int) -> NDArray:
        """Clusters among which the `n_probe` nearest to a query of each of `clusters` are looked for, in no order."""
        return self._kmeans.nearest_centroids(clusters, min(SETTINGS.n_near_per_probe * n_probe, self.n_clusters))

    def reached(self, near: NDArray, queries: NDArray, n_probe: int) -> NDArray:
        """Which of the clusters `near` are among the `n_probe` nearest to at least one of the queries."""
        distances = self._centroids.take(near).distances(queries)[0]
        n_probe = min(n_probe, len(near))
        limits = np.partition(distances, n_probe - 1, axis=1)[:, n_probe - 1]
        return np.any(distances <= limits[:, None], axis=0)

    def _for_each_cluster(self, function: Callable[[NDArray, NDArray], None], clusters: NDArray, n_near: int) -> None:
        """Call `function(near, rows)` for each cluster: the `n_near` clusters nearest to it, and its rows."""
        members = rows_by_cluster(clusters, self.n_clusters)
        used = np.unique(clusters)
        n_near = min(n_near, self.n_clusters)
        for batch in gen_batches(len(used), BATCHES.rows_of_distances(n_near)):
            near = self._kmeans.nearest_centroids(used[batch], n_near)
            threaded_map(function, near, [members[cluster] for cluster in used[batch]])


class ClusteredPoints:
    """Points sorted by cluster, of which those of some clusters are searched at a time.

    Parameters
    ----------
    blocks : sequence of ndarrays of float32 of shape (m, d)
        The points, in one or several arrays.
    clusters : ndarray of int of shape (n,)
        Cluster of each point.
    n_clusters : int
        Number of clusters.
    centre : ndarray of shape (d,), optional
        About the mean of the points, which distances are computed from; by default it is, and there is one block.
    """

    def __init__(
        self, blocks: Sequence[NDArray], clusters: NDArray, n_clusters: int, centre: NDArray | None = None
    ) -> None:
        self.sizes = np.bincount(clusters, minlength=n_clusters)
        self._starts = np.cumsum(self.sizes) - self.sizes
        self._members = np.concatenate(rows_by_cluster(clusters, n_clusters)).astype(np.int32)
        if centre is None:
            self._points = BruteForceL2.of(blocks[0][self._members])
        else:
            places = np.empty(len(self._members), dtype=np.intp)
            places[self._members] = np.arange(len(places))
            self._points = BruteForceL2.of_blocks(blocks, places, centre)

    def search(self, queries: NDArray, clusters: NDArray, length: int) -> NDArray:
        """Indices of the points of some clusters that are nearest to each query, in no order."""
        positions = concat_ranges(self._starts[clusters], self.sizes[clusters])
        candidates, points = self._members[positions], self._points.take(positions)
        found = np.empty((len(queries), length), dtype=np.int32)
        for batch in gen_batches(len(queries), BATCHES.rows_of_distances(len(candidates))):
            found[batch] = candidates[argtopk(points.distances(queries[batch])[0], length)]
        return found


class IVFIndex(Clusters):
    """Clusters of points, and a search of the clusters nearest to each query.

    Queries of the same cluster share their candidates: the points of all clusters that are near to at least one of
    them. So their distances are one matrix product.

    Parameters
    ----------
    points : ndarray of float32 of shape (n, d)
        The points.
    order : ndarray of int of shape (n,), optional
        Every few points in this order, or in their own, train the clusters.

    Attributes
    ----------
    own : ndarray of int of shape (n,)
        Cluster of each point.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    >>> index = IVFIndex(points)
    >>> found = index.search(points[:9], index.own[:9], n_probe=3, length=5)
    >>> found.shape, bool((found == np.arange(9)[:, None]).any(axis=1).all())
    ((9, 5), True)
    """

    def __init__(self, points: NDArray, order: NDArray | None = None) -> None:
        step = SETTINGS.training_step
        super().__init__(points[::step] if order is None else points[order[::step]], count_clusters(len(points)))
        self.own = self.assign(points)
        self._points = ClusteredPoints([points], self.own, self.n_clusters)

    def search(self, queries: NDArray, clusters: NDArray, n_probe: int, length: int) -> NDArray:
        """Nearest points of each query in the clusters that are nearest to it or to another query of its cluster.

        Parameters
        ----------
        queries : ndarray of float32 of shape (m, d)
            The queries.
        clusters : ndarray of int of shape (m,)
            Cluster of each query, from `assign`.
        n_probe : int
            Number of clusters searched for each query. All clusters are searched if these hold too few points.
        length : int
            Number of points per query, at most n.

        Returns
        -------
        ndarray of int32 of shape (m, length)
            Indices of the points, in no order.
        """
        found = np.empty((len(queries), length), dtype=np.int32)
        n_probe = min(n_probe, self.n_clusters)

        def fill(near: NDArray, rows: NDArray) -> None:
            near = near[self.reached(near, queries[rows], n_probe)]
            if self._points.sizes[near].sum() < length:
                near = np.arange(self.n_clusters)
            found[rows] = self._points.search(queries[rows], near, length)

        self._for_each_cluster(fill, clusters, SETTINGS.n_near_per_probe * n_probe)
        return found
