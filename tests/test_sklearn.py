"""LMSSC among scikit-learn's own tools."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import lmssc
from lmssc import LMSSC, stack_views
from lmssc.datasets import make_multiview
from lmssc.model_selection import LabelledKFold

REASONS = {
    "check_classifiers_classes": "it names a class −1, which marks unlabelled samples in integer labels",
    "check_array_api_input": "needs SCIPY_ARRAY_API in the environment; arrays are numpy's here",
}


QUICKLY = {"LMSSCCV": {"estimator": LMSSC(max_iter=2), "param_grid": [{}, {"beta": [0.5]}], "n_repeats": 1}}


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
        LMSSC(views=views), {"beta": [0.05, 0.2], "n_components": [5, 10]}, cv=splitter, error_score="raise"
    ).fit(X, data.y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.6
    assert search.best_estimator_.latent_.shape[1] == search.best_params_["n_components"]


def test_even_a_plain_splitter_scores_labelled_rows_only(stacked):
    X, views, data = stacked
    for train, test in StratifiedKFold(3).split(X, data.y):
        clf = LMSSC(views=views).fit(X[train], data.y[train])
        known = test[data.y[test] != -1]
        right = (clf.predict(X[known]) == data.y[known]).mean()
        assert clf.score(X[test], data.y[test]) == pytest.approx(right)
    scores = cross_val_score(LMSSC(views=views), X, data.y, cv=StratifiedKFold(3), error_score="raise")
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
