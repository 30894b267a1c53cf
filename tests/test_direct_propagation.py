"""Propagation by a factor: sparse, or dense in single precision with refinements; and for all folds from one."""

import numpy as np
import pytest
from scipy import sparse

import oracles
from lmssc.core.direct_propagation import Block, DenseFactor, factorise_and_solve, scores_without
from lmssc.core.graph import learn_graph
from lmssc.core.laplacian import laplacian
from lmssc.core.propagation import propagate, propagate_without
from lmssc.core.targets import Targets


@pytest.fixture
def problem():
    """L of 400 points in three classes, of which a tenth have labels."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 400)
    graph = learn_graph(rng.normal(size=(400, 4)) + 2 * np.eye(3, 4)[codes], 8, 1.0)[0]
    return graph, laplacian(graph), np.where(rng.random(400) < 0.1, codes, -1)


def test_a_refined_solution_has_the_digits_of_a_double_one(problem):
    _, L, codes = problem
    rhs = np.random.default_rng(1).normal(size=(int((codes < 0).sum()), 3))
    factor = DenseFactor.of(Block.of(L, codes < 0))
    assert factor.factor.dtype == np.float32
    right = np.linalg.solve(L.toarray()[np.ix_(codes < 0, codes < 0)], rhs)
    np.testing.assert_allclose(factor.solve(rhs), right, rtol=0, atol=1e-11 * np.abs(right).max())


@pytest.mark.parametrize("min_sparse", [400, 1000])
def test_where_refinements_do_not_converge_the_factor_is_double_or_sparse(min_sparse, monkeypatch):
    """A chain of 600 samples with one label at its end has a condition number of half a million."""
    monkeypatch.setattr("lmssc.core.direct_propagation.MIN_SPARSE", min_sparse)
    L = laplacian(sparse.csr_array(np.diag(np.ones(599), 1) + np.diag(np.ones(599), -1)) * 0.5)
    unknown = np.arange(600) > 0
    rhs = np.random.default_rng(0).normal(size=(599, 2))
    right = np.linalg.solve(L.toarray()[1:, 1:], rhs)
    assert np.abs(factorise_and_solve(L, unknown, rhs) - right).max() <= 1e-8 * np.abs(right).max()


@pytest.mark.parametrize(("n_samples", "dtype"), [(500, np.float64), (700, np.float32)])
def test_a_sparse_factor_solves_what_a_dense_one_does(n_samples, dtype):
    rng = np.random.default_rng(0)
    L = laplacian(learn_graph(rng.normal(size=(n_samples, 3)).astype(dtype), 4, 1.0)[0])
    unknown = rng.random(n_samples) < 0.85
    block, rhs = Block.of(L, unknown, weight=0.1), rng.normal(size=(int(unknown.sum()), 3))
    assert block.is_sparse()
    dense = L.toarray()[np.ix_(unknown, unknown)].astype(float) + 0.1 * np.eye(len(rhs))
    right = np.linalg.solve(dense, rhs)
    np.testing.assert_allclose(block.solve_sparsely(rhs), right, atol=1e-12 * np.abs(right).max())
    np.testing.assert_allclose(factorise_and_solve(L, unknown, rhs, 0.1), right, atol=1e-12 * np.abs(right).max())


def test_a_block_that_is_singular_has_no_sparse_factor():
    L = laplacian(sparse.csr_array(np.kron(np.eye(300), [[0.0, 1.0], [1.0, 0.0]])))
    assert factorise_and_solve(L, np.ones(600, dtype=bool), np.ones((600, 1))) is None


@pytest.mark.parametrize("max_dense_labels", [0, 100_000])
def test_folds_that_share_a_factor_are_those_solved_one_by_one(problem, max_dense_labels, monkeypatch):
    monkeypatch.setattr("lmssc.core.direct_propagation.MAX_DENSE_LABELS", max_dense_labels)
    graph, L, codes = problem
    targets, labelled = Targets.from_codes(codes, 3), np.flatnonzero(codes >= 0)
    folds = [labelled[number::5] for number in range(5)]
    shared = scores_without(L, targets.matrix(L.dtype), codes >= 0, folds)
    for rows, scores, found in zip(folds, shared, propagate_without(L, targets, folds), strict=True):
        hidden = codes.copy()
        hidden[rows] = -1
        right = oracles.dense_scores(graph.toarray(), hidden, 3)
        np.testing.assert_allclose(scores, right, atol=1e-9)
        np.testing.assert_allclose(found.scores, right, atol=1e-9)


def test_a_part_whose_labels_are_all_hidden_is_unreached():
    """Two separate pairs: without the label of the second pair, no label reaches it."""
    L = laplacian(sparse.csr_array(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]])))
    targets = Targets.from_codes(np.array([0, -1, 1, -1]), 2)
    (found,) = propagate_without(L, targets, [np.array([2])])
    alone = propagate(L, targets.without_labels(np.array([2])))
    np.testing.assert_array_equal(found.unreached, [False, False, True, True])
    np.testing.assert_allclose(found.scores, alone.scores, atol=1e-12)


def test_without_unlabelled_samples_only_held_out_labels_are_solved_for():
    L = laplacian(sparse.csr_array(np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])))
    (found,) = propagate_without(L, Targets.from_codes(np.array([0, 0, 1]), 2), [np.array([1])])
    np.testing.assert_allclose(found.scores, [[1, 0], [0.5, 0.5], [0, 1]])


def test_many_classes_are_solved_for_in_parts(problem, monkeypatch):
    """Labels as a sparse matrix, a few right-hand sides at a time, and folds that share no factor."""
    _, L, codes = problem
    targets = Targets.from_codes(np.where(codes < 0, -1, np.cumsum(codes >= 0) % 9), 9)
    right = propagate(L, targets).scores
    held_out = [np.flatnonzero(targets.labelled)[9::2], np.flatnonzero(targets.labelled)[10::2]]
    folds = [found.scores for found in propagate_without(L, targets, held_out)]
    for name, value in (("MAX_DENSE_LABELS", 0), ("SOLVED_NUMBERS", 2000), ("MIN_SPARSE", 10), ("MAX_FILL", 1.0)):
        monkeypatch.setattr(f"lmssc.core.direct_propagation.{name}", value)
    monkeypatch.setattr("lmssc.core.direct_propagation.MAX_RHS_PER_SAMPLE", 1 / 100)
    monkeypatch.setattr("lmssc.core.direct_propagation.MAX_MEDIUM_ENTRIES", 100)
    monkeypatch.setattr("lmssc.core.propagation.MAX_SAMPLES", 0)
    monkeypatch.setattr("lmssc.core.propagation.scores_without", None)  # would be an error if it were called
    np.testing.assert_allclose(propagate(L, targets).scores, right, atol=1e-9)
    for found, expected in zip(propagate_without(L, targets, held_out), folds, strict=True):
        np.testing.assert_allclose(found.scores, expected, atol=1e-9)
