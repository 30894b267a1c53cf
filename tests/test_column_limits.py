"""New samples whose values lie far from all those of fit get no confident answers, whatever their unit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import lmssc
from lmssc import LMSSC
from lmssc.data.batch_units import columns_near_zero
from lmssc.data.column_limits import CRITERIA, find_limits
from lmssc.data.scaling import fit_scaling, fit_scalings
from lmssc.data.view import RawView


def fit_half(load, **parameters):
    """A model of half of the samples, and the others with their classes."""
    X, target = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(target))
    X, target = X[order], target[order]
    n = len(target) // 2
    y = np.where(np.arange(n) < max(30, n // 5), target[:n], -1)
    return LMSSC(max_iter=2, **parameters).fit({"a": X[:n]}, y), X[n:], target[n:]


@pytest.fixture(scope="module")
def cancer():
    return fit_half(load_breast_cancer)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
@pytest.mark.parametrize("factor", [0.1, 0.001, 0.0])
def test_a_smaller_unit_gets_no_confident_answers(load, factor):
    clf, new, _ = fit_half(load)
    with pytest.warns(UserWarning, match="Perhaps they are in another unit"):
        found = clf.predict_proba({"a": factor * new})
    frequencies = clf.label_distributions_[clf._labelled].mean(axis=0)
    np.testing.assert_allclose(found, np.broadcast_to(frequencies, found.shape), atol=0.05)


def test_one_column_in_another_unit_or_a_code_for_unknown(cancer):
    clf, new, _ = cancer
    small, code = new.copy(), new.copy()
    small[:, 9] /= 1000
    code[::2, 3] = -999
    with pytest.warns(
        UserWarning, match=r"285 of 285 new samples .* in view 'a', column 9 \(counted from 0\)\. Perhaps"
    ):
        assert clf.predict_proba({"a": small}).max() < 0.7
    with pytest.warns(
        UserWarning, match=r"143 of 285 new samples .* in view 'a', column 3 \(counted from 0\)\. Perhaps"
    ):
        found = clf.predict_proba({"a": code})
    assert found[::2].max() < 0.7
    np.testing.assert_array_equal(found[1::2], clf.predict_proba({"a": new})[1::2])


def test_each_answer_depends_on_its_own_sample_alone(cancer):
    clf, new, _ = cancer
    mixed = np.vstack([new[:5], 0.1 * new[5:10], new[10:15]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together = clf.predict_proba({"a": mixed})
        alone = [clf.predict_proba({"a": row[None]})[0] for row in mixed]
    np.testing.assert_allclose(together, alone, atol=1e-12)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_ordinary_new_samples_keep_their_confidence(load):
    """To the bit: nothing changes within twice the reach of fit."""
    clf, new, _ = fit_half(load)
    found = clf.predict_proba({"a": new})
    for scaling in clf._scalings:
        object.__setattr__(scaling, "limits", None)
    np.testing.assert_array_equal(found, clf.predict_proba({"a": new}))


def test_a_smaller_unit_where_values_near_zero_are_usual():
    """Columns on both sides of zero have no limits, so no single sample shows it; the batch does."""
    X, target = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) * 3
    y = np.where(np.arange(150) % 3 == 0, target, -1)
    clf, new = LMSSC(max_iter=2).fit({"a": X}, y), X[1::3].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.predict({"a": new})
        clf.predict({"a": new[target[1::3] == 1]})
        clf.predict({"a": np.repeat(new[:1], 40, axis=0)})
    new[:, 2] /= 1000
    with pytest.warns(
        UserWarning, match=r"values nearer to zero in view 'a', column 2 \(counted from 0\), .* another unit"
    ):
        clf.predict({"a": new})
    with pytest.warns(UserWarning, match=r"nearer to zero in view 'a', columns 0, 1, 2, 3 \(counted"):
        clf.predict({"a": X / 1000})


@pytest.mark.parametrize("store", [np.array, sparse.csr_array])
def test_columns_near_zero(store):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1, 50, 1]
    X[rng.random(200) < 0.3, 2] = 0
    scaling = fit_scaling(RawView("a", X, None), "zscore")

    def found(new, present=None):
        return columns_near_zero(RawView("a", store(new), present), scaling).tolist()

    assert found(X) == found(X[:4] / 1000) == found(X[:29] * [1, 0.001, 1]) == found(0 * X) == []
    assert found(X[:29] / 1000) == [0, 1, 2]
    assert found(X * [1, 0.001, 1]) == [1]
    assert found(X * [1, 1, 0.001]) == []  # zeros mean "none" in any unit
    assert found(X / 1000) == [0, 1, 2]
    mixed = np.where(np.arange(200)[:, None] < 50, X / 1000, X)
    assert found(mixed) == []
    assert found(mixed, np.arange(200) < 50) == [0, 1, 2]


@pytest.mark.parametrize("store", [np.array, sparse.csr_array])
def test_all_columns_together_show_a_smaller_difference(store):
    """A tenth, such as cm for mm: confident wrong answers before, since 30 values of a column can be so small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1, 50, 1]
    (scaling,) = fit_scalings([RawView("a", X, None)], ["zscore"])

    def found(new):
        return columns_near_zero(RawView("a", store(new), None), scaling).tolist()

    assert found(X[:30] / 10) == [0, 1, 2]
    assert found(X[:29] / 10) == found(X[:30] / 3) == found(X * [0.1, 0.1, 1]) == []


def test_a_few_large_values_in_fit_do_not_make_others_small():
    """Mean squares of log-normal values are those of the largest; one batch in ten is below a fifth of that."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(sigma=2, size=(1000, 1))
    (scaling,) = fit_scalings([RawView("a", X, None)], ["zscore"])
    batches = [rng.lognormal(sigma=2, size=(30, 1)) for _ in range(500)]
    usual = np.sqrt(np.square(X).mean())
    assert sum(np.sqrt(np.square(new).mean()) < 0.2 * usual for new in batches) > 20
    assert all(columns_near_zero(RawView("a", new, None), scaling).size == 0 for new in batches)
    assert columns_near_zero(RawView("a", batches[0] / 30, None), scaling).tolist() == [0]


def slow_reach(X, row, scale):
    """How far a row is from the medians, towards zero, by loops over the columns and their sum."""
    columns = [*X.T, X @ scale]
    best = 0.0
    for values, x in zip(columns, [*row, row @ scale], strict=True):
        centre = np.median(values)
        if not ((values >= 0).all() or (values <= 0).all()) or centre == 0:
            continue
        side = -np.sign(centre)
        beyond = sorted((side * (values - centre)).tolist(), reverse=True)
        n_tail = max(round(0.1 * len(values)), 4)
        start = beyond[n_tail]
        if sum(value > start for value in beyond[:n_tail]) < 4:
            continue
        excess = sum(value - start for value in beyond[:n_tail]) / n_tail
        length = max(beyond[0], (start + np.log(1e5) * excess) / 2)
        best = max(best, side * (x - centre) / length)
    return best


@pytest.mark.parametrize("store", [np.array, sparse.csr_array])
def test_reach_is_that_of_the_loops(store):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(20, 1, 80), rng.exponential(size=80), -rng.gamma(9, size=80), rng.normal(size=80)]
    X = np.c_[X, rng.random(80) < 0.05, rng.poisson(3, 80)]
    new = np.vstack([X[:3], 0.1 * X[:3], 0 * X[:1], X[:1] - 999])
    scale = 1 / X.std(axis=0)
    found = find_limits(RawView("a", store(X), None), scale, None).reach(store(new)).ratios
    np.testing.assert_allclose(found, [slow_reach(X, row, scale) for row in new])
    assert found[:3].max() <= 1 < 2 < found[3]


def test_few_samples_have_no_limits(monkeypatch):
    X = np.random.default_rng(0).normal(20, 1, (39, 3))
    assert find_limits(RawView("a", X, None), np.ones(3), None) is None
    monkeypatch.setattr("lmssc.data.column_limits.STRIP", 2)
    wide = find_limits(RawView("a", np.tile(X, (2, 1)) + np.arange(78)[:, None] / 100, None), np.ones(3), None)
    assert wide.columns.tolist() == [0, 1, 2, 3]
    assert CRITERIA.min_tail == 4


def test_a_sample_that_lacks_the_view_is_not_far():
    X = np.random.default_rng(0).normal(20, 1, (100, 3))
    scaling = fit_scaling(RawView("a", X, None), "zscore")
    rows = np.array([[np.nan] * 3, [0.0] * 3])
    found = scaling.reach(RawView("a", rows, np.array([False, True])))
    assert found.ratios[0] == 0
    assert found.ratios[1] > 3


def test_a_file_keeps_the_limits(cancer, tmp_path):
    clf, new, _ = cancer
    clf.save(tmp_path / "m.lmssc")
    again = lmssc.load(tmp_path / "m.lmssc")
    with pytest.warns(UserWarning, match="another unit"):
        found = again.predict_proba({"a": 0.1 * new})
    with pytest.warns(UserWarning, match="another unit"):
        np.testing.assert_array_equal(found, clf.predict_proba({"a": 0.1 * new}))


@pytest.mark.parametrize("scaling", ["zscore", "center", "sqrt"])
@pytest.mark.parametrize("store", [np.array, sparse.csr_array])
def test_another_unit_of_a_view_is_told(scaling, store):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(150, 6)) * (rng.random((150, 6)) < 0.5)
    X = X if scaling == "sqrt" else X - X.mean()
    views, new = {"a": rng.normal(size=(150, 3)), "b": X}, X[:40] * 1.1
    clf = LMSSC(max_iter=1, scaling={"b": scaling}).fit(views, np.where(np.arange(150) < 30, np.arange(150) % 2, -1))

    def said(factor):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clf.predict({"a": views["a"][:40] + 0.1, "b": store(new * factor)})
        return [str(one.message) for one in caught]

    assert said(1) == said(2) == said(0.5) == []
    assert "most new samples have far larger values in view 'b'" in said(1000)[0]
    assert "nearer to zero in view 'b'" in said(0.001)[0]


@pytest.mark.filterwarnings("ignore:.*too small to be told from zero")
@pytest.mark.parametrize("size", [1e-60, 1e-200])
def test_models_of_tiny_values_can_be_loaded(size, tmp_path):
    """Limits of columns below the smallest number in single precision once made files that nothing could read."""
    X = np.random.default_rng(0).uniform(1, 2, size=(200, 4)) * [1, 1, size, 1]
    clf = LMSSC(max_iter=1).fit({"a": X}, np.where(np.arange(200) < 30, X[:, 0] > 1.5, -1))
    clf.save(tmp_path / "m.lmssc")
    np.testing.assert_array_equal(lmssc.load(tmp_path / "m.lmssc").predict({"a": X}), clf.transduction_)


def test_columns_in_a_larger_unit_are_named():
    X = np.random.default_rng(0).normal(size=(150, 3))
    clf = LMSSC(max_iter=1).fit(
        {"a": pd.DataFrame(X, columns=list("uvw"))}, np.where(np.arange(150) < 30, np.arange(150) % 2, -1)
    )
    with pytest.warns(UserWarning, match="far larger values in view 'a', column 'v', than those of fit"):
        clf.predict({"a": pd.DataFrame(X[:40] * [1, 1000, 1] + 0.1, columns=list("uvw"))})
