"""The second opinion: kernel ridge regression on all features, and how far it is trusted."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax

import oracles
from lmssc import LMSSC, load, paper_settings
from lmssc.core import opinion_trust, propagation, second_opinion
from lmssc.core.graph import learn_graph
from lmssc.core.held_out import Fold, HeldOutLabels
from lmssc.core.kernel_ridge import RIDGES, KernelRidge
from lmssc.core.laplacian import laplacian
from lmssc.core.mean_kernel import MeanKernel, Pairs, kernel_values
from lmssc.core.mixture_shares import PRIOR_SAMPLES, mixture_shares
from lmssc.core.opinion_trust import (
    GAIN_OF_GRAPH,
    LABELLED_SHARE,
    LEAST_WEIGHT,
    cost_of_trust,
    evidence_for_graph,
    least_trust,
    unseen_scores,
)
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import Opinion, OpinionRegression, SecondOpinion, anchor_weight, explained_variances
from lmssc.core.targets import Targets
from lmssc.data.view import View
from lmssc.data.views import Views
from lmssc.datasets import make_multiview
from peers import interrupt_and_resume


def spread_thinly(n=240, n_labelled=120):
    """Two views in which each of many features says a little about four classes, below eight factors of no interest."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, n)
    factors = [rng.normal(size=(n, 8)) @ rng.normal(size=(8, 60)) for _ in range(2)]
    views = [0.35 * rng.normal(size=(4, 60))[truth] + rng.normal(size=(n, 60)) + part for part in factors]
    return views, truth, np.where(np.arange(n) < n_labelled, truth, -1)


@pytest.fixture(scope="module")
def trusted():
    views, truth, y = spread_thinly()
    return views, truth, y, LMSSC(second_opinion=0.5).fit(views, y)


@pytest.fixture
def small():
    rng = np.random.default_rng(1)
    Xs = [rng.normal(size=(30, 4)), rng.normal(size=(30, 3)), rng.normal(size=(30, 5))]
    present = rng.random((3, 30)) < 0.7
    present[0] |= ~present.any(axis=0)
    codes = np.where(np.arange(30) < 14, rng.integers(0, 3, 30), -1)
    codes[:3] = [0, 1, 2]
    return Xs, present, codes


def as_views(Xs, present=None):
    if present is None:
        return Views.from_arrays(Xs)
    return Views([View(np.where(has[:, None], X, 0), None, has) for X, has in zip(Xs, present, strict=True)])


KINDS = [{}, {"linear": True}, {"laplacian": 1.0}, {"laplacian": 0.5}]
WEIGHTS = np.array([0.2, 2.0, 0.8])


def kind(kernel):
    return {"linear": kernel.linear, "laplacian": kernel.laplacian}


def kernels_of(regression, Xs, present, rows):
    """The kernels of a mixture, by the oracle."""
    return [oracles.mean_kernel(Xs, present, rows, **kind(one), weights=one.weights) for one in regression.kernels]


def mixture(regression, scores):
    """The distributions of a mixture, given the scores of its regressions."""
    parts = zip(regression.shares, regression.temperatures, scores, strict=True)
    return sum(share * softmax(one / temperature, axis=1) for share, temperature, one in parts)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lacking", [False, True])
def test_kernel_is_the_mean_over_the_views_that_both_have(small, lacking, kind, weights):
    Xs, present, _ = small
    views = as_views(Xs, present if lacking else None)
    found = replace(MeanKernel.of(views.take(np.arange(14)), **kind), weights=weights)(views)
    right = oracles.mean_kernel(Xs, present if lacking else None, np.arange(14), **kind, weights=weights)
    np.testing.assert_allclose(found, right, atol=1e-9)
    assert np.linalg.eigvalsh(right[:14]).min() > -1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_kernel_of_centred_sparse_views_is_that_of_dense_ones(small, kind):
    Xs, present, _ = small
    offset = np.array([0.5, -1.0, 2.0, 0.0])
    raw = np.where(present[1][:, None], Xs[0] + offset, 0)
    found = View(sparse.csr_array(raw), offset, present[1])
    dense = View(np.where(present[1][:, None], Xs[0], 0), None, present[1])
    rows = np.arange(14)
    kernels = [MeanKernel.of(Views([view]).take(rows), **kind)(Views([view])) for view in (found, dense)]
    np.testing.assert_allclose(*kernels, atol=1e-9)
    far = View(np.full((1, 4), 1e200))
    assert np.isfinite(MeanKernel.of(Views([dense]).take(rows), **kind)(Views([far]))).all()


@pytest.mark.parametrize("lacking", [False, True])
def test_kernels_are_the_same_alone_and_together(small, lacking):
    Xs, present, _ = small
    views = as_views(Xs, present if lacking else None)
    landmarks = views.take(np.arange(14))
    kernels = [
        replace(MeanKernel.of(landmarks, **kind), weights=weights) for kind in KINDS for weights in (None, WEIGHTS)
    ]
    for kernel, found in zip(kernels, kernel_values(kernels, views), strict=True):
        np.testing.assert_array_equal(found, kernel(views))


def leave_one_out(K, Y, ridge):
    """Scores of each labelled sample, predicted without its own label."""
    found = []
    for i in range(len(Y)):
        order = np.r_[np.delete(np.arange(len(Y)), i), i]
        found.append(oracles.second_opinion(K[np.ix_(order, order)], Y[order[:-1]], ridge)[-1])
    return np.array(found)


def best_left_out(K, Y):
    """The scores of `leave_one_out` with the ridge that has the smallest errors, and the sum of their squares."""
    found = [leave_one_out(K, Y, ridge) for ridge in RIDGES]
    errors = [float(np.square(one - Y).sum()) for one in found]
    return found[int(np.argmin(errors))], min(errors)


def thresholds(n=200):
    """Two views of five heavy-tailed features, of which the sign of the first is that of the class."""
    rng = np.random.default_rng(3)
    codes, views = rng.integers(0, 2, n), [rng.standard_t(1.5, size=(n, 5)) for _ in range(2)]
    for view in views:
        view[:, 0] = np.abs(view[:, 0]) * (2 * codes - 1)
    return views, codes


def samples_of(case):
    """80 samples whose classes a certain kernel finds best."""
    rng = np.random.default_rng(0)
    if case == "thresholds":
        return thresholds(80)
    if case == "sum":  # of all features, below factors of no interest
        codes, factors = rng.integers(0, 2, 80), rng.normal(size=(80, 5)) @ rng.normal(size=(5, 40))
        return [codes[:, None] * rng.normal(size=40) + 3 * factors + rng.normal(size=(80, 40))], codes
    codes, angles = rng.integers(0, 2, 80), rng.uniform(0, 2 * np.pi, 80)
    radii = 1 + 0.5 * codes + 0.01 * rng.normal(size=80)
    return [radii[:, None] * np.c_[np.cos(angles), np.sin(angles)]], codes


@pytest.mark.parametrize(
    ("case", "expected"), [("thresholds", "Laplacian"), ("sum", "linear"), ("circles", "Gaussian")]
)
def test_kernels_that_find_left_out_labels_better_have_a_larger_share(case, expected):
    Xs, codes = samples_of(case)
    Y = np.eye(codes.max() + 1)[codes]
    regression = OpinionRegression(as_views(Xs), Targets.from_codes(codes, len(Y[0])), laplacian=True)
    names = ["linear" if one.linear else "Laplacian" if one.laplacian else "Gaussian" for one in regression.kernels]
    assert names[int(np.argmax(regression.shares))] == expected
    for fit, K in zip(regression.fits, kernels_of(regression, Xs, None, np.arange(80)), strict=True):
        np.testing.assert_allclose(np.square(fit.errors).sum(), best_left_out(K, Y)[1], rtol=1e-5)


def test_shares_maximise_the_left_out_likelihood(small):
    """With two more samples that all regressions explain alike; those with less than a twentieth are left out."""
    Xs, _, codes = small
    Y, rows, likelihoods = np.eye(3)[codes[:14]], np.arange(14), []
    views, targets = as_views(Xs), Targets.from_codes(codes, 3)
    for one in KINDS[:3]:
        kernel = MeanKernel.of(views.take(rows), **one)
        weights = explained_variances(kernel, views.take(rows), Y, None)
        scores = best_left_out(oracles.mean_kernel(Xs, None, rows, **one, weights=weights / weights.mean()), Y)[0]
        temperature = second_opinion.fit_temperature(scores, Y)
        likelihoods.append(softmax(scores / temperature, axis=1)[rows, codes[:14]])
    likelihoods = np.array(likelihoods)

    def loss(logits):
        shares = softmax(np.append(logits, 0.0))
        return -np.log(shares @ likelihoods).sum() - PRIOR_SAMPLES / 3 * np.log(shares).sum()

    shares = softmax(np.append(minimize(loss, np.zeros(2), tol=1e-12).x, 0.0))
    np.testing.assert_allclose(mixture_shares(likelihoods), shares, atol=1e-3)
    kept = shares >= second_opinion.MIN_SHARE
    regression = OpinionRegression(views, targets, laplacian=True)
    np.testing.assert_allclose(regression.shares, shares[kept] / shares[kept].sum(), atol=2e-3)


def test_a_sample_with_twice_the_weight_counts_as_two():
    likelihoods = np.random.default_rng(0).random((3, 8))
    weights = np.array([2.0, 1, 1, 3, 1, 1, 1, 1])
    repeated = np.repeat(likelihoods, weights.astype(int), axis=1)
    np.testing.assert_allclose(mixture_shares(likelihoods, weights), mixture_shares(repeated))


def unequal_views(n=300):
    """One view of five classes, and three of factors that have nothing to do with them."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 5, n)
    views = [rng.normal(size=(n, 3)) @ rng.normal(size=(3, 20)) + rng.normal(size=(n, 20)) for _ in range(3)]
    return [1.1 * rng.normal(size=(5, 20))[codes] + rng.normal(size=(n, 20)), *views], codes


@pytest.mark.parametrize("lacking", [False, True])
def test_views_weigh_by_what_they_explain_alone(lacking):
    Xs, codes = unequal_views(80)
    present = np.random.default_rng(0).random((4, 80)) < 0.8 if lacking else None
    regression = OpinionRegression(as_views(Xs, present), Targets.from_codes(codes, 5))
    Y, rows = np.eye(5)[codes], np.arange(80)
    nothing = best_left_out(np.zeros((80, 80)), Y)[1]
    for kernel in regression.kernels:
        alone = [
            best_left_out(oracles.mean_kernel([X], None if present is None else present[[v]], rows, kernel.linear), Y)[
                1
            ]
            for v, X in enumerate(Xs)
        ]
        explained = np.maximum(1 - np.array(alone) / nothing, second_opinion.MIN_EXPLAINED)
        np.testing.assert_allclose(kernel.weights, explained / explained.mean(), rtol=1e-4)
        assert kernel.weights[0] > 2 * kernel.weights[1:].max()


def test_kernels_of_rows_far_from_the_origin(small):
    """Only the landmarks are centred, because there may be many rows."""
    X = small[0][0] + 1e6
    centred = X - X[:14].mean(axis=0)
    pairs = Pairs.of(View(X), View(X[:14]))
    np.testing.assert_allclose(pairs.products, centred @ centred[:14].T, atol=1e-7)
    np.testing.assert_allclose(pairs.squares, oracles.squared_distances(X)[:, :14], atol=0.02)


def test_a_slice_of_views_is_their_rows_without_a_copy(small):
    views = as_views(*small[:2])
    for view, found, right in zip(views, views.take(slice(4, 9)), views.take(np.arange(4, 9)), strict=True):
        np.testing.assert_array_equal(found.data, right.data)
        np.testing.assert_array_equal(found.present, right.present)
        assert np.shares_memory(found.data, view.data)


def test_a_constant_alone_explains_as_much_as_a_kernel_of_zeros(small):
    """The shares of variance that views explain are relative to it; one landmark is enough."""
    _, _, y = small
    targets = Targets.from_codes(y, 3).matrix(np.dtype(float))[y >= 0]
    fits = [KernelRidge(None, np.zeros((len(targets), width)), targets) for width in (1, len(targets))]
    np.testing.assert_allclose(fits[0].errors, fits[1].errors, atol=1e-9)
    others = targets.sum(axis=0) - targets
    np.testing.assert_allclose(fits[0].errors, targets - others / (len(targets) - 1 + fits[0].ridge), atol=1e-9)


def test_fit_with_views_that_weigh_differently(tmp_path):
    """They pay, whatever the order of the views, and a sample without the best one has the opinion of the others."""
    Xs, truth = unequal_views()
    y = np.where(np.arange(300) < 100, truth, -1)
    clf = LMSSC(second_opinion=0.9).fit(Xs, y)
    np.testing.assert_array_equal(
        LMSSC(second_opinion=0.9).fit(Xs[::-1], y).label_distributions_, clf.label_distributions_
    )
    clf.save(tmp_path / "model.lmssc")
    new = [X[200:] + 0.01 for X in Xs]
    np.testing.assert_array_equal(load(tmp_path / "model.lmssc").predict_proba(new), clf.predict_proba(new))
    new[0] = np.full_like(new[0], np.nan)
    assert np.isfinite(clf.predict_proba(new)).all()


def test_a_laplacian_kernel_is_not_tried_if_it_would_take_long(monkeypatch):
    Xs, codes = thresholds(80)
    views, targets = as_views(Xs), Targets.from_codes(codes, 2)

    def has_laplacian(**options):
        return any(kernel.laplacian for kernel in OpinionRegression(views, targets, **options).kernels)

    assert not has_laplacian()
    for limit, tried in ((80 * 80 * 10, True), (80 * 80 * 10 - 1, False)):
        monkeypatch.setattr(second_opinion, "MAX_ABSOLUTE_DIFFERENCES", limit)
        assert has_laplacian(laplacian=True) == tried


def test_fit_with_a_laplacian_kernel(tmp_path):
    """It depends neither on the order nor on how views are stored, and can be saved; a sample may lack a view."""
    views, truth = thresholds()
    y = np.where(np.arange(200) < 80, truth, -1)
    clf = LMSSC(second_opinion=0.9, scaling=None).fit(views, y)
    assert any(kernel.laplacian for kernel in clf._second_opinion.kernels)
    order = np.random.default_rng(4).permutation(200)
    again = LMSSC(second_opinion=0.9, scaling=None).fit([views[1][order], views[0][order]], y[order])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order])
    stored = LMSSC(second_opinion=0.9, scaling=None).fit([sparse.csr_array(view) for view in views], y)
    np.testing.assert_allclose(stored.label_distributions_, clf.label_distributions_, atol=1e-6)
    clf.save(tmp_path / "model.lmssc")
    new = [view[80:120] + 0.1 for view in views]
    new[0][::2] = np.nan
    np.testing.assert_array_equal(load(tmp_path / "model.lmssc").predict_proba(new), clf.predict_proba(new))


def test_a_subset_of_large_data_judges_the_kernel_that_all_get(monkeypatch):
    """Laplacian kernels would take too long there, so that held-out labels do not judge them either."""
    views, truth = thresholds()
    y = np.where(np.arange(200) < 80, truth, -1)
    monkeypatch.setattr("lmssc.core.held_out.MAX_CALIBRATION_SAMPLES", 150)
    asked = []

    class Watched(OpinionRegression):
        def __init__(self, *arguments, laplacian=False):
            asked.append(laplacian)
            super().__init__(*arguments, laplacian=laplacian)

    monkeypatch.setattr("lmssc.core.opinion_trust.OpinionRegression", Watched)
    monkeypatch.setattr("lmssc.core.begin.OpinionRegression", Watched)
    LMSSC(second_opinion=0.5, scaling=None).fit(views, y)
    assert asked == [False, False]


def test_few_labels_of_many_samples_all_judge_the_second_opinion():
    """Short texts with common words: the words of a topic say more than the nearest texts.

    Of the 160 labels about 60 are among the first 3,000 samples. With these alone it was not trusted: 39 % were right.
    """
    rng = np.random.default_rng(0)
    n_samples, n_words = 8000, 3000
    topic = rng.integers(15, size=n_samples)
    of_topic = np.array([rng.permutation(n_words)[:150] for _ in range(15)])
    common = 1 / np.arange(10, n_words + 10)
    words = rng.choice(n_words, size=(n_samples, 10), p=common / common.sum())
    own = of_topic[topic[:, None], rng.integers(150, size=words.shape)]
    words = np.where(rng.random(words.shape) < 0.6, own, words)
    starts = np.arange(0, words.size + 1, 10)
    texts = sparse.csr_array((np.ones(words.size, np.float32), words.ravel(), starts), shape=(n_samples, n_words))
    texts.sum_duplicates()
    truth = topic % 5
    y = np.where(rng.permutation(n_samples) < 160, truth, -1)
    clf, hidden = LMSSC(max_iter=1).fit([texts], y), y < 0
    right, sure = clf.transduction_[hidden] == truth[hidden], clf.label_distributions_[hidden].max(axis=1)
    assert clf.second_opinion_ > 0
    assert abs(right.mean() - sure.mean()) < 0.1
    assert right.mean() > 0.6


def test_signal_spread_over_all_features_is_found():
    """Two classes, three views of 200 features, each of which says a little, below 15 factors of no interest."""
    rng = np.random.default_rng(4)
    truth, factors = rng.integers(0, 2, 300), rng.normal(size=(300, 15)) * np.linspace(0.2, 2, 15)
    views = [
        truth[:, None] * 0.3 * rng.normal(size=200) * (rng.random(200) < 0.5)
        + 0.5 * factors @ rng.normal(size=(15, 200))
        + rng.normal(size=(300, 200))
        for _ in range(3)
    ]
    clf = LMSSC().fit(views, np.where(np.arange(300) < 90, truth, -1))
    assert clf._second_opinion.kernels[int(np.argmax(clf._second_opinion.shares))].linear
    assert (clf.transduction_ == truth)[90:].mean() > 0.8


@pytest.mark.parametrize("laplacian", [False, True])
@pytest.mark.parametrize("lacking", [False, True])
def test_regressions_and_held_out_labels_are_those_of_the_dense_formula(small, lacking, laplacian):
    Xs, present, codes = small
    present = present if lacking else None
    targets, views = Targets.from_codes(codes, 3), as_views(Xs, present)
    regression = OpinionRegression(views, targets, laplacian=laplacian)
    Ks, Y = kernels_of(regression, Xs, present, np.arange(14)), np.eye(3)[codes[:14]]
    errors = [[np.square(leave_one_out(K, Y, ridge) - Y).sum() for ridge in RIDGES] for K in Ks]
    ridges = [fit.ridge for fit in regression.fits]
    assert ridges == [RIDGES[np.argmin(one)] for one in errors]
    right = mixture(regression, [oracles.second_opinion(K, Y, ridge) for K, ridge in zip(Ks, ridges, strict=True)])
    np.testing.assert_allclose(regression.finish(0.5)(views), right, atol=1e-6)
    held = np.array([1, 5, 6])
    rest = np.delete(np.arange(14), held)
    order = np.r_[rest, held, np.arange(14, 30)]
    scores = [oracles.second_opinion(K[order][:, rest], Y[rest], ridge) for K, ridge in zip(Ks, ridges, strict=True)]
    found = regression.distributions(regression.kernel(views), regression.coefficients(held))
    np.testing.assert_allclose(found[order], mixture(regression, scores), atol=1e-6)
    np.testing.assert_allclose(regression.held_out_distributions(held), found[held], atol=1e-9)


def test_labels_that_are_not_certain_weigh_less(small):
    Xs, _, codes = small
    right = np.linspace(0.1, 0.95, 14)
    targets = Targets.from_codes(codes, 3).doubt(np.arange(14), right)
    regression = OpinionRegression(as_views(Xs), targets)
    Ks, Y = kernels_of(regression, Xs, None, np.arange(14)), np.eye(3)[codes[:14]]

    def distributions(kept):
        """Weighted kernel ridge regression: k·(K + λ·W⁻¹)⁻¹·Y."""
        scores = []
        for K, fit in zip(Ks, regression.fits, strict=True):
            system = K[kept][:, kept] + 1 + fit.ridge * np.diag(1 / right[kept])
            scores.append((K[:, kept] + 1) @ np.linalg.solve(system, Y[kept]))
        return mixture(regression, scores)

    np.testing.assert_allclose(regression.finish(0.5)(as_views(Xs)), distributions(np.arange(14)), atol=1e-6)
    held = np.array([1, 5, 6])
    rest = np.delete(np.arange(14), held)
    np.testing.assert_allclose(regression.held_out_distributions(held), distributions(rest)[held], atol=1e-6)
    for one, left_out in enumerate(regression.left_out_distributions()):
        np.testing.assert_allclose(left_out, distributions(np.delete(np.arange(14), one))[one], atol=1e-6)


def test_more_labels_than_landmarks_are_regressed_on_the_kernels_of_some(small, monkeypatch):
    Xs, _, codes = small
    monkeypatch.setattr(second_opinion, "MAX_LANDMARKS", 8)
    regression = OpinionRegression(as_views(Xs), Targets.from_codes(codes, 3))
    Y, scores = np.eye(3)[codes[:14]], []
    for K, fit in zip(kernels_of(regression, Xs, None, np.arange(8)), regression.fits, strict=True):
        values, vectors = np.linalg.eigh(K[:8] + 1)
        features = (K + 1) @ vectors / np.sqrt(values)
        gram = features[:14].T @ features[:14] + fit.ridge * np.eye(8)
        scores.append(features @ np.linalg.solve(gram, features[:14].T @ Y))
    found = regression.finish(0.5)(as_views(Xs))
    np.testing.assert_allclose(found, mixture(regression, scores), atol=1e-6)


@pytest.mark.parametrize("weight", [0.7, 0.02])
@pytest.mark.parametrize("direct", [True, False])
def test_scores_are_the_minimiser_with_the_opinion(direct, weight, monkeypatch):
    """Components without a label included: there the opinion decides alone."""
    limits = {"MAX_DIRECT_WITH_OPINION": weight > propagation.LITTLE_WEIGHT, "MAX_DIRECT_WITH_LITTLE": True}
    for name, used in limits.items():
        monkeypatch.setattr(propagation, name, 400 if direct and used else 0)
    calls = []
    real = propagation.solve_directly
    monkeypatch.setattr(propagation, "solve_directly", lambda *args: calls.append(args) or real(*args))
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(60, 2)) + 50 * (np.arange(60) >= 50)[:, None]
    S, _ = learn_graph(Z, 4, 1.0)
    codes = np.where(np.arange(60) < 8, np.arange(60) % 3, -1)
    Q = rng.dirichlet(np.ones(3), 60)
    found = propagate(laplacian(S), Targets.from_codes(codes, 3), opinion=Opinion(Q, weight))
    assert bool(calls) == direct
    labels = np.where(codes[:, None] >= 0, np.eye(3)[codes], 0.0)
    anchor = np.where(codes < 0, weight, 0.0)
    L = oracles.dense_laplacian(S.toarray())
    right = oracles.dense_system_scores(L, labels, np.where(codes >= 0, np.inf, 0.0), anchor, Q)
    np.testing.assert_allclose(found.scores, right, atol=1e-7)
    np.testing.assert_array_equal(found.unreached, np.arange(60) >= 50)


def test_objective_has_its_term_and_never_rises(trusted):
    views, _, y, _ = trusted
    clf = LMSSC(second_opinion=0.5, tol=0.0, max_iter=12, calibrate=False, balance=0.0).fit(views, y)
    assert np.diff(clf.objective_).max() <= 1e-9 * clf.objective_[0]
    F, samples = clf.label_distributions_[:, clf._class_order], y < 0
    away = ((F - clf._opinion.scores)[samples] ** 2).sum()
    L = oracles.dense_laplacian(clf.graph_.toarray())
    ratio = clf.objective_terms_["opinion"][-1] / clf.objective_terms_["labels"][-1]
    assert clf._opinion.weight == 1.0
    np.testing.assert_allclose(ratio, away / np.trace(F.T @ L @ F), rtol=1e-6)


def test_it_is_trusted_where_held_out_labels_say_so_and_pays():
    views, truth, y = spread_thinly()
    # Whitening alone would find what is spread thinly here.
    plain, chosen = (LMSSC(second_opinion=trust, scaling="zscore").fit(views, y) for trust in (0.0, "auto"))
    assert plain.second_opinion_ == 0.0
    assert chosen.second_opinion_ > 0.0
    right = [(clf.transduction_ == truth)[y < 0].mean() for clf in (plain, chosen)]
    assert right[1] > right[0] + 0.1


@pytest.mark.parametrize("labelled", [0.02, 0.1])
def test_it_is_hardly_trusted_where_the_graph_knows_better(labelled):
    data = make_multiview(400, labelled=labelled, random_state=0)
    clf = LMSSC().fit(data.views, data.y)
    plain = LMSSC(second_opinion=0.0).fit(data.views, data.y)
    assert 0 < anchor_weight(clf.second_opinion_) <= LEAST_WEIGHT * (data.y >= 0).mean() + 1e-12
    found, without = ((one.transduction_ == data.target)[data.y < 0].mean() for one in (clf, plain))
    assert found >= without - 0.01


@pytest.mark.parametrize(("n_samples", "weight"), [(50, LEAST_WEIGHT / 5), (3001, 0.0)])
def test_a_little_trust_remains_with_few_samples(n_samples, weight):
    codes = np.where(np.arange(n_samples) < n_samples // 5, np.arange(n_samples) % 2, -1)
    assert anchor_weight(least_trust(Targets.from_codes(codes, 2))) == pytest.approx(weight)


def test_a_graph_that_finds_no_held_out_label_is_not_protected(small, monkeypatch):
    """The log-likelihood that it has to beat is that of the class frequencies without the label itself."""
    Xs, _, codes = small
    held = HeldOutLabels(
        as_views(Xs), Targets.from_codes(codes, 3), np.zeros(30), 0.5, [Fold(np.arange(14), None, None)], True
    )
    right = 0.0
    for i in range(14):
        others = np.delete(codes[:14], i)
        right += np.log((1 + (others == codes[i]).sum()) / (3 + len(others)))
    assert held.log_likelihood_by_frequencies() == pytest.approx(right)
    monkeypatch.setattr(opinion_trust, "LABELLED_SHARE", 1.0)
    assert evidence_for_graph(held, right) == 1.0  # 14 labels cannot tell
    monkeypatch.setattr(opinion_trust, "MIN_HELD_OUT", 14)
    assert evidence_for_graph(held, right + 3) == pytest.approx(3 / GAIN_OF_GRAPH)
    assert evidence_for_graph(held, right - 1) == 0.0
    assert cost_of_trust(0.9, evidence=0.0) < cost_of_trust(0.1, evidence=1.0)


@pytest.mark.parametrize("n_samples", [100, 40, 20])
def test_a_graph_is_protected_less_where_few_samples_lack_a_label(n_samples):
    codes = np.where(np.arange(n_samples) < 10, np.arange(n_samples) % 2, -1)
    held = HeldOutLabels(
        as_views([np.zeros((n_samples, 1))]), Targets.from_codes(codes, 2), np.zeros(n_samples), 0.5, [], True
    )
    assert evidence_for_graph(held, 0.0) == pytest.approx(min(1.0, LABELLED_SHARE * n_samples / 10))


def test_without_held_out_labels_only_a_given_trust_counts():
    views, _, y = spread_thinly()
    assert LMSSC(calibrate=False).fit(views, y).second_opinion_ == 0.0
    assert LMSSC(calibrate=False, second_opinion=0.3).fit(views, y).second_opinion_ == 0.3
    one_each = np.where(np.isin(np.arange(len(y)), np.unique(y, return_index=True)[1]), y, -1)
    assert LMSSC().fit(views, one_each).second_opinion_ == 0.0
    assert paper_settings()["second_opinion"] == 0.0
    with pytest.raises(ValueError, match="second_opinion"):
        LMSSC(second_opinion=1.0).fit(views, y)


def test_new_samples_get_the_update_of_a_single_node():
    """Without calibration: a share t of Q, and the rest from the neighbours."""
    views, _, y = spread_thinly()
    clf = LMSSC(calibrate=False, second_opinion=0.75, scaling=None).fit([view[:200] for view in views], y[:200])
    new = [view[200:] for view in views]
    found = clf.predict_proba(new)
    in_canonical_order = Views.from_arrays([new[v] for v in clf._order.views])
    opinions = np.empty_like(found)
    opinions[:, clf._class_order] = clf._second_opinion(in_canonical_order)
    clf._second_opinion = None
    np.testing.assert_allclose(found, 0.25 * clf.predict_proba(new) + 0.75 * opinions, atol=1e-9)


def test_confidence_of_new_samples_is_honest_if_all_samples_of_fit_are_labelled():
    """The regression knows the labels of fit almost by heart; it must not be judged by them."""
    views, truth, _ = spread_thinly(440)
    clf = LMSSC(second_opinion=0.9).fit([view[:240] for view in views], truth[:240])
    found = clf.predict_proba([view[240:] for view in views])
    right = clf.classes_[found.argmax(axis=1)] == truth[240:]
    assert abs(found.max(axis=1).mean() - right.mean()) < 0.1


def test_labelled_samples_have_the_opinion_that_does_not_know_their_label(small):
    Xs, present, codes = small
    views, targets = as_views(Xs, present), Targets.from_codes(codes, 3)
    regression = OpinionRegression(views, targets)
    found = regression.opinion(views, 0.5).scores
    for i in range(14):
        np.testing.assert_allclose(found[i], regression.held_out_distributions(np.array([i]))[0], atol=1e-9)
    second = regression.finish(0.5)
    parts = second.by_view(views)
    logs = np.log(second.decide(parts, present.T)) + second.log_correction(views, parts, found)
    np.testing.assert_allclose(np.exp(logs), found, atol=1e-9)


def test_models_with_a_single_regression_can_be_read(small):
    """As earlier versions saved them."""
    views = as_views(small[0])
    kernel, coefficients = MeanKernel.of(views.take(np.arange(14))), np.random.default_rng(0).normal(size=(14, 3))
    fields = {"kernel": kernel, "coefficients": coefficients, "temperature": 0.3, "trust": 0.5}
    opinion = SecondOpinion(**SecondOpinion.upgraded(fields))
    right = softmax((kernel(views) @ coefficients + coefficients.sum(axis=0)) / 0.3, axis=1)
    np.testing.assert_allclose(opinion(views), right, atol=1e-9)


def test_new_samples_that_lack_a_view_are_answered_by_the_other(trusted):
    views, truth, y, clf = trusted
    hidden = [views[0], np.full_like(views[1], np.nan)]
    rng = np.random.default_rng(9)
    noisy = [view + 1e-3 * rng.normal(size=view.shape) for view in hidden]
    found = clf.predict_proba(noisy)[y < 0]
    assert (clf.classes_[found.argmax(axis=1)] == truth[y < 0]).mean() > 0.4
    whole = clf.predict_proba([view + 1e-3 * rng.normal(size=view.shape) for view in views])[y < 0]
    assert found.max(axis=1).mean() < whole.max(axis=1).mean()


def test_new_samples_may_be_stored_otherwise_than_those_of_fit():
    """A view of mostly zeros is not centred in memory, and dense new samples are."""
    rng = np.random.default_rng(0)
    target = rng.integers(3, size=120)
    X = (rng.random((120, 400)) < 0.01 + 0.03 * (np.arange(400) // 134 == target[:, None])).astype(float)
    clf = LMSSC(second_opinion=0.5).fit([X], np.where(np.arange(120) < 40, target, -1))
    assert clf.scalings_ == {"view0": "zscore"}
    new = X[:5] + X[5:10]
    np.testing.assert_allclose(clf.predict_proba([new]), clf.predict_proba([sparse.csr_array(new)]), rtol=1e-9)


def test_the_order_of_samples_views_and_classes_changes_no_digit(trusted):
    views, _, y, clf = trusted
    order = np.random.default_rng(4).permutation(len(y))
    renamed = np.where(y < 0, -1, 3 - y)
    again = LMSSC(second_opinion=0.5).fit([views[1][order], views[0][order]], renamed[order])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order][:, ::-1])
    new = [view[:5] + 0.1 for view in views]
    np.testing.assert_array_equal(again.predict_proba(new[::-1]), clf.predict_proba(new)[:, ::-1])


def test_repeating_every_row_changes_nothing(trusted):
    views, _, y, clf = trusted
    twice = LMSSC(second_opinion=0.5).fit([np.repeat(view, 2, axis=0) for view in views], np.repeat(y, 2))
    np.testing.assert_array_equal(twice.label_distributions_[::2], clf.label_distributions_)


def test_saved_and_read_again_it_answers_alike(trusted, tmp_path):
    views, _, _, clf = trusted
    clf.save(tmp_path / "model.lmssc")
    again = load(tmp_path / "model.lmssc")
    new = [view[:20] + 0.1 for view in views]
    new[0][::2] = np.nan
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))
    assert again.second_opinion_ == 0.5


def test_an_interrupted_fit_resumes_with_it(trusted, tmp_path):
    views, _, y, _ = trusted
    resumed, whole = interrupt_and_resume(tmp_path / "fit", views, y, second_opinion=0.5, max_iter=4)
    np.testing.assert_array_equal(resumed.objective_, whole.objective_)
    new = [view[:5] + 0.1 for view in views]
    np.testing.assert_array_equal(resumed.predict_proba(new), whole.predict_proba(new))


def test_samples_without_a_label_in_their_component_stay_without_an_answer():
    views, _, y = spread_thinly(120, 60)
    far = [np.vstack([view, 1000 + view[:12]]) for view in views]
    labels = np.append(y, np.full(12, -1))
    with pytest.warns(UserWarning, match="without a label"):
        clf = LMSSC(second_opinion=0.5, n_neighbors=5, scaling=None).fit(far, labels)
    np.testing.assert_array_equal(clf.unreached_, np.arange(120, 132))
    shares = np.bincount(y[y >= 0]) / 60
    np.testing.assert_allclose(clf.label_distributions_[120:], np.tile(shares, (12, 1)))


def test_large_data_in_their_own_order_and_single_precision(monkeypatch):
    """The regression sees the labelled samples in canonical order, whatever the order of the fit."""
    views, truth, y = spread_thinly(400, 200)
    views = [view.astype(np.float32) for view in views]
    small = LMSSC(second_opinion=0.5, calibrate=False).fit(views, y)
    monkeypatch.setattr("lmssc.core.begin.is_large", lambda n: True)
    large = LMSSC(second_opinion=0.5, calibrate=False).fit(views, y)
    np.testing.assert_allclose(large._opinion.scores, small._opinion.scores, atol=1e-6)
    assert large.label_distributions_.dtype == np.float32
    assert (large.transduction_ == small.transduction_).mean() > 0.98
    assert (large.transduction_ == truth)[y < 0].mean() > 0.5


def test_labels_are_scored_with_the_trust_that_other_folds_choose():
    """Labels of one fold alone that speak for the second opinion do not make its own scores surer."""
    targets = Targets.from_codes(np.array([0, 1, 0, 1, -1]), 2)
    folds = [Fold(np.array(rows), targets.without_labels(np.array(rows)), None) for rows in ([0, 1], [2, 3])]
    held = HeldOutLabels(None, targets, np.zeros(5, dtype=int), 0.0, folds, True)
    by_graph, by_trust = np.full((4, 2), 0.5), np.tile([0.9, 0.1], (4, 1))
    only_first = {0.5: np.array([5.0, 5.0, 0.0, 0.0])}
    found = unseen_scores(held, only_first, lambda trust: by_trust, 1.0, by_graph)
    assert found.tolist() == [*by_graph[:2].tolist(), *by_trust[2:].tolist()]
    both = {0.5: np.full(4, 5.0)}
    assert (unseen_scores(held, both, lambda trust: by_trust, 1.0, by_graph) == by_trust).all()
