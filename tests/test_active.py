"""Active learning: hand-made graphs, the dense formula, row order, and better than random choices."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from lmssc import AMGL, GFHF, LMSSC, MLAN
from lmssc.core.active import RESTART, sigma_optimal_batch, uncertainties
from lmssc.datasets import make_multiview


@pytest.fixture(scope="module")
def data():
    return make_multiview(150, labelled=0.08, random_state=2)


def dense_choice(graph, doubt, labelled, n):
    """The formula with the whole covariance, C conditioned by its Schur complement."""
    edges = (graph + graph.T).toarray() / 2
    full = np.diag(edges.sum(axis=1)) - edges
    unknown = np.flatnonzero(~labelled)
    precision = full[np.ix_(unknown, unknown)]
    precision = precision + RESTART * np.diag(np.diag(precision))
    covariance, chosen = np.linalg.inv(precision), []
    w, left = doubt[unknown], doubt[unknown].copy()
    for _ in range(n):
        value = left * (covariance @ w) * np.diag(precision)
        value[chosen] = -1
        chosen.append(int(value.argmax()))
        column = covariance[:, chosen[-1]].copy()
        left *= 1 - column / column[chosen[-1]]
        covariance -= np.outer(column, column) / column[chosen[-1]]
    return unknown[chosen]


def test_agrees_with_the_dense_formula(data):
    clf = LMSSC().fit(data.views, data.y)
    labelled, doubt = data.y >= 0, np.random.default_rng(0).uniform(0.1, 1, size=150)
    assert not len(clf.unreached_)
    found = sigma_optimal_batch(clf.graph_, doubt, labelled, ~labelled, 12)
    np.testing.assert_array_equal(found, dense_choice(clf.graph_, doubt, labelled, 12))


def blobs(sizes, labelled):
    """Full graphs of so many samples, not connected; some samples have a label."""
    blocks = [np.ones((size, size)) - np.eye(size) for size in sizes]
    return sparse.csr_array(sparse.block_diag(blocks)), np.isin(np.arange(sum(sizes)), labelled)


def test_parts_without_a_label_come_first_the_large_ones_before_the_small():
    graph, labelled = blobs([20, 3, 10], [0])
    group = np.repeat([0, 1, 2], [20, 3, 10])
    chosen = sigma_optimal_batch(graph, np.where(group == 0, 0.1, 1.0), labelled, ~labelled, 2)
    assert group[chosen].tolist() == [2, 1]


def test_a_batch_spreads_over_the_graph():
    graph, labelled = blobs([10] * 5, [])
    chosen = sigma_optimal_batch(graph, np.ones(50), labelled, ~labelled, 5)
    assert sorted(chosen // 10) == [0, 1, 2, 3, 4]


def test_samples_without_neighbours_and_without_doubt():
    graph = sparse.csr_array((4, 4))
    chosen = sigma_optimal_batch(
        graph, np.zeros(4), np.array([True, False, False, False]), np.array([False, True, True, True]), 9
    )
    assert sorted(chosen) == [1, 2, 3]


def test_doubt_is_about_the_two_likeliest():
    distributions = np.array([[0.4, 0.4, 0.2], [0.5, 0.1, 0.4], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(uncertainties(distributions, np.array([], dtype=int)), [1, 0.9, 0])


@pytest.mark.parametrize("estimator", [LMSSC(max_iter=2), GFHF(), AMGL(), MLAN()], ids=lambda e: type(e).__name__)
class TestEveryClassifier:
    @pytest.mark.parametrize("method", ["most_uncertain", "most_informative"])
    def test_unlabelled_rows_once_each_in_any_order(self, estimator, method, data):
        rows = getattr(estimator.fit(data.views, data.y), method)(25)
        assert len(set(rows)) == 25
        assert (data.y[rows] == -1).all()
        shuffle = np.random.default_rng(1).permutation(150)
        estimator.fit([view[shuffle] for view in reversed(data.views)], data.y[shuffle])
        np.testing.assert_array_equal(shuffle[getattr(estimator, method)(25)], rows)

    def test_all_that_there_are(self, estimator, data):
        unlabelled = np.flatnonzero(data.y == -1)
        estimator.fit(data.views, data.y)
        for method in (estimator.most_uncertain, estimator.most_informative):
            np.testing.assert_array_equal(np.sort(method(1000)), unlabelled)


def test_uncertain_are_those_with_the_smallest_margin(data):
    clf = GFHF().fit(data.views, data.y)
    best = np.sort(clf.label_distributions_, axis=1)
    margin = best[:, -1] - best[:, -2]
    rows = clf.most_uncertain(10)
    assert (np.diff(margin[rows]) >= 0).all()
    rest = np.setdiff1d(np.flatnonzero(data.y == -1), rows)
    assert margin[rest].min() >= margin[rows].max()


def test_unreached_samples_are_the_least_certain():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)), 100 + rng.normal(size=(10, 2))])
    y = np.where(np.arange(40) < 10, [0] * 8 + [1] * 32, -1)  # unbalanced: the frequencies look like certainty
    with pytest.warns(UserWarning, match="without a label"):
        clf = GFHF(n_neighbors=4).fit(X, y)
    assert set(clf.most_uncertain(10)) == set(range(30, 40))
    assert clf.most_informative(1)[0] >= 30


def test_of_identical_samples_one():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)), np.repeat(rng.normal(size=(1, 2)), 20, axis=0)])
    y = np.where(np.arange(50) < 4, np.arange(50) % 2, -1)
    rows = LMSSC().fit(X, y).most_informative(27)
    assert (rows[:27] >= 30).sum() == 1
    assert len(set(LMSSC().fit(X, y).most_informative(46))) == 46
    y[40] = 1  # one of them has a label now
    assert (LMSSC().fit(X, y).most_informative(26) < 30).all()


@pytest.mark.parametrize("n", [0, -1, 2.5, "all"])
def test_bad_n(n, data):
    clf = GFHF().fit(data.views, data.y)
    for method in (clf.most_uncertain, clf.most_informative):
        with pytest.raises(ValueError, match="n must be an integer of at least 1"):
            method(n)


def test_before_fit():
    with pytest.raises(NotFittedError):
        LMSSC().most_informative(3)


def test_beats_random_labels_on_digits(digits):
    """From 2 labels a class, 20 more in two batches against 40 at random: `benchmarks/active.py` in small."""
    gains = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(digits.target))[:500]
        views, truth = [view[rows] for view in digits.views], digits.target[rows]
        start = np.full(500, -1)
        for code in range(10):
            start[np.flatnonzero(truth == code)[:2]] = code
        y = start.copy()
        for _ in range(2):
            chosen = LMSSC(max_iter=3).fit(views, y).most_informative(10)
            y[chosen] = truth[chosen]
        by_chance = start.copy()
        chosen = rng.choice(np.flatnonzero(start < 0), 40, replace=False)
        by_chance[chosen] = truth[chosen]
        right = [
            (LMSSC(max_iter=3).fit(views, labels).transduction_ == truth)[labels < 0].mean()
            for labels in (y, by_chance)
        ]
        gains.append(right[0] - right[1])
    assert np.mean(gains) > 0
