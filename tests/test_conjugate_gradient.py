"""Conjugate gradients against a direct solve, whatever the shapes and how the arrays are stored."""

import numpy as np
import pytest

from lmssc.numerics import conjugate_gradient as solvers
from lmssc.numerics.conjugate_gradient import conjugate_gradient
from lmssc.numerics.parallel import threads


def problem(n_rows, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_rows, n_rows))
    return A @ A.T + n_rows * np.eye(n_rows), rng.normal(size=(n_rows, n_columns)), rng.normal(size=(n_rows, n_columns))


def solve(M, B, start, **options):
    return conjugate_gradient(lambda X: M @ X, B, start, lambda R: R / np.diag(M)[:, None], tol=1e-12, **options)


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("diagonal", [False, True])
def test_is_the_solution(n_rows, order, diagonal):
    M, B, start = problem(n_rows, 3)
    found = solve(
        M, np.asarray(B, order=order), np.asarray(start, order=order), diagonal=np.diag(M) if diagonal else None
    )
    np.testing.assert_allclose(found, np.linalg.solve(M, B), atol=1e-10)


def test_the_same_digits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(solvers, "BATCHES", solvers.ColumnBatches(n_values=64 * 3, n_per_task=1))
    M, B, start = problem(500, 3)
    found = []
    for n_jobs in (1, 2, 3):
        with threads(n_jobs=n_jobs):
            found.append(solve(M, B, start))
    np.testing.assert_allclose(found[0], np.linalg.solve(M, B), atol=1e-10)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_columns_that_are_one_system():
    M, B, start = problem(60, 2)
    mix = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = conjugate_gradient(
        lambda X: M @ X @ mix, B, start, lambda R: R / np.diag(M)[:, None], tol=1e-12, coupled=True
    )
    np.testing.assert_allclose(M @ found @ mix, B, atol=1e-9)


def test_nothing_to_solve():
    assert conjugate_gradient(abs, np.empty((5, 0)), np.empty((5, 0)), abs).shape == (5, 0)
    M, B, start = problem(20, 2)
    B[:, 1] = 0
    assert (solve(M, B, start)[:, 1] == 0).all()


def test_arrays_that_are_used_again():
    M, B, start = problem(100, 4)
    image, scaled = np.empty_like(B), np.empty_like(B)
    found = conjugate_gradient(
        lambda X: np.matmul(M, X, out=image),
        B,
        start,
        lambda R: np.divide(R, np.diag(M)[:, None], out=scaled),
        tol=1e-12,
    )
    np.testing.assert_allclose(found, np.linalg.solve(M, B), atol=1e-10)
