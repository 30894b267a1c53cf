"""Refits with held-out labels and without views, against fits done by hand."""

import numpy as np
import pytest
from scipy import sparse

from lmssc import AMGL, GFHF, LMSSC
from lmssc.datasets import make_multiview
from lmssc.model_selection.refit import hold_out, sample_rows, shortened, view_shares


@pytest.fixture(scope="module")
def data():
    return make_multiview(120, noise_views=1, labelled=0.3, random_state=0)


@pytest.fixture
def views(data):
    a, b, noise = data.views
    return {"a": a, "b": b, "noise": noise}


@pytest.mark.parametrize("without", [None, "b"])
def test_answers_are_those_of_a_fit_that_never_saw_the_labels_nor_the_view(data, views, without):
    found = hold_out(GFHF(), views, data.y, without=[without])[without]
    assert sorted(found.rows) == np.flatnonzero(data.y >= 0).tolist()
    np.testing.assert_array_equal(found.codes, data.y[found.rows])
    fold = found.rows[: len(found.rows) // 3]  # 36 labels, as many of each class: three folds of 12
    hidden = data.y.copy()
    hidden[fold] = -1
    by_hand = GFHF().fit({name: view for name, view in views.items() if name != without}, hidden)
    np.testing.assert_array_equal(found.distributions[: len(fold)], by_hand.label_distributions_[fold])
    assert found.accuracy == np.mean(found.distributions.argmax(axis=1) == data.target[found.rows])


@pytest.mark.parametrize("scaling", [{"a": "unit", "b": "zscore"}, ["unit", "zscore", "zscore"], "auto"])
def test_scaling_by_view_follows_the_views(data, views, scaling):
    found = hold_out(LMSSC(scaling=scaling, max_iter=2), views, data.y, without=["a", "b"])
    assert set(found) == {"a", "b"}
    assert found["a"].accuracy > 0.5


def test_rows_that_have_only_the_view_are_not_answered(data, views):
    holed = dict(views)
    alone = np.flatnonzero(data.y >= 0)[:4]
    for name in ("b", "noise"):
        holed[name] = views[name].copy()
        holed[name][alone] = np.nan
    found = hold_out(GFHF(), holed, data.y, without=[None, "a"])
    assert found[None].answered.all()
    assert sorted(found["a"].rows[~found["a"].answered]) == alone.tolist()
    assert not found["a"].right[~found["a"].answered].any()


def test_sparse_views_with_masks(data, views):
    words = sparse.csr_array(np.maximum(views["a"], 0))
    present = {"words": np.arange(120) % 5 > 0}
    found = hold_out(AMGL(), {"words": words, "b": views["b"]}, data.y, present, without=[None, "b"])
    assert found[None].answered.all()
    assert 0 < (~found["b"].answered).sum() < len(found["b"].rows)


def test_some_of_the_folds_are_the_first_of_all(data, views):
    one, all_folds = (hold_out(GFHF(), views, data.y, n_folds=n)[None] for n in (1, 3))
    assert 3 * len(one.rows) == len(all_folds.rows)
    np.testing.assert_array_equal(one.rows, all_folds.rows[: len(one.rows)])
    np.testing.assert_array_equal(one.distributions, all_folds.distributions[: len(one.rows)])


def test_nothing_can_be_hidden_with_one_label_a_class(data, views):
    y = np.full(120, -1)
    y[[np.flatnonzero(data.target == c)[0] for c in range(3)]] = range(3)
    found = hold_out(GFHF(), views, y)[None]
    assert len(found.rows) == 0
    assert np.isnan(found.accuracy)


def test_more_components_than_are_left_without_a_view(data, views):
    narrow = {"a": views["a"], "thin": views["b"][:, :2]}
    found = hold_out(LMSSC(n_components=15, n_neighbors=100, max_iter=1), narrow, data.y, without=["a"])
    assert found["a"].answered.all()


def test_progress_counts_every_fit_and_the_estimator_stays_as_it_was(data, views):
    calls = []
    clf = LMSSC(max_iter=1, callback=lambda _: calls.append("callback"))
    hold_out(clf, views, data.y, without=[None, "a"], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(i, 6) for i in range(1, 7)]
    assert not hasattr(clf, "classes_")
    assert shortened(clf, 5).max_iter == 1


def test_two_processes_give_the_same(data, views):
    one, two = (hold_out(GFHF(), views, data.y, n_jobs=n)[None] for n in (1, 2))
    np.testing.assert_array_equal(one.distributions, two.distributions)


def test_shares_of_methods_without_weights_are_unknown(data, views):
    assert view_shares(GFHF().fit(views, data.y)) == {}


def test_a_sample_keeps_the_share_of_each_class():
    codes = np.repeat([-1, 0, 1, 2], [10_000, 900, 90, 10])
    rows = sample_rows(codes, 1000, random_state=0)
    np.testing.assert_array_equal(np.bincount(codes[rows] + 1), [909, 82, 8, 2])
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(sample_rows(codes, 11_000, 0), np.arange(11_000))
