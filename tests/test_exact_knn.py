"""Exact neighbours against all pairwise distances."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lmssc.core.graph import learn_graph
from lmssc.numerics.knn import exact
from lmssc.numerics.knn.exact import BruteForceL2, nearest_neighbors, other_neighbors
from lmssc.numerics.knn.repeated import ExactKNN
from lmssc.numerics.knn.topk import argtopk
from lmssc.numerics.parallel import threads


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["random", "duplicates", "far from the origin", "few features"])
def test_all_points(kind, dtype):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1200, 20)) * np.linspace(2, 0.1, 20)
    if kind == "duplicates":
        points[:300] = points[0]
    if kind == "far from the origin":
        points += 100
    if kind == "few features":
        points = points[:, :3]
    points = points.astype(dtype)
    found = ExactKNN().search(points, 6, 12)
    distances = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    rtol = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found.squared_distances, np.sort(distances, axis=1)[:, :12], rtol=rtol, atol=1e-12)
    listed = np.take_along_axis(distances, found.indices, 1)
    np.testing.assert_allclose(found.squared_distances, listed, rtol=rtol, atol=1e-12)
    assert all(len(np.unique(row)) == 12 for row in found.indices)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weight", [0.0, 0.3, 3.0, 30.0])
def test_more_coordinates_after_a_search_without_them(weight, dtype):
    rng = np.random.default_rng(0)
    points = np.hstack([rng.normal(size=(700, 6)), weight * np.eye(5)[rng.integers(0, 5, 700)]]).astype(dtype)
    points[200:230, :6] = points[200, :6]
    search = ExactKNN()
    search.search(points[:, :6].copy(), 6, 12)
    distances = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    for _ in range(4):  # the first two are without lists
        found = search.search(points, 6, 12)
        rtol = 1e-9 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(found.squared_distances, np.sort(distances, axis=1)[:, :12], rtol=rtol, atol=1e-12)
        listed = np.take_along_axis(distances, found.indices, 1)
        np.testing.assert_allclose(found.squared_distances, listed, rtol=rtol, atol=1e-12)
        assert all(len(np.unique(row)) == 12 for row in found.indices)


def test_lists_from_the_first_search():
    """Told of later searches, the first one makes the lists, and finds what it finds without them to the bit."""
    rng = np.random.default_rng(6)
    points = np.hstack([rng.normal(size=(1200, 6)), np.eye(5)[rng.integers(0, 5, 1200)]])
    told, untold = ExactKNN(n_more=5), ExactKNN()
    for found, right in zip(told.search(points[:, :6], 6, 12), untold.search(points[:, :6], 6, 12), strict=True):
        np.testing.assert_array_equal(found, right)
    assert told._known is not None
    assert untold._known is None
    found, right = told.search(points, 6, 12), other_neighbors(points, 12)
    np.testing.assert_array_equal(found.indices, right.indices)
    np.testing.assert_allclose(found.squared_distances, right.squared_distances, rtol=1e-12)


def test_other_coordinates_after_a_search():
    points = np.random.default_rng(0).normal(size=(700, 6))
    search = ExactKNN()
    search.search(points[:, :4].copy(), 6, 12)
    np.testing.assert_array_equal(search.search(-points, 6, 12).indices, ExactKNN().search(points, 6, 12).indices)


def test_a_tree_and_all_distances_find_the_same_to_the_bit(monkeypatch):
    """A tree is only used where it is faster."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(2500, 9)) * np.linspace(2, 0.1, 9)
    dense = other_neighbors(points, 12)
    calls = []
    monkeypatch.setattr(exact, "BruteForceL2", calls.append)
    monkeypatch.setattr(exact, "SETTINGS", replace(exact.SETTINGS, max_medium_points=2000))
    tree = other_neighbors(points, 12)
    assert not calls
    np.testing.assert_array_equal(tree.indices, dense.indices)
    np.testing.assert_array_equal(tree.squared_distances, dense.squared_distances)


def test_ties_by_index():
    points = np.repeat(np.random.default_rng(1).normal(size=(40, 20)), 3, axis=0)
    found = nearest_neighbors(points, points[::3], 3).indices
    np.testing.assert_array_equal(found, np.arange(120).reshape(40, 3))


def test_a_graph_by_a_search_is_that_without_one():
    points = np.random.default_rng(1).normal(size=(1200, 20))
    _, alpha = learn_graph(points, 5, 1.0, search=ExactKNN())
    found = learn_graph(points, 5, 1.0, 3 * alpha, search=ExactKNN())[0]  # rows longer than the first lists
    np.testing.assert_array_equal(found.toarray(), learn_graph(points, 5, 1.0, 3 * alpha)[0].toarray())


def test_threads_change_no_digit():
    points = np.random.default_rng(2).normal(size=(3000, 20))
    answers = []
    for n_jobs in (1, 2, 3):
        with threads(n_jobs=n_jobs):
            answers.append(ExactKNN().search(points, 6, 12))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.indices, answers[0].indices)
        np.testing.assert_array_equal(answer.squared_distances, answers[0].squared_distances)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_exact_search_by_blocks(offset):
    """Single precision finds candidates only; where it cannot tell, the search is done again."""
    rng = np.random.default_rng(3)
    points, queries = rng.normal(size=(3000, 20)), rng.normal(size=(500, 20))
    points[0] += offset  # an outlier makes every rounding error larger
    found = nearest_neighbors(points, queries, 10)
    truth = np.sort(cdist(queries, points, "sqeuclidean"), axis=1)[:, :10]
    np.testing.assert_allclose(found.squared_distances, truth, rtol=1e-9)


def test_bounds_of_blocks_hold():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(2000, 30))
    indices, bounds = BruteForceL2.of(points).nearest(points, 20)
    distances = cdist(points, points)
    assert (bounds <= np.take_along_axis(distances, indices, 1) + 1e-12).all()
    np.put_along_axis(distances, indices, np.inf, 1)
    assert (distances.min(axis=1) >= bounds[:, -1]).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_argtopk_whatever_the_order_of_the_columns(ordered):
    values = np.random.default_rng(5).random((50, 4000), dtype=np.float32)
    values = np.sort(values, axis=1) if ordered else values
    found = np.take_along_axis(values, argtopk(values, 30), 1)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(values, axis=1)[:, :30])


@pytest.mark.parametrize("n_columns", [40, 480, 487, 2000])
@pytest.mark.parametrize("kind", ["in one group", "equal", "some equal"])
def test_argtopk_where_groups_of_columns_tell_little(n_columns, kind):
    rng = np.random.default_rng(6)
    values = rng.random((20, n_columns)).astype(np.float32)
    if kind == "in one group":
        values[:, :: max(1, n_columns // 8)] -= 2
    elif kind == "equal":
        values[:] = 1
    else:
        values = np.round(values, 1)
    columns = argtopk(values, 30)
    assert all(len(np.unique(row)) == 30 for row in columns)
    found = np.take_along_axis(values, columns, 1)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(values, axis=1)[:, :30])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_points_with_close_pairs_and_ties(dtype):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(90, 3)) + 1e3
    points[30:60] = points[:30] + 1e-4 * rng.normal(size=(30, 3))
    points[60:] = rng.integers(0, 3, size=(30, 3))
    points = points.astype(dtype)
    found = other_neighbors(points, 7)
    squares = ((points[:, None].astype(float) - points) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    expected = np.sort(squares, axis=1)[:, :7]
    np.testing.assert_allclose(found.squared_distances, expected, rtol=1e-5 if dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(np.take_along_axis(squares, found.indices, 1), expected, rtol=1e-5)


def test_ties_are_ranked_by_index():
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    distances = cdist(grid, grid, "sqeuclidean")
    listed = np.random.default_rng(0).permuted(np.tile(np.arange(len(grid)), (len(grid), 1)), axis=1)
    found = exact._ranked(grid, grid, listed)
    np.testing.assert_array_equal(found.indices, np.argsort(distances, axis=1, kind="stable"))
    np.testing.assert_array_equal(found.squared_distances, np.sort(distances, axis=1))


def test_each_distance_computed_once_finds_the_same(monkeypatch):
    """Distances between all points are symmetric: half of them is mirrored, on any number of threads."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(1300, 90))
    points[700:720] = points[:20]  # ties
    answers = []
    for n_jobs in (1, 3):
        with threads(n_jobs=n_jobs):
            answers.append(other_neighbors(points, 12))
    monkeypatch.setattr(BruteForceL2, "nearest_to_each", None)
    monkeypatch.setattr(exact, "SETTINGS", replace(exact.SETTINGS, max_mirrored_points=0))
    answers.append(other_neighbors(points, 12))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.indices, answers[0].indices)
        np.testing.assert_array_equal(answer.squared_distances, answers[0].squared_distances)


def test_bounds_between_all_points_hold():
    points = np.random.default_rng(8).normal(size=(700, 40))
    indices, bounds = BruteForceL2.of(points).nearest_to_each(20)
    distances = cdist(points, points)
    assert (bounds <= np.take_along_axis(distances, indices, 1) + 1e-12).all()
    np.put_along_axis(distances, indices, np.inf, 1)
    assert (distances.min(axis=1) >= bounds[:, -1]).all()


def test_many_points_are_compared_in_parts(monkeypatch):
    """A few queries at a time, as many as fit with all points, would take several times as long."""
    rng = np.random.default_rng(9)
    points, queries = rng.normal(size=(3000, 20)), rng.normal(size=(150, 20))
    points[1000:1100] = points[:100]  # ties
    expected = nearest_neighbors(points, queries, 10)
    compared = []
    distances = BruteForceL2.distances

    def watched(self, some):
        compared.append((len(some), len(self.extended)))
        return distances(self, some)

    monkeypatch.setattr(BruteForceL2, "distances", watched)
    monkeypatch.setattr(exact, "BATCHES", replace(exact.BATCHES, n_distances=1 << 15))
    found = nearest_neighbors(points, queries, 10)
    assert compared[0] == (64, 500)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.squared_distances, expected.squared_distances)


@pytest.mark.parametrize("kind", ["spread", "tied", "duplicates"])
def test_few_points_are_selected_in_single_precision_and_sorted_in_double(kind):
    rng = np.random.default_rng(10)
    points = rng.integers(0, 3, (400, 4)).astype(float) if kind == "tied" else rng.normal(size=(400, 4))
    if kind == "duplicates":
        points[:200] = points[0] + 1e-9 * points[:200]
    found = other_neighbors(points, 12)
    distances = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_allclose(found.squared_distances, np.sort(distances, axis=1)[:, :12], rtol=1e-9)


@pytest.mark.parametrize("exponent", [70, -70])
def test_neighbours_of_few_points_do_not_depend_on_the_unit(exponent):
    """Squared distances of 2^140 are beyond single precision, and those of 2^-140 below it."""
    points = np.random.default_rng(0).normal(size=(200, 3))
    found, other = other_neighbors(points, 5), other_neighbors(np.ldexp(points, exponent), 5)
    np.testing.assert_array_equal(other.indices, found.indices)
    np.testing.assert_array_equal(other.squared_distances, np.ldexp(found.squared_distances, 2 * exponent))
