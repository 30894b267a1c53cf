"""Samples that lack views or links: their confidence and sets are calibrated on samples that lack the same."""

import numpy as np
import pytest

import lmssc
from lmssc import LMSSC, Graph
from lmssc.core.conformal import MIN_KIND_LABELS, class_p_values, interpolated_p_values


def network(seed, n_fit=600, n_new=300):
    """Weak features, good links, and 30 % of the samples without any link."""
    rng, n = np.random.default_rng(seed), n_fit + n_new
    target = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 10)) + 0.35 * rng.normal(size=(3, 10))[target]
    A = np.triu(rng.random((n, n)) < np.where(target[:, None] == target, 0.02, 0.001), 1)
    alone = rng.random(n) < 0.3
    A[alone], A[:, alone] = 0, 0
    y = np.where(rng.permutation(n_fit) < 90, target[:n_fit], -1)
    return X, (A | A.T).astype(float), alone, target, y


@pytest.fixture(scope="module", params=[0, 1])
def fitted(request):
    X, A, alone, target, y = network(request.param)
    n = len(y)
    clf = LMSSC().fit({"x": X[:n], "g": Graph(A[:n, :n])}, y)
    return clf, {"x": X[n:], "g": Graph(A[n:, :n])}, alone, target, y


def right_and_sure(clf, distributions, target, rows):
    right = clf.classes_[distributions.argmax(axis=1)] == target
    return right[rows].mean(), distributions.max(axis=1)[rows].mean()


def test_samples_of_fit_without_links_are_not_too_sure(fitted):
    clf, _, alone, target, y = fitted
    n = len(y)
    for kind, most in ((alone[:n], 0.15), (~alone[:n], 0.08)):
        right, sure = right_and_sure(clf, clf.label_distributions_, target[:n], kind & (y < 0))
        assert abs(sure - right) < most


def test_new_samples_without_links_are_not_too_sure(fitted):
    clf, new, alone, target, y = fitted
    n = len(y)
    found = clf.predict_proba(new)
    right, sure = right_and_sure(clf, found, target[n:], alone[n:])
    right_linked, sure_linked = right_and_sure(clf, found, target[n:], ~alone[n:])
    assert abs(sure - right) < 0.12
    assert abs(sure_linked - right_linked) < 0.08
    with pytest.warns(UserWarning, match="without links"):
        hidden = clf.predict_proba({"x": new["x"]})
    np.testing.assert_allclose(hidden[alone[n:]], found[alone[n:]])  # a graph that is left out is one without links


def test_sets_keep_their_promise_with_and_without_links(fitted):
    clf, new, alone, target, y = fitted
    n = len(y)
    of_fit, of_new = clf.predict_set(coverage=0.9), clf.predict_set(new, coverage=0.9)
    for kind in (alone, ~alone):
        assert of_fit[np.arange(n), target[:n]][kind[:n] & (y < 0)].mean() > 0.82
        assert of_new[np.arange(len(of_new)), target[n:]][kind[n:]].mean() > 0.82


def test_a_model_file_keeps_what_judges_samples_without_links(fitted, tmp_path):
    clf, new, *_ = fitted
    clf.save(tmp_path / "model.lmssc")
    loaded = lmssc.load(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(loaded.predict_proba(new), clf.predict_proba(new))
    np.testing.assert_array_equal(loaded.predict_set(new), clf.predict_set(new))


def test_p_values_of_a_kind_are_ranked_among_its_own_labels():
    rng = np.random.default_rng(0)
    known, asked = np.repeat([0, 1, 2], [40, MIN_KIND_LABELS, 5]), np.repeat([0, 1, 2, 3], 2)
    codes, held_out, scores = rng.integers(0, 2, len(known)), rng.random((len(known), 2)), rng.random((len(asked), 2))
    found = class_p_values(held_out, codes, scores, by_class=False, kinds=(known, asked))
    strange = 1 - held_out[np.arange(len(codes)), codes]
    for kind in range(4):
        own = known == kind if kind < 2 else np.ones(len(known), dtype=bool)  # too few labels: among all
        for code in range(2):
            right = interpolated_p_values(strange[own], 1 - scores[asked == kind, code])
            np.testing.assert_array_equal(found[asked == kind, code], right)


def without_the_good_view(seed):
    """Three views, of which the first is good: all labelled samples have it, and most others do not."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, 600)
    views = [rng.normal(size=(600, 8)) + size * rng.normal(size=(3, 8))[target] for size in (1.2, 0.3, 0.3)]
    y = np.where(rng.permutation(600) < 60, target, -1)
    lacks = (y < 0) & (rng.random(600) < 0.7)
    views[0][lacks] = np.nan
    return views, y, lacks, target


@pytest.mark.parametrize("seed", [0, 3])
def test_samples_that_lack_what_all_labelled_ones_have_are_not_too_sure(seed):
    views, y, lacks, target = without_the_good_view(seed)
    clf = LMSSC().fit(views, y)
    for rows in (lacks, (y < 0) & ~lacks):
        right, sure = right_and_sure(clf, clf.label_distributions_, target, rows)
        assert abs(sure - right) < 0.16
    with pytest.warns(UserWarning, match=f"{lacks.sum()} of 540 samples lack views or links that nearly all labelled"):
        clf.predict_set()
    order = np.random.default_rng(1).permutation(600)
    again = LMSSC().fit([view[order] for view in views[::-1]], y[order])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order])


def test_a_warning_if_only_labelled_samples_have_links():
    X, A, _, _, y = network(0, 300, 0)
    y[:] = np.where(np.arange(300) < 90, np.arange(300) % 3, -1)
    A[200:], A[:, 200:] = 0, 0  # of 210 unlabelled samples 110 have links
    A[:200, :200] += np.abs(np.subtract.outer(np.arange(200), np.arange(200))) % 3 == 0
    np.fill_diagonal(A, 0)
    with pytest.warns(UserWarning, match="unlabelled samples have no links, or in other graphs than nearly all"):
        LMSSC(calibrate=False).fit({"x": X, "g": Graph(A)}, y)
