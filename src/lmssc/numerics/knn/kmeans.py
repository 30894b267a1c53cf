"""k-means in two levels: coarse clusters, then clusters within each, at a fraction of the cost of flat k-means."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.exact import BATCHES, BruteForceL2
from lmssc.numerics.knn.topk import argtopk, concat_ranges
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class KMeansSettings:
    """Settings of `TwoLevelKMeans`."""

    samples_per_cluster: int = 25
    """Size of the training sample, per cluster."""
    n_iter: int = 4
    """Lloyd iterations at each level. The clusters have to be compact, not optimal."""
    batch_size: int = 4096
    """Number of queries whose distances to all centroids are computed at a time."""
    n_near_coarse: int = 64
    """The centroids nearest to one are looked for in this many coarse clusters, the nearest to its own."""
    min_listed: int = 4
    """They have to hold this many times the centroids that are wanted; otherwise all centroids are compared."""


SETTINGS = KMeansSettings()


class TwoLevelKMeans:
    """k clusters of many points: k-means into √k coarse clusters, then k-means within each of these.

    Training and assignment compare a point with about 2·√k centroids instead of k. Nothing is random: centroids start
    at evenly spaced rows, so the result depends only on the points and their order, not on the number of threads.

    Parameters
    ----------
    points : ndarray of float32 of shape (n, d)
        The points.
    n_clusters : int
        k, from 1 to n. Empty coarse clusters are dropped and the others have at least one cluster each, so the
        number of centroids can differ a little from k.

    Attributes
    ----------
    centroids : ndarray of float32 of shape (k, d)
        Mean of each cluster in the training sample.

    Examples
    --------
    >>> points = np.repeat(np.eye(4, dtype=np.float32), 100, axis=0)
    >>> TwoLevelKMeans(points, 4).assign(points[::100])
    array([0, 1, 2, 3])
    """

    def __init__(self, points: NDArray, n_clusters: int) -> None:
        sample = points[:: max(1, len(points) // (n_clusters * SETTINGS.samples_per_cluster))]
        coarse = lloyd(sample, max(1, round(np.sqrt(n_clusters))))
        own = nearest_centroid(BruteForceL2.of(coarse), sample)
        used, own = np.unique(own, return_inverse=True)
        self._coarse_points = coarse[used]
        self._coarse = BruteForceL2.of(self._coarse_points)
        members = rows_by_cluster(own, len(used))
        # Rounding the cumulative shares makes the numbers of clusters add up to k.
        ends = np.round(np.cumsum([0, *map(len, members)]) * n_clusters / len(sample))
        counts = np.maximum(np.diff(ends), 1).astype(int)
        parts = threaded_map(lambda rows, count: lloyd(sample[rows], count), members, counts)
        self.centroids = np.concatenate(parts)
        self._parts = [BruteForceL2.of(part) for part in parts]
        self._counts, self._first = counts, np.cumsum(counts) - counts

    def assign(self, queries: NDArray) -> NDArray:
        """Cluster of each query: the nearest centroid within the nearest coarse cluster."""
        members = rows_by_cluster(nearest_centroid(self._coarse, queries), len(self._parts))
        clusters = np.empty(len(queries), dtype=np.intp)

        def fill(rows: NDArray, part: BruteForceL2, first: int) -> None:
            if len(rows):
                clusters[rows] = first + nearest_centroid(part, queries[rows])

        threaded_map(fill, members, self._parts, self._first)
        return clusters

    def nearest_centroids(self, clusters: NDArray, n_near: int) -> NDArray:
        """The `n_near` centroids nearest to those of some clusters, these among them, in no order.

        Of many clusters only those in the nearest coarse clusters are compared, √k times a constant instead of k.

        Examples
        --------
        >>> kmeans = TwoLevelKMeans(np.repeat(np.arange(6, dtype=np.float32), 50)[:, None], 6)
        >>> np.sort(kmeans.nearest_centroids(np.array([0, 5]), 2))
        array([[0, 1],
               [4, 5]], dtype=int32)
        """
        found = np.empty((len(clusters), n_near), dtype=np.int32)
        coarse = np.searchsorted(self._first, clusters, side="right") - 1
        used, own = np.unique(coarse, return_inverse=True)
        n_coarse = min(SETTINGS.n_near_coarse, len(self._counts))
        near = argtopk(self._coarse.distances(self._coarse_points[used])[0], n_coarse)
        centroids = BruteForceL2.of(self.centroids)

        def fill(rows: NDArray, near: NDArray) -> None:
            near = np.sort(near)
            listed = concat_ranges(self._first[near], self._counts[near])
            if len(listed) < SETTINGS.min_listed * n_near:
                listed = np.arange(len(self.centroids))
            some = centroids.take(listed)
            for batch in gen_batches(len(rows), BATCHES.rows_of_distances(len(listed))):
                distances = some.distances(self.centroids[clusters[rows[batch]]])[0]
                found[rows[batch]] = listed[argtopk(distances, n_near)]

        threaded_map(fill, rows_by_cluster(own, len(used)), near)
        return found


def lloyd(points: NDArray, n_clusters: int) -> NDArray:
    """Centroids of k-means by Lloyd's algorithm, started at evenly spaced points. An empty cluster keeps its centroid.

    Examples
    --------
    >>> lloyd(np.array([[0.0], [1.0], [8.0], [9.0]], dtype=np.float32), 2)
    array([[0.5],
           [8.5]], dtype=float32)
    """
    centroids = points[np.linspace(0, len(points) - 1, n_clusters, dtype=np.intp)]
    ones, bounds = np.ones(len(points), dtype=points.dtype), np.arange(len(points) + 1)
    for _ in range(SETTINGS.n_iter):
        own = nearest_centroid(BruteForceL2.of(centroids), points)
        sizes = np.bincount(own, minlength=n_clusters)[:, None]
        sums = sparse.csc_array((ones, own, bounds), shape=(n_clusters, len(points))) @ points
        centroids = np.where(sizes > 0, sums / np.maximum(sizes, 1), centroids).astype(points.dtype)
    return centroids


def nearest_centroid(centroids: BruteForceL2, queries: NDArray) -> NDArray:
    """Index of the centroid that is nearest to each query.

    Examples
    --------
    >>> nearest_centroid(BruteForceL2.of(np.array([[0.0], [5.0]])), np.array([[4.0], [1.0]]))
    array([1, 0])
    """
    batches = gen_batches(len(queries), SETTINGS.batch_size)
    return np.concatenate(threaded_map(lambda rows: centroids.distances(queries[rows])[0].argmin(axis=1), batches))


def rows_by_cluster(clusters: NDArray, n_clusters: int) -> list[NDArray]:
    """Rows of each cluster, in ascending order.

    Examples
    --------
    >>> rows_by_cluster(np.array([1, 0, 1]), 2)
    [array([1]), array([0, 2])]
    """
    # The stable sort of 16-bit integers is a radix sort, many times as fast as a comparison sort.
    keys = clusters.astype(np.uint16) if n_clusters <= 1 << 16 else clusters
    rows, ends = np.argsort(keys, kind="stable"), np.cumsum(np.bincount(clusters, minlength=n_clusters))
    return [rows[first:end] for first, end in pairwise([0, *ends.tolist()])]
