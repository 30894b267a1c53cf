"""Figures: what they show is checked against the data, and that nothing overlaps."""

import io
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lmssc.plotting import COLOURS, MARKERS, ConvergenceDisplay, LatentMapDisplay, principal_plane

pytest.importorskip("matplotlib").use("Agg")
Figure = pytest.importorskip("matplotlib.figure").Figure


@pytest.fixture
def ax():
    return Figure(figsize=(9, 6), layout="constrained").subplots()


@pytest.fixture
def fitted(rng):
    """What a fitted model offers to the figures: 60 samples of 3 classes around 3 centres."""
    truth = np.repeat(["ant", "bee", "cow"], 20)
    latent = np.repeat(5 * np.eye(3, 4), 20, axis=0) + rng.normal(size=(60, 4))
    predicted = truth.copy()
    predicted[[1, 25]] = "cow"
    terms = {"fit": np.array([8.0, 6.0, 5.0]), "labels": np.array([1.0, 0.5, 0.25])}
    return SimpleNamespace(
        latent_=latent,
        transduction_=predicted,
        classes_=np.unique(truth),
        objective_terms_=terms,
        objective_=sum(terms.values()),
        truth=truth,
    )


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def collection(ax, start_of_label):
    (found,) = [c for c in ax.collections if c.get_label().startswith(start_of_label)]
    return found


def assert_legend_is_beside_the_axes(ax):
    ax.figure.savefig(io.BytesIO(), format="png")
    legend, figure = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert legend.x0 >= ax.bbox.x1
    assert legend.x1 <= figure.x1
    assert legend.y0 >= figure.y0


def test_principal_plane_is_pca(rng):
    points = rng.normal(size=(50, 6)) * [9, 1, 5, 1, 1, 1] + 3
    coordinates, explained = principal_plane(points)
    pca = PCA(2).fit(points)
    np.testing.assert_allclose(np.abs(coordinates), np.abs(pca.transform(points)), atol=1e-10)
    np.testing.assert_allclose(explained, pca.explained_variance_ratio_)


def test_principal_plane_has_fixed_signs(rng):
    points = rng.normal(size=(50, 4)) * [9, 1, 5, 1]
    coordinates, _ = principal_plane(points)
    # the first direction is all but the first axis, and the second one the third: both must point upwards
    assert np.corrcoef(coordinates[:, 0], points[:, 0])[0, 1] > 0.9
    assert np.corrcoef(coordinates[:, 1], points[:, 2])[0, 1] > 0.9
    shuffled = rng.permutation(50)
    np.testing.assert_allclose(principal_plane(points[shuffled])[0], coordinates[shuffled], atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 1), (1, 3), (4, 3)])
def test_principal_plane_of_points_that_span_no_plane(shape):
    coordinates, explained = principal_plane(np.ones(shape))
    np.testing.assert_array_equal(coordinates, np.zeros((shape[0], 2)))
    assert explained == (0.0, 0.0)


def test_convergence_shows_the_objective_and_its_terms(fitted, ax):
    display = ConvergenceDisplay.from_estimator(fitted, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    np.testing.assert_array_equal(display.lines_["objective"].get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(display.lines_["objective"].get_ydata(), [0, -2.5, -3.75])
    np.testing.assert_array_equal(display.lines_["fit"].get_ydata(), [0, -2, -3])
    np.testing.assert_array_equal(display.lines_["labels"].get_ydata(), [0, -0.5, -0.75])
    assert legend_texts(ax) == [
        "objective J: 9 → 5.25",
        "fit of the views: 8 → 5",
        "label smoothness: 1 → 0.25",
    ]
    assert_legend_is_beside_the_axes(ax)


def test_convergence_has_whole_iterations_only(fitted, ax):
    ConvergenceDisplay.from_estimator(fitted, ax=ax)
    ax.figure.savefig(io.BytesIO(), format="png")
    np.testing.assert_array_equal(ax.get_xticks() % 1, 0)


@pytest.mark.parametrize("terms", [{"fit": [3.0], "labels": [0.0]}, {"fit": [0.0], "labels": [0.0]}])
def test_convergence_of_one_iteration(terms, ax):
    ConvergenceDisplay(np.sum(list(terms.values()), axis=0), terms).plot(ax=ax)
    ax.figure.savefig(io.BytesIO(), format="png")
    assert len(ax.lines) == 3


def test_latent_map_draws_each_class_where_it_is(fitted, ax):
    display = LatentMapDisplay.from_estimator(fitted, ax=ax)
    coordinates, _ = principal_plane(fitted.latent_)
    for label in fitted.classes_:
        expected = coordinates[fitted.transduction_ == label]
        np.testing.assert_array_equal(collection(display.ax_, label).get_offsets(), expected)
    assert legend_texts(ax) == ["ant", "bee", "cow"]
    assert_legend_is_beside_the_axes(ax)


def test_latent_map_marks_given_labels_and_mistakes(fitted, ax):
    y = fitted.truth.astype(object)
    y[3:] = None
    LatentMapDisplay.from_estimator(fitted, y=y, y_true=fitted.truth, ax=ax)
    coordinates, _ = principal_plane(fitted.latent_)
    rings, crosses = collection(ax, "label given"), collection(ax, "wrong label")
    np.testing.assert_array_equal(rings.get_offsets(), coordinates[:3])
    np.testing.assert_array_equal(crosses.get_offsets(), coordinates[[1, 25]])
    assert rings.get_facecolor().size == 0
    assert legend_texts(ax)[-2:] == ["label given (3)", "wrong label (2)"]


def test_latent_map_knows_integer_labels(fitted, ax):
    fitted.transduction_ = np.repeat([0, 1, 2], 20)
    fitted.classes_ = np.arange(3)
    LatentMapDisplay.from_estimator(fitted, y=np.repeat([0, -1, 2], 20), ax=ax)
    assert legend_texts(ax) == ["0", "1", "2", "label given (40)"]


def test_forty_classes_look_different_and_fit_the_figure(rng, ax):
    classes = np.arange(40)
    LatentMapDisplay(rng.normal(size=(40, 2)), classes, classes).plot(ax=ax)
    looks = {(tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in ax.collections}
    assert len(looks) == 40
    assert_legend_is_beside_the_axes(ax)


def test_colours_and_markers_repeat_together_late():
    pairs = {(i % len(COLOURS), i % len(MARKERS)) for i in range(70)}
    assert len(pairs) == 70
    assert len(set(COLOURS)) == len(COLOURS)


@pytest.mark.parametrize("display", [ConvergenceDisplay, LatentMapDisplay])
def test_without_axes_a_new_figure_is_made(fitted, display):
    from matplotlib import pyplot

    drawn = [display.from_estimator(fitted) for _ in range(2)]
    assert drawn[0].figure_ is not drawn[1].figure_
    for each in drawn:
        pyplot.close(each.figure_)


def test_without_matplotlib_it_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"figures need matplotlib: pip install 'lmssc\[plot\]'"):
        ConvergenceDisplay.from_estimator(fitted)


def test_importing_the_module_does_not_import_matplotlib():
    code = "import sys, lmssc.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
