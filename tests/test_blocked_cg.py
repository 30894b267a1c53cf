"""Conjugate gradients in blocks against a direct solve, with and without a coarse level."""

import numpy as np
import pytest
from scipy import linalg, sparse

from lmssc.core.label_system import LabelSolver, LabelSystem
from lmssc.core.laplacian import laplacian
from lmssc.core.targets import Targets
from lmssc.numerics import blocked_cg
from lmssc.numerics.blocked_cg import MIN_COLUMNS, BlockedMatrix, CoarseBlocks
from lmssc.numerics.parallel import threads


def random_sparse(shape, density, rng):
    """Positive entries at random places."""
    return sparse.csr_array(rng.random(shape) * (rng.random(shape) < density))


def matrix(n_rows, seed=0):
    """A sparse symmetric positive definite matrix with an uneven diagonal."""
    rng = np.random.default_rng(seed)
    graph = random_sparse((n_rows, n_rows), 8 / n_rows, rng)
    return (laplacian(graph) + sparse.diags_array(rng.uniform(0.01, 2, n_rows))).tocsr()


def coarse(M, starts):
    """The coarse level of M for blocks, some of which are empty."""
    sizes = np.diff(starts, append=M.shape[0])
    P = np.repeat(np.eye(len(starts)), sizes, axis=0)
    A = P.T @ M.toarray() @ P
    A[sizes == 0, sizes == 0] = 1
    return CoarseBlocks(starts, linalg.cholesky(A, lower=True))


@pytest.mark.parametrize("n_rows", [1, 199, 200, 201, 1700])
@pytest.mark.parametrize("n_columns", [1, 20])
def test_is_the_solution(n_rows, n_columns):
    M = matrix(n_rows)
    B = np.random.default_rng(1).normal(size=(n_rows, n_columns))
    B[:, 0] = 0
    wanted = np.linalg.solve(M.toarray(), B)
    np.testing.assert_allclose(BlockedMatrix(M).solve(B.copy(), 1e-13), wanted, atol=1e-10)
    level = coarse(M, np.minimum([0, 50, 50, 130], n_rows))
    np.testing.assert_allclose(BlockedMatrix(M, level).solve(B.copy(), 1e-13), wanted, atol=1e-10)
    C = random_sparse((7, n_rows), 0.5, np.random.default_rng(2))
    np.testing.assert_allclose(BlockedMatrix(M).solve(B.copy(), 1e-13, C), C @ wanted, atol=1e-10)


def test_a_matrix_and_outputs_stay_as_they_are():
    M = matrix(300)
    C = random_sparse((7, 300), 0.5, np.random.default_rng(2))
    before = M.copy(), C.copy()
    BlockedMatrix(M).solve(np.ones((300, 2)), 1e-8, C)
    assert (before[0] != M).nnz == 0
    assert (before[1] != C).nnz == 0


def test_a_coarse_level_takes_fewer_steps():
    """On a chain, smooth errors take as many steps as there are samples, or as there are blocks."""
    n = 2000
    L = laplacian(sparse.diags_array([np.ones(n - 1)] * 2, offsets=[1, -1]).tocsr())
    M = (L + sparse.csr_array(([1.0], ([0], [0])), shape=(n, n))).tocsr()
    B = np.eye(n)[:, :3].copy()
    wanted = np.linalg.solve(M.toarray(), B)
    level = coarse(M, np.arange(0, n, 100))
    errors = [
        abs(BlockedMatrix(M, blocks).solve(B.copy(), 1e-12, max_iter=400) - wanted).max() for blocks in (None, level)
    ]
    assert errors[1] < 1e-6 < errors[0]


def test_the_same_digits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(blocked_cg, "ROWS_PER_PART", 100)
    M, found = matrix(1000), []
    for n_jobs in (1, 2, 3):
        with threads(n_jobs=n_jobs):
            found.append(BlockedMatrix(M).solve(np.eye(1000)[:, :20].copy(), 1e-8))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.parametrize("kind", ["clamped", "trusted", "opinions"])
def test_many_right_hand_sides_of_a_label_system_are_solved_as_a_few_are(kind):
    rng = np.random.default_rng(0)
    n = 700
    graph = random_sparse((n, n), 0.01, rng)
    L = laplacian(graph)
    targets = Targets.from_codes(np.where(rng.random(n) < 0.1, rng.integers(3, size=n), -1), 3)
    trust = np.where(targets.labelled, np.inf if kind == "clamped" else 2.0, 0.0)
    anchor = rng.uniform(0.1, 1, n) if kind == "opinions" else None
    opinion = rng.dirichlet(np.ones(3), n) if kind == "opinions" else None
    system = LabelSystem(L, targets.matrix(np.dtype(float)), trust, anchor, opinion)
    order = rng.permutation(n)
    solver = LabelSolver(system, order, tol=1e-12)
    B = rng.normal(size=(n, MIN_COLUMNS + 3))
    wanted = np.hstack([solver.solve(B[:, [j]]) for j in range(B.shape[1])])
    np.testing.assert_allclose(solver.solve(B), wanted, atol=1e-8)
    rows = random_sparse((MIN_COLUMNS + 3, n), 0.01, rng)
    outputs = random_sparse((5, n), 0.2, rng)
    wanted = outputs @ LabelSolver(system, tol=1e-12).solve(rows.toarray().T)
    np.testing.assert_allclose(solver.solve_outputs(outputs, rows), wanted, atol=1e-8)
