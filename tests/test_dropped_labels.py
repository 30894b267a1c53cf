"""A label that does not count has no reader: the fit is that without it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import lmssc
from lmssc import LMSSC, Graph
from lmssc.core.label_noise import LabelDoubt
from lmssc.core.targets import Targets
from lmssc.datasets import make_multiview

SHARE = 0.25


@pytest.fixture(scope="module")
def data():
    return make_multiview(260, n_classes=3, labelled=0.25, random_state=3)


@pytest.fixture(scope="module")
def wrong(data):
    labelled = np.flatnonzero(data.y >= 0)
    return np.sort(np.random.default_rng(0).choice(labelled, round(SHARE * len(labelled)), replace=False))


@pytest.fixture
def fit_dropping(monkeypatch):
    """A fit whose `label_noise="auto"` knows which labels are wrong."""

    def run(X, y, rows, **parameters):
        nodes = LMSSC(max_iter=1, calibrate=False).fit(X, y)._nodes

        def doubt(problem, targets, folds, noise):
            probability = np.zeros(len(targets))
            probability[nodes[rows]] = 1.0
            return LabelDoubt(np.zeros((len(targets), targets.n_classes)), probability, SHARE, by_odds=False)

        monkeypatch.setattr("lmssc.core.begin.doubt_labels", doubt)
        return LMSSC(label_noise="auto", **parameters).fit(X, y)

    return run


def noisy(data, wrong):
    """The labels with some wrong, and without these."""
    y = data.y.copy()
    y[wrong] = (y[wrong] + 1) % 3
    left = y.copy()
    left[wrong] = -1
    return y, left


def with_links(data):
    rng = np.random.default_rng(0)
    alike = data.target[:, None] == data.target
    links = np.triu(rng.random((260, 260)) < np.where(alike, 0.05, 0.004), k=1).astype(float)
    return {"text": data.views[0], "cites": Graph(sparse.csr_array(links))}


def with_gaps(data):
    views = [view.copy() for view in data.views]
    views[0][::4] = np.nan
    return views


@pytest.mark.parametrize(
    ("views", "parameters"),
    [
        (lambda data: data.views, {}),
        (lambda data: data.views, {"second_opinion": 0.5}),
        (lambda data: data.views, {"label_weight": 0.0, "balance": 1.0}),
        (with_gaps, {}),
        (with_links, {"max_iter": 3}),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_that_drops_labels_is_the_fit_without_them(data, wrong, fit_dropping, views, parameters):
    y, left = noisy(data, wrong)
    X = views(data)
    dropped, without = fit_dropping(X, y, wrong, **parameters), LMSSC(**parameters).fit(X, left)
    np.testing.assert_allclose(dropped.label_distributions_, without.label_distributions_, atol=1e-9)
    np.testing.assert_allclose(dropped.objective_, without.objective_, rtol=1e-9)
    assert dropped.temperature_ == pytest.approx(without.temperature_, rel=1e-6)
    assert dropped.second_opinion_ == without.second_opinion_
    assert np.isin(dropped.overruled_, wrong).all()


def test_a_weight_of_0_is_no_label(data, wrong):
    y, left = noisy(data, wrong)
    weighted = LMSSC().fit(data.views, y, sample_weight=np.where(np.isin(np.arange(260), wrong), 0.0, 1.0))
    without = LMSSC().fit(data.views, left)
    np.testing.assert_array_equal(weighted.label_distributions_, without.label_distributions_)
    some = np.where(np.arange(260) % 2, 0.7, 1.0)
    weighted = LMSSC().fit(data.views, y, sample_weight=np.where(left >= 0, some, 0.0))
    without = LMSSC().fit(data.views, left, sample_weight=some)
    np.testing.assert_array_equal(weighted.label_distributions_, without.label_distributions_)


def test_new_samples_do_not_see_dropped_labels(data, wrong, fit_dropping, tmp_path):
    y, left = noisy(data, wrong)
    rng = np.random.default_rng(4)
    new = [view + 0.3 * rng.normal(size=view.shape) for view in data.views]
    dropped, without = fit_dropping(data.views, y, wrong), LMSSC().fit(data.views, left)
    expected = without.predict_proba(new)
    np.testing.assert_allclose(dropped.predict_proba(new), expected, atol=1e-9)
    dropped.save(tmp_path / "model.lmssc")
    again = lmssc.load(tmp_path / "model.lmssc")
    np.testing.assert_allclose(again.predict_proba(new), expected, atol=1e-9)
    for one in (dropped, again, without):
        one.partial_update([view[:20] for view in new], refit="never")
    np.testing.assert_allclose(dropped.label_distributions_, without.label_distributions_, atol=1e-8)
    np.testing.assert_allclose(again.label_distributions_, without.label_distributions_, atol=1e-8)


def test_dropped_labels_explain_nothing_and_are_still_suspected(data, wrong, fit_dropping):
    y, left = noisy(data, wrong)
    dropped, without = fit_dropping(data.views, y, wrong), LMSSC().fit(data.views, left)
    weights = dropped.explain().weights
    assert not weights[:, wrong].nnz
    np.testing.assert_allclose(weights.toarray(), without.explain().weights.toarray(), atol=1e-9)
    found = dropped.suspect_labels()
    assert sorted(found.rows) == np.flatnonzero(y >= 0).tolist()
    assert np.isin(found.rows[: len(wrong)], wrong).mean() > 0.6
    sets = dropped.predict_set()
    assert (sets[np.arange(260), y][y >= 0]).all()


def test_labels_come_back_as_they_were_without_any_trust():
    nodes, classes = np.array([0, 0, 1, 2, 2, 3]), np.array([0, 1, 1, 0, 1, 0])
    given = Targets.from_labels(nodes, classes, n_nodes=5, n_classes=2)
    lost = np.array([2, 3])
    back = given.without_labels(lost).with_uncounted(given)
    np.testing.assert_array_equal(back.trust, [np.inf, np.inf, 0, 0, np.inf])
    same = replace(back, trust=None)
    for name in ("codes", "mixed", "shares"):
        np.testing.assert_array_equal(getattr(same, name), getattr(given, name))
    left = back.counted
    assert left.trust is None
    np.testing.assert_array_equal(left.codes, given.without_labels(lost).codes)
    np.testing.assert_array_equal(left.frequencies, given.without_labels(lost).frequencies)
    assert given.with_uncounted(given) is given
    half = given.doubt(nodes, np.array([1.0, 1.0, 0.5, 1.0, 1.0, 1.0])).without_labels(lost).with_uncounted(given)
    np.testing.assert_array_equal(given.with_trust_of(half).trust[:2], [np.inf, 0.3])
    np.testing.assert_array_equal(given.with_trust_of(half).labelled, [True, True, False, False, False])
