"""Weights of the labels, leave-one-out and updates by one label, against dense solves on random graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lmssc.core.bottleneck import weakest_edges
from lmssc.core.influence import label_weights, leave_one_out, solve_scores
from lmssc.core.label_system import LabelSolver, LabelSystem
from lmssc.core.label_updater import LabelUpdater
from lmssc.numerics.spatial_order import spatial_order
from oracles import dense_system_scores


def make_system(seed, *, soft=False, anchored=False, n=None):
    """A random graph, perhaps of several components, with edges of very different weight."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30)) if n is None else n
    W = np.triu(rng.random((n, n)) < rng.uniform(1, 5) / n, 1) * 10.0 ** rng.uniform(-3, 0, (n, n))
    W = W + W.T
    L = np.diag(W.sum(axis=1)) - W
    labelled = rng.random(n) < 0.3
    labelled[rng.integers(n)] = True
    Y = np.where(labelled[:, None], rng.dirichlet(np.ones(3), n), 0)
    trust = np.where(labelled, np.inf, 0.0)
    if soft:
        trust = np.where(labelled & (rng.random(n) < 0.7), rng.uniform(0.01, 5, n), trust)
    anchor = rng.uniform(0, 0.1, n) * (rng.random(n) < 0.5) if anchored else None
    opinion = rng.dirichlet(np.ones(3), n) if anchored else None
    return LabelSystem(sparse.csr_array(L), Y, trust, anchor, opinion)


def dense(system, **changes):
    parts = {name: getattr(system, name) for name in ("labels", "trust", "anchor", "opinion")} | changes
    return dense_system_scores(system.laplacian.toarray(), **parts)


kinds = [{}, {"soft": True}, {"anchored": True}, {"soft": True, "anchored": True}]


def on_random_systems(n_systems):
    """Run a test of (kind, seed) on so many random systems of each kind."""

    def decorate(test):
        random = settings(max_examples=n_systems, deadline=None)(given(seed=st.integers(0, 10**6))(test))
        return pytest.mark.parametrize("kind", kinds)(random)

    return decorate


@on_random_systems(30)
def test_weights_times_labels_are_the_scores(kind, seed):
    system = make_system(seed, **kind)
    expected = dense(system)
    solver = LabelSolver(system)
    np.testing.assert_allclose(solve_scores(solver), expected, atol=1e-6)
    weights, anchor, opinion = label_weights(solver, np.arange(system.n_samples))
    assert weights.data.min() >= 0
    assert not weights[:, ~system.labelled].nnz
    np.testing.assert_allclose(weights.sum(axis=1) + anchor, system.reached, atol=1e-12)
    found = weights @ system.labels + opinion
    np.testing.assert_allclose(found[system.reached], expected[system.reached], atol=1e-6)


@on_random_systems(20)
def test_leave_one_out_is_a_refit_at_the_fixed_graph(kind, seed):
    system = make_system(seed, **kind)
    solver = LabelSolver(system)
    samples, found = leave_one_out(solver, dense(system))
    assert samples.tolist() == np.flatnonzero(system.labelled).tolist()
    for i, row in zip(samples, found, strict=True):
        trust = system.trust.copy()
        trust[i] = 0
        refit = LabelSystem(system.laplacian, system.labels, trust, system.anchor, system.opinion)
        if refit.reached[i]:
            np.testing.assert_allclose(row, dense(refit)[i], atol=1e-6)
        else:
            assert np.isnan(row).all()


@pytest.mark.parametrize("prepared", [False, True])
@on_random_systems(20)
def test_labels_given_and_taken_back_are_solves_again(kind, prepared, seed):
    system = make_system(seed, **kind)
    rng = np.random.default_rng(seed)
    updater = LabelUpdater(LabelSolver(system, tol=1e-14))
    Y, trust = system.labels.copy(), system.trust.copy()
    for _ in range(6):
        if prepared:
            updater.prepare(rng.permutation(system.n_samples)[:5])
        i = int(rng.integers(system.n_samples))
        if np.isinf(trust[i]) and rng.random() < 0.6 and (trust > 0).sum() > 1:
            back = system.trust[i] if np.isfinite(system.trust[i]) else 0.0
            trust[i], Y[i] = back, system.labels[i] if back else 0
            found = updater.remove(i)
        else:
            trust[i], Y[i] = np.inf, np.eye(3)[rng.integers(3)]
            found = updater.add(i, int(Y[i].argmax()))
        np.testing.assert_allclose(found, dense(system, labels=Y, trust=trust), atol=1e-8)


@pytest.mark.parametrize("kind", kinds)
def test_columns_that_come_late_know_the_labels_given_and_taken_back_meanwhile(kind):
    system = make_system(11, n=25, **kind)
    rng = np.random.default_rng(0)
    Y, trust = system.labels.copy(), system.trust.copy()
    updater = LabelUpdater(LabelSolver(system, tol=1e-14))
    free = rng.permutation(np.flatnonzero(~system.labelled & system.reached))
    late, *others = (int(i) for i in free)
    held = int(np.flatnonzero(system.clamped)[0])
    solve = updater.column_solve(late)
    for i in others[:2]:
        updater.add(i, 1)
        Y[i], trust[i] = np.eye(3)[1], np.inf
    updater.remove(held)
    Y[held], trust[held] = 0, 0.0
    updater.keep_column(solve(), [late])
    assert updater.is_prepared(late)
    Y[late], trust[late] = np.eye(3)[2], np.inf
    np.testing.assert_allclose(updater.add(late, 2), dense(system, labels=Y, trust=trust), atol=1e-8)
    # After too many changes, or a step back, the column is dropped.
    solve, state = updater.column_solve(others[5]), updater.state()
    updater.restore(state)
    updater.keep_column(solve(), others)
    assert not updater.is_prepared(others[5])
    solve = updater.column_solve(others[5])
    for i in others[2:5]:
        updater.add(i, 0)
        updater.remove(i)
    updater.keep_column(solve(), others)
    assert not updater.is_prepared(others[5])


def test_a_label_that_is_undone_at_once_takes_no_solve(monkeypatch):
    system = make_system(3, n=25)
    updater = LabelUpdater(LabelSolver(system))
    before = updater.scores.copy()
    i = int(np.flatnonzero(~system.labelled & system.reached)[0])
    updater.prepare(np.array([i]))
    monkeypatch.setattr(LabelSolver, "solve", None)
    assert np.abs(updater.add(i, 2) - before).max() > 0.01
    np.testing.assert_allclose(updater.remove(i), before, atol=1e-10)
    with pytest.raises(ValueError, match="no label to take back"):
        updater.remove(i)


def test_the_order_of_the_solver_changes_nothing():
    rng = np.random.default_rng(0)
    points = rng.random((600, 2))
    near = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    W = np.exp(-near / 0.01) * (near < 0.02) * (1 - np.eye(600))
    labelled = np.arange(600) % 20 == 0
    Y = np.where(labelled[:, None], np.eye(3)[rng.integers(3, size=600)], 0)
    L = sparse.csr_array(np.diag(W.sum(axis=1)) - W)
    system = LabelSystem(L, Y, np.where(labelled, np.inf, 0.0))
    plain, ordered = LabelSolver(system), LabelSolver(system, spatial_order(points))
    np.testing.assert_allclose(solve_scores(plain), solve_scores(ordered), atol=1e-9)
    rows = np.array([5, 300, 21, 40])
    np.testing.assert_allclose(
        label_weights(plain, rows).weights.toarray(), label_weights(ordered, rows).weights.toarray(), atol=1e-9
    )
    updater = LabelUpdater(ordered)
    labels, trust = Y.copy(), system.trust.copy()
    labels[5], trust[5] = np.eye(3)[1], np.inf
    np.testing.assert_allclose(updater.add(5, 1), dense(system, labels=labels, trust=trust), atol=1e-8)


@on_random_systems(30)
def test_the_weakest_edge_is_that_of_the_best_path_to_a_label(kind, seed):
    system = make_system(seed, **kind)
    degree = system.laplacian.diagonal()
    share = -system.laplacian.toarray() / np.maximum(np.maximum.outer(degree, degree), 1e-300)
    np.fill_diagonal(share, 0)
    share = np.minimum(share, 1)
    best = share.copy()
    for middle in range(system.n_samples):
        best = np.maximum(best, np.minimum.outer(best[:, middle], best[middle]))
    expected = np.where(system.labelled, 1, best[:, system.labelled].max(axis=1))
    strength, edge = weakest_edges(system.laplacian, system.labelled)
    np.testing.assert_allclose(strength, expected, rtol=1e-12)
    has_edge = edge[:, 0] >= 0
    assert (has_edge == (~system.labelled & (expected > 0))).all()
    np.testing.assert_allclose(share[edge[has_edge, 0], edge[has_edge, 1]], expected[has_edge], rtol=1e-12)


def test_the_weakest_edge_of_a_long_chain_is_the_nearest_of_equal_ones():
    n = 5000
    weights = np.ones(n - 1)
    weights[[999, 2999]] = 0.1
    W = sparse.diags_array([weights, weights], offsets=[1, -1])
    L = (sparse.diags_array(W.sum(axis=1)) - W).tocsr()
    strength, edge = weakest_edges(L, np.arange(n) == 0)
    assert edge[[0, 1000, 2999]].tolist() == [[-1, -1], [1000, 999], [1000, 999]]
    assert edge[[3000, n - 1]].tolist() == [[3000, 2999], [3000, 2999]]
    np.testing.assert_allclose(strength[[0, 1, 1000, n - 1]], [1, 0.5, 0.1 / 1.1, 0.1 / 1.1])
