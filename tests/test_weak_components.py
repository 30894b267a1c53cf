"""Parts of the graph that are weakly tied to a label get the right level, where the solver alone would not."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.core import weak_components as groups_module
from lmssc.core.laplacian import laplacian
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets
from lmssc.core.weak_components import WeakComponents

SIZE = 30


def clumps(rng, n_clumps, ties, dtype=np.float64):
    """Laplacian of well-knit clumps of 30 samples; `ties` are (clump, clump, weight), between members by chance."""
    parts = [np.triu(rng.uniform(0.2, 1, (SIZE, SIZE)) * (rng.random((SIZE, SIZE)) < 0.4), 1) for _ in range(n_clumps)]
    for part in parts:
        part[np.arange(SIZE - 1), np.arange(1, SIZE)] = 1.0
    weights = sparse.block_diag(parts, format="lil")
    for one, other, weight in ties:
        weights[one * SIZE + rng.integers(SIZE), other * SIZE + rng.integers(SIZE)] = weight
    weights = weights.tocsr()
    return laplacian(sparse.csr_array((weights + weights.T).astype(dtype)))


def exact(L, codes, n_classes):
    """F by elimination without subtraction (Grassmann, Taksar, Heyman), which loses no digit of the weakest tie."""
    weights = -L.toarray().astype(np.float64)
    np.fill_diagonal(weights, 0)
    unknown = np.flatnonzero(codes < 0)
    for i in unknown[::-1]:
        row = weights[i] / weights[i].sum()
        column = weights[:, i].copy()
        weights[i] = row
        others = np.arange(len(codes)) != i
        weights[np.ix_(others, others)] += np.outer(column[others], row[others])
        weights[others, i] = 0
        np.fill_diagonal(weights, 0)
    scores = Targets.from_codes(codes, n_classes).matrix(np.dtype(float))
    for i in unknown:
        scores[i] = (weights[i] @ scores) / weights[i].sum()
    return scores


def one_label_in(clumps_with_label, n_clumps):
    codes = np.full(n_clumps * SIZE, -1)
    codes[np.asarray(clumps_with_label) * SIZE + 3] = np.arange(len(clumps_with_label))
    return codes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weak", [1e-12, 1e-9, 1e-6, 1e-3])
def test_the_level_of_weakly_tied_clumps(dtype, weak):
    """Two labelled clumps and a chain of four others between them: a weighted mean of both, clump by clump."""
    ties = [(0, 2, weak), (2, 3, 2 * weak), (3, 4, weak / 2), (4, 5, weak), (5, 1, weak), (2, 4, weak / 3)]
    L = clumps(np.random.default_rng(0), 6, ties, dtype)
    codes = one_label_in([0, 1], 6)
    found = propagate(L, Targets.from_codes(codes, 2), tol=1e-4)
    assert not found.unreached.any()
    right = exact(L, codes, 2)
    assert 0.2 < right[2 * SIZE :, 0].min() < 0.5 < right[2 * SIZE :, 0].max() < 0.9
    np.testing.assert_allclose(found.scores, right, atol=2e-3)


def test_few_weakly_tied_clumps_among_many_samples():
    """A residual over all samples does not see two clumps of many."""
    strong = [(c, c + 1, 0.5) for c in range(37)]
    L = clumps(np.random.default_rng(1), 40, [*strong, (0, 38, 1e-5), (37, 39, 1e-5)])
    codes = one_label_in([0, 37], 40)
    scores = propagate(L, Targets.from_codes(codes, 2), tol=1e-4).scores
    # A clump on one tie has the scores of the sample that it hangs on, and those are near the label's.
    assert scores[38 * SIZE : 39 * SIZE, 0].min() > 0.9
    assert scores[39 * SIZE :, 1].min() > 0.9


def test_groups_are_the_components_of_the_strong_edges():
    ties = [(0, 1, 1.0), (1, 2, 1e-7), (3, 4, 1e-5)]
    L = clumps(np.random.default_rng(2), 6, ties)
    labelled = one_label_in([0], 6) >= 0
    groups = WeakComponents.of(L, labelled)
    np.testing.assert_array_equal(groups.members, np.arange(2 * SIZE, 6 * SIZE))
    np.testing.assert_array_equal(groups.component, np.repeat(np.arange(4), SIZE))
    np.testing.assert_array_equal(groups.unreached, [False, True, True, True])
    parts = connected_components(L)[1]
    np.testing.assert_array_equal(groups.unreached_samples(6 * SIZE), parts != parts[3])


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.2])
def test_whatever_is_called_weak(monkeypatch, share):
    """More groups, the same answer: a level is a step towards the minimum, and the minimum is one."""
    monkeypatch.setattr(groups_module, "WEAK_EDGE", share)
    rng = np.random.default_rng(3)
    L = clumps(rng, 8, [(a, b, float(10 ** rng.uniform(-4, 0))) for a in range(8) for b in range(a)])
    codes = one_label_in([0, 1, 2], 8)
    np.testing.assert_allclose(propagate(L, Targets.from_codes(codes, 3)).scores, exact(L, codes, 3), atol=1e-8)


@pytest.mark.parametrize("scale", [1e-4, 1e-8])
def test_a_part_of_lighter_weights_is_none(scale):
    """Its ties are strong for its own degrees, and its scores right in single precision too."""
    ring = sparse.diags_array([np.ones(399)], offsets=[1], shape=(400, 400))
    path = sparse.diags_array([np.full(11, scale)], offsets=[1], shape=(12, 12))
    weights = sparse.block_diag([ring, path], format="csr").astype(np.float32)
    codes = np.full(412, -1)
    codes[[0, 400, 411]] = [0, 0, 1]
    scores = propagate(laplacian(sparse.csr_array(weights + weights.T)), Targets.from_codes(codes, 2)).scores
    np.testing.assert_allclose(scores[400:, 1], np.linspace(0, 1, 12), atol=1e-4)


def test_many_small_edges_take_no_more_memory_than_the_graph():
    """Of a full graph every edge is weak and every sample a group; edges times classes would be 80 MB at a time."""
    points = np.random.default_rng(4).normal(size=(500, 3))
    affinity = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    L = laplacian(sparse.csr_array(affinity))
    codes = np.full(500, -1)
    codes[:40] = np.arange(40)
    tracemalloc.start()
    scores = propagate(L, Targets.from_codes(codes, 40), tol=1e-4).scores
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * (L.data.nbytes + L.indices.nbytes)
    np.testing.assert_allclose(scores, exact(L, codes, 40), atol=1e-3)


def test_a_normalised_laplacian_is_not_levelled():
    """A constant is not smooth on it: to move a group by one would take it away from the minimum."""
    plain = clumps(np.random.default_rng(5), 3, [(0, 1, 1e-3), (1, 2, 2e-3)])
    scale = sparse.diags_array(1 / np.sqrt(plain.diagonal()))
    L = sparse.csr_array(scale @ plain @ scale)
    codes = one_label_in([0, 2], 3)
    dense, unknown = L.toarray(), codes < 0
    right = Targets.from_codes(codes, 2).matrix(np.dtype(float))
    known_part = dense[np.ix_(unknown, ~unknown)] @ right[~unknown]
    right[unknown] = np.linalg.solve(dense[np.ix_(unknown, unknown)], -known_part)
    np.testing.assert_allclose(propagate(L, Targets.from_codes(codes, 2), normalised=True).scores, right, atol=1e-7)
    assert np.abs(propagate(L, Targets.from_codes(codes, 2)).scores - right).max() > 1e-3


@pytest.mark.parametrize("n_samples", [5, 40])
def test_long_chains_are_told_apart_like_short_ones(n_samples):
    chain = sparse.diags_array([np.ones(n_samples - 1)], offsets=[1]).tocsr()
    L = laplacian(sparse.csr_array(sparse.block_diag([chain, chain])))
    labelled = np.arange(2 * n_samples) == 0
    found = WeakComponents.of(L, labelled)
    np.testing.assert_array_equal(found.members, np.arange(n_samples, 2 * n_samples))
    assert found.unreached.all()
    both = labelled | (np.arange(2 * n_samples) == 2 * n_samples - 1)
    assert not len(WeakComponents.of(L, both).members)
