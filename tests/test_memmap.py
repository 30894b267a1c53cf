"""Memory-mapped views give the same answers as views in memory, and are not copied."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from lmssc import GFHF, LMSSC, open_view
from lmssc.data import memmap as mapped
from lmssc.data.memmap import MappedRows
from lmssc.data.missing_views import make_raw_views
from lmssc.data.scaling import fit_scalings, scale_views
from lmssc.data.view import MappedView, RawView
from lmssc.datasets import make_multiview


def on_disk(array, folder, name):
    path = folder / f"{name}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.fixture(autouse=True)
def small_maps_too(monkeypatch):
    monkeypatch.setattr("lmssc.data.view.MIN_MAPPED_BYTES", 0)


@pytest.fixture
def data():
    return make_multiview(400, 2, 20, n_classes=3, labelled=0.1, random_state=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaling", ["auto", None, "unit", "tfidf", "sample"])
def test_the_same_answer_as_in_memory(data, tmp_path, monkeypatch, scaling, dtype):
    monkeypatch.setattr(mapped, "BATCH_BYTES", 5000)  # many blocks
    views = [np.abs(np.rint(view)).astype(dtype) if scaling == "tfidf" else view.astype(dtype) for view in data.views]
    maps = [on_disk(view, tmp_path, v) for v, view in enumerate(views)]
    clf = LMSSC(scaling=scaling, calibrate=scaling == "auto")
    one, two = clone(clf).fit(views, data.y), clone(clf).fit(maps, data.y)
    assert (one.transduction_ == two.transduction_).mean() > (0.999 if dtype == np.float64 else 0.99)
    np.testing.assert_allclose(
        two.label_distributions_, one.label_distributions_, atol=1e-6 if dtype == np.float64 else 0.05
    )
    assert two.latent_.dtype == dtype
    np.testing.assert_array_equal(two.predict(maps), two.transduction_)


def test_one_map_cut_into_views(data, tmp_path):
    X = np.hstack(data.views)
    clf = LMSSC(views=[20, 20]).fit(on_disk(X, tmp_path, "X"), data.y)
    same = LMSSC(views=[20, 20]).fit(X, data.y)
    np.testing.assert_allclose(clf.label_distributions_, same.label_distributions_, atol=1e-6)


def test_missing_rows_and_other_methods_read_what_they_need(data, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "BATCH_BYTES", 5000)
    holes = data.views[0].copy()
    holes[:20] = np.nan
    views = [holes, data.views[1]]
    maps = [on_disk(view, tmp_path, v) for v, view in enumerate(views)]
    new = [view + 0.01 for view in views]
    new_maps = [on_disk(view, tmp_path, f"new{v}") for v, view in enumerate(new)]
    for method in (GFHF, LMSSC):
        one, two = method().fit(views, data.y), method().fit(maps, data.y)
        np.testing.assert_allclose(two.label_distributions_, one.label_distributions_, atol=1e-6)
        np.testing.assert_allclose(two.predict_proba(new_maps), one.predict_proba(new), atol=1e-6)
    np.testing.assert_allclose(two.transform(new_maps), one.transform(new), atol=1e-6)


def test_the_same_answer_of_a_sparse_view(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "BATCH_BYTES", 5000)
    data = make_multiview(300, 2, [20, 1000], sparse=[False, True], labelled=0.1, random_state=1)
    sparse.save_npz(tmp_path / "words.npz", data.views[1], compressed=False)
    words = open_view(tmp_path / "words.npz")
    read = []
    monkeypatch.setattr(MappedView, "blocks", lambda view, blocks=MappedView.blocks: read.append(1) or blocks(view))
    one, two = LMSSC().fit(data.views, data.y), LMSSC().fit([data.views[0], words], data.y)
    assert one.scalings_ == two.scalings_
    assert len(read) > 3
    np.testing.assert_allclose(two.label_distributions_, one.label_distributions_, atol=1e-6)
    np.testing.assert_array_equal(two.predict([data.views[0], words]), two.transduction_)


def test_scaling_and_products_hold_a_block_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "BATCH_BYTES", 1 << 20)
    array = np.random.default_rng(0).random((1000, 10_000), dtype=np.float32)
    array[7] = np.nan
    wide = on_disk(array, tmp_path, "wide")
    tracemalloc.start()
    raws = [raw.map(np.arange(1000)[::-1]) for raw in make_raw_views({"wide": wide, "all": np.ones((1000, 1))}, None)]
    views = scale_views(raws[:1], fit_scalings(raws[:1], ["auto"]))
    latent = views.dot([np.ones((10_000, 5), dtype=np.float32)])
    views.transpose_dot(latent)
    assert views.dtype == latent.dtype == np.float32
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * wide.nbytes


@pytest.mark.parametrize("kind", ["none", "zscore", "mixed", "unit", "tfidf", "sample"])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_missing", [0, 5])
def test_sparse_ops(tmp_path, monkeypatch, kind, stored, n_missing):
    monkeypatch.setattr(mapped, "BATCH_BYTES", 200)
    rng = np.random.default_rng(1)
    array, order = rng.poisson(0.7, size=(30, 6)).astype(float), rng.permutation(30)[:25]
    present = np.arange(30) >= n_missing if n_missing else None
    raw = RawView("a", stored(array), present).take(order)
    if stored is np.asarray:
        source = on_disk(array, tmp_path, "a")
    else:
        sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(array), compressed=False)
        source = open_view(tmp_path / "a.npz")
    rows = RawView("a", source, present).map(order)
    assert isinstance(rows.data, MappedRows)
    np.testing.assert_array_equal(rows.take(slice(0, 9)).data[:].sum(axis=0), raw.data[:9].sum(axis=0))
    (scaling,), (same,) = (fit_scalings([one], [kind]) for one in (raw, rows))
    expected, found = scaling.apply(raw), same.apply(rows)
    assert isinstance(found, MappedView)
    np.testing.assert_allclose(found.dot(np.eye(6)), expected.dot(np.eye(6)), atol=1e-12)
    np.testing.assert_allclose(found.transpose_dot(np.eye(25)), expected.transpose_dot(np.eye(25)), atol=1e-12)
    np.testing.assert_allclose(found.squared_norm(), expected.squared_norm())


def test_changes_that_are_in_memory_alone_are_kept(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    array = np.load(tmp_path / "a.npy", mmap_mode="c")
    array[0] = 7
    mapped.release(array)
    mapped.release(array.copy())  # of the same class, but in memory
    assert array[0].tolist() == [7, 7]


FIT = """
import sys
import numpy as np
from lmssc import LMSSC, open_view

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

view, new = (open_view(path) for path in sys.argv[1:])
LMSSC().fit([np.random.default_rng(0).normal(size=(40, 3))], np.arange(40) % 2)  # what is imported late
before = peak()
codes = np.arange(len(view)) % 2
clf = LMSSC(n_components=1, max_iter=1, calibrate=False).fit([view], np.where(np.arange(len(view)) < 200, codes, -1))
assert (clf.transduction_ == codes).mean() > 0.99
assert (clf.predict([new]) == np.arange(len(new)) % 2).mean() > 0.99
small = sum(a.nbytes for a in (clf.latent_, clf.label_distributions_, clf.graph_.data, clf.graph_.indices))
print(view.nbytes, small, peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_peak_memory_does_not_follow_the_views(tmp_path):
    rng = np.random.default_rng(0)
    direction = rng.normal(size=20_000).astype(np.float32)
    for name, n_rows in (("view", 2500), ("new", 1500)):
        with open(tmp_path / f"{name}.npy", "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, 20_000)}
            np.lib.format.write_array_header_1_0(file, header)
            for first in range(0, n_rows, 500):
                signs = 1 - 2 * (np.arange(first, first + 500) % 2)
                noise = rng.standard_normal((500, 20_000), dtype=np.float32)
                file.write((signs[:, None] * direction + noise).astype(np.float32).data)
    paths = [tmp_path / "view.npy", tmp_path / "new.npy"]
    done = subprocess.run([sys.executable, "-c", FIT, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    size, small, peak = map(int, done.stdout.split())
    assert size == 200_000_000
    assert peak < 100_000_000 + 15 * small < 0.6 * size  # what docs/guide/large.md says


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process as Linux tells it")
@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_from_all_over_a_file_do_not_make_all_of_it_resident(tmp_path, monkeypatch, is_sparse):
    """The system maps cached pages around each row that is read."""
    monkeypatch.setattr(mapped, "BATCH_BYTES", 1 << 20)
    values = np.arange(1 << 22, dtype=np.float32).reshape(1 << 14, 256)
    data = on_disk(values, tmp_path, "a")
    if is_sparse:
        indptr = np.arange(0, values.size + 1, 256, dtype=np.int32)
        columns = on_disk(np.tile(np.arange(256, dtype=np.int32), len(values)), tmp_path, "columns")
        data = sparse.csr_array(data.shape, dtype=np.float32)
        data.data, data.indices, data.indptr = on_disk(values.ravel(), tmp_path, "a"), columns, indptr
    found = []

    def resident():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile"))

    def measure(array):
        found.append(resident())
        release(array)

    release = mapped.release
    rows, backwards = np.random.default_rng(0).permutation(len(values))[:1500], np.arange(len(values))[::-1]
    MappedRows(data, backwards)[rows[:2]]  # the pages of the libraries count, too
    release(data)
    monkeypatch.setattr(mapped, "release", measure)
    before = resident()
    read = MappedRows(data, backwards)[rows]
    np.testing.assert_array_equal(read.toarray() if is_sparse else read, values[::-1][rows])
    assert max([*found, resident()]) - before < 8 << 20
