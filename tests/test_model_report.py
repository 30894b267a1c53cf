"""The report of one model: what it says is checked against the model and the data."""

import copy
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import lmssc
from lmssc import AMGL, GFHF, LMSSC, LMSSCCV, stack_views
from lmssc.datasets import make_multiview
from lmssc.model_selection.refit import hold_out
from lmssc.plotting.latent_map import map_positions
from lmssc.report import charts, page, write_report
from lmssc.report.refit_plan import RefitBudget, plan_refits
from parsing import Page

PAIRS = page.PAIRS
NASTY = '<script>alert("1")</script>'


@pytest.fixture(scope="module")
def data():
    return make_multiview(150, noise_views=1, labelled=0.3, random_state=0)


@pytest.fixture(scope="module")
def views(data):
    return dict(zip(["image", "text & <more>", "noise"], data.views, strict=True))


@pytest.fixture(scope="module")
def y(data):
    names = np.array(["ant", "bee <b>", "cow"], dtype=object)
    return np.where(data.y >= 0, names[np.maximum(data.y, 0)], None)


@pytest.fixture(scope="module")
def model(views, y):
    return LMSSC(max_iter=4).fit(views, y)


def ids(n):
    return [NASTY, "</title>", "half \ud800", *(f"s{i}" for i in range(3, n))]


def read(path):
    """A page with its sentences on one line."""
    return " ".join(path.read_text(encoding="utf-8").split())


def write(tmp_path, clf, views, y, **more):
    path = tmp_path / "report.html"
    settings = {"ids": ids(len(y)), "title": "My <data>", "command": "lmssc classify 'a b.csv' --labels l.csv", **more}
    write_report(path, clf, views, y, **settings)
    text = read(path)
    return text, Page(text)


def written_ids(n):
    """Names as the page has them: half a character becomes a question mark."""
    return [name.encode(errors="replace").decode() for name in ids(n)]


@pytest.fixture(scope="module")
def report(model, views, y, tmp_path_factory):
    calls = []
    notes = ["3 files, joined by <id>", "45 labels"]
    text, parsed = write(
        tmp_path_factory.mktemp("report"), model, views, y, notes=notes, progress=lambda *count: calls.append(count)
    )
    return text, parsed, calls


def map_data(text):
    return json.loads(re.search(r'id="map-data">(.*?)</script>', text, flags=re.DOTALL)[1])


def rows_of(parsed, first):
    return [row for row in parsed.rows if row[0] == first]


def test_the_page_is_whole_and_its_links_land(report):
    text, parsed, _ = report
    assert text.startswith("<!DOCTYPE html>")
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {link.removeprefix("#") for link in parsed.links} <= set(parsed.ids)
    assert not re.search(r"https?://", text)
    assert not {"link", "img", "iframe"} & {tag for tag, _ in parsed.tags}


def test_only_the_scripts_of_the_page_itself_run(report):
    _, parsed, _ = report
    scripts = [attributes for tag, attributes in parsed.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "map-data"}, {}]
    policy = next(a["content"] for t, a in parsed.tags if t == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'", policy)
    assert "unsafe-eval" not in policy


def test_what_users_named_is_escaped(report):
    text, parsed, _ = report
    assert NASTY not in text
    assert "<b>" not in text
    assert "<more>" not in text
    assert "My &lt;data&gt;" in text
    assert "joined by &lt;id&gt;" in text
    assert rows_of(parsed, "text & <more>")
    assert rows_of(parsed, "bee <b>")
    assert map_data(text)["ids"][:2] == [NASTY, "</title>"]


def test_what_went_in(report, data, model):
    _, parsed, _ = report
    *facts, scaling = rows_of(parsed, "image")[0]
    assert facts == ["image", "20", "150", "0"]
    assert scaling.startswith("each column standardised (measurements: ")
    counts = np.bincount(data.y[data.y >= 0])
    for code, name in enumerate(["ant", "bee <b>", "cow"]):
        total = int((model.transduction_ == name).sum())
        assert rows_of(parsed, name)[0][1:] == [str(total), f"{100 * total / 150:.1f} %", "", str(counts[code])]


def test_held_out_labels_are_counted_right(report, model, views, y, data):
    text, parsed, calls = report
    found = hold_out(model, views, y, n_folds=2)[None]
    right = found.distributions.argmax(axis=1) == data.y[found.rows]
    assert "30 of the 45 given labels were held out" in text
    assert f"{right.sum()} of 30 were predicted correctly, {100 * right.mean():.1f} %" in text
    for code, name in enumerate(["ant", "bee <b>", "cow"]):
        mine = right[data.y[found.rows] == code]
        assert rows_of(parsed, name)[1][1:3] == [str(len(mine)), f"{100 * mine.mean():.1f} %"]
    sure = found.distributions.max(axis=1)
    top = (sure >= 0.9) & (sure <= 1)
    shown = next(row for row in parsed.rows if row[0] == "90 to 100 %")
    assert shown[1:4] == [str(top.sum()), f"{100 * sure[top].mean():.1f} %", f"{100 * right[top].mean():.1f} %"]
    assert calls == [(i, 6) for i in range(1, 7)]  # two folds, then one with all views and without each of the three


@pytest.mark.parametrize("n_samples", [150, 1797, 5000, 8000, 100_000])
@pytest.mark.parametrize("n_removable", [0, 2, 3, 6, 30])
@pytest.mark.parametrize("calibrated", [True, False])
def test_refits_cost_no_more_than_three_fits(n_samples, n_removable, calibrated):
    budget = RefitBudget(min_samples=0)
    plan = plan_refits(n_samples, 3, n_removable, calibrated=calibrated, budget=budget)
    short = budget.short_cost if calibrated else budget.full_cost
    refit = 1 / (1 + (n_samples - plan.n_samples) / budget.samples_per_refit)
    cost = plan.n_folds * budget.full_cost * refit
    share = plan.n_view_samples / plan.n_samples
    cost += plan.n_view_folds * (n_removable + 1) * short * refit * share**budget.growth
    assert cost <= 3.0 + 1e-9
    assert 2 <= plan.n_folds <= 3
    assert (plan.n_view_folds > 0) == (n_removable > 0)
    assert plan.n_samples <= budget.max_samples


@pytest.mark.parametrize("n_removable", [2, 3, 6])
def test_many_views_of_few_samples_leave_time_for_one_fold_of_many_labels(n_removable):
    budget = RefitBudget()
    plan = plan_refits(300, 3, n_removable, calibrated=True, n_labels=60)
    assert plan.n_folds == (1 if n_removable == 6 else 2)
    cost = plan.n_folds * budget.full_cost
    cost += (n_removable + 1) * budget.short_cost * (plan.n_view_samples / 300) ** budget.growth
    assert cost <= 3.0 + 1e-9
    assert plan_refits(300, 3, n_removable, calibrated=True, n_labels=59).n_folds == 2


def test_without_labels_to_hide_there_are_no_refits():
    plan = plan_refits(1000, 0, 3, calibrated=True)
    assert plan.n_folds == plan.n_view_folds == 0


def test_confidence_of_the_found_labels_is_counted(report, model, data):
    _, parsed, _ = report
    sure = model.label_distributions_.max(axis=1)[data.y < 0]
    shown = {row[0]: row[1] for row in parsed.rows if re.fullmatch(r"\d+ to \d+ %", row[0]) and row[2].endswith("%")}
    counts, _ = np.histogram(sure, np.linspace(0, 1, 11))
    assert shown["90 to 100 %"] == str(counts[-1])


def test_views_have_their_share_and_what_is_lost_without_them(report, model, views, y):
    text, parsed, _ = report
    energies = np.array([np.linalg.norm(model.latent_ @ loading.T) ** 2 for loading in model.loadings_])
    labelled, others = np.flatnonzero(y != None), np.flatnonzero(y == None)  # noqa: E711
    rows = np.sort(np.append(labelled, np.random.default_rng(0).choice(others, 55, replace=False)))
    few = {name: view[rows] for name, view in views.items()}
    short = hold_out(LMSSC(max_iter=4, calibrate=False), few, y[rows], without=[None, *views], n_folds=1)
    whole = short[None].accuracy
    assert "Then 15 labels were held out again" in text
    assert "few iterations and 100 of the samples, to save time" in text
    for name, energy in zip(views, energies, strict=True):
        row = rows_of(parsed, name)[1]
        assert row[1] == f"{100 * energy / energies.sum():.1f} %"
        assert row[3] == f"{100 * short[name].accuracy:.1f} %"
        assert float(row[4].replace("−", "-")) == pytest.approx(100 * (short[name].accuracy - whole), abs=0.06)


def test_homophily_of_the_graph(report, model, data):
    text, _, _ = report
    graph = model.graph_.toarray()
    same = model.transduction_[:, None] == model.transduction_
    assert f"{100 * graph[same].sum() / graph.sum():.1f} % of their weight joins two samples of the same class" in text
    known = data.y >= 0
    among = graph[np.ix_(known, known)]
    truth = among[data.y[known][:, None] == data.y[known]].sum() / among.sum()
    assert f"whose label was given it is {100 * truth:.1f} %" in text
    linked = int((among + among.T).any(axis=1).sum())
    assert f"It rests on the labels of {linked} samples" in text


def test_samples_to_look_at_first_are_listed_and_on_the_map(report, model):
    text, parsed, _ = report
    names = written_ids(150)
    wanted = [names[row] for row in model.most_informative(page.LISTED)]
    start = next(i for i, row in enumerate(parsed.rows) if row[0] == "sample")
    listed = parsed.rows[start + 1 : start + 1 + page.LISTED]
    assert [row[0] for row in listed] == wanted
    links = [int(a["data-i"]) for t, a in parsed.tags if t == "a" and "data-i" in a]
    assert [map_data(text)["ids"][i] for i in links] == wanted
    row = names.index(wanted[0])
    assert listed[0][1:3] == [model.transduction_[row], f"{100 * model.label_distributions_[row].max():.1f} %"]


def test_the_map_has_every_sample_where_the_layout_of_the_graph_puts_it(report, model, data):
    text, _, _ = report
    drawn = map_data(text)
    assert drawn["classes"] == ["ant", "bee <b>", "cow"]
    assert [drawn["classes"][code] for code in drawn["label"]] == model.transduction_.tolist()
    assert drawn["given"] == (data.y >= 0).astype(int).tolist()
    positions = map_positions(model)
    assert np.corrcoef(drawn["x"], positions[:, 0])[0, 1] == pytest.approx(1, abs=1e-5)
    assert np.corrcoef(drawn["y"], positions[:, 1])[0, 1] == pytest.approx(-1, abs=1e-5)
    assert np.ptp(drawn["x"]) / np.ptp(drawn["y"]) == pytest.approx(np.divide(*np.ptp(positions, axis=0)), rel=1e-3)


def test_class_names_stand_on_their_samples(report, model):
    text, _, _ = report
    drawn = map_data(text)
    spots = np.column_stack([drawn["x"], drawn["y"]])
    names = drawn["names"]
    assert {name["text"] for name in names} <= {"ant", "bee <b>", "cow"}
    assert len(names) >= 2
    for name in names:
        assert name["text"] == drawn["classes"][name["code"]]
        nearest = np.argsort(np.linalg.norm(spots - [name["x"], name["y"]], axis=1))[:5]
        assert (np.array(drawn["label"])[nearest] == name["code"]).mean() > 0.5


def test_the_first_screen_says_what_was_found_and_whether_to_trust_it(report, model, views, y):
    text, parsed, _ = report
    found = hold_out(model, views, y, n_folds=2)[None]
    first = text[text.index('id="short"') : text.index('id="input"')]
    assert "labels were predicted." in first
    assert ">Samples with each label<" in first
    assert f"Of {len(found.rows)} held-out labels, {100 * found.accuracy:.1f} % were predicted correctly" in first
    ids = [a.get("id") for _, a in parsed.tags]
    assert ids.index("short") < ids.index("input")


def test_the_confusion_matrix_counts_the_held_out_labels(report, model, views, y):
    text, _, _ = report
    found = hold_out(model, views, y, n_folds=2)[None]
    table = text[text.index('<table id="confusion">') :]
    table = table[: table.index("</table>")]
    counts = [int(n or 0) for n in re.findall(r'<td class="shade\d[^"]*">(\d*)</td>', table)]
    expected = np.zeros((3, 3), dtype=int)
    np.add.at(expected, (found.codes, found.distributions.argmax(axis=1)), 1)
    assert counts == expected.ravel().tolist()


def test_classes_are_told_apart_without_colours():
    codes = np.arange(PAIRS)
    legend = [re.sub("#[0-9A-F]{6}", "", charts.mark(code)) for code in range(4)]
    assert len(set(legend)) == 4
    assert len({charts.mark(code) for code in codes.tolist()}) == PAIRS


def test_the_command_and_the_parameters_are_there(report):
    text, _, _ = report
    assert "lmssc classify &#39;a b.csv&#39; --labels l.csv" in text
    assert "<code>max_iter = 4</code>" in text
    assert "Latent Multi-view Semi-Supervised Classification" in text


def test_many_samples_are_drawn_and_refitted_in_part(tmp_path, monkeypatch, model, views, y):
    monkeypatch.setattr(page, "MAX_DOTS", 60)
    monkeypatch.setattr("lmssc.report.BUDGET", RefitBudget(max_samples=100))
    text, _ = write(tmp_path, model, views, y)
    drawn = map_data(text)
    names = written_ids(150)
    assert len(drawn["ids"]) == len(set(drawn["ids"])) == 60
    assert {names[row] for row in model.most_informative(page.LISTED)} <= set(drawn["ids"])
    assert "A random 60 of the 150 samples are shown" in text
    assert "this was done on 100 of the 150 samples" in text
    assert "of 21 were predicted correctly" in text


def test_methods_without_latent_positions_or_weights(tmp_path, views, y):
    text, _ = write(tmp_path, GFHF().fit(views, y), views, y)
    assert len(map_data(text)["ids"]) == 150
    assert "does not weigh the views" in text
    text, _ = write(tmp_path, AMGL().fit(views, y), views, y)
    assert "weight that the method gave the view" in text
    text, _ = write(tmp_path, GFHF(view="image").fit(views, y), views, y)
    assert "right without it" in text


@pytest.mark.usefixtures("quick_fits")
def test_a_search_is_refitted_with_what_it_chose(tmp_path, views, y):
    clf = LMSSCCV(param_grid=[{}, {"n_neighbors": [5]}], n_repeats=1, estimator=LMSSC(max_iter=2)).fit(views, y)
    text, _ = write(tmp_path, clf, views, y)
    assert "These labels were also used to choose the parameters" in text
    assert len(map_data(text)["ids"]) == 150


@pytest.mark.usefixtures("quick_fits")
def test_one_view_one_label_a_class_and_sparse_with_masks(tmp_path, data, views, y):
    alone = {"image": views["image"]}
    few = np.full(150, None, dtype=object)
    for name in ("ant", "bee <b>", "cow"):
        few[np.flatnonzero(y == name)[0]] = name
    text, _ = write(tmp_path, LMSSC(max_iter=2).fit(alone, few), alone, few)
    assert "Nothing could be checked" in text
    assert "There is only one view" in text
    text, _ = write(tmp_path, LMSSC(max_iter=2).fit(views, few), views, few)
    assert "Nothing could be checked" in text
    words = {"words": sparse.csr_array(np.maximum(views["image"], 0)), "noise": views["noise"].astype(np.float32)}
    present = {"words": np.arange(150) % 5 > 0}
    clf = LMSSC(max_iter=2).fit(words, y, present)
    text, parsed = write(tmp_path, clf, words, y, present=present)
    assert rows_of(parsed, "words")[0][2:4] == ["120", "30"]
    assert "of the held-out samples have this view only" in text


@pytest.mark.usefixtures("quick_fits")
def test_all_labelled_and_unreached(tmp_path, data, views):
    text, _ = write(tmp_path, LMSSC(max_iter=2).fit(views, data.target), views, data.target)
    assert "All samples had a label" in text
    apart = {"x": np.concatenate([np.random.default_rng(0).normal(size=(60, 2)) + shift for shift in (0, 50, 500)])}
    y = np.full(180, -1)
    y[[0, 1, 60, 61]] = [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="of 180 samples are in parts"):
        clf = LMSSC(n_neighbors=5).fit(apart, y)
    lost = len(clf.unreached_)
    assert lost >= 60
    text, _ = write(tmp_path, clf, apart, y)
    assert f"No label reaches {lost} samples" in text
    assert sum(map_data(text)["unreached"]) == lost


def test_names_have_to_fit_and_nothing_is_written_otherwise(tmp_path, model, views, y):
    with pytest.raises(ValueError, match="ids must have one name for each of the 150 samples, got 3"):
        write(tmp_path, model, views, y, ids=["a", "b", "c"])
    assert list(tmp_path.iterdir()) == []


def test_the_same_input_gives_the_same_page(tmp_path, model, views, y, report):
    text, _ = write(tmp_path, model, views, y, notes=["3 files, joined by <id>", "45 labels"])
    assert text == report[0]


def test_points_on_a_line_or_in_one_place_can_be_drawn():
    positions, height = charts.place(np.zeros((3, 2)))
    assert np.isfinite(positions).all()
    assert height > 0
    positions, _ = charts.place(np.column_stack([np.arange(5.0), np.zeros(5)]))
    assert positions[0, 0] == 30
    assert positions[-1, 0] == 970


def test_a_model_reports_by_itself(tmp_path, model):
    """No ids, title or command, and no views: what the model knows."""
    model.report(tmp_path / "report.html")
    text = read(tmp_path / "report.html")
    assert "<h1>LMSSC: labels for 150 samples</h1>" in text
    assert "LMSSC(max_iter=4).fit(X, y)" in text
    assert "Not checked:" in text
    assert map_data(text)["ids"] == [str(row) for row in range(150)]
    assert map_data(text)["given"] == model._labelled.astype(int).tolist()
    assert ".csv" not in text  # nothing else was written


def test_a_model_reports_on_the_views_of_its_fit(tmp_path, model, views, y, report):
    """The same page as with everything told, but for what was told."""
    path = tmp_path / "report.html"
    model.report(str(path), views, y)
    rows = Page(read(path)).rows
    before = report[1].rows
    start = next(i for i, row in enumerate(before) if row[0] == "sample")
    assert rows[:start] == before[:start]
    assert [row[1:] for row in rows[start:]] == [row[1:] for row in before[start:]]


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("form", ["list", "stacked", "frames", "search", "precomputed", "loaded"])
def test_models_of_all_forms_of_input_report(tmp_path, data, model, form):
    X, clf = data.views, LMSSC(max_iter=2)
    if form == "stacked":
        X, blocks = stack_views(data.views)
        clf = LMSSC(max_iter=2, views=blocks)
    elif form == "frames":
        X = [pd.DataFrame(view, index=[f"name {i}" for i in range(150)]) for view in data.views]
    elif form == "search":
        clf = LMSSCCV(param_grid=[{}], n_repeats=1, estimator=clf)
    elif form == "precomputed":
        X, clf = model.graph_, GFHF(graph="precomputed")
    clf.fit(X, data.y)
    if form == "loaded":
        clf.save(tmp_path / "model.lmssc")
        clf = lmssc.load(tmp_path / "model.lmssc")
    for given in [(), (X, data.y)]:
        clf.report(tmp_path / "report.html", *given)
        text = read(tmp_path / "report.html")
        assert ("Of 30 held-out labels" in text) == bool(given)
    if form == "frames":
        assert map_data(text)["ids"] == X[0].index.tolist()


def test_what_a_report_cannot_be_made_of(tmp_path, model, views, y):
    path = tmp_path / "report.html"
    with pytest.raises(NotFittedError):
        LMSSC().report(path)
    for given in [(views,), (None, y), (None, None, {"image": np.ones(150, bool)})]:
        with pytest.raises(ValueError, match="views and y belong together"):
            model.report(path, *given)
    with pytest.raises(ValueError, match="the views have 149 samples, but LMSSC was fitted to 150"):
        model.report(path, {name: view[1:] for name, view in views.items()}, y[1:])
    assert list(tmp_path.iterdir()) == []


def test_a_model_from_files_names_them(tmp_path, model):
    clf = copy.copy(model)
    clf.files_ = {}
    clf.report(tmp_path / "report.html")
    assert "to_label.csv" in read(tmp_path / "report.html")


def test_a_page_with_few_labels_says_that_they_are_few(report, views):
    """30 labels tell nothing to ±5 points: no sentence may say that the confidence fits, or that a view is useless."""
    text, parsed, _ = report
    assert "That fits" not in text
    assert "30 held-out labels are too few to tell" in text or "It is too" in text
    assert {row[5] for row in parsed.rows if re.fullmatch(r"\d+ to \d+ %", row[0]) and len(row) == 6} <= {
        "too few to tell",
        "too sure",
        "too modest",
    }
    assert any("too few labels to tell (about " in row[5] for name in views for row in rows_of(parsed, name)[1:])
