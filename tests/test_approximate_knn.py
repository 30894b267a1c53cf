"""Approximate neighbours: the requested recall is reached and measured correctly, and distances are exact."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lmssc import LMSSC
from lmssc.datasets import make_multiview
from lmssc.numerics.knn import approximate, ivf
from lmssc.numerics.knn.approximate import ApproximateKNN, choose_search, nearest_by_index, nearest_of_few
from lmssc.numerics.knn.exact import nearest_neighbors, other_neighbors
from lmssc.numerics.knn.ivf import IVFIndex
from lmssc.numerics.knn.line import nearest_on_line
from lmssc.numerics.knn.repeated import ExactKNN
from lmssc.numerics.scale import MIN_SAMPLES_FOR_LARGE_SCALE

LARGE_SCALE = "lmssc.numerics.scale.MIN_SAMPLES_FOR_LARGE_SCALE"


def true_recall(found, points, needed):
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.inf)
    truth = np.argpartition(distances, needed, axis=1)[:, :needed]
    return (truth[:, :, None] == found.indices[:, None, :]).any(axis=2).mean()


@pytest.mark.parametrize("target", [0.7, 0.95, 0.999])
def test_recall_is_measured_and_held_while_points_move(target):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 12)).astype(np.float32)
    near = ApproximateKNN(target)
    for _ in range(4):
        found = near.search(points, 6, 12)
        assert near.recall >= target
        assert abs(true_recall(found, points, 6) - near.recall) < 0.03
        assert (found.indices != np.arange(3000)[:, None]).all()
        own = ((points[:, None] - points[found.indices]) ** 2).sum(axis=2)
        np.testing.assert_allclose(found.squared_distances, own, rtol=1e-4)
        assert (np.diff(found.squared_distances, axis=1) >= 0).all()
        points = points + np.float32(0.01) * rng.normal(size=points.shape).astype(np.float32)
    few = near.n_full_searches
    near.search(rng.normal(size=points.shape).astype(np.float32), 6, 12)
    assert near.n_full_searches == few + 1, "points that are elsewhere need new lists"


def test_the_same_twice():
    points = np.random.default_rng(1).normal(size=(2000, 10)).astype(np.float32)
    one, two = (ApproximateKNN().search(points, 6, 12) for _ in range(2))
    np.testing.assert_array_equal(one.indices, two.indices)


def test_many_duplicates():
    points = np.zeros((2000, 5), dtype=np.float32)
    points[1000:] = np.random.default_rng(2).normal(size=(1000, 5))
    found = ApproximateKNN().search(points, 6, 12)
    assert (found.squared_distances[:1000, :6] == 0).all()


def test_used_for_many_samples_only():
    assert isinstance(choose_search(MIN_SAMPLES_FOR_LARGE_SCALE), ApproximateKNN)
    assert isinstance(choose_search(MIN_SAMPLES_FOR_LARGE_SCALE - 1), ExactKNN)
    assert isinstance(choose_search(10**6, target=1), ExactKNN)


def test_a_fit_says_its_recall_and_is_as_good(monkeypatch):
    data = make_multiview(2000, 3, 30, n_classes=4, labelled=0.05, random_state=0)
    exact = LMSSC(calibrate=False).fit(data.views, data.y)
    monkeypatch.setattr(LARGE_SCALE, 1000)
    clf = LMSSC(calibrate=False).fit(data.views, data.y)
    assert exact.neighbor_recall_ == 1
    assert 0.95 <= clf.neighbor_recall_ <= 1
    hidden = data.y == -1
    accuracies = [(one.transduction_ == data.target)[hidden].mean() for one in (exact, clf)]
    assert abs(accuracies[0] - accuracies[1]) < 0.02


def test_the_recall_is_the_users_choice(monkeypatch):
    monkeypatch.setattr(LARGE_SCALE, 1000)
    data = make_multiview(1200, 3, 30, n_classes=4, labelled=0.05, random_state=0, dtype=np.float32)
    clf = LMSSC(neighbor_recall=0.995, max_iter=2, calibrate=False).fit(data.views, data.y)
    assert 0.995 <= clf.neighbor_recall_ <= 1
    exact = LMSSC(neighbor_recall=1, max_iter=2, calibrate=False).fit(data.views, data.y)
    assert exact.neighbor_recall_ == 1
    new = make_multiview(500, 3, 30, n_classes=4, random_state=1, dtype=np.float32).views
    monkeypatch.setattr("lmssc.core.graph.nearest_by_index", None)  # it would be an error to ask it
    assert exact.predict(new).shape == (500,)


@pytest.mark.parametrize(("dtype", "calibrate"), [(np.float64, True), (np.float32, False)])
def test_threads_change_no_digit(monkeypatch, dtype, calibrate):
    monkeypatch.setattr(LARGE_SCALE, 1000)
    data = make_multiview(2000, 3, 30, n_classes=4, labelled=0.05, random_state=0, dtype=dtype)
    one, two = (LMSSC(n_jobs=n_jobs, calibrate=calibrate).fit(data.views, data.y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.label_distributions_, two.label_distributions_)
    np.testing.assert_array_equal(one.latent_, two.latent_)
    np.testing.assert_array_equal(*(clf.predict_proba(data.views[:]) for clf in (one, two)))


def test_more_clusters_until_the_target_is_met(monkeypatch):
    monkeypatch.setattr(approximate, "SETTINGS", replace(approximate.SETTINGS, missed_by_probes=1e9))  # one at first
    points = np.random.default_rng(4).normal(size=(3000, 12)).astype(np.float32)
    near = ApproximateKNN(0.999)
    found = near.search(points, 6, 12)
    assert near.recall >= 0.999
    assert true_recall(found, points, 6) > 0.99


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lists_are_sorted_with_the_point_itself_last(dtype):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(300, 3)).astype(dtype)
    listed = np.array([rng.permutation(300)[:40] for _ in range(300)]).astype(np.int32)
    before, own = np.sort(listed, axis=1), np.arange(300)
    distances = approximate.sort_lists(points, points, listed, own)
    np.testing.assert_array_equal(np.sort(listed, axis=1), before)
    true = ((points[:, None] - points[listed]) ** 2).sum(axis=2)
    true[listed == own[:, None]] = np.inf
    np.testing.assert_allclose(distances, true, rtol=1e-5)
    assert (np.diff(distances, axis=1)[:, :-1] >= 0).all()
    assert (listed[np.isinf(distances)] == own[np.isinf(distances).any(axis=1)]).all()
    assert np.isinf(distances[:, :-1]).sum() == 0


def test_new_samples_are_found_as_well():
    rng = np.random.default_rng(3)
    points, queries = (rng.normal(size=(size, 8)).astype(np.float32) for size in (3000, 500))
    found = nearest_by_index(points, queries, 6, 7)
    distances = cdist(queries, points)
    truth = np.argsort(distances, axis=1)[:, :6]
    shares = [len(np.intersect1d(a, b)) / 6 for a, b in zip(truth, found.indices[:, :6], strict=True)]
    assert np.mean(shares) > 0.93
    own = ((queries[:, None] - points[found.indices]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.squared_distances, own, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_of_a_few_queries_are_exact_ties_by_index(dtype):
    rng = np.random.default_rng(2)
    points = np.vstack([rng.normal(size=(9000, 7)), np.tile(rng.normal(size=(1, 7)), (40, 1))]).astype(dtype)
    queries = np.vstack([points[::3000], points[-1:], rng.normal(size=(5, 7))]).astype(dtype)
    found, expected = nearest_of_few(points, queries, 30), nearest_neighbors(points, queries, 30)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.squared_distances, expected.squared_distances)
    assert nearest_of_few(points[:3], queries, 3).indices.shape == (len(queries), 3)


def test_small_clusters_hold_the_recall_of_more_points(monkeypatch):
    points = np.random.default_rng(0).normal(size=(12_000, 8)).astype(np.float32)
    large = IVFIndex(points)
    monkeypatch.setattr(ivf, "SETTINGS", replace(ivf.SETTINGS, min_points_for_small=12_000))
    assert IVFIndex(points).n_clusters > 1.9 * large.n_clusters
    search = ApproximateKNN()
    found = search.search(points, 8, 16)
    assert search.recall >= 0.95
    truth = other_neighbors(points, 8)
    near = (found.squared_distances <= (1 + 1e-6) * truth.squared_distances[:, -1:]).sum(axis=1)
    assert np.minimum(near, 8).mean() / 8 > 0.94


@pytest.mark.parametrize("n_points", [20, 150, 199])
def test_few_points_are_one_cluster(n_points):
    points = np.random.default_rng(0).normal(size=(n_points, 3)).astype(np.float32)
    found = ApproximateKNN().search(points, 5, 12)
    assert true_recall(found, points, 5) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_on_a_line_are_exact(dtype):
    rng = np.random.default_rng(0)
    points = (rng.exponential(size=(5000, 1)) ** 3).astype(dtype)
    queries = np.vstack([points[:50], points.max(keepdims=True) + 5, points.min(keepdims=True) - 5]).astype(dtype)
    for length in (1, 7, 5000):
        listed = nearest_on_line(points, queries, length)
        distances = np.sort(np.abs(points[listed, 0] - queries), axis=1)
        np.testing.assert_array_equal(distances, np.sort(np.abs(points.T - queries), axis=1)[:, :length])
        assert all(len(set(row)) == length for row in listed)


def test_heavy_tails_do_not_loosen_the_exact_search_nor_the_line():
    points = (np.random.default_rng(0).exponential(size=(4000, 1)) ** 4).astype(np.float32)
    search = ApproximateKNN()
    found = search.search(points, 5, 12)
    truth = other_neighbors(points, 12)
    assert search.recall == 1
    np.testing.assert_allclose(found.squared_distances, truth.squared_distances, rtol=1e-5)
