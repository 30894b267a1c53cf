"""Neighbours of points that move are those that a search of all distances finds."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lmssc.core.graph import learn_graph
from lmssc.numerics.knn.exact import BruteForceL2, argtopk, nearest_neighbors
from lmssc.numerics.knn.incremental import IncrementalKNN
from lmssc.numerics.spatial_order import spatial_order


def true_distances(points, length):
    distances = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    return np.sort(distances, axis=1)[:, :length]


def check(found, points, needed):
    """Finite distances are those of the nearest others, at least `needed` of them, and of the points that are named."""
    known = np.isfinite(found.squared_distances)
    assert (known.sum(axis=1) >= needed).all()
    truth = true_distances(points, known.shape[1])
    rtol = 1e-9 if points.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found.squared_distances[known], truth[known], rtol=rtol, atol=1e-12)
    rows, columns = np.nonzero(known)
    listed = found.indices[rows, columns]
    assert (listed != rows).all()
    own = ((points[rows] - points[listed]) ** 2).sum(axis=1)
    np.testing.assert_allclose(found.squared_distances[known], own, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["still", "drift", "jumps", "everything", "duplicates", "far from the origin"])
def test_moving_points(kind, dtype):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1200, 20)) * np.linspace(2, 0.1, 20)
    if kind == "duplicates":
        points[:300] = points[0]
    if kind == "far from the origin":
        points += 100
    near = IncrementalKNN()
    for step in range(5):
        check(near.search(points.astype(dtype), 6, 12), points.astype(dtype), 6)
        if kind in ("drift", "duplicates", "far from the origin"):
            points = points + 0.005 * rng.normal(size=points.shape)
        if kind == "jumps":
            points = points + (rng.random(1200) < 0.03)[:, None] * rng.normal(size=points.shape)
        if kind == "everything":
            points = rng.normal(size=points.shape)
        if step == 2:  # features may be added
            points = np.hstack([points, 0.2 * rng.normal(size=(1200, 3))])
    if kind in ("still", "drift", "jumps"):
        assert near.n_full_searches == 1, "lists were of no use"


def test_graphs_of_moving_points_are_those_of_points_that_are_searched_anew():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(1200, 20))
    moving = IncrementalKNN()
    _, alpha = learn_graph(points, 5, 1.0, moving=moving)
    for _ in range(3):
        points = points + 0.02 * rng.normal(size=points.shape)
        found = learn_graph(points, 5, 1.0, 3 * alpha, moving=moving)[0]  # rows longer than the lists that are fetched
        np.testing.assert_allclose(found.toarray(), learn_graph(points, 5, 1.0, 3 * alpha)[0].toarray(), atol=1e-12)


def test_renumbered_points_have_the_same_neighbours():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(1200, 20))
    near = IncrementalKNN()
    near.search(points, 5, 12)
    order = spatial_order(points)
    assert sorted(order) == list(range(1200))
    near.renumber(order)
    check(near.search(points[order], 5, 12), points[order], 5)
    assert near.n_full_searches == 1


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
