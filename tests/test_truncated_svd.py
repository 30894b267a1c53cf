"""Leading directions of the views: every path of every shape and storage finds the same."""

import numpy as np
import pytest
from scipy import sparse

from lmssc import LMSSC
from lmssc.core import truncated_svd
from lmssc.core.truncated_svd import SVDLimits, estimate_median, leading_directions
from lmssc.data.missing_views import check_views
from lmssc.data.storage import smaller
from lmssc.data.view import View
from lmssc.data.views import Views
from lmssc.numerics.matrices import MIN_WIDE

GRAM = SVDLimits()
NO_GRAM = SVDLimits(max_gram_size=10)


def decaying(shape, seed=0, density=0.3):
    """Random values with gaps between the leading singular values, many of them zero."""
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(shape[0], 6)) * 0.6 ** np.arange(6) @ rng.normal(size=(6, shape[1]))
    return (low + 0.01 * rng.normal(size=shape)) * (rng.random(shape) < density)


def stored(X, kind, dtype):
    """Two centred views of X: dense, or sparse with an offset; the second is missing for some samples."""
    cut = X.shape[1] // 3
    present = np.arange(len(X)) % 7 != 3
    views = []
    for part, rows in ((X[:, :cut], None), (X[:, cut:], present)):
        mean = part.mean(axis=0)
        data = part if rows is None else part * rows[:, None]
        if kind == "sparse":
            views.append(View(sparse.csr_array(data.astype(dtype)), mean.astype(dtype), rows))
        else:
            centred = part - mean if rows is None else (part - mean) * rows[:, None]
            views.append(View(centred.astype(dtype), None, rows))
    return Views(views)


@pytest.mark.parametrize("shape", [(90, 260), (260, 90)])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-6), (np.float32, 2e-4)])
def test_every_path_finds_the_same_directions(monkeypatch, shape, dtype, atol):
    X = decaying(shape)
    dense = stored(X, "dense", np.float64)
    _, values, right = np.linalg.svd(np.hstack([view.data for view in dense]), full_matrices=False)
    for limits in (GRAM, NO_GRAM):
        monkeypatch.setattr("lmssc.core.truncated_svd.SVD", limits)
        for kind in ("dense", "sparse"):
            found = leading_directions(stored(X, kind, dtype), 5, tol=1e-12)
            np.testing.assert_allclose(found.values, values[:5], atol=atol * values[0])
            signs = np.sign(np.sum(found.directions * right[:5].T, axis=0))
            np.testing.assert_allclose(found.directions, right[:5].T * signs, atol=10 * atol)
            assert found.directions.dtype == dtype
            assert (found.directions[np.abs(found.directions).argmax(axis=0), np.arange(5)] > 0).all()


@pytest.mark.parametrize("shape", [(90, 260), (260, 90)])
def test_lanczos_of_sparse_views_that_are_not_centred(monkeypatch, shape):
    monkeypatch.setattr("lmssc.core.truncated_svd.SVD", NO_GRAM)
    X = decaying(shape)
    views = Views([View(sparse.csr_array(part)) for part in (X[:, :40], X[:, 40:])])
    _, values, right = np.linalg.svd(X, full_matrices=False)
    found = leading_directions(views, 5)
    np.testing.assert_allclose(found.values, values[:5], rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.directions), np.abs(right[:5].T), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [MIN_WIDE - 1, MIN_WIDE])
def test_products_of_wide_and_narrow_views(width, dtype):
    rng = np.random.default_rng(0)
    X, W, H = (rng.normal(size=shape).astype(dtype) for shape in ((50, width), (width, 7), (50, 7)))
    view, exact = View(X), X.astype(np.longdouble)
    atol = 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(view.dot(W), exact @ W, atol=atol)
    np.testing.assert_allclose(view.transpose_dot(H), exact.T @ H, atol=atol)
    assert view.dot(W).flags.c_contiguous
    assert view.transpose_dot(H).flags.c_contiguous


def test_block_lanczos_restarts_until_close_values_converge(monkeypatch):
    monkeypatch.setattr("lmssc.core.truncated_svd.SVD", SVDLimits(max_gram_size=10, min_block=3, max_basis=2))
    rng = np.random.default_rng(0)
    X = (
        np.linalg.qr(rng.normal(size=(150, 120)))[0]
        * (1 + 0.97 ** np.arange(120))
        @ np.linalg.qr(rng.normal(size=(120, 120)))[0]
    )
    found = leading_directions(Views.from_arrays([X]), 12, tol=1e-12, measure_noise=False)
    np.testing.assert_allclose(found.values, np.linalg.svd(X)[1][:12], rtol=1e-9)
    assert found.median is None


@pytest.mark.parametrize("rank", [0, 2])
def test_block_lanczos_of_low_rank(monkeypatch, rank):
    monkeypatch.setattr("lmssc.core.truncated_svd.SVD", NO_GRAM)
    factor = np.random.default_rng(0).normal(size=(100, rank))
    X = factor @ factor.T
    directions, values, median = leading_directions(Views.from_arrays([X]), 5)
    np.testing.assert_allclose(values, np.linalg.svd(X)[1][:5], atol=1e-6)
    np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-8)
    assert median == pytest.approx(0, abs=1e-6)


def test_what_is_below_the_noise_does_not_keep_the_rest_waiting(monkeypatch):
    rng, calls = np.random.default_rng(0), []
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 200)) + rng.normal(size=(300, 200))
    real = truncated_svd._squared_dot
    monkeypatch.setattr(truncated_svd, "_squared_dot", lambda *args, **kw: calls.append(1) or real(*args, **kw))
    monkeypatch.setattr("lmssc.core.truncated_svd.SVD", SVDLimits(max_gram_size=10, min_block=8))
    counts = []
    for measure_noise in (True, False):
        calls.clear()
        found = leading_directions(Views.from_arrays([X]), 20, measure_noise=measure_noise, min_wanted=1)
        np.testing.assert_allclose(found.values[:4], np.linalg.svd(X)[1][:4], rtol=1e-6)
        counts.append(len(calls))
    assert counts[0] < counts[1]


@pytest.mark.parametrize("shape", [(300, 200), (200, 300)])
@pytest.mark.parametrize(("strength", "unit", "single"), [(1, 1, True), (300, 1, False), (1, 1e12, False)])
def test_block_lanczos_in_single_precision(monkeypatch, shape, strength, unit, single):
    rng, precisions = np.random.default_rng(0), set()
    signal = rng.normal(size=(shape[0], 4)) @ rng.normal(size=(4, shape[1]))
    signal[:, 0] *= strength  # a value that is so large leaves the others few digits in single precision
    X = unit * (signal + rng.normal(size=shape))
    real = truncated_svd._squared_dot
    monkeypatch.setattr(truncated_svd, "_squared_dot", lambda X, *a, **kw: precisions.add(X.dtype) or real(X, *a, **kw))
    monkeypatch.setattr("lmssc.core.truncated_svd.SVD", SVDLimits(max_gram_size=10, min_block=8, rows_per_product=64))
    found = leading_directions(Views.from_arrays([X[:, :150], X[:, 150:]]), 20, min_wanted=1)
    assert found.values.dtype == np.float64
    assert len(found.values) < 20  # nor are vectors of noise restored
    if single:
        assert np.dtype(np.float32) in precisions
    _, values, directions = np.linalg.svd(X)
    np.testing.assert_allclose(found.values[:4], values[:4], rtol=1e-6)
    cosines = np.abs(np.einsum("ij,ji->i", directions[:4], found.directions[:, :4]))
    np.testing.assert_allclose(cosines, 1, atol=1e-6)


@pytest.mark.parametrize("shape", [(700, 500), (400, 1200), (2500, 300)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_median_from_a_part_is_that_of_the_whole(monkeypatch, shape, kind):
    monkeypatch.setattr("lmssc.core.truncated_svd.SVD", SVDLimits(noise_size=200, noise_length=600))
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.5) + 1
    dense = np.hstack([view.data for view in stored(X, "dense", np.float64)])
    assert estimate_median(stored(X, kind, np.float32)) == pytest.approx(
        np.median(np.linalg.svd(dense, compute_uv=False)), rel=0.03
    )


def test_dense_views_of_zeros_are_stored_sparsely_and_give_the_same_fit():
    rng = np.random.default_rng(0)
    target = rng.integers(3, size=120)
    counts = (rng.random((120, 400)) < 0.01 + 0.03 * (np.arange(400) // 134 == target[:, None])).astype(float)
    y = np.where(np.arange(120) < 40, target, -1)
    dense, csr = LMSSC().fit([counts], y), LMSSC().fit([sparse.csr_array(counts)], y)
    np.testing.assert_array_equal(dense.label_distributions_, csr.label_distributions_)
    new = counts[:5] + counts[5:10]
    np.testing.assert_allclose(dense.predict_proba([new]), csr.predict_proba([sparse.csr_array(new)]), rtol=1e-12)


@pytest.mark.parametrize(("share", "is_sparse"), [(0.0, True), (0.02, True), (0.05, False)])
def test_storage_depends_on_the_share_of_zeros_alone(share, is_sparse):
    block = np.zeros((1000, 50))
    block.ravel()[: int(share * block.size)] = 1
    for rows in (block, block[::-1]):
        found = smaller(rows)
        assert sparse.issparse(found) == is_sparse
        np.testing.assert_array_equal(found.toarray() if is_sparse else found, rows)


def test_a_gap_among_zeros_is_no_missing_row():
    block = np.zeros((200, 10))
    block[3, 2] = np.nan
    block[7] = np.nan
    checked, _ = check_views({"a": block, "b": np.ones((200, 1))}, None)
    assert not sparse.issparse(checked.raw.data)
    np.testing.assert_array_equal(np.flatnonzero(checked.gap_rows), [3])
    np.testing.assert_array_equal(np.flatnonzero(~checked.raw.present), [7])
