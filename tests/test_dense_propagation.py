"""Propagation over few samples by dense arrays: the same scores as by sparse ones, and where it declines."""

import numpy as np
import pytest
from scipy import sparse

import oracles
from lmssc.core import propagation
from lmssc.core.dense_propagation import dense_laplacian, propagate_densely, reach_all, strong_edges
from lmssc.core.graph import learn_graph
from lmssc.core.laplacian import laplacian
from lmssc.core.propagation import propagate, propagate_without
from lmssc.core.second_opinion import Opinion
from lmssc.core.targets import Targets
from lmssc.core.weak_components import WeakComponents


def problem(dtype=np.float64, n_samples=120):
    """A graph of points in three classes, and labels of a fifth of them."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, n_samples)
    points = rng.normal(size=(n_samples, 4)) + 2 * np.eye(3, 4)[codes]
    graph = learn_graph(points.astype(dtype), 6, 1.0)[0]
    return graph, Targets.from_codes(np.where(rng.random(n_samples) < 0.2, codes, -1), 3)


def test_the_laplacian_is_the_sparse_one():
    graph, _ = problem()
    links = laplacian(learn_graph(np.random.default_rng(1).normal(size=(120, 2)), 3, 1.0)[0])
    np.testing.assert_allclose(dense_laplacian(graph), laplacian(graph).toarray(), atol=1e-15)
    np.testing.assert_allclose(dense_laplacian(graph, links), (laplacian(graph) + links).toarray(), atol=1e-15)


@pytest.mark.parametrize("weight", [None, 0.1, 9.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_those_of_the_sparse_solver(weight, dtype, monkeypatch):
    graph, targets = problem(dtype)
    opinion = None
    if weight is not None:
        opinion = Opinion(np.random.default_rng(2).dirichlet(np.ones(3), 120), weight)
    dense = dense_laplacian(graph)
    found = propagate(dense, targets, opinion=opinion)
    assert found.scores.dtype == dtype
    monkeypatch.setattr(propagation, "MAX_SAMPLES", 0)
    right = propagate(laplacian(graph), targets, opinion=opinion)
    tol = 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(found.scores, right.scores, atol=tol)
    np.testing.assert_allclose(propagate(dense, targets, opinion=opinion).scores, right.scores, atol=tol)
    assert not found.unreached.any()


def test_scores_are_those_of_the_oracle():
    graph, targets = problem()
    right = oracles.dense_scores(graph.toarray(), targets.codes, 3)
    np.testing.assert_allclose(propagate_densely(dense_laplacian(graph), targets), right, atol=1e-9)


def test_folds_are_those_of_the_oracle():
    graph, targets = problem()
    labelled = np.flatnonzero(targets.labelled)
    folds = [labelled[number::5] for number in range(5)]
    for rows, found in zip(folds, propagate_without(dense_laplacian(graph), targets, folds), strict=True):
        right = oracles.dense_scores(graph.toarray(), targets.without_labels(rows).codes, 3)
        np.testing.assert_allclose(found.scores, right, atol=1e-9)


def test_uncertain_labels_are_those_of_the_sparse_solver():
    graph, targets = problem()
    doubted = targets.doubt(np.flatnonzero(targets.labelled), np.full(targets.n_labelled, 0.7))
    found, right = (propagate(L, doubted).scores for L in (dense_laplacian(graph), laplacian(graph)))
    np.testing.assert_allclose(found, right, atol=1e-9)


def test_weak_edges_and_parts_without_a_label_are_left_to_the_sparse_solver():
    """Two pairs, joined by an edge next to zero, or by none: the second has no label."""
    for weak in (1e-6, 0.0):
        S = np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]])
        S[1, 2] = S[2, 1] = weak
        L = laplacian(sparse.csr_array(S))
        targets = Targets.from_codes(np.array([0, -1, -1, -1]), 2)
        assert not reach_all(strong_edges(L.toarray()), targets.labelled)
        assert len(WeakComponents.of(L, targets.labelled).members) == 2
        assert propagate_densely(L.toarray(), targets) is None
        found = propagate(L.toarray(), targets)
        np.testing.assert_allclose(found.scores[:, 0], 1, atol=1e-9)
        np.testing.assert_array_equal(found.unreached, [False, False, weak == 0, weak == 0])
