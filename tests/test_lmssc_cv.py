"""LMSSCCV: the right setting, whatever the order, not by luck, and everything that LMSSC has."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, log_loss

from lmssc import GFHF, LMSSC, LMSSCCV, compare, stack_views
from lmssc.core import initialization
from lmssc.core.fit_config import FitContext
from lmssc.data.folds import labelled_folds, without_labels
from lmssc.data.missing_views import make_raw_views
from lmssc.datasets import make_multiview
from lmssc.estimators.cv_results import choose
from made_up import planted_views

VIEWS = [{"view": ["noise"]}, {"view": ["signal"]}]
NEIGHBORS = [{}, {"n_neighbors": [3, 40]}]


@pytest.fixture(scope="module")
def planted():
    return planted_views()


def search(grid=VIEWS, **parameters):
    return LMSSCCV(**{"estimator": GFHF(), "param_grid": grid, **parameters})


def few_labels(y, counts):
    """The labels, of each class only so many."""
    few = np.full_like(y, -1)
    for code, count in enumerate(counts):
        rows = np.flatnonzero(y == code)[:count]
        few[rows] = code
    return few


class TestChoice:
    def test_finds_the_planted_setting(self, planted):
        views, y, truth = planted
        clf = search().fit(views, y)
        assert clf.best_params_ == {"view": "signal"}
        assert clf.best_index_ == 1
        low, high = clf.cv_results_["mean_test_score"]
        assert clf.best_score_ == high > 0.8 > 0.6 > low
        assert (clf.transduction_ == truth).mean() > 0.9

    def test_with_two_labels_a_class(self, planted):
        views, y, _ = planted
        clf = search(n_repeats=4).fit(views, few_labels(y, [2, 2, 2]))
        assert clf.n_splits_ == 8
        assert clf.best_params_ == {"view": "signal"}

    def test_one_label_in_a_class_is_never_held_out(self, planted):
        views, y, _ = planted
        y = few_labels(y, [8, 1, 8])
        with pytest.warns(UserWarning, match="only one labelled sample"):
            clf = search().fit(views, y)
        assert clf.best_params_ == {"view": "signal"}
        assert (clf.cv_results_["mean_test_score"] * 16 * 2 % 1 == 0).all()  # 16 rows, twice

    def test_the_first_where_nothing_can_be_held_out(self, planted):
        views, y, _ = planted
        clf = search()
        with pytest.warns(UserWarning, match="no class has 2 labelled samples.*first setting"):
            clf.fit(views, few_labels(y, [1, 1, 1]))
        assert clf.best_params_ == {"view": "noise"}
        assert clf.n_splits_ == 0
        assert np.isnan(clf.best_score_)
        table = pd.DataFrame(clf.cv_results_)
        assert len(table) == 2
        assert table["mean_test_score"].isna().all()

    def test_a_tie_keeps_the_first(self, planted):
        views, y, _ = planted
        clf = search({"width": [2.0, 1.0]}, estimator=GFHF(view="signal"), margin=None).fit(views, y)
        assert len(set(clf.cv_results_["mean_test_score"])) == 1  # the adaptive graph has no width
        assert clf.best_params_ == {"width": 2.0}
        np.testing.assert_array_equal(clf.cv_results_["rank_test_score"], [1, 1])

    @pytest.mark.parametrize(("likelihood", "chosen"), [(0.9, 1), (0.55, 0)])
    def test_what_is_better_by_chance_is_not_taken(self, likelihood, chosen):
        """20 rows, of which the second setting gets one more right than the first; is it surer of the others too?"""
        rng = np.random.default_rng(0)
        first = rng.uniform(0.3, 0.8, size=20)
        second = rng.uniform(likelihood - 0.25, likelihood + 0.05, size=20)
        gain = np.log(second) - np.log(first)
        results = {
            "mean_test_score": np.array([0.8, 0.85]),
            "mean_evidence": np.array([0, gain.mean()]),
            "evidence_error": np.array([0, gain.std(ddof=1) / np.sqrt(20)]),
        }
        assert choose(results, margin=1.0) == chosen
        assert choose(results, margin=None) == 1

    def test_views_by_number_are_those_of_the_user(self, planted):
        views, y, _ = planted
        for order in (["noise", "signal"], ["signal", "noise"]):
            clf = search({"view": [0, 1]}).fit([views[name] for name in order], y)
            assert clf.best_params_ == {"view": order.index("signal")}

    @pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "log_loss"])
    def test_order_does_not_matter(self, planted, scoring):
        views, y, _ = planted
        y = few_labels(y, [8, 5, 3])
        shuffle = np.random.default_rng(3).permutation(len(y))
        renamed = np.array([2, 0, 1, -1])[y]
        mixed = {name: view[shuffle] for name, view in reversed(views.items())}
        one = search(NEIGHBORS, scoring=scoring).fit(views, y)
        two = search(NEIGHBORS, scoring=scoring).fit(mixed, renamed[shuffle])
        for name, column in one.cv_results_.items():
            if "score" in name or "evidence" in name:
                np.testing.assert_array_equal(column, two.cv_results_[name])
        np.testing.assert_array_equal(one.label_distributions_[shuffle], two.label_distributions_[:, [2, 0, 1]])

    def test_workers_change_nothing(self, planted):
        views, y, _ = planted
        one, two = (search(NEIGHBORS, n_jobs=n_jobs, scoring="log_loss").fit(views, y) for n_jobs in (None, 2))
        for name, column in one.cv_results_.items():
            if "time" not in name:
                np.testing.assert_array_equal(column, two.cv_results_[name])


class TestScores:
    """Held against fits made by hand."""

    @pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "log_loss"])
    def test_scores_are_those_of_fits_with_the_other_labels(self, planted, scoring):
        views, y, _ = planted
        y = few_labels(y, [8, 6, 4])
        clf = search([{"view": ["signal"]}], scoring=scoring, n_splits=2, n_repeats=1, random_state=5).fit(views, y)
        rows, answers, distributions = [], [], []
        for split, fold in enumerate(labelled_folds(make_raw_views(views, None), y, seed=5, n_folds=2)):
            alone = GFHF(view="signal").fit(views, without_labels(y, fold))
            rows.append(fold)
            answers.append(alone.transduction_[fold])
            distributions.append(alone.label_distributions_[fold])
            if scoring == "balanced_accuracy":
                right = balanced_accuracy_score(y[fold], answers[-1])
                assert clf.cv_results_[f"split{split}_test_score"][0] == pytest.approx(right)
        truth, answers = y[np.concatenate(rows)], np.concatenate(answers)
        expected = {
            "accuracy": np.mean(truth == answers),
            "balanced_accuracy": balanced_accuracy_score(truth, answers),
            "log_loss": -log_loss(truth, np.vstack(distributions)),
        }
        assert clf.best_score_ == pytest.approx(expected[scoring])

    def test_table(self, planted):
        views, y, _ = planted
        clf = search([{}, {"n_neighbors": [3]}, {"view": ["signal"]}], n_repeats=1).fit(views, y)
        table = pd.DataFrame(clf.cv_results_)
        assert list(table["params"]) == [{}, {"n_neighbors": 3}, {"view": "signal"}]
        assert list(table["param_view"].isna()) == [True, True, False]
        assert table["param_n_neighbors"][1] == 3
        splits = table[["split0_test_score", "split1_test_score", "split2_test_score"]].to_numpy()
        np.testing.assert_allclose(table["mean_test_score"], splits @ [9, 9, 6] / 24)  # 8 labels a class: 3, 3, 2
        np.testing.assert_allclose(table["std_test_score"], splits.std(axis=1))
        assert table["rank_test_score"][2] == 1
        assert (table["mean_fit_time"] > 0).all()
        assert table["mean_evidence"][0] == table["evidence_error"][0] == 0


@pytest.fixture(scope="module")
def fitted():
    data = make_multiview(120, missing=0.2, labelled=0.3, random_state=0)
    names = np.array(["a", "b", "c"], dtype=object)[data.y]
    names[data.y == -1] = None
    grid = [{}, {"n_neighbors": [20]}]
    quick = LMSSC(max_iter=2, calibrate=False)
    clf = LMSSCCV(estimator=quick, param_grid=grid, n_repeats=1).fit(data.views, names)
    alone = clone(quick).set_params(**clf.best_params_).fit(data.views, names)
    return data, clf, alone


class TestDelegation:
    def test_everything_that_lmssc_has(self, fitted):
        data, clf, alone = fitted
        for name in vars(alone):
            if name.endswith("_"):
                one, other = (getattr(fit, name) for fit in (clf, alone))
                if name == "graph_":
                    one, other = one.toarray(), other.toarray()
                np.testing.assert_equal(one, other)
        new = [view + 1e-3 for view in data.views]
        np.testing.assert_array_equal(clf.predict_proba(new), alone.predict_proba(new))
        np.testing.assert_array_equal(clf.predict(new), alone.predict(new))
        np.testing.assert_array_equal(clf.transform(new), alone.transform(new))
        np.testing.assert_array_equal(clf.most_informative(5), alone.most_informative(5))
        assert clf.score(data.views, np.array(["a", "b", "c"])[data.target]) > 0.7

    def test_one_x_and_clone(self, fitted):
        data, clf, _ = fitted
        X, views = stack_views(dict(zip(data.view_names, data.views, strict=True)))
        stacked = clone(clf).set_params(views=views).fit(X, data.y)
        np.testing.assert_array_equal(stacked.label_distributions_, clf.label_distributions_)
        np.testing.assert_array_equal(stacked.best_estimator_.predict(X), stacked.transduction_)
        assert stacked.get_feature_names_out()[0] == "lmssccv0"

    def test_nothing_stays_of_an_earlier_fit(self, fitted):
        data, clf, _ = fitted
        clf = clone(clf).fit(data.views, data.y)
        clf.set_params(estimator=GFHF()).fit(data.views, data.y)
        assert not hasattr(clf, "latent_")
        np.testing.assert_array_equal(clf.graph_.toarray(), clf.best_estimator_.graph_.toarray())

    def test_a_graph_of_ones_own(self, planted):
        views, y, _ = planted
        graph = GFHF(view="signal").fit(views, y).graph_
        clf = search({"n_neighbors": [5]}, estimator=GFHF(graph="precomputed")).fit(graph, y)
        np.testing.assert_array_equal(clf.predict(graph), clf.transduction_)
        assert clf.best_score_ > 0.8

    def test_can_be_compared(self):
        data = make_multiview(100, random_state=0)
        methods = {"cv": search(NEIGHBORS, n_repeats=1)}
        result = compare(data.views, data.target, methods, rates=[0.3], repeats=1)
        assert result.records[0]["error"] == ""
        assert result.records[0]["accuracy"] > 0.5

    def test_default_grid_starts_with_the_defaults(self, planted):
        views, y, _ = planted
        clf = LMSSCCV(estimator=LMSSC(max_iter=1, calibrate=False), n_repeats=1, n_splits=2).fit(views, y)
        assert clf.cv_results_["params"][0] == {}
        assert len(clf.cv_results_["params"]) > 3


class TestProgress:
    def test_callback_hears_of_every_fit(self, planted):
        views, y, _ = planted
        heard = []
        clf = search(n_repeats=1, callback=heard.append).fit(views, y)
        assert [(one.done, one.total) for one in heard] == [(i, 6) for i in range(1, 7)]
        assert [one.params["view"] for one in heard] == ["noise"] * 3 + ["signal"] * 3
        for one in heard:
            row = int(one.params["view"] == "signal")
            assert one.score == pytest.approx(clf.cv_results_[f"split{one.split}_test_score"][row])

    def test_the_callback_of_the_estimator_hears_of_the_last_fit(self, planted, capsys):
        views, y, _ = planted
        heard = []
        estimator = LMSSC(max_iter=1, callback=heard.append, verbose=1, calibrate=False)
        LMSSCCV(estimator=estimator, param_grid={"beta": [0.1]}, n_repeats=1).fit(views, y)
        assert [one.iteration for one in heard] == [1]
        assert capsys.readouterr().out.count("iteration 1") == 1

    def test_verbose_shows_a_bar_on_a_terminal(self, planted, capsys, monkeypatch):
        pytest.importorskip("tqdm")
        views, y, _ = planted
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        search(n_repeats=1, verbose=1).fit(views, y)
        assert "6/6 runs" in capsys.readouterr().err

    def test_interrupted_it_leaves_no_worker_and_no_trace(self):
        # A worker that lived on would hold the pipe open, and run would wait for it until the timeout.
        program = """
import os, signal
from lmssc import GFHF, LMSSCCV
from lmssc.datasets import make_multiview
data = make_multiview(150, labelled=0.3, random_state=0)
clf = LMSSCCV(estimator=GFHF(), n_jobs=2, callback=lambda _: os.kill(os.getpid(), signal.SIGINT))
try:
    clf.fit(data.views, data.y)
except KeyboardInterrupt:
    print("interrupted", [name for name in vars(clf) if name.endswith("_")])
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.stdout == "interrupted []\n", done.stderr


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"grid": []}, ValueError, "param_grid must be a dict.*it is empty"),
        ({"grid": "beta"}, TypeError, "param_grid must be a dict.*got 'beta'"),
        ({"grid": {"view": "signal"}}, TypeError, r"'view' has 'signal', which is not a list: put \[ \]"),
        ({"grid": {"width": 1.0}}, TypeError, "'width' has 1.0, which is not a list"),
        ({"grid": {"width": []}}, ValueError, "no values for 'width'"),
        ({"grid": {"colour": [1]}}, ValueError, "'colour', which is not a parameter of GFHF.*n_neighbors"),
        ({"grid": {"views": [None]}}, ValueError, "'views', which is not a parameter of GFHF to choose"),
        ({"grid": {"width": [1.0, -1.0]}}, ValueError, "param_grid, {'width': -1.0}: width must be"),
        ({"grid": {"n_neighbors": [999]}}, ValueError, "param_grid, {'n_neighbors': 999}: n_neighbors=999 must"),
        ({"estimator": "LMSSC"}, ValueError, "estimator must be None, an LMSSC or another"),
        ({"views": GFHF()}, TypeError, "views must divide the columns of X, got GFHF; pass it as estimator="),
        ({"estimator": GFHF(views=[4, 2])}, ValueError, "views must be given to LMSSCCV itself"),
        ({"n_splits": 1}, ValueError, "n_splits must be an integer of at least 2"),
        ({"n_repeats": 0}, ValueError, "n_repeats must be an integer of at least 1"),
        ({"scoring": "auc"}, ValueError, "scoring must be 'accuracy' or"),
        ({"margin": -1}, ValueError, "margin must be"),
        ({"random_state": None}, ValueError, "random_state must be an integer from 0"),
    ],
)
def test_bad_arguments(planted, change, error, message):
    views, y, _ = planted
    with pytest.raises(error, match=message):
        search(**change).fit(views, y)


def test_fits_that_share_their_start_answer_as_if_they_did_not(monkeypatch):
    data = make_multiview(60, labelled=0.4, random_state=3)
    grid = [{}, {"n_neighbors": [5]}, {"n_components": [4]}]
    starts = []
    real = initialization.latent_start

    def counted(views, n_components, above_noise):
        starts.append(n_components)
        return real(views, n_components, above_noise=above_noise)

    monkeypatch.setattr(initialization, "latent_start", counted)
    grid = [{"scaling": ["zscore"], **one} for one in grid]  # so that no other form of the views is tried
    search = partial(LMSSCCV, param_grid=grid, n_repeats=1)
    shared = search().fit(data.views, data.y)
    assert len(starts) == 3  # one for each number of components, and the last fit's own
    monkeypatch.setattr(FitContext, "reuse", lambda self, key, compute: compute())
    alone = search().fit(data.views, data.y)
    assert len(starts) == 3 + 3 * 3 + 1
    np.testing.assert_array_equal(shared.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(shared.cv_results_["mean_evidence"], alone.cv_results_["mean_evidence"])
