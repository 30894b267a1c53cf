"""Every way of passing the same numbers gives the same answer, and nobody's data are changed."""

import copy
import pickle
import warnings
from functools import cache, partial
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from lmssc import AMGL, GFHF, LMSSC, MLAN, paper_settings, stack_views
from lmssc.data.scaling import fit_scalings
from lmssc.data.view import RawView
from lmssc.datasets import make_multiview

N = 40
UNREACHED = "ignore:.*parts of the graph without a label:UserWarning"
UNLINKED = "ignore:.*no sample has both these and other views:UserWarning"
IDENTICAL = "ignore:.*samples are identical:UserWarning"
OUTLIERS = "ignore:.*far from all others there:UserWarning"


def make_data(seed=0):
    """Two views of measurements and one of counts; two classes, ten labels."""
    rng = np.random.default_rng(seed)
    target = np.arange(N) % 2
    A = rng.normal(size=(N, 4)) + 2 * target[:, None]
    B = rng.normal(size=(N, 3)) - target[:, None]
    C = rng.poisson(0.15 + 0.5 * target[:, None] * (np.arange(12) < 3), size=(N, 12)).astype(float)
    return A, B, C, np.where(np.arange(N) < 10, target, -1)


A, B, C, Y = make_data()
X = np.hstack([A, B])
FRAME = pd.DataFrame(X, columns=list("abcdefg"))
PAPER = paper_settings() | {"random_state": 0, "max_iter": 2, "n_components": 3}
LACKS = np.arange(N) % 5 == 2  # samples without the last view
# Calibration is most of a small fit, and comes after the numbers have been read.
quick = partial(LMSSC, calibrate=False)


def without(block, rows):
    block = block.copy()
    block[rows] = np.nan
    return block


def check_fitted(clf, n_samples):
    """What holds after every fit."""
    distributions = clf.label_distributions_
    assert distributions.shape == (n_samples, len(clf.classes_))
    assert (distributions >= 0).all()
    np.testing.assert_allclose(distributions.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(clf.graph_.sum(axis=1), 1, atol=1e-5)
    assert (clf.graph_.diagonal() == 0).all()
    for numbers in (clf.latent_, clf.objective_, clf.graph_.data, *clf.loadings_):
        assert np.isfinite(numbers).all()


def assert_same(one, other, exact=True):
    assert (one.transduction_ == other.transduction_).all()
    if exact:
        assert np.array_equal(one.label_distributions_, other.label_distributions_)
        assert np.array_equal(one.latent_, other.latent_)
    else:
        np.testing.assert_allclose(one.label_distributions_, other.label_distributions_, atol=1e-6)


def memmap(array):
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        mapped = np.memmap(file.name, array.dtype, "w+", shape=array.shape)
        mapped[:] = array
        return mapped


SAME_AS_TWO_VIEWS = {
    "widths": lambda: (X, [4, 3]),
    "widths as array": lambda: (X, np.array([4, 3])),
    "slices": lambda: (X, [slice(0, 4), slice(4, None)]),
    "numbers": lambda: (X, {"a": range(4), "b": np.array([4, 5, 6])}),
    "one number": lambda: (np.hstack([A, B]), {"a": slice(4), "b": [4, 5, 6]}),
    "other order of the views": lambda: (X, {"b": slice(4, 7), "a": slice(0, 4)}),
    "columns apart": lambda: (X[:, [4, 0, 1, 5, 2, 3, 6]], {"a": [1, 2, 4, 5], "b": [0, 3, 6]}),
    "list of lists": lambda: (X.tolist(), [4, 3]),
    "column names": lambda: (FRAME, {"a": list("abcd"), "b": list("efg")}),
    "polars names": lambda: (pl.DataFrame(FRAME), {"a": list("abcd"), "b": list("efg")}),
    "arrow names": lambda: (pa.Table.from_pandas(FRAME), {"a": list("abcd"), "b": list("efg")}),
    "tuple": lambda: ((A, B), None),
    "dict": lambda: ({"image": A, "text": B}, None),
    "views the other way round": lambda: ([B, A], None),
    "nested lists": lambda: ([A.tolist(), B.tolist()], None),
    "array and frame": lambda: ([A, pd.DataFrame(B)], None),
    "frames": lambda: ([pl.DataFrame(A), pa.table({name: B[:, i] for i, name in enumerate("xyz")})], None),
    "Fortran order": lambda: ([np.asfortranarray(A), np.asfortranarray(B)], None),
    "not contiguous": lambda: ([np.repeat(A, 2, axis=1)[:, ::2], B[::-1][::-1]], None),
    "big endian": lambda: ([A.astype(">f8"), B], None),
    "objects": lambda: ([A.astype(object), B], None),
    "memory map": lambda: ([memmap(A), B], None),
    "nullable frame": lambda: ([pd.DataFrame(A).convert_dtypes(), B], None),
    "stacked": lambda: stack_views([A, B]),
    "stacked dict": lambda: stack_views({"image": A, "text": B}),
}


@pytest.fixture(scope="module")
def two_views():
    return quick().fit([A, B], Y)


@cache
def fit_incomplete(paper):
    """LMSSC, with the paper's settings or its own, on two views of which the last is missing for some samples."""
    return quick(**PAPER if paper else {}).fit([A, without(B, LACKS)], Y)


@pytest.mark.parametrize("way", SAME_AS_TWO_VIEWS)
def test_ways_of_passing_dense_views(way, two_views):
    given_X, views = SAME_AS_TWO_VIEWS[way]()
    clf = quick(views=views).fit(given_X, Y)
    check_fitted(clf, N)
    assert_same(clf, two_views)
    assert np.array_equal(clf.predict_proba(given_X), clf.label_distributions_)


SPARSE = {
    f"{kind.__name__}": kind
    for kind in (
        sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.csc_matrix,
        sparse.coo_matrix, sparse.lil_array, sparse.dok_array,
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def with_counts():
    return quick().fit([A, C], Y)


@pytest.mark.parametrize("kind", SPARSE)
def test_ways_of_passing_sparse_views(kind, with_counts):
    clf = quick().fit({"a": A, "words": SPARSE[kind](C)}, Y)
    assert_same(clf, with_counts, exact=False)
    assert list(clf.scalings_.values()) == ["zscore", "zscore"]  # twelve columns are no vocabulary
    stacked, views = stack_views([A, SPARSE[kind](C)])
    assert sparse.issparse(stacked)
    assert_same(quick(views=views).fit(stacked, Y), clf, exact=False)


@pytest.mark.filterwarnings(UNREACHED)
@pytest.mark.parametrize("scaling", ["auto", "unit", None])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dense_view_beside_a_sparse_one_when_stacked(scaling, dtype):
    """A dense view with a large mean loses nothing by being stacked with a sparse one."""
    views = [(A + 1000).astype(dtype), sparse.csr_array(C.astype(dtype))]
    apart = quick(scaling=scaling).fit(views, Y)
    stacked, widths = stack_views(views)
    together = quick(views=widths, scaling=scaling).fit(stacked, Y)
    assert together.scalings_ == apart.scalings_
    assert_same(together, apart, exact=False)


@pytest.mark.parametrize("convert", [np.asarray, pd.DataFrame, pl.DataFrame, sparse.csr_array])
def test_float32_stays_float32(convert):
    views = [A.astype(np.float32), convert(C.astype(np.float32))]
    clf = LMSSC().fit(views, Y)
    kept = (clf.latent_, clf.label_distributions_, clf.graph_, *clf.loadings_, clf.predict_proba(views))
    assert {part.dtype for part in kept} == {np.dtype(np.float32)}
    assert clf.transform(views).dtype == np.float32
    check_fitted(clf, N)


@pytest.fixture(scope="module")
def with_flags():
    return quick().fit([A, np.clip(C, 0, 1)], Y)


@pytest.mark.parametrize("dtype", ["i1", "i8", "u2", "?", "f2", ">f4"])
def test_numbers_of_any_type(dtype, with_flags):
    assert_same(quick().fit([A, np.clip(C, 0, 1).astype(dtype)], Y), with_flags)


@pytest.fixture(scope="module")
def masked():
    return quick().fit([A, sparse.csr_array(C)], Y, [None, ~LACKS])


class TestMissingViews:
    WAYS: ClassVar = {
        "NaN rows": ([A, without(B, LACKS)], None),
        "mask": ([A, B], [None, ~LACKS]),
        "mask as list": ([A, B], [None, (~LACKS).tolist()]),
        "garbage behind the mask": ([A, np.where(LACKS[:, None], 1e300, B)], [None, ~LACKS]),
        "infinity behind the mask": ([A, np.where(LACKS[:, None], np.inf, B)], [None, ~LACKS]),
        "half a row of NaN behind the mask": (
            [A, np.where(LACKS[:, None] & (np.arange(3) > 0), np.nan, B)],
            [None, ~LACKS],
        ),
        "nullable frame": ([A, pd.DataFrame(without(B, LACKS), dtype="Float64")], None),
        "polars null": ([A, pl.DataFrame(without(B, LACKS), nan_to_null=True)], None),
        "stacked": (stack_views([A, B], [None, ~LACKS])[0], None),
        "mask by name": ({"view0": A, "view1": B}, {"view1": ~LACKS}),
    }

    @pytest.mark.filterwarnings(UNREACHED)
    @pytest.mark.parametrize("paper", [False, True])
    @pytest.mark.parametrize("way", WAYS)
    def test_ways_of_saying_so(self, way, paper):
        views, present = self.WAYS[way]
        right = fit_incomplete(paper)
        widths = [4, 3] if isinstance(views, np.ndarray) else None
        clf = quick(views=widths, **PAPER if paper else {}).fit(views, Y, present)
        check_fitted(clf, N)
        assert_same(clf, right)
        assert np.array_equal(clf.predict_proba(views, present), right.label_distributions_)

    @pytest.mark.parametrize("garbage", [0, 7, 1e300, np.nan, np.inf])
    def test_garbage_in_sparse_rows_without_the_view(self, garbage, masked):
        spoiled = np.where(LACKS[:, None] & (C > 0), garbage, C)
        clf = quick().fit([A, sparse.csr_array(spoiled)], Y, [None, ~LACKS])
        assert_same(clf, masked)
        new = [A + 0.1, sparse.csr_array(spoiled)]
        assert np.array_equal(
            clf.predict_proba(new, [None, ~LACKS]),
            masked.predict_proba([A + 0.1, sparse.csr_array(C)], [None, ~LACKS]),
        )
        stacked, views = stack_views([A, sparse.csr_array(spoiled)], [None, ~LACKS])
        assert_same(quick(views=views).fit(stacked, Y), masked, exact=False)

    @pytest.mark.parametrize("rows", [[2], [0, 1], range(20)])
    def test_new_samples_that_all_lack_a_view(self, rows):
        clf = fit_incomplete(paper=False)
        new = [A[rows] + 0.1, np.full((len(rows), 3), np.nan)]
        alone = np.vstack([clf.predict_proba([a[None], b[None]]) for a, b in zip(*new, strict=True)])
        np.testing.assert_allclose(clf.predict_proba(new), alone, atol=1e-9)
        assert np.isfinite(clf.transform(new)).all()

    def test_a_row_of_zeros_is_not_a_missing_one(self):
        """The same first view, but once nothing is known of the second and once it is zero."""
        first = np.vstack([A, A[:1]])
        second = np.vstack([B, np.zeros((1, 3))])
        second[0] = np.nan
        y = np.append(Y, -1)
        y[0] = -1
        clf = quick().fit([first, second], y)
        assert not np.array_equal(clf.latent_[0], clf.latent_[-1])
        assert not np.array_equal(clf.label_distributions_[0], clf.label_distributions_[-1])


def snapshot(data):
    if sparse.issparse(data):
        return [part.copy() for part in (data.data, data.indices, data.indptr)]
    return [np.array(data)]


def unsorted_csr():
    """Entries out of order, one of them stored in two parts."""
    half = sparse.coo_array(C / 2)
    coo = sparse.coo_array(
        (np.tile(half.data, 2), (np.tile(half.row, 2)[::-1][::-1], np.tile(half.col, 2))), shape=C.shape
    )
    order = np.lexsort((-coo.col, coo.row))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(coo.row, minlength=N))])
    return sparse.csr_array((coo.data[order], coo.col[order], indptr), shape=C.shape)


@pytest.mark.parametrize("scaling", ["auto", "zscore", "unit", None])
@pytest.mark.parametrize(
    "second",
    [
        lambda: B.copy(),
        lambda: without(B, LACKS),
        lambda: pd.DataFrame(B),
        lambda: sparse.csr_array(C),
        unsorted_csr,
    ],
    ids=["array", "missing rows", "frame", "csr", "unsorted csr"],
)
def test_nothing_of_the_user_is_changed(second, scaling):
    first, second, y, mask = A.copy(), second(), Y.copy(), np.arange(N) % 5 != 3
    before = [snapshot(part) for part in (first, second, y, mask)]
    for part in (first, y, second.data if sparse.issparse(second) else second):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    clf = LMSSC(scaling=scaling, calibrate=scaling == "auto").fit([first, second], y, [mask, None])
    clf.predict([first, second], [mask, None])
    clf.transform([first, second])
    stack_views([first, second], [mask, None])
    for part, old in zip((first, second, y, mask), before, strict=True):
        for now, then in zip(snapshot(part), old, strict=True):
            assert np.array_equal(now, then, equal_nan=now.dtype.kind == "f")


def test_unsorted_sparse_is_the_same_numbers():
    assert_same(quick().fit([A, unsorted_csr()], Y), quick().fit([A, sparse.csr_array(C)], Y))


class TestObject:
    def test_copies(self):
        clf, new = LMSSC().fit([A, B], Y), [A + 0.1, B]
        for other in (copy.deepcopy(clf), pickle.loads(pickle.dumps(clf))):
            assert_same(other, clf)
            assert np.array_equal(other.predict_proba(new), clf.predict_proba(new))
        fresh = clone(clf)
        assert not [name for name in vars(fresh) if name.endswith("_")]
        assert repr(LMSSC(beta=0.5, views={"a": slice(0, 2)})) == "LMSSC(beta=0.5, views={'a': slice(0, 2, None)})"

    def test_refit_leaves_nothing_behind(self):
        clf = LMSSC(views={"a": list("abcd"), "b": list("efg")}).fit(FRAME, np.where(Y == 1, "x", "y"))
        clf.set_params(views=None, alpha="mean", n_neighbors=4).fit([C, A, B], Y)
        right = LMSSC(alpha="mean", n_neighbors=4).fit([C, A, B], Y)
        assert_same(clf, right)
        assert set(vars(clf)) == set(vars(right))
        assert (clf.view_names_, clf.n_features_in_) == (right.view_names_, right.n_features_in_)

    @pytest.mark.parametrize("bad", [{"n_components": 99}, {"scaling": "tfidf"}, {"scaling": {"q": "unit"}}])
    def test_failed_refit_keeps_the_old_answer(self, bad, two_views):
        clf = copy.deepcopy(two_views)
        with pytest.raises(ValueError, match=r"n_components|tfidf|scaling"):
            clf.set_params(**bad).fit([-C], np.where(Y == 1, "x", "y"))
        clf.set_params(n_components="auto", scaling="auto")
        assert_same(clf, two_views)
        assert np.array_equal(clf.predict([A, B]), two_views.transduction_)


@pytest.mark.filterwarnings("ignore:(most|5 of 5) new samples")
@pytest.mark.parametrize("settings", [{}, {"alpha": "mean"}, {"scaling": "unit"}, {"loadings": "nonnegative"}])
def test_samples_far_away(settings):
    clf = LMSSC(**settings).fit([A, B], Y)
    for distance in (1e1, 1e3, 1e6, 1e9, 1e12, 1e50, 1e150):
        found = clf.predict_proba([A[:5] + distance, B[:5] - distance])
        assert (found >= 0).all(), distance
        np.testing.assert_allclose(found.sum(axis=1), 1, err_msg=str(distance))


NOTHING = np.zeros((N, 3))
SOME = np.arange(N) == 0
AWKWARD = {
    "constant view": [A, np.ones((N, 3))],
    "constant feature": [np.hstack([A, np.full((N, 1), 0.1)]), B],
    "zero view": [A, NOTHING],
    "only zeros": [NOTHING, NOTHING],
    "only constants": [NOTHING + 1, NOTHING + 3],
    "one feature": [A[:, :1], B[:, :1]],
    "huge": [A * 1e150, B],
    "tiny": [A * 1e-150, B],
    "all tiny": [A * 1e-150, B * 1e-150],
    "subnormal": [A * 1e-310, B],
    "tiny float32": [(A * 1e-38).astype("f4"), B.astype("f4")],
    "subnormal float32": [(A * 1e-44).astype("f4"), B.astype("f4")],
    "large float32": [(A * 1e15).astype("f4"), B.astype("f4")],
    "huge offset": [A + 1e9, B],
    "offset beyond precision": [A + 1e17, B],
    "offset float32": [(A + 1e4).astype("f4"), B.astype("f4")],
    "one sample has the view": [A, np.where(SOME[:, None], B, np.nan)],
    "samples with a tiny view only": [without(A, slice(0, 8)), B[:, :1] * 1e-12],
    "no sample has both": [without(A, slice(0, 20)), without(B, slice(20, None))],
    "outlier": [np.where(SOME[:, None], 1e12, A), B],
    "empty sparse rows": [A, sparse.csr_array(np.where(LACKS[:, None], 0, C))],
    "empty sparse view": [A, sparse.csr_array((N, 50))],
    "only empty sparse views": [sparse.csr_array((N, 50)), sparse.csr_array((N, 5))],
    "wide sparse": [A, sparse.csr_array(np.where(np.random.default_rng(1).uniform(size=(N, 5000)) < 1e-3, 1.0, 0.0))],
    "sparse with an offset": [A, sparse.csr_array(B + 1e9)],
    "all the same": [np.repeat(A[:1], N, axis=0), np.repeat(B[:1], N, axis=0)],
    "pairs, one of them labelled": [np.tile(A[:20], (2, 1)), np.tile(B[:20], (2, 1))],
    "pairs with contradicting labels": [np.repeat(A[:20], 2, axis=0), np.repeat(B[:20], 2, axis=0)],
    "twelve times each": [np.repeat(A[:4], 10, axis=0), np.repeat(B[:4], 10, axis=0)],
}
SETTINGS = {  # two of them calibrated, which takes most of the time
    "default": {},
    "nonnegative": {"loadings": "nonnegative", "calibrate": False},
    "shared alpha": {"alpha": "mean", "calibrate": False},
    "unscaled": {"scaling": None},
    "unit rows": {"scaling": "unit", "calibrate": False},
    "paper": PAPER,
}


@pytest.mark.filterwarnings("ignore:.*values too small to be told from zero")
@pytest.mark.filterwarnings(UNREACHED)
@pytest.mark.filterwarnings(UNLINKED)
@pytest.mark.filterwarnings(OUTLIERS)
@pytest.mark.filterwarnings(IDENTICAL)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_numbers(case, settings):
    """A finite answer, or for unscaled numbers beyond all bounds an error that says so."""
    views = AWKWARD[case]
    clf = LMSSC(**{"max_iter": 5} | SETTINGS[settings])
    if case in ("huge", "large float32") and clf.scaling is None:
        with pytest.raises(ValueError, match=r"view 'view0'.*too large to be used unscaled"):
            clf.fit(views, Y)
        return
    check_fitted(clf.fit(views, Y), N)
    found = clf.predict_proba([view[:1] for view in views])
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


@pytest.mark.filterwarnings(UNREACHED)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 12])
def test_few_samples(n, settings):
    few = {"n_neighbors": "auto", "n_components": "auto"}
    for y in ([0, 1] + [-1] * (n - 2), np.arange(n) % 2, np.arange(n)):
        clf = LMSSC(**SETTINGS[settings] | few).fit([A[:n], B[:n]], y)
        check_fitted(clf, n)
        assert np.array_equal(clf.predict_proba([A[:n], B[:n]]), clf.label_distributions_)


@st.composite
def problems(draw):
    """Any number of views of any shape, with duplicates, missing sample-views and few or many labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_classes = draw(st.integers(2, 40)), draw(st.integers(2, 6))
    views = []
    for _ in range(draw(st.integers(1, 4))):
        view = rng.normal(size=(n, draw(st.integers(1, 8)))) * 10.0 ** draw(st.integers(-20, 20))
        view = [view, np.rint(view), np.abs(view), view + 1e6, view * (rng.random(view.shape) < 0.2)][
            draw(st.integers(0, 4))
        ]
        if draw(st.booleans()):
            view = view[rng.integers(0, n, n)]
        if draw(st.booleans()):
            view[rng.random(n) < draw(st.sampled_from([0.1, 0.5, 0.95]))] = np.nan
        views.append(view.astype(draw(st.sampled_from([np.float32, np.float64]))))
    y = np.where(rng.random(n) < draw(st.sampled_from([0.1, 0.5, 1.0])), rng.integers(0, n_classes, n), -1)
    return views, y, draw(st.sampled_from(sorted(SETTINGS)))


# Loadings so small that the inverse of their squares is beyond single precision.
TINY = [np.full((2, 3), [-0.13, -1.1, -0.32], np.float32), np.array([[-3e-20], [4.5e-20]], np.float32)]


@settings(max_examples=100, deadline=None)
@given(problems())
@example((TINY, np.array([1, 0]), "paper"))
def test_anything_gives_a_distribution_or_a_value_error(problem):
    views, y, settings = problem
    clf = LMSSC(**{"max_iter": 4} | SETTINGS[settings] | {"n_neighbors": "auto", "n_components": "auto"})
    with warnings.catch_warnings():
        # The warnings of the library are in order on such data; those of numpy and scipy are not.
        warnings.simplefilter("ignore", UserWarning)
        try:
            clf.fit(views, y)
        except ValueError as error:
            assert "row" in str(error) or "view" in str(error) or "y has" in str(error)  # noqa: PT017
            return
        found = clf.predict_proba([view[::-1] * 1.01 for view in views])
    check_fitted(clf, len(y))
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


class TestViewsThatAreNotThere:
    """A view that is absent from `predict` is missing for all samples."""

    @pytest.mark.parametrize("estimator", [LMSSC, GFHF, AMGL, MLAN])
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_a_view_less(self, estimator, kind):
        data = make_multiview(60, n_views=3, n_features=5, labelled=0.3, random_state=0)
        if kind == "sparse":
            data.views[1] = sparse.csr_array(np.maximum(data.views[1] - 1, 0))
        fitted = dict(zip("abc", data.views, strict=True))
        clf = estimator().fit(fitted, data.y)
        new = {"a": data.views[0] + 0.1, "c": data.views[2] + 0.1}
        expected = clf.predict_proba(new | {"b": np.full((60, 5), np.nan)})
        for X in (new, new | {"b": None}):
            with pytest.warns(UserWarning, match="X does not have the view 'b': missing for all.*'a', 'c' alone"):
                np.testing.assert_array_equal(clf.predict_proba(X), expected)
        with pytest.warns(UserWarning, match="the views 'a', 'c'.*from 'b' alone"):
            assert clf.predict({"b": data.views[1]}).shape == (60,)

    def test_none_in_a_list(self):
        data = make_multiview(60, n_views=2, labelled=0.3, random_state=0)
        clf = LMSSC().fit(data.views, data.y)
        with pytest.warns(UserWarning, match="the view 'view0'"):
            found = clf.predict_proba([None, data.views[1]])
        np.testing.assert_array_equal(found, clf.predict_proba([np.full((60, 20), np.nan), data.views[1]]))
        with pytest.warns(UserWarning, match="the view 'view0'"):
            assert clf.transform([None, data.views[1]]).shape == clf.latent_.shape

    def test_a_mask_does_not_bring_it_back(self):
        data = make_multiview(60, n_views=2, labelled=0.3, random_state=0)
        clf = LMSSC().fit(data.views, data.y)
        with pytest.warns(UserWarning, match="the view 'view0'"):
            found = clf.predict_proba([None, data.views[1]], [np.ones(60, bool), None])
        assert np.isfinite(found).all()

    def test_single_precision_stays(self):
        data = make_multiview(60, n_views=2, labelled=0.3, random_state=0)
        clf = LMSSC().fit([view.astype(np.float32) for view in data.views], data.y)
        with pytest.warns(UserWarning, match="the view 'view1'"):
            assert clf.predict_proba([data.views[0].astype(np.float32), None]).dtype == np.float32


class TestFrames:
    """What the names and the index of frames guard against."""

    @staticmethod
    def frames():
        data = make_multiview(60, n_views=2, n_features=3, labelled=0.3, random_state=0)
        frames = {name: pd.DataFrame(view, columns=list("abc")) for name, view in zip("xy", data.views, strict=True)}
        return frames, data.y

    @pytest.mark.parametrize("form", [dict, lambda frames: list(frames.values())])
    def test_columns_in_another_order_are_refused(self, form):
        frames, y = self.frames()
        clf = quick().fit(form(frames), y)
        turned = form({name: frame[["b", "a", "c"]] for name, frame in frames.items()})
        for method in (clf.predict, clf.transform):
            with pytest.raises(ValueError, match="in another order: the first is 'b', but fit had 'a' there"):
                method(turned)
        arrays = form({name: frame.to_numpy() for name, frame in frames.items()})
        np.testing.assert_array_equal(clf.predict(arrays), clf.transduction_)

    def test_messages_do_not_list_thousands_of_columns(self):
        """The message on 20,000 genes had 400,000 characters."""
        rng = np.random.default_rng(0)
        genes = pd.DataFrame(rng.normal(size=(30, 2000)), columns=[f"gene{i}" for i in range(2000)])
        clf = quick().fit({"rna": genes}, np.where(np.arange(30) < 12, np.arange(30) % 2, -1))
        for other, wrong in (
            (genes[genes.columns[::-1]], "view 'rna' has the columns of fit in another order"),
            (genes.rename(columns={"gene7": "?"}), "it lacks column 'gene7', and fit did not have column '\\?'"),
            (genes.add_prefix("hs_"), "it lacks columns 'gene0', .* and 1995 more"),
        ):
            with pytest.raises(ValueError, match=wrong) as raised:
                clf.predict({"rna": other})
            assert len(str(raised.value)) < 300

    def test_rows_in_another_order_are_refused(self):
        frames, y = self.frames()
        frames["y"] = frames["y"].iloc[::-1]
        with pytest.raises(ValueError, match="view 'x' and view 'y' have the same index in another order"):
            quick().fit(frames, y)

    def test_score_takes_masks(self):
        frames, y = self.frames()
        mask = np.arange(60) % 3 > 0
        clf = quick().fit(frames, y, present={"y": mask})
        known = y >= 0
        assert clf.score(frames, y, present={"y": mask}) == (clf.transduction_ == y)[known].mean()


@pytest.mark.parametrize("scaling", ["auto", "zscore", "unit", "sample", None])
@pytest.mark.parametrize("estimator", [LMSSC, GFHF, AMGL, MLAN])
def test_fit_changes_nothing_of_what_it_is_given_and_keeps_none_of_it(estimator, scaling):
    data = make_multiview(60, labelled=0.3, random_state=0)
    views = [view.copy() for view in data.views]
    views[0][5] = np.nan  # a sample without the first view
    before = [view.copy() for view in views]
    clf = estimator(scaling=scaling).fit(views, data.y)
    for view, same in zip(views, before, strict=True):
        np.testing.assert_array_equal(view, same)
    assert all(part.base is None for part in clf._storage)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_columns_of_0_and_1_are_not_standardised_beside_numbers(stored):
    """Standardised, two samples of other categories were no neighbours, whatever else was alike."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(3, 2, size=(40, 2)), np.arange(40) % 2, np.arange(40) % 5 == 0, np.zeros(40)]
    X[:3, 2] = 0.5  # filled in
    raw = RawView("a", stored(X), None)
    (scaling,) = fit_scalings([raw], ["mixed"], equalise=False)
    scaled = scaling.apply(raw).dot(np.eye(5))
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, X[:, 2].std() / 2**0.5, X[:, 3].std() / 2**0.5, 0])
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    (equal,) = fit_scalings([raw], ["mixed"])
    np.testing.assert_allclose(equal.apply(raw).squared_norm(), 40)


@pytest.mark.parametrize("missing", [False, True])
def test_scaling_in_place_is_the_same_scaling(missing):
    X = np.random.default_rng(0).normal(3, 2, size=(30, 4))
    present = np.arange(30) % 3 > 0 if missing else None
    raw = RawView("a", X, present)
    (scaling,) = fit_scalings([raw], ["zscore"])
    scaled = scaling.apply(raw).data
    np.testing.assert_array_equal(scaling.apply(RawView("a", X.copy(), present), in_place=True).data, scaled)
    at = slice(None) if present is None else present
    np.testing.assert_allclose(scaled[at].mean(axis=0), 0, atol=1e-12)
