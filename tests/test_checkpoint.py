"""A fit that is killed, interrupted or stopped resumes where it was."""

import subprocess
import sys

import numpy as np
import pytest

import lmssc.persistence.checkpoint
from lmssc import LMSSC
from lmssc.data.canonical_order import CanonicalOrder
from lmssc.datasets import make_multiview
from lmssc.estimators.serializable import CHECKPOINT_TYPES
from lmssc.persistence.checkpoint import Checkpoint

# Forks fits and kills each after some iterations, whose numbers it prints; then a fit that goes on to the end.
SCRIPT = """
import os, signal, sys
import numpy as np
import lmssc.persistence.checkpoint
from lmssc import LMSSC
from lmssc.datasets import make_multiview

lmssc.persistence.checkpoint.INTERVAL = 0
data = make_multiview(300, 2, 20, n_classes=3, labelled=0.05, random_state=0)
clf = LMSSC(checkpoint=sys.argv[1], tol=0.0, max_iter=25)
for count in map(int, sys.argv[3:]):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        clf.set_params(callback=lambda progress: os.write(writing, bytes([progress.iteration]))).fit(data.views, data.y)
        os._exit(0)
    for _ in range(count):
        print(os.read(reading, 1)[0])
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
clf.fit(data.views, data.y)
np.savez(sys.argv[2], labels=clf.transduction_, objective=clf.objective_, latent=clf.latent_)
"""
DATA = make_multiview(300, 2, 20, n_classes=3, labelled=0.05, random_state=0)


@pytest.fixture
def eager(monkeypatch):
    monkeypatch.setattr(lmssc.persistence.checkpoint, "INTERVAL", 0)


def stop_after(iterations):
    """A callback that ends a fit as a crash would."""

    def callback(progress):
        if progress.iteration == iterations:
            raise RuntimeError("stopped")

    return callback


def test_killed_three_times_it_ends_where_an_undisturbed_fit_does(tmp_path):
    whole = LMSSC(tol=0.0, max_iter=25).fit(DATA.views, DATA.y)
    file, answer = tmp_path / "fit.ckpt", tmp_path / "answer.npz"
    counts = np.random.default_rng(0).integers(1, 4, size=3)
    command = [sys.executable, "-c", SCRIPT, str(file), str(answer), *map(str, counts)]
    seen = list(map(int, subprocess.check_output(command, text=True).split()))
    assert max(seen) < 25
    assert seen[-1] > 4, "no fit went on from where the one before was"
    found = np.load(answer)
    np.testing.assert_array_equal(found["labels"], whole.transduction_)
    np.testing.assert_allclose(found["objective"], whole.objective_, rtol=1e-9)
    np.testing.assert_allclose(found["latent"], whole.latent_, atol=1e-9)
    assert not file.exists()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "change", [{"beta": 0.02}, {"y": np.where(DATA.y == 0, 1, DATA.y)}, {"views": [DATA.views[0] + 1, DATA.views[1]]}]
)
def test_other_data_or_parameters_are_refused(tmp_path, change):
    path = tmp_path / "fit.ckpt"
    with pytest.raises(RuntimeError, match="stopped"):
        LMSSC(checkpoint=path, tol=0.0, callback=stop_after(2)).fit(DATA.views, DATA.y)
    assert path.exists()
    parameters = {name: value for name, value in change.items() if name == "beta"}
    with pytest.raises(ValueError, match=r"checkpoint='.*fit.ckpt' belongs to a fit to other data"):
        LMSSC(checkpoint=path, tol=0.0, **parameters).fit(change.get("views", DATA.views), change.get("y", DATA.y))


def test_a_file_of_something_else_is_refused_and_left(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a checkpoint")
    with pytest.raises(ValueError, match="not a checkpoint of this version"):
        LMSSC(checkpoint=path).fit(DATA.views, DATA.y)
    assert path.read_text() == "not a checkpoint"


def test_a_checkpoint_in_no_folder_is_refused_before_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("lmssc.estimators.lmssc.fit", None)
    with pytest.raises(ValueError, match=r"there is no folder '.*nowhere'"):
        LMSSC(checkpoint=tmp_path / "nowhere" / "fit.ckpt").fit(np.eye(6), [0, 1, -1, -1, -1, -1])


def test_a_damaged_checkpoint_is_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit.ckpt", "abc")
    checkpoint.write({"scores": np.arange(9.0)})
    content = bytearray(checkpoint.path.read_bytes())
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1
        checkpoint.path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            checkpoint.read()
    checkpoint.path.write_bytes(content)
    np.testing.assert_array_equal(checkpoint.read()["scores"], np.arange(9.0))


def test_a_checkpoint_names_only_the_types_it_was_given(tmp_path):
    order = CanonicalOrder(np.arange(2), [0], np.arange(2, dtype=np.uint64))
    path = tmp_path / "fit.ckpt"
    with pytest.raises(TypeError, match="CanonicalOrder"):
        Checkpoint(path, "abc").write({"order": order})
    Checkpoint(path, "abc", CHECKPOINT_TYPES).write({"order": order})
    assert type(Checkpoint(path, "abc", CHECKPOINT_TYPES).read()["order"]) is CanonicalOrder
    with pytest.raises(ValueError, match="not a checkpoint"):
        Checkpoint(path, "abc").read()


def test_models_and_checkpoints_are_not_confused(tmp_path):
    path = tmp_path / "fit.ckpt"
    Checkpoint(path, "abc").write({})
    with pytest.raises(ValueError, match="is not a model file"):
        lmssc.load(path)
    lmssc.GFHF().fit(DATA.views, DATA.y).save(path)
    with pytest.raises(ValueError, match="not a checkpoint"):
        Checkpoint(path, "abc").read()


@pytest.mark.usefixtures("eager")
def test_large_problems_go_on_in_their_own_order(tmp_path, monkeypatch):
    """With samples renumbered by place, as above 10,000."""
    monkeypatch.setattr("lmssc.numerics.scale.MIN_SAMPLES_FOR_LARGE_SCALE", 100)
    whole = LMSSC(tol=0.0, max_iter=5).fit(DATA.views, DATA.y)
    path = tmp_path / "fit.ckpt"
    with pytest.raises(RuntimeError, match="stopped"):
        LMSSC(checkpoint=path, tol=0.0, max_iter=5, callback=stop_after(3)).fit(DATA.views, DATA.y)
    iterations = []
    clf = LMSSC(checkpoint=path, tol=0.0, max_iter=5, callback=lambda p: iterations.append(p.iteration))
    clf.fit(DATA.views, DATA.y)
    assert iterations == [3, 4, 5]
    np.testing.assert_allclose(clf.label_distributions_, whole.label_distributions_, atol=1e-9)


class TestInterrupt:
    @pytest.mark.parametrize("iterations", [1, 3])
    def test_gives_the_state_so_far_with_a_warning(self, iterations):
        def interrupt(progress):
            if progress.iteration == iterations:
                raise KeyboardInterrupt

        with pytest.warns(UserWarning, match=f"interrupted after {iterations} iterations"):
            clf = LMSSC(tol=0.0, callback=interrupt).fit(DATA.views, DATA.y)
        same = LMSSC(tol=0.0, max_iter=iterations).fit(DATA.views, DATA.y)
        assert clf.n_iter_ == iterations
        assert not clf.converged_
        np.testing.assert_array_equal(clf.label_distributions_, same.label_distributions_)

    def test_leaves_the_checkpoint_to_go_on_from(self, tmp_path):
        whole = LMSSC(tol=0.0, max_iter=6).fit(DATA.views, DATA.y)
        path = tmp_path / "fit.ckpt"

        def interrupt(progress):
            if progress.iteration == 2:
                raise KeyboardInterrupt

        with pytest.warns(UserWarning, match="interrupted after 2 iterations"):
            LMSSC(checkpoint=path, tol=0.0, max_iter=6, callback=interrupt).fit(DATA.views, DATA.y)
        iterations = []
        clf = LMSSC(checkpoint=path, tol=0.0, max_iter=6, callback=lambda p: iterations.append(p.iteration))
        clf.fit(DATA.views, DATA.y)
        assert iterations == [3, 4, 5, 6]
        assert not path.exists()
        np.testing.assert_allclose(clf.objective_, whole.objective_)
        np.testing.assert_allclose(clf.label_distributions_, whole.label_distributions_, atol=1e-9)

    def test_before_the_first_iteration_is_done(self, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("lmssc.core.objective.update_latent", interrupt)
        with pytest.warns(UserWarning, match="interrupted after 0 iterations"):
            clf = LMSSC().fit(DATA.views, DATA.y)
        assert clf.n_iter_ == len(clf.objective_) == 0
        assert (clf.predict(DATA.views) == clf.transduction_).all()

    def test_ends_a_search_of_parameters(self, monkeypatch):
        from lmssc import LMSSCCV

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("lmssc.core.objective.update_latent", interrupt)
        with pytest.raises(KeyboardInterrupt):
            LMSSCCV(estimator=LMSSC(), param_grid={"n_neighbors": [5, 6]}, n_jobs=1).fit(DATA.views, DATA.y)
