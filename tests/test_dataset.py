"""A dataset is validated and hashed once, whatever is derived from it and however often it is fitted."""

import numpy as np
import pytest
from scipy import sparse

from lmssc import AMGL, GFHF, LMSSC, LMSSCCV
from lmssc.data import canonical_order, missing_views
from lmssc.data.dataset import validate
from lmssc.data.folds import assign_folds, without_labels
from lmssc.datasets import make_multiview
from lmssc.model_selection.refit import hold_out


@pytest.fixture(scope="module")
def data():
    return make_multiview(90, n_views=3, labelled=0.3, random_state=0)


@pytest.fixture
def views(data):
    """A dense view, a sparse one, and one that some samples lack."""
    holed = data.views[2].copy()
    holed[::5] = np.nan
    return {"a": data.views[0], "b": sparse.csr_array(np.maximum(data.views[1] - 1, 0)), "c": holed}


def assert_same_data(one, other):
    assert one.names == other.names
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.classes, other.classes)
    for mine, its in zip(one.keys_by_view, other.keys_by_view, strict=True):
        np.testing.assert_array_equal(mine, its)
    for mine, its in zip(one.views, other.views, strict=True):
        assert sparse.issparse(mine.data) == sparse.issparse(its.data)
        assert (mine.present is None) == (its.present is None)
    assert one.order.views == other.order.views
    np.testing.assert_array_equal(one.order.samples, other.order.samples)


def test_derived_datasets_are_those_of_the_derived_input(data, views):
    dataset = validate(views, data.y)
    assert len(dataset.keys_by_view) == 3  # computed, so that the derived ones take them over
    rows = np.flatnonzero(np.arange(90) % 5)  # all of these have all views
    parts = {name: view[rows] for name, view in views.items()}
    assert_same_data(dataset.take(rows), validate(parts, data.y[rows]))
    hidden = np.flatnonzero(data.y >= 0)[:4]
    assert_same_data(dataset.without_labels(hidden), validate(views, without_labels(data.y, hidden)))
    assert_same_data(dataset.without_view("b"), validate({"a": views["a"], "c": views["c"]}, data.y))


def test_classes_without_a_label_are_dropped(data, views):
    labels = np.array(["x", "y", "z", None], dtype=object)[data.y]
    rest = validate(views, labels).without_labels(np.flatnonzero(labels == "y"))
    assert rest.classes.tolist() == ["x", "z"]
    np.testing.assert_array_equal(rest.classes[rest.codes[labels == "z"]], labels[labels == "z"])


@pytest.mark.parametrize("method", [LMSSC(max_iter=2), GFHF(), AMGL(max_iter=2)], ids=lambda m: type(m).__name__)
def test_a_fit_to_a_dataset_is_a_fit_to_its_input(data, views, method):
    fold = np.flatnonzero(data.y >= 0)[::4]
    refitted = method._fit_dataset(validate(views, data.y).without_labels(fold)).label_distributions_
    np.testing.assert_array_equal(refitted, method.fit(views, without_labels(data.y, fold)).label_distributions_)


def test_gaps_are_refused_by_the_fits_that_do_not_fill_them_in(data):
    views = [data.views[0].copy(), data.views[1]]
    views[0][7, 1] = np.nan
    dataset = validate(views, data.y)
    with pytest.raises(ValueError, match=r"view 'view0', row 7: contains NaN in 1 of"):
        GFHF()._fit_dataset(dataset)
    clf = GFHF(impute="mean")._fit_dataset(dataset)
    assert clf.imputed_["view0"].sum() == 1
    np.testing.assert_array_equal(clf.transduction_, GFHF(impute="mean").fit(views, data.y).transduction_)
    GFHF()._fit_dataset(dataset.take(np.arange(8, 90)))  # which has no gaps


@pytest.mark.parametrize(
    "run",
    [
        lambda views, y: hold_out(GFHF(), views, y, without=[None, "a", "b"]),
        lambda views, y: LMSSCCV(estimator=GFHF(), param_grid={"n_neighbors": [5, 9]}).fit(views, y),
    ],
    ids=["hold_out", "LMSSCCV"],
)
def test_refits_validate_and_hash_each_view_once(data, views, monkeypatch, run):
    calls = []

    def count(module, name):
        plain = getattr(module, name)

        def counted(*args):
            calls.append(name)
            return plain(*args)

        return counted

    monkeypatch.setattr("lmssc.data.dataset.row_keys", count(canonical_order, "row_keys"))
    monkeypatch.setattr("lmssc.data.missing_views._check_rows", count(missing_views, "_check_rows"))
    run(views, data.y)
    assert calls.count("row_keys") == calls.count("_check_rows") == len(views)


def test_rotated_folds_differ_by_one_row_at_most():
    codes = np.repeat(np.arange(40), 6)
    assert np.ptp(np.bincount(assign_folds(codes, 5, rotate=True))) <= 1
    assert np.ptp(np.bincount(assign_folds(codes, 5))) == 40
