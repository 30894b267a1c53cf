"""Invalid input is refused with a message that names it, and leaves nothing behind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from lmssc import GFHF, LMSSC, MLAN, stack_views

N = 20
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 3))
X = np.hstack([A, B])
Y = np.where(np.arange(N) < 10, np.arange(N) % 2, -1)
FRAME = pd.DataFrame(X, columns=list("abcdefg"))
TEXT = pl.DataFrame({"height": np.arange(N), "city": ["Oslo"] * N})
NOBODY = np.zeros(N, dtype=bool)


def spoil(block, where, value):
    block = block.copy()
    block[where] = value
    return block


def fit(X=X, y=Y, present=None, **parameters):
    return LMSSC(**parameters), X, y, present


# name: (what is fitted, exception, what its message must say)
BAD_FITS = {
    "no view": (fit([]), ValueError, r"empty list: at least one view"),
    "views of one sample": (fit([A[0], B[0]]), ValueError, r"1D arrays of different lengths.*reshape\(1, -1\)"),
    "sparse columns": (
        fit([A, pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(B))]),
        TypeError,
        r"'view1'.*Sparse.*sparse\.to_coo\(\)",
    ),
    "views of different length": (
        fit({"image": A, "text": B[1:]}),
        ValueError,
        r"different length.*'text': 19",
    ),
    "NaN in a row": (fit([A, spoil(B, (5, 1), np.nan)]), ValueError, r"'view1', row 5.*1 of 3 .*impute="),
    "NaN in a row of X": (
        fit(spoil(X, (7, 5), np.nan), views={"a": slice(4), "b": slice(4, 7)}),
        ValueError,
        r"'b', row 7.*impute=",
    ),
    "NaN in a sparse row": (
        fit([A, sparse.csr_array(spoil(B, (5, 1), np.nan))]),
        ValueError,
        r"'view1', row 5.*impute=",
    ),
    "NaN in a frame": (
        fit([A, pd.DataFrame(spoil(B, (5, 1), np.nan), dtype="Float64")]),
        ValueError,
        r"'view1', row 5",
    ),
    "infinity": (fit([A, spoil(B, (5, 1), -np.inf)]), ValueError, r"'view1', row 5.*inf"),
    "a row of infinity": (fit([A, spoil(B, 5, np.inf)]), ValueError, r"'view1', row 5.*inf"),
    "sparse infinity": (
        fit([A, sparse.csc_array(spoil(B, (5, 1), np.inf))]),
        ValueError,
        r"'view1', row 5.*inf",
    ),
    "too large": (fit([A, spoil(B, (5, 1), 1e200)]), ValueError, r"'view1', row 5.*too large"),
    "too large for float32": (
        fit([A, spoil(B, (5, 1), 9.97e36).astype("f4")]),
        ValueError,
        r"'view1', row 5.*float32",
    ),
    "sample missing everywhere": (
        fit([spoil(A, 3, np.nan), spoil(B, 3, np.nan)]),
        ValueError,
        r"every view: rows 3\b.*drop",
    ),
    "sample missing in the only view": (fit(spoil(X, 3, np.nan)), ValueError, r"rows 3\b"),
    "sample masked everywhere": (fit([A, B], present=[np.arange(N) > 1] * 2), ValueError, r"rows 0, 1\b"),
    "view missing everywhere": (
        fit({"image": A, "text": B * np.nan}),
        ValueError,
        r"'text' is missing.*leave it out",
    ),
    "view masked everywhere": (fit([A, B], present=[None, NOBODY]), ValueError, r"'view1' is missing"),
    "k too large": (fit(n_neighbors=N), ValueError, r"n_neighbors=20.*less than.*20"),
    "too many components": (fit(n_components=8), ValueError, r"n_components=8.*at most 7"),
    "widths too few": (fit(views=[4, 2]), ValueError, r"views.*add up to 6.*7 columns"),
    "widths too many": (fit(views=[4, 4]), ValueError, r"views.*add up to 8.*7 columns"),
    "width zero": (fit(views=[7, 0]), ValueError, r"views.*width of 0"),
    "width negative": (fit(views=[8, -1]), ValueError, r"views.*width of -1"),
    "widths of floats": (fit(views=[4.0, 3.0]), TypeError, r"views must be widths"),
    "widths of booleans": (fit(views=[True, 6]), TypeError, r"views must be widths"),
    "widths and slices": (fit(views=[4, slice(4, 7)]), TypeError, r"views must be widths"),
    "views is text": (fit(views="image"), TypeError, r"views must be widths"),
    "views is a number": (fit(views=7), TypeError, r"views must be widths"),
    "views is empty": (fit(views=[]), TypeError, r"views must be widths"),
    "views is an empty dict": (fit(views={}), TypeError, r"views must be widths"),
    "views is a list of names": (fit(FRAME, views=[["a"], ["b"]]), TypeError, r"views must be widths"),
    "slices overlap": (
        fit(views=[slice(0, 4), slice(3, 7)]),
        ValueError,
        r"views.*columns 3 are in more than one",
    ),
    "slices with a gap": (
        fit(views=[slice(0, 4), slice(5, 7)]),
        ValueError,
        r"views.*columns 4 are in no view",
    ),
    "slice too long": (
        fit(views=[slice(0, 4), slice(4, 9)]),
        ValueError,
        r"'view1' ends at column 9.*7 columns",
    ),
    "slice in a dict too long": (fit(views={"a": slice(0, 9)}), ValueError, r"'a' ends at column 9"),
    "empty slice": (fit(views=[slice(0, 7), slice(7, 7)]), ValueError, r"'view1' is empty"),
    "column out of range": (
        fit(views={"a": range(4), "b": [4, 5, 6, 7]}),
        ValueError,
        r"'b'.*\[7\].*7 columns",
    ),
    "column negative": (fit(views={"a": range(6), "b": [-1]}), ValueError, r"'b'.*\[-1\]"),
    "column twice": (
        fit(views={"a": [0, 0, 1, 2, 3], "b": [4, 5, 6]}),
        ValueError,
        r"columns 0 are in more than one",
    ),
    "column of a fraction": (fit(views={"a": [0.5, 1, 2, 3, 4, 5, 6]}), TypeError, r"'a'.*not 0\.5"),
    "columns None": (fit(views={"a": None}), TypeError, r"'a'.*not None"),
    "columns empty": (fit(views={"a": [], "b": slice(7)}), ValueError, r"'a' is empty"),
    "columns a mask": (fit(views={"a": [True] * 7}), TypeError, r"'a'.*column numbers.*not True"),
    "names without a frame": (
        fit(views={"a": ["height"], "b": slice(7)}),
        ValueError,
        r"'a' names columns.*not a frame",
    ),
    "unknown column": (fit(FRAME, views={"a": ["a", "zz"], "b": ["b"]}), ValueError, r"'a'.*'zz'"),
    "two views of one name": (
        fit(views={1: slice(0, 4), "1": slice(4, 7)}),
        ValueError,
        r"views has two views",
    ),
    "two blocks of one name": (fit({1: A, "1": B}), ValueError, r"X has two views of the same name"),
    "views with a list": (fit([A, B], views=[4, 3]), ValueError, r"views divides.*X is a collection"),
    "text column": (fit(TEXT), TypeError, r"X: column 'city' is String.*encode"),
    "text column of a view": (fit({"image": A, "place": TEXT}), TypeError, r"'place': column 'city'"),
    "pandas text": (fit([A, FRAME.assign(city="Oslo")]), TypeError, r"'view1': column 'city'"),
    "arrow text": (fit(pa.table({"a": range(N), "city": ["Oslo"] * N})), TypeError, r"X: column 'city'"),
    "categories": (
        fit(FRAME.assign(c=pd.Categorical(["x", "y"] * 10))),
        TypeError,
        r"column 'c' is Categorical",
    ),
    "dates": (fit(FRAME.assign(day=pd.Timestamp("2020-01-01"))), TypeError, r"column 'day' is Datetime"),
    "complex column": (fit(FRAME.astype(complex)), TypeError, r"column 'a' is complex128"),
    "text array": (fit(np.full((N, 2), "Oslo")), ValueError, r"X: .*'Oslo'"),
    "no columns": (fit({"image": A, "text": np.empty((N, 0))}), ValueError, r"'text': .*0 feature"),
    "frame without columns": (fit([A, FRAME[[]]]), ValueError, r"'view1': .*no columns"),
    "sparse without columns": (fit([A, sparse.csr_array((N, 0))]), ValueError, r"'view1': .*0 feature"),
    "no rows": (fit([A[:0], B[:0]], Y[:0]), ValueError, r"'view0': .*0 sample"),
    "one row": (fit(X[:1], [0]), ValueError, r"X: .*1 sample"),
    "complex": (fit(X + 0j), ValueError, r"X: Complex data not supported"),
    "complex view": (fit([A, B + 0j]), ValueError, r"'view1': Complex"),
    "complex sparse": (fit([A, sparse.csr_array(B + 0j)]), ValueError, r"'view1': Complex"),
    "1-D": (fit(X[:, 0]), ValueError, r"X: Expected 2D.*\(20,\)"),
    "1-D view": (fit([A, B[:, 0]]), ValueError, r"'view1': Expected 2D.*reshape\(-1, 1\)"),
    "1-D in a dict": (fit({"age": B[:, 0]}), ValueError, r"'age': Expected 2D"),
    "series as a view": (fit([A, FRAME["a"]]), ValueError, r"'view1': Expected 2D"),
    "3-D": (fit(X[:, :, None]), ValueError, r"X: .*dim 3"),
    "3-D view": (fit([A, B[:, :, None]]), ValueError, r"'view1': .*dim 3"),
    "no views": (fit([]), ValueError, r"X: Expected 2D"),
    "no views in a dict": (fit({}), ValueError, r"X is an empty collection"),
    "X is None": (fit(None), TypeError, r"X is None"),
    "view is None": (fit([A, None]), TypeError, r"'view1' is None"),
    "ragged": (fit([[1, 2], [3]], [0, 1]), ValueError, r"X: .*(inhomogeneous|sequence)"),
    "lazy frame": (fit(pl.DataFrame(FRAME).lazy()), TypeError, r"X is a lazy frame.*collect"),
    "lazy view": (fit([A, pl.DataFrame(FRAME).lazy()]), TypeError, r"'view1' is a lazy frame.*collect"),
    "masked array": (fit(np.ma.masked_array(X, X > 1)), TypeError, r"X is a masked array"),
    "no label": (fit(y=np.full(N, -1)), ValueError, r"y has no labelled sample"),
    "no text label": (fit(y=[None] * N), ValueError, r"y has no labelled sample"),
    "one class": (fit(y=np.where(Y == 0, 0, -1)), ValueError, r"y has one class only \('0' in all 5"),
    "y too long": (fit(y=np.append(Y, 0)), ValueError, r"20 rows.*21 labels"),
    "y too short for a list": (fit([A, B], Y[1:]), ValueError, r"20 rows.*19 labels"),
    "2-D y": (fit(y=np.c_[Y, Y]), ValueError, r"row \d+ of y is not a distribution over the 2 classes"),
    "continuous y": (
        fit(y=np.linspace(0, 1, N)),
        ValueError,
        r"Unknown label type: continuous.*y has the label",
    ),
    "y of tuples": (fit(y=[(0, 1), None] * 10), ValueError, r"Unknown label type: tuple"),
    "y None": (fit(y=None), ValueError, r"requires y"),
    "y None for a list": (fit([A, B], None), ValueError, r"requires y"),
    "y mixed": (fit(y=["cat", 1] * 10), TypeError, r"y mixes labels of the types int, str"),
    "y complex": (fit([A, B], Y + 0j), ValueError, r"Complex data not supported"),
    "y infinite": (fit(y=[0.0, np.inf] * 10), ValueError, r"y contains infinity"),
    "y a number": (fit(y=3), ValueError, r"y should be a 1d array"),
    "present too few": (fit([A, B], present=[None]), ValueError, r"present has 1 masks.*2 views"),
    "present too short": (
        fit([A, B], present=[None, NOBODY[1:]]),
        ValueError,
        r"present: .*'view1' must be 20 booleans",
    ),
    "present of numbers": (
        fit([A, B], present=[None, np.ones(N)]),
        ValueError,
        r"present: .*'view1'.*float64",
    ),
    "present ragged": (fit([A, B], present=[None, [True, [False]]]), ValueError, r"present: .*'view1'"),
    "present a number": (fit([A, B], present=5), TypeError, r"present must be a list or dict"),
    "present a word": (fit([A, B], present="ab"), TypeError, r"present must be a list or dict"),
    "present of another view": (
        fit({"a": A, "b": B}, present={"c": None}),
        ValueError,
        r"present names.*'c'.*'a', 'b'",
    ),
    "scaling unknown": (fit([A, B], scaling="minmax"), ValueError, r"scaling must be.*'minmax'"),
    "scaling unknown in a list": (
        fit([A, B], scaling=["unit", "minmax"]),
        ValueError,
        r"scaling must be.*'minmax'",
    ),
    "scaling of one view": (fit([A, B], scaling=["unit"]), ValueError, r"scaling has 1 entries.*2 views"),
    "scaling of another view": (
        fit([A, B], scaling={"q": "unit"}),
        ValueError,
        r"scaling names the views \['q'\]",
    ),
    "scaling a number": (fit([A, B], scaling=5), ValueError, r"scaling must be.*5"),
    "tfidf of negative numbers": (fit([A, B], scaling="tfidf"), ValueError, r"tfidf.*'view[01]'.*negative"),
    "huge unscaled": (
        fit([A * 1e100, B], scaling=None),
        ValueError,
        r"'view0'.*too large to be used unscaled",
    ),
}
NO_NUMBERS = ["3", None, True, np.nan, np.inf, 1j, [1], np.array([1])]
NO_COUNTS = [0, -1, 2.5, *NO_NUMBERS]
WRONG_PARAMETERS = [
    *[(name, value) for name in ("beta", "gamma") for value in [0, -1, -0.5, *NO_NUMBERS]],
    *[(name, value) for name in ("n_neighbors", "n_components", "max_iter") for value in NO_COUNTS],
    *[("tol", value) for value in [-1e-9, *NO_NUMBERS]],
    *[(name, value) for name in ("loadings", "init", "alpha") for value in ("other", None, 1, ["svd"])],
    *[("freeze_alpha", value) for value in ("yes", 1, None)],
    *[("neighbor_recall", value) for value in (0, 1.01, -0.5, "most", None, float("nan"))],
    *[("balance", value) for value in (1e3, 1.01, -0.1, *NO_NUMBERS[:4], *NO_NUMBERS[5:])],
    *[("beta", value) for value in (1e-300, 1e-7, 1e7, 1e300)],
    *[(name, value) for name in ("gamma", "label_weight", "tol") for value in (1e13, 1e300)],
    ("gamma", 1e-300),
    *[("n_jobs", value) for value in (0, 1.5, True, "all")],
    ("callback", "print"),
    ("verbose", -1),
]
# What is accepted gives answers, in single precision too.
EXTREMES = {
    "beta": (1e-6, 1e6),
    "gamma": (1e-12, 1e12),
    "label_weight": (0, 1e12),
    "balance": (0, 1),
    "tol": (0, 1e12),
    "neighbor_recall": (1e-9, 1),
}


def check_refusal(case, error, message):
    clf, *arguments = case
    with pytest.raises(error, match=f"(?s){message}") as caught:
        clf.fit(*arguments)
    assert len(str(caught.value)) < 400  # not the whole data
    assert not hasattr(clf, "classes_")
    with pytest.raises(NotFittedError):
        clf.predict(X)


@pytest.mark.parametrize("case", BAD_FITS)
def test_fit(case):
    check_refusal(*BAD_FITS[case])


@pytest.mark.parametrize(("name", "value"), WRONG_PARAMETERS, ids=repr)
def test_parameters(name, value):
    check_refusal(fit(**{name: value}), ValueError, rf"^{name} must be .*, got ")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, both in EXTREMES.items() for value in both])
def test_what_a_range_allows_gives_answers(name, value, dtype):
    clf = LMSSC(max_iter=3, **{name: value}).fit([A.astype(dtype), B.astype(dtype)], Y)
    new = clf.predict_proba([A.astype(dtype) + dtype(0.1), B.astype(dtype)])
    for distributions in (clf.label_distributions_, new):
        np.testing.assert_allclose(distributions.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("clf", "name"),
    [(GFHF(graph="gaussian", width=1e-300), "width"), (MLAN(label_weight=1e300), "label_weight")],
    ids=["GFHF", "MLAN"],
)
def test_the_other_methods_have_ranges_too(clf, name):
    check_refusal((clf, X, Y, None), ValueError, rf"^{name} must be .*, got ")


FITTED = LMSSC().fit({"image": A, "text": B}, Y)
FITTED_LIST = LMSSC().fit([A, B], Y)
FITTED_FRAME = LMSSC(views={"a": list("abcd"), "b": list("efg")}).fit(FRAME, Y)
BAD_PREDICTS = {
    "a list where names were given": (FITTED, [A, B], ValueError, r"list of views.*names \['image', 'text'\]"),
    "a tuple where names were given": (FITTED, (A, B), ValueError, r"tuple of views.*names \['image', 'text'\]"),
    "a list where columns had names": (FITTED_FRAME, [A, B], ValueError, r"list of views.*names \['a', 'b'\]"),
    "names where none were given": (FITTED_LIST, {"image": A, "text": B}, ValueError, r"'text'.*'view0', 'view1'"),
    "one view less": (FITTED_LIST, [A], ValueError, r"1 views.*fitted with 2.*None"),
    "one view more": (FITTED_LIST, [A, B, B], ValueError, r"3 views.*fitted with 2"),
    "one name more": (FITTED, {"image": A, "text": B, "z": B}, ValueError, r"'z'.*fitted with \['image', 'text'\]"),
    "no view": (FITTED, {"image": None}, ValueError, r"none of the views \['image', 'text'\]"),
    "no view in a list": (FITTED_LIST, [None, None], ValueError, r"none of the views \['view0', 'view1'\]"),
    "other names": (FITTED, {"image": A, "sound": B}, ValueError, r"'image', 'sound'.*'image', 'text'"),
    "views swapped": (FITTED_LIST, [B, A], ValueError, r"'view0' has 3 features.*fitted with 4"),
    "one feature less": (
        FITTED,
        {"image": A, "text": B[:, 1:]},
        ValueError,
        r"'text' has 2 features.*with 3",
    ),
    "one column less": (FITTED, X[:, 1:], ValueError, r"X has 6 features.*expecting 7"),
    "views of different length": (FITTED_LIST, [A, B[1:]], ValueError, r"different length"),
    "NaN in a row": (FITTED, {"image": A, "text": spoil(B, (5, 1), np.nan)}, ValueError, r"'text', row 5.*impute="),
    "infinity": (FITTED, {"image": A, "text": spoil(B, (5, 1), np.inf)}, ValueError, r"'text', row 5.*inf"),
    "missing everywhere": (FITTED_LIST, [spoil(A, 3, np.nan), spoil(B, 3, np.nan)], ValueError, r"rows 3\b"),
    "no rows": (FITTED_LIST, [A[:0], B[:0]], ValueError, r"'view0'.*0 sample"),
    "1-D": (FITTED, X[0], ValueError, r"X: Expected 2D.*reshape\(1, -1\)"),
    "text": (FITTED_LIST, [A, TEXT], TypeError, r"'view1': column 'city'"),
    "other columns": (
        FITTED_FRAME,
        FRAME.rename(columns={"a": "q"}),
        ValueError,
        r"feature names.*(?s:.*)- q",
    ),
    "columns in another order": (FITTED_FRAME, FRAME[list("gfedcba")], ValueError, r"same order"),
}


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform"])
@pytest.mark.parametrize("case", BAD_PREDICTS)
def test_predict(case, method):
    clf, new, error, message = BAD_PREDICTS[case]
    with pytest.raises(error, match=f"(?s){message}"):
        getattr(clf, method)(new)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform"])
def test_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(LMSSC(), method)(X)


BAD_SCORES = {
    "unknown class": (np.where(Y == 1, 5, Y), r"classes that were not in fit: \[5\].*\[0, 1\]"),
    "another type": (np.where(Y == 1, "cat", "dog"), r"not in fit: \['cat', 'dog'\]"),
    "no label": (np.full(N, -1), r"no labelled sample"),
    "too short": (Y[1:], r"20 rows.*19 labels"),
    "2-D": (np.c_[Y, Y], "y has 2 columns"),
    "None": (None, r"requires y"),
}


@pytest.mark.parametrize("case", BAD_SCORES)
def test_score(case):
    y, message = BAD_SCORES[case]
    with pytest.raises(ValueError, match=message):
        FITTED_LIST.score([A, B], y)


BAD_STACKS = {
    "one array": (A, TypeError, "list or dict"),
    "different length": ([A, B[1:]], ValueError, "different length"),
    "infinity": ({"a": A, "b": spoil(B, (5, 1), np.inf)}, ValueError, "'b', row 5"),
    "nothing": ({}, ValueError, "empty"),
    "text": ([A, TEXT], TypeError, "'view1': column 'city'"),
}


@pytest.mark.parametrize("case", BAD_STACKS)
def test_stack_views(case):
    views, error, message = BAD_STACKS[case]
    with pytest.raises(error, match=message):
        stack_views(views)
