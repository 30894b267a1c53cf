"""Very many points in clusters: near a query are those of the clusters that are nearest to it."""

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.numerics.knn.exact import BLOCK_DISTANCES, BruteForceL2, argtopk, runs
from lmssc.numerics.parallel import threaded_map

# Clusters for each root of a point, as long as each has so many; points that each is learned from, and rounds of
# learning.
CLUSTERS_PER_ROOT = 10
SMALLEST_CLUSTER = 150
SAMPLES_PER_CLUSTER = 25
CLUSTER_ROUNDS = 4
# The clusters nearest to a query are looked for among so many times as many that are nearest to its own.
NEAR_OWN = 16


class IVFIndex:
    """Clusters of points, by k-means of faiss, and a search in those that are near.

    The queries of a cluster share their candidates: the points of all clusters that are near to one of them. So their
    distances are one matrix product.

    Parameters
    ----------
    points : ndarray of float32 of shape (n, d)
        The points.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("faiss")
    >>> points = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    >>> clusters = IVFIndex(points)
    >>> found = clusters.search(points[:9], clusters.own[:9], n_probe=3, length=5)
    >>> found.shape, bool((found == np.arange(9)[:, None]).any(axis=1).all())
    ((9, 5), True)
    """

    def __init__(self, points: NDArray) -> None:
        faiss = import_optional("faiss", purpose="approximate neighbours", extra="large")
        n_points, n_features = points.shape
        n_clusters = int(min(CLUSTERS_PER_ROOT * np.sqrt(n_points), n_points / SMALLEST_CLUSTER)) or 1
        some = np.ascontiguousarray(points[:: max(1, n_points // (n_clusters * SAMPLES_PER_CLUSTER))])
        means = faiss.Kmeans(n_features, n_clusters, niter=CLUSTER_ROUNDS, min_points_per_centroid=1)
        means.train(some)
        self._index = means.index
        self._centroids = BruteForceL2.of(means.centroids)
        self.own = self.assign(points)
        self._sizes = np.bincount(self.own, minlength=n_clusters)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._members = self._by_cluster(self.own).astype(np.int32)
        self._blocks = BruteForceL2.of(points[self._members])

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._sizes)

    def assign(self, queries: NDArray) -> NDArray:
        """The cluster of each query."""
        return self._index.search(queries, 1)[1][:, 0]

    def count_needed(self, queries: NDArray, neighbors: NDArray, share: float) -> int:
        """In how many of the clusters that are nearest to each query this share of their neighbours is."""
        distances = self._centroids.distances(queries)[0]
        theirs = np.take_along_axis(distances, self.own[neighbors], 1)
        nearer = [np.count_nonzero(distances < column[:, None], axis=1) for column in theirs.T]
        return int(np.quantile(nearer, share, method="higher")) + 1

    def search(self, queries: NDArray, own: NDArray, n_probe: int, length: int) -> NDArray:
        """The nearest points of each query in the clusters that are nearest to it or to another of its cluster.

        Parameters
        ----------
        queries : ndarray of float32 of shape (m, d)
            What is looked for.
        own : ndarray of int of shape (m,)
            Cluster of each.
        n_probe : int
            How many clusters each query adds to those that are looked into; all are if these have too few points.
        length : int
            How many points are wanted of each query, in no order; no more than there are.

        Returns
        -------
        ndarray of int32 of shape (m, length)
        """
        found = np.empty((len(queries), length), dtype=np.int32)
        order = self._by_cluster(own)
        clusters, first = np.unique(own[order], return_index=True)
        groups = np.split(order, first[1:])
        n_clusters = self.size
        n_probe = min(n_probe, n_clusters)

        def fill(near: NDArray, group: NDArray) -> None:
            centroids = self._centroids._replace(extended=self._centroids.extended[near])
            distances = centroids.distances(queries[group])[0]
            limits = np.partition(distances, n_probe - 1, axis=1)[:, n_probe - 1]
            near = near[(distances <= limits[:, None]).any(axis=0)]
            if self._sizes[near].sum() < length:
                near = np.arange(n_clusters)
            places = runs(self._starts[near], self._sizes[near])
            candidates = self._members[places]
            blocks = self._blocks._replace(extended=self._blocks.extended[places])
            n_rows = max(1, BLOCK_DISTANCES // len(candidates))
            for start in range(0, len(group), n_rows):
                rows = group[start : start + n_rows]
                found[rows] = candidates[argtopk(blocks.distances(queries[rows])[0], length)]

        at_once = max(1, BLOCK_DISTANCES // n_clusters)
        for start in range(0, len(clusters), at_once):
            part = slice(start, start + at_once)
            near = argtopk(self._between(clusters[part]), min(NEAR_OWN * n_probe, n_clusters))
            threaded_map(fill, near, groups[part])
        return found

    def _by_cluster(self, own: NDArray) -> NDArray:
        """An order of points by their cluster."""
        # Small numbers are sorted by their digits, which is many times as fast.
        return np.argsort(own.astype(np.uint16) if self.size <= 1 << 16 else own, kind="stable")

    def _between(self, clusters: NDArray) -> NDArray:
        """Squared distances of clusters to all."""
        centroids = self._centroids.extended[clusters, :-2] + self._centroids.centre
        return self._centroids.distances(centroids)[0]
