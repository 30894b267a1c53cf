"""Whitening of measurements: the transform, what it keeps, and how held-out labels choose it."""

import numpy as np
import pytest
from scipy import sparse

import lmssc
from lmssc import LMSSC, LMSSCCV, Graph
from lmssc.core import begin, whitening_choice
from lmssc.core.confidence import StartConfidence
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.opinion_trust import judge_opinion
from lmssc.core.permutation import Permutation
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.core.whitening_choice import STRENGTHS, WhitenedViews
from lmssc.data.view import View
from lmssc.data.views import Views
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


def power_of_covariance(rows, strength):
    """(C + m·I)^(−strength/2) with C the covariance, and m its median eigenvalue, or 1 % of the mean variance."""
    covariance = rows.T @ rows / len(rows)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0)
    floor = max(np.median(values[-min(rows.shape) :]), 0.01 * np.trace(covariance) / len(covariance))
    return vectors @ np.diag((values + floor) ** (-strength / 2)) @ vectors.T


@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("shape", [(50, 6), (8, 20)])
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_both_gram_matrices_give_the_power_of_the_covariance(shape, strength, rank):
    rng = np.random.default_rng(1)
    rank = shape[1] if rank is None else rank
    rows = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    rows -= rows.mean(axis=0)
    new = rng.normal(size=(3, shape[1]))  # new samples have parts outside of the directions of few samples
    whitening = PrincipalVariances.of(View(rows)).whitening(strength)
    power = power_of_covariance(rows, strength)
    np.testing.assert_allclose(whitening.apply(rows), rows @ power, atol=1e-6)
    np.testing.assert_allclose(whitening.apply(new), new @ power, atol=1e-6)


@pytest.mark.parametrize("digits", [2, 3, 4, 12])
def test_directions_of_rounding_alone_do_not_grow(digits):
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(300, 6)) @ rng.normal(size=(6, 30)), digits)
    whitening = PrincipalVariances.of(View(rows - rows.mean(axis=0))).whitening(1.0)
    assert whitening.factors.max() <= whitening.rest * (1 + 1e-9)
    assert whitening.rest < 100 * whitening.factors.min()


def test_an_empty_view_stays_empty():
    view = View(np.zeros((5, 3)))
    for strength in STRENGTHS:
        np.testing.assert_array_equal(PrincipalVariances.of(view).whitening(strength).apply(view.data), view.data)


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


def scaled(views, measurements=None):
    """The views as whitening sees them."""
    views = Views.from_arrays([view - view.mean(axis=0) for view in views.values()])
    measurements = tuple(range(len(views))) if measurements is None else measurements
    return WhitenedViews.of(views, FitConfig(n_neighbors=10, measurements=measurements))


@pytest.mark.parametrize("strength", STRENGTHS)
def test_views_keep_their_energy_and_others_stay(strength):
    views = scaled(weak_views()[0], measurements=(0, 2))
    found = views.at(strength)
    for v, (before, after) in enumerate(zip(views.views, found, strict=True)):
        assert after.squared_norm() == pytest.approx(before.squared_norm())
        assert (after is before) == (v not in (0, 2))
    some = views.at(strength, np.array([5, 3]))
    np.testing.assert_allclose(some[2].data, found[2].data[[5, 3]])


def test_limits(monkeypatch):
    rng = np.random.default_rng(0)
    views = {"wide": rng.normal(size=(30, 40)), "one": rng.normal(size=(30, 1)), "two": rng.normal(size=(30, 2))}
    assert scaled(views).allowed == [True, False, True]
    monkeypatch.setattr(whitening_choice, "MAX_SIZE", 29)
    assert scaled(views).allowed == [False, False, True]
    monkeypatch.setattr(whitening_choice, "MAX_SAMPLES", 29)
    assert scaled(views).allowed == [False, False, False]


def test_only_measurements_that_auto_found_are_whitened():
    views, target, y = weak_views()
    rng = np.random.default_rng(0)
    components, sizes, _ = np.linalg.svd(views["v3"] - views["v3"].mean(axis=0), full_matrices=False)
    views["v3"] = components * sizes
    views["words"] = sparse.csr_array(rng.poisson(0.2, size=(len(y), 30)).astype(float))
    clf = LMSSC(scaling={"v0": "zscore"}).fit(views, y)
    assert clf.whitening_ > 0
    whitened = {name for name, reason in clf.scaling_reasons_.items() if "whitened" in reason}
    assert whitened == {"v1", "v2", "v4"}
    assert (clf.transduction_ == target)[y == -1].mean() > 0.6


class FakeStart:
    def __init__(self, losses):
        self.confidence, self.mean_loss = StartConfidence(losses=losses), losses.mean()
        self.permutation = Permutation()

    is_better = Start.is_better


@pytest.mark.parametrize(
    ("gain", "spread", "n_held_out", "proposed", "taken"),
    [
        (0.2, 1.0, 40, 0.5, 0.5),  # 1.2 standard errors
        (0.2, 1.0, 40, 1.0, 1.0),
        (0.2, 1.0, 40, 0.0, 0.0),  # the regression is against it
        (0.05, 1.0, 40, 1.0, 0.0),  # 0.3 standard errors
        (-0.2, 1.0, 40, 1.0, 0.0),
        (0.03, 0.1, 40, 1.0, 0.0),  # 1.5 % of the loss
        (0.05, 0.1, 40, 1.0, 1.0),
        (0.2, 0.1, 9, 1.0, 0.0),  # too few held-out labels
        (0.2, 0.1, 10, 1.0, 1.0),
    ],
)
def test_two_judges_have_to_agree(monkeypatch, gain, spread, n_held_out, proposed, taken):
    views, _, y = weak_views()
    noise = np.linspace(-1, 1, n_held_out)
    before = np.full(n_held_out, 2.0)
    after = before - gain + spread * noise / noise.std(ddof=1)
    starts = iter([FakeStart(before), FakeStart(after)])
    monkeypatch.setattr(whitening_choice, "begin", lambda *_, **__: next(starts))
    monkeypatch.setattr(whitening_choice, "propose_strength", lambda *_: proposed)
    targets = Targets.from_codes(y, 4)
    config = FitConfig(n_neighbors=10)
    strength, start = whitening_choice.begin_whitened(scaled(views), targets, config, FitContext())
    assert strength == taken
    assert (start.confidence.losses is after) == (taken > 0)


def test_the_regression_proposes_what_helps_and_nothing_else():
    views, target, y = weak_views()
    assert whitening_choice.propose_strength(scaled(views), Targets.from_codes(y, 4)) == 1
    means = np.random.default_rng(0).normal(size=(4, 15))
    strong = {"a": 3 * means[target][:, :2] + np.random.default_rng(1).normal(size=(len(y), 2))}
    strong["a"] = np.hstack([strong["a"], 0.3 * np.random.default_rng(3).normal(size=(len(y), 20))])
    assert whitening_choice.propose_strength(scaled(strong), Targets.from_codes(y, 4)) == 0


@pytest.mark.parametrize("n_samples", [240, 3200])
@pytest.mark.parametrize("with_links", [False, True])
def test_starts_that_are_compared_hold_out_the_same_labels(monkeypatch, n_samples, with_links):
    views, target, y = weak_views(n_samples, n_views=3)
    y = np.where(np.cumsum(y != -1) <= 160, y, -1)
    folds = []

    def keep(held, trust):
        folds.append([fold.rows.tolist() for fold in held.folds])
        return judge_opinion(held, trust)

    monkeypatch.setattr(begin, "judge_opinion", keep)
    monkeypatch.setattr(Start, "is_better", lambda *_: len(folds) == 2)  # of whitening, not of links
    monkeypatch.setattr(whitening_choice, "MIN_GAIN", -np.inf)
    if with_links:
        pairs = np.random.default_rng(0).integers(0, n_samples, size=(2, 8 * n_samples))
        pairs = pairs[:, target[pairs[0]] == target[pairs[1]]]
        links = sparse.coo_array((np.ones(pairs.shape[1]), pairs), shape=(n_samples, n_samples))
        views["links"] = Graph(links.tocsr())
    clf = LMSSC(max_iter=1).fit(views, y)
    assert clf.whitening_ > 0
    assert len(folds) == (5 if with_links else 2)
    assert all(found == folds[0] for found in folds)


def test_wrong_labels_do_not_keep_views_from_being_whitened():
    views, target, y = weak_views(300, seed=100)
    rng = np.random.default_rng(0)
    wrong = rng.choice(np.flatnonzero(y >= 0), 18, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 4, 18)) % 4
    clf = LMSSC(label_noise="auto").fit(views, y)
    assert clf.whitening_ > 0
    assert (clf.transduction_ == target)[y == -1].mean() > 0.9


def test_fits_that_share_work_know_which_views_are_whitened():
    views, _, y = weak_views(300, n_views=3, seed=0)
    y = np.where(np.random.default_rng(1).random(300) < 0.5, weak_views(300, n_views=3, seed=0)[1], -1)
    grid = ["auto", {"v0": "zscore"}]
    found = [LMSSCCV(param_grid={"scaling": scalings}).fit(views, y).cv_results_ for scalings in (grid, grid[::-1])]
    scores = [dict(zip(map(str, one["param_scaling"]), one["mean_test_score"], strict=True)) for one in found]
    assert scores[0] == scores[1]


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
