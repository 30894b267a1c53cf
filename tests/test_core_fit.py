"""core.fit as a function: pure, resumable, sharing work, indifferent to the order in which it holds the samples."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import lmssc.core.initialization
from lmssc import LMSSC
from lmssc.core.fit import fit
from lmssc.core.fit_config import FitConfig, FitContext, FitHooks
from lmssc.core.objective import Objective
from lmssc.core.permutation import Permutation
from lmssc.core.targets import Targets
from lmssc.data.views import Views
from lmssc.datasets import make_multiview

CONFIG = FitConfig(n_neighbors=8, max_iter=4, tol=0.0)


@pytest.fixture(scope="module")
def problem():
    data = make_multiview(160, 3, 12, n_classes=3, labelled=0.2, random_state=0)
    views = [(view - view.mean(axis=0)) / view.std(axis=0) for view in data.views]
    return Views.from_arrays(views), Targets.from_codes(data.y, 3)


class MemoryCheckpoint:
    """A checkpoint that holds everything that was ever written."""

    def __init__(self, content=None):
        self.content, self.written, self.removed = content, [], False

    def read(self):
        return self.content

    def due(self):
        return True

    def write(self, content):
        self.written.append(content)

    def remove(self):
        self.removed = True


def test_the_same_input_gives_the_same_result_and_is_not_changed(problem):
    views, targets = problem
    before = [view.data.copy() for view in views]
    one, two = fit(views, targets, CONFIG), fit(views, targets, CONFIG)
    for name in ("scores", "latent", "alpha", "unreached"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for view, data in zip(views, before, strict=True):
        np.testing.assert_array_equal(view.data, data)
    with pytest.raises(AttributeError, match="cannot assign"):
        one.scores = two.scores


def test_a_fit_resumes_from_each_of_its_checkpoints(problem):
    views, targets = problem
    whole = fit(views, targets, CONFIG)
    checkpoint = MemoryCheckpoint()
    fit(views, targets, CONFIG, FitHooks(checkpoint=checkpoint))
    assert checkpoint.removed
    assert [len(content["history"]) for content in checkpoint.written] == [0, 1, 2, 3]
    for content in checkpoint.written:
        heard = []
        resumed = fit(views, targets, CONFIG, FitHooks(heard.append, MemoryCheckpoint(content)))
        assert [progress.iteration for progress in heard] == list(range(len(content["history"]) + 1, 5))
        np.testing.assert_allclose(resumed.scores, whole.scores, atol=1e-9)
        for part in ("temperature", "doubt"):
            assert getattr(resumed.calibration.overall, part) == pytest.approx(getattr(whole.calibration.overall, part))


def test_fits_in_one_context_share_the_svd(problem, monkeypatch):
    views, targets = problem
    other = targets.without_labels(np.flatnonzero(targets.labelled)[::2])
    alone = [fit(views, each, CONFIG).scores for each in (targets, other)]
    calls, real = [], lmssc.core.initialization.latent_start
    monkeypatch.setattr("lmssc.core.initialization.latent_start", lambda *a, **k: calls.append(1) or real(*a, **k))
    context = FitContext(interruptible=False, cache={})
    for each, scores in zip((targets, other), alone, strict=True):
        np.testing.assert_array_equal(fit(views, each, CONFIG, context=context).scores, scores)
    assert len(calls) == 1
    fit(views, targets, replace(CONFIG, n_components=4), context=context)
    fit(views, targets, CONFIG, context=context.for_data("scaled otherwise"))
    assert len(calls) == 3


def test_one_of_many_fits_is_not_interrupted_alone(problem):
    def interrupt(progress):
        raise KeyboardInterrupt

    views, targets = problem
    with pytest.warns(UserWarning, match="interrupted after 1 iterations"):
        assert not fit(views, targets, CONFIG, FitHooks(interrupt)).converged
    with pytest.raises(KeyboardInterrupt):
        fit(views, targets, CONFIG, FitHooks(interrupt), FitContext(interruptible=False))


def test_a_permutation_is_undone():
    rng = np.random.default_rng(0)
    permutation = Permutation(rng.permutation(9))
    rows, graph = rng.normal(size=(9, 2)), sparse.random_array((9, 9), density=0.3, random_state=rng).tocsr()
    np.testing.assert_array_equal(permutation.undo(permutation.apply(rows)), rows)
    renumbered = graph[permutation.order][:, permutation.order].tocsr()
    np.testing.assert_array_equal(permutation.undo_graph(renumbered).toarray(), graph.toarray())
    np.testing.assert_array_equal(permutation.apply(rows)[permutation.first(4, of=9)], rows[:4])
    assert Permutation().undo(rows) is rows
    np.testing.assert_array_equal(Permutation().first(4, of=3), np.arange(3))


def test_groups_of_unlinked_views_are_calibrated_on_a_subset(monkeypatch):
    """More samples than the calibration takes, in two groups that have no view in common."""
    for module in ("held_out", "confidence"):
        monkeypatch.setattr(f"lmssc.core.{module}.MAX_CALIBRATION_SAMPLES", 60)
    data = make_multiview(200, 2, 10, n_classes=2, labelled=0.3, random_state=1)
    views = [np.where((np.arange(200) % 2 == v)[:, None], view, np.nan) for v, view in enumerate(data.views)]
    clf = LMSSC(max_iter=2).fit(views, data.y)
    assert set(np.unique(clf._groups)) == {0, 1}
    rows, columns = clf.graph_.nonzero()
    assert (rows % 2 == columns % 2).all()


def test_no_graph_but_the_last_two_is_in_memory(problem, monkeypatch):
    """While an iteration makes a graph, that of the iteration before is needed; that of the start is not."""
    graphs, alive, step = [], [], Objective.step

    def watched(self, state):
        gc.collect()
        graphs.append(weakref.ref(state.graph))
        alive.append(sum(graph() is not None for graph in graphs))
        return step(self, state)

    monkeypatch.setattr(Objective, "step", watched)
    fit(*problem, CONFIG)
    assert alive == [1, 1, 1, 1]
