"""Two-level k-means: compact clusters, the same on any number of threads, whatever the points are."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from lmssc.numerics.knn import kmeans as kmeans_module
from lmssc.numerics.knn.exact import BruteForceL2
from lmssc.numerics.knn.ivf import IVFIndex
from lmssc.numerics.knn.kmeans import TwoLevelKMeans, lloyd, nearest_centroid
from lmssc.numerics.parallel import threads


def blobs(n_points, n_features=8):
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(30, n_features))
    return (centres[rng.integers(30, size=n_points)] + rng.normal(size=(n_points, n_features))).astype(np.float32)


def inertia(points, centroids, clusters):
    return ((points - centroids[clusters]) ** 2).sum()


def test_clusters_are_almost_as_compact_as_those_of_flat_k_means():
    points = blobs(12_000)
    index = IVFIndex(points)
    flat = KMeans(index.n_clusters, n_init=1, max_iter=4, random_state=0).fit(points)
    found = inertia(points, index._kmeans.centroids, index.own)
    assert found <= 1.1 * inertia(points, flat.cluster_centers_, flat.labels_)


def test_almost_all_points_have_the_nearest_centroid():
    points = blobs(12_000)
    index = IVFIndex(points)
    nearest = cdist(points, index._kmeans.centroids).argmin(axis=1)
    assert (index.own == nearest).mean() > 0.99
    queries = points[:1000] + np.float32(0.3)
    nearest = cdist(queries, index._kmeans.centroids).argmin(axis=1)
    assert (index.assign(queries) == nearest).mean() > 0.98


def test_threads_change_no_digit():
    points = blobs(12_000)
    answers = []
    for n_jobs in (1, 2, 3):
        with threads(n_jobs=n_jobs):
            answers.append(IVFIndex(points))
    for index in answers[1:]:
        np.testing.assert_array_equal(index._kmeans.centroids, answers[0]._kmeans.centroids)
        np.testing.assert_array_equal(index.own, answers[0].own)


def test_centroids_near_to_others_are_found_without_comparing_all(monkeypatch):
    kmeans = TwoLevelKMeans(blobs(20_000, 5), 900)
    clusters = np.random.default_rng(1).permutation(len(kmeans.centroids))[:300]
    distances = cdist(kmeans.centroids[clusters], kmeans.centroids)
    nearest = np.sort(np.argsort(distances, axis=1)[:, :20])
    np.testing.assert_array_equal(np.sort(kmeans.nearest_centroids(clusters, 20)), nearest)
    monkeypatch.setattr(kmeans_module, "SETTINGS", replace(kmeans_module.SETTINGS, n_near_coarse=15))
    compared = []
    take = BruteForceL2.take
    monkeypatch.setattr(BruteForceL2, "take", lambda self, rows: compared.append(len(rows)) or take(self, rows))
    found = np.sort(kmeans.nearest_centroids(clusters, 20))
    assert max(compared) < len(kmeans.centroids) * 0.9
    assert np.mean([np.isin(*pair).mean() for pair in zip(nearest, found, strict=True)]) > 0.99
    assert all(own in near for own, near in zip(clusters, found, strict=True))
    # Too many for the nearest coarse clusters: then all are compared.
    np.testing.assert_array_equal(np.sort(kmeans.nearest_centroids(clusters[:9], 400))[:, 0] >= 0, True)
    assert max(compared) == len(kmeans.centroids)


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 60, 200])
@pytest.mark.parametrize("kind", ["random", "identical", "mostly identical", "on a line"])
def test_every_point_has_a_cluster(kind, n_clusters):
    points = blobs(200, 3)
    if kind == "identical":
        points[:] = points[0]
    elif kind == "mostly identical":
        points[:190] = points[0]
    elif kind == "on a line":
        points[:, 1:] = 0
    clusters = TwoLevelKMeans(points, n_clusters)
    found = clusters.assign(points)
    assert np.isfinite(clusters.centroids).all()
    assert 0 <= found.min() <= found.max() < len(clusters.centroids)
    if kind == "random":
        assert abs(len(clusters.centroids) - n_clusters) <= 0.05 * n_clusters
    twins = clusters.assign(np.repeat(points[:3], 2, axis=0))
    np.testing.assert_array_equal(twins[::2], twins[1::2])


def test_lloyd_lowers_the_inertia_and_centroids_are_means():
    points = blobs(500)
    start = points[np.linspace(0, 499, 10, dtype=int)]
    centroids = lloyd(points, 10)
    before, after = (nearest_centroid(BruteForceL2.of(c), points) for c in (start, centroids))
    assert inertia(points, centroids, after) < 0.8 * inertia(points, start, before)
    np.testing.assert_array_equal(after, cdist(points, centroids).argmin(axis=1))
