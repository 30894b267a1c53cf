"""Figures: what they show is checked against the data, and that nothing overlaps."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import calibration_curve
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph

from lmssc import AMGL, GFHF, LMSSC, LMSSCCV
from lmssc.datasets import make_multiview
from lmssc.plotting import (
    COLOURS,
    LINES,
    MARKERS,
    CalibrationDisplay,
    ConvergenceDisplay,
    GraphDisplay,
    LatentMapDisplay,
    SensitivityDisplay,
    ViewContributionDisplay,
    principal_plane,
)
from lmssc.plotting.graph_matrix import bin_weights, homophily
from lmssc.plotting.latent_map import map_positions

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
        graph_=sparse.csr_array(kneighbors_graph(latent, 5)),
        label_distributions_=(predicted[:, None] == np.unique(truth)).astype(float),
        transduction_=predicted,
        classes_=np.unique(truth),
        objective_terms_=terms,
        objective_=sum(terms.values()),
        truth=truth,
    )


@pytest.fixture(scope="module")
def with_noise():
    return make_multiview(150, noise_views=1, labelled=0.3, random_state=1)


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
    coordinates = map_positions(fitted)
    for label in fitted.classes_:
        expected = coordinates[fitted.transduction_ == label]
        np.testing.assert_array_equal(collection(display.ax_, label).get_offsets(), expected)
    assert legend_texts(ax) == ["ant", "bee", "cow"]
    assert_legend_is_beside_the_axes(ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("", "")


def test_latent_map_has_each_class_name_on_its_cluster(fitted, ax):
    fitted.transduction_[:] = fitted.truth
    coordinates = map_positions(fitted)
    LatentMapDisplay(coordinates, fitted.truth, np.array(["ant", "bee", "cow", "$nobody$"])).plot(ax=ax)
    names = {text.get_text(): text.get_position() for text in ax.texts}
    assert set(names) == {"ant", "bee", "cow"}
    for name, spot in names.items():
        distances = np.linalg.norm(coordinates - spot, axis=1)
        assert set(fitted.truth[np.argsort(distances)[:10]]) == {name}


def test_latent_map_of_a_projection_names_its_axes(fitted, ax):
    coordinates, explained = principal_plane(fitted.latent_)
    LatentMapDisplay(coordinates, fitted.truth, fitted.classes_, explained=explained).plot(ax=ax)
    assert ax.get_xlabel() == f"principal component 1 ({100 * explained[0]:.0f} % of the variance)"


def test_latent_map_marks_given_labels_and_mistakes(fitted, ax):
    y = fitted.truth.astype(object)
    y[3:] = None
    LatentMapDisplay.from_estimator(fitted, y=y, y_true=fitted.truth, ax=ax)
    coordinates = map_positions(fitted)
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


# --- graph -----------------------------------------------------------------------------------------------------------


def random_graph(rng, n):
    dense = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.2)
    np.fill_diagonal(dense, 0)
    return dense


def test_homophily_is_the_share_of_weight_within_classes(rng):
    dense, labels = random_graph(rng, 30), np.repeat(["a", "b", "c"], [5, 10, 15])
    same = labels[:, None] == labels
    share, chance = homophily(sparse.csr_array(dense), labels)
    assert share == pytest.approx(dense[same].sum() / dense.sum())
    off_diagonal = ~np.eye(30, dtype=bool)
    assert chance == pytest.approx(same[off_diagonal].mean())


def test_homophily_without_edges_is_unknown():
    assert np.isnan(homophily(sparse.csr_array((3, 3)), [0, 0, 1])[0])


@pytest.mark.parametrize("most_cells", [1, 7, 29, 30, 100])
def test_cells_hold_the_weights_of_their_samples(rng, most_cells):
    dense, order = random_graph(rng, 30), rng.permutation(30)
    cells = bin_weights(sparse.csr_array(dense), order, most_cells)
    n_cells = min(30, most_cells)
    groups = np.arange(30) * n_cells // 30
    member = (groups[:, None] == np.arange(n_cells)).astype(float)
    np.testing.assert_allclose(cells, member.T @ dense[np.ix_(order, order)] @ member)


def test_graph_is_sorted_by_class_with_lines_between(rng, ax):
    dense, labels = random_graph(rng, 30), rng.permutation(np.repeat(["ant", "bee", "cow"], [5, 10, 15]))
    display = GraphDisplay(sparse.csr_array(dense), labels).plot(ax=ax)
    order = np.argsort(labels, kind="stable")
    np.testing.assert_allclose(np.ma.filled(display.image_.get_array(), 0), dense[np.ix_(order, order)])
    assert sorted({line.get_ydata()[0] for line in ax.lines if line.get_xdata()[0] == 0}) == [5, 15]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["ant", "bee", "cow"]
    np.testing.assert_array_equal(ax.get_yticks(), [2.5, 10, 22.5])
    assert f"{100 * display.homophily_:.1f} % of the weight within classes" in ax.get_title()


def test_graph_of_a_model_is_sorted_by_its_own_labels_or_the_true_ones(fitted, ax):
    fitted.graph_ = sparse.csr_array(np.ones((60, 60)) - np.eye(60))
    own = GraphDisplay.from_estimator(fitted, ax=ax)
    true = GraphDisplay.from_estimator(fitted, y=fitted.truth, ax=ax)
    np.testing.assert_array_equal(own.labels, fitted.transduction_)
    assert true.homophily_ == pytest.approx(19 / 59)
    assert true.homophily_ == pytest.approx(true.chance_)


def test_large_graphs_are_drawn_as_few_cells(ax):
    n = 100_000
    ring = sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    display = GraphDisplay(ring, np.arange(n) // 50_000).plot(ax=ax)
    assert display.image_.get_array().shape == (250, 250)
    assert display.homophily_ == pytest.approx(1 - 2 / n)


def test_labels_that_do_not_fit_the_graph_are_refused(ax):
    with pytest.raises(ValueError, match="one label for each of the 3 samples, got 2"):
        GraphDisplay(sparse.csr_array((3, 3)), [0, 1]).plot(ax=ax)


# --- sensitivity -----------------------------------------------------------------------------------------------------


def test_sensitivity_has_every_mean_in_its_cell():
    runs = [
        {"n_components": r, "beta": beta, "gamma": gamma, "accuracy": r / 100 + beta / 10 + gamma / 1000 + noise}
        for r in (5, 10)
        for beta in (1.0, 0.1)
        for gamma in (0.1, 1.0, 10.0)
        for noise in (-0.01, 0.01)
    ]
    axes = Figure().subplots(1, 2)
    display = SensitivityDisplay.from_results(runs, ax=axes)
    for panel, r in zip(axes, (5, 10), strict=True):
        shown = {(text.get_position()): text.get_text() for text in panel.texts}
        expected = {
            (column, row): f"{r + 10 * beta + gamma / 10:.1f}"
            for row, beta in enumerate((0.1, 1.0))
            for column, gamma in enumerate((0.1, 1.0, 10.0))
        }
        assert shown == expected
        assert panel.get_title() == f"r = {r}"
        assert [text.get_text() for text in panel.get_xticklabels()] == ["0.1", "1", "10"]
        assert [text.get_text() for text in panel.get_yticklabels()] == ["0.1", "1"]
    assert display.images_[0].get_clim() == display.images_[1].get_clim()


def test_sensitivity_leaves_cells_without_runs_empty():
    cells = [(0.1, 0.1), (1.0, 1.0)]
    runs = [{"n_components": 5, "beta": beta, "gamma": gamma, "accuracy": 0.5} for beta, gamma in cells]
    panel = Figure().subplots()
    SensitivityDisplay.from_results(runs, ax=[panel])
    assert [text.get_position() for text in panel.texts] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("scores", "panels", "message"),
    [
        ([[0.5]], 1, r"scores must have the shape \(1, 1, 1\)"),
        ([[[0.5]]], 2, "one panel for each of the 1 n_components, got 2"),
    ],
)
def test_sensitivity_refuses_what_does_not_fit(scores, panels, message):
    display = SensitivityDisplay(scores, n_components=[5], beta=[1.0], gamma=[1.0])
    with pytest.raises(ValueError, match=message):
        display.plot(ax=np.ravel(Figure().subplots(1, panels)))


def test_sensitivity_of_a_search(with_noise):
    grid = {"beta": [0.1, 0.2], "n_components": ["auto", 5]}
    search = LMSSCCV(estimator=LMSSC(max_iter=1, gamma=0.5), param_grid=grid, n_repeats=1)
    search.fit(with_noise.views, with_noise.y)
    axes = Figure().subplots(1, 2)
    SensitivityDisplay.from_estimator(search, ax=axes)
    assert [panel.get_title() for panel in axes] == ["r = 5", "r = auto"]
    found = {(s["n_components"], s["beta"]): f"{100 * score:.1f}" for s, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)}  # fmt: skip
    for panel, r in zip(axes, (5, "auto"), strict=True):
        assert [text.get_text() for text in panel.texts] == [found[r, 0.1], found[r, 0.2]]
        assert [text.get_text() for text in panel.get_xticklabels()] == ["0.5"]


def test_sensitivity_of_a_search_over_another_method_is_refused(with_noise):
    search = LMSSCCV(estimator=GFHF(), param_grid={"n_neighbors": [5]}, n_repeats=1).fit(with_noise.views, with_noise.y)
    with pytest.raises(ValueError, match="has not searched over LMSSC: its estimator has no n_components"):
        SensitivityDisplay.from_estimator(search)


def test_sensitivity_of_nothing_is_refused():
    with pytest.raises(ValueError, match="results is empty"):
        SensitivityDisplay.from_results([])


# --- calibration -----------------------------------------------------------------------------------------------------


def test_calibration_agrees_with_scikit_learn(rng):
    confidence = rng.uniform(0.5, 1, size=500)
    right = rng.uniform(size=500) < confidence
    display = CalibrationDisplay({"any": (right, confidence)}, n_bins=8).plot(ax=Figure().subplots(2))
    accuracy, mean = calibration_curve(right, confidence, n_bins=8)
    np.testing.assert_allclose(display.lines_["any"].get_xydata() / 100, np.column_stack([mean, accuracy]))
    shares, edges, _ = display.axes_[1].patches[0].get_data()
    np.testing.assert_allclose(shares, 100 * np.histogram(confidence, edges / 100)[0] / 500)


def test_calibration_of_a_model_counts_held_out_labels_only(ax):
    model = SimpleNamespace(
        label_distributions_=np.array([[1.0, 0.0], [0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]), classes_=np.array(["a", "b"])
    )
    display = CalibrationDisplay.from_estimator(
        model, ["b", "a", "b", "a"], y=["b", None, None, None], name="it", ax=Figure().subplots(2)
    )
    right, confidence = display.answers["it"]
    np.testing.assert_array_equal(right, [True, True, False])
    np.testing.assert_array_equal(confidence, [0.9, 0.8, 0.7])
    assert display.errors_["it"] == pytest.approx((0.1 + 0.2 + 0.7) / 3)
    assert "it: error 33.3 %" in legend_texts(display.axes_[1])


def test_bins_with_few_answers_are_hollow():
    right, confidence = np.ones(25, dtype=bool), np.repeat([0.95, 0.55], [20, 5])
    curve, _ = CalibrationDisplay({"any": (right, confidence)}).plot(ax=Figure().subplots(2)).axes_
    hollow = [line for line in curve.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xydata().round(6).tolist() for line in hollow] == [[[55.0, 100.0]]]


def test_methods_look_different_without_colour():
    looks = {(str(style["ls"]), style["marker"]) for style in LINES}
    assert len(looks) == len(LINES)
    assert len({style["marker"] for style in LINES}) == len(LINES)


def test_distributions_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"distributions\['it'\] must have the shape \(2, 2\)"):
        CalibrationDisplay.from_distributions({"it": [[1.0]]}, ["a", "b"], ["a", "b"])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: CalibrationDisplay({"it": ([True], [0.9])}).plot(),
        lambda: SensitivityDisplay([[[0.5]]], n_components=[5], beta=[1.0], gamma=[1.0]).plot(),
        lambda: GraphDisplay(sparse.csr_array((2, 2)), [0, 1]).plot(),
    ],
)
def test_without_axes_new_ones_are_made(draw):
    from matplotlib import pyplot

    display = draw()
    display.figure_.savefig(io.BytesIO(), format="png")
    pyplot.close(display.figure_)


# --- view contribution -----------------------------------------------------------------------------------------------


def test_view_contribution_is_the_share_of_the_reconstruction(with_noise, ax):
    clf = LMSSC(max_iter=3).fit(with_noise.views, with_noise.y)
    display = ViewContributionDisplay.from_estimator(clf, ax=ax)
    energies = [np.linalg.norm(clf.latent_ @ loading.T) ** 2 for loading in clf.loadings_]
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, 100 * np.array(energies) / sum(energies))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["view0", "view1", "view2"]
    assert display.marks_ is None
    assert display.figure_ is ax.figure


def test_view_contribution_with_views_left_out(with_noise, ax):
    clf = GFHF()
    with pytest.raises(ValueError, match="GFHF does not weigh the views"):
        ViewContributionDisplay.from_estimator(clf.fit(with_noise.views, with_noise.y), ax=ax)
    clf = AMGL().fit(with_noise.views, with_noise.y)
    display = ViewContributionDisplay.from_estimator(clf, X=with_noise.views, y=with_noise.y, ax=ax)
    # without the noise it is at least as right as without a view that knows something
    assert display.without["view2"] >= max(display.without["view0"], display.without["view1"])
    np.testing.assert_allclose(display.marks_.get_xdata(), [100 * display.without[f"view{v}"] for v in range(3)])
    assert_legend_is_beside_the_axes(ax)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ViewContributionDisplay({"a": 1.2}), "shares must be from 0 to 1, got 1.2"),
        (lambda: ViewContributionDisplay({"a": float("nan")}), "shares must be from 0 to 1, got nan"),
        (
            lambda: ViewContributionDisplay({"a": 1.0}, accuracy=0.5, without={"b": 0.5}),
            r"without has the views \['b'\]",
        ),
        (lambda: ViewContributionDisplay({"a": 1.0}, accuracy=0.5), "accuracy and without go together"),
        (
            lambda: ViewContributionDisplay({"a": 1.0}, accuracy=50.0, without={"a": 0.5}),
            "accuracy must be from 0 to 1",
        ),
        (lambda: GraphDisplay(sparse.csr_array((3, 4)), [0, 1, 1]), r"graph must be square.*\(3, 4\)"),
        (lambda: GraphDisplay(sparse.csr_array([[0, -1.0], [1, 0]]), [0, 1]), "weights of at least 0, got -1"),
        (lambda: ConvergenceDisplay([], {}), "objective is empty"),
        (lambda: ConvergenceDisplay([1.0, 2.0], {"fit": [1.0]}), r"terms\['fit'\].*2 iterations, got 1"),
        (lambda: LatentMapDisplay(np.zeros((2, 3)), np.zeros(2), np.zeros(1)), r"shape \(2, 2\)"),
        (lambda: LatentMapDisplay(np.full((2, 2), np.nan), np.zeros(2), np.zeros(1)), "must be finite"),
        (lambda: LatentMapDisplay(np.zeros((2, 2)), np.array([0, 7]), np.zeros(1)), "predicted has the label 7"),
        (
            lambda: LatentMapDisplay(np.zeros((2, 2)), np.zeros(2), np.zeros(1), given=np.ones(3, bool)),
            r"given must have a value for each of the 2 samples",
        ),
        (lambda: SensitivityDisplay([[[np.nan]]], n_components=[5], beta=[1.0], gamma=[1.0]), "scores has no number"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_drawn(make, message, ax):
    with pytest.raises(ValueError, match=message):
        make().plot(ax=ax)
    assert not ax.has_data()


@pytest.mark.parametrize(
    ("answers", "n_bins", "message"),
    [
        (([True], [95.0]), 10, r"answers\['it'\] must have confidences from 0 to 1, got 95"),
        (([True], [float("nan")]), 10, "confidences from 0 to 1, got nan"),
        (([True, False], [0.5]), 10, "as many confidences as answers"),
        (([], []), 10, "at least one"),
        (([True], [0.5]), 0, "n_bins must be an integer of at least 1"),
    ],
)
def test_calibration_refuses_nonsense(answers, n_bins, message):
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay({"it": answers}, n_bins=n_bins).plot(ax=Figure().subplots(2))
