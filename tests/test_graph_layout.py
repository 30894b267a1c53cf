"""The layout of a graph: its forces against the slow formula, and what the picture shows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from lmssc import GFHF, LMSSC
from lmssc.datasets import load_digits_views, make_multiview
from lmssc.numerics import graph_layout as module
from lmssc.numerics.graph_layout import LayoutSettings, graph_layout
from lmssc.plotting import principal_plane
from lmssc.plotting.latent_map import densest_point, map_positions


@pytest.fixture
def blobs():
    """A 6-nearest-neighbour graph of 300 points around 5 centres, and the centre of each."""
    rng = np.random.default_rng(0)
    centres = np.repeat(np.arange(5), 60)
    points = 6 * rng.normal(size=(5, 10))[centres] + rng.normal(size=(300, 10))
    return sparse.csr_array(kneighbors_graph(points, 6)), centres


def same_class_nearby(positions, labels, n_neighbors=10):
    """Share of each sample's nearest on the map that have its class."""
    search = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(positions)
    return (labels[search.kneighbors(return_distance=False)[:, :n_neighbors]] == labels[:, None]).mean()


def test_forces_are_those_of_tsne(blobs):
    graph, _ = blobs
    affinities = module._affinities(graph)
    masses = np.linspace(1, 2, 300, dtype=np.float32)
    positions = 4 * np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32)
    descent = module._Descent(affinities, masses, LayoutSettings(cell=0.1))
    differences = positions[:, None] - positions
    kernel = 1 / (1 + (differences**2).sum(axis=2))
    P = affinities.toarray() / affinities.sum()
    attraction = ((P * kernel)[..., None] * differences).sum(axis=1)
    np.testing.assert_allclose(descent._attraction(positions), attraction, atol=1e-7)
    Q = np.outer(masses, masses) * kernel
    np.fill_diagonal(Q, 0)
    repulsion = ((Q * kernel)[..., None] * differences).sum(axis=1) / Q.sum()
    np.testing.assert_allclose(descent.repulsion(positions), repulsion, atol=0.02 * np.abs(repulsion).max())


def test_clusters_stay_together_and_apart(blobs):
    graph, centres = blobs
    assert same_class_nearby(graph_layout(graph), centres) > 0.99


def test_the_same_graph_gives_the_same_picture(blobs):
    graph, _ = blobs
    np.testing.assert_array_equal(graph_layout(graph), graph_layout(graph.tocoo()))
    np.testing.assert_array_equal(graph_layout(graph), graph_layout(graph + 3 * sparse.eye_array(300)))


def test_a_large_graph_is_contracted_and_expanded(blobs):
    graph, centres = blobs
    groups = module._contract(module._affinities(graph))
    assert 5 <= groups.max() + 1 <= 150
    assert all(len(set(centres[groups == group])) == 1 for group in range(groups.max() + 1))
    positions = graph_layout(graph, LayoutSettings(max_nodes=100))
    assert same_class_nearby(positions, centres) > 0.99
    assert len(np.unique(positions.round(3), axis=0)) == 300


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_graphs(n):
    for graph in (sparse.csr_array((n, n)), sparse.csr_array(np.ones((n, n)))):
        positions = graph_layout(graph)
        assert positions.shape == (n, 2)
        assert np.isfinite(positions).all()


def test_nodes_without_edges_stay_in_the_picture_and_pairs_do_not_coincide(blobs):
    graph, _ = blobs
    pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    positions = graph_layout(sparse.block_diag([graph, sparse.csr_array((10, 10)), pair], format="csr"))
    widths = np.ptp(positions[:300], axis=0)
    assert (np.ptp(positions, axis=0) < 3 * widths).all()
    assert np.linalg.norm(positions[-1] - positions[-2]) > 1e-3


def test_the_map_of_digits_shows_the_classes_where_the_principal_plane_does_not():
    data = load_digits_views()
    rows = np.random.default_rng(0).permutation(len(data.target))[:500]
    target = data.target[rows]
    model = LMSSC().fit([view[rows] for view in data.views], np.where(np.arange(500) < 60, target, -1))
    on_map = same_class_nearby(map_positions(model), target)
    in_plane = same_class_nearby(principal_plane(model.latent_)[0], target)
    assert on_map > 0.85
    assert on_map > in_plane + 0.3


@pytest.mark.parametrize("clf", [LMSSC(max_iter=2), GFHF()])
def test_positions_do_not_depend_on_the_order_of_the_samples(clf):
    data = make_multiview(80, labelled=0.3, random_state=0)
    order = np.random.default_rng(0).permutation(80)
    before = map_positions(clf.fit(data.views, data.y))
    after = map_positions(clf.fit([view[order] for view in data.views], data.y[order]))
    np.testing.assert_array_equal(after, before[order])


def test_a_name_stands_on_the_largest_crowd():
    rng = np.random.default_rng(0)
    crowds = [(0, 0, 50), (10, 10, 120), (20, 0, 30)]
    points = np.concatenate([rng.normal((x, y), 0.3, size=(n, 2)) for x, y, n in crowds])
    assert densest_point(points, np.ones(200, dtype=bool)) == pytest.approx((10, 10), abs=0.3)
    assert densest_point(points, np.arange(200) >= 170) == pytest.approx((20, 0), abs=0.3)
    assert densest_point(np.ones((1, 2)), np.ones(1, dtype=bool)) == (1, 1)
