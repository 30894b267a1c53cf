"""Single missing values are replaced by what fit learned, whatever the storage and the row order."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import lmssc
from lmssc import AMGL, GFHF, LMSSC, LMSSCCV, MLAN, stack_views
from lmssc.data import imputation
from lmssc.data.imputation import fill_gaps, learn_fills
from lmssc.data.view import RawView
from lmssc.datasets import make_multiview
from lmssc.model_selection.refit import hold_out
from lmssc.report import write_report

pytestmark = pytest.mark.usefixtures("uncalibrated")

METHODS = (LMSSC, GFHF, AMGL, MLAN)


@pytest.fixture
def data():
    """Two views; some values of the first are missing, one sample lacks it."""
    data = make_multiview(80, 2, 6, n_classes=3, labelled=0.4, random_state=0)
    gaps = np.random.default_rng(0).random(data.views[0].shape) < 0.05
    gaps[:, 3] = False
    gaps[5] = True
    data.gaps = gaps
    data.views[0] = np.where(gaps, np.nan, data.views[0])
    return data


def by_hand(view, statistic):
    """What `impute` should make of a view: rows that are all NaN stay."""
    missing = np.isnan(view).all(axis=1)
    # Sorted, because the last digit of a mean depends on the order.
    fills = [statistic(np.sort(column[~np.isnan(column)])) for column in view.T]
    filled = np.where(np.isnan(view), fills, view)
    filled[missing] = np.nan
    return filled


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("impute", "statistic"), [("median", np.median), ("mean", np.mean)])
def test_single_missing_values_are_filled_in(data, method, impute, statistic, tmp_path):
    first, second = data.views
    clf = method(impute=impute).fit(data.views, data.y)
    same = method().fit([by_hand(first, statistic), second], data.y)
    np.testing.assert_allclose(clf.label_distributions_, same.label_distributions_, atol=1e-9)
    expected = data.gaps.sum(axis=0) - 1  # one sample lacks the view
    np.testing.assert_array_equal(clf.imputed_["view0"], expected)
    assert not clf.imputed_["view1"].any()
    assert same.imputed_ == {}

    new = [np.array(view[:4] + 0.01) for view in same_views(data)]
    new[1][0, 2] = np.nan  # a column that had no gap in fit
    filled = [view.copy() for view in new]
    filled[1][0, 2] = statistic(np.sort(second[:, 2]))
    np.testing.assert_allclose(clf.predict_proba(new), same.predict_proba(filled), atol=1e-9)
    np.testing.assert_array_equal(clf.predict(data.views), clf.transduction_)
    clf.save(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(lmssc.load(tmp_path / "model.lmssc").predict_proba(new), clf.predict_proba(new))


def same_views(data):
    return [np.nan_to_num(view) for view in data.views]


def test_transform_fills_in_too(data):
    clf = LMSSC(impute="median").fit(data.views, data.y)
    new = same_views(data)
    filled = new[1][:3].copy()
    filled[1, 0] = np.median(data.views[1][:, 0])
    gaps = new[1][:3].copy()
    gaps[1, 0] = np.nan
    np.testing.assert_array_equal(clf.transform([new[0][:3], gaps]), clf.transform([new[0][:3], filled]))


def test_the_data_of_the_user_are_not_changed(data):
    before = [view.copy() for view in data.views]
    LMSSC(impute="mean", max_iter=2).fit(data.views, data.y).predict(data.views)
    for view, kept in zip(data.views, before, strict=True):
        np.testing.assert_array_equal(view, kept)


def test_without_impute_the_error_names_the_way_out(data):
    with pytest.raises(ValueError, match=r"view 'view0', row .*impute=\"median\""):
        LMSSC().fit(data.views, data.y)
    clf = LMSSC(max_iter=2).fit(same_views(data), data.y)
    with pytest.raises(ValueError, match=r"impute=\"median\""):
        clf.predict(data.views)


@pytest.mark.parametrize("impute", ["mode", 3, True])
def test_impute_is_median_mean_or_none(data, impute):
    with pytest.raises(ValueError, match="impute must be 'median', 'mean' or None"):
        LMSSC(impute=impute).fit(data.views, data.y)


def test_infinity_is_still_refused(data):
    data.views[0][2, 2] = np.inf
    with pytest.raises(ValueError, match="row 2: contains infinity"):
        LMSSC(impute="median").fit(data.views, data.y)


def test_a_column_without_a_number_is_named(data):
    data.views[1][:, 2] = np.nan
    with pytest.raises(ValueError, match=r"view 'view1', column 2 \(counted from 0\): no sample has a number"):
        LMSSC(impute="median").fit(data.views, data.y)
    frames = {"a": data.views[0], "b": pd.DataFrame(data.views[1], columns=list("uvwxyz"))}
    with pytest.raises(ValueError, match=r"view 'b', column 'w':"):
        LMSSC(impute="median").fit(frames, data.y)
    X = pd.DataFrame(np.hstack(data.views), columns=[f"c{i}" for i in range(12)])
    with pytest.raises(ValueError, match=r"view 'view1', column 'c8':"):
        LMSSC(views=[6, 6], impute="mean").fit(X, data.y)


@pytest.mark.parametrize("impute", ["median", "mean"])
@pytest.mark.parametrize("strip_bytes", [1, 1000, imputation.STRIP_BYTES])
def test_sparse_and_dense_views_learn_the_same(monkeypatch, impute, strip_bytes):
    monkeypatch.setattr(imputation, "STRIP_BYTES", strip_bytes)
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(31, 7)) * (rng.random((31, 7)) < np.linspace(0.05, 1, 7))
    dense[rng.random((31, 7)) < 0.1] = np.nan
    present = rng.random(31) < 0.9
    expected = (np.nanmedian if impute == "median" else np.nanmean)(dense[present], axis=0)
    for data in (dense, sparse.csr_array(dense)):
        raw = RawView("a", data, present)
        fills = learn_fills(raw, impute)
        np.testing.assert_allclose(fills, expected, atol=1e-15)
        filled, counts = fill_gaps(raw, fills)
        np.testing.assert_array_equal(counts, np.isnan(dense[present]).sum(axis=0))
        rows = filled.data[present]
        assert not np.isnan(rows.toarray() if sparse.issparse(rows) else rows).any()


def test_a_sparse_view_stays_sparse(data):
    words = sparse.random_array((80, 300), density=0.05, random_state=np.random.default_rng(0), format="csr")
    words.data[::60] = np.nan  # 20; a row of nothing else would be a sample without the view
    clf = LMSSC(impute="median", max_iter=2).fit([words, data.views[1]], data.y)
    assert clf.imputed_["view0"].sum() == 20
    assert np.isnan(words.data).sum() == 20
    assert sparse.issparse(clf._storage[clf._order.views.index(0)])


def test_gaps_of_single_precision_are_filled_in_single_precision(data):
    views = [view.astype(np.float32) for view in data.views]
    clf = LMSSC(impute="mean", max_iter=2).fit(views, data.y)
    assert clf.latent_.dtype == np.float32
    np.testing.assert_array_equal(clf.predict_proba([v.astype(float) for v in views]), clf.label_distributions_)


@pytest.mark.parametrize("impute", ["median", "mean"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_views_on_disk_are_filled_in_on_disk(data, tmp_path, monkeypatch, impute, kind):
    monkeypatch.setattr("lmssc.data.view.MIN_MAPPED_BYTES", 0)
    monkeypatch.setattr("lmssc.data.memmap.BATCH_BYTES", 700)
    monkeypatch.setattr(imputation, "STRIP_BYTES", 1500)
    in_memory = data.views[0]
    if kind == "dense":
        np.save(tmp_path / "view.npy", in_memory)
        view = lmssc.open_view(tmp_path / "view.npy")
    else:
        in_memory = sparse.csr_array(in_memory)
        sparse.save_npz(tmp_path / "view.npz", in_memory, compressed=False)
        view = lmssc.open_view(tmp_path / "view.npz")
    raw = RawView("a", view, ~data.gaps.all(axis=1))
    filled, _ = fill_gaps(raw, learn_fills(raw, impute))
    assert lmssc.data.memmap.memory_map(filled.data) is not None
    clf = LMSSC(impute=impute, max_iter=3).fit([view, data.views[1]], data.y)
    same = LMSSC(impute=impute, max_iter=3).fit([in_memory, data.views[1]], data.y)
    np.testing.assert_allclose(clf.label_distributions_, same.label_distributions_, atol=1e-6)
    np.testing.assert_array_equal(clf.predict([view, data.views[1]]), clf.transduction_)


@pytest.mark.parametrize("impute", ["median", "mean"])
def test_the_order_of_samples_and_views_does_not_matter_to_the_bit(data, impute):
    shuffled = np.random.default_rng(3).permutation(80)
    one = LMSSC(impute=impute).fit({"a": data.views[0], "b": data.views[1]}, data.y)
    two = LMSSC(impute=impute).fit({"b": data.views[1][shuffled], "a": data.views[0][shuffled]}, data.y[shuffled])
    np.testing.assert_array_equal(two.label_distributions_, one.label_distributions_[shuffled])


def test_a_search_passes_impute_on(data):
    clf = LMSSCCV(estimator=LMSSC(impute="mean", max_iter=2), param_grid=[{}, {"n_neighbors": [8]}], n_repeats=1)
    clf.fit(data.views, data.y)
    np.testing.assert_array_equal(clf.imputed_["view0"], data.gaps.sum(axis=0) - 1)
    np.testing.assert_array_equal(clf.predict(data.views), clf.transduction_)


def test_a_search_can_choose_impute(data):
    grid = {"impute": ["median", "mean"]}
    clf = LMSSCCV(estimator=LMSSC(max_iter=2), param_grid=grid, n_repeats=1, margin=None).fit(data.views, data.y)
    assert clf.best_params_["impute"] in ("median", "mean")
    # One setting alone gives the same: the fits of a search share nothing that depends on `impute`.
    for impute, score in zip(grid["impute"], clf.cv_results_["mean_test_score"], strict=True):
        alone = LMSSCCV(estimator=LMSSC(max_iter=2, impute=impute), param_grid=[{}], n_repeats=1)
        assert alone.fit(data.views, data.y).best_score_ == score
    with pytest.raises(ValueError, match=r"impute=\"median\""):
        LMSSCCV(param_grid={"n_neighbors": [5]}, n_repeats=1).fit(data.views, data.y)


def test_refits_and_the_report_fill_in_too(data, tmp_path):
    views = dict(zip("ab", data.views, strict=True))
    clf = LMSSC(impute="median", max_iter=2).fit(views, data.y)
    assert hold_out(clf, views, data.y)[None].answered.all()
    write_report(tmp_path / "r.html", clf, views, data.y, ids=[str(i) for i in range(80)], title="t", command="c")


def test_gaps_are_stacked_and_filled_in(data):
    words = sparse.random_array((80, 50), density=0.05, random_state=np.random.default_rng(0), format="csr")
    first = np.rint(data.views[0])  # with zeros: a row of zeros and one NaN is no row that is missing
    first[7] = [0, 0, np.nan, 0, 0, 0]
    X, widths = stack_views([first, words])
    clf = LMSSC(views=widths, impute="median", max_iter=2).fit(X, data.y)
    same = LMSSC(impute="median", max_iter=2).fit([first, words], data.y)
    np.testing.assert_array_equal(clf.imputed_["view0"], same.imputed_["view0"])
    np.testing.assert_array_equal(clf.label_distributions_, same.label_distributions_)


def test_a_precomputed_graph_has_nothing_to_impute(data):
    graph = GFHF().fit(same_views(data), data.y).graph_
    with pytest.raises(ValueError, match="leave out views, view and impute"):
        GFHF(graph="precomputed", impute="mean").fit(graph, data.y)
