"""The last regression of texts: on all words, against a dense solution, and in a fit."""

import numpy as np
import pytest
from scipy import sparse

from lmssc import LMSSC
from lmssc.core import fit as core_fit
from lmssc.core.label_regression import RIDGE
from lmssc.core.word_regression import MIN_PROBABILITY, can_regress, keep_totals, regress_on_words
from lmssc.data.view import View
from lmssc.data.views import Views


def made_up(seed=0, n_samples=40, n_labelled=6):
    """Two sparse views, probabilities of three classes, and which samples have a label or are unreached."""
    rng = np.random.default_rng(seed)
    arrays = [rng.random((n_samples, d)) * (rng.random((n_samples, d)) < 0.3) for d in (12, 7)]
    probabilities = rng.dirichlet(np.ones(3), n_samples)
    labelled, unreached = np.arange(n_samples) < n_labelled, np.arange(n_samples) >= n_samples - 3
    probabilities[labelled] = np.eye(3)[np.arange(n_labelled) % 3]
    return arrays, probabilities, labelled, unreached


def direct(arrays, probabilities, labelled, unreached):
    """Weighted ridge regression with a constant that costs nothing, from its normal equations."""
    X, free = np.hstack(arrays), ~labelled & ~unreached
    weights = np.where(labelled, 0.5 / labelled.sum(), np.where(free, 0.5 / free.sum(), 0))
    variance = sum(np.cov(column, aweights=weights, ddof=0) for column in X.T)
    with_constant = np.hstack([X, np.ones((len(X), 1))])
    penalty = RIDGE * variance * np.diag([1.0] * X.shape[1] + [0.0])
    W = np.diag(weights)
    B = np.linalg.solve(with_constant.T @ W @ with_constant + penalty, with_constant.T @ W @ probabilities)
    predicted = np.maximum(with_constant @ B, MIN_PROBABILITY)
    predicted /= predicted.sum(axis=1, keepdims=True)
    share = min(1, 0.15 / labelled.mean())
    return np.where(free[:, None], share * predicted + (1 - share) * probabilities, probabilities)


@pytest.mark.parametrize("n_labelled", [6, 20])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_predictions_are_those_of_the_normal_equations(stored, n_labelled):
    """With many labels, averaged with the probabilities before."""
    arrays, probabilities, labelled, unreached = made_up(n_labelled=n_labelled)
    found = regress_on_words(Views.from_arrays([stored(one) for one in arrays]), probabilities, labelled, unreached)
    np.testing.assert_allclose(found, direct(arrays, probabilities, labelled, unreached), atol=1e-7)


def test_a_shift_of_the_words_changes_nothing():
    arrays, *rest = made_up()
    shifted = [View(sparse.csr_array(one), offset=np.full(one.shape[1], 0.7)) for one in arrays]
    np.testing.assert_allclose(
        regress_on_words(Views(shifted), *rest), regress_on_words(Views.from_arrays(arrays), *rest), atol=1e-7
    )


def test_without_unlabelled_samples_nothing_changes():
    arrays, probabilities, _, _ = made_up()
    everything = np.ones(len(probabilities), dtype=bool)
    assert regress_on_words(Views.from_arrays(arrays), probabilities, everything, ~everything) is probabilities


def test_totals_of_the_classes_are_those_before():
    rng = np.random.default_rng(0)
    before, predicted = rng.dirichlet([5, 3, 1], 200), rng.dirichlet([6, 3, 0.5], 200)
    fixed = np.arange(200) < 20
    kept = keep_totals(predicted, before, fixed)
    np.testing.assert_array_equal(kept[fixed], predicted[fixed])
    np.testing.assert_allclose(kept.sum(axis=1), 1)
    np.testing.assert_allclose(kept[~fixed].sum(axis=0), before[~fixed].sum(axis=0), rtol=0.01)
    # Classes are only weighed against each other: the odds of two classes change by the same factor everywhere.
    odds = (kept / predicted)[~fixed]
    np.testing.assert_allclose(odds[:, 0] / odds[:, 1], odds[0, 0] / odds[0, 1])


def test_samples_that_lack_a_view_and_large_data_rule_it_out(monkeypatch):
    assert not can_regress(Views([View(np.eye(3), present=np.array([True, True, False]))]))
    assert can_regress(Views.from_arrays([np.eye(3)]))
    monkeypatch.setattr("lmssc.core.word_regression.MAX_SAMPLES", 2)
    assert not can_regress(Views.from_arrays([np.eye(3)]))


def topics(seed=0, n_samples=150):
    """Counts of 300 words, of which each class prefers some."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_samples)
    preferences = rng.dirichlet(np.full(300, 0.3), 3) * 0.4 + rng.dirichlet(np.full(300, 0.3)) * 0.6
    counts = np.array([rng.multinomial(25, preferences[label]) for label in y])
    return sparse.csr_array(counts.astype(float)), y


def test_a_fit_uses_it_for_texts_and_keeps_labels(monkeypatch):
    X, y = topics()
    labels = np.where(np.arange(len(y)) < 15, y, -1)
    given = []

    def spy(views, probabilities, labelled, unreached):
        given.append((labelled, probabilities))
        return regress_on_words(views, probabilities, labelled, unreached)

    monkeypatch.setattr(core_fit, "regress_on_words", spy)
    clf = LMSSC(scaling="log").fit({"text": X}, labels)
    assert len(given) == 1
    assert (clf.transduction_[:15] == y[:15]).all()
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)
    LMSSC().fit({"measured": np.random.default_rng(0).normal(size=(150, 5))}, labels)
    LMSSC(scaling="log", calibrate=False).fit({"text": X}, labels)
    assert len(given) == 1


def test_orders_and_copies_of_texts_change_nothing():
    X, y = topics()
    labels = np.where(np.arange(len(y)) < 15, y, -1)
    clf = LMSSC(scaling="log").fit([X, X[:, ::3]], labels)
    order = np.random.default_rng(0).permutation(len(y))
    again = LMSSC(scaling="log").fit([X[order][:, ::3], X[order]], np.where(labels < 0, -1, 2 - labels)[order])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order][:, ::-1])
    twice = np.repeat(np.arange(len(y)), 2)
    copies = LMSSC(scaling="log").fit([X[twice], X[twice][:, ::3]], labels[twice])
    np.testing.assert_array_equal(copies.label_distributions_[::2], clf.label_distributions_)
