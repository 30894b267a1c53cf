"""Fits and predictions on a Dask cluster: a real one, of processes on this machine."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from lmssc import GFHF, LMSSC
from lmssc.cli import main
from lmssc.cluster import dask_executor, dask_fit, dask_worker
from lmssc.core.parts import parted_objective
from lmssc.data.memmap import MappedRows
from lmssc.datasets import make_multiview

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def start_cluster(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    )


@pytest.fixture(scope="module")
def client(loopback):
    with start_cluster(2) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    # More than 5,000 samples: the solvers take fewer steps, each of which is a round of messages.
    return make_multiview(5200, 2, [8, 6], n_classes=3, labelled=0.1, random_state=0, dtype="float32")


OPTIONS = {"max_iter": 2, "tol": 0.0, "calibrate": False, "second_opinion": 0.0, "n_components": 6}


@pytest.fixture(scope="module")
def fitted(data):
    return LMSSC(**OPTIONS).fit(data.views, data.y)


def as_dask(views):
    return [da.from_array(view, chunks=(1700, 4)) for view in views]


def assert_same_answers(clf, fitted):
    np.testing.assert_allclose(np.asarray(clf.label_distributions_), fitted.label_distributions_, atol=1e-3)
    np.testing.assert_array_equal(np.asarray(clf.transduction_), fitted.transduction_)


def check_results_stay(clf, fitted, data):
    """Large results are dask arrays of files; a saved model, `predict` and lists have them here."""
    for name in ("transduction_", "label_distributions_", "latent_"):
        found = getattr(clf, name)
        assert isinstance(found, da.Array)
        assert found.shape == getattr(fitted, name).shape
        assert found.dtype == getattr(fitted, name).dtype
    np.testing.assert_allclose(clf.latent_.compute(), fitted.latent_, atol=2e-3)
    assert isinstance(clf.graph_.data.base, np.memmap) or isinstance(clf.graph_.data, np.memmap)
    assert abs(clf.graph_ - fitted.graph_).max() < 0.05
    new = [view[:60] + (np.arange(60) % 2 * 0.01)[:, None].astype("float32") for view in data.views]
    np.testing.assert_allclose(clf.predict_proba(new), fitted.predict_proba(new), atol=1e-3)
    np.testing.assert_array_equal(clf.predict(as_dask(new)).compute(), fitted.predict(new))
    np.testing.assert_array_equal(clf.most_uncertain(5), fitted.most_uncertain(5))


def test_dask_arrays_are_fitted_on_the_workers_although_one_dies(client, data, fitted, monkeypatch):
    """The answers are those of a fit in memory, also after kill −9 of a worker that holds half of the samples.

    It dies between two rounds; the next test kills one that others wait for.
    """
    due, killed = [], []

    def kill_a_worker(progress):
        due.append(progress.iteration)

    def call_and_kill(self, method, arguments):
        found = call(self, method, arguments)
        if due and not killed:
            here = client.run(lambda: (os.getpid(), dask_worker.parts_here()))
            killed.append(next(process for process, parts in here.values() if parts))
            os.kill(killed[0], signal.SIGKILL)
        return found

    call = dask_executor.DaskExecutor._call
    monkeypatch.setattr(dask_executor.DaskExecutor, "_call", call_and_kill)
    monkeypatch.setattr(dask_fit, "RESTART_SECONDS", 5)  # then it goes on with the other worker

    def refuse(*_):
        raise AssertionError("a pass over the views, which is the work of the workers")

    monkeypatch.setattr(MappedRows, "blocks", refuse)
    monkeypatch.setattr("lmssc.core.parts.partition.dot_on_disk", refuse)
    clf = LMSSC(callback=kill_a_worker, **OPTIONS)
    with pytest.warns(UserWarning, match="continues from its last checkpoint"):
        clf.fit(as_dask(data.views), data.y)
    assert killed
    assert_same_answers(clf, fitted)
    check_results_stay(clf, fitted, data)


def send_or_die(part, bounds):
    """Part 0 sends at once and waits; part 1 dies before it has sent anything."""
    if part.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {1: [np.arange(3)]}


def test_a_worker_that_dies_while_another_waits_for_it(loopback):
    """Without an end to its waiting, the worker that is left would answer no more."""
    bounds = np.array([0, 2, 5])
    with start_cluster(2) as cluster, distributed.Client(cluster, set_as_default=False) as alone:
        executor = dask_executor.DaskExecutor(bounds, alone)
        assert executor.map(len) == [2, 3]
        assert executor.exchange(send_sum, receive_sum, 7, each=[1, 2]) == [{1: 8}, {0: 8}]
        survivor = executor.workers[0]
        with pytest.raises(dask_worker.WorkerLostError):
            executor.exchange(send_or_die, receive_sum, bounds)
        executor.close()
        assert alone.submit(len, "abc", workers=[survivor]).result(30) == 3
        assert alone.run(dask_worker.parts_here, workers=[survivor])[survivor] == []
        again = dask_executor.DaskExecutor(np.array([0, 4]), alone)
        assert again.map(len) == [4]
        again.close()


def send_sum(part, shared, own):
    return {1 - part.number: [np.full(len(part) // 2, shared + own - part.number)], part.number: [np.zeros(1)]}


def receive_sum(part, messages, shared, own):
    assert list(messages) == [0, 1]
    return {source: int(array.sum()) for source, (array,) in messages.items() if source != part.number}


def test_the_error_of_a_function_comes_back_and_nobody_waits(client):
    executor = dask_executor.DaskExecutor(np.array([0, 2, 5]), client)
    with pytest.raises(ZeroDivisionError):
        executor.exchange(divide, receive_sum)
    executor.close()
    with pytest.raises(dask_worker.WorkerLostError):
        executor.map(len)
    again = dask_executor.DaskExecutor(np.array([0, 2, 5]), client)
    assert again.map(len) == [2, 3]
    again.close()


def divide(part):
    return {0: [np.zeros(1 // part.number)]}


def test_a_fit_that_has_no_worker_left_says_so(client):
    asked = []

    class Empty:
        status, scheduler = "running", object()

        def nthreads(self):
            return {}

        def wait_for_workers(self, n_workers, timeout):
            asked.append((n_workers, timeout))
            raise TimeoutError

    with pytest.raises(dask_executor.WorkerLostError, match="no worker left"):
        dask_fit._wait_for_workers(Empty(), 4)
    assert asked == [(4, dask_fit.RESTART_SECONDS), (1, dask_fit.NO_WORKER_SECONDS)]
    dask_fit._wait_for_workers(client, 1)


def test_tasks_that_no_worker_takes_end_with_an_error(loopback, monkeypatch):
    monkeypatch.setattr(dask_executor, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(dask_executor, "NO_WORKER_SECONDS", 0.3)
    with start_cluster(0) as cluster, distributed.Client(cluster, set_as_default=False) as alone:
        waiting = alone.submit(len, "abc")
        with pytest.raises(dask_executor.WorkerLostError, match="no worker left"):
            dask_executor.gather_or_fail(alone, [waiting], ())


def test_predictions_of_dask_arrays_are_lazy_and_the_same(client, data, fitted):
    new = [view[:50] + 0.01 for view in data.views]
    lazy = as_dask(new)
    for method in (fitted.predict, fitted.predict_proba, fitted.transform):
        answer = method(lazy)
        assert isinstance(answer, da.Array)
        np.testing.assert_array_equal(answer.compute(), method(new))
    assert fitted.predict(lazy, reject=0.05).shape == (50,)
    words = sparse.csr_array(np.abs(data.views[0]).round())
    gfhf = GFHF().fit(words[:400], data.y[:400])
    blocks = [da.from_array(words[first : first + 20], asarray=False) for first in (400, 420)]
    np.testing.assert_array_equal(gfhf.predict(da.concatenate(blocks)).compute(), gfhf.predict(words[400:440]))


def test_sparse_blocks_become_one_matrix_on_disk(client, data, tmp_path):
    from lmssc.cluster.dask_views import spool

    words = sparse.csr_array(np.abs(data.views[0]).round())
    blocks = [da.from_array(words[first : first + 2000], asarray=False) for first in (0, 2000, 4000)]
    found = spool({"words": da.concatenate(blocks), "other": data.views[1]}, str(tmp_path))
    assert (found["words"] != words).nnz == 0
    assert found["other"] is data.views[1]


def test_dask_arrays_are_never_gathered_in_silence(data, monkeypatch):
    monkeypatch.setattr("lmssc.cluster.dask_fit.CONNECT_TIMEOUT", "200ms")
    views = as_dask(data.views)
    with pytest.raises(TypeError, match=r"'view0' is a dask array.*compute\(\)"):
        GFHF().fit(views, data.y)
    with pytest.raises(ValueError, match="no Dask scheduler answers"):
        LMSSC(client="tcp://127.0.0.1:1").fit(views, data.y)
    unknown = da.from_array(data.views[0])[da.from_array(data.target) > 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        GFHF().fit(data.views[0][:400], data.y[:400]).predict(unknown)


def test_without_a_cluster_dask_arrays_are_refused(data, monkeypatch):
    monkeypatch.setattr(distributed, "default_client", lambda: (_ for _ in ()).throw(ValueError("no client")))
    with pytest.raises(ValueError, match="no cluster to fit them on"):
        LMSSC().fit(as_dask(data.views), data.y)


def test_a_dead_scheduler_is_an_error_and_the_checkpoint_goes_on(client, data, fitted, tmp_path):
    options = {**OPTIONS, "checkpoint": tmp_path / "fit.ckpt"}
    # Or else what is left of the cluster tries for half a minute to reach its scheduler.
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), start_cluster(1) as cluster:
        doomed = distributed.Client(cluster, set_as_default=False)

        def kill(progress):
            cluster.sync(cluster.scheduler.close)

        with pytest.raises(RuntimeError, match="scheduler does not answer"):
            LMSSC(client=doomed, callback=kill, **options).fit(data.views, data.y)
        doomed.close(timeout=1)
    assert (tmp_path / "fit.ckpt").exists()
    clf = LMSSC(client=client, **options).fit(data.views, data.y)  # on another cluster
    assert_same_answers(clf, fitted)


def test_classify_reads_and_writes_parquet_on_the_cluster(client, data, tmp_path, capsys, monkeypatch):
    # Solvers stop as early as with many samples: each of their steps is a round of messages.
    monkeypatch.setattr(parted_objective, "TOLERANCE", replace(parted_objective.TOLERANCE, max_exact_samples=0))
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(dask_fit, "RESIDENT_FACTOR", 1e9)  # as if they were too many for the workers: parts in files
    n_rows = 1200
    a, b = (view[:n_rows] for view in data.views)
    ids = [f"s{row}" for row in range(n_rows)]
    labels = [None if label < 0 else f"k{label}" for label in data.y[:n_rows].tolist()]
    (tmp_path / "image").mkdir()
    for number, rows in enumerate((slice(0, 700), slice(700, n_rows))):
        columns = {"id": ids[rows], "note": ids[rows], **{f"x{j}": a[rows, j] for j in range(a.shape[1])}}
        parquet.write_table(arrow.table(columns), tmp_path / "image" / f"{number}.parquet", row_group_size=300)
    columns = {"id": ids, "kind": labels, **{f"y{j}": b[:, j] for j in range(b.shape[1])}}
    parquet.write_table(arrow.table(columns), tmp_path / "text.parquet")
    command = ["classify", str(tmp_path / "image"), str(tmp_path / "text.parquet"), "--label-column", "kind"]
    command += ["--dask", client.scheduler.address, "--out", str(tmp_path / "out")]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "image: 8 columns of numbers; not used: note" in printed
    for name in ("to_label.csv", "check_labels.csv", "model.lmssc", "report.html"):
        assert f"{name} is not written" in printed
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["part-00000.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image", "out", "text.parquet"]
    found = parquet.read_table(tmp_path / "out").to_pandas()
    here = LMSSC().fit({"image": a, "text": b}, np.array(labels, dtype=object))
    assert found["id"].tolist() == ids
    assert (found["label"] == here.transduction_).mean() > 0.99  # on the cluster without the views' own graphs
    np.testing.assert_allclose(found[["p_k0", "p_k1", "p_k2"]].sum(axis=1), 1, atol=1e-5)
    assert found["given"].sum() == sum(label is not None for label in labels)
    for wrong, words in [
        (["--force"], "--force cannot be combined with --dask"),
        (["--id", "who"], "no column 'who', which --id"),
    ]:
        assert main([*command, *wrong]) == 2
        assert words in capsys.readouterr().err
    for path in (tmp_path / "text.parquet", tmp_path / "image" / "0.parquet", tmp_path / "image" / "1.parquet"):
        table = parquet.read_table(path)
        parquet.write_table(table.append_column("key", arrow.array(range(len(table)))), path)
    assert main([*command, "--out", str(tmp_path / "other"), "--dry-run"]) == 2
    assert "if it names the samples, use --id key" in capsys.readouterr().err
