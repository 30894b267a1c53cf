"""Answers for new samples: less confident with views missing or far away, the same for samples like those of fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import lmssc
from lmssc import LMSSC
from lmssc.core.embed_views import embed_views
from lmssc.core.new_samples import PROBE, NewSampleProbe
from lmssc.datasets import make_multiview


def _halves(seed, n_fit=500, **options):
    data = make_multiview(2 * n_fit, labelled=1.0, random_state=seed, **options)
    y = np.where(np.random.default_rng(seed).random(n_fit) < 0.3, data.target[:n_fit], -1)
    views = [np.asarray(view) for view in data.views]
    clf = LMSSC().fit([view[:n_fit] for view in views], y)
    return clf, [view[n_fit:] for view in views], data.target[n_fit:]


def _right_and_sure(clf, views, truth):
    proba = clf.predict_proba(views)
    return (clf.classes_[proba.argmax(axis=1)] == truth).mean(), proba.max(axis=1).mean()


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_views_that_new_samples_lack_cost_confidence(kept):
    """28 % right at 78 % with one of four views before, 50 % at 80 % with two."""
    results = []
    for seed in range(3):
        clf, new, truth = _halves(seed, n_views=4, n_classes=5)
        views = [np.where(v < kept, view, np.nan) for v, view in enumerate(new)]
        results.append(_right_and_sure(clf, views, truth))
    right, sure = np.mean(results, axis=0)
    assert abs(right - sure) < 0.06
    assert right > {1: 0.5, 2: 0.65, 3: 0.8}[kept]


@pytest.mark.filterwarnings("ignore:most new samples have far larger values")
def test_far_away_the_answer_is_the_frequencies_of_the_classes():
    """30 standard deviations away 89 % before, in another unit 94 %."""
    clf, new, _ = _halves(0)
    labels = clf.transduction_[clf._labelled]
    frequencies = [(labels == code).mean() for code in clf.classes_]
    rng = np.random.default_rng(0)
    for away in (
        [view + 30 * view.std(axis=0) * rng.choice([-1, 1], view.shape[1]) for view in new],
        [1000 * view for view in new],
        [new[0], new[1], 1000 * new[2]],
    ):
        np.testing.assert_allclose(clf.predict_proba(away), np.tile(frequencies, (len(new[0]), 1)), atol=0.01)


@pytest.mark.filterwarnings("ignore:(most|1 of 1) new samples")
def test_confidence_falls_steadily_as_a_sample_leaves():
    clf, new, _ = _halves(1)
    sure = [clf.predict_proba([factor * view[:1] for view in new]).max() for factor in (1, 3, 10, 30, 100)]
    assert sure[-1] < 0.45
    assert all(np.diff(sure) <= 0.05)


def test_what_a_position_does_not_show_counts_as_far_away():
    """One odd feature, which the latent positions leave out."""
    rng = np.random.default_rng(0)
    signal = rng.integers(2, size=400) * 6.0 - 3
    X = np.column_stack([signal[:, None] + rng.standard_normal((400, 40)), rng.standard_normal(400)])
    y = np.where(rng.random(400) < 0.2, (signal > 0).astype(int), -1)
    clf = LMSSC(n_components=1).fit([X], y)
    new = X[:1] + 1e-6
    odd = new + np.eye(41)[-1] * 100
    assert clf.predict_proba([new]).max() > 0.9
    with pytest.warns(
        UserWarning,
        match="1 of 1 new samples lie farther from the samples of fit than these from each other, most of all",
    ):
        assert clf.predict_proba([odd]).max() < 0.65


def test_samples_like_those_of_fit_stay_as_they_are(digits):
    """Accuracy and confidence of new digits, with and without what is made of far samples."""
    rng = np.random.default_rng(0)
    new, rows = np.split(rng.permutation(len(digits.target)), [400])
    y = np.where(rng.random(len(rows)) < 0.2, digits.target[rows], -1)
    clf = LMSSC(max_iter=3).fit([view[rows] for view in digits.views], y)
    views = [view[new] for view in digits.views]
    now = _right_and_sure(clf, views, digits.target[new])
    clf._probe = None
    np.testing.assert_allclose(now, _right_and_sure(clf, views, digits.target[new]), atol=0.01)


@pytest.fixture(scope="module", params=[load_breast_cancer, load_wine, load_digits])
def halves_of_views(request):
    """A model of half of the samples, and the views of the others: the first and the last columns."""
    X, target = request.param(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(target))[:600]
    X, target, n = X[order], target[order], len(order) // 2
    y = np.where(np.arange(n) < max(30, n // 5), target[:n], -1)
    views = {"first": X[:, : X.shape[1] // 2], "last": X[:, X.shape[1] // 2 :]}
    clf = LMSSC(max_iter=2).fit({name: view[:n] for name, view in views.items()}, y)
    return clf, {name: view[n:] for name, view in views.items()}


@pytest.mark.parametrize("name", ["first", "last"])
@pytest.mark.parametrize("unit", [lambda view: 10 * view, lambda view: 1.8 * view + 32, lambda view: view + 273.15])
def test_a_view_in_another_unit_is_told(halves_of_views, name, unit):
    """These were answered without a word, with the frequencies of the classes or even with confidence."""
    clf, new = halves_of_views
    with pytest.warns(UserWarning, match=f"view '{name}'"):
        clf.predict(new | {name: unit(new[name])})


def test_few_odd_samples_among_many_are_not_told(halves_of_views):
    """Warnings are errors: neither ordinary samples, in small or large batches, nor one far away raise it."""
    clf, new = halves_of_views
    for size in (1, 10, 30, len(new["first"])):
        for first in range(0, len(new["first"]) - size + 1, size):
            clf.predict({name: view[first : first + size] for name, view in new.items()})
    one = {name: view[:20].copy() for name, view in new.items()}
    one["last"][0] *= 10
    clf.predict(one)


def test_words_that_fit_never_saw_say_nothing():
    data = make_multiview(300, n_views=1, sparse=True, labelled=0.3, random_state=0)
    clf = LMSSC(scaling="tfidf").fit(data.views, data.y)
    known = clf.transduction_[clf._labelled]
    with pytest.warns(UserWarning, match="get the class frequencies"):
        proba = clf.predict_proba([0 * data.views[0][:1]])
    np.testing.assert_allclose(proba[0], [(known == code).mean() for code in clf.classes_])


def test_few_samples_are_predicted_as_ever():
    X = np.array([[0.0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    clf = LMSSC().fit([X], [0, -1, -1, 1, -1, -1])
    assert len(X) < PROBE.min_samples
    np.testing.assert_array_equal(clf.predict([[[0.2, 0.2], [8.8, 8.8]]]), [0, 1])


@pytest.mark.parametrize("options", [{"calibrate": False}, lmssc.paper_settings()])
def test_scores_that_are_not_calibrated_stay_as_they_are(options):
    data = make_multiview(120, labelled=0.3, random_state=0)
    clf = LMSSC(**options, **({"random_state": 0} if "init" in options else {})).fit(
        [np.maximum(view, 0) for view in data.views], data.y
    )
    assert clf._probe is None


def test_hidden_views_answer_alike_in_any_order_and_after_saving(tmp_path):
    clf, new, _ = _halves(2, n_fit=200)
    views = [new[0], np.full_like(new[1], np.nan), new[2]]
    proba = clf.predict_proba(views)
    order = np.random.default_rng(0).permutation(len(proba))
    np.testing.assert_array_equal(clf.predict_proba([view[order] for view in views]), proba[order])
    clf.save(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(lmssc.load(tmp_path / "model.lmssc").predict_proba(views), proba)


def test_the_ridge_is_what_is_expected_of_a_gaussian():
    """Against the conditional mean, written out with the covariance of all features."""
    rng = np.random.default_rng(0)
    W, C, noise = rng.standard_normal((5, 3)), np.diag([4.0, 1.0, 0.5]), 0.3
    x = rng.standard_normal((7, 5))
    expected = x @ np.linalg.solve(W @ C @ W.T + noise * np.eye(5), W @ C)
    np.testing.assert_allclose(embed_views(x @ W, W.T @ W, noise * np.linalg.inv(C)), expected)


@pytest.mark.filterwarnings("ignore:most new samples have far larger values")
@pytest.mark.parametrize("n", [12, 300])
def test_far_away_is_far_away_also_if_no_sample_of_fit_is_complete(n):
    """92 % sure before, because no complete sample could be probed; with 12 samples none at all."""
    data = make_multiview(n, labelled=0.4, random_state=0)
    for v, view in enumerate(data.views):
        view[v::3] = np.nan
    clf = LMSSC().fit(data.views, data.y)
    labels = clf.transduction_[clf._labelled]
    frequencies = [(labels == code).mean() for code in clf.classes_]
    far = [np.full((1, view.shape[1]), 50.0) for view in data.views]
    for hidden in (None, 0):
        shown = [np.full_like(view, np.nan) if v == hidden else view for v, view in enumerate(far)]
        np.testing.assert_allclose(clf.predict_proba(shown), [frequencies], atol=0.01)


def test_confidence_without_complete_samples_is_that_of_the_most_views_that_some_have():
    """Three of four views are had by enough samples; new samples have all four."""
    data = make_multiview(1000, n_views=4, n_classes=3, labelled=1.0, random_state=0)
    y = np.where(np.random.default_rng(0).random(500) < 0.3, data.target[:500], -1)
    fit = [view[:500].copy() for view in data.views]
    for v, view in enumerate(fit):
        view[v::4] = np.nan
    clf = LMSSC().fit(fit, y)
    assert clf._probe._measurable_views(np.ones(4, dtype=bool)).sum() == 3
    right, sure = _right_and_sure(clf, [view[500:] for view in data.views], data.target[500:])
    assert right > 0.85
    assert abs(right - sure) < 0.1


def test_most_views_that_enough_samples_have():
    """Against all subsets, with 20 samples needed: two views of 25, not one of 60."""
    present = np.zeros((4, 120), dtype=bool)
    present[0, :60] = present[1, 60:85] = present[2, 60:100] = present[3, 85:110] = True
    probe = NewSampleProbe(np.arange(120), np.zeros((4, 120, 1)), np.ones((4, 120)), present, np.eye(1))
    np.testing.assert_array_equal(probe._measurable_views(np.ones(4, dtype=bool)), [False, True, True, False])
    np.testing.assert_array_equal(probe._measurable_views(np.array([True, True, False, True])), np.eye(4)[0] > 0)
    few = NewSampleProbe(np.arange(19), np.zeros((4, 19, 1)), np.ones((4, 19)), present[:, :19], np.eye(1))
    assert few._measurable_views(np.ones(4, dtype=bool)) is None


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_calibration_does_not_move_new_samples(missing):
    """One ridge for all samples that lack views, whatever is made of the confidence."""
    data = make_multiview(150, missing=missing, labelled=0.3, random_state=0)
    new = [view + 0.01 for view in make_multiview(20, labelled=1, random_state=1).views]
    new[1][:] = np.nan
    sure, plain = (
        LMSSC(max_iter=3, calibrate=calibrate, second_opinion=0.0).fit(data.views, data.y)
        for calibrate in (True, False)
    )
    np.testing.assert_array_equal(plain.transform(new), sure.transform(new))
    assert sure._probe.ridge is sure._ridge
    if missing:
        incomplete = sure.latent_[~np.all(data.present, axis=0)]
        np.testing.assert_allclose(np.vdot(incomplete @ sure._ridge, incomplete), sure.objective_terms_["ridge"][-1])


@pytest.fixture(scope="module")
def texts():
    """Word counts of two topics, and a measurement."""
    rng = np.random.default_rng(0)
    target = np.arange(80) % 2
    topics = rng.dirichlet(np.full(200, 0.05), size=2)
    words = np.array([rng.multinomial(30, topics[code]) for code in target], dtype=float)
    return words, rng.normal(size=(80, 2)), np.where(np.arange(80) < 20, target * (np.arange(80) > 4), -1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("method", [LMSSC, lmssc.GFHF, lmssc.AMGL, lmssc.MLAN])
def test_a_text_without_a_known_word_gets_the_class_frequencies(texts, method, form):
    words, numbers, y = texts
    clf = method(scaling="tfidf").fit([form(words)], y)
    new = np.vstack([np.zeros(200), words[:1] * 2, np.zeros(200)])
    with pytest.warns(UserWarning, match="2 new samples have only zeros in their views"):
        found = clf.predict_proba([form(new)])
    np.testing.assert_allclose(found[[0, 2]], [[0.6, 0.4]] * 2, atol=1e-6)
    assert abs(found[1, 0] - 0.6) > 0.1
    # With a measurement beside the text something is known, and numbers may be zero.
    both = method(scaling=["tfidf", "zscore"]).fit([form(words), numbers], y)
    assert (both.predict_proba([form(new), np.zeros((3, 2))]).sum(axis=1) > 0.99).all()
    with pytest.warns(UserWarning, match="1 new samples"):
        both.predict_proba([form(new[:1]), np.full((1, 2), np.nan)])


def test_a_text_without_words_in_fit_is_recognised(texts):
    words, _, y = texts
    words = np.vstack([np.zeros(200), words])
    clf = LMSSC(scaling="tfidf").fit([words], np.append(1, y))
    np.testing.assert_array_equal(clf.predict_proba([words[:1]]), clf.label_distributions_[:1])


def test_labels_of_fit_do_not_flatter_new_samples():
    """Noise, of which half of the answers are right: 80 % sure before, because P had seen the labels of the probe.

    In 8 draws the mean confidence was 0.71 to 0.80, and is 0.50 to 0.55; this is the draw with the highest of both.
    """
    rng = np.random.default_rng(0)
    X, target = rng.standard_normal((600, 60)), rng.integers(2, size=600)
    clf = LMSSC().fit([X[:300]], target[:300])
    assert clf.predict_proba([X[300:]]).max(axis=1).mean() < 0.58


def test_probes_with_held_out_labels_survive_saving(tmp_path):
    clf, new, _ = _halves(2, n_fit=200)
    held_out = clf._probe.held_out
    np.testing.assert_array_equal(held_out.any(axis=1), clf._targets.labelled[clf._probe.samples])
    np.testing.assert_allclose(held_out.sum(axis=1)[held_out.any(axis=1)], 1)
    clf.save(tmp_path / "model.lmssc")
    again = lmssc.load(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(again._probe.held_out, held_out)
    partial = [new[0], np.full_like(new[1], np.nan), new[2]]
    np.testing.assert_array_equal(again.predict_proba(partial), clf.predict_proba(partial))


def test_residuals_of_samples_of_fit_are_judged_as_if_they_had_no_part_in_the_loadings():
    """Divided by (1 − h)², with the leverages h in H, they are nearer to those of samples that are left out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12)) @ np.diag(np.linspace(3, 1, 12))
    views = [X]
    clf = LMSSC(scaling=None, n_components=6).fit(views, np.where(np.arange(60) < 20, np.arange(60) % 2, -1))
    H = clf.latent_
    leverages = np.einsum("ij,jk,ik->i", H, np.linalg.inv(H.T @ H), H)
    np.testing.assert_allclose(clf._probe.leverages, leverages[clf._order.samples[clf._probe.samples]], atol=1e-6)
    outside = []
    for i in range(60):
        rest = np.delete(X, i, axis=0)
        W = np.linalg.svd(rest, full_matrices=False)[2][:6]
        outside.append(((X[i] - X[i] @ W.T @ W) ** 2).sum())
    W = np.linalg.svd(X, full_matrices=False)[2][:6]
    inside = ((X - X @ W.T @ W) ** 2).sum(axis=1)
    corrected = inside / (1 - leverages) ** 2
    right, plain, better = (np.quantile(one, 0.9) for one in (outside, inside, corrected))
    assert right - plain > 0.3 * right
    assert right - plain > 1.5 * abs(right - better)
