"""Scaling that is never silently wrong: what is taken for words, and numbers that must not decide the scale."""

import tempfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import lmssc
from lmssc import AMGL, GFHF, LMSSC
from lmssc.data.memmap import MappedRows
from lmssc.data.scaling import WORDS as SCALINGS_OF_WORDS
from lmssc.data.scaling import choose_scaling, fit_scaling
from lmssc.data.view import RawView
from lmssc.datasets import load, make_multiview

pytestmark = pytest.mark.usefixtures("uncalibrated")

OUTLIERS = "far from all others there"
N = 300


def raw_view(data, present=None):
    return RawView("a", data, present)


def texts(rng, n=N, n_words=500, length=60, n_topics=4, weights=None):
    """Texts of different lengths, each of one topic and of words that all use."""
    topic = rng.integers(n_topics, size=n)
    common = rng.permutation(1 / np.arange(1, n_words + 1))
    shares = common / common.sum() + rng.dirichlet(np.full(n_words, 0.05), size=n_topics)[topic]
    lengths = np.rint(3 + length * np.exp(0.5 * rng.normal(size=n))).astype(int)
    counts = np.array([rng.multinomial(m, row / row.sum()) for m, row in zip(lengths, shares, strict=True)])
    if weights is None:
        return counts.astype(float)
    if weights == "binary":
        return (counts > 0).astype(float)
    weighted = counts * (np.log((1 + n) / (1 + (counts > 0).sum(axis=0))) + 1)
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True) if weights == "unit" else weighted


def links(rng, n=400, n_groups=8):
    group = rng.integers(n_groups, size=n)
    there = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, 0.15, 0.003), 1)
    return (there | there.T).astype(float)


def amounts(rng, n_columns, share, target=None, unit=1.0, size=(5, 30)):
    """Mostly zeros, at random; the size of the others tells the class."""
    target = rng.integers(2, size=N) if target is None else target
    sizes = 1 + rng.poisson(np.asarray(size)[target][:, None], size=(N, n_columns))
    return unit * sizes * (rng.random(sizes.shape) < share)


def events(rng, n_columns, rates=(0.04, 0.12), most=None):
    """Rare events of several kinds; how many there are tells the class."""
    rate = np.array(rates)[rng.integers(2, size=N)][:, None] * np.exp(0.8 * rng.normal(size=n_columns))
    return np.minimum(rng.poisson(rate), most or np.inf).astype(float)


def purchases(rng, n_columns=200, n_groups=5):
    """What is bought tells the group, how much of it the class."""
    group, size = rng.integers(n_groups, size=N), np.array([10, 40])[rng.integers(2, size=N)]
    own = np.arange(n_columns) % n_groups == group[:, None]
    return (1.0 + rng.poisson(size[:, None], size=own.shape)) * (own & (rng.random(own.shape) < 0.4))


def categories_and_amount(rng):
    levels = [np.eye(15)[rng.integers(15, size=N)] for _ in range(10)]
    return np.hstack([*levels, np.rint(np.exp(rng.normal(4, 1, size=(N, 2))))])


def peaks(rng, n_columns=300):
    """Spectra that are zero away from their peaks."""
    heights = rng.gamma(5, size=(N, 5)) * np.where(rng.integers(2, size=(N, 1)), [1, 3, 1, 3, 1], 1)
    shapes = np.exp(-0.5 * ((np.arange(n_columns) - np.linspace(20, n_columns - 20, 5)[:, None]) / 2.5) ** 2)
    spectra = heights @ shapes
    return np.where(spectra < 0.5, 0, spectra)


WORDS = {
    "counts": (texts, "log"),
    "counts of 150 short texts": (lambda rng: texts(rng, n=150, length=15), "log"),
    "counts of long texts": (lambda rng: texts(rng, n_words=2000, length=400), "log"),
    "counts of 60 texts": (lambda rng: texts(rng, n=60), "log"),
    "binary": (lambda rng: texts(rng, weights="binary"), "log"),
    "tf-idf": (lambda rng: texts(rng, weights="log"), "unit"),
    "tf-idf of unit rows": (lambda rng: texts(rng, weights="unit"), "unit"),
    "links": (links, "log"),
    "rows of one length": (lambda rng: np.eye(12)[rng.integers(12, size=N)], "log"),
}
NOT_WORDS = {
    "12 columns of counts": lambda rng: rng.poisson(0.15, size=(N, 12)).astype(float),
    "amounts in 15 columns": lambda rng: amounts(rng, 15, 0.15),
    "amounts in 300 columns": lambda rng: amounts(rng, 300, 0.15),
    "small amounts": lambda rng: amounts(rng, 300, 0.15, size=(0.3, 2)),
    "amounts with decimals": lambda rng: amounts(rng, 300, 0.15, unit=0.37),
    "amounts that differ little": lambda rng: amounts(rng, 300, 0.15, unit=0.37, size=(9, 15)),
    "events of 40 kinds": lambda rng: events(rng, 40),
    "events of 200 kinds": lambda rng: events(rng, 200),
    "events of 1000 kinds": lambda rng: events(rng, 1000, rates=(0.01, 0.03)),
    "whether events were": lambda rng: events(rng, 300, most=1),
    "purchases": purchases,
    "categories and amounts": categories_and_amount,
    "spectra": peaks,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", WORDS)
def test_words_are_taken_for_words(case, seed):
    make, kind = WORDS[case]
    found = choose_scaling(raw_view(make(np.random.default_rng(seed))))
    assert found.removesuffix("idf") == kind  # which of the two is the subject of test_view_kinds.py


@pytest.mark.parametrize(
    ("name", "kind"),
    {
        "bbc": "log", "reuters": "unit", "bbcsport": "unit",
        "sonar": "zscore", "handwritten": "zscore", "msrc": "zscore", "leaves": "zscore",
    }.items(),
)  # fmt: skip
def test_the_choice_on_published_data(paper_file, name, kind):
    paper_file(name)
    for view in load(name).views:
        scaling = fit_scaling(raw_view(view), "auto")
        assert scaling.kind == kind
        assert scaling.outliers is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", NOT_WORDS)
def test_sparse_sizes_are_not_taken_for_words(case, seed):
    data = NOT_WORDS[case](np.random.default_rng(seed))
    assert (data != 0).mean() < 0.2
    assert choose_scaling(raw_view(data)) not in SCALINGS_OF_WORDS


@pytest.mark.parametrize("case", [*WORDS, *NOT_WORDS])
def test_the_choice_is_the_same_however_the_rows_are_stored_and_repeated(case):
    data = (WORDS[case][0] if case in WORDS else NOT_WORDS[case])(np.random.default_rng(0))
    kind = choose_scaling(raw_view(data))
    present = np.repeat([True, False], [len(data), 5])
    with_holes = np.vstack([data, np.full((5, data.shape[1]), -7.0)])
    ways = (
        raw_view(sparse.csr_array(data)),
        raw_view(data.astype(np.float32)),
        raw_view(np.repeat(data, 3, axis=0)),
        raw_view(with_holes, present),
    )
    assert [choose_scaling(way) for way in ways] == [kind] * 4


@pytest.mark.parametrize("n_columns", [40, 100, 300])
def test_size_that_tells_the_class_is_kept(n_columns):
    """Half are right by chance; before, half were."""
    right = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        target = np.arange(N) % 2
        views = [amounts(rng, n_columns, 0.15, target=target) for _ in range(2)]
        clf = LMSSC().fit(views, np.where(np.arange(N) < 30, target, -1))
        assert set(clf.scalings_.values()) == {"zscore"}
        right.append((clf.transduction_ == target)[30:].mean())
    assert np.mean(right) > 0.9


def test_size_is_kept_where_roots_are_taken():
    """What is bought tells the group, how much of it the class: roots keep the order of sizes."""
    rng = np.random.default_rng(0)
    size = np.arange(N) % 2
    own = np.arange(200) % 5 == rng.integers(5, size=N)[:, None]
    bought = own & (rng.random(own.shape) < 0.4)
    views = [(1.0 + rng.poisson(np.array([10, 40])[size][:, None], size=own.shape)) * bought for _ in range(2)]
    clf = LMSSC(calibrate=True).fit(views, np.where(np.arange(N) < 30, size, -1))
    assert set(clf.scalings_.values()) == {"sqrt"}
    assert (clf.transduction_ == size)[30:].mean() > 0.95


def spoil_row(rng, view):
    view[7] = 1e8


def spoil_cells(rng, view):
    view[rng.random(view.shape) < 0.03] = -999


def spoil_units(rng, view):
    view[rng.random(view.shape) < 0.03] *= 1000


# How they are spoiled, what the warning says, and how much less often the answer may be right.
SPOILED = {
    "one row of 1e8": (spoil_row, r"20 values of 1e\+08 in columns .* and 15 more", 0.02),
    "3 % cells of -999": (spoil_cells, r"values of -999 in columns .* and 15 more", 0.03),
    "3 % cells in another unit": (spoil_units, r"values from -.* to .* in columns .* and \d+ more", 0.08),
}


@pytest.mark.parametrize("case", SPOILED)
def test_outliers_do_not_decide_the_scale(case):
    spoil, message, loss = SPOILED[case]
    right = []
    for seed in range(5):
        data = make_multiview(N, n_views=2, labelled=0.1, random_state=seed)
        hidden = data.y < 0
        views = [view.copy() for view in data.views]
        rng = np.random.default_rng(seed)
        for view in views:
            spoil(rng, view)
        with pytest.warns(UserWarning, match=message) as found:
            spoiled = LMSSC(calibrate=False).fit(views, data.y)
        assert all(OUTLIERS in str(one.message) for one in found)
        assert all(one.filename == __file__ for one in found)
        clean = LMSSC(calibrate=False).fit(data.views, data.y)
        right.append([(clf.transduction_ == data.target)[hidden].mean() for clf in (clean, spoiled)])
    clean, spoiled = np.mean(right, axis=0)
    assert spoiled > clean - loss


def test_the_warning_names_view_columns_value_and_count():
    data = make_multiview(100, n_views=2, n_features=3, labelled=0.2, random_state=0)
    frame = pd.DataFrame(data.views[0], columns=["age", "size", "weight"])
    frame.loc[:4, "size"] = -999
    message = r"view 'patient' has 5 values of -999 in column 'size', far from all others there"
    for fit in (LMSSC().fit, GFHF().fit, AMGL(scaling="zscore").fit):
        with pytest.warns(UserWarning, match=message):
            fit({"patient": frame, "other": data.views[1]}, data.y)
    with pytest.warns(UserWarning, match=r"view 'view0' has 5 values of -999 in column 1 \(counted from 0\)"):
        LMSSC().fit([frame.to_numpy(), data.views[1]], data.y)
    with pytest.warns(UserWarning, match=r"view .view1. has 5 values of -999 in column 1 \(counted from 0\)"):
        LMSSC(views=[3, 3]).fit(np.hstack([data.views[1], frame.to_numpy()]), data.y)
    stacked = pd.concat([pd.DataFrame(data.views[1], columns=list("abc")), frame], axis=1)
    with pytest.warns(UserWarning, match=r"view 'patient' .* in column 'size'"):
        LMSSC(views={"other": list("abc"), "patient": ["age", "size", "weight"]}).fit(stacked, data.y)


def draw(rng, case, n=2000):
    size = (n, 20)
    return {
        "normal": lambda: rng.normal(size=size),
        "log-normal": lambda: np.exp(rng.normal(size=size)),
        "heavy log-normal": lambda: np.exp(2 * rng.normal(size=size)),
        "Student's t": lambda: rng.standard_t(3, size=size),
        "1 % ones": lambda: (rng.random(size) < 0.01).astype(float),
        "0.1 % ones": lambda: (rng.random(size) < 0.001).astype(float),
        "counts": lambda: rng.poisson(0.05, size=size).astype(float),
        "log-normal, 95 % zeros": lambda: np.exp(rng.normal(size=size)) * (rng.random(size) < 0.05),
        "far from zero, 10 % zeros": lambda: (1000 + rng.normal(size=size)) * (rng.random(size) > 0.1),
        "a rare class apart": lambda: rng.normal(size=size) + 8 * (rng.random((n, 1)) < 0.03),
        "0 to 99": lambda: rng.integers(100, size=size).astype(float),
        "constant": lambda: np.full(size, -999.0),
        "two values": lambda: np.where(rng.random(size) < 0.01, -999.0, 5.0),
        "rare ones, unknown ones imputed": lambda: np.where(rng.random(size) < 0.1, 0.004, rng.random(size) < 0.004),
    }[case]()


ORDINARY = (
    "normal", "log-normal", "heavy log-normal", "Student's t", "1 % ones", "0.1 % ones", "counts",
    "log-normal, 95 % zeros", "far from zero, 10 % zeros", "a rare class apart", "0 to 99", "constant", "two values",
    "rare ones, unknown ones imputed",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ORDINARY)
def test_heavy_tails_and_rare_ones_are_no_outliers(case, seed):
    data = draw(np.random.default_rng(seed), case)
    for stored in (data, sparse.csr_array(data), data.astype(np.float32)):
        scaling = fit_scaling(raw_view(stored), "zscore")
        assert scaling.outliers is None
        varies = data.std(axis=0) > 0
        np.testing.assert_allclose(scaling.column_scale[varies] * data.std(axis=0)[varies], 1, rtol=1e-5)


def spoiled_view(n=200):
    """Columns with a code, one outlier, both, none, and a sparse one with an outlier."""
    rng = np.random.default_rng(0)
    data = np.exp(rng.normal(size=(n, 5))) * (rng.random((n, 5)) < [0.9, 1, 1, 1, 0.3])
    data[:6, 0], data[9, 1], data[:2, 2], data[3, 2], data[3, 4] = -999, 1.23e9, -999, 1e8, -5e6
    return data


def test_outliers_are_replaced_in_fit_and_in_new_samples():
    data = spoiled_view()
    scaling = fit_scaling(raw_view(data), "zscore")
    assert scaling.outliers.columns.tolist() == [0, 1, 2, 4]
    assert scaling.outliers.counts.tolist() == [6, 1, 3, 1]
    new = np.array([[-999, 2e9, 1e8, -999, -1e7], [0, 0, 0, 0, 0], [-9999, -3, 77, 1e8, 0.5]], dtype=float)
    plain = np.delete(data, [0, 1, 2, 3, 4, 5, 9], axis=0)
    expected = scaling.apply(raw_view(new)).data
    np.testing.assert_allclose(expected[0, [0, 2]], 0, atol=1e-12)  # codes become the mean
    np.testing.assert_allclose(expected[2, 0], 0, atol=1e-12)
    scaled = scaling.apply(raw_view(plain)).data
    np.testing.assert_allclose(expected[[0, 2], 1], [scaled[:, 1].max(), scaled[:, 1].min()])
    np.testing.assert_allclose(expected[1], -scaling.mean * scaling.column_scale)  # 0 stays 0
    np.testing.assert_allclose(expected[0, 3], (-999 - data[:, 3].mean()) / data[:, 3].std())  # none in fit


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outliers_are_the_same_however_the_rows_are_stored_and_repeated(dtype):
    data = spoiled_view().astype(dtype)
    one = fit_scaling(raw_view(data), "zscore")
    with tempfile.NamedTemporaryFile() as file:
        on_disk = np.memmap(file, dtype, "w+", shape=data.shape)
        on_disk[:] = data
        present = np.repeat([True, False], [len(data), 5])
        ways = (
            raw_view(sparse.csr_array(data)),
            raw_view(MappedRows(on_disk, np.arange(len(data))[::-1])),
            raw_view(np.repeat(data, 3, axis=0)),
            raw_view(data[::-1].copy()),
            raw_view(np.vstack([data, np.full((5, 5), 1e20, dtype=dtype)]), present),
        )
        for way in ways:
            other = fit_scaling(way, "zscore")
            np.testing.assert_array_equal(other.outliers.columns, one.outliers.columns)
            for name in ("low", "high", "first", "last"):
                np.testing.assert_array_equal(getattr(other.outliers, name), getattr(one.outliers, name))
            np.testing.assert_allclose(other.column_scale, one.column_scale, rtol=1e-6)
            np.testing.assert_allclose(other.mean, one.mean, rtol=1e-6)
        dense, in_csr = one.apply(raw_view(data)).dot(np.eye(5)), one.apply(ways[0]).dot(np.eye(5))
        np.testing.assert_allclose(in_csr, dense, atol=1e-5)


def test_a_model_with_outliers_is_saved_and_loaded(tmp_path):
    data = make_multiview(100, n_views=2, labelled=0.2, random_state=0)
    data.views[0][3] = 1e8
    with pytest.warns(UserWarning, match=OUTLIERS):
        clf = LMSSC(max_iter=2).fit(data.views, data.y)
    clf.save(tmp_path / "model")
    new = [view + 0.1 for view in data.views]
    np.testing.assert_array_equal(lmssc.load(tmp_path / "model").predict_proba(new), clf.predict_proba(new))


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e-170), (np.float64, 1e-300), (np.float32, 1e-39)])
@pytest.mark.parametrize("scaling", ["auto", "center", "unit"])
def test_values_that_are_too_small_are_told(dtype, factor, scaling):
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(60, 3)).astype(dtype), "b": (rng.normal(size=(60, 2)) * factor).astype(dtype)}
    with pytest.warns(UserWarning, match=r"view 'b', columns 0, 1 \(counted from 0\): values too small"):
        LMSSC(max_iter=1, scaling={"b": scaling}).fit(views, np.where(np.arange(60) < 20, np.arange(60) % 2, -1))


@pytest.mark.parametrize("value", [0.1, 3.7, -7.3, 1 / 3, 1e15 / 7])
@pytest.mark.parametrize("n_samples", [30, 240, 3000, 100_000])
def test_a_constant_column_is_constant_however_long(value, n_samples):
    """The rounding of a long sum made it vary: new samples with fewer digits were thought far from all others."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(n_samples, value), rng.normal(size=n_samples)])
    present = rng.random(n_samples) < 0.7
    for raw in (RawView("a", X, None), RawView("a", X, present), RawView("a", sparse.csr_array(X), None)):
        scaling = fit_scaling(raw, "zscore")
        assert scaling.column_scale[0] == 0
        assert scaling.mean[0] == pytest.approx(value, rel=1e-15)
        assert scaling.column_scale[1] == pytest.approx(
            1 / X[present if raw.present is not None else ..., 1].std(), rel=1e-12
        )
