"""Sparse products on several threads equal those on one."""

import numpy as np
import pytest
from scipy import sparse

from lmssc.numerics import sparse_ops as products
from lmssc.numerics.parallel import threads
from lmssc.numerics.sparse_ops import threaded_product


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_to_the_last_digit(monkeypatch, n_threads, dtype):
    monkeypatch.setattr(products, "ROWS_PER_BATCH", 5)
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(50, 40)) * (rng.random((50, 40)) < 0.2)
    dense[10:25] = 0  # no part may be lost because it is empty
    matrix, rows = sparse.csr_array(dense.astype(dtype)), rng.normal(size=(40, 3)).astype(dtype)
    with threads(n_jobs=n_threads):
        product = threaded_product(matrix)
        found = product(rows)
        into, to = np.full((50, 3), 7, dtype=dtype), np.ones((50, 3), dtype=dtype)
        assert product(rows, into) is into
        product(rows, to, add=True)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, matrix @ rows)
    np.testing.assert_array_equal(into, found)
    np.testing.assert_array_equal(to, 1 + found)


def test_an_error_in_a_thread_is_told(monkeypatch):
    monkeypatch.setattr(products, "ROWS_PER_BATCH", 1)
    with threads(n_jobs=2), pytest.raises(ValueError, match="mismatch"):
        threaded_product(sparse.eye_array(4).tocsr())(np.ones((5, 1)))


def test_consecutive_rows_share_their_entries():
    matrix = sparse.random_array((100, 30), density=0.3, format="csr", random_state=np.random.default_rng(0))
    for rows in (slice(0, 10), slice(10, 11), slice(40, 100), slice(5, 5)):
        part = products.consecutive_rows(matrix, rows)
        np.testing.assert_array_equal(part.toarray(), matrix.toarray()[rows])
        assert np.shares_memory(part.data, matrix.data) == (part.nnz > 0)
        assert np.shares_memory(part.indices, matrix.indices) == (part.nnz > 0)
