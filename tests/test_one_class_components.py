"""Parts of the graph with labels of one class only: no more confident than labels elsewhere justify."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from lmssc import AMGL, GFHF, LMSSC, MLAN
from lmssc.core.one_class_components import _count_nearby, _count_within_components, shrink_one_class
from lmssc.core.targets import Targets

ONE_CLASS = "all labels are of one class"


def two_halves(seed, n_labels):
    """Three classes; one half of the samples has view A, with 40 % labels, the other half view B, with few."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, 300)
    centres = 2.5 * np.eye(3)[target]
    A, B = rng.normal(centres), rng.normal(centres)
    first = np.arange(300) < 150
    A[~first], B[first] = np.nan, np.nan
    labelled = first & (rng.random(300) < 0.4)
    labelled[150 : 150 + n_labels] = True
    return [A, B], np.where(labelled, target, -1), target, ~first & ~labelled


def far_cluster(seed):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, 200)
    X = rng.normal(3.0 * target[:, None], 1, (200, 2))
    X[100:] += 1000
    y = np.where((np.arange(200) < 100) & (rng.random(200) < 0.3), target, -1)
    y[150] = target[150]
    return [X], y, target, np.arange(200) > 150


def right_and_sure(clf, target, rows):
    return np.mean((clf.transduction_ == target)[rows]), clf.label_distributions_[rows].max(axis=1).mean()


@pytest.mark.filterwarnings("ignore:150 samples have only views that few labelled samples have:UserWarning")
@pytest.mark.parametrize("data", [lambda seed: two_halves(seed, 1), far_cluster])
def test_one_label_does_not_speak_for_half_of_the_samples(data):
    found = []
    for seed in range(3):
        views, y, target, rows = data(seed)
        with pytest.warns(UserWarning, match=ONE_CLASS):
            LMSSC(second_opinion=0.0).fit(views, y)
        with warnings.catch_warnings():  # with a second opinion, the confidence may not have fallen far
            warnings.filterwarnings("ignore", message=f".*{ONE_CLASS}")
            clf = LMSSC().fit(views, y)
        found.append(right_and_sure(clf, target, rows))
        new = [np.where(np.isnan(view[rows]), np.nan, view[rows] + 0.01) for view in views]
        assert clf.predict_proba(new).max(axis=1).mean() < found[-1][1] + 0.05
    right, sure = np.mean(found, axis=0)
    assert abs(right - sure) < 0.1


@pytest.mark.filterwarnings("error")
def test_without_calibration_the_scores_of_lmssc_stay_as_propagation_gives_them():
    views, y, _, rows = far_cluster(0)
    clf = LMSSC(calibrate=False, balance=0.0).fit(views, y)
    assert clf.label_distributions_[rows].max(axis=1).min() > 0.999


@pytest.mark.parametrize("method", [GFHF, AMGL])
def test_published_methods_stay_as_published(method):
    views, y, _, rows = far_cluster(0)
    assert method().fit(views, y).label_distributions_[rows].max(axis=1).min() > 0.999


@pytest.mark.parametrize("method", [LMSSC, GFHF, AMGL, MLAN])
def test_clusters_that_are_classes_stay_sure(method):
    """Where no labels within a part disagree there is no warning, and one label of a class is enough."""
    rng = np.random.default_rng(0)
    target = np.repeat([0, 1, 2], 40)
    X = rng.normal(100.0 * np.eye(3)[target], 1)
    y = np.full(120, -1)
    y[[0, 1, 2, 40, 41, 80]] = target[[0, 1, 2, 40, 41, 80]]
    clf = method().fit([X], y)
    assert (clf.transduction_ == target).all()
    assert clf.label_distributions_.max(axis=1).min() > 0.99


def test_one_label_per_class_is_no_reason_for_doubt():
    """Such labels never agree, however close they are, which says nothing about the clusters that are classes."""
    rng = np.random.default_rng(0)
    target = np.repeat(np.arange(30), 10)
    X = rng.normal(12.0 * rng.normal(size=(30, 8))[target], 1)
    for i in range(0, 200, 20):  # two classes in one cluster
        X[i + 10 : i + 20] = X[i : i + 10] + 0.5
    y = np.where(np.arange(300) % 10 == 0, target, -1)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=f".*{ONE_CLASS}")
        right, sure = right_and_sure(LMSSC().fit([X], y), target, y < 0)
    assert abs(right - sure) < 0.1


def test_several_classes_in_every_part_change_nothing():
    graph = sparse.csr_array(np.ones((4, 4)) - np.eye(4))
    scores = np.array([[1.0, 0], [0, 1], [0.6, 0.4], [0.3, 0.7]])
    found, changed = shrink_one_class(scores, graph, Targets.from_codes(np.array([0, 1, -1, -1]), 2))
    assert found is scores
    assert not len(changed.samples)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_agreement_is_that_of_all_pairs(seed):
    """Against every pair of labelled samples, by scipy's breadth-first order."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(4, 40)), int(rng.integers(2, 4))
    graph = sparse.csr_array(np.triu(rng.random((n, n)) < 2 / n, 1).astype(float))
    codes = np.where(rng.random(n) < 0.6, rng.integers(0, n_classes, n), -1)
    codes[:2] = [0, 1]
    sizes = rng.integers(1, n + 1, 5)
    targets = Targets.from_codes(codes, n_classes)
    n_agreeing, n_pairs = _count_nearby(graph, targets, sizes)
    steps = np.full((n, n), np.inf)
    for centre in range(n):
        order, before = breadth_first_order(graph + graph.T, centre, directed=False)
        steps[centre, centre] = 0
        for node in order[1:]:
            steps[centre, node] = steps[centre, before[node]] + 1
    labelled = np.flatnonzero(codes >= 0)
    numbers = np.bincount(codes[labelled])

    def count(one, other):  # a pair that disagrees counts less, because fewer could agree
        return 1 if codes[one] == codes[other] else (numbers[codes[one]] - 1) / numbers[codes[one]]

    for i, size in enumerate(sizes):
        pairs = [
            (centre, other)
            for centre in labelled
            for other in np.lexsort((np.arange(n), steps[centre]))[:size]
            if np.isfinite(steps[centre, other]) and other != centre and codes[other] >= 0
        ]
        assert n_pairs[i] == pytest.approx(sum(count(*pair) for pair in pairs))
        assert n_agreeing[i] == sum(codes[one] == codes[other] for one, other in pairs)
    n_agreeing, n_pairs = _count_within_components(graph, targets, sizes)
    extent = np.isfinite(steps).sum(axis=1)
    for i, size in enumerate(sizes):
        pairs = [
            (one, other)
            for one in labelled
            for other in labelled
            if one != other and np.isfinite(steps[one, other]) and extent[one] <= 3 * size
        ]
        assert n_pairs[i] == pytest.approx(sum(count(*pair) for pair in pairs))
        assert n_agreeing[i] == sum(codes[one] == codes[other] for one, other in pairs)
