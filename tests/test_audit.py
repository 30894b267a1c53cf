"""Order sensitivity of estimators, and the tables and the command of the audit."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.semi_supervised import LabelSpreading

import lmssc
from lmssc import AMGL, GFHF, LMSSC, MLAN, datasets
from lmssc.audit import order_sensitivity, take_rows
from lmssc.cli import main
from lmssc.datasets import make_multiview
from lmssc.paper import audit_runs
from lmssc.paper import published_audit as experiment
from lmssc.paper.audit_page import draw_row_order, make_page
from lmssc.paper.audit_runs import AuditRun, make_draw, plan, run_arm
from lmssc.paper.published import GRID, PublishedProgram


@pytest.fixture(scope="module")
def data():
    return make_multiview(80, labelled=0.2, random_state=1)


class ByPosition(ClassifierMixin, BaseEstimator):
    """Answers class 0 for the first half of the rows, whatever is in them."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return (np.arange(len(X)) >= len(X) // 2).astype(int)


class ByStart(ClassifierMixin, BaseEstimator):
    """One random class for all rows: the seed decides, the order cannot."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        self.transduction_ = np.full(len(y), np.random.default_rng(self.random_state).integers(1000))
        return self


@pytest.mark.parametrize("estimator", [LMSSC(), GFHF(), AMGL(), MLAN()], ids=lambda one: type(one).__name__)
def test_estimators_of_this_library_do_not_depend_on_the_order(estimator, data):
    result = order_sensitivity(estimator, data.views, data.y, y_true=data.target, n_permutations=3)
    assert result.max_changed == 0
    assert result.largest_probability_change == 0
    assert np.ptp(result.accuracies) == 0
    assert result.n_unlabelled == (data.y == -1).sum()


def test_label_spreading_does_not_depend_on_the_order(data):
    X = np.hstack([view.toarray() if sparse.issparse(view) else view for view in data.views])
    result = order_sensitivity(LabelSpreading(gamma=0.01), X, data.y, n_permutations=3)
    assert result.max_changed == 0
    assert 0 <= result.largest_probability_change < 1e-6
    assert result.changed_by_seed is None
    assert result.accuracies is None


def test_an_answer_by_position_is_found_out():
    n = 400
    y = np.r_[np.zeros(n // 2, int), np.ones(n // 2, int)]
    labels = np.where(np.arange(n) % 4 == 0, y, -1)
    result = order_sensitivity(ByPosition(), np.zeros((n, 1)), labels, y_true=y, n_permutations=20)
    # A random half has each label, so half of the labels change, and half of the answers are right.
    assert result.mean_changed == pytest.approx(0.5, abs=0.05)
    assert result.max_changed >= result.mean_changed > 0.4
    assert result.accuracies[0] == 1
    assert result.accuracies[1:].mean() == pytest.approx(0.5, abs=0.05)
    assert np.isnan(result.largest_probability_change)
    assert "labels that change" in str(result)
    assert "100.0 % in the order given" in str(result)


def test_random_starts_are_told_from_the_order():
    result = order_sensitivity(ByStart(), np.zeros((50, 1)), np.full(50, -1), n_permutations=5)
    assert result.max_changed == 0
    assert result.changed_by_seed.mean() > 0.9
    assert "other random starts" in str(result)


def test_the_published_program_depends_on_the_order(data):
    result = order_sensitivity(PublishedProgram(n_components=5), data.views, data.y, n_permutations=1)
    assert result.mean_changed > 0
    assert result.changed_by_seed is not None


@pytest.mark.parametrize("kind", ["list", "dict", "sparse", "frames", "strings"])
def test_every_form_of_input(kind, data):
    dense = [view.toarray() if sparse.issparse(view) else view for view in data.views]
    X = {
        "list": dense,
        "dict": {"a": dense[0], "b": dense[1]},
        "sparse": [sparse.csc_array(view) for view in dense],
        "frames": [pd.DataFrame(view, index=np.arange(len(view))[::-1]) for view in dense],
        "strings": dense,
    }[kind]
    y = data.y if kind != "strings" else [None if code < 0 else f"class {code}" for code in data.y]
    result = order_sensitivity(GFHF(), X, y, n_permutations=2)
    assert result.max_changed == 0


def test_boolean_labels_with_none(data):
    y = [None if code < 0 else bool(code == 0) for code in data.y]
    result = order_sensitivity(GFHF(), data.views, y, y_true=data.target == 0, n_permutations=2)
    assert result.n_unlabelled == (data.y < 0).sum()
    answers = GFHF().fit(data.views, y).transduction_
    hidden = data.y < 0
    assert result.accuracies == pytest.approx(np.mean((answers == (data.target == 0))[hidden]))


def test_rows_are_taken_from_every_kind_of_table():
    order = np.array([2, 0, 1])
    table = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(take_rows(table, order), table[order])
    np.testing.assert_array_equal(take_rows(table.tolist(), order), table[order])
    np.testing.assert_array_equal(take_rows(sparse.coo_array(table), order).toarray(), table[order])
    np.testing.assert_array_equal(take_rows(pd.DataFrame(table, index=list("abc")), order).to_numpy(), table[order])
    np.testing.assert_array_equal(take_rows([table, table + 1], order)[1], table[order] + 1)
    np.testing.assert_array_equal(take_rows({"a": table}, order)["a"], table[order])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1, 0]}, "every row has a label"),
        ({"y": [0, 1, -1, -1]}, "X has 3 rows, but y has 4 labels"),
        ({"y_true": [0, 1]}, "y_true must have one label for each of the 3 rows"),
        ({"n_permutations": 0}, "n_permutations must be an integer of at least 1"),
    ],
)
def test_bad_input(change, message):
    call = {"X": np.zeros((3, 1)), "y": [0, 1, -1]} | change
    with pytest.raises(ValueError, match=message):
        order_sensitivity(ByPosition(), **call)


def test_it_is_found_in_the_package():
    assert lmssc.audit.order_sensitivity is order_sensitivity


# The experiment, on data that need no file.


@pytest.fixture
def made_up(monkeypatch):
    made = make_multiview(60, n_classes=2, random_state=0)
    order = np.argsort(made.target, kind="stable")
    views = [take_rows(view, order) for view in made.views]
    monkeypatch.setattr(audit_runs, "_data", lambda dataset: (views, made.target[order]))
    for module in (experiment, datasets):  # the command looks for BBC before it starts
        monkeypatch.setattr(module, "load", lambda name: type("Bunch", (), {"target": made.target[order]}))
    return views, made.target[order]


def test_orders_have_the_same_samples_labels_and_start(made_up):
    views, codes = made_up
    given, shuffled = (make_draw("sonar", 0.2, 3, 4, shuffled=shuffled) for shuffled in (False, True))
    assert not np.array_equal(given.start, shuffled.start)
    # Each row of the start is unlike any other, and tells where its sample went.
    where = [int(np.flatnonzero((shuffled.start == row).all(axis=1))[0]) for row in given.start]
    np.testing.assert_array_equal(shuffled.codes[where], codes)
    np.testing.assert_array_equal(np.asarray(where)[given.labelled], shuffled.labelled)
    for before, after in zip(views, shuffled.views, strict=True):
        np.testing.assert_array_equal(take_rows(after, np.asarray(where)), before)
    again = make_draw("sonar", 0.2, 3, 4, shuffled=True)
    np.testing.assert_array_equal(again.start, shuffled.start)


def test_mended_has_the_same_score_in_both_orders(made_up):
    scores = {arm: run_arm(AuditRun("sonar", 0.3, 0, arm, 5, 0.1, 1.0)) for arm in ("mended", "mended-sorted")}
    assert scores["mended"] == scores["mended-sorted"]


def test_held_out_labels_never_meet_test_labels(made_up, monkeypatch):
    views, codes = made_up
    before = run_arm(AuditRun("sonar", 0.3, 0, "held-out", 5, 0.1, 1.0))
    labelled = make_draw("sonar", 0.3, 0, 5, shuffled=False).labelled
    other = 1 - codes
    other[labelled] = codes[labelled]
    monkeypatch.setattr(audit_runs, "_data", lambda dataset: (views, other))
    assert run_arm(AuditRun("sonar", 0.3, 0, "held-out", 5, 0.1, 1.0)) == before


def test_summary_by_hand():
    rng = np.random.default_rng(0)
    tables = {arm: rng.random((3, len(GRID))) for arm in ("sorted", "shuffled", "mended", "held-out")}
    runs = [
        {"dataset": "sonar", "rate": 0.2, "repeat": draw, "arm": arm, "accuracy": table[draw, place]}
        | dict(zip(("n_components", "beta", "gamma"), setting, strict=True))
        for arm, table in tables.items()
        for draw in range(3)
        for place, setting in enumerate(GRID)
    ]
    runs.append(runs[0] | {"repeat": 7})  # a draw that has just begun
    rows = {(row["part"], row["what"]): row for row in experiment.summarise(runs)}
    best = 100 * tables["sorted"].max(axis=1)
    row = rows["row order", "class order"]
    assert (row["n"], row["mean"], row["std"]) == (3, pytest.approx(best.mean()), pytest.approx(best.std(ddof=1)))
    assert (row["paper_mean"], row["paper_std"]) == (80.21, 4.65)
    assert row["high"] - row["mean"] == pytest.approx(4.302653 * best.std(ddof=1) / np.sqrt(3), rel=1e-5)
    gap = best - 100 * tables["shuffled"].max(axis=1)
    row = rows["row order, difference", "class order − shuffled"]
    assert (row["mean"], row["std"]) == (pytest.approx(gap.mean()), pytest.approx(gap.std(ddof=1)))
    mended, held = tables["mended"], tables["held-out"]
    part = "choice of the setting, shuffled, mended"
    chosen = [100 * mended[draw, held[draw].argmax()] for draw in range(3)]
    assert rows[part, "best on held-out labels"]["mean"] == pytest.approx(np.mean(chosen))
    others = [100 * mended[draw, np.delete(mended, draw, 0).mean(axis=0).argmax()] for draw in range(3)]
    assert rows[part, "best on the other draws"]["mean"] == pytest.approx(np.mean(others))
    assert rows[part, "mean over the grid"]["mean"] == pytest.approx(100 * mended.mean())


def test_constant_answer(made_up, monkeypatch):
    codes = np.repeat([0, 1], [134, 11])
    monkeypatch.setattr(experiment, "load", lambda name: type("Bunch", (), {"target": codes}))
    rows = experiment.constant_answer()
    measured = {(row["what"], row["rate"]): row for row in rows if row["part"] == "constant"}
    truth = np.delete(codes, experiment.draw_labelled(145, 2, 0.2, 0))
    assert measured["balanced_accuracy", 0.2]["mean"] == 50 == 100 * balanced_accuracy_score(truth, 0 * truth)
    assert measured["macro_f1", 0.2]["low"] < 100 * f1_score(truth, 0 * truth, average="macro") < 52
    assert measured["accuracy", 0.2]["mean"] == pytest.approx(92.4, abs=1)
    cells = {(row["what"], row["rate"]): row for row in rows if row["part"] == "constant, paper"}
    assert len(cells) == 28
    assert cells["LMSSC", 0.5]["mean"] == pytest.approx(95.14 - 100 * 134 / 145)
    # t(19) at 97.5 % is 2.093.
    assert cells["LMSSC", 0.5]["high"] - cells["LMSSC", 0.5]["mean"] == pytest.approx(2.0930 * 3.0 / 20**0.5, rel=1e-4)


@pytest.fixture
def short(made_up, monkeypatch):
    """An audit of seconds: two settings, two estimators."""
    monkeypatch.setattr(audit_runs, "GRID", [(4, 0.1, 1.0), (4, 1.0, 1.0)])
    monkeypatch.setattr(experiment, "GRID", [(4, 0.1, 1.0), (4, 1.0, 1.0)])
    monkeypatch.setattr(experiment, "PERMUTATIONS", 2)
    monkeypatch.setattr(audit_runs, "published_program", partial(audit_runs.published_program, max_rounds=3))
    few = {"GFHF": GFHF(), "LabelSpreading (scikit-learn)": LabelSpreading(gamma=0.01)}
    monkeypatch.setattr(experiment, "sensitivity_estimators", lambda: few)


def test_command_writes_everything_and_resumes(short, tmp_path, capsys, monkeypatch):
    call = ["audit", "--datasets", "sonar", "--rates", "0.3", "--repeats", "2", "--out", str(tmp_path)]
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert "Row order" in printed
    assert "BBC and a constant answer" in printed
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"runs", "audit.csv", "audit_summary.csv", "audit.md", "row-order.svg", "row-order.png"}
    # 2 draws × (5 arms × 2 settings + 1), and two estimators.
    files = sorted((tmp_path / "runs").iterdir())
    assert len(files) == 2 * 11 + 2
    content = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    runs = [json.loads(path.read_text()) for path in files]
    assert {run["arm"] for run in runs if "arm" in run} == set(audit_runs.ARMS)
    gone = tmp_path / "runs" / "sonar-0.3-1-shuffled-4-1-1.json"
    gone.unlink()
    done = []
    real = audit_runs.run_arm
    monkeypatch.setattr(audit_runs, "run_arm", lambda run: done.append(run.key) or real(run))
    assert main([*call, "-q"]) == 0
    assert done == [gone.stem]
    assert capsys.readouterr().out == ""
    changed = {name for name, before in content.items() if (tmp_path / name).read_bytes() != before}
    assert changed <= {"audit.csv"}  # the seconds of the run that was done again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "iris"], "--datasets iris is not one of"),
        (["--rates", "20"], "rates must be between 0 and 1"),
        (["--repeats", "0"], "at least one rate and one repeat"),
    ],
)
def test_bad_calls(arguments, message, capsys, tmp_path):
    assert main(["audit", "--out", str(tmp_path / "out"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("draws", "cell"), [(1, "80.0 (1 draw)"), (2, "80.0 (2 draws)"), (3, "80.0 ± 0.0 (80.0 to 80.0)")]
)
def test_page_and_figure_of_an_unfinished_audit(made_up, draws, cell):
    rows = experiment.summarise(
        [
            {"dataset": "sonar", "rate": 0.2, "repeat": repeat, "arm": "sorted", "accuracy": 0.8}
            | dict(zip(("n_components", "beta", "gamma"), setting, strict=True))
            for repeat in range(draws)
            for setting in GRID
        ]
    )
    page = make_page(rows + experiment.constant_answer())
    assert f"| Sonar 20 % | {draws} | 80.2 ± 4.7 | {cell} | – |" in page.replace("\xa0", " ")
    labels = [text.get_text() for text in draw_row_order(rows).legends[0].get_texts()]
    assert labels == ["paper, LMSSC", "program, class order"]


def test_plan_has_the_whole_grid_for_every_arm():
    runs = plan(["sonar", "reuters"], [0.5], 3)
    assert len({run.key for run in runs}) == len(runs) == 2 * 3 * (5 * 18 + 1)
