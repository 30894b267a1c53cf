"""`lmssc classify` and `lmssc predict` on files: the same answer whatever the format and the order."""

import csv
import importlib
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest

import lmssc
from lmssc import LMSSC
from lmssc.cli import main
from lmssc.cli.classify_run import _suggestions
from small_files import WRITERS, label_text, make_problem, table_text, view_text, write_csv

VIEWS, IDS, LABELS = make_problem()
CODES = np.array([{"": -1, "u": 0, "v": 1, "w": 2}[label] for label in LABELS])
FILES = ["model.lmssc", "predictions.csv", "report.html", "to_label.csv"]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def brief(request):
    if "full" not in request.node.name:
        request.getfixturevalue("brief_report")
        request.getfixturevalue("quick_fits")


@pytest.fixture(scope="module")
def expected():
    """What the estimator says without any file, as `quick_fits` has it."""
    return fit_in_memory(LMSSC(calibrate=False))


def fit_in_memory(clf):
    return clf.fit(VIEWS, np.array([label or None for label in LABELS], dtype=object))


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run(command, code=0):
    assert main(command.split()) == code


def check_predictions(path, expected, ids=IDS):
    """Labels, confidence and the rest are those of the estimator."""
    rows = {next(iter(row.values())): row for row in read_rows(path)}  # the ids come first, by whatever name
    assert set(rows) == set(ids)
    for number, key in enumerate(ids):
        row, shares = rows[key], expected.label_distributions_[number]
        assert row["label"] == expected.transduction_[number]
        assert float(row["confidence"]) == pytest.approx(shares.max(), abs=2e-6)
        assert [float(row[f"p_{name}"]) for name in "uvw"] == pytest.approx(shares.tolist(), abs=2e-6)
        second = np.argsort(shares)[-2]
        assert row["runner_up"] == ("uvw"[second] if shares[second] > 0 else "")
        assert row["given"] == ("yes" if LABELS[number] else "no")
        assert row["unreached"] == "no"


@pytest.mark.parametrize("form", WRITERS)
def test_the_same_data_in_each_format_give_the_same_predictions(form, expected):
    write, has_ids = WRITERS[form]
    names = [write(Path(), name, view, IDS) for name, view in VIEWS.items()]
    if has_ids:
        Path("labels.csv").write_text(label_text(IDS, LABELS))
    else:
        Path("labels.csv").write_text(table_text(["label"], [[label or "NA"] for label in LABELS]))
    run(f"classify {' '.join(names)} --labels labels.csv --out out -q")
    ids = IDS if has_ids else [str(number + 1) for number in range(len(IDS))]
    check_predictions("out/predictions.csv", expected, ids)
    assert sorted(path.name for path in Path("out").iterdir()) == FILES
    # The same files are known again; a model does not care in which format they come.
    run(f"predict out/model.lmssc {' '.join(names)} --out again.csv -q")
    before = [(*list(row.values())[:1], row["label"]) for row in read_rows("out/predictions.csv")]
    assert [(*list(row.values())[:1], row["label"]) for row in read_rows("again.csv")] == before


@pytest.mark.parametrize("form", [form for form, (_, has_ids) in WRITERS.items() if has_ids])
def test_shuffled_rows_with_ids_give_the_same_predictions(form, expected):
    names = []
    for seed, (name, view) in enumerate(VIEWS.items()):
        order = np.random.default_rng(seed).permutation(len(IDS))
        names.append(WRITERS[form][0](Path(), name, view[order], [IDS[row] for row in order]))
    Path("labels.csv").write_text(label_text(IDS[::-1], LABELS[::-1]))
    run(f"classify {' '.join(names)} --labels labels.csv --out out -q")
    check_predictions("out/predictions.csv", expected)


def joined_text(**more):
    """Both views in one table, with more columns."""
    header = ["id", *(f"a_{c}" for c in range(6)), *(f"b_{c}" for c in range(5)), *more]
    numbers = np.hstack(list(VIEWS.values())).tolist()
    return table_text(
        header, [[key, *row, *extra] for key, row, *extra in zip(IDS, numbers, *more.values(), strict=True)]
    )


@pytest.mark.parametrize(
    "options",
    [
        "--prefix-sep _",
        "--view a=a_* --view b=b_0..b_4",
        "--view a=a_0,a_1,a_2..a_5 --view b=b_*",
    ],
)
def test_several_views_in_one_file_and_labels_in_a_column(options, expected, capsys):
    Path("all.csv").write_text(joined_text(label=LABELS))
    run(f"classify all.csv {options} --out out")
    check_predictions("out/predictions.csv", expected)
    assert "60 samples in 2 views (rows joined by the column 'id'):\n  a  6 features, all.csv\n  b  5 features" in (
        capsys.readouterr().out
    )
    # Columns are found by their names.
    lines = [row[::-1] for row in csv.reader(Path("all.csv").read_text().splitlines())]
    Path("new.csv").write_text(table_text(lines[0], lines[1:]))
    run("predict out/model.lmssc new.csv --out again.csv")
    assert [row["label"] for row in read_rows("again.csv")] == expected.transduction_.tolist()


def test_a_full_fit_is_that_of_the_defaults():
    write_plain()
    run("classify a.csv b.csv --labels labels.csv --out out -q --no-report")
    check_predictions("out/predictions.csv", fit_in_memory(LMSSC()))


def test_several_views_in_one_matlab_file_as_a_cell_and_transposed(expected):
    import scipy.io

    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = VIEWS["a"].T, VIEWS["b"].T
    scipy.io.savemat("all.mat", {"X": cell, "y": CODES[:, None]})
    run("classify all.mat --transpose X1 --transpose X2 --label-column y --out out -q")
    rows = read_rows("out/predictions.csv")
    assert ["uvw"[int(row["label"])] for row in rows] == expected.transduction_.tolist()
    assert lmssc.load("out/model.lmssc").classes_.tolist() == [0, 1, 2]
    run("predict out/model.lmssc all.mat --out again.csv -q")
    assert [row["label"] for row in read_rows("again.csv")] == [row["label"] for row in rows]


def test_samples_that_lack_a_view_are_told_of_and_labelled(capsys):
    write_csv(Path(), "a", VIEWS["a"][:50], IDS[:50])
    blank = [
        [key, *(row if number != 30 else [""] * 5)]
        for number, (key, row) in enumerate(zip(IDS, VIEWS["b"].tolist(), strict=True))
    ]
    Path("b.csv").write_text(table_text(["id", *"vwxyz"], blank[10:]))
    Path("labels.csv").write_text(label_text(IDS, LABELS))
    run("classify a.csv b.csv --labels labels.csv --out out")
    told = capsys.readouterr().out
    assert "a  6 features, a.csv; 10 samples without it" in told
    assert "b  5 features, b.csv; 11 samples without it" in told
    holed = {name: view.copy() for name, view in VIEWS.items()}
    holed["a"][50:] = np.nan
    holed["b"][:10] = holed["b"][30] = np.nan
    check_predictions("out/predictions.csv", LMSSC().fit(holed, np.array([x or None for x in LABELS], dtype=object)))


def test_a_column_of_text_is_a_view_of_its_words(capsys):
    words = {"u": "apple pear", "v": "Car, bus!", "w": "sun and moon"}
    truth = ["uvw"[number % 3] for number in range(30)]
    texts = [f"{words[label]} number{number}" for number, label in enumerate(truth)]
    texts[7] = ""
    given = [label if number < 9 else "" for number, label in enumerate(truth)]
    rows = list(zip(range(30), np.arange(30) % 3 + np.linspace(0, 0.1, 30), texts, given, strict=True))
    Path("t.csv").write_text(table_text(["id", "size", "note", "label"], rows))
    run("classify t.csv --out out")
    assert "note  7 words, t.csv; 1 sample without it" in capsys.readouterr().out
    assert [row["label"] for row in read_rows("out/predictions.csv")] == truth
    model = lmssc.load("out/model.lmssc")
    assert model.scalings_["note"] == "logidf"
    assert model.files_["views"]["note"]["words"] == ["and", "apple", "bus", "car", "moon", "pear", "sun"]
    Path("new.csv").write_text("id,size,note\nx,0,apple pear banana\ny,,the sun and moon\nz,1,\n")
    run("predict out/model.lmssc new.csv --out new-out.csv")
    assert [row["label"] for row in read_rows("new-out.csv")] == ["u", "w", "v"]


def test_text_in_parquet():
    import pyarrow
    import pyarrow.parquet

    table = {
        "text": ["red rose", "blue sea", "red", "blue", "rose", "sea"],
        "label": ["r", "b", None, None, None, None],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), "t.parquet")
    run("classify t.parquet --out out -q")
    assert [row["label"] for row in read_rows("out/predictions.csv")] == list("rbrbrb")


@pytest.mark.parametrize(
    ("n_samples", "n_known", "n_listed"),
    [(90, 30, 60), (500, 10, 100), (100_000, 10, 100), (200_000, 10, 50), (1_000_000, 10, 20), (9_000_000, 10, 20)],
)
def test_how_many_are_listed_to_label(n_samples, n_known, n_listed):
    class Model:
        most_informative = staticmethod(np.arange)

    assert len(_suggestions(Model, np.arange(n_samples) < n_known, in_parts=False)) == n_listed


def test_what_to_label_next(expected):
    for name, view in VIEWS.items():
        write_csv(Path(), name, view, IDS)
    Path("labels.csv").write_text(label_text(IDS, LABELS))
    run("classify a.csv b.csv --labels labels.csv --out out -q")
    rows = read_rows("out/to_label.csv")
    order = expected.most_informative(100)
    assert [row["id"] for row in rows] == [IDS[number] for number in order]
    assert [row["guess"] for row in rows] == expected.transduction_[order].tolist()
    assert {row["label"] for row in rows} == {""}
    # Filled in, it can be given as labels.
    table = table_text(["id", "label"], [[row["id"], row["guess"]] for row in rows])
    Path("more.csv").write_text(table)
    run("classify a.csv b.csv --labels more.csv --dry-run")


def write_plain():
    for name, view in VIEWS.items():
        write_csv(Path(), name, view, IDS)
    Path("labels.csv").write_text(label_text(IDS, LABELS))


def test_dry_run_only_tells(capsys, monkeypatch):
    write_plain()
    monkeypatch.setattr(LMSSC, "fit", lambda *args: pytest.fail("computed"))
    run("classify a.csv b.csv --labels labels.csv --dry-run")
    text = capsys.readouterr().out
    n_given = sum(label != "" for label in LABELS)
    assert f"{n_given} samples labelled (labels.csv, column 'label'), {60 - n_given} unlabelled." in text
    assert f"u ({LABELS.count('u')}), v ({LABELS.count('v')}), w ({LABELS.count('w')})" in text
    run("classify a.csv b.csv --labels labels.csv --dry-run --out out")
    assert not Path("out").exists()


def test_json_is_all_that_is_printed(capsys):
    write_plain()
    run("classify a.csv b.csv --labels labels.csv --out out --format json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["understood"]["samples"] == 60
    assert printed["understood"]["views"][1] == {
        "name": "b",
        "kind": "feature",
        "features": 5,
        "file": "b.csv",
        "samples_without": 0,
        "by_position": False,
    }
    assert sum(printed["understood"]["labels_per_class"].values()) == printed["understood"]["labelled"]
    assert printed["outcome"]["found"] == LABELS.count("")
    assert sum(printed["outcome"]["found_per_class"].values()) == LABELS.count("")
    assert all(Path(path).exists() for path in printed["files"])
    run("classify a.csv b.csv --labels labels.csv --format json --dry-run")
    assert list(json.loads(capsys.readouterr().out)) == ["understood"]
    run("predict out/model.lmssc a.csv b.csv --out p.csv --format json")
    assert json.loads(capsys.readouterr().out)["samples"] == 60


def test_quiet_is_quiet(capsys):
    write_plain()
    run("classify a.csv b.csv --labels labels.csv --out out -q")
    run("predict out/model.lmssc a.csv b.csv --out p.csv -q")
    assert capsys.readouterr() == ("", "")


def test_parameters_by_cross_validation(capsys, monkeypatch):
    monkeypatch.setattr("lmssc.estimators.parameter_grid.DEFAULT_GRID", [{}, {"n_neighbors": [5]}])
    write_plain()
    run("classify a.csv b.csv --labels labels.csv --out out --cv --seed 2")
    assert re.search(
        r"Parameters chosen by cross-validation: .*; accuracy on held-out labels \d+\.\d % "
        r"\(95 % interval with \d+ labels: \d",
        capsys.readouterr().out,
    )
    search = lmssc.LMSSCCV(random_state=2).fit(VIEWS, np.array([label or None for label in LABELS], dtype=object))
    check_predictions("out/predictions.csv", search.best_estimator_)
    assert type(lmssc.load("out/model.lmssc")) is LMSSC


def test_a_folder_with_results_is_replaced_by_force_only(capsys):
    write_plain()
    Path("out").mkdir()  # an empty folder will do
    run("classify a.csv b.csv --labels labels.csv --out out -q")
    Path("out/mine.txt").write_text("mine")
    Path("out/report.html").write_text("old")
    run("classify a.csv b.csv --labels labels.csv --out out -q", code=2)
    assert "is not empty" in capsys.readouterr().err
    assert Path("out/report.html").read_text() == "old"
    run("classify a.csv b.csv --labels labels.csv --out out -q --force")
    assert Path("out/report.html").read_text() == "report"
    assert sorted(path.name for path in Path("out").iterdir()) == sorted([*FILES, "mine.txt"])


@pytest.mark.parametrize("exists", [True, False])
def test_interrupted_leaves_nothing(exists, monkeypatch, capsys):
    write_plain()
    if exists:
        Path("out").mkdir()

    def interrupt(path, *args, **kwargs):
        assert (path.parent / "predictions.csv").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr("lmssc.report.write_report", interrupt)
    run("classify a.csv b.csv --labels labels.csv --out new/deep/out -q", code=130)
    run("classify a.csv b.csv --labels labels.csv --out out -q", code=130)
    assert sorted(path.name for path in Path().iterdir()) == ["a.csv", "b.csv", "labels.csv", *["out"] * exists]
    assert not exists or not list(Path("out").iterdir())


def test_new_samples_and_samples_that_lack_views(expected):
    write_plain()
    run("classify a.csv b.csv --labels labels.csv --out out -q")
    rng = np.random.default_rng(0)
    new = {name: (view[:20] + 0.1 * rng.normal(size=view[:20].shape)).round(4) for name, view in VIEWS.items()}
    keys = [f"n{number}" for number in range(20)]
    Path("new").mkdir()
    write_csv(Path("new"), "a", new["a"], keys)
    write_csv(Path("new"), "b", new["b"][:15], keys[:15])
    run("predict out/model.lmssc new/a.csv new/b.csv --out p.csv -q")
    new["b"][15:] = np.nan
    rows = read_rows("p.csv")
    assert [row["id"] for row in rows] == keys
    assert [row["label"] for row in rows] == expected.predict(new).tolist()
    assert [float(row["p_u"]) for row in rows] == pytest.approx(expected.predict_proba(new)[:, 0].tolist(), abs=2e-6)
    Path("other.csv").write_text(Path("new/a.csv").read_text())
    run("predict out/model.lmssc a=other.csv new/b.csv --out q.csv -q")
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()


def test_prediction_in_batches_is_prediction_at_once(monkeypatch):
    write_plain()
    run("classify a.csv b.csv --labels labels.csv --out out -q")
    new = {name: view + 0.05 for name, view in VIEWS.items()}
    for name, view in new.items():
        write_csv(Path(), name, view.round(4), IDS)
    run("predict out/model.lmssc a.csv b.csv --out once.csv -q")
    monkeypatch.setattr("lmssc.cli.predict_run.MIN_BATCH", 7)
    run("predict out/model.lmssc a.csv b.csv --out parts.csv -q")
    assert Path("once.csv").read_bytes() == Path("parts.csv").read_bytes()


def test_predict_with_a_file_fewer_takes_the_view_as_missing(capsys):
    write_plain()
    run("classify a.csv b.csv --labels labels.csv --out out -q")
    write_csv(Path(), "a", VIEWS["a"].round(4) + 0.5, IDS)
    run("predict out/model.lmssc a.csv --out p.csv", code=0)
    printed = capsys.readouterr()
    assert "No file has the view 'b': it is missing for all samples." in printed.out
    assert "Warning" not in printed.err
    model = lmssc.load("out/model.lmssc")
    with pytest.warns(UserWarning, match="'b'"):
        expected = model.predict({"a": VIEWS["a"].round(4) + 0.5})
    assert [row["label"] for row in read_rows("p.csv")] == expected.tolist()


@pytest.mark.parametrize("word", ["NA", "None", "-1", "nan"])
def test_labels_that_stand_for_nothing_are_told_of_as_in_python(word, capsys):
    rows = [[n % 2 + n / 100, ["u", "v", word][n % 3]] for n in range(12)]
    Path("a.csv").write_text(table_text(["x", "label"], rows))
    run("classify a.csv --dry-run")
    text = capsys.readouterr().out
    assert f"4 labels are {word}, taken as unlabelled (if that is a class, pass --unlabelled '')." in text
    assert "2 classes" in text
    main(["classify", "a.csv", "--out", "out", "--unlabelled", "", "-q"])
    assert lmssc.load("out/model.lmssc").classes_.tolist() == sorted(["u", "v", word])


def test_labels_that_differ_in_blanks_alone_are_refused(capsys):
    rows = [[n % 2 + n / 100, ["red cat", "red  cat", "dog"][n % 3]] for n in range(12)]
    Path("a.csv").write_text(table_text(["x", "label"], rows))
    run("classify a.csv --dry-run", code=2)
    assert "column 'label': the labels 'red cat' and 'red cat' differ only in blanks" in capsys.readouterr().err


def test_a_model_saved_in_python_takes_files_by_name_or_place():
    write_plain()
    y = np.array([label or None for label in LABELS], dtype=object)
    LMSSC().fit(list(VIEWS.values()), y).save("list.lmssc")
    LMSSC().fit(VIEWS, y).save("dict.lmssc")
    run("predict list.lmssc a.csv b.csv --out one.csv -q")
    run("predict dict.lmssc b.csv a.csv --out two.csv -q")
    assert {row["id"]: row for row in read_rows("one.csv")} == {row["id"]: row for row in read_rows("two.csv")}


@pytest.mark.parametrize("dtype", ["<f2", ">f8", "<i4", "<f4", "bool"])
def test_numbers_of_any_type(dtype):
    view = (VIEWS["a"] * 3).round().astype(dtype)
    np.save("a.npy", view)
    np.save("y.npy", CODES)
    run("classify a.npy --labels y.npy --out out -q")
    truth = LMSSC().fit([view.astype(np.float32 if dtype == "<f4" else np.float64)], CODES)
    assert [int(row["label"]) for row in read_rows("out/predictions.csv")] == truth.transduction_.tolist()


@pytest.mark.parametrize(("made_of", "used_on"), [("csv", "npz"), ("npz", "csv"), ("mat", "parquet"), ("csv", "mtx")])
def test_a_model_made_of_one_format_is_used_on_another(made_of, used_on):
    names = [WRITERS[made_of][0](Path(), name, view, IDS) for name, view in VIEWS.items()]
    Path("labels.csv").write_text(label_text(IDS, LABELS))
    run(f"classify {' '.join(names)} --labels labels.csv --out out -q")
    others = [WRITERS[used_on][0](Path(), name, view, IDS) for name, view in VIEWS.items()]
    run(f"predict out/model.lmssc {' '.join(others)} --out p.csv -q")
    before = [row["label"] for row in read_rows("out/predictions.csv")]
    assert [row["label"] for row in read_rows("p.csv")] == before


def test_plain_files_need_nothing_but_the_core():
    """With everything that is an extra made impossible to import."""
    write_plain()
    np.savez("c.npz", id=np.array(IDS), c=VIEWS["a"])
    program = """
import sys
EXTRAS = {"pandas", "pyarrow", "h5py", "tqdm", "matplotlib", "polars"}
class NoExtras:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoExtras())
import lmssc.report
from lmssc.cli import main
lmssc.report.write_report = lambda path, *args, **kwargs: path.touch()
code = main("classify a.csv b.csv c.npz --labels labels.csv --out out".split())
sys.exit(code or main("predict out/model.lmssc a.csv b.csv c.npz --out p.csv".split()))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len(read_rows("p.csv")) == len(IDS)


def test_svmlight_features_by_their_numbers():
    """A new file may have features that the model does not know, and lack some that it does."""
    Path("a.svm").write_text("".join(f"{n % 2} {1 + n % 2}:1 {3 + n % 2}:1 {5 + n % 3}:0.5\n" for n in range(12)))
    Path("labels.csv").write_text("label\n" + "x\ny\n" * 2 + "NA\n" * 8)
    run("classify a.svm --labels labels.csv --out out -q")
    assert [row["label"] for row in read_rows("out/predictions.csv")] == ["x", "y"] * 6
    Path("new.svm").write_text("0 2:1 4:1\n0 1:1 3:1 900:3\n")
    run("predict out/model.lmssc a=new.svm --out p.csv -q")
    assert [row["label"] for row in read_rows("p.csv")] == ["y", "x"]


def test_the_first_numbers_of_svmlight_can_be_the_labels(capsys):
    Path("a.svm").write_text(
        "".join(f"{n % 2 + 1 if n < 6 else -1} {1 + n % 2}:1 {5 + n % 3}:0.5\n" for n in range(12))
    )
    run("classify a.svm --label-column target --out out")
    assert "6 labels are -1, taken as unlabelled" in capsys.readouterr().out
    assert [row["label"] for row in read_rows("out/predictions.csv")] == ["1", "2"] * 6


def test_labels_in_a_vector_of_an_npz(expected):
    np.savez("all.npz", ids=np.array(IDS), labels=np.array(LABELS), **VIEWS)
    run("classify all.npz --out out -q")
    check_predictions("out/predictions.csv", expected)


def test_unreached_samples_are_marked_and_told_of(capsys):
    """Two far-away clusters, labels in one of them."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2)) + np.where(np.arange(60) < 40, 0, 1000)[:, None]
    rows = [[*point, ["u", "v"][n % 2] if n < 10 else ""] for n, point in enumerate(points.tolist())]
    Path("a.csv").write_text(table_text(["x", "y", "label"], rows))
    run("classify a.csv --out out")
    captured = capsys.readouterr()
    with pytest.warns(UserWarning, match="without a label"):
        unreached = LMSSC().fit([points], np.array([row[-1] or None for row in rows], dtype=object)).unreached_
    assert set(range(40, 60)) <= set(unreached.tolist())
    assert f"No label reaches {len(unreached)} samples" in captured.out
    assert captured.err == ""
    marked = [number for number, row in enumerate(read_rows("out/predictions.csv")) if row["unreached"] == "yes"]
    assert marked == unreached.tolist()


def test_bars_on_a_terminal():
    pytest.importorskip("tqdm")
    write_plain()
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    with redirect_stderr(terminal):
        run("classify a.csv b.csv --labels labels.csv --out out")
        run("predict out/model.lmssc a.csv b.csv --out p.csv")
    shown = terminal.getvalue()
    assert all(word in shown for word in ("LMSSC", "Holding out labels to measure the accuracy", "predict"))


def test_ids_and_labels_are_kept_as_written():
    rows = [[f"{n:03d}", n % 2 + n / 100, 1.5, ["1e1", "1e2"][n % 2] if n < 6 else ""] for n in range(12)]
    Path("a.csv").write_text(table_text(["id", "x", "y", "label"], rows))
    run("classify a.csv --out out -q")
    found = read_rows("out/predictions.csv")
    assert [row["id"] for row in found] == [row[0] for row in rows]
    assert {row["label"] for row in found} == {"1e1", "1e2"}


def test_labels_by_position_in_a_file_of_one_column(expected):
    for name, view in VIEWS.items():
        np.save(f"{name}.npy", view)
    Path("y.csv").write_text("label\n" + "".join(f"{label}\n" for label in LABELS))
    run("classify a.npy b.npy --labels y.csv --out out -q")
    check_predictions("out/predictions.csv", expected, [str(number + 1) for number in range(len(IDS))])


def test_whole_numbers_that_pandas_wrote_with_a_point(capsys):
    rows = [[n % 2 + n / 100, ["-1.0", "1.0", "2.0", ""][n % 4]] for n in range(12)]
    Path("a.csv").write_text(table_text(["x", "label"], rows))
    run("classify a.csv --dry-run")
    assert "2 classes, with the number of labels of each: 1 (3), 2 (3)." in capsys.readouterr().out


def test_minus_one_is_unlabelled_unless_said_otherwise(capsys):
    rows = [[n % 2 + n / 100, [-1, 1, 2][n % 3]] for n in range(12)]
    Path("a.csv").write_text(table_text(["x", "label"], rows))
    run("classify a.csv --dry-run")
    text = capsys.readouterr().out
    assert "8 samples labelled" in text
    assert "4 labels are -1, taken as unlabelled" in text
    main(["classify", "a.csv", "--dry-run", "--unlabelled", ""])
    assert "3 classes, with the number of labels of each: -1 (4), 1 (4), 2 (4)." in capsys.readouterr().out
    run("classify a.csv --dry-run --unlabelled 2", code=0)
    assert "2 classes, with the number of labels of each: -1 (4), 1 (4)." in capsys.readouterr().out


def test_a_column_named_id_is_a_feature_if_the_ids_are_elsewhere(capsys):
    rows = [[f"k{n}", n % 2 + n / 100, n % 2 * 1.5, ["u", "v"][n % 2] if n < 6 else "", n % 2 + 0.5] for n in range(12)]
    Path("a.csv").write_text(table_text(["key", "x", "id", "kind", "label"], rows))
    run("classify a.csv --id key --label-column kind --out out")
    assert "12 samples in 1 view (rows joined by the column 'key'):\n  a  3 features" in capsys.readouterr().out
    assert [row["label"] for row in read_rows("out/predictions.csv")] == ["u", "v"] * 6
    # The model knows which column the ids were in.
    run("predict out/model.lmssc a.csv --out p.csv -q")
    assert [row["key"] for row in read_rows("p.csv")] == [row[0] for row in rows]


def test_columns_and_matrices_can_be_left_out(expected, capsys):
    np.savez("all.npz", ids=np.array(IDS), labels=np.array(LABELS), noise=np.ones((60, 2)), **VIEWS)
    run("classify all.npz --drop noise --out out -q")
    check_predictions("out/predictions.csv", expected)
    Path("all.csv").write_text(joined_text(label=LABELS, noise=np.arange(60), other=["x"] * 60))
    run("classify all.csv --prefix-sep _ --drop noise,other --out out2")
    assert "Not used in all.csv: noise, other." in capsys.readouterr().out
    check_predictions("out2/predictions.csv", expected)


def test_the_first_column_without_a_name_has_the_ids(capsys):
    """As pandas and R write it."""
    import pandas as pd

    frame = pd.DataFrame(VIEWS["a"], index=IDS).assign(label=LABELS)
    frame.to_csv("a.csv")
    frame.rename(columns=str).to_parquet("b.parquet")
    for name in ("a.csv", "b.parquet"):
        run(f"classify {name} --dry-run")
        assert (
            "60 samples in 1 view (rows joined by the column the first, which has no name)" in capsys.readouterr().out
        )
    run("classify a.csv --out out -q")
    assert [row["id"] for row in read_rows("out/predictions.csv")] == IDS


def test_paths_with_spaces_and_unicode(capsys):
    folder = Path("größe und maß")
    folder.mkdir()
    for name, view in VIEWS.items():
        write_csv(folder, name, view, [f"名{key}" for key in IDS])
    (folder / "étiquettes.csv").write_text(label_text([f"名{key}" for key in IDS], LABELS), encoding="utf-8")
    arguments = ["classify", f"{folder}/a.csv", f"{folder}/b.csv", "--labels", f"{folder}/étiquettes.csv"]
    assert main([*arguments, "--out", "ergebnis ü"]) == 0
    assert read_rows("ergebnis ü/predictions.csv")[0]["id"] == "名s000"


def test_windows_text_and_quotes_and_blank_lines():
    text = (
        view_text("a", VIEWS["a"], [f'"{key}", x' for key in IDS]).replace("\n", "\r\n").replace("\r\n", "\r\n\r\n", 1)
    )
    Path("a.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    Path("labels.csv").write_text(label_text([f'"{key}", x' for key in IDS], LABELS))
    run("classify a.csv --labels labels.csv --out out -q")
    assert read_rows("out/predictions.csv")[0]["id"] == '"s000", x'


def test_without_a_report_the_rest_is_the_same(capsys):
    Path("all.csv").write_text(joined_text(label=LABELS))
    call = "classify all.csv --prefix-sep _ --out"
    run(f"{call} with")
    assert "Holding out labels to measure the accuracy" in capsys.readouterr().out
    run(f"{call} without --no-report")
    printed = capsys.readouterr().out
    assert "Holding out labels" not in printed
    assert printed.endswith("Written to without: predictions.csv, to_label.csv, model.lmssc.\n")
    names = [name for name in FILES if name != "report.html"]
    assert sorted(path.name for path in Path("without").iterdir()) == names
    for name in ("predictions.csv", "to_label.csv"):
        assert Path("without", name).read_bytes() == Path("with", name).read_bytes()
    assert (lmssc.load("without/model.lmssc").transduction_ == lmssc.load("with/model.lmssc").transduction_).all()
    run(f"{call} with --no-report --force")
    assert "report.html in with is from an earlier run" in capsys.readouterr().out
    assert Path("with/report.html").read_text() == "report"


def test_no_report_is_told_in_the_command_to_run_again(monkeypatch):
    from lmssc.cli import classify_command

    Path("all.csv").write_text(joined_text(label=LABELS))
    commands = []
    classify = importlib.import_module("lmssc.cli.classify_run").classify
    monkeypatch.setattr(
        "lmssc.cli.classify_run.classify",
        lambda *args, **kwargs: commands.append(kwargs["command"]) or classify(*args, **kwargs),
    )
    run("classify all.csv --prefix-sep _ --out out --no-report -q")
    assert commands[0].endswith(" classify all.csv --prefix-sep _ --out out --no-report -q --force")
    assert "--no-report skips it" in classify_command.EPILOG


def test_full_report_on_the_demo_files(monkeypatch, capsys, tmp_path):
    """The README's example, as typed, on fewer digits."""
    from lmssc.cli import digits_demo as demo
    from lmssc.datasets import load_digits_views

    data = load_digits_views()
    data.views = [view[:200] for view in data.views]
    data.target = data.target[:200]
    monkeypatch.setattr(demo, "load_digits_views", lambda: data)
    run("demo --files digits --rate 0.2")
    command = capsys.readouterr().out.splitlines()[-1].split()
    assert command == ["lmssc", "classify", "digits/views/*", "--labels", "digits/labels.csv", "--out", "digits-result"]
    views = sorted(str(path) for path in Path("digits/views").iterdir())
    assert main([*command[1:2], *views, *command[3:]]) == 0
    told = capsys.readouterr().out
    assert "200 samples in 4 views (rows joined by the column 'id'):" in told
    assert "10 samples without it" in told
    truth = {row["id"]: row["label"] for row in read_rows("digits/truth.csv")}
    found = [row for row in read_rows("digits-result/predictions.csv") if row["given"] == "no"]
    assert np.mean([truth[row["id"]] == row["label"] for row in found]) > 0.85
    page = Path("digits-result/report.html").read_text(encoding="utf-8")
    assert "200 samples in 4 views" in page
    assert "lmssc classify digits/views/fourier.tsv.gz" in page
