"""Files that share a key which is not called "id" are joined by it, or `--id` is asked for."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import lmssc
from lmssc.cli import main
from lmssc.io.labelled_files import read_labelled_files
from lmssc.io.options import Options
from small_files import make_problem, table_text

VIEWS, IDS, LABELS = make_problem()
N = len(IDS)
MICE = [f"mouse-{17 * row % 101:03d}" for row in range(N)]
SHUFFLED = np.random.default_rng(2).permutation(N)
IN_ORDER = np.arange(N)


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, brief_report, quick_fits):
    monkeypatch.chdir(tmp_path)


def write_view(name, order=IN_ORDER, **keys):
    """A view of the problem with its rows in some order, and columns beside it."""
    columns = [f"{name}{number}" for number in range(VIEWS[name].shape[1])]
    rows = [[*(values[row] for values in keys.values()), *VIEWS[name][row]] for row in order]
    Path(f"{name}.csv").write_text(table_text([*keys, *columns], rows))


def write_labels(**keys):
    rows = [[*(values[row] for values in keys.values()), LABELS[row]] for row in range(N) if LABELS[row]]
    Path("labels.csv").write_text(table_text([*keys, "label"], rows))


def run(call):
    return main(call.split())


def understood(capsys, call="a.csv b.csv --labels labels.csv", code=0):
    assert main(["classify", *call.split(), "--dry-run", "--format", "json"]) == code
    captured = capsys.readouterr()
    return json.loads(captured.out)["understood"] if code == 0 else captured.err


def joined_as_by_id(call="a.csv b.csv", labels="labels.csv"):
    """Whether the samples are those of the problem, whatever the order in the files."""
    problem = read_labelled_files(call.split(), labels, Options())
    places = [MICE.index(key) for key in problem.joined.ids]
    return (
        sorted(places) == list(range(N))
        and all(np.array_equal(problem.joined.views[name], VIEWS[name][places]) for name in VIEWS)
        and problem.labels.y.tolist() == [LABELS[place] or None for place in places]
    )


SAID = "a.csv, b.csv: rows with the same 'mouse' are taken for the same sample (--id names another column)."


def test_a_shared_key_is_used_and_told_of(capsys):
    """Joined by position, and with the key as a feature, .969 became .635."""
    write_view("a", mouse=MICE)
    write_view("b", SHUFFLED, mouse=MICE)
    write_labels(mouse=MICE)
    found = understood(capsys)
    assert found["notes"] == [SAID]
    assert found["id_columns"] == ["mouse"]
    assert [view["features"] for view in found["views"]] == [6, 5]
    assert joined_as_by_id()
    # New files are joined by it, too, though there are few rows to see it by.
    assert run("classify a.csv b.csv --labels labels.csv --out out -q") == 0
    write_view("a", [3, 1], mouse=MICE)
    write_view("b", [1], mouse=MICE)
    assert run("predict out/model.lmssc a.csv b.csv --out p.csv") == 0
    assert "2 samples in 2 views (rows joined by the column 'mouse'):" in capsys.readouterr().out
    with open("p.csv", newline="") as file:
        assert [next(iter(row.values())) for row in csv.DictReader(file)] == [MICE[3], MICE[1]]


def test_a_shared_key_of_numbers_is_kept_as_written(capsys):
    numbers = [f"{7 * row % 61:04d}" for row in range(N)]
    write_view("a", nr=numbers)
    write_view("b", SHUFFLED, nr=numbers)
    write_labels(nr=numbers)
    assert understood(capsys)["notes"] == [SAID.replace("mouse", "nr")]
    problem = read_labelled_files(["a.csv", "b.csv"], "labels.csv", Options())
    assert problem.joined.ids.tolist() == numbers
    np.testing.assert_array_equal(problem.joined.views["b"], VIEWS["b"])


def test_a_shared_key_may_have_another_name_in_each_file():
    write_view("a", mouse=MICE)
    write_view("b", SHUFFLED, animal=MICE)
    write_labels(subject=MICE)
    assert joined_as_by_id()


def test_a_key_of_a_file_beside_one_with_ids():
    write_view("a", id=MICE)
    write_view("b", SHUFFLED, mouse=MICE)
    write_labels(mouse=MICE)
    assert joined_as_by_id()


def test_a_key_that_only_the_labels_share(capsys):
    write_view("a", SHUFFLED, mouse_id=MICE)
    write_labels(mouse_id=MICE)
    found = understood(capsys, "a.csv --labels labels.csv")
    assert found["notes"] == [
        "a.csv: rows with the same 'mouse_id' are taken for the same sample (--id names another column)."
    ]
    problem = read_labelled_files(["a.csv"], "labels.csv", Options())
    assert problem.labels.y.tolist() == [LABELS[row] or None for row in SHUFFLED]


def test_several_columns_that_may_be_the_key_are_asked_about(capsys):
    tags = [f"tag{row}" for row in range(N)]
    write_view("a", mouse=MICE, tag=tags)
    write_view("b", SHUFFLED, mouse=MICE, tag=tags)
    write_labels(mouse=MICE)
    message = understood(capsys, code=2)
    assert "a.csv, b.csv share several columns that may be ids: mouse, tag; say which with --id NAME" in message
    assert understood(capsys, "a.csv b.csv --labels labels.csv --id mouse")["id_columns"] == ["mouse"]


def test_a_forgotten_id_is_suggested(capsys):
    """Some samples lack a view: the values are not the same, so that it is not certain."""
    write_view("a", mouse_id=MICE)
    write_view("b", SHUFFLED[:50], mouse_id=MICE)
    write_labels(mouse_id=MICE)
    message = understood(capsys, code=2)
    assert "both have a column 'mouse_id', with 50 values in common and 10 that only one of them has" in message
    assert "pass --id mouse_id, else --drop mouse_id" in message
    found = understood(capsys, "a.csv b.csv --labels labels.csv --id mouse_id")
    assert [view["samples_without"] for view in found["views"]] == [0, 10]


def test_a_forgotten_id_with_repeated_values_is_suggested(capsys):
    cages = [f"cage {row % 7}" for row in range(N)]
    write_view("a", cage_id=cages)
    write_view("b", SHUFFLED, cage_id=cages)
    Path("labels.csv").write_text(table_text(["label"], [[label] for label in LABELS]))
    assert "different values in the same rows; if it has the ids of the samples, pass --id cage_id" in understood(
        capsys, code=2
    )


def test_a_forgotten_id_of_text_is_suggested_where_views_would_get_its_name(capsys):
    notes = [f"a note on number {row}" for row in range(N)]
    write_view("a", note=notes)
    write_view("b", note=[f"another note on number {row}" for row in range(N)])
    Path("labels.csv").write_text(table_text(["label"], [[label] for label in LABELS]))
    assert "two views would be named 'note', from a.csv and b.csv; pass --id note if that column has" in understood(
        capsys, code=2
    )


def test_files_without_a_key_are_joined_by_position(capsys):
    write_view("a")
    write_view("b")
    Path("labels.csv").write_text(table_text(["label"], [[label] for label in LABELS]))
    found = understood(capsys)
    assert (found["id_columns"], found["notes"]) == ([], [])
    # Columns that are said to be features, or nothing, are no keys.
    write_view("a", nr=range(N))
    write_view("b", SHUFFLED, nr=range(N))
    assert "in different orders" in understood(capsys, code=2)
    write_view("a", rank=range(N))
    write_view("b", SHUFFLED, rank=range(N))
    assert "are they ids or ranks?" in understood(capsys, code=2)
    assert understood(capsys, "a.csv b.csv --labels labels.csv --drop rank")["id_columns"] == []
    assert understood(capsys, "a.csv b.csv --labels labels.csv --type rank=number")["id_columns"] == []


def test_keys_in_parquet():
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    for name, order in (("a", IN_ORDER), ("b", SHUFFLED)):
        columns = {f"{name}{c}": VIEWS[name][order, c] for c in range(VIEWS[name].shape[1])}
        table = pyarrow.table({"mouse": [MICE[row] for row in order], **columns})
        pyarrow.parquet.write_table(table, f"{name}.parquet")
    write_labels(mouse=MICE)
    assert joined_as_by_id("a.parquet b.parquet")


def test_models_from_before_are_read(tmp_path):
    """What an older version wrote says nothing of kinds and keys."""
    write_view("a", id=MICE)
    write_labels(id=MICE)
    assert run("classify a.csv --labels labels.csv --out out -q") == 0
    model = lmssc.load("out/model.lmssc")
    recipes = {
        name: {"kind": "numbers", "columns": recipe["columns"]} for name, recipe in model.files_["views"].items()
    }
    model.files_ = {"id_column": None, "label_column": None, "views": recipes}
    model.save("old.lmssc")
    for name in ("out/model", "old"):
        assert run(f"predict {name}.lmssc a.csv --out p.csv --force -q") == 0
    found = [line.split(",")[1] for line in Path("p.csv").read_text().splitlines()[1:]]
    assert found == model.transduction_.tolist()
