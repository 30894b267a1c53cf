"""An inverted file (IVF): points in clusters, and a search of the clusters nearest to each query."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.exact import BATCHES, BruteForceL2, argtopk, concat_ranges
from lmssc.numerics.knn.kmeans import TwoLevelKMeans, rows_by_cluster
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class IVFSettings:
    """Settings of `IVFIndex`.

    Attributes
    ----------
    clusters_per_root, min_cluster_size : int
        n_clusters = min(clusters_per_root·√n, n / min_cluster_size).
    n_near : int
        A query's nearest centroid is looked for among this many centroids that are nearest to the one that two-level
        k-means found. With 32, neighbours are spread over as few clusters as with flat k-means.
    n_near_per_probe : int
        The `n_probe` clusters nearest to a query are looked for among `n_near_per_probe · n_probe` clusters that are
        nearest to its own.
    """

    clusters_per_root: int = 10
    min_cluster_size: int = 150
    n_near: int = 32
    n_near_per_probe: int = 16


SETTINGS = IVFSettings()


class IVFIndex:
    """Clusters of points, and a search of the clusters nearest to each query.

    Queries of the same cluster share their candidates: the points of all clusters that are near to at least one of
    them. So their distances are one matrix product.

    Parameters
    ----------
    points : ndarray of float32 of shape (n, d)
        The points.

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

    def __init__(self, points: NDArray) -> None:
        n_points = len(points)
        limits = SETTINGS.clusters_per_root * np.sqrt(n_points), n_points / SETTINGS.min_cluster_size
        self._kmeans = TwoLevelKMeans(points, max(1, int(min(limits))))
        self._centroids = BruteForceL2.of(self._kmeans.centroids)
        self.own = self.assign(points)
        self._sizes = np.bincount(self.own, minlength=self.n_clusters)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._members = np.concatenate(rows_by_cluster(self.own, self.n_clusters)).astype(np.int32)
        self._points = BruteForceL2.of(points[self._members])

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

    def n_probe(self, queries: NDArray, neighbors: NDArray, recall: float) -> int:
        """How many of the clusters nearest to each query hold this share of the queries' `neighbors`.

        Parameters
        ----------
        queries : ndarray of float32 of shape (m, d)
            Some queries.
        neighbors : ndarray of int of shape (m, k)
            Their true neighbours.
        recall : float
            Share of the neighbours, from 0 to 1.
        """
        distances = self._centroids.distances(queries)[0]
        to_neighbors = np.take_along_axis(distances, self.own[neighbors], 1)
        ranks = [np.count_nonzero(distances < column[:, None], axis=1) for column in to_neighbors.T]
        return int(np.quantile(ranks, recall, method="higher")) + 1

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
            distances = self._centroids.take(near).distances(queries[rows])[0]
            limits = np.partition(distances, n_probe - 1, axis=1)[:, n_probe - 1]
            near = near[(distances <= limits[:, None]).any(axis=0)]
            if self._sizes[near].sum() < length:
                near = np.arange(self.n_clusters)
            positions = concat_ranges(self._starts[near], self._sizes[near])
            candidates, points = self._members[positions], self._points.take(positions)
            for batch in gen_batches(len(rows), BATCHES.rows_of_distances(len(candidates))):
                nearest = argtopk(points.distances(queries[rows[batch]])[0], length)
                found[rows[batch]] = candidates[nearest]

        self._for_each_cluster(fill, clusters, SETTINGS.n_near_per_probe * n_probe)
        return found

    def _for_each_cluster(self, function: Callable[[NDArray, NDArray], None], clusters: NDArray, n_near: int) -> None:
        """Call `function(near, rows)` for each cluster: the `n_near` clusters nearest to it, and its rows."""
        members = rows_by_cluster(clusters, self.n_clusters)
        used = np.unique(clusters)
        n_near = min(n_near, self.n_clusters)
        for batch in gen_batches(len(used), BATCHES.rows_of_distances(self.n_clusters)):
            near = argtopk(self._centroids.distances(self._kmeans.centroids[used[batch]])[0], n_near)
            threaded_map(function, near, [members[cluster] for cluster in used[batch]])
