"""AMGL against its dense iteration, at its fixed point, and as an estimator."""

import numpy as np
import pytest

import oracles
import peers
from lmssc import AMGL
from lmssc.datasets import make_multiview


@pytest.fixture(scope="module")
def data():
    return make_multiview(80, labelled=0.2, random_state=0)


class TestIteration:
    @pytest.mark.parametrize("n_iterations", [1, 2, 5])
    def test_is_the_papers(self, data, n_iterations):
        F, weights, Ls, history = oracles.amgl(data.views, data.y, 3, 5, n_iterations)
        clf = AMGL(max_iter=n_iterations, tol=0).fit(data.views, data.y)
        np.testing.assert_allclose(clf.view_weights_, weights, rtol=1e-6)
        np.testing.assert_allclose(clf.objective_, history, rtol=1e-8)
        np.testing.assert_allclose(clf.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-7)
        joint = sum(a * L for a, L in zip(weights / weights.sum(), Ls, strict=True))
        np.testing.assert_allclose(clf.graph_.toarray(), np.diag(np.diag(joint)) - joint, atol=1e-7)

    def test_ends_at_a_fixed_point(self, data):
        clf = AMGL(tol=1e-14).fit(data.views, data.y)
        _, weights, Ls, _ = oracles.amgl(data.views, data.y, 3, 5, 1)
        joint = sum(a * L for a, L in zip(clf.view_weights_, Ls, strict=True))
        F = oracles.harmonic_by_inverse(joint, data.y, 3)
        again = [1 / (2 * np.sqrt(np.trace(F.T @ L @ F))) for L in Ls]
        np.testing.assert_allclose(clf.view_weights_, again, rtol=1e-5)
        assert not np.allclose(clf.view_weights_, weights, rtol=1e-5)

    @pytest.mark.parametrize("seed", range(10))
    def test_objective_never_rises(self, seed):
        data = make_multiview(150, n_views=4, noise_views=1, n_classes=4, labelled=0.1, random_state=seed)
        clf = AMGL(max_iter=40, tol=0).fit(data.views, data.y)
        assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[:-1]).all()

    def test_stops_when_the_objective_does(self, data):
        clf = AMGL().fit(data.views, data.y)
        assert 2 <= clf.n_iter_ < 100
        falls = -np.diff(clf.objective_) / clf.objective_[:-1]
        assert falls[-1] < 1e-8
        assert (falls[:-1] >= 1e-8).all()


@pytest.mark.parametrize("seed", range(5))
def test_noise_gets_the_lowest_weight(seed):
    data = make_multiview(300, n_views=4, noise_views=1, labelled=0.2, random_state=seed)
    weights = AMGL().fit(data.views, data.y).view_weights_
    assert weights[3] < weights[:3].min()


def test_views_that_fit_perfectly():
    """One label in each part of each graph leaves next to nothing to be divided by."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [100.0, 0.0]], 15, axis=0)
    y = np.full(30, -1)
    y[[0, 15]] = [0, 1]
    clf = AMGL().fit([centres + rng.normal(size=(30, 2)) for _ in range(2)], y)
    assert np.isfinite(clf.view_weights_).all()
    np.testing.assert_array_equal(clf.transduction_, np.repeat([0, 1], 15))


class TestEstimator:
    def test_interface(self):
        peers.assert_interface(AMGL)

    def test_order_does_not_matter(self):
        peers.assert_order_does_not_matter(AMGL)

    def test_sparse_and_dense_agree(self):
        peers.assert_sparse_and_dense_agree(AMGL)

    def test_unreached(self):
        clf = peers.assert_unreached_are_named(AMGL)
        assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[:-1]).all()

    def test_bad_input(self):
        peers.assert_bad_input_is_refused(
            AMGL, {"max_iter": [0, 2.5], "tol": [-1, None], "callback": ["print"], "verbose": [-1]}
        )

    def test_progress(self, data, capsys):
        heard = []
        clf = AMGL(callback=heard.append, verbose=1).fit(data.views, data.y)
        assert [progress.objective for progress in heard] == clf.objective_.tolist()
        assert len(capsys.readouterr().out.splitlines()) == clf.n_iter_

    def test_scale_of_a_view_does_not_matter(self, data):
        one = AMGL().fit(data.views, data.y)
        two = AMGL().fit([data.views[0] * 64, *data.views[1:]], data.y)
        np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-8)

    def test_new_sample_with_some_views(self, data):
        clf = AMGL().fit(data.views, data.y)
        alone = AMGL().fit(data.views[:1], data.y)
        new = [data.views[0][:6] + 0.1, *[np.full((6, 20), np.nan)] * 2]
        d = ((new[0][:, None] - data.views[0][None]) ** 2).sum(axis=2)
        for i in range(6):
            order = np.argsort(d[i])
            s = (d[i, order[5]] - d[i, order[:5]]) / (5 * d[i, order[5]] - d[i, order[:5]].sum())
            np.testing.assert_allclose(clf.predict_proba(new)[i], s @ clf.label_distributions_[order[:5]], atol=1e-8)
        assert alone.view_weights_.shape == (1,)
