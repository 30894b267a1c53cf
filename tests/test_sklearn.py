"""LMSSC among scikit-learn's own tools."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import lmssc
from lmssc import LMSSC, LMSSCCV, stack_views
from lmssc.datasets import make_multiview
from lmssc.model_selection import LabelledKFold, labelled_scorer

WEIGHTS = "a weight is the trust in a label, from 0 to 1, not a number of copies"
REASONS = {
    "check_classifiers_classes": "it names a class −1, which marks unlabelled samples in integer labels",
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
    "check_array_api_input": "needs SCIPY_ARRAY_API in the environment; arrays are numpy's here",
}


# Calibration is most of a small fit, and does not change which class is the most likely.
QUICK = LMSSC(max_iter=1, calibrate=False)
QUICKLY = {"LMSSCCV": {"estimator": QUICK, "param_grid": {"beta": [0.5]}, "n_splits": 2, "n_repeats": 1}}


def estimators():
    """Every estimator that the package exports, with its defaults, or with a small search."""
    exported = [getattr(lmssc, name) for name in lmssc.__all__]
    classes = [thing for thing in exported if isinstance(thing, type) and issubclass(thing, BaseEstimator)]
    return [one(**QUICKLY.get(one.__name__, {})) for one in classes]


@parametrize_with_checks(estimators(), expected_failed_checks=lambda estimator: REASONS)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def stacked():
    data = make_multiview(150, labelled=0.3, random_state=0)
    X, views = stack_views(dict(zip(data.view_names, data.views, strict=True)))
    return X, views, data


def test_grid_search_leaves_unlabelled_rows_in_training_and_out_of_the_score(stacked):
    X, views, data = stacked
    splitter = LabelledKFold(3, random_state=0)
    for train, test in splitter.split(X, data.y):
        assert set(np.flatnonzero(data.y == -1)) <= set(train)
        assert (data.y[test] != -1).all()
        assert not set(train) & set(test)
    search = GridSearchCV(
        clone(QUICK).set_params(views=views),
        {"beta": [0.05, 0.2], "n_components": [5, 10]},
        cv=splitter,
        error_score="raise",
    ).fit(X, data.y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.6
    assert search.best_estimator_.latent_.shape[1] == search.best_params_["n_components"]


def test_even_a_plain_splitter_scores_labelled_rows_only(stacked):
    X, views, data = stacked
    quick = clone(QUICK).set_params(views=views)
    for train, test in StratifiedKFold(3).split(X, data.y):
        clf = clone(quick).fit(X[train], data.y[train])
        known = test[data.y[test] != -1]
        right = (clf.predict(X[known]) == data.y[known]).mean()
        assert clf.score(X[test], data.y[test]) == pytest.approx(right)
    scores = cross_val_score(quick, X, data.y, cv=StratifiedKFold(3), error_score="raise")
    assert scores.mean() > 0.6


def test_pipeline_and_clone(stacked):
    X, views, data = stacked
    pipeline = make_pipeline(FunctionTransformer(np.tanh), LMSSC(views=views, beta=0.2))
    copy = clone(pipeline).fit(X, data.y)
    assert copy[-1].get_params() == pipeline[-1].get_params()
    np.testing.assert_array_equal(copy.predict(X), copy[-1].transduction_)


def test_set_output(stacked):
    X, views, data = stacked
    clf = LMSSC(views=views, n_components=4).set_output(transform="pandas").fit(X, data.y)
    frame = clf.transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["lmssc0", "lmssc1", "lmssc2", "lmssc3"]


@pytest.mark.parametrize("index", [range(5, 155), [f"s{i}" for i in range(150)]], ids=["numbers", "names"])
@pytest.mark.parametrize("form", [list, dict])
def test_set_output_keeps_the_index_of_several_frames(index, form):
    data = make_multiview(150, n_views=2, labelled=0.3, random_state=0)
    frames = {"view0": pd.DataFrame(data.views[0]), "view1": pd.DataFrame(data.views[1], index=index)}
    frames = frames if form is dict else list(frames.values())
    clf = clone(QUICK).set_output(transform="pandas")
    assert clf.fit_transform(frames, data.y).index.tolist() == list(index)
    assert clf.transform(frames).index.tolist() == list(index)
    assert clf.transform(data.views).index.tolist() == list(range(150))
    assert isinstance(clf.set_output(transform="default").transform(frames), np.ndarray)
    search = LMSSCCV(estimator=QUICK, param_grid=[{}], n_splits=2, n_repeats=1).set_output(transform="pandas")
    assert search.fit(frames, data.y).transform(frames).index.tolist() == list(index)


@pytest.mark.parametrize("method", [LMSSC, lmssc.GFHF, lmssc.AMGL, lmssc.MLAN])
def test_the_tag_allow_nan_is_true_where_nan_is_taken(method):
    """One X without `views` and `impute` is one view, in which no NaN can stand."""
    assert not get_tags(method()).input_tags.allow_nan
    assert get_tags(method(views=[1, 1])).input_tags.allow_nan
    assert get_tags(method(impute="median")).input_tags.allow_nan
    assert get_tags(LMSSCCV(views=[1, 1])).input_tags.allow_nan
    assert get_tags(LMSSCCV(estimator=method(impute="mean"))).input_tags.allow_nan
    assert get_tags(LMSSCCV(param_grid={"impute": ["median"]})).input_tags.allow_nan
    assert not get_tags(lmssc.GFHF(graph="precomputed")).input_tags.allow_nan


@parametrize_with_checks([clone(QUICK).set_params(impute="median")], expected_failed_checks=lambda estimator: REASONS)
def test_estimator_checks_with_impute(estimator, check):
    check(estimator)


class TestLabelledScorer:
    """Scores of labelled rows, whatever the splitter."""

    @staticmethod
    def by_hand(metric, clf, X, y):
        scores = []
        for train, test in StratifiedKFold(3).split(X, y):
            known = test[y[test] != -1]
            fitted = clone(clf).fit(X[train], y[train])
            scores.append(metric(y[known], fitted.predict(X[known])))
        return scores

    @pytest.mark.parametrize(
        ("name", "metric"),
        [
            ("accuracy", accuracy_score),
            ("balanced_accuracy", balanced_accuracy_score),
            ("f1_macro", partial(f1_score, average="macro")),
        ],
    )
    def test_unlabelled_rows_are_not_scored(self, stacked, name, metric):
        X, views, data = stacked
        clf = clone(QUICK).set_params(views=views)
        scores = cross_val_score(clf, X, data.y, cv=StratifiedKFold(3), scoring=labelled_scorer(name))
        np.testing.assert_allclose(scores, self.by_hand(metric, clf, X, data.y))
        with pytest.warns(UserWarning, match="the scorer counts each of them as wrong"):
            wrong = cross_val_score(clf, X, data.y, cv=StratifiedKFold(3), scoring=name)
        assert scores.mean() > wrong.mean() + 0.1

    def test_log_loss_where_the_test_set_lacks_a_class(self, stacked):
        X, views, data = stacked
        clf = LMSSC(views=views, max_iter=1).fit(X, data.y)
        y = np.where(data.y == 2, -1, data.y)
        known = np.flatnonzero(y >= 0)
        expected = np.log(clf.predict_proba(X + 0.1)[known, y[known]]).mean()
        assert labelled_scorer("neg_log_loss")(clf, X + 0.1, y) == pytest.approx(expected)

    def test_grid_search_with_several_scores_and_workers(self, stacked):
        X, views, data = stacked
        search = GridSearchCV(
            clone(QUICK).set_params(views=views),
            {"n_neighbors": [5, 10]},
            cv=2,
            scoring={"right": labelled_scorer(), "loss": labelled_scorer("neg_log_loss")},
            refit="right",
            error_score="raise",
            n_jobs=2,
        ).fit(X, data.y)
        assert search.best_score_ > 0.6
        assert np.isfinite(search.cv_results_["mean_test_loss"]).all()

    @pytest.mark.parametrize("form", [list, dict, pd.DataFrame, sparse.csr_matrix, sparse.csr_array, pl.DataFrame])
    def test_views_in_every_form(self, stacked, form):
        X, views, data = stacked
        names = list(views)
        if form in (list, dict):
            parts = data.views if form is list else dict(zip(names, data.views, strict=True))
            clf = clone(QUICK).fit(parts, data.y)
        else:
            parts = form(X)
            clf = clone(QUICK).set_params(views=views).fit(parts, data.y)
        assert labelled_scorer()(clf, parts, data.y) == clf.score(parts, data.y)
        weight = np.arange(150.0)
        assert labelled_scorer()(clf, parts, data.y, sample_weight=weight) == clf.score(parts, data.y, weight)

    def test_text_labels(self, stacked):
        X, views, data = stacked
        y = np.where(data.y == -1, None, np.array(["a", "b", "c"], dtype=object)[data.target])
        clf = clone(QUICK).set_params(views=views)
        scores = cross_val_score(clf, X, y, cv=LabelledKFold(2, random_state=0), scoring=labelled_scorer("f1_macro"))
        assert scores.mean() > 0.6

    def test_nothing_to_score(self, stacked):
        X, views, data = stacked
        clf = LMSSC(views=views, max_iter=1).fit(X, data.y)
        with pytest.raises(ValueError, match="no labelled sample to score"):
            labelled_scorer()(clf, X, np.full(150, -1))
        with pytest.raises(ValueError, match="'accuracyy'"):
            labelled_scorer("accuracyy")

    def test_it_says_what_it_is(self):
        assert repr(labelled_scorer("f1_macro")) == "labelled_scorer('f1_macro')"


class TestLabelledKFold:
    def test_every_label_is_scored_once(self):
        y = np.array(["a", "b", None, "a", "b", "a", "b", None], dtype=object)
        tests = [test for _, test in LabelledKFold(3, random_state=0).split(None, y)]
        assert sorted(np.concatenate(tests)) == [0, 1, 3, 4, 5, 6]

    def test_fewer_folds_for_few_labels_and_single_labels_stay_in_training(self):
        y = np.array([0, 0, 0, 1, 1, 2, -1])
        folds = LabelledKFold(5, random_state=0)
        splits = list(folds.split(None, y))
        assert len(splits) == folds.get_n_splits(None, y) == 2
        assert all(5 in train for train, _ in splits)

    def test_nothing_to_hold_out(self):
        with pytest.raises(ValueError, match="no class has 2 labelled samples"):
            next(LabelledKFold().split(None, [0, 1, -1]))
