"""The forms of measurements: what each does to the views, and how a regression and held-out labels choose."""

import numpy as np
import pytest
from scipy import sparse

import lmssc
from lmssc import LMSSC, LMSSCCV, Graph
from lmssc.core import begin, view_forms
from lmssc.core.confidence import StartConfidence
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.opinion_trust import judge_opinion
from lmssc.core.permutation import Permutation
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.core.view_forms import FORMS, STANDARDISED, Form, FormedViews
from lmssc.data.scaling import fit_scalings, scale_views
from lmssc.data.view import RawView, View
from lmssc.data.whitening import PrincipalVariances
from lmssc.datasets import make_multiview
from lmssc.estimators import lmssc as estimator
from lmssc.estimators.view_scaling import describe_scalings


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
    """c·(C + m·I)^(−strength/2): m is the median eigenvalue of C or 1 % of its mean variance, c keeps the energy."""
    covariance = rows.T @ rows / len(rows)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0)
    floor = max(np.median(values[-min(rows.shape) :]), 0.01 * np.trace(covariance) / len(covariance))
    power = vectors @ np.diag((values + floor) ** (-strength / 2)) @ vectors.T
    return power * np.sqrt(np.trace(covariance) / np.trace(power @ covariance @ power))


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
    for strength in (0.5, 1.0):
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
    assert clf.whitening_ in (0.5, 1)
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


@pytest.mark.parametrize(("n_samples", "width"), [(240, 60), (150, 300)])
def test_new_samples_of_the_same_kind_are_not_called_distant(n_samples, width):
    """Whitening and components fit the samples of fit by heart; new samples all had larger residuals."""
    rng = np.random.default_rng(0)
    truth, views = rng.integers(4, size=n_samples + 200), []
    for _ in range(2):
        factors = rng.normal(size=(len(truth), 8)) @ rng.normal(size=(8, width))
        views.append(0.35 * rng.normal(size=(4, width))[truth] + factors + rng.normal(size=(len(truth), width)))
    y = np.where(np.arange(n_samples) < n_samples // 2, truth[:n_samples], -1)
    clf = LMSSC(n_components=n_samples // 4).fit([view[:n_samples] for view in views], y)
    if width < n_samples:
        assert clf.whitening_ == 1.0
    new = [view[n_samples:] for view in views]
    found = clf.predict_proba(new)  # a warning would be an error
    assert abs((found.argmax(axis=1) == truth[n_samples:]).mean() - found.max(axis=1).mean()) < 0.15
    with pytest.warns(UserWarning, match="farther|larger"):
        clf.predict_proba([3 * view for view in new])


def test_a_constant_column_says_nothing():
    """The rounding of its mean was a deviation: in another unit or with fewer digits it said something else."""
    views, target, y = weak_views(seed=2)
    views = {name: np.hstack([view, np.full((len(y), 1), 0.1)]) for name, view in views.items()}
    clf = LMSSC().fit(views, y)
    assert clf.whitening_ > 0
    again = LMSSC().fit({name: 3.7 * view for name, view in views.items()}, y)
    np.testing.assert_allclose(again.label_distributions_, clf.label_distributions_, atol=1e-9)
    fewer_digits = {name: view[:60].astype(np.float32).astype(np.float64) for name, view in views.items()}
    assert (clf.predict(fewer_digits) == target[:60]).mean() > 0.8


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
    few = np.where(np.cumsum(y != -1) <= 5, y, -1)  # too few to hold out
    assert LMSSC().fit(views, few).whitening_ == 0


def scaled(views, measurements=None):
    """The views as `begin_formed` gets them."""
    raws = [RawView(name, np.array(view), None) for name, view in views.items()]
    scalings = fit_scalings(raws, ["zscore"] * len(raws))
    deviations = {
        v: one.std(axis=0) for v, one in enumerate(views.values()) if measurements is None or v in measurements
    }
    return FormedViews.of(scale_views(raws, scalings), FitConfig(n_neighbors=10, deviations=deviations))


@pytest.mark.parametrize("form", FORMS)
def test_views_keep_their_energy_and_others_stay(form):
    raws = weak_views()[0]
    raws["v0"] = raws["v0"] * np.arange(15)  # one column is constant
    views = scaled(raws, measurements=(0, 2))
    found = views.at(form)
    for v, (before, after) in enumerate(zip(views.views, found, strict=True)):
        assert after.squared_norm() == pytest.approx(before.squared_norm())
        assert (after is before) == (v not in (0, 2))
    some = views.at(form, np.array([5, 3]))
    np.testing.assert_allclose(some[2].data, found[2].data[[5, 3]])


def test_centred_columns_are_those_of_the_scaling_center():
    raws = [RawView(name, view * np.arange(15), None) for name, view in weak_views()[0].items()]
    centred = scale_views(raws, fit_scalings(raws, ["center"] * len(raws)))
    found = scaled({raw.name: raw.data for raw in raws}).at(Form(keeps_deviations=True))
    for one, other in zip(found, centred, strict=True):
        np.testing.assert_allclose(one.data, other.data, atol=1e-12)


def test_limits(monkeypatch):
    rng = np.random.default_rng(0)
    views = {"wide": rng.normal(size=(30, 40)), "two": rng.normal(size=(30, 2))}
    assert list(scaled(views).deviations) == [0, 1]
    assert None not in scaled(views).spectra
    monkeypatch.setattr(view_forms, "MAX_WHITENED", 29)
    assert list(scaled(views).deviations) == [0, 1]
    assert [one is None for one in scaled(views).spectra] == [True, False]
    monkeypatch.setattr(view_forms, "MAX_PRODUCTS", 30 * 2 * 2 * 2 - 1)
    assert [one is None for one in scaled(views).spectra] == [True, True]
    assert list(scaled(views).deviations) == [0, 1]


def test_one_column_in_a_large_unit_does_not_decide_alone():
    views = {name: view * np.where(np.arange(15) == 3, 100, 1) for name, view in weak_views()[0].items()}
    views["v1"] = weak_views()[0]["v1"]
    changes = scaled(views).changes(Form(keeps_deviations=True))
    assert [v for v, change in enumerate(changes) if change is not None] == [1]


def one_unit(seed=0, n_samples=300):
    """A view whose columns share a unit: the classes are in few columns that vary, the others are noise of a sensor."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 4, n_samples)
    signal = 2 * rng.normal(size=(4, 12))[target] + 2 * rng.normal(size=(n_samples, 12))
    return (
        {"x": np.hstack([signal, 0.1 * rng.normal(size=(n_samples, 188))])},
        target,
        np.where(rng.random(n_samples) < 0.2, target, -1),
    )


def test_variances_are_kept_where_standardised_columns_drown_the_classes(tmp_path):
    views, target, y = one_unit()
    rows, unlabelled = np.arange(len(y)) < 250, y == -1
    clf = LMSSC().fit({"x": views["x"][rows]}, y[rows])
    assert clf.scalings_ == {"x": "center"}
    assert "variances of columns kept" in clf.scaling_reasons_["x"]
    assert clf.whitening_ == 0
    plain = LMSSC(scaling="zscore").fit({"x": views["x"][rows]}, y[rows])
    right, before = ((one.transduction_ == target[rows])[unlabelled[rows]].mean() for one in (clf, plain))
    assert right > before + 0.05, (right, before)
    new = {"x": views["x"][~rows]}
    found = clf.predict_proba(new)
    assert (clf.classes_[found.argmax(axis=1)] == target[~rows]).mean() > before
    clf.save(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(lmssc.load(tmp_path / "model.lmssc").predict_proba(new), found)
    centred = LMSSC(scaling="center").fit({"x": views["x"][rows]}, y[rows])
    assert (centred.transduction_ == clf.transduction_).mean() > 0.98
    np.testing.assert_array_equal(clf.predict({"x": views["x"][rows]}), clf.transduction_)


def test_the_unit_of_a_view_changes_nothing():
    views, _, y = one_unit(seed=1)
    clf = LMSSC().fit(views, y)
    assert clf.scalings_ == {"x": "center"}
    again = LMSSC().fit({"x": 3.7 * views["x"]}, y)
    assert again.scalings_ == clf.scalings_
    np.testing.assert_allclose(again.label_distributions_, clf.label_distributions_, atol=1e-6)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = LMSSC().fit({"x": views["x"][order]}, y[order])
    np.testing.assert_array_equal(shuffled.label_distributions_, clf.label_distributions_[order])


@pytest.mark.parametrize(
    ("factor", "column", "n_new", "warning"),
    [
        (0.1, slice(None), 60, "nearer to zero in view 'x', columns 0, 1"),
        (0.001, slice(None), 10, "nearer to zero in view 'x', columns 0, 1"),
        (0.001, 2, 60, "nearer to zero in view 'x', column 2"),
        (1000, 2, 60, "far larger values in view 'x', column 2"),
    ],
)
def test_new_samples_in_another_unit_are_found_in_any_form(tmp_path, factor, column, n_new, warning):
    views, _, y = one_unit(seed=1)
    LMSSC().fit(views, y).save(tmp_path / "centred.lmssc")
    clf = lmssc.load(tmp_path / "centred.lmssc")
    assert clf.scalings_ == {"x": "center"}
    new = views["x"][:n_new].copy()
    new[:, column] *= factor
    for model in (clf, LMSSC(scaling="zscore").fit(views, y)):
        with pytest.warns(UserWarning, match=warning):
            model.predict_proba({"x": new})


@pytest.mark.parametrize("form", FORMS)
def test_some_of_many_samples_decide(monkeypatch, form):
    if form.keeps_deviations:
        views, target, y = one_unit(n_samples=600)
    else:
        views, target, y = weak_views(600, seed=2)
        y = np.where(np.arange(600) % 4 == 0, y, -1)
    for module in (view_forms, estimator):
        monkeypatch.setattr(module, "MAX_SAMPLES", 400)
    monkeypatch.setattr(view_forms, "MAX_CALIBRATION_SAMPLES", 350)
    monkeypatch.setattr(view_forms, "FORMS", (form,))
    seen = []
    real = view_forms.begin
    monkeypatch.setattr(
        view_forms, "begin", lambda views, *args, **more: seen.append(views) or real(views, *args, **more)
    )
    clf = LMSSC().fit(views, y)
    assert (clf.whitening_, "center" in clf.scalings_.values()) == (form.whitening, form.keeps_deviations)
    sizes = [found.n_samples for found in seen]
    assert sizes[0] == sizes[1] <= 400
    assert sizes[2:] == [600]
    plain = LMSSC(scaling="zscore").fit(views, y)
    right, before = ((one.transduction_ == target)[y == -1].mean() for one in (clf, plain))
    assert right > before + 0.03, (right, before)
    order = np.random.default_rng(0).permutation(len(y))
    again = LMSSC().fit({name: view[order] for name, view in views.items()}, y[order])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order])
    assert LMSSC(memory_limit="8GB").fit(views, y).scalings_ == plain.scalings_  # as if in parts


def test_only_measurements_that_auto_found_are_whitened():
    views, target, y = weak_views()
    rng = np.random.default_rng(0)
    components, sizes, _ = np.linalg.svd(views["v3"] - views["v3"].mean(axis=0), full_matrices=False)
    views["v3"] = components * sizes
    views["words"] = sparse.csr_array(rng.poisson(0.2, size=(len(y), 30)).astype(float))
    clf = LMSSC(scaling={"v0": "zscore"}, second_opinion=0.0).fit(views, y)
    assert clf.whitening_ > 0
    whitened = {name for name, reason in clf.scaling_reasons_.items() if "whitened" in reason}
    assert whitened == {"v1", "v2", "v4"}
    assert {name for name, scaling in describe_scalings(clf).items() if scaling == "zscore, whitened"} == whitened
    plain = LMSSC(scaling=clf.scalings_, second_opinion=0.0).fit(views, y)
    right, before = ((one.transduction_ == target)[y == -1].mean() for one in (clf, plain))
    assert right > before + 0.05, (right, before)


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
        (0.12, 1.0, 40, 1.0, 0.0),  # 0.8 standard errors
        (-0.2, 1.0, 40, 1.0, 0.0),
        (0.03, 0.1, 40, 1.0, 0.0),  # 1.5 % of the loss
        (0.05, 0.1, 40, 1.0, 1.0),
        (0.2, 0.1, 4, 1.0, 0.0),  # too few held-out labels
        (0.2, 0.1, 5, 1.0, 1.0),
    ],
)
def test_two_judges_have_to_agree(monkeypatch, gain, spread, n_held_out, proposed, taken):
    views, _, y = weak_views()
    noise = np.linspace(-1, 1, n_held_out)
    before = np.full(n_held_out, 2.0)
    after = before - gain + spread * noise / noise.std(ddof=1)
    starts = iter([FakeStart(before), FakeStart(after)])
    monkeypatch.setattr(view_forms, "begin", lambda *_, **__: next(starts))
    monkeypatch.setattr(view_forms, "propose_form", lambda *_: Form(proposed))
    targets = Targets.from_codes(y, 4)
    config = FitConfig(n_neighbors=10)
    form, start = view_forms.begin_formed(scaled(views), targets, config, FitContext())
    assert form == Form(taken)
    assert (start.confidence.losses is after) == (taken > 0)


def test_the_regression_proposes_what_helps_and_nothing_else(monkeypatch):
    views, target, y = weak_views()
    assert view_forms.propose_form(scaled(views), Targets.from_codes(y, 4)) == Form(whitening=1.0)
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(4, 2))[target] * 3 + rng.normal(size=(len(y), 2))
    strong = {"a": factors @ rng.normal(size=(2, 15)) + rng.normal(size=(len(y), 15))}  # the factors are the classes
    strong["a"] /= strong["a"].std(axis=0)
    assert view_forms.propose_form(scaled(strong), Targets.from_codes(y, 4)) == STANDARDISED
    views, _, y = one_unit()
    assert view_forms.propose_form(scaled(views), Targets.from_codes(y, 4)) == Form(keeps_deviations=True)
    same = {name: view / view.std(axis=0) for name, view in weak_views()[0].items()}
    monkeypatch.setattr(view_forms, "FORMS", (Form(keeps_deviations=True),))
    assert view_forms.propose_form(scaled(same), Targets.from_codes(weak_views()[2], 4)) == STANDARDISED


@pytest.mark.parametrize("n_samples", [240, 3200])
@pytest.mark.parametrize("with_links", [False, True])
def test_starts_that_are_compared_hold_out_the_same_labels(monkeypatch, n_samples, with_links):
    views, target, y = weak_views(n_samples, n_views=3)
    y = np.where(np.cumsum(y != -1) <= 160, y, -1)
    folds = []

    def keep(held, *trusts):
        folds.append([fold.rows.tolist() for fold in held.folds])
        return judge_opinion(held, *trusts)

    monkeypatch.setattr(begin, "judge_opinion", keep)
    monkeypatch.setattr(Start, "is_better", lambda *_: len(folds) == 2)  # of whitening, not of links
    monkeypatch.setattr(view_forms, "MIN_GAIN", -np.inf)
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


@pytest.mark.parametrize("limits", [(None, "2GB"), ("2GB", None)])
def test_an_interrupted_fit_resumes_with_its_form_under_another_memory_limit(monkeypatch, tmp_path, limits):
    """With a limit, many samples choose no form; but what began in a form goes on in it."""
    views, _, y = one_unit(n_samples=500)
    for module in (view_forms, estimator):
        monkeypatch.setattr(module, "MAX_SAMPLES", 400)
    path = tmp_path / "fit.checkpoint"
    whole, other = (LMSSC(max_iter=6, tol=0, memory_limit=limit).fit(views, y) for limit in limits)
    assert whole.scalings_ != other.scalings_

    def stop(progress):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        LMSSC(max_iter=6, tol=0, memory_limit=limits[0], checkpoint=path, callback=stop).fit(views, y)
    again = LMSSC(max_iter=6, tol=0, memory_limit=limits[1], checkpoint=path).fit(views, y)
    assert again.scalings_ == whole.scalings_
    np.testing.assert_array_equal(again.label_distributions_, whole.label_distributions_)
    np.testing.assert_array_equal(again.predict_proba(views), again.label_distributions_)
