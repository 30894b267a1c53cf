"""MLAN against its dense iteration, its search for neighbours, and as an estimator."""

import numpy as np
import pytest

import oracles
import peers
from lmssc import MLAN
from lmssc.data.views import Views
from lmssc.datasets import make_multiview
from lmssc.estimators.mlan import WeightedNeighbors, nearest_rows


@pytest.fixture(scope="module")
def data():
    return make_multiview(80, labelled=0.2, random_state=0)


class TestIteration:
    @pytest.mark.parametrize("n_iterations", [1, 2, 6])
    @pytest.mark.parametrize("label_weight", [0.0, 1.0, 10.0])
    def test_is_the_papers(self, data, label_weight, n_iterations):
        F, S, weights, alpha, terms = oracles.mlan(data.views, data.y, 3, 9, label_weight, n_iterations)
        clf = MLAN(label_weight=label_weight, max_iter=n_iterations, tol=0).fit(data.views, data.y)
        assert clf.alpha_ == pytest.approx(alpha)
        np.testing.assert_allclose(clf.view_weights_, weights, rtol=1e-6)
        np.testing.assert_allclose(clf.graph_.toarray(), S, atol=1e-7)
        np.testing.assert_allclose(clf.label_distributions_, F, atol=1e-7)
        assert {name: term[-1] for name, term in clf.objective_terms_.items()} == pytest.approx(terms, rel=1e-6)
        np.testing.assert_allclose(clf.objective_, sum(clf.objective_terms_.values()))

    def test_rows_are_projections(self):
        rng = np.random.default_rng(0)
        d = rng.uniform(size=(50, 9))
        for width in (0.1, 1.0, 30.0):
            right = [oracles.project_onto_simplex(-row / width) for row in d]
            np.testing.assert_allclose(nearest_rows(d, width), right, atol=1e-12)

    def test_samples_are_standardised(self, data):
        clf = MLAN().fit(data.views, data.y)
        assert set(clf.scalings_.values()) == {"sample"}
        other = MLAN().fit([4 * view + np.arange(80)[:, None] for view in data.views], data.y)
        np.testing.assert_allclose(other.label_distributions_, clf.label_distributions_, atol=1e-4)

    def test_narrow_views_are_standardised_by_column(self):
        data = make_multiview(80, n_features=[3, 6, 1], labelled=0.2, random_state=0)
        clf = MLAN().fit(data.views, data.y)
        assert list(clf.scalings_.values()) == ["zscore", "sample", "zscore"]


class TestWeightedNeighbors:
    @pytest.mark.parametrize("seed", range(5))
    def test_exact_for_weights_that_change(self, seed):
        rng = np.random.default_rng(seed)
        Xs = [rng.normal(size=(150, d)) for d in (3, 8, 2)]
        Ds = [oracles.squared_distances(X) for X in Xs]
        neighbors = WeightedNeighbors(Views.from_arrays(Xs), 5)
        weights = rng.uniform(0.5, 2, size=3)
        for change in (0.5, 0.01, 0.2, 0.001, 2.0, 0.0):
            weights = weights * np.exp(change * rng.normal(size=3))
            total = sum(w * D for w, D in zip(weights, Ds, strict=True))
            indices, by_view = neighbors.find(weights)
            right = np.argsort(total + np.diag(np.full(150, np.inf)), axis=1)[:, :5]
            np.testing.assert_array_equal(indices, right)
            for D, found in zip(Ds, by_view, strict=True):
                np.testing.assert_allclose(found, np.take_along_axis(D, right, 1), rtol=1e-9)

    def test_few_searches(self):
        rng = np.random.default_rng(0)
        neighbors = WeightedNeighbors(Views.from_arrays([rng.normal(size=(300, 6)), rng.normal(size=(300, 6))]), 5)
        for step in range(10):
            neighbors.find(np.array([1.0, 1 + 0.1 * 0.5**step]) * 3.0**step)
        assert neighbors.n_searched < 2 * 300

    @pytest.mark.parametrize("n", [2, 3, 6])
    def test_hardly_any_samples(self, n):
        X = np.random.default_rng(0).normal(size=(n, 2))
        indices, _ = WeightedNeighbors(Views.from_arrays([X]), n - 1).find(np.ones(1))
        for i in range(n):
            assert sorted(indices[i]) == [j for j in range(n) if j != i]


@pytest.mark.parametrize("seed", range(5))
def test_noise_gets_the_lowest_weight(seed):
    data = make_multiview(300, n_views=4, noise_views=1, labelled=0.2, random_state=seed)
    weights = MLAN().fit(data.views, data.y).view_weights_
    assert weights[3] < weights[:3].min()


def test_constant_view(data):
    clf = MLAN().fit([*data.views, np.ones((80, 5))], data.y)
    assert np.isfinite(clf.view_weights_).all()
    same = MLAN().fit(data.views, data.y)
    assert (clf.transduction_ == same.transduction_).mean() > 0.9


@pytest.mark.filterwarnings("ignore:.*without a label")
def test_all_samples_equal():
    with pytest.warns(UserWarning, match="all 12 samples are identical"):
        clf = MLAN().fit(np.ones((12, 5)), [0, 1, *[-1] * 10])
    np.testing.assert_allclose(clf.label_distributions_[2:], 0.5, atol=1e-6)


class TestEstimator:
    def test_interface(self):
        peers.assert_interface(MLAN)

    def test_order_does_not_matter(self):
        peers.assert_order_does_not_matter(MLAN)

    def test_sparse_and_dense_agree(self):
        peers.assert_sparse_and_dense_agree(MLAN)

    def test_unreached(self):
        peers.assert_unreached_are_named(MLAN)

    def test_bad_input(self):
        peers.assert_bad_input_is_refused(
            MLAN,
            {
                "label_weight": [-1, None, "10", np.nan],
                "max_iter": [0, 2.5],
                "tol": [-1, None],
                "callback": ["print"],
                "verbose": [-1],
            },
        )
