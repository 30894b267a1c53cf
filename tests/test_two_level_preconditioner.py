"""The two-level preconditioner changes the number of iterations, not the solution."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from lmssc.core import propagation
from lmssc.core.laplacian import laplacian
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets
from lmssc.numerics import two_level_preconditioner as coarse
from lmssc.numerics.two_level_preconditioner import coarse_correction


def chain(weights):
    """Laplacian of samples in a row."""
    return laplacian(sparse.diags_array([weights, weights], offsets=[1, -1]).tocsr())


def dense_scores(L, codes, n_classes):
    """F by a dense solve."""
    known = codes >= 0
    scores = Targets.from_codes(codes, n_classes).matrix(np.dtype(float))
    dense = L.toarray()
    scores[~known] = np.linalg.solve(dense[np.ix_(~known, ~known)], -dense[np.ix_(~known, known)] @ scores[known])
    return scores


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(coarse, "SETTINGS", replace(coarse.SETTINGS, min_block_size=16))


def counted(monkeypatch):
    """Calls of the operator by the solver that `propagate` uses, as it goes."""
    calls = []
    solve = propagation.conjugate_gradient

    def counting(operator, *args, **options):
        return solve(lambda rows: calls.append(1) or operator(rows), *args, **options)

    monkeypatch.setattr(propagation, "conjugate_gradient", counting)
    return calls


def codes_of(n_samples, where):
    codes = np.full(n_samples, -1)
    codes[where] = np.arange(len(where)) % 2
    return codes


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(599),
        np.random.default_rng(0).uniform(0.01, 1, 599),
        np.where(np.arange(599) == 300, 1e-9, 1.0),  # two halves that hardly hold together
    ],
)
def test_same_scores(small, weights):
    L, codes = chain(weights), codes_of(600, [0, 130, 131, 599])
    found = propagate(L, Targets.from_codes(codes, 2), spatially_ordered=True)
    np.testing.assert_allclose(found.scores, dense_scores(L, codes, 2), atol=1e-6)


def test_blocks_of_known_samples_and_parts_without_a_label(small):
    weights = np.ones(599)
    weights[400] = 0  # beyond it there is no label
    codes = codes_of(600, range(100, 200))
    found = propagate(chain(weights), Targets.from_codes(codes, 2), spatially_ordered=True)
    np.testing.assert_array_equal(found.unreached, np.arange(600) > 400)
    np.testing.assert_allclose(found.scores[:401], dense_scores(chain(weights[:400]), codes[:401], 2), atol=1e-6)


@pytest.mark.parametrize("tie", [1e-9, 1e-6, 1e-3])
def test_single_precision_with_weak_ties_to_the_labels(small, tie):
    """Two groups, each tied by one weak edge to a label of its own: rounding must not make up for the tie."""
    rng = np.random.default_rng(0)
    near = np.abs(np.subtract.outer(np.arange(300), np.arange(300))) < 40
    weights = rng.random((300, 300)) * near * (rng.random((300, 300)) < 0.5)
    weights[0, 1:] = weights[1:, 0] = 0
    weights[0, 1] = tie
    L = laplacian(sparse.block_diag([weights] * 2, format="csr").astype(np.float32))
    targets = Targets.from_codes(codes_of(600, [0, 300]), 2)
    scores = propagate(L, targets, tol=1e-5, spatially_ordered=True).scores
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, np.repeat(np.eye(2), 300, axis=0), atol=1e-3)


def test_far_fewer_steps(monkeypatch, small):
    calls = counted(monkeypatch)
    L, codes = chain(np.ones(1999)), codes_of(2000, [0, 1999])
    propagate(L, Targets.from_codes(codes, 2), tol=1e-6, spatially_ordered=True)
    with_it = len(calls)
    propagate(L, Targets.from_codes(codes, 2), tol=1e-6)
    assert 5 * with_it < len(calls) - with_it


def test_the_inverse_is_that_of_the_coarse_matrix(small):
    L, known = chain(np.random.default_rng(1).uniform(0.1, 1, 511)), codes_of(512, [3, 200]) >= 0
    correct = coarse_correction(L, known)
    membership = np.kron(np.eye(32), np.ones((16, 1))) * ~known[:, None]
    residual = np.random.default_rng(2).normal(size=(512, 3)) * ~known[:, None]
    expected = membership @ np.linalg.solve(membership.T @ L.toarray() @ membership, membership.T @ residual)
    result = np.ones((512, 3))
    correct(residual, result)
    np.testing.assert_allclose(result - 1, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_the_answer_does_not_depend_on_the_numbering(small):
    """A coarse level that does not fit the order of the samples costs steps, not digits."""
    order = np.random.default_rng(0).permutation(600)
    L, codes = chain(np.ones(599))[order][:, order].tocsr(), codes_of(600, [0, 599])[order]
    found = propagate(L, Targets.from_codes(codes, 2), spatially_ordered=True)
    np.testing.assert_allclose(found.scores, dense_scores(L, codes, 2), atol=1e-6)
