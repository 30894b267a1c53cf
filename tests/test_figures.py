"""The figures of the reproduction: their files, their data, and that nothing is computed twice."""

import csv
import json
import re
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import sparse

from lmssc import LMSSC
from lmssc.core.begin import begin
from lmssc.datasets import make_multiview
from lmssc.evaluation.runs import Data
from lmssc.metrics import expected_calibration_error
from lmssc.paper import figure_data, figures
from lmssc.paper.figure_data import by_dimension, first_graph
from made_up import draw_tiny_figures

NAMES = [
    "calibration-sonar",
    "convergence-sonar",
    "fig1-sensitivity",
    "fig1-sensitivity-algorithm1",
    "fig2-latent-dimension",
    "graph-sonar",
    "latent-map-sonar",
]


@pytest.fixture
def drawn(tiny_figures):
    return SimpleNamespace(folder=tiny_figures[0], written=tiny_figures[1])


def read(drawn, name):
    with open(drawn.folder / "figure-data" / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_figure_has_its_files(drawn):
    for suffix in ("svg", "png"):
        assert sorted(path.stem for path in (drawn.folder / "figures").glob(f"*.{suffix}")) == NAMES
    for suffix in ("csv", "json"):
        assert sorted(path.stem for path in (drawn.folder / "figure-data").glob(f"*.{suffix}")) == NAMES
    assert sorted(drawn.written) == sorted(
        path for part in ("figures", "figure-data") for path in (drawn.folder / part).glob("*.*")
    )
    assert not list(drawn.folder.rglob("*.tmp"))


@pytest.mark.parametrize("name", NAMES)
def test_text_is_text_and_large_enough_to_print(drawn, name):
    text = (drawn.folder / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert len(root.findall(".//{http://www.w3.org/2000/svg}text")) > 5
    assert float(root.get("width").removesuffix("pt")) <= 7.0 * 72  # fits a page, so that sizes are as in print
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: ([\d.]+)px", text)]
    assert min(sizes) >= 8
    assert all(family.endswith("sans-serif") for family in re.findall(r"font-family: ([^;\"]*)", text))


@pytest.mark.parametrize("name", NAMES)
def test_captions_say_what_a_reader_needs(drawn, name):
    caption = json.loads((drawn.folder / "figure-data" / f"{name}.json").read_text(encoding="utf-8"))
    assert set(caption) == {"section", "title", "text", "alt"}
    assert all(caption.values())
    if name.startswith("fig1"):
        assert "no way to choose them, because it looks at the held-out labels" in caption["text"]


def test_a_second_start_computes_nothing_and_writes_the_same(drawn, monkeypatch):
    before = {path: path.read_bytes() for path in drawn.written if path.suffix != ".png"}

    def fail(*_args, **_options):
        raise AssertionError("computed again")

    monkeypatch.setattr(LMSSC, "fit", fail)
    monkeypatch.setattr(figure_data, "fit_and_answer", fail)
    draw_tiny_figures(monkeypatch, drawn.folder)
    for path, content in before.items():
        assert path.read_bytes() == content, path.name


def test_terms_of_the_objective_add_up_and_it_never_rises(drawn):
    rows = [{name: float(value) for name, value in row.items()} for row in read(drawn, "convergence-sonar")]
    for row in rows:
        assert row["objective"] == pytest.approx(
            sum(row[n] for n in ("fit", "smoothness", "graph", "labels")), rel=1e-5
        )
    assert all(later["objective"] <= one["objective"] * (1 + 1e-5) for one, later in pairwise(rows))


def test_edges_are_those_of_the_fitted_model(drawn):
    data = make_multiview(60, random_state=0)
    maps = read(drawn, "latent-map-sonar")
    labels = np.array([code if int(row["label_given"]) else -1 for code, row in zip(data.target, maps, strict=True)])
    model = LMSSC().fit(data.views, labels)
    edges = read(drawn, "graph-sonar")
    rows, columns = ([int(edge[end]) for edge in edges] for end in ("sample", "neighbour"))
    after = sparse.csr_array(([float(edge["after"]) for edge in edges], (rows, columns)), shape=(60, 60))
    np.testing.assert_allclose(after.toarray(), model.graph_.toarray(), atol=1e-3)
    names = np.array(["ant", "bee & co", "<cow>"])
    assert [row["truth"] for row in maps] == names[data.target].tolist()
    assert [row["predicted"] for row in maps] == names[model.transduction_].tolist()


@pytest.mark.parametrize("words", [False, True])
def test_the_graph_before_learning_is_the_one_the_model_starts_from(words):
    data = make_multiview(80, random_state=1, sparse=words)
    y = np.full(80, -1)
    y[:3] = [0, 1, 2]
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lmssc.core.view_forms.begin", lambda *arguments: seen.append(begin(*arguments)) or seen[0])
        model = LMSSC(label_weight=0, calibrate=False, max_iter=1).fit(data.views, y)
    back = np.argsort(model._order.samples)
    first = seen[0].state.graph.toarray()[np.ix_(back, back)]
    np.testing.assert_allclose(first_graph(Data.read(data.views, data.target).raws, y).toarray(), first, atol=1e-5)


def test_calibration_bins_hold_all_answers_and_give_the_error(drawn):
    caption = json.loads((drawn.folder / "figure-data" / "calibration-sonar.json").read_text(encoding="utf-8"))
    rows = [row for row in read(drawn, "calibration-sonar") if (row["rate"], row["method"]) == ("0.1", "LMSSC")]
    n = [int(row["n"]) for row in rows]
    assert sum(n) == 2 * 54  # two splits of 60 samples with 6 labels
    gap = sum(abs(float(row["confidence"]) - float(row["accuracy"])) * int(row["n"]) for row in rows) / sum(n)
    assert f"10 % labels: LMSSC {100 * gap:.1f} %" in caption["text"]


def test_answers_for_calibration_are_those_of_the_method(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_data, "CALIBRATION_REPEATS", 2)
    data = make_multiview(60, random_state=0)
    figure_set = figures.FigureSet("any", Data.read(data.views, data.target), np.array(list("abc")), tmp_path, 1)
    right, confidence = figure_data.confidences(figure_set)[0.2]["LMSSC"]
    order, raws, labels = figure_set.shuffled(0.2, 0)
    model = LMSSC().fit({raw.name: raw.data for raw in raws}, labels)
    hidden = labels < 0
    np.testing.assert_array_equal(right[: hidden.sum()], (model.transduction_ == data.target[order])[hidden])
    np.testing.assert_allclose(confidence[: hidden.sum()], model.label_distributions_.max(axis=1)[hidden])
    assert expected_calibration_error(right, confidence) >= 0


def test_fixed_and_best_by_test_are_told_apart():
    runs = [
        {"n_components": r, "beta": beta, "gamma": 0.001, "repeat": repeat, "accuracy": accuracy}
        for r, beta, repeat, accuracy in [(5, 0.01, 0, 0.5), (5, 0.01, 1, 0.7), (5, 1.0, 0, 0.6), (5, 1.0, 1, 0.4)]
    ]
    fixed, best = by_dimension(runs)
    assert (fixed["mean"], best["mean"]) == (pytest.approx(0.6), pytest.approx(0.65))
    assert fixed["ci_low"] < 0.6 < fixed["ci_high"]
    assert (fixed["n"], best["n"]) == (2, 2)


def test_a_failed_fit_is_named(tmp_path, monkeypatch):
    def fail(*_args, **_options):
        raise ValueError("no luck")

    monkeypatch.setattr(LMSSC, "fit", fail)
    with pytest.raises(RuntimeError, match=r"sonar, r=5 beta=0\.01 gamma=0\.001: ValueError: no luck"):
        draw_tiny_figures(monkeypatch, tmp_path)
