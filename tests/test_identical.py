"""Identical samples are one node: they share labels and answers, and cost no extra time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import lmssc
from lmssc import AMGL, GFHF, LMSSC, MLAN
from lmssc.core.copies import doubt_copies
from lmssc.core.laplacian import laplacian
from lmssc.core.targets import Targets
from lmssc.datasets import make_multiview

EVERY = pytest.mark.parametrize("method", [LMSSC, GFHF, AMGL, MLAN], ids=lambda method: method.__name__)
# Rows and labels drawn from a few values are often too few for every warning not to come.
QUIET = pytest.mark.filterwarnings("ignore:.*(without a label|only one labelled|samples are identical):UserWarning")


@EVERY
def test_labels_of_identical_rows_are_shared_out(method):
    X, y = np.array([[0.0], [0], [0], [0], [1], [1]]), [0, 0, 0, 1, 1, 1]
    clf = method().fit([X], y)
    right = [[0.75, 0.25]] * 4 + [[0, 1]] * 2
    np.testing.assert_allclose(clf.predict_proba([X]), right, atol=1e-9)
    np.testing.assert_allclose(clf.label_distributions_, right, atol=1e-9)
    assert clf.transduction_.tolist() == [0, 0, 0, 0, 1, 1]


@EVERY
def test_all_rows_identical(method):
    with pytest.warns(UserWarning, match="all 6 samples are identical"):
        clf = method().fit([np.ones((6, 2))], [0, 0, 1, -1, -1, -1])
    np.testing.assert_allclose(clf.label_distributions_, [[2 / 3, 1 / 3]] * 6, atol=1e-9)
    assert clf.graph_.shape == (6, 6)


@pytest.mark.filterwarnings("ignore:.*samples are identical:UserWarning")
@EVERY
def test_a_model_of_identical_rows_can_be_loaded(method, tmp_path):
    X = np.ones((20, 3))
    clf = method().fit([X], np.where(np.arange(20) < 4, np.arange(20) % 2, -1))
    clf.save(tmp_path / "model.lmssc")
    loaded = lmssc.load(tmp_path / "model.lmssc")
    for scale in (1, 2):
        np.testing.assert_array_equal(loaded.predict_proba([scale * X]), clf.predict_proba([scale * X]))


def discrete(seed, kind):
    """Features of few values, of which the first tells the chance of class 1; 30 % labels."""
    rng = np.random.default_rng(seed)
    values = {"binary": (2, 2, 2, 2), "three": (2, 3, 3)}[kind]
    X = np.column_stack([rng.integers(0, n, 1500) for n in values]).astype(float)
    chance = np.where(X[:, 0] == 0, *{"binary": (0.1, 0.7), "three": (0.2, 0.75)}[kind])
    truth = (rng.random(1500) < chance).astype(int)
    return X, truth, np.where(rng.random(1500) < 0.3, truth, -1)


def right_and_sure(kind, jitter):
    """Share of right answers, mean confidence, and a logistic regression's share of right answers."""
    found = []
    for seed in range(2):
        X, truth, y = discrete(seed, kind)
        X = X + jitter * np.random.default_rng(seed).normal(size=X.shape)
        hidden = y < 0
        clf = LMSSC().fit([X], y)
        right = (clf.transduction_ == truth)[hidden].mean()
        reference = LogisticRegression().fit(X[~hidden], y[~hidden]).score(X[hidden], truth[hidden])
        found.append((right, clf.label_distributions_[hidden].max(axis=1).mean(), reference))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("kind", ["binary", "three"])
def test_discrete_features_are_as_accurate_as_a_regression_and_as_sure_as_right(kind):
    right, sure, reference = right_and_sure(kind, jitter=0.0)
    assert right >= reference - 1e-9
    assert abs(right - sure) < 0.05


@pytest.mark.parametrize("jitter", [1e-6, 1e-2])
@pytest.mark.parametrize("kind", ["binary", "three"])
def test_tight_clusters_with_contradicting_labels(kind, jitter):
    """Labelled samples used to turn to each other, the unlabelled to the minority: 24 to 47 % right, 97 % sure."""
    right, sure, reference = right_and_sure(kind, jitter)
    assert right >= reference - 0.05
    assert sure < right + 0.05


def noisy_cells(seed, n_labels):
    """Rows of few values, whose labels are noisy, and few of them given."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (500, 4))
    truth = ((X.sum(axis=1) + rng.integers(-2, 3, 500)) > 4).astype(int)
    return X, truth, np.where(rng.permutation(500) < n_labels, truth, -1)


@pytest.mark.parametrize("n_labels", [20, 30])
def test_copies_of_one_noisy_label_are_not_certain(n_labels):
    """With 20 labels they were 98 % sure and 67 % right."""
    found = []
    for seed in range(4):
        X, truth, y = noisy_cells(seed, n_labels)
        cell = X @ [1, 3, 9, 27]
        clf, copies = LMSSC().fit([X], y), (y < 0) & np.isin(cell, cell[y >= 0])
        found.append([(clf.transduction_ == truth)[copies].mean(), clf.label_distributions_[copies].max(axis=1).mean()])
        assert (clf.predict_proba([X]) == clf.label_distributions_).all()
    right, sure = np.mean(found, axis=0)
    assert sure < right + 0.15


@pytest.mark.parametrize("n_labels", [18, 40])
def test_copies_whose_labels_agree_stay_certain(n_labels):
    rng = np.random.default_rng(0)
    kind, classes = rng.integers(0, 18, 300), np.arange(18) % 2
    y = np.where(rng.permutation(300) < n_labels, classes[kind], -1)
    clf, copies = LMSSC().fit([rng.normal(size=(18, 4))[kind]], y), np.isin(kind, kind[y >= 0])
    assert (clf.transduction_ == classes[kind])[copies].all()
    assert clf.label_distributions_[copies].max(axis=1).min() > 0.9


def test_doubt_in_copies_falls_with_labels_that_agree():
    """As the slow formula, with the concentration found on a grid."""
    codes, g = np.array([0, 1, 0, 1, -1]), np.array([[0.6, 0.4]] * 4)
    F = np.vstack([np.eye(2)[codes[:4]], [[0.5, 0.5]]])
    before = 0.0
    for n_repeated in range(4):
        nodes = np.concatenate([np.arange(5), np.arange(n_repeated), [3]])  # the last sample has no label
        labels = np.concatenate([codes, codes[:n_repeated], [-1]])
        labelled = labels >= 0
        targets = Targets.from_labels(nodes[labelled], labels[labelled], 5, 2)
        found = doubt_copies(F, targets, (np.arange(4), g), nodes, labelled)
        np.testing.assert_array_equal(found[[0, 1, 2, 4]], F[[0, 1, 2, 4]])  # no sample without a label
        opinion = 0.98 * g[0] + 0.02 * targets.frequencies
        kappas = np.exp(np.linspace(-6, 6, 20001))
        loss = np.log(kappas) ** 2 / (2 * 1.5**2)
        for row in range(n_repeated):
            loss -= 2 * np.log((1 + kappas * opinion[codes[row]]) / (1 + kappas))
        kappa = kappas[loss.argmin()]
        np.testing.assert_allclose(found[3], ([0, 1] + kappa * opinion) / (1 + kappa), atol=1e-3)
        assert found[3, 1] > before
        before = found[3, 1]


@EVERY
def test_discrete_features_in_every_method(method):
    X, truth, y = discrete(0, "binary")
    right = (method().fit([X], y).transduction_ == truth)[y < 0].mean()
    assert right > 0.77


def test_new_samples_of_a_survey():
    """All labelled, combinations of answers repeat: new samples are as accurate as the noise allows."""
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, n, 2000) for n in (3, 3, 4, 2, 5)]).astype(float)
        chance = 1 / (1 + np.exp(-1.5 * (X[:, 0] - 1) - 1.4 * (X[:, 2] - 1.5) * (2 * X[:, 3] - 1)))
        truth = (rng.random(2000) < chance).astype(int)
        answers = LMSSC().fit([X[:1000]], truth[:1000]).predict_proba([X[1000:]])
        found.append(((answers.argmax(axis=1) == truth[1000:]).mean(), answers.max(axis=1).mean()))
    right, sure = np.mean(found, axis=0)
    assert right > 0.74
    assert abs(right - sure) < 0.06


@EVERY
@pytest.mark.parametrize("repeats", [2, 5])
def test_repeating_every_row_changes_nothing(method, repeats):
    data = make_multiview(90, labelled=0.3, random_state=4)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(90), repeats))
    once = method().fit(data.views, data.y)
    again = method().fit([view[rows] for view in data.views], data.y[rows])
    np.testing.assert_allclose(again.label_distributions_, once.label_distributions_[rows], atol=1e-6)
    new = [view[:5] + 0.01 for view in data.views]
    np.testing.assert_allclose(again.predict_proba(new), once.predict_proba(new), atol=1e-6)


@EVERY
def test_collapsing_by_hand_gives_the_same(method):
    """Copies whose labels agree, some of them without a label, however many there are of each."""
    data = make_multiview(90, labelled=0.3, random_state=4)
    rng = np.random.default_rng(1)
    rows = rng.permutation(np.repeat(np.arange(90), rng.integers(1, 6, 90)))
    first = np.isin(np.arange(len(rows)), np.unique(rows, return_index=True)[1])
    y = np.where(first | (rng.random(len(rows)) < 0.5), data.y[rows], -1)
    once = method().fit(data.views, data.y)
    copies = method().fit([view[rows] for view in data.views], y)
    np.testing.assert_allclose(copies.label_distributions_, once.label_distributions_[rows], atol=1e-6)


def oracle(X, y, n_neighbors, n_classes):
    """GFHF on the distinct rows, dense: shares of labels clamped, harmonic elsewhere; NaN where no label reaches."""
    distinct, node = np.unique(X, axis=0, return_inverse=True)
    node = node.ravel()
    n = len(distinct)
    scale = distinct.std(axis=0)
    Z = np.where(scale > 0, (distinct - distinct.mean(axis=0)) / np.where(scale > 0, scale, 1), 0)
    squares = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    S = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        d = squares[i, others]
        near = np.sort(d)
        k = min(n_neighbors, n - 1)
        width = k * near[min(k, n - 2)] - near[:k].sum()
        # The simplex projection of −d/width, its level by bisection.
        low, high = d.min(), d.max() + width + 1
        for _ in range(200):
            level = (low + high) / 2
            low, high = (low, level) if np.maximum(level - d, 0).sum() > width else (level, high)
        row = np.maximum(high - d, 0)
        S[i, others] = row / row.sum()
    counts = np.zeros((n, n_classes))
    np.add.at(counts, (node[y >= 0], y[y >= 0]), 1)
    labelled = counts.sum(axis=1) > 0
    W = (S + S.T) / 2
    reach = np.linalg.matrix_power(np.eye(n) + (W > 1e-12), n) > 0
    reached = reach[:, labelled].any(axis=1)
    F = np.full((n, n_classes), np.nan)
    F[labelled] = counts[labelled] / counts[labelled].sum(axis=1, keepdims=True)
    free = np.flatnonzero(reached & ~labelled)
    L = np.diag(W.sum(axis=1)) - W
    if len(free):
        F[free] = np.linalg.solve(L[np.ix_(free, free)], -L[np.ix_(free, np.flatnonzero(labelled))] @ F[labelled])
    return F[node]


@QUIET
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_discrete_data_against_a_dense_oracle_on_the_collapsed_graph(data):
    n_distinct = data.draw(st.integers(2, 30))
    values = st.tuples(st.integers(0, 6), st.integers(0, 6))
    levels = np.array(data.draw(st.lists(values, min_size=n_distinct, max_size=n_distinct, unique=True)))
    n = data.draw(st.integers(n_distinct, 4 * n_distinct))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    # Levels that are not evenly spaced: neighbours at the same distance would be told apart by rounding alone.
    distinct = rng.normal(size=(7, 2))[levels, [0, 1]]
    rows = np.concatenate([np.arange(n_distinct), rng.integers(0, n_distinct, n - n_distinct)])
    X = distinct[rows]
    y = np.where(rng.random(n) < 0.5, rng.integers(0, 3, n), -1)
    y[:3] = np.arange(3)[: len(y)]
    n_neighbors = data.draw(st.integers(1, 6))
    if n_neighbors >= n:
        return
    found = GFHF(n_neighbors=n_neighbors, scaling="zscore").fit([X], y).label_distributions_
    right = oracle(X, y, n_neighbors, found.shape[1])
    known = ~np.isnan(right[:, 0])
    np.testing.assert_allclose(found[known], right[known], atol=1e-6)


@QUIET
@settings(max_examples=12, deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_lmssc_on_discrete_data_gives_one_answer_to_identical_rows_in_any_order(n_distinct, repeats, seed):
    rng = np.random.default_rng(seed)
    distinct = rng.integers(0, 5, (n_distinct, 3)).astype(float)
    X = distinct[rng.integers(0, n_distinct, max(4, 2 * n_distinct))]
    y = np.where(rng.random(len(X)) < 0.5, rng.integers(0, 2, len(X)), -1)
    y[:2] = 0, 1
    once = LMSSC().fit([X], y)
    for row in np.unique(X, axis=0):
        same = (row == X).all(axis=1)
        assert np.ptp(once.label_distributions_[same], axis=0).max() == 0
    order = rng.permutation(np.repeat(np.arange(len(X)), repeats))
    again = LMSSC().fit([X[order]], y[order])
    np.testing.assert_allclose(again.label_distributions_, once.label_distributions_[order], atol=1e-6)


def test_many_copies_cost_no_more_than_the_distinct_rows():
    """100,000 samples of 10 values: the graph has an edge for each sample and neighbour, and no more."""
    X = np.random.default_rng(0).integers(0, 10, (100_000, 1)).astype(float)
    y = np.full(len(X), -1)
    y[:200] = X[:200, 0] > 4
    clf = LMSSC().fit([X], y)
    assert clf.graph_.nnz <= 10 * len(X)
    np.testing.assert_array_equal(clf.transduction_, X[:, 0] > 4)


class TestTargets:
    def test_hide_and_take_agree_with_the_dense_matrix(self):
        rng = np.random.default_rng(0)
        targets = Targets.from_labels(rng.integers(0, 20, 60), rng.integers(0, 3, 60), 25, 3)
        matrix = targets.matrix(np.dtype(float))
        hidden = rng.permutation(25)[:9]
        np.testing.assert_array_equal(
            targets.without_labels(hidden).matrix(np.dtype(float)),
            np.where(np.isin(np.arange(25), hidden)[:, None], 0, matrix),
        )
        order = rng.permutation(25)[:14]
        taken = targets.take(order)
        np.testing.assert_array_equal(taken.matrix(np.dtype(float)), matrix[order])
        np.testing.assert_array_equal(taken.codes, targets.codes[order])
        assert taken.counts[2].sum() == np.isin(np.repeat(*targets.counts[::2]), order).sum()

    def test_frequencies_count_every_label(self):
        targets = Targets.from_labels(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1]), 2, 2)
        np.testing.assert_allclose(targets.frequencies, [0.75, 0.25])

    def test_labels_that_never_disagree_are_not_shrunk(self):
        targets = Targets.from_labels(np.repeat(np.arange(20), 3), np.repeat(np.arange(20) % 2, 3), 20, 2)
        assert targets.shrink(np.full((20, 2), 0.5)) is targets

    def test_noisy_labels_are_drawn_to_what_the_graph_says(self):
        rng = np.random.default_rng(0)
        nodes = np.repeat(np.arange(200), 3)
        targets = Targets.from_labels(nodes, (rng.random(600) < 0.3).astype(int), 200, 2)
        found = targets.shrink(np.tile([0.7, 0.3], (200, 1))).matrix(np.dtype(float))
        assert (
            np.abs(found - [0.7, 0.3]).mean() < 0.1 * np.abs(targets.matrix(np.dtype(float)) - [0.7, 0.3]).mean() + 0.02
        )

    def test_shares_that_differ_from_node_to_node_stay(self):
        """Every node has its own distribution, and the graph knows nothing of it."""
        rng = np.random.default_rng(0)
        nodes = np.repeat(np.arange(40), 50)
        chance = rng.choice([0.05, 0.95], 40)
        targets = Targets.from_labels(nodes, (rng.random(2000) < chance[nodes]).astype(int), 40, 2)
        found = targets.shrink(np.full((40, 2), 0.5)).matrix(np.dtype(float))
        assert np.abs(found - targets.matrix(np.dtype(float))).max() < 0.05


def test_the_graph_of_identical_samples_leads_to_one_copy_of_each_neighbour():
    X = np.repeat(np.arange(6.0), 3)[:, None]
    y = np.where(np.arange(18) % 3 == 0, np.arange(18) // 9, -1)
    clf = LMSSC().fit([X], y)
    assert clf.graph_.shape == (18, 18)
    np.testing.assert_allclose(clf.graph_.sum(axis=1), 1)
    assert (clf.graph_.diagonal() == 0).all()
    assert laplacian(clf.graph_).shape == (18, 18)
