"""The mean of the views' own neighbour graphs, and how held-out labels choose its weight."""

import copy

import numpy as np
import pytest
from scipy import sparse

import oracles
from lmssc import LMSSC, load, paper_settings
from lmssc.core.graph import learn_graph
from lmssc.core.view_graph import mean_view_graph
from lmssc.data.view import View
from lmssc.data.views import Views
from lmssc.datasets import make_multiview
from peers import interrupt_and_resume


def views_that_differ(n=300, labelled=0.3):
    """Six views that each tell a little about four classes, below factors of their own with heavy tails."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, n)
    views = []
    for _ in range(6):
        centres, factors = 1.2 * rng.normal(size=(4, 10)), 2 * rng.standard_t(3, size=(n, 6))
        views.append(centres[truth] + factors @ rng.normal(size=(6, 10)) + rng.normal(size=(n, 10)))
    return views, truth, np.where(rng.random(n) < labelled, truth, -1)


@pytest.fixture(scope="module")
def fitted():
    views, truth, y = views_that_differ()
    return views, truth, y, LMSSC(second_opinion=0.0).fit(views, y)


@pytest.mark.parametrize("lacking", [False, True])
def test_mean_graph_is_the_mean_over_views_of_the_graphs_of_those_who_have_them(lacking):
    rng = np.random.default_rng(0)
    Xs = [rng.normal(size=(25, 3)), sparse.csr_array(np.where(rng.random((25, 6)) < 0.5, rng.normal(size=(25, 6)), 0))]
    present = rng.random((2, 25)) < 0.8 if lacking else np.ones((2, 25), dtype=bool)
    views = Views([View(X, None, has if lacking else None) for X, has in zip(Xs, present, strict=True)])
    right = np.zeros((25, 25))
    for X, has in zip(Xs, present, strict=True):
        rows = np.flatnonzero(has)
        dense = (X.toarray() if sparse.issparse(X) else X)[rows]
        right[np.ix_(rows, rows)] += learn_graph(dense, 4, 1.0)[0].toarray() / 2
    np.testing.assert_allclose(mean_view_graph(views, 4).toarray(), right, atol=1e-12)


def test_it_is_used_where_held_out_labels_ask_for_it_and_pays(fitted):
    views, truth, y, clf = fitted
    assert clf.view_graph_weight_ > 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lmssc.core.view_graph.MAX_SAMPLES", 0)
        plain = LMSSC(second_opinion=0.0).fit(views, y)
    assert plain.view_graph_weight_ == 0
    right = [(one.transduction_ == truth)[y < 0].mean() for one in (plain, clf)]
    assert right[1] > right[0] + 0.1


def test_it_is_not_used_where_the_latent_positions_know_better():
    data = make_multiview(400, labelled=0.1, random_state=0)
    assert LMSSC().fit(data.views, data.y).view_graph_weight_ == 0.0
    assert LMSSC(calibrate=False).fit(*views_that_differ()[::2]).view_graph_weight_ == 0.0
    assert LMSSC(**{**paper_settings(), "max_iter": 2}).fit(data.views, data.y).view_graph_weight_ == 0.0


def test_scores_minimise_the_sum_of_both_and_j_never_rises():
    views, _, y = views_that_differ()
    clf = LMSSC(second_opinion=0.0, scaling="zscore", tol=0.0, max_iter=8, balance=0.0).fit(views, y)
    assert np.diff(clf.objective_).max() <= 1e-9 * clf.objective_[0]
    order = clf._order.samples
    extra = np.empty((len(y), len(y)))
    extra[np.ix_(order, order)] = clf._link_laplacian.toarray()
    graphs = [learn_graph((view - view.mean(axis=0)) / view.std(axis=0), clf.n_neighbors_, 1.0)[0] for view in views]
    right = clf.view_graph_weight_ * oracles.dense_laplacian(sum(graph.toarray() for graph in graphs) / 6)
    np.testing.assert_allclose(extra, right, atol=1e-6)
    L = oracles.dense_laplacian(clf.graph_.toarray()) + right
    labelled = y >= 0
    F = -np.linalg.solve(L[~labelled][:, ~labelled], L[~labelled][:, labelled] @ np.eye(4)[y[labelled]])
    assert (F.argmax(axis=1) == clf.transduction_[~labelled]).mean() > 0.99


def test_the_order_of_samples_and_views_changes_no_digit(fitted):
    views, _, y, clf = fitted
    rng = np.random.default_rng(5)
    rows, order = rng.permutation(len(y)), rng.permutation(len(views))
    again = LMSSC(second_opinion=0.0).fit([views[v][rows] for v in order], y[rows])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[rows])
    assert again.view_graph_weight_ == clf.view_graph_weight_


def test_a_saved_model_answers_and_explains_as_before(fitted, tmp_path):
    views, _, y, clf = fitted
    clf.save(tmp_path / "model.lmssc")
    again = load(tmp_path / "model.lmssc")
    assert again.view_graph_weight_ == clf.view_graph_weight_
    row = [int(np.flatnonzero(y < 0)[0])]
    assert str(again.explain(row)) == str(clf.explain(row))
    new = [view[:9] + 0.01 for view in views]
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_)


def test_new_samples_need_another_fit(fitted):
    views, _, y, clf = fitted
    new = [view[:3] + 0.01 for view in views]
    with pytest.raises(ValueError, match="neighbours in single views"):
        copy.deepcopy(clf).partial_update(new)
    again = copy.deepcopy(clf).partial_update(new, X=views)
    assert len(again.transduction_) == len(y) + 3


def test_an_interrupted_fit_resumes_with_it(fitted, tmp_path):
    views, _, y, _ = fitted
    resumed, whole = interrupt_and_resume(tmp_path / "fit", views, y, second_opinion=0.0, max_iter=3)
    assert resumed.view_graph_weight_ == whole.view_graph_weight_ > 0
