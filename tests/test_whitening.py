"""Whitening of measurements: the transform, what it keeps, and how held-out labels choose it."""

import numpy as np
import pytest

import lmssc
from lmssc import LMSSC
from lmssc.core.whitening_choice import STRENGTHS
from lmssc.data.view import View
from lmssc.data.whitening import PrincipalVariances
from lmssc.datasets import make_multiview


def weak_views(n_samples=240, n_views=5, seed=0):
    """Views whose own factors hide the classes: these are plain once the factors are divided out."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 4, n_samples)
    views = {}
    for v in range(n_views):
        means = 0.45 * rng.normal(size=(4, 15))
        factors = rng.normal(size=(n_samples, 4)) @ rng.normal(size=(4, 15)) * 2.5
        views[f"v{v}"] = means[target] + factors + 0.7 * rng.normal(size=(n_samples, 15))
    return views, target, np.where(rng.random(n_samples) < 0.3, target, -1)


def whitened_slowly(rows, strength):
    """x·C^(−strength/2), with the median eigenvalue added to the covariance C."""
    covariance = rows.T @ rows / len(rows)
    values, vectors = np.linalg.eigh(covariance)
    positive = values > 1e-10 * values[-1]
    return (
        rows
        @ vectors
        @ np.diag((np.where(positive, values, 0) + np.median(values[positive])) ** (-strength / 2))
        @ vectors.T
    )


@pytest.mark.parametrize("shape", [(50, 6), (8, 20)])
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_both_gram_matrices_give_the_power_of_the_covariance(shape, strength):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    rows -= rows.mean(axis=0)
    whitening = PrincipalVariances.of(View(rows)).whitening(strength)
    np.testing.assert_allclose(whitening.apply(rows), whitened_slowly(rows, strength), atol=1e-9)
    new = rng.normal(size=(3, shape[1]))  # new samples have parts outside of the directions of few samples
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    floor = np.median(values[values > 1e-10 * values[-1]])
    power = vectors @ np.diag((np.where(values > 1e-10 * values[-1], values, 0) + floor) ** (-strength / 2)) @ vectors.T
    np.testing.assert_allclose(whitening.apply(new), new @ power, atol=1e-9)


def test_samples_that_lack_the_view_have_no_part():
    rows = np.random.default_rng(0).normal(size=(30, 4))
    present = np.arange(30) % 3 > 0
    found = PrincipalVariances.of(View(rows * present[:, None], None, present))
    np.testing.assert_allclose(found.variances, PrincipalVariances.of(View(rows[present])).variances)


def test_factors_of_single_views_no_longer_hide_the_classes():
    views, target, y = weak_views()
    unlabelled = y == -1
    clf = LMSSC().fit(views, y)
    plain = LMSSC(scaling="zscore").fit(views, y)
    assert clf.whitening_ in STRENGTHS
    assert plain.whitening_ == 0
    assert all("whitened" in reason for reason in clf.scaling_reasons_.values())
    right, before = ((one.transduction_ == target)[unlabelled].mean() for one in (clf, plain))
    assert right > before + 0.1, (right, before)


def test_new_samples_are_whitened_too(tmp_path):
    views, target, y = weak_views(seed=1)
    rows = np.arange(len(y)) < 200
    clf = LMSSC().fit({name: view[rows] for name, view in views.items()}, y[rows])
    assert clf.whitening_ > 0
    np.testing.assert_array_equal(clf.predict({name: view[rows] for name, view in views.items()}), clf.transduction_)
    new = {name: view[~rows] for name, view in views.items()}
    found = clf.predict_proba(new)
    assert (clf.classes_[found.argmax(axis=1)] == target[~rows]).mean() > 0.7
    clf.save(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(lmssc.load(tmp_path / "model.lmssc").predict_proba(new), found)


def test_orders_and_copies_change_nothing():
    views, _, y = weak_views(seed=2)
    clf = LMSSC().fit(views, y)
    assert clf.whitening_ > 0
    order = np.random.default_rng(0).permutation(len(y))
    again = LMSSC().fit({name: views[name][order] for name in reversed(views)}, y[order])
    assert again.whitening_ == clf.whitening_
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order])
    twice = LMSSC().fit({name: np.vstack([view, view]) for name, view in views.items()}, np.tile(y, 2))
    np.testing.assert_array_equal(twice.label_distributions_[: len(y)], clf.label_distributions_)


def test_samples_that_lack_views_and_single_precision():
    views, target, y = weak_views(seed=3)
    views = {name: view.astype(np.float32) for name, view in views.items()}
    views["v0"][::7] = np.nan
    clf = LMSSC().fit(views, y)
    assert clf.whitening_ > 0
    assert clf.latent_.dtype == np.float32
    assert (clf.transduction_ == target)[y == -1].mean() > 0.7


def test_without_evidence_nothing_changes():
    data = make_multiview(300, labelled=0.1, random_state=0)
    assert LMSSC().fit(data.views, data.y).whitening_ == 0
    views, _, y = weak_views()
    assert LMSSC(calibrate=False).fit(views, y).whitening_ == 0
    few = np.where(np.cumsum(y != -1) <= 8, y, -1)  # too few to hold out
    assert LMSSC().fit(views, few).whitening_ == 0


def test_an_interrupted_fit_resumes_with_the_same_whitening(tmp_path):
    views, _, y = weak_views(seed=5)
    whole = LMSSC(max_iter=6, tol=0).fit(views, y)
    assert whole.whitening_ > 0
    path = tmp_path / "fit.checkpoint"

    def stop(progress):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        LMSSC(max_iter=6, tol=0, checkpoint=path, callback=stop).fit(views, y)
    assert path.exists()
    again = LMSSC(max_iter=6, tol=0, checkpoint=path).fit(views, y)
    assert again.whitening_ == whole.whitening_
    np.testing.assert_array_equal(again.label_distributions_, whole.label_distributions_)
