"""The fit in parts: the same as in memory, however many parts there are, and wherever they live."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc import LMSSC, Graph, open_view
from lmssc.cli import main
from lmssc.core import one_class_components, truncated_svd, view_graph
from lmssc.core.fit import fit
from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import learn_graph
from lmssc.core.laplacian import laplacian
from lmssc.core.one_class_components import OneClassSamples, shrink_some
from lmssc.core.parts import file_store, graph_steps, parted_graph, plan
from lmssc.core.parts.components import one_class_samples
from lmssc.core.parts.disk import DiskExecutor
from lmssc.core.parts.executor import InMemoryExecutor, gather
from lmssc.core.parts.halo import connect
from lmssc.core.parts.neighbors import PartedKNN
from lmssc.core.parts.parted_fit import fit_in_parts
from lmssc.core.parts.parted_objective import PartedObjective
from lmssc.core.parts.partition import part_bounds
from lmssc.core.parts.results import graph_in_order, renumber_graph, take_in_order
from lmssc.core.permutation import Permutation
from lmssc.core.targets import Targets
from lmssc.data.memmap import MappedRows, copy_to_disk, memory_map
from lmssc.data.view import MappedView, View
from lmssc.data.views import Views
from lmssc.datasets import make_multiview
from lmssc.numerics import sparse_ops
from lmssc.numerics.spatial_order import spatial_order


@pytest.fixture(autouse=True)
def no_view_graphs(monkeypatch):
    """Fits to few samples are divided too, and do without the graphs of single views, as fits to many samples do."""
    monkeypatch.setattr(view_graph, "MAX_SAMPLES", 0)


class Places:
    """So many parts, in memory or in files."""

    def __init__(self, n_parts, make=InMemoryExecutor):
        self.n_parts, self.make = n_parts, make

    def executor(self, bounds):
        return self.make(bounds)

    def maker(self, views, config, n_classes):
        return lambda n_components: self.make(part_bounds(views.n_samples, self.n_parts))


def problem(n_samples, dtype=np.float64, labelled=0.03, **options):
    """Scaled views of samples in random order, and their targets."""
    data = make_multiview(n_samples, labelled=labelled, random_state=1, n_classes=4, **options)
    order = np.random.default_rng(0).permutation(n_samples)
    scaled = [(view - view.mean(0)) / view.std(0) / np.sqrt(view.shape[1] * len(data.views)) for view in data.views]
    return Views.from_arrays([view[order].astype(dtype) for view in scaled]), Targets.from_codes(data.y[order], 4)


def assert_same(one, other, tol):
    np.testing.assert_allclose(one.scores, other.scores, atol=tol)
    np.testing.assert_allclose(one.graph.toarray(), other.graph.toarray(), atol=100 * tol)
    np.testing.assert_allclose(one.latent, other.latent, atol=tol)
    for name, terms in one.terms.items():
        np.testing.assert_allclose(terms, other.terms[name], rtol=tol, atol=tol)
    assert (one.unreached == other.unreached).all()
    np.testing.assert_allclose(one.alpha, other.alpha, atol=tol)
    for own, its in zip(*(vars(found.calibration.overall).values() for found in (one, other)), strict=True):
        np.testing.assert_allclose(0 if own is None else own, 0 if its is None else its, atol=max(tol, 1e-300) ** 0.5)
    np.testing.assert_allclose(one.average.points, other.average.points, atol=tol)
    assert (one.trust is None) == (other.trust is None)
    if one.trust is not None:
        np.testing.assert_allclose(one.trust.distance, other.trust.distance, atol=tol)
        np.testing.assert_allclose(one.trust.calibration.doubt, other.trust.calibration.doubt, atol=tol)


SETTINGS = {
    "default": {},
    "paper's S and W": {"shared_alpha": True, "freeze_alpha": False, "nonnegative": True, "max_iter": 2},
    "directions": {"by_direction": True, "max_iter": 2, "tol": 0.0},
    "second opinion": {"second_opinion": 0.5, "max_iter": 2, "tol": 0.0},
    "no P": {"label_weight": 0.0, "calibrate": False, "max_iter": 2},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_exact_fit_in_parts_is_that_in_memory(name):
    views, targets = problem(400, labelled=0.05)
    config = FitConfig(n_neighbors=8, **SETTINGS[name])
    whole = fit(views, targets, config)
    assert_same(fit_in_parts(views, targets, config, Places(4), on_disk=False), whole, 1e-8)


def test_parts_in_files_give_the_same_as_in_memory(monkeypatch):
    monkeypatch.setattr(file_store, "MAX_SMALL", 1000)
    views, targets = problem(250, labelled=0.1)
    config = FitConfig(n_neighbors=6, max_iter=1)
    one = fit_in_parts(views, targets, config, Places(2), on_disk=False)
    other = fit_in_parts(views, targets, config, Places(2, DiskExecutor))
    assert_same(one, other, 0)
    assert isinstance(other.scores.base, np.memmap)


def test_results_left_in_a_shared_folder_are_the_same(tmp_path):
    views, targets = problem(250, labelled=0.1)
    config = FitConfig(n_neighbors=6, max_iter=1)
    one = fit_in_parts(views, targets, config, Places(4), on_disk=False)
    shared = type("SharedExecutor", (InMemoryExecutor,), {"shared": str(tmp_path)})
    other = fit_in_parts(views, targets, config, Places(4, shared))
    assert_same(one, other, 0)
    for left in (other.scores, other.latent, other.graph.data, other.graph.indices, other.graph.indptr):
        assert Path(memory_map(left).filename).parent == tmp_path


def test_components_that_hang_on_weak_edges_and_those_without_a_label():
    rng = np.random.default_rng(3)
    centres = np.array([[0.0, 0], [30, 0], [0, 30], [30.5, 30], [60, 60]])
    X = np.concatenate([centre + rng.normal(size=(90, 2)) for centre in centres])
    codes = np.full(450, -1)
    codes[[0, 1, 90, 91, 180, 181, 182]] = [0, 0, 1, 1, 2, 2, 0]
    order = rng.permutation(450)
    views, targets = Views.from_arrays([X[order]]), Targets.from_codes(codes[order], 3)
    # Calibration raises the rounding of scores that are 0 to a power, so it is left out here.
    config = FitConfig(n_neighbors=6, max_iter=3, tol=0.0, calibrate=False)
    whole = fit(views, targets, config)
    assert whole.unreached.any()
    parted = fit_in_parts(views, targets, config, Places(4), on_disk=False)
    assert_same(parted, whole, 1e-8)
    expected = OneClassSamples.of(whole.graph, targets)
    assert len(expected.samples)
    for own, its in zip(parted.one_class[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(own, its)


def parts_with_graph(graph, order, labelled, n_parts):
    """Parts of the samples in this order, with their rows of the Laplacian of a graph."""
    executor = InMemoryExecutor(part_bounds(len(order), n_parts))
    renumbered = sparse.csr_array(graph[order][:, order])
    for part in executor.parts:
        part["graph"] = renumbered[part.start : part.stop]
        part["labelled"] = labelled[order[part.start : part.stop]]
    executor.exchange(parted_graph._send_edges, parted_graph._set_laplacian, executor.bounds, len(order))
    connect(executor, "edge")
    return executor


@pytest.mark.parametrize("batch_visits", [1, 10**6])
@pytest.mark.parametrize("n_parts", [1, 4, 16])
def test_components_of_one_class_are_judged_as_on_the_whole_graph(monkeypatch, n_parts, batch_visits):
    """Samples, agreement and shrunk scores, whether centres are visited one by one or together."""
    monkeypatch.setattr(one_class_components, "MIN_PAIRS", 2)
    monkeypatch.setattr(graph_steps, "BATCH_VISITS", batch_visits)
    judged = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 240
        group = rng.integers(0, 12, n) * (rng.random(n) < 0.7)
        near = np.triu(rng.random((n, n)) < 3 / n, 1) & (group[:, None] == group)
        graph = sparse.csr_array(near * rng.random((n, n)))
        codes = np.where(rng.random(n) < 0.15, rng.integers(0, 3, n) * (group % 3 == 0), -1)
        targets = Targets.from_codes(codes, 3)
        permutation = Permutation(rng.permutation(n))
        executor = parts_with_graph(graph, permutation.order, codes >= 0, n_parts)
        found = one_class_samples(executor, targets, permutation)
        assert not any(name.startswith("step") for name in executor.parts[0].store)
        expected = OneClassSamples.of(graph, targets)
        for own, its in zip(found[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(own, its)
        scores = rng.random((n, 3))
        samples, shrunk, changed = shrink_some(scores, graph, targets, found)
        samples_of_all, shrunk_of_all, changed_of_all = shrink_some(scores, graph, targets)
        np.testing.assert_array_equal(samples, samples_of_all)
        np.testing.assert_array_equal(shrunk, shrunk_of_all)
        np.testing.assert_array_equal(changed.samples, changed_of_all.samples)
        judged |= set(found.agreement.round(3))
    assert len(judged) > 3


def test_labels_of_copies_that_disagree_are_trusted_less():
    views, targets = problem(600, labelled=0.1)
    labelled = np.flatnonzero(targets.labelled)
    classes = targets.codes[labelled]
    other = np.where(np.arange(len(labelled)) % 3 == 0, (classes + 1) % 4, classes)
    mixed = Targets.from_labels(np.tile(labelled, 3), np.concatenate([classes, classes, other]), 600, 4)
    config = FitConfig(n_neighbors=8, max_iter=2)
    whole = fit(views, mixed, config)
    assert len(whole.targets.mixed) > len(mixed.mixed)
    found = fit_in_parts(views, mixed, config, Places(2), on_disk=False)
    assert_same(found, whole, 1e-8)
    np.testing.assert_allclose(found.targets.shares, whole.targets.shares, atol=1e-8)


def test_many_samples_agree_with_the_fit_in_memory():
    views, targets = problem(12_000, np.float32, labelled=0.01)
    config = FitConfig(n_neighbors=10, max_iter=1)
    whole = fit(views, targets, config)
    for n_parts in (2, 8):
        found = fit_in_parts(views, targets, config, Places(n_parts), on_disk=False)
        assert (found.scores.argmax(axis=1) == whole.scores.argmax(axis=1)).mean() >= 0.999
        assert np.linalg.norm(found.scores - whole.scores) <= 1e-4 * np.linalg.norm(whole.scores)
        assert found.neighbor_recall == pytest.approx(whole.neighbor_recall, abs=2e-3)


def parts_with(points, n_parts):
    executor = InMemoryExecutor(part_bounds(len(points), n_parts))
    for part in executor.parts:
        part["points"] = points[part.start : part.stop]
    return executor


def test_graph_and_laplacian_of_parts_against_those_of_all_samples():
    points = np.random.default_rng(0).normal(size=(300, 3))
    points = points[spatial_order(points)]
    executor = parts_with(points, 4)
    search = PartedKNN(executor, 1.0)
    parted_graph.learn_graph(search, 5, 0.1, new_alpha=True, shared_alpha=False)
    graph, alpha = learn_graph(points, 5, 0.1)
    own = graph_in_order(executor, np.arange(300), on_disk=False)
    np.testing.assert_allclose(own.toarray(), graph.toarray(), atol=1e-12)
    np.testing.assert_allclose(gather(executor, "alpha", np.arange(300)), alpha, atol=1e-12)
    rows = parted_graph.subgraph(executor, "laplacian", np.arange(300))[0]
    np.testing.assert_allclose(rows.toarray(), laplacian(graph).toarray(), atol=1e-12)
    # With α kept, points that move closer have more neighbours than the lists hold: longer ones are fetched.
    near = 0.3 * points
    for part in executor.parts:
        part["points"] = near[part.start : part.stop]
    parted_graph.learn_graph(search, 5, 0.1, new_alpha=False, shared_alpha=False)
    again = learn_graph(near, 5, 0.1, alpha)[0]
    assert np.diff(again.indptr).max() > 12
    np.testing.assert_allclose(
        graph_in_order(executor, np.arange(300), on_disk=False).toarray(), again.toarray(), atol=1e-12
    )


def test_results_on_disk():
    rows, index = np.arange(12.0).reshape(6, 2), np.array([3, 0, 5])
    mapped = copy_to_disk([rows], 2, rows.dtype)
    taken = take_in_order(mapped, index)
    np.testing.assert_array_equal(taken, rows[index])
    assert isinstance(taken.base, np.memmap)
    graph = sparse.csr_array(sparse.random(6, 6, density=0.4, random_state=0))
    on_disk = graph.copy()
    on_disk.data = copy_to_disk([graph.data[:, None]], 1, graph.dtype)[:, 0]
    nodes, samples = np.array([5, 4, 3, 2, 1, 0]), np.array([1, 0, 2, 3, 5, 4])
    np.testing.assert_array_equal(
        renumber_graph(on_disk, nodes, samples).toarray(), renumber_graph(graph, nodes, samples).toarray()
    )


def test_components_in_batches(monkeypatch):
    graph = sparse.csr_array(sparse.random(200, 200, density=0.004, random_state=0))
    n_components, component = sparse_ops.components_of(graph)
    monkeypatch.setattr(sparse_ops, "MAX_EDGES", 7)
    n_again, again = sparse_ops.components_of(graph)
    assert n_again == n_components > 20
    assert len(np.unique(component.astype(int) * 1000 + again)) == n_components


@pytest.mark.parametrize("density", [0.0, 0.004, 0.01, 0.02])
def test_components_of_many_edges_are_those_of_scipy(monkeypatch, density):
    """Some vertices reach most others, some are reached by nobody, and some are in small components."""
    graph = sparse.csr_array(sparse.random(200, 200, density=density, random_state=1))
    monkeypatch.setattr(sparse_ops, "MIN_SEARCHED_EDGES", -1)
    for first in range(0, 200, 40):
        rolled = graph[np.roll(np.arange(200), first)][:, np.roll(np.arange(200), first)]
        n_components, component = sparse_ops.components_of(sparse.csr_array(rolled))
        n_expected, expected = connected_components(rolled, directed=False)
        assert n_components == n_expected
        np.testing.assert_array_equal(component, expected)


@pytest.fixture
def small_model(monkeypatch):
    """Count no fixed memory, so that some hundred samples are many parts."""
    monkeypatch.setattr(plan, "MODEL", replace(plan.MODEL, base=0, min_part=50))


@pytest.fixture(scope="module")
def data():
    return make_multiview(300, labelled=0.1, random_state=2, n_classes=3)


LIMIT = "300kB"


def test_estimator_with_a_memory_limit(small_model, data):
    whole = LMSSC().fit(data.views, data.y)
    made = []

    def count(progress):
        made.append(progress.iteration)

    clf = LMSSC(memory_limit=LIMIT, callback=count).fit(data.views, data.y)
    assert made
    np.testing.assert_allclose(clf.label_distributions_, whole.label_distributions_, atol=1e-8)
    assert (clf.transduction_ == whole.transduction_).all()
    assert isinstance(clf.latent_.base, np.memmap)
    assert not isinstance(whole.latent_.base, np.memmap)
    np.testing.assert_allclose(clf.graph_.toarray(), whole.graph_.toarray(), atol=1e-7)
    new = [view[:40] + 1e-3 for view in data.views]
    np.testing.assert_allclose(clf.predict_proba(new), whole.predict_proba(new), atol=1e-6)
    order = np.random.default_rng(0).permutation(300)
    permuted = LMSSC(memory_limit=LIMIT).fit([view[order] for view in data.views[::-1]], data.y[order])
    np.testing.assert_array_equal(permuted.label_distributions_, clf.label_distributions_[order])


def test_save_and_load_a_model_that_was_fitted_in_parts(small_model, data, tmp_path):
    import lmssc

    clf = LMSSC(memory_limit=LIMIT, max_iter=1).fit(data.views, data.y)
    clf.save(tmp_path / "model.lmssc")
    again = lmssc.load(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_)
    new = [view[:9] + 1e-3 for view in data.views]
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))


def test_interrupted_fit_in_parts_resumes(small_model, data, tmp_path, monkeypatch):
    options = {"memory_limit": LIMIT, "max_iter": 4, "tol": 0.0}
    whole = LMSSC(**options).fit(data.views, data.y)
    path = tmp_path / "fit.ckpt"
    learn_graph_in_parts, n_calls = parted_graph.learn_graph, []

    def interrupt(*args, **kwargs):
        n_calls.append(1)
        if len(n_calls) == 7:  # in the midst of an iteration
            raise KeyboardInterrupt
        return learn_graph_in_parts(*args, **kwargs)

    monkeypatch.setattr("lmssc.core.parts.parted_objective.learn_graph", interrupt)
    with pytest.warns(UserWarning, match="interrupted after"):
        stopped = LMSSC(**options, checkpoint=path).fit(data.views, data.y)
    assert 0 < stopped.n_iter_ < 4
    same = LMSSC(**{**options, "max_iter": stopped.n_iter_}).fit(data.views, data.y)
    np.testing.assert_allclose(stopped.label_distributions_, same.label_distributions_, atol=1e-12)
    assert path.exists()
    assert path.with_name("fit.ckpt.parts").is_dir()
    monkeypatch.setattr("lmssc.core.parts.parted_objective.learn_graph", learn_graph_in_parts)
    resumed = LMSSC(**options, checkpoint=path).fit(data.views, data.y)
    np.testing.assert_array_equal(resumed.label_distributions_, whole.label_distributions_)
    assert resumed.n_iter_ == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["zeros", "short", "gone"])
def test_a_damaged_file_of_a_checkpoint_is_an_error(tmp_path, damage):
    store = file_store.FileStore(tmp_path / "store")
    store["a"], store["b"] = np.arange(20_000.0), sparse.csr_array(np.eye(3))
    store.save(tmp_path / "saved")
    other = file_store.FileStore(tmp_path / "other")
    other.restore(tmp_path / "saved")
    np.testing.assert_array_equal(other["a"], store["a"])
    file = tmp_path / "saved" / "0-0.bin"
    content = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(bytes(8) + bytes(8) + content[16:] if damage == "zeros" else content[:80])
    with pytest.raises(ValueError, match=r"the checkpoint is damaged: '.*0-0.bin' is not as it was written"):
        file_store.FileStore(tmp_path / "third").restore(tmp_path / "saved")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_limit": "8 apples"}, "memory_limit must be an amount of memory such as '8GB'"),
        ({"memory_limit": -1}, "memory_limit must be an amount of memory"),
        ({"memory_limit": 20_000}, "memory_limit is too small: 0 MB, but 300 samples need at least"),
        ({"memory_limit": LIMIT, "init": "random"}, "does not support init='random'"),
        ({"memory_limit": LIMIT, "label_noise": 0.1}, "does not support label_noise"),
    ],
)
def test_what_a_fit_in_parts_refuses(small_model, data, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        LMSSC(**options).fit(data.views, data.y)


def test_data_that_a_fit_in_parts_refuses(small_model, data):
    clf = LMSSC(memory_limit=LIMIT)
    with pytest.raises(ValueError, match="does not support samples that lack views"):
        clf.fit(data.views, data.y, present=[np.arange(300) > 3, *[None] * (len(data.views) - 1)])
    with pytest.raises(ValueError, match="does not support sample_weight"):
        clf.fit(data.views, data.y, sample_weight=np.full(300, 0.9))
    links = Graph(sparse.csr_array(sparse.diags_array(np.ones(299), offsets=1, shape=(300, 300))))
    with pytest.raises(ValueError, match="does not support graphs"):
        clf.fit([*data.views, links], data.y)


def test_few_samples_are_never_divided(small_model, data, monkeypatch):
    monkeypatch.setattr(view_graph, "MAX_SAMPLES", 5000)
    assert not isinstance(LMSSC(memory_limit=LIMIT, max_iter=1).fit(data.views, data.y).latent_.base, np.memmap)


def test_a_limit_that_is_large_enough_changes_nothing(data):
    clf = LMSSC(memory_limit="2GB", max_iter=1).fit(data.views, data.y)
    whole = LMSSC(max_iter=1).fit(data.views, data.y)
    np.testing.assert_array_equal(clf.label_distributions_, whole.label_distributions_)
    assert not isinstance(clf.latent_.base, np.memmap)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_views_on_disk(small_model, monkeypatch, tmp_path, is_sparse):
    monkeypatch.setattr("lmssc.data.view.MIN_MAPPED_BYTES", 0)
    monkeypatch.setattr("lmssc.data.memmap.BATCH_BYTES", 5000)
    data = make_multiview(300, 2, 60, 3, sparse=is_sparse, labelled=0.1, random_state=0)
    paths = []
    for number, view in enumerate(data.views):
        paths.append(tmp_path / f"{number}.{'npz' if is_sparse else 'npy'}")
        if is_sparse:
            sparse.save_npz(paths[-1], sparse.csr_array(view), compressed=False)
        else:
            np.save(paths[-1], view)
    whole = LMSSC(max_iter=1).fit(data.views, data.y)
    clf = LMSSC(max_iter=1, memory_limit="400kB").fit([open_view(path) for path in paths], data.y)
    assert isinstance(clf.latent_.base, np.memmap)
    assert clf.scalings_ == whole.scalings_
    np.testing.assert_allclose(clf.label_distributions_, whole.label_distributions_, atol=1e-7)


def test_directions_of_large_views_on_disk_without_their_product(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 12)) @ rng.normal(size=(12, 80)) + rng.normal(size=(900, 80))
    mapped = MappedRows(copy_to_disk([X], 80, X.dtype), np.arange(900))
    views = Views([MappedView(mapped, scale=lambda raw: View(np.asarray(raw.data)))])
    limits = replace(truncated_svd.SVD, max_gram_size=10, max_image_bytes=9000)
    monkeypatch.setattr(truncated_svd, "SVD", limits)
    found = truncated_svd.leading_directions(views, 12, measure_noise=False)
    _, values, directions = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(found.values, values[:12], rtol=1e-6)
    np.testing.assert_allclose(np.abs(np.sum(found.directions.T * directions[:12], axis=1)), 1, atol=1e-6)


def test_an_iteration_whose_objective_is_not_computed_does_not_count(small_model, data, monkeypatch):
    objective, n_calls = PartedObjective.objective, []

    def interrupt(self, state):
        n_calls.append(1)
        if len(n_calls) == 2:
            raise KeyboardInterrupt
        return objective(self, state)

    monkeypatch.setattr(PartedObjective, "objective", interrupt)
    with pytest.warns(UserWarning, match="interrupted after 1 iterations"):
        stopped = LMSSC(memory_limit=LIMIT, tol=0.0).fit(data.views, data.y)
    one = LMSSC(max_iter=1, tol=0.0).fit(data.views, data.y)
    np.testing.assert_allclose(stopped.label_distributions_, one.label_distributions_, atol=1e-8)
    np.testing.assert_allclose(stopped.latent_, one.latent_, atol=1e-8)


def test_folders_of_killed_fits_are_removed_by_the_next(tmp_path):
    code = "import numpy, os; from lmssc.core.parts.disk import DiskExecutor; "
    code += f"kept = DiskExecutor(numpy.array([0, 2]), {str(tmp_path)!r}); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    alive = DiskExecutor(np.array([0, 2]), str(tmp_path))
    assert [alive.folder] == list(tmp_path.iterdir())
    other = DiskExecutor(np.array([0, 2]), str(tmp_path))
    assert alive.folder.is_dir()
    for executor in (alive, other):
        executor.close()
    assert not left.exists()
    assert not list(tmp_path.iterdir())


def test_classify_with_a_memory_limit_says_what_it_leaves_out(small_model, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", data.views[0])
    np.save("b.npy", data.views[1])
    labels = "".join(f"k{label}\n" if label >= 0 else "\n" for label in data.y.tolist())
    (tmp_path / "labels.csv").write_text("label\n" + labels)
    command = ["classify", "a.npy", "b.npy", "--labels", "labels.csv", "--out", "out", "--memory-limit", LIMIT]
    assert main(command) == 0
    printed = capsys.readouterr().out
    for left_out in ("report.html is left out", "check_labels.csv and the columns", "most uncertain samples"):
        assert left_out in printed
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"predictions.csv", "to_label.csv", "model.lmssc"}
    header = (tmp_path / "out" / "predictions.csv").read_text().splitlines()[0]
    assert header == "id,label,confidence,runner_up,p_k0,p_k1,p_k2,given,unreached"
    assert main([*command, "--force", "--cv"]) == 2
    assert "cannot be combined with --cv" in capsys.readouterr().err
