"""The start of LMSSC: leading directions of all views, and how many are kept."""

import numpy as np
import pytest
from scipy import sparse

import lmssc.core.begin
import lmssc.core.initialization
from lmssc.core.initialization import latent_start
from lmssc.core.truncated_svd import SVDLimits, leading_directions
from lmssc.data.views import Views


class TestDirections:
    @pytest.mark.parametrize(("n", "d", "r"), [(40, 12, 5), (12, 40, 5), (30, 30, 30), (50, 8, 8)])
    def test_directions_are_those_of_a_dense_svd(self, n, d, r):
        X = np.random.default_rng(0).normal(size=(n, d)) * np.linspace(3, 0.1, d)
        directions, values, median = leading_directions(Views.from_arrays([X[:, :3], X[:, 3:]]), r, tol=1e-14)
        _, right_values, right = np.linalg.svd(X, full_matrices=False)
        np.testing.assert_allclose(values, right_values[:r], rtol=1e-6)
        assert median == pytest.approx(np.median(right_values), rel=1e-6)
        overlap = np.abs(np.sum(directions * right[:r].T, axis=0))
        np.testing.assert_allclose(overlap, 1, atol=1e-5)
        assert (directions[np.abs(directions).argmax(axis=0), np.arange(r)] > 0).all()

    @pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
    def test_directions_of_very_many_samples_are_those_of_some(self, monkeypatch, store):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(6000, 3)) @ rng.normal(size=(3, 20)) + 0.1 * rng.normal(size=(6000, 20))
        views = Views.from_arrays([store(X[:, :8]), store(X[:, 8:])])
        every = leading_directions(views, 3)
        monkeypatch.setattr("lmssc.core.truncated_svd.SVD", SVDLimits(min_samples=1000))
        some = leading_directions(views, 3)
        np.testing.assert_allclose(some.values, every.values, rtol=0.1)
        assert some.median == pytest.approx(every.median, rel=0.1)
        together = np.linalg.svd(some.directions.T @ every.directions)[1]
        np.testing.assert_allclose(together, 1, atol=1e-4)
        assert not np.array_equal(some.directions, every.directions)

    @pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-6), (np.float32, 1e-3)])
    @pytest.mark.parametrize("shape", [(120, 300), (300, 120)])
    def test_directions_of_many_sparse_samples(self, monkeypatch, shape, dtype, atol):
        monkeypatch.setattr("lmssc.core.truncated_svd.SVD", SVDLimits(max_gram_size=10))
        rng, calls = np.random.default_rng(0), []
        X = rng.random(shape) * (rng.random(shape) < 0.2) * np.linspace(1, 3, shape[1])
        views = [sparse.csr_array(part.astype(dtype)) for part in (X[:, :50], X[:, 50:])]
        real = lmssc.core.truncated_svd.eigsh
        monkeypatch.setattr(
            "lmssc.core.truncated_svd.eigsh", lambda *args, **options: calls.append(1) or real(*args, **options)
        )
        found = leading_directions(Views.from_arrays(views), 6)
        assert calls
        _, values, right = np.linalg.svd(X, full_matrices=False)
        np.testing.assert_allclose(found.values, values[:6], rtol=1e-5)
        np.testing.assert_allclose(np.abs(np.sum(found.directions * right[:6].T, axis=0)), 1, atol=atol)
        assert found.directions.dtype == dtype

    def test_sparse_samples_of_low_rank_and_of_nothing(self, monkeypatch):
        monkeypatch.setattr("lmssc.core.truncated_svd.SVD", SVDLimits(max_gram_size=10))
        factor = np.random.default_rng(0).normal(size=(100, 2))
        for X in (factor @ factor.T, np.zeros((100, 100))):
            directions, values, _ = leading_directions(Views.from_arrays([sparse.csr_array(X)]), 5)
            np.testing.assert_allclose(values, np.linalg.svd(X)[1][:5], atol=1e-6)
            np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-8)

    def test_noise_is_left_out_and_signal_kept(self):
        """Ten strong directions in noise: as many as there are; a spectrum that decays evenly: most of it."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 15)) @ rng.normal(size=(15, 90)) + rng.normal(size=(400, 90))
        latent, loadings = latent_start(Views.from_arrays([X]), 80, above_noise=True)
        assert latent.shape == (400, 15)
        assert loadings[0].shape == (90, 15)
        decaying = rng.normal(size=(400, 90)) * 0.93 ** np.arange(90)
        assert latent_start(Views.from_arrays([decaying]), 80, above_noise=True)[0].shape[1] > 25
        noise = rng.normal(size=(400, 90))
        weak = noise + 2 * rng.normal(size=(400, 1)) @ rng.normal(size=(1, 90))
        assert latent_start(Views.from_arrays([weak]), 80, above_noise=True)[0].shape[1] == 10
        # Nothing stands out: noise cannot be told from many classes in all directions.
        assert latent_start(Views.from_arrays([noise]), 80, above_noise=True)[0].shape[1] == 80
        few = Views.from_arrays([noise[:, :20]])
        assert latent_start(few, 20, above_noise=True)[0].shape[1] == 20
