"""LMSSC as a whole: the objective, Algorithm 1, order, storage, missing views, new samples."""

import resource
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

import lmssc.core.begin
import lmssc.core.initialization
import oracles
from lmssc import LMSSC, paper_settings, stack_views
from lmssc.core.initialization import random_graph
from lmssc.core.laplacian import laplacian
from lmssc.core.objective import IterationState, Objective
from lmssc.core.propagation import Propagation, rescue_disconnected
from lmssc.core.targets import Targets
from lmssc.data.view import View
from lmssc.data.views import Views
from lmssc.datasets import make_multiview
from lmssc.numerics.knn.repeated import ExactKNN


def some_labels(target, rate, seed):
    """Stratified labels for a share of each class; −1 elsewhere."""
    rng = np.random.default_rng(seed)
    y = np.full(len(target), -1)
    for c in np.unique(target):
        members = np.flatnonzero(target == c)
        chosen = rng.choice(members, max(1, round(rate * len(members))), replace=False)
        y[chosen] = c
    return y


def drop_views(views, share, seed):
    """NaN for a share of the sample-views; every sample keeps one."""
    rng = np.random.default_rng(seed)
    has = rng.uniform(size=(len(views[0]), len(views))) >= share
    has[~has.any(axis=1), 0] = True
    return [np.where(has[:, [v]], view, np.nan) for v, view in enumerate(views)]


def fit_quietly(clf, views, y):
    """Fit where some samples may be out of reach, which is warned of and is not the point of the test."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*without a label")
        return clf.fit(views, y)


def started(views, y, **parameters):
    """Objective and first state of a fit, in its own order."""
    seen = []
    begin = lmssc.core.begin.begin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lmssc.core.view_forms.begin", lambda *arguments: seen.append(begin(*arguments)) or seen[0])
        LMSSC(max_iter=1, calibrate=False, **parameters).fit(views, y)
    return seen[0].objective, seen[0].state


def adaptive_graph(Z, k):
    return oracles.adaptive_rows(oracles.squared_distances(Z), k)


def gamma_in_units(views, y, clf):
    return started(views, y, label_weight=clf.label_weight)[0].gamma


def accuracy(clf, target, y):
    return (clf.transduction_ == target)[y == -1].mean()


def word_counts(seed, n=120, n_classes=3, n_words=200):
    """Two views of texts of very different lengths, each class with words of its own; 20 % of the labels."""
    rng = np.random.default_rng(seed)
    target = np.arange(n) % n_classes
    views = []
    for _ in range(2):
        topics = rng.dirichlet(np.full(n_words, 0.05), size=n_classes + 1)
        mixed = 0.5 * topics[target] + 0.5 * topics[-1]
        views.append(
            np.array([rng.multinomial(length, row) for length, row in zip(rng.integers(5, 200, n), mixed, strict=True)])
        )
    return [view.astype(float) for view in views], some_labels(target, 0.2, seed)


@pytest.fixture(scope="module")
def small():
    return make_multiview(150, labelled=0.15, random_state=0)


@pytest.fixture(scope="module")
def fitted(small):
    return LMSSC().fit(small.views, small.y)


class TestObjective:
    @pytest.mark.parametrize(("seed", "n_iter"), [(0, 60), *((seed, 12) for seed in range(1, 5))])
    @pytest.mark.parametrize("settings", ["defaults", "paper"])
    @pytest.mark.parametrize("data", ["digits", "words", "synthetic", "synthetic with missing views"])
    def test_never_rises(self, digits, data, settings, seed, n_iter):
        if data == "digits":
            rows = np.random.default_rng(seed).permutation(len(digits.target))[:300]
            views, y = [view[rows] for view in digits.views], some_labels(digits.target[rows], 0.1, seed)
        elif data == "words":
            views, y = word_counts(seed)
        else:
            bunch = make_multiview(
                200, n_classes=4, labelled=0.1, missing=0.3 * (data != "synthetic"), random_state=seed
            )
            views, y = bunch.views, bunch.y
        parameters = {} if settings == "defaults" else {**paper_settings(), "freeze_alpha": True}
        clf = LMSSC(**{"calibrate": False, **parameters, "max_iter": n_iter, "tol": 0, "random_state": seed})
        fit_quietly(clf, views, y)
        assert clf.n_iter_ == n_iter
        assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[:-1]).all()

    def test_is_the_printed_formula(self, small):
        clf = LMSSC(**{**paper_settings(), "max_iter": 5}, random_state=0).fit(small.views, small.y)
        right = oracles.objective(
            small.views,
            clf.loadings_,
            clf.latent_,
            clf.graph_.toarray(),
            clf.label_distributions_,
            clf.alpha_,
            clf.beta,
            clf.gamma,
        )
        assert clf.objective_[-1] == pytest.approx(right, rel=1e-8)

    def test_terms_add_up(self, fitted):
        assert set(fitted.objective_terms_) == {"fit", "smoothness", "graph", "labels", "opinion"}
        np.testing.assert_allclose(sum(fitted.objective_terms_.values()), fitted.objective_)
        assert all((term >= 0).all() for term in fitted.objective_terms_.values())
        data = make_multiview(150, labelled=0.15, missing=0.2, random_state=0)
        clf = fit_quietly(LMSSC(calibrate=False), data.views, data.y)
        assert set(clf.objective_terms_) == {"fit", "smoothness", "graph", "labels", "ridge"}
        np.testing.assert_allclose(sum(clf.objective_terms_.values()), clf.objective_)


def test_what_auto_chose_is_told(small):
    clf = LMSSC(max_iter=1, calibrate=False).fit(small.views, small.y)
    assert clf.n_neighbors_ == 10
    assert clf.n_components_ == clf.latent_.shape[1] == clf.transform(small.views).shape[1]
    assert np.diff(clf.graph_.indptr).max() == clf.n_neighbors_
    given = LMSSC(max_iter=1, calibrate=False, n_neighbors=7, n_components=4).fit(small.views, small.y)
    assert (given.n_neighbors_, given.n_components_) == (7, 4)


class TestExpectedScores:
    def test_first_graph_is_the_dense_one_of_places_and_expected_scores(self, small):
        """Three rounds by hand: dense graph, dense propagation, kernel ridge regression by its N × N formula."""
        clf = LMSSC(max_iter=1, calibrate=False).fit(small.views, small.y)
        model, state = started(small.views, small.y)
        H, codes = state.latent, model.targets.codes
        spread = ((H - H.mean(axis=0)) ** 2).sum() / len(H)
        S, ridge = adaptive_graph(H, 10), None
        for _ in range(3):
            F = oracles.dense_scores(S, codes, model.targets.n_classes)
            ridge = ridge or oracles.ridge_by_noise(H, F, codes >= 0)
            P = oracles.kernel_ridge(H, F, codes >= 0, ridge) * np.sqrt(1.5 * spread)
            S = adaptive_graph(np.hstack([H, P]), 10)
        np.testing.assert_allclose(state.graph.toarray(), S, atol=1e-6)
        np.testing.assert_allclose(state.scores, oracles.dense_scores(S, codes, model.targets.n_classes), atol=1e-6)
        assert clf.n_iter_ == 1

    def test_samples_that_only_expected_scores_cut_off_are_reached_again(self, small):
        model, state = started(small.views, small.y)
        cut = np.flatnonzero(model.targets.codes < 0)[:4]
        never, unreached = np.zeros(150, bool), np.zeros(150, bool)
        unreached[cut] = True
        never[cut[0]] = True
        again = rescue_disconnected(state.latent, Propagation(state.scores, unreached), never, model.n_neighbors)
        assert np.flatnonzero(again.unreached).tolist() == [cut[0]]
        for sample in cut[1:]:
            distances = np.linalg.norm(state.latent - state.latent[sample], axis=1) ** 2
            near = np.argsort(np.where(unreached, np.inf, distances))[:11]
            weights = distances[near[10]] - distances[near[:10]]
            expected = weights @ state.scores[near[:10]] / weights.sum()
            np.testing.assert_allclose(again.scores[sample], expected, atol=1e-9)
        others = np.setdiff1d(np.arange(150), cut[1:])
        np.testing.assert_array_equal(again.scores[others], state.scores[others])

    def test_weight_zero_is_the_plain_model(self, small):
        clf = LMSSC(label_weight=0, calibrate=False).fit(small.views, small.y)
        right = oracles.objective_of_places(
            clf.objective_terms_["fit"][-1],
            clf.latent_,
            clf.graph_.toarray(),
            clf.label_distributions_,
            clf.alpha_,
            clf.beta,
            gamma_in_units(small.views, small.y, clf),
        )
        assert clf.objective_[-1] == pytest.approx(right, rel=1e-6)

    def test_labels_move_the_graph(self, small):
        """More edges join samples of one class when the labels are heard."""
        share = []
        for weight in (0.0, 1.5):
            clf = LMSSC(label_weight=weight, max_iter=1, calibrate=False).fit(small.views, small.y)
            rows, columns = clf.graph_.nonzero()
            share.append((small.target[rows] == small.target[columns]).mean())
        assert share[1] > share[0]

    def test_short_and_long_texts_are_compared_by_direction(self):
        views, y = word_counts(0)
        clf = LMSSC(n_components=5, scaling="tfidf", calibrate=False).fit(views, y)
        placed = np.linalg.norm(clf._embedding.embed(clf.latent_[clf._order.samples]), axis=1)
        norms = np.linalg.norm(clf.latent_, axis=1)
        assert placed.std() / placed.mean() < 0.2 * norms.std() / norms.mean()
        # Twice the text says the same.
        doubled = LMSSC(n_components=5, scaling="tfidf", calibrate=False).fit([2 * view for view in views], y)
        assert (doubled.transduction_ == clf.transduction_).all()


class TestAlgorithm1:
    def test_iterations_are_those_of_the_paper(self):
        data = make_multiview(60, n_features=[6, 5], n_views=2, labelled=0.2, random_state=1)
        k, beta, gamma, r = 15, 0.1, 1.0, 3
        views = Views.from_arrays(data.views)
        random = np.random.RandomState(0)
        latent = random.uniform(size=(60, r))
        graph = random_graph(60, k, random, np.dtype(float))
        state = IterationState(
            loadings=[np.zeros((6, r)), np.zeros((5, r))],
            latent=latent,
            XtH=views.transpose_dot(latent),
            graph=graph,
            laplacian=laplacian(graph),
            scores=Targets.from_codes(data.y, 3).matrix(np.dtype(float)),
            unreached=np.zeros(60, bool),
            search=ExactKNN(),
        )
        targets = Targets.from_codes(data.y, 3)
        model = Objective(views, targets, k, beta, gamma, nonnegative=True, shared_alpha=True, freeze_alpha=False)
        for _ in range(4):
            state = model.step(state)
        loadings, H, S, F, alpha = oracles.algorithm_1(
            data.views, data.y, 3, latent, graph.toarray(), beta, gamma, k, 4
        )
        for found, right in zip(state.loadings, loadings, strict=True):
            np.testing.assert_allclose(found, right, atol=1e-6 * np.abs(right).max())
        np.testing.assert_allclose(state.latent, H, atol=1e-6 * np.abs(H).max())
        np.testing.assert_allclose(state.graph.toarray(), S, atol=1e-6)
        np.testing.assert_allclose(state.scores, F, atol=1e-6)
        assert state.alpha[0] == pytest.approx(alpha, rel=1e-6)

    def test_settings(self):
        clf = LMSSC(**paper_settings())
        assert (clf.n_neighbors, clf.max_iter, clf.tol, clf.scaling) == (15, 100, 1e-5, None)
        assert (clf.loadings, clf.init, clf.alpha, clf.freeze_alpha) == (
            "nonnegative",
            "random",
            "mean",
            False,
        )

    def test_alpha_changes_unless_frozen(self, small):
        alphas = {}
        for freeze in (True, False):
            first, last = (
                LMSSC(**{**paper_settings(), "freeze_alpha": freeze, "max_iter": n, "random_state": 0, "tol": 0}).fit(
                    small.views, small.y
                )
                for n in (1, 5)
            )
            alphas[freeze] = first.alpha_ == last.alpha_
        assert alphas == {True: True, False: False}


class TestOrder:
    @pytest.mark.parametrize(("n_samples", "n_permutations"), [(120, 8), (1797, 1)])
    def test_permuting_samples_permutes_the_answer(self, digits, n_samples, n_permutations):
        views, target = [view[:n_samples] for view in digits.views], digits.target[:n_samples]
        y = some_labels(target, 0.05 if n_samples > 1000 else 0.3, 0)
        clf = LMSSC(max_iter=4).fit(views, y)
        for seed in range(n_permutations):
            shuffle = np.random.default_rng(seed).permutation(len(y))
            other = LMSSC(max_iter=4).fit([view[shuffle] for view in views], y[shuffle])
            np.testing.assert_array_equal(other.transduction_, clf.transduction_[shuffle])
            np.testing.assert_array_equal(other.label_distributions_, clf.label_distributions_[shuffle])
            np.testing.assert_array_equal(other.latent_, clf.latent_[shuffle])
            assert (other.graph_ != clf.graph_[shuffle][:, shuffle]).nnz == 0

    @pytest.mark.parametrize("parameters", [{}, {**paper_settings(), "random_state": 0, "max_iter": 5}])
    def test_permuting_samples_views_and_classes(self, small, parameters):
        clf = LMSSC(**parameters).fit(small.views, small.y)
        names = np.array(["pear", "apple", "fig"], dtype=object)
        for seed in range(5):
            shuffle = np.random.default_rng(seed).permutation(len(small.y))
            views = [view[shuffle] for view in small.views]
            named = np.where(small.y[shuffle] < 0, None, names[small.y[shuffle]])
            other = LMSSC(**parameters).fit([views[2], views[0], views[1]], named)
            np.testing.assert_array_equal(other.transduction_, names[clf.transduction_[shuffle]])
            columns = [list(names).index(name) for name in other.classes_]
            np.testing.assert_array_equal(other.label_distributions_, clf.label_distributions_[shuffle][:, columns])
            for a, b in zip(other.loadings_, [clf.loadings_[v] for v in (2, 0, 1)], strict=True):
                np.testing.assert_array_equal(a, b)
            assert other.objective_[-1] == clf.objective_[-1]

    def test_duplicates_with_and_without_labels(self):
        data = make_multiview(60, labelled=0.2, random_state=3)
        views = [np.vstack([view, view[:20], view[:20]]) for view in data.views]
        y = np.concatenate([data.y, np.full(20, -1), np.full(20, -1)])
        clf = LMSSC().fit(views, y)
        np.testing.assert_array_equal(clf.label_distributions_[60:80], clf.label_distributions_[80:])
        for seed in range(5):
            shuffle = np.random.default_rng(seed).permutation(len(y))
            other = LMSSC().fit([view[shuffle] for view in views], y[shuffle])
            np.testing.assert_array_equal(other.transduction_, clf.transduction_[shuffle])

    def test_same_seed_same_bits(self, small):
        for parameters in ({}, {**paper_settings(), "max_iter": 5}):
            one, two = (LMSSC(**parameters, random_state=7).fit(small.views, small.y) for _ in range(2))
            np.testing.assert_array_equal(one.label_distributions_, two.label_distributions_)
            np.testing.assert_array_equal(one.latent_, two.latent_)
            np.testing.assert_array_equal(one.objective_, two.objective_)

    def test_other_seed_other_start(self, small):
        one, two = (
            LMSSC(**{**paper_settings(), "max_iter": 2}, random_state=s).fit(small.views, small.y) for s in (0, 1)
        )
        assert not np.allclose(one.latent_, two.latent_)


class TestStorage:
    @pytest.mark.filterwarnings("ignore:40 of 40 new samples lie farther")  # they have other loadings
    @pytest.mark.parametrize("scaling", ["auto", "zscore", "unit", "tfidf", None])
    def test_sparse_and_dense_agree(self, scaling):
        data = make_multiview(150, n_features=80, sparse=True, labelled=0.2, random_state=0)
        dense = [view.toarray() for view in data.views]
        kinds = [sparse.csr_matrix, sparse.csc_array, sparse.coo_array]
        mixed = [kind(view) for kind, view in zip(kinds, data.views, strict=True)]
        one, two = (LMSSC(scaling=scaling).fit(views, data.y) for views in (dense, mixed))
        assert one.scalings_ == two.scalings_
        np.testing.assert_array_equal(one.transduction_, two.transduction_)
        np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-6)
        new = make_multiview(40, n_features=80, sparse=True, random_state=9).views
        np.testing.assert_array_equal(two.predict(new), one.predict([view.toarray() for view in new]))

    def test_stacked_views_agree(self, small, fitted):
        for form in (small.views, dict(zip("abc", small.views, strict=True))):
            X, views = stack_views(form)
            stacked = LMSSC(views=views).fit(X, small.y)
            np.testing.assert_array_equal(stacked.label_distributions_, fitted.label_distributions_)

    def test_float32_stays(self, small, fitted):
        clf = LMSSC().fit([view.astype(np.float32) for view in small.views], small.y)
        for array in (clf.latent_, clf.graph_, clf.label_distributions_, *clf.loadings_):
            assert array.dtype == np.float32
        assert (clf.transduction_ == fitted.transduction_).mean() > 0.98

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_wide_sparse_view_never_becomes_dense(self):
        program = """
import numpy as np
from scipy import sparse
import lmssc.core.initialization
from lmssc import LMSSC
rng = np.random.default_rng(0)
n, d = 3000, 20000
target = rng.integers(0, 4, n)
words = sparse.coo_array((rng.uniform(size=90 * n), rng.integers(0, (n, d), (90 * n, 2)).T), shape=(n, d))
topic = sparse.coo_array((np.ones(10 * n), (np.repeat(np.arange(n), 10),
    (target.repeat(10) * 40 + rng.integers(0, 40, 10 * n)))), shape=(n, d))
X = (words + topic).tocsr()
assert 0.0045 < X.nnz / (n * d) < 0.0055
y = np.where(rng.uniform(size=n) < 0.05, target, -1)
clf = LMSSC(max_iter=1, n_components=30).fit([X], y)
print((clf.transduction_ == target)[y == -1].mean())
with open("/proc/self/status") as file:  # ru_maxrss would count the memory of the process that started this one
    print(next(line.split()[1] for line in file if line.startswith("VmHWM")))
"""
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        accuracy, kilobytes = map(float, run.stdout.split())
        assert accuracy > 0.9
        assert kilobytes < 600_000  # dense, it would have 480 MB


class TestMissingViews:
    def test_accuracy_falls_by_less_than_three_points(self, digits):
        whole, partial = [], []
        for seed in range(3):
            rows = np.random.default_rng(seed).permutation(len(digits.target))[:600]
            views, target = [view[rows] for view in digits.views], digits.target[rows]
            y = some_labels(target, 0.1, seed)
            quick = LMSSC(calibrate=False)
            whole.append(accuracy(quick.fit(views, y), target, y))
            partial.append(accuracy(fit_quietly(quick, drop_views(views, 0.3, seed), y), target, y))
        assert np.mean(whole) - np.mean(partial) < 0.03

    def test_loss_counts_what_exists(self):
        rng = np.random.default_rng(0)
        Xs = [rng.normal(size=(9, 4)), rng.normal(size=(9, 3))]
        has = rng.uniform(size=9) > 0.4
        H, loadings = rng.normal(size=(9, 2)), [rng.normal(size=(4, 2)), rng.normal(size=(3, 2))]
        views = Views([View(Xs[0]), View(np.where(has[:, None], Xs[1], 0), present=has)])
        right = ((Xs[0] - H @ loadings[0].T) ** 2).sum() + ((Xs[1] - H @ loadings[1].T) ** 2)[has].sum()
        assert views.loss(H, loadings) == pytest.approx(right)

    @pytest.mark.parametrize("calibrate", [False, True])
    def test_prediction_uses_the_views_there_are(self, small, calibrate):
        """By least squares with the ridge of samples that lack views, whether confidence is calibrated or not."""
        clf = LMSSC(calibrate=calibrate).fit(small.views, small.y)
        new = make_multiview(150, random_state=0).views  # the same draws, so these are the training samples
        partial = [new[0] + 1e-9, np.full_like(new[1], np.nan), new[2]]
        positions = clf.transform(partial)
        Xs = [(view - small.views[v].mean(0)) / small.views[v].std(0) for v, view in enumerate(partial) if v != 1]
        X = np.hstack([X / np.sqrt(3 * X.shape[1]) for X in Xs])
        W = np.vstack([clf.loadings_[0], clf.loadings_[2]])
        right = X @ W @ np.linalg.inv(W.T @ W + clf._ridge)
        np.testing.assert_allclose(positions, right, atol=1e-6)


class TestNewSamples:
    def test_training_samples_keep_their_answer(self, digits):
        views, y = [view[:600] for view in digits.views], some_labels(digits.target[:600], 0.1, 0)
        clf = LMSSC().fit(views, y)
        np.testing.assert_array_equal(clf.predict(views), clf.transduction_)
        np.testing.assert_array_equal(clf.predict_proba(views), clf.label_distributions_)
        assert (clf.predict(views)[y >= 0] == y[y >= 0]).all()
        # A hair's breadth away nothing is recognised, and the neighbours have to say the same.
        near = [view + 1e-9 for view in views]
        assert (clf.predict(near) == clf.transduction_).mean() >= 0.995

    def test_rows_never_seen(self, digits):
        y = some_labels(digits.target, 0.1, 0)
        train = np.random.default_rng(0).uniform(size=len(y)) < 0.7
        clf = LMSSC(calibrate=False).fit([view[train] for view in digits.views], y[train])
        new = [view[~train] for view in digits.views]
        proba = clf.predict_proba(new)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert proba.min() >= 0
        assert (clf.predict(new) == digits.target[~train]).mean() > 0.93
        assert clf.transform(new).shape == ((~train).sum(), clf.latent_.shape[1])

    @pytest.mark.parametrize("label_weight", [0.0, 1.5])
    def test_weights_are_the_simplex_weights_of_the_neighbours(self, small, label_weight):
        clf = LMSSC(alpha="mean", label_weight=label_weight, calibrate=False).fit(small.views, small.y)
        new = [view[:5] + 0.05 for view in small.views]
        places, known = clf.transform(new), clf.latent_
        if label_weight:
            # What is expected of a sample of fit was set at the start, before its position was smoothed.
            r = known.shape[1]
            np.testing.assert_array_equal(clf._embedded[:, :r], known)
            places, known = np.hstack([places, clf._label_regressor(places)]), clf._embedded
            assert known.shape[1] == r + len(clf.classes_)
        d = ((places[:, None] - known[None]) ** 2).sum(axis=2)
        weights = np.array([oracles.project_onto_simplex(-row / (4 * clf.alpha_)) for row in d])
        np.testing.assert_allclose(clf.predict_proba(new), weights @ clf.label_distributions_, atol=1e-9)

    @pytest.mark.filterwarnings("ignore:most new samples have far larger values")
    def test_far_away_is_still_a_distribution(self, small, fitted):
        proba = fitted.predict_proba([view[:3] + 1e6 for view in small.views])
        np.testing.assert_allclose(proba.sum(axis=1), 1)

    def test_identical_samples_prefer_the_label(self):
        data = make_multiview(80, labelled=0.2, random_state=5)
        views = [np.vstack([view, view]) for view in data.views]
        clf = LMSSC().fit(views, np.concatenate([np.full(80, -1), data.y]))
        given = data.y >= 0
        np.testing.assert_array_equal(clf.predict(data.views)[given], data.y[given])


def test_components_are_kept_where_none_stands_out():
    """Very many classes in all directions: ten components would lose most of them."""
    rng = np.random.default_rng(0)
    points = 2 * rng.normal(size=(200, 40)).repeat(5, axis=0) + 1.4 * rng.normal(size=(1000, 40))
    y = np.where(np.arange(1000) % 5, -1, np.arange(1000) // 5)
    found = [LMSSC(n_components=r, calibrate=False).fit([points], y) for r in ("auto", 10)]
    right = [(clf.transduction_ == np.arange(1000) // 5)[y < 0].mean() for clf in found]
    assert found[0].n_components_ == 40
    assert right[0] > right[1] + 0.1


def test_classes_of_tight_clusters_stay_apart():
    """Two of eight classes are 20 times as tight as the others: F alone decided there, and one drew in the other."""
    rng = np.random.default_rng(1)
    centres = 1.5 * rng.normal(size=(8, 6))
    centres[1] = centres[0] + 0.05 * rng.normal(size=6)
    deviations = np.array([0.05, 0.05, 1, 1, 1, 1, 1, 1])
    points = np.vstack([c + d * rng.normal(size=(25, 6)) for c, d in zip(centres, deviations, strict=True)])
    target = np.arange(200) // 25
    y = np.where(np.arange(200) % 25 < 5, target, -1)
    first, last = (LMSSC(max_iter=n).fit([points, points**2], y).transduction_ for n in (1, 30))
    assert (first == target)[y < 0].mean() > 0.75
    assert (first == last).mean() > 0.97


class TestProgress:
    def test_callback_hears_every_iteration(self, small):
        heard = []
        clf = LMSSC(callback=heard.append, calibrate=False).fit(small.views, small.y)
        assert [progress.iteration for progress in heard] == list(range(1, clf.n_iter_ + 1))
        np.testing.assert_allclose([progress.objective for progress in heard], clf.objective_)
        assert heard[-1].change < clf.tol or clf.n_iter_ == clf.max_iter

    def test_verbose_prints_a_line_an_iteration(self, small, capsys):
        clf = LMSSC(verbose=1, calibrate=False).fit(small.views, small.y)
        assert len(capsys.readouterr().out.splitlines()) == clf.n_iter_


def test_no_memory_of_the_order_of_n_squared():
    """A fit of 12,000 samples would need 1.2 GB for one dense N×N matrix."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = make_multiview(12_000, n_features=8, labelled=0.01, random_state=0)
    LMSSC(max_iter=1).fit(data.views, data.y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 500_000


def test_predict_works_on_some_samples_at_a_time(monkeypatch):
    data = make_multiview(500, 2, 12, n_classes=3, labelled=0.3, missing=0.1, random_state=3)
    parts = [view[:150] for view in data.views]
    clf = LMSSC(max_iter=2).fit(parts, data.y[:150])
    whole, places = clf.predict_proba(data.views), clf.transform(data.views)
    monkeypatch.setattr("lmssc.estimators.prediction.MIN_BATCH_SIZE", 40)
    sizes = []
    extend = LMSSC._predict_new
    monkeypatch.setattr(
        LMSSC, "_predict_new", lambda self, raws: sizes.append(raws[0].data.shape[0]) or extend(self, raws)
    )
    np.testing.assert_allclose(clf.predict_proba(data.views), whole, atol=1e-12)
    assert sizes == [150, 150, 50]  # the first 150 are known
    monkeypatch.setattr("lmssc.data.memmap.BATCH_BYTES", 1000)
    np.testing.assert_allclose(clf.transform(data.views), places, atol=1e-12)


@pytest.mark.parametrize(("method", "stacked"), [("predict", False), ("transform", True)])
def test_memory_does_not_follow_the_number_of_new_samples(monkeypatch, method, stacked):
    monkeypatch.setattr("lmssc.data.memmap.BATCH_BYTES", 1 << 20)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 60)), np.arange(300) % 2
    clf = LMSSC(views=[30, 30] if stacked else None, n_components=5, max_iter=1, calibrate=False)
    clf.fit(X if stacked else np.split(X, 2, axis=1), y)
    new = rng.normal(size=(60_000, 60))
    peaks = []
    for some in (new[:20_000], new):
        views = some if stacked else np.split(some, 2, axis=1)
        tracemalloc.start()
        getattr(clf, method)(views)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    answers = 40_000 * 8 * (3 if method == "predict" else 5)  # a label and two shares, or five coordinates
    assert peaks[1] - peaks[0] < 2 * answers
    assert 2 * answers < 0.25 * new.nbytes
