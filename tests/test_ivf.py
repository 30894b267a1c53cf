"""The IVF neighbour search against all pairwise distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lmssc.numerics.knn import ivf as module
from lmssc.numerics.knn.exact import BatchSizes


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(2000, 6)).astype(np.float32)


def test_all_clusters_find_all(points):
    clusters = module.IVFIndex(points)
    assert clusters.n_clusters == 13
    queries = np.random.default_rng(1).normal(size=(50, 6)).astype(np.float32)
    found = clusters.search(queries, clusters.assign(queries), clusters.n_clusters, 12)
    truth = np.argsort(cdist(queries, points), axis=1)[:, :12]
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(truth, axis=1))


def test_a_few_clusters_find_what_they_have(points):
    clusters = module.IVFIndex(points)
    found = clusters.search(points, clusters.own, 2, 10)
    distances = cdist(points, points)
    for row in range(0, 2000, 101):
        looked_into = np.unique(clusters.own[found[row]])
        there = np.flatnonzero(np.isin(clusters.own, looked_into))
        nearest = there[np.argsort(distances[row, there])][:10]
        np.testing.assert_array_equal(np.sort(found[row]), np.sort(nearest))


def test_as_many_clusters_as_the_share_needs(points):
    clusters = module.IVFIndex(points)
    truth = np.argsort(cdist(points, points), axis=1)[:, 1:9]
    counts = [clusters.n_probe(points, clusters.own[truth], share) for share in (0.0, 0.5, 0.9, 1.0)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    for n_probe, share in zip(counts, (0.0, 0.5, 0.9, 1.0), strict=True):
        found = clusters.search(points, clusters.own, n_probe, 9)
        recall = np.mean([len(np.intersect1d(a, b)) / 8 for a, b in zip(truth, found, strict=True)])
        assert recall >= share


def test_lists_that_are_longer_than_a_cluster(points):
    clusters = module.IVFIndex(points)
    found = clusters.search(points[:5], clusters.own[:5], 1, 1900)
    assert all(len(np.unique(row)) == 1900 for row in found)


def test_a_block_of_one_row_at_a_time(points, monkeypatch):
    clusters = module.IVFIndex(points)
    monkeypatch.setattr(module, "BATCHES", BatchSizes(n_distances=1))
    found = clusters.search(points[:200], clusters.own[:200], clusters.n_clusters, 10)
    truth = np.argsort(cdist(points[:200], points), axis=1)[:, :10]
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(truth, axis=1))
