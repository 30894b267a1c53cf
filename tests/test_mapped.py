"""Views on disk give the same answer as views in memory, and are not copied."""

import tracemalloc

import numpy as np
import pytest

from lmssc import GFHF, LMSSC, mapped
from lmssc.datasets import make_multiview
from lmssc.inputs import make_raw_views
from lmssc.mapped import MappedRows
from lmssc.scaling import fit_scalings, scale_views


def on_disk(array, folder, name):
    path = folder / f"{name}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.fixture(autouse=True)
def small_maps_too(monkeypatch):
    monkeypatch.setattr("lmssc.views.FEWEST_BYTES", 0)


@pytest.fixture
def data():
    return make_multiview(400, 2, 20, n_classes=3, labelled=0.1, random_state=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaling", ["auto", None, "unit", "tfidf", "sample"])
def test_the_same_answer_as_in_memory(data, tmp_path, monkeypatch, scaling, dtype):
    monkeypatch.setattr(mapped, "BLOCK_BYTES", 5000)  # many blocks
    views = [np.abs(np.rint(view)).astype(dtype) if scaling == "tfidf" else view.astype(dtype) for view in data.views]
    maps = [on_disk(view, tmp_path, v) for v, view in enumerate(views)]
    one, two = LMSSC(scaling=scaling).fit(views, data.y), LMSSC(scaling=scaling).fit(maps, data.y)
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


def test_missing_rows_and_other_methods_read_what_they_need(data, tmp_path):
    holes = data.views[0].copy()
    holes[:20] = np.nan
    views = [holes, data.views[1]]
    maps = [on_disk(view, tmp_path, v) for v, view in enumerate(views)]
    for method in (LMSSC, GFHF):
        one, two = method().fit(views, data.y), method().fit(maps, data.y)
        np.testing.assert_allclose(two.label_distributions_, one.label_distributions_, atol=1e-6)


def test_scaling_and_products_hold_a_block_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "BLOCK_BYTES", 1 << 20)
    wide = on_disk(np.random.default_rng(0).random((1000, 10_000), dtype=np.float32), tmp_path, "wide")
    tracemalloc.start()
    raws = [raw.map(np.arange(1000)[::-1]) for raw in make_raw_views({"wide": wide}, None)]
    views = scale_views(raws, fit_scalings(raws, ["auto"]))
    latent = views.dot([np.ones((10_000, 5), dtype=np.float32)])
    views.transpose_dot(latent)
    assert views.dtype == latent.dtype == np.float32
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * wide.nbytes


def test_products(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "BLOCK_BYTES", 100)
    rng = np.random.default_rng(1)
    array, order = rng.normal(size=(30, 4)), rng.permutation(30)[:25]
    mean, scale = rng.normal(size=4), rng.normal(size=4)
    rows = MappedRows(on_disk(array, tmp_path, "a"), order, mean, scale)
    dense = (array[order] - mean) * scale
    np.testing.assert_allclose(rows[:], dense)
    np.testing.assert_allclose(rows @ np.eye(4), dense)
    np.testing.assert_allclose(rows.transpose_dot(np.eye(25)), dense.T)
    np.testing.assert_allclose(rows.squared_norm(), (dense**2).sum())
    found = MappedRows(rows.array, order).moments()
    np.testing.assert_allclose(found, (array[order].mean(axis=0), array[order].var(axis=0)))
