"""Files that others read: the same results as if this process had read them."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from lmssc.core.parts.partition import dot_on_disk, start_positions
from lmssc.core.parts.results import renumber_graph, take_in_order
from lmssc.data.memmap import MappedRows, file_of, open_file
from lmssc.data.missing_views import check_views
from lmssc.data.scaling import fit_scalings, scale_views
from lmssc.data.shared_files import map_rows, read_by, readers_of, sum_rows
from lmssc.data.view import RawView


class OtherProcess:
    """Runs tasks on what travels of them to another process."""

    def __init__(self, folder):
        self.folder, self.n_tasks, self.n_bytes = str(folder), 0, 0

    def run(self, function, tasks):
        cloudpickle = pytest.importorskip("cloudpickle")
        for task in tasks:
            sent = cloudpickle.dumps((function, task))
            self.n_bytes += len(sent)
            self.n_tasks += 1
            own, arguments = pickle.loads(sent)
            yield own(*arguments)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "dense.npy", rng.normal(size=(3000, 20)).astype(np.float32) + 3)
    words = sparse.random_array((3000, 40), density=0.05, random_state=rng, format="csr", dtype=np.float32)
    for part in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{part}.npy", getattr(words, part))
    mapped = sparse.csr_array(words.shape, dtype=np.float32)
    mapped.data, mapped.indices, mapped.indptr = (
        np.load(tmp_path / f"{part}.npy", mmap_mode="r") for part in ("data", "indices", "indptr")
    )
    return np.load(tmp_path / "dense.npy", mmap_mode="r"), mapped


def test_an_array_in_a_file_travels_by_its_name(files):
    dense, words = files
    rows = MappedRows(dense[:, 3:7], np.arange(0, 3000, 2))
    sent = pickle.dumps(rows)
    assert len(sent) < 13_500  # 1,500 row numbers
    np.testing.assert_array_equal(pickle.loads(sent)[:], dense[::2, 3:7])
    assert (open_file(pickle.loads(pickle.dumps(file_of(words)))) != words).nnz == 0


def test_scalings_products_and_orders_by_others_are_the_same(files, tmp_path, monkeypatch):
    monkeypatch.setattr("lmssc.data.memmap.BATCH_BYTES", 1 << 14)
    rows = np.random.default_rng(1).permutation(3000)[:2900]
    others = OtherProcess(tmp_path)

    def work():
        raws = [RawView(str(v), MappedRows(data, rows), None) for v, data in enumerate(files)]
        checked = check_views({"dense": files[0], "words": files[1]}, None)
        assert all(view.gap_rows is None and view.raw.present is None for view in checked)
        scalings = fit_scalings(raws, ["auto", "auto"])
        views = scale_views(raws, scalings)
        loadings = [np.eye(20, 3, dtype=np.float32), np.ones((40, 3), dtype=np.float32)]
        positions = start_positions(views, loadings)[np.arange(2900)]
        index = np.arange(5)[::-1]
        taken = take_in_order(files[0], index)
        norms = sum_rows(lambda block: np.square(block, dtype=np.float64).sum(axis=0), raws[0].data)
        order = np.concatenate([numbers for numbers, _ in map_rows(len, raws[0].data)])
        return scalings, views.gram_dot(loadings), positions, taken, norms, order, views

    here = work()
    with read_by(others, str(tmp_path)):
        assert readers_of(files[1]) is others
        there = work()
    assert others.n_tasks > 50
    for one, other in zip(here[0], there[0], strict=True):
        assert (one.kind, one.reason) == (other.kind, other.reason)
        np.testing.assert_allclose(one.factor, other.factor, rtol=1e-6)
    np.testing.assert_allclose(here[1], there[1], rtol=1e-4, atol=1e-5)
    for one, other in zip(here[2:6], there[2:6], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    loadings = [np.eye(20, 3, dtype=np.float32), np.ones((40, 3), dtype=np.float32)]
    expected = here[6].dot(loadings)
    np.testing.assert_allclose(there[2], expected, rtol=1e-5, atol=1e-6)
    written = dot_on_disk(here[6], loadings)
    np.testing.assert_allclose(written[:], expected, rtol=1e-5, atol=1e-6)
    by_file = np.empty_like(written.array)
    by_file[written.rows] = expected
    np.testing.assert_allclose(written.array, by_file, rtol=1e-5, atol=1e-6)
    assert (np.diff(written.rows[np.argsort(rows)]) == 1).all()  # one page after another


def test_a_graph_is_renumbered_by_others(files, tmp_path):
    graph = files[1][:40]
    square = sparse.csr_array((40, 40), dtype=np.float32)
    square.data, square.indices, square.indptr = graph.data, graph.indices, np.array(graph.indptr)
    nodes, samples = np.random.default_rng(0).permutation(40), np.arange(40)[::-1].copy()
    expected = renumber_graph(sparse.csr_array(square.toarray()), nodes, samples)
    with read_by(OtherProcess(tmp_path), str(tmp_path)):
        whole = sparse.csr_array(square.shape, dtype=np.float32)
        whole.data, whole.indices = files[1].data, files[1].indices
        whole.indptr = square.indptr
        found = renumber_graph(whole, nodes, samples)
    assert (found != expected).nnz == 0
