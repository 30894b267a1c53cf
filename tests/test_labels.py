"""Labels of every type, few and many of them, and samples that no label reaches."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lmssc import LMSSC
from lmssc.data.labels import ClassName, encode_labels

pytestmark = pytest.mark.usefixtures("uncalibrated")

N = 30
RNG = np.random.default_rng(0)
TARGET = np.arange(N) % 2
X = RNG.normal(size=(N, 4)) + 2 * TARGET[:, None]
KNOWN = np.arange(N) < 10
CODES = np.where(KNOWN, TARGET, -1)


def labelled(words, unknown):
    """`words` as the labels of the two classes, `unknown` for the others."""
    return [words[code] if code >= 0 else unknown for code in CODES]


WORDS, NUMBERS, TRUTHS = ["cat", "dog"], [3, 7], [False, True]
WAYS = {
    "integers": (CODES, [0, 1]),
    "list of integers": (CODES.tolist(), [0, 1]),
    "other integers": (labelled(NUMBERS, -1), NUMBERS),
    "negative classes": (np.array(labelled([-5, 2], -1)), [-5, 2]),
    "small integers": (CODES.astype(np.int8), [0, 1]),
    "big integers": (np.array(labelled([2**60, 2**60 + 1], -1)), [2**60, 2**60 + 1]),
    "integers and None": (labelled(NUMBERS, None), NUMBERS),
    "integers and NaN": (labelled(NUMBERS, np.nan), NUMBERS),
    "integers, -1 and None": ([None if i == 20 else label for i, label in enumerate(CODES)], [0, 1]),
    "floats and NaN": (np.array(labelled([0.0, 1.0], np.nan)), [0, 1]),
    "float objects and None": (labelled([0.0, 1.0], None), [0, 1]),
    "text and None": (labelled(WORDS, None), WORDS),
    "text and NaN": (labelled(WORDS, np.nan), WORDS),
    "object array": (np.array(labelled(WORDS, None), dtype=object), WORDS),
    "booleans and None": (labelled(TRUTHS, None), TRUTHS),
    "series": (pd.Series(CODES, index=range(100, 100 + N)), [0, 1]),
    "series of text": (pd.Series(labelled(WORDS, None)), WORDS),
    "nullable integers": (pd.Series(labelled(NUMBERS, pd.NA), dtype="Int64"), NUMBERS),
    "nullable integers, -1": (pd.Series(CODES, dtype="Int64"), [0, 1]),
    "nullable text": (pd.Series(labelled(WORDS, pd.NA), dtype="string"), WORDS),
    "nullable booleans": (pd.Series(labelled(TRUTHS, pd.NA), dtype="boolean"), TRUTHS),
    "categories": (pd.Categorical(labelled(WORDS, None), categories=["wolf", "dog", "cat"]), WORDS),
    "series of categories": (pd.Series(labelled(WORDS, None), dtype="category"), WORDS),
    "integer categories": (pd.Series(labelled(NUMBERS, None), dtype="category"), NUMBERS),
    "index": (pd.Index(labelled(WORDS, None)), WORDS),
    "polars integers": (pl.Series(CODES), [0, 1]),
    "polars integers and null": (pl.Series(labelled(NUMBERS, None)), NUMBERS),
    "polars integers, -1 and null": (pl.Series([None, *CODES[1:].tolist()]), [0, 1]),
    "polars text": (pl.Series(labelled(WORDS, None)), WORDS),
    "polars categories": (pl.Series(labelled(WORDS, None), dtype=pl.Categorical), WORDS),
    "polars booleans": (pl.Series(labelled(TRUTHS, None)), TRUTHS),
    "arrow": (pa.chunked_array([labelled(WORDS, None)]), WORDS),
    "arrow integers": (pa.array(labelled(NUMBERS, None)), NUMBERS),
}


@pytest.fixture(scope="module")
def right():
    return LMSSC().fit(X, CODES)


@pytest.mark.parametrize("way", WAYS)
def test_ways_of_passing_labels(way, right):
    y, classes = WAYS[way]
    before = list(y)
    clf = LMSSC().fit(X, y)
    assert clf.classes_.tolist() == classes
    if way != "polars integers, -1 and null":  # one label less
        assert np.array_equal(clf.label_distributions_, right.label_distributions_)
    assert set(clf.predict(X + 0.1).tolist()) <= set(classes)
    assert (clf.transduction_[1:10] == np.array(classes)[TARGET[1:10]]).all()
    # The share of the ten labelled samples that are right: rows without a label do not count.
    assert clf.score(X, y) == 1.0
    assert all(old is new or old == new or old != old for old, new in zip(before, list(y), strict=True))


@pytest.mark.parametrize("kind", [bool, str, int])
def test_all_labelled(kind):
    y = TARGET.astype(kind)
    clf = LMSSC().fit(X, y)
    assert clf.classes_.dtype == y.dtype
    assert np.array_equal(clf.transduction_, y)
    assert np.array_equal(clf.label_distributions_, np.eye(2)[TARGET])
    assert not len(clf.unreached_)


@pytest.mark.parametrize("n_classes", [2, 3, 15, 29, 30])
def test_one_label_a_class(n_classes):
    """Nothing is said about a regression, however many classes there are."""
    y = np.where(np.arange(N) < n_classes, np.arange(N)[::-1], -1)
    clf = LMSSC().fit(X, y)
    assert clf.classes_.tolist() == sorted(set(y.tolist()) - {-1})
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)
    assert np.array_equal(clf.transduction_[y >= 0], y[y >= 0])


def test_hundred_classes():
    points = RNG.normal(size=(100, 6)) * 10
    noisy = np.vstack([points, points + 0.01, points - 0.01])
    clf = LMSSC(n_neighbors=3).fit(noisy, np.append(np.arange(100), np.full(200, -1)))
    assert (clf.transduction_ == np.tile(np.arange(100), 3)).mean() > 0.95


def test_very_unequal_classes():
    with pytest.warns(UserWarning, match="only one labelled sample for 1"):
        clf = LMSSC().fit(X, [1, *[0] * (N - 2), -1])
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)


def islands(n_islands=2, size=20):
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal(size=(size, 3)) + 1e3 * island for island in range(n_islands)])


@pytest.mark.parametrize("n_islands", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"loadings": "nonnegative"}, {"n_neighbors": 3}])
def test_samples_that_no_label_reaches(settings, n_islands):
    y = np.full(20 * n_islands, -1)
    y[[3, 5, 7, 11]] = [0, 0, 0, 1]
    clf = LMSSC(**settings)
    count = 20 * (n_islands - 1)
    with pytest.warns(UserWarning, match=rf"{count} of {len(y)} samples.*unreached_"):
        clf.fit(islands(n_islands), y)
    assert clf.unreached_.tolist() == list(range(20, len(y)))
    np.testing.assert_allclose(clf.label_distributions_[20:], np.tile([0.75, 0.25], (count, 1)))
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)
    np.testing.assert_allclose(clf.predict_proba(islands(n_islands)[20:] + 0.01)[:, 0], 0.75, atol=1e-6)


def test_refit_forgets_the_unreached():
    y = np.full(40, -1)
    y[[0, 1]] = [0, 1]
    with pytest.warns(UserWarning, match="20 of 40"):
        clf = LMSSC().fit(islands(), y)
    y[30] = 1
    assert not len(clf.fit(islands(), y).unreached_)
    assert (clf.transduction_[20:] == 1).all()


SUSPECT = {
    "text made of NaN": (np.array(labelled(WORDS, np.nan)), "20 labels 'nan', taken as unlabelled"),
    "text made of None": (np.array(labelled(WORDS, None)).astype(str), "20 labels 'None', taken as unlabelled"),
    "text made of -1": (np.array(labelled(WORDS, -1)), "20 labels '-1', taken as unlabelled"),
    "NaN and -1.0": (np.append(np.nan, CODES[1:].astype(float)), "20 labels -1.0, taken as unlabelled"),
    "-1.0": (CODES.astype(float), "20 labels -1.0, taken as unlabelled"),
    "-1.0 in a series with None": (pd.Series([None, *CODES[1:].tolist()]), "20 labels -1.0, taken as unlabelled"),
    "numbers and 'nan'": (labelled(NUMBERS, "nan"), "20 labels 'nan', taken as unlabelled"),
}


@pytest.mark.parametrize("case", SUSPECT)
def test_labels_that_may_mean_something_else(case):
    y, message = SUSPECT[case]
    with pytest.warns(UserWarning, match=message):
        assert len(encode_labels(y, N).classes) == 2


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "array of text": np.array,
    "array of objects": lambda y: np.array(y, dtype=object),
    "masked array": np.ma.array,
    "series": pd.Series,
    "series of strings": lambda y: pd.Series(y, dtype="string"),
    "series of categories": lambda y: pd.Series(y, dtype="category"),
    "index": pd.Index,
    "polars": pl.Series,
    "arrow": pa.array,
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("word", ["-1", "nan", "", " ", "NA", "N/A", "None", "null"])
def test_text_for_a_missing_value_is_unlabelled_in_every_container(container, word):
    y = CONTAINERS[container](labelled(WORDS, word))
    with pytest.warns(UserWarning, match=f"20 labels '{word}', taken as unlabelled"):
        labels = encode_labels(y, N)
    assert labels.classes.tolist() == WORDS
    np.testing.assert_array_equal(labels.codes, CODES)


@pytest.mark.parametrize("container", CONTAINERS)
def test_labels_that_differ_in_blanks_alone_are_refused(container):
    y = CONTAINERS[container](["cat ", *["cat", "dog"] * 3])
    with pytest.raises(ValueError, match="'cat' and 'cat ' differ only in blanks"):
        encode_labels(y, 7)


def test_a_class_may_be_named_as_nothing_if_it_is_said():
    y = [ClassName(label) if label else None for label in labelled(["NA", "none"], None)]
    clf = LMSSC().fit(X, y)
    assert clf.classes_.tolist() == ["NA", "none"]
    assert {type(name) for name in clf.classes_} == {str}
    assert clf.score(X, y) == 1.0


@pytest.mark.parametrize("words", [[0, 1], ["cat", "dog"], [0.0, 1.0], [False, True]])
def test_what_a_mask_hides_is_unlabelled(words, right):
    y = np.ma.masked_array(np.array(words)[TARGET], mask=~KNOWN)
    clf = LMSSC().fit(X, y)
    assert clf.classes_.tolist() == words
    np.testing.assert_array_equal(clf.label_distributions_, right.label_distributions_)
    assert clf.score(X, y) == 1.0
    assert y.mask.tolist() == (~KNOWN).tolist()


DATES = np.array(labelled(["2024-01-01", "2024-02-01"], "NaT"), dtype="datetime64[D]")
NOT_LABELS = {
    "dates": (DATES, r"Unknown label type: datetime64\[D\]"),
    "dates in a series": (pd.Series(DATES), "Unknown label type: datetime64"),
    "times": (DATES - DATES[0], "Unknown label type: timedelta64"),
    "two encodings of an accent": (labelled(["\u00e9", "e\u0301"], None), "differ only in how accents are encoded"),
    "-1 and 1": (np.where(TARGET, 1, -1), "one class only.*; -1 means unlabelled: if it is a class"),
}


@pytest.mark.parametrize("name", NOT_LABELS)
def test_what_would_be_a_wrong_class_is_refused(name):
    y, message = NOT_LABELS[name]
    with pytest.raises(ValueError, match=message):
        LMSSC().fit(X, y)


DOUBTFUL = {
    "-999": (labelled([0, 1], -999), "the class -999, and -1 means unlabelled"),
    "-9.0": (np.array(labelled([0.0, 1.0], -9.0)), "the class -9, and -1 means unlabelled"),
    "-2 beside 0": (labelled([0, -2], -1), "the class -2, and -1 means unlabelled"),
    "one number, two texts": (labelled(["1", "1.0"], None), "the same number: '1' and '1.0'"),
    "leading zeros": (labelled(["07", "7"], None), "the same number: '07' and '7'"),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_classes_that_may_be_none_are_warned_of(name):
    y, message = DOUBTFUL[name]
    with pytest.warns(UserWarning, match=message):
        encode_labels(y)


def test_masked_values_in_a_list_are_unlabelled():
    y = [np.ma.masked if code < 0 else code for code in CODES]
    np.testing.assert_array_equal(encode_labels(y).codes, CODES)
    assert LMSSC(max_iter=1).fit(X, y).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("missing", [b"", b"NA"])
def test_bytes_that_mean_missing_are_no_class(missing):
    """As HDF5 and MATLAB store text; b"" was a class, and the most frequent one."""
    y = np.array(labelled([b"cat", b"dog"], missing))
    with pytest.warns(UserWarning, match="20 labels b.*taken as unlabelled"):
        clf = LMSSC(max_iter=1).fit([X], y)
    assert clf.classes_.tolist() == [b"cat", b"dog"]
