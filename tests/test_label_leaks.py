"""Columns made from the labels are found, and honest features are not suspected."""

import warnings
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from lmssc import GFHF, LMSSC
from lmssc.cli import main
from lmssc.data.dataset import validate
from lmssc.data.label_leaks import _chance_of_all, _tells_classes, find_leaks

RNG_SEED = 3


def labelled_at_random(target, n_labelled, rng):
    y = np.full(len(target), -1)
    rows = rng.permutation(len(target))[:n_labelled]
    y[rows] = target[rows]
    return y


def few_labels(seed=RNG_SEED):
    """500 samples of 3 classes, 60 labelled: features, target and labels."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 3, 500)
    features = rng.normal(size=(500, 10)) + 0.6 * rng.normal(size=(3, 10))[target]
    return features, target, labelled_at_random(target, 60, rng), rng


def target_encoding(y, rng):
    category = rng.integers(0, 100, len(y))
    known = y >= 0
    means = [
        (y[known & (category == one)] == 0).mean() if (known & (category == one)).any() else 1 / 3 for one in range(100)
    ]
    return np.array(means)[category]


def discriminant_scores(y, rng):
    noise = rng.normal(size=(len(y), 50))
    return LinearDiscriminantAnalysis().fit(noise[y >= 0], y[y >= 0]).transform(noise)


LEAKS = {
    "copy": lambda y, rng: y,
    "0 for unknown": lambda y, rng: y + 1,
    "renamed": lambda y, rng: np.array([5.0, -2.0, 9.0, 0.0])[y],
    "one-hot": lambda y, rng: y[:, None] == np.arange(3),
    "gaps": lambda y, rng: np.where(y >= 0, y, np.nan),
    "mean for unknown": lambda y, rng: np.where(y >= 0, y, y[y >= 0].mean()),
    "noise for unknown": lambda y, rng: np.where(y >= 0, y + 0.1 * rng.normal(size=len(y)), rng.normal(size=len(y))),
    "scores of a supervised method": discriminant_scores,
}


@pytest.mark.parametrize("name", LEAKS)
def test_finds_columns_made_from_the_labels(name):
    features, _, y, rng = few_labels()
    made = np.asarray(LEAKS[name](y, rng), dtype=float).reshape(len(y), -1)
    found = find_leaks(validate({"a": features, "b": np.c_[features[:, :2], made]}, y))
    assert [(leak.view, leak.column) for leak in found] == [(1, 2 + j) for j in range(made.shape[1])]


def test_finds_target_encoded_categories():
    features, _, y, rng = few_labels()
    found = find_leaks(validate(np.c_[features, target_encoding(y, rng)], y))
    assert [leak.column for leak in found] == [10]


def test_finds_a_view_that_only_labelled_samples_have():
    features, _, y, _ = few_labels()
    alone = np.where(y >= 0, y, np.nan)[:, None]
    (leak,) = find_leaks(validate([features, alone], y))
    assert leak.view == 1
    assert "have no value" in leak.unlabelled


@pytest.mark.parametrize("store", [sparse.csr_array, sparse.csr_matrix])
def test_storage_does_not_matter(store):
    features, _, y, _ = few_labels()
    dense = np.c_[np.where(features > 0.5, features, 0), y + 1]
    assert find_leaks(validate(store(dense), y)) == find_leaks(validate(dense, y)) != []


def test_order_of_the_samples_does_not_matter():
    """Only some of very many samples are compared, whatever their order."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 9000)
    y = labelled_at_random(target, 4000, rng)
    X = np.c_[target + rng.normal(size=9000), np.where(y >= 0, y, rng.integers(0, 2, 9000) + 0.2)]
    order = rng.permutation(9000)
    found = find_leaks(validate(X, y))
    assert found == find_leaks(validate(X[order], y[order]))
    assert [leak.column for leak in found] == [1]


def test_rows_that_are_repeated_keep_their_share():
    """Of very many samples with few distinct rows, those compared are like all."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, 4000)
    y = labelled_at_random(target, 200, rng)
    assert find_leaks(validate(np.eye(3)[target], y)) == []


def test_which_samples_are_labelled_is_no_leak_by_itself():
    """A column that differs between labelled and unlabelled samples, but says nothing about the classes."""
    features, _, y, rng = few_labels()
    chosen = np.c_[features, y >= 0, np.where(y >= 0, 5.0, 0.0) + rng.normal(size=len(y))]
    assert find_leaks(validate(chosen, y)) == []


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine, load_digits])
@pytest.mark.parametrize("per_class", [False, True], ids=["at random", "as many of each class"])
def test_honest_features_are_not_suspected(load, per_class):
    X, target = load(return_X_y=True)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for share in (0.05, 0.1, 0.3):
            y = labelled_at_random(target, int(share * len(target)) + 2, rng)
            if per_class:
                y = np.full(len(target), -1)
                for code in np.unique(target):
                    rows = rng.permutation(np.flatnonzero(target == code))[: int(share * len(target) / 3)]
                    y[rows] = code
            if len(np.unique(y[y >= 0])) > 1:
                assert find_leaks(validate(X, y)) == []


def test_features_that_tell_the_classes_perfectly_are_not_suspected():
    """Nor if the classes are much more frequent among labelled samples than among the others."""
    rng = np.random.default_rng(0)
    target = (rng.random(2000) < 0.05).astype(int)
    y = np.full(2000, -1)
    for code in (0, 1):
        rows = np.flatnonzero(target == code)[:40]
        y[rows] = code
    X = np.c_[target, 10 * target + rng.normal(size=2000), rng.normal(size=2000)]
    assert find_leaks(validate(X, y)) == []


def test_rate_of_false_alarms():
    """At most 1 in 1,000 views of honest features; here none of 300 with 20 columns each, half of them strong."""
    n_alarms = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        target = rng.integers(0, 2 + seed % 4, 200)
        strong = 3 * target[:, None] + rng.standard_t(2 + seed % 3, size=(200, 10))
        y = labelled_at_random(target, (15, 30, 60)[seed % 3], rng)
        n_alarms += bool(find_leaks(validate(np.c_[strong, rng.normal(size=(200, 10))], y)))
    assert n_alarms == 0


def test_f_test_is_that_of_scipy():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [4, 7, 9])
    X = rng.normal(size=(20, 40)) + np.linspace(0, 4, 40) * codes[:, None]
    groups = [X[codes == code] for code in range(3)]
    p_values = stats.f_oneway(*groups).pvalue
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    within = sum(((group - group.mean(axis=0)) ** 2).sum(axis=0) for group in groups)
    for risk in (1e-3, 1e-8):
        expected = (p_values <= risk) & (1 - within / total >= 0.5)
        assert 0 < expected.sum() < 40
        assert _tells_classes(X, codes, risk).tolist() == expected.tolist()
        assert _tells_classes(sparse.csr_array(X), codes, risk).tolist() == expected.tolist()


def test_chance_that_all_special_samples_are_drawn():
    exact = Fraction(comb(30 - 6, 12 - 6), comb(30, 12))
    assert _chance_of_all(6, 12, 30) == pytest.approx(float(exact))


def test_fit_warns_and_names_view_and_column():
    pd = pytest.importorskip("pandas")
    X, target = load_breast_cancer(return_X_y=True)
    y = labelled_at_random(target, 56, np.random.default_rng(0))
    frame = pd.DataFrame(X).add_prefix("f").assign(diagnosis=y)
    with pytest.warns(UserWarning, match="view 'cells', column 'diagnosis' seems to be made from the labels"):
        LMSSC(max_iter=1).fit({"cells": frame}, y)
    with pytest.warns(UserWarning, match="view 'view0', column 'diagnosis' seems to be made from the labels"):
        GFHF().fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LMSSC(max_iter=1).fit({"cells": frame.drop(columns="diagnosis")}, y)


@pytest.fixture
def patients(tmp_path):
    """A file of features with the labels in it, as numbers, and one of labels."""
    X, target = load_breast_cancer(return_X_y=True)
    X, target = X[:200, :5], target[:200]
    y = labelled_at_random(target, 40, np.random.default_rng(0))
    lines = [f"p{row},{','.join(map(str, X[row]))},{y[row]}" for row in range(200)]
    (tmp_path / "features.csv").write_text("\n".join(["id,a,b,c,d,e,diagnosis", *lines]) + "\n")
    names = np.array(["malignant", "benign", ""])
    for column in ("diagnosis", "group"):
        text = "\n".join([f"id,{column}", *(f"p{row},{names[y[row]]}" for row in range(200))])
        (tmp_path / f"{column}.csv").write_text(text + "\n")
    return tmp_path


def classify(folder, labels):
    features = str(folder / "features.csv")
    out = ["--out", str(folder / "out"), "--no-report"]
    return main(["classify", features, "--labels", str(folder / labels), *out])


def test_classify_leaves_out_the_column_of_the_labels(patients, capsys):
    assert classify(patients, "diagnosis.csv") == 0
    text = capsys.readouterr()
    assert "features  5 features" in text.out
    assert "Not used in" in text.out
    assert "features.csv: diagnosis" in text.out
    assert "warning" not in text.err


@pytest.mark.filterwarnings("default")
def test_classify_warns_of_labels_under_another_name(patients, capsys):
    assert classify(patients, "group.csv") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    (line,) = [line for line in lines if "labelled samples lie among themselves" not in line]  # the column sees to that
    assert f"view 'features' ({patients / 'features.csv'}), column 'diagnosis' seems to be made from the labels" in line
