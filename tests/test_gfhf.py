"""GFHF against a dense inverse, its graphs, and a graph of one's own."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score

import oracles
import peers
from lmssc import GFHF
from lmssc.datasets import make_multiview
from lmssc.model_selection import LabelledKFold


@pytest.fixture(scope="module")
def data():
    return make_multiview(100, labelled=0.2, random_state=0)


def scaled(views):
    """Standardised views of equal energy, side by side."""
    Z = [(X - X.mean(axis=0)) / X.std(axis=0) for X in views]
    return np.hstack([X / np.sqrt(len(views) * X.shape[1]) for X in Z])


class TestClosedForm:
    def test_adaptive_graph_and_dense_inverse(self, data):
        clf = GFHF(n_neighbors=7).fit(data.views, data.y)
        S = oracles.adaptive_rows(oracles.squared_distances(scaled(data.views)), 7)
        L = oracles.dense_laplacian(S)
        F = oracles.harmonic_by_inverse(L, data.y, 3)
        np.testing.assert_allclose(clf.graph_.toarray(), S, atol=1e-9)
        np.testing.assert_allclose(clf.label_distributions_, F, atol=1e-8)
        assert clf.objective_[0] == pytest.approx(np.trace(F.T @ L @ F), rel=1e-8)

    @pytest.mark.parametrize("width", ["median", 0.3])
    def test_gaussian_graph_and_dense_inverse(self, data, width):
        clf = GFHF(graph="gaussian", width=width, n_neighbors=6).fit(data.views, data.y)
        D = oracles.squared_distances(scaled(data.views))
        near = np.argsort(D + np.diag(np.full(100, np.inf)), axis=1)[:, :6]
        mask = np.zeros((100, 100), bool)
        np.put_along_axis(mask, near, True, 1)
        sigma = np.median(np.sqrt(D[mask])) if width == "median" else width
        assert clf.width_ == pytest.approx(sigma)
        W = np.where(mask | mask.T, np.exp(-D / (2 * sigma**2)), 0)
        np.testing.assert_allclose(clf.graph_.toarray(), W, atol=1e-9)
        right = oracles.harmonic_by_inverse(np.diag(W.sum(axis=1)) - W, data.y, 3)
        np.testing.assert_allclose(clf.label_distributions_, right, atol=1e-7)

    def test_outlier_gets_its_neighbours_answer(self, data):
        views = [view.copy() for view in data.views]
        y = data.y.copy()
        far = np.flatnonzero(y < 0)[0]
        for view in views:
            view[far] *= 1e4
        clf = GFHF(graph="gaussian", scaling=None).fit(views, y)
        W = clf.graph_.toarray()
        assert W[far].max() <= 1e-12
        right = W[far] @ clf.label_distributions_ / W[far].sum()
        np.testing.assert_allclose(clf.label_distributions_[far], right, atol=1e-3)

    def test_one_view(self, data):
        views = dict(zip("abc", data.views, strict=True))
        alone = GFHF().fit([views["b"]], data.y)
        for view in ("b", 1):
            clf = GFHF(view=view).fit(views, data.y)
            np.testing.assert_array_equal(
                clf.label_distributions_, GFHF(view="b").fit(views, data.y).predict_proba(views)
            )
            np.testing.assert_allclose(clf.label_distributions_, alone.label_distributions_, atol=1e-8)
            assert list(clf.scalings_) == ["b"]
            new = {name: X[:5] + 0.1 for name, X in views.items()}
            np.testing.assert_allclose(clf.predict_proba(new), alone.predict_proba([new["b"]]), atol=1e-8)

    def test_new_samples_get_the_rows_of_the_graph(self, data):
        clf = GFHF(n_neighbors=5).fit(data.views, data.y)
        new = [view[:4] + 0.2 for view in data.views]
        mean, std = [X.mean(axis=0) for X in data.views], [X.std(axis=0) for X in data.views]
        Z = np.hstack([(X - m) / s / np.sqrt(60) for X, m, s in zip(new, mean, std, strict=True)])
        d = ((Z[:, None] - scaled(data.views)[None]) ** 2).sum(axis=2)
        for i in range(4):
            order = np.argsort(d[i])
            s = (d[i, order[5]] - d[i, order[:5]]) / (5 * d[i, order[5]] - d[i, order[:5]].sum())
            np.testing.assert_allclose(clf.predict_proba(new)[i], s @ clf.label_distributions_[order[:5]], atol=1e-8)


class TestPrecomputed:
    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_array])
    def test_equals_adaptive_when_fed_its_graph(self, data, kind):
        clf = GFHF().fit(data.views, data.y)
        same = GFHF(graph="precomputed").fit(kind(clf.graph_.toarray()), data.y)
        np.testing.assert_allclose(same.label_distributions_, clf.label_distributions_, atol=1e-8)
        np.testing.assert_array_equal(same.graph_.toarray(), clf.graph_.toarray())
        np.testing.assert_array_equal(same.predict(clf.graph_), same.transduction_)

    def test_permuting_rows_and_columns(self, data):
        W = GFHF(graph="gaussian").fit(data.views, data.y).graph_
        clf = GFHF(graph="precomputed").fit(W, data.y)
        shuffle = np.random.default_rng(0).permutation(100)
        other = GFHF(graph="precomputed").fit(W[shuffle][:, shuffle], data.y[shuffle])
        np.testing.assert_allclose(other.label_distributions_, clf.label_distributions_[shuffle], atol=1e-8)

    def test_self_loops_do_not_matter(self, data):
        W = GFHF(graph="gaussian").fit(data.views, data.y).graph_
        one, two = (GFHF(graph="precomputed").fit(X, data.y) for X in (W, W + 5 * sparse.eye_array(100)))
        np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-8)
        assert two.graph_.diagonal().max() == 0

    def test_new_samples(self):
        W = np.zeros((5, 5))
        W[[0, 1, 2, 3], [1, 0, 3, 2]] = 1
        with pytest.warns(UserWarning, match="1 of 5 samples"):
            clf = GFHF(graph="precomputed").fit(W, ["a", None, "b", None, None])
        proba = clf.predict_proba(np.array([[0, 3.0, 0, 1.0, 0], [0, 0, 0, 0, 0]]))
        np.testing.assert_allclose(proba, [[0.75, 0.25], [0.5, 0.5]], atol=1e-9)
        assert list(clf.unreached_) == [4]

    def test_cross_validation_cuts_rows_and_columns(self):
        data = make_multiview(300, labelled=0.3, random_state=0)
        W = GFHF(graph="gaussian").fit(data.views, data.y).graph_
        scores = cross_val_score(GFHF(graph="precomputed"), W, data.y, cv=LabelledKFold(3, random_state=0))
        assert scores.mean() > 0.5

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.ones((4, 3)), "square.*4 rows and 3 columns"),
            (-np.ones((4, 4)), "not negative"),
            ([np.ones((4, 4)), np.ones((4, 4))], "one affinity"),
        ],
    )
    def test_refused(self, X, message):
        peers.assert_refused(GFHF, X, [0, 1, -1, -1], ValueError, message, graph="precomputed")

    def test_wrong_width_in_predict(self, data):
        clf = GFHF(graph="precomputed").fit(GFHF().fit(data.views, data.y).graph_, data.y)
        with pytest.raises(ValueError, match=r"X has 99 features.*expecting 100"):
            clf.predict(np.ones((2, 99)))


@pytest.mark.parametrize("graph", ["adaptive", "gaussian"])
class TestEstimator:
    def test_interface(self, graph):
        peers.assert_interface(lambda: GFHF(graph=graph))

    def test_order_does_not_matter(self, graph):
        peers.assert_order_does_not_matter(lambda: GFHF(graph=graph))

    def test_sparse_and_dense_agree(self, graph):
        peers.assert_sparse_and_dense_agree(lambda: GFHF(graph=graph))

    def test_unreached(self, graph):
        peers.assert_unreached_are_named(lambda: GFHF(graph=graph))


def test_bad_input():
    peers.assert_bad_input_is_refused(
        GFHF, {"graph": ["knn", None, 1], "width": [0, -1, "mean", None, np.nan], "view": [1.5, [0], True]}
    )
    X, y = np.random.default_rng(0).normal(size=(20, 4)), [0, 1, *[-1] * 18]
    peers.assert_refused(GFHF, [X, X], y, ValueError, "view=2 must be from 0 to 1", view=2)
    peers.assert_refused(GFHF, [X, X], y, ValueError, "view='text' is not one of", view="text")


def test_as_good_as_it_should_be(digits):
    rng = np.random.default_rng(0)
    y = np.where(rng.uniform(size=len(digits.target)) < 0.1, digits.target, -1)
    clf = GFHF().fit(digits.views, y)
    assert (clf.transduction_ == digits.target)[y < 0].mean() > 0.95
