"""How `lmssc classify` and `lmssc predict` interpret the columns of tables."""

import csv
import datetime
import json
import uuid
from pathlib import Path

import numpy as np
import pytest

import lmssc
from lmssc.cli import main
from lmssc.io.labelled_files import read_labelled_files
from lmssc.io.options import Options
from small_files import table_text

N = 60
RNG = np.random.default_rng(5)
TRUTH = np.arange(N) % 2
LABELS = [f"c{code}" if row < 12 else "" for row, code in enumerate(TRUTH)]
X = (3 * TRUTH + RNG.normal(size=N)).round(3)


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, brief_report, quick_fits):
    monkeypatch.chdir(tmp_path)


def write_table(name="t.csv", rows=slice(None), **columns):
    """A file with the columns, as CSV or Parquet."""
    columns = {key: list(values)[rows] for key, values in columns.items()}
    if name.endswith(".parquet"):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table(columns), name)
    else:
        text = table_text(list(columns), zip(*columns.values(), strict=True), ";" if name.endswith("eu.csv") else ",")
        Path(name).write_text(text, encoding="utf-8")
    return name


def run(call):
    return main(call.split())


def understood(capsys, *arguments, code=0):
    """What is told of files, as data; or the error."""
    assert main(["classify", *arguments, "--dry-run", "--format", "json"]) == code
    captured = capsys.readouterr()
    return json.loads(captured.out)["understood"] if code == 0 else captured.err


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers_of(*arguments, **options):
    """The view of numbers that is made of a file."""
    return read_labelled_files(arguments, None, Options(**options)).joined.views["t"]


DAYS = [(datetime.date(2021, 1, 1) + datetime.timedelta(days=3 * row)).isoformat() for row in range(N)]
COLOURS = [["red", "green", "blue"][row % 3] for row in range(N)]
YES = [["yes", "no"][row % 2] for row in range(N)]
# name: (cells, features that they become, what is told)
COLUMNS = {
    "yes or no": (YES, 1, "t.*: yes/no, as 1 and 0: c."),
    "true or false": ([["True", "FALSE"][row % 2] for row in range(N)], 1, "t.*: yes/no, as 1 and 0: c."),
    "0 or 1": ([str(row % 2) for row in range(N)], 1, None),
    "a category": (COLOURS, 3, "t.*: categories, one feature per value: c (3)."),
    "many values": (
        [f"town {row % 25 if row < 50 else 0}" for row in range(3 * N)],
        20,
        "t.*: categories, one feature per value: c (20 of 25).",
    ),
    "days": (DAYS, 0, "Not used in t.*: c (dates; --type overrides this)."),
    "days as in Germany": ([f"{row % 28 + 1}.{row % 12 + 1}.2020" for row in range(N)], 0, "Not used in t.*: c (dates"),
    "days as in America": ([f"{row % 12 + 1}/{row % 28 + 1}/99" for row in range(N)], 0, "Not used in t.*: c (dates"),
    "days in words": ([f"{row % 28 + 1} Mar 2020" for row in range(N)], 0, "Not used in t.*: c (dates"),
    "days and times": ([f"{day} 12:{row:02d}:00" for row, day in enumerate(DAYS)], 0, "Not used in t.*: c (dates"),
    "days, some not known": ([*DAYS[:-2], "unknown", ""], 0, "Not used in t.*: c (dates"),
    "days as numbers": ([day.replace("-", "") for day in DAYS], 0, "Not used in t.*: c (dates"),
    "UUIDs": (
        [str(uuid.UUID(int=row << 90)) for row in range(N)],
        0,
        "Not used in t.*: c (looks like ids; use --id NAME",
    ),
    "tokens": ([f"AB-{row:04d}" for row in range(N)], 0, "Not used in t.*: c (looks like ids; use --id NAME"),
    "running numbers": (
        [str(1001 + row) for row in RNG.permutation(N)],
        0,
        "Not used in t.*: c (looks like ids; use --id NAME",
    ),
    "a constant": (["so"] * N, 0, "Not used in t.*: c (the same in all rows; --type"),
    "nothing": ([""] * N, 0, "Not used in t.*: c (blank; --type overrides this)."),
    "percent": ([f"{row % 7}.5%" for row in range(N)], 1, "t.*: numbers with a unit: c (%)."),
    "dollars": ([f"${1 + row % 7},000.25" for row in range(N)], 1, "t.*: numbers with a unit: c ($)."),
    "euros": ([f"{row % 7} €" for row in range(N)], 1, "t.*: numbers with a unit: c (€)."),
    "a unit": ([f"{row % 7}.25 kg" for row in range(N)], 1, "t.*: numbers with a unit: c (kg)."),
    "thousands": (
        [f"{1234.5 + 100 * (row % 9):,.2f}" for row in range(N)],
        1,
        "t.*: numbers with separated thousands: c.",
    ),
    "plain numbers": ([f"{row % 7}.5" for row in range(N)], 1, None),
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("case", COLUMNS)
def test_column_types_are_recognised(case, ending, capsys):
    cells, n_features, told = COLUMNS[case]
    repeat = len(cells) // N
    path = write_table(f"t.{ending}", x=[*X] * repeat, c=cells, label=LABELS * repeat)
    found = understood(capsys, path)
    assert [(view["name"], view["features"]) for view in found["views"]] == [("t", 1 + n_features)]
    if told is None:
        assert found["notes"] == []
    else:
        assert any(note.startswith(told.replace("t.*", path)) for note in found["notes"]), found["notes"]


@pytest.mark.parametrize("case", [case for case, (_, n_features, _) in COLUMNS.items() if n_features])
def test_csv_and_parquet_give_the_same_numbers(case):
    cells, *_ = COLUMNS[case]
    repeat = len(cells) // N
    columns = {"x": [*X] * repeat, "c": cells, "label": LABELS * repeat}
    views = [numbers_of(write_table(f"t.{ending}", **columns)) for ending in ("csv", "parquet")]
    np.testing.assert_array_equal(*views)
    if case == "thousands":
        assert views[0][:2, 1].tolist() == [1234.5, 1334.5]


def test_types_of_parquet(capsys):
    """A column of booleans is that of a CSV file with True and False; days are left out."""
    days = [datetime.date.fromisoformat(day) for day in DAYS]
    write_table("t.parquet", x=X, paid=[bool(code) for code in TRUTH], day=days, label=LABELS)
    found = understood(capsys, "t.parquet")
    assert found["views"][0]["features"] == 2
    assert found["notes"] == [
        "t.parquet: yes/no, as 1 and 0: paid.",
        "Not used in t.parquet: day (dates; --type overrides this).",
    ]
    write_table("t.csv", x=X, paid=[bool(code) for code in TRUTH], label=LABELS)
    np.testing.assert_array_equal(numbers_of("t.parquet"), numbers_of("t.csv"))


def test_types_can_be_told(capsys):
    write_table(x=X, day=DAYS, zip=[f"0{10 + row % 4}" for row in range(N)], label=LABELS)
    assert main(["classify", "t.csv", "--type", "day=text", "--type", "zip=category", "--out", "out", "-q"]) == 0
    kinds = lmssc.load("out/model.lmssc").files_["views"]["t"]["kinds"]
    assert kinds == {"zip": {"role": "category", "levels": ["010", "011", "012", "013"], "blank": False}}
    found = understood(capsys, "t.csv", "--type", "day=text")
    assert [(view["name"], view["kind"]) for view in found["views"]] == [("t", "feature"), ("day", "word")]
    # The zeros in front are there in new files, too.
    write_table("new.csv", rows=slice(9), x=X, day=DAYS, zip=["010"] * N)
    assert run("predict out/model.lmssc t=new.csv --out p.csv") == 0
    assert "with values unknown to the model" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x=date", "--type 'x=date' must be NAMES=KIND, where KIND is number, category, text"),
        ("number", "--type 'number' must be NAMES=KIND"),
        ("y=number", "--type y: no file has such a column"),
    ],
)
def test_types_that_cannot_be(given, message, capsys):
    write_table(x=X, label=LABELS)
    assert message in understood(capsys, "t.csv", "--type", given, code=2)


def make_texts(seed, n_samples=800, n_labelled=37):
    """Texts and numbers of four classes, and columns that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{number}" for number in range(600)])
    truth = rng.integers(0, 4, n_samples)
    common = rng.dirichlet(np.full(600, 0.3))
    special = rng.dirichlet(np.full(600, 0.05), 4)
    texts = [
        " ".join(rng.choice(words, size=rng.integers(8, 20), p=0.6 * common + 0.4 * special[code])) for code in truth
    ]
    centres = 0.9 * np.array([[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    numbers = (rng.normal(size=(n_samples, 4)) + centres[truth]).round(4)
    paid = np.where(rng.random(n_samples) < 0.5, "yes", "no")
    day = np.datetime64("2020-01-01") + rng.integers(0, 900, n_samples)
    known = rng.permutation(n_samples) < n_labelled
    labels = [f"c{code}" if given else "" for code, given in zip(truth, known, strict=True)]
    columns = {f"n{column}": numbers[:, column] for column in range(4)}
    return truth, known, {"text": texts, **columns}, {"paid": paid, "day": day.astype(str)}, labels


def accuracy(truth, known, labels, **columns):
    problem = read_labelled_files([write_table(**columns, label=labels)], None, Options())
    model = lmssc.LMSSC(scaling=problem.scaling, random_state=0)
    model.fit(problem.joined.views, problem.labels.y, problem.joined.sparse_masks)
    return np.mean(model.transduction_[~known] == np.char.add("c", truth.astype(str))[~known])


def test_columns_of_nothing_do_not_take_accuracy_away():
    """Of 800 texts with 37 labels: a column of yes and no, and one of days, were views of full weight."""
    found = []
    for seed in range(2):
        truth, known, columns, more, labels = make_texts(seed)
        plain = accuracy(truth, known, labels, **columns)
        assert plain > 0.65
        found.append([plain, accuracy(truth, known, labels, **columns, day=more["day"])])
        assert found[-1][0] == found[-1][1]
        found[-1].append(accuracy(truth, known, labels, **columns, **more))
    plain, _, both = np.mean(found, axis=0)
    assert both > plain - 0.03


def test_predict_takes_the_columns_as_classify_did(capsys):
    columns = {"x": X, "paid": YES, "colour": COLOURS, "share": [f"{row % 9}%" for row in range(N)], "day": DAYS}
    write_table(**columns, label=LABELS)
    assert run("classify t.csv --out out") == 0
    capsys.readouterr()
    model = lmssc.load("out/model.lmssc")
    assert model.files_["views"]["t"]["kinds"] == {
        "paid": {"role": "yes/no", "blank": False},
        "colour": {"role": "category", "levels": ["blue", "green", "red"], "blank": False},
        "share": {"role": "number", "unit": "%"},
    }
    before = [row["label"] for row in read_rows("out/predictions.csv")]
    # A few rows do not show what the columns are.
    new = {**columns, "paid": [value == "yes" for value in YES], "colour": ["red"] * N}
    for rows in (slice(3), slice(1)):
        write_table("t.csv", rows=rows, **columns)
        assert run("predict out/model.lmssc t.csv --out p.csv --force") == 0
        assert [row["label"] for row in read_rows("p.csv")] == before[rows]
        assert "with values unknown to the model" not in capsys.readouterr().out
    # Parquet, in which yes is true; and a colour that was not there.
    write_table("t.parquet", rows=slice(8), **{**new, "colour": ["red", "pink"] * (N // 2)})
    assert run("predict out/model.lmssc t.parquet --out p.csv --force") == 0
    assert (
        "t.parquet, column 'colour': 4 cells with values unknown to the model (pink); they count as none of "
        "the known ones." in capsys.readouterr().out
    )
    # A number without its unit may be something else.
    write_table("t.csv", rows=slice(8), **{**columns, "share": [0.1] * N})
    assert run("predict out/model.lmssc t.csv --out p.csv --force") == 2
    assert "column 'share': its numbers have no unit, but those of the model are in '%'" in capsys.readouterr().err


def test_an_unseen_answer_beside_yes_and_no_is_blank(capsys):
    write_table(x=X, paid=YES, label=LABELS)
    assert run("classify t.csv --out out -q") == 0
    write_table(rows=slice(4), x=X, paid=["yes", "perhaps", "no", "no"] * 15)
    assert run("predict out/model.lmssc t.csv --out p.csv") == 0
    told = capsys.readouterr().out
    assert "column 'paid': 1 cell with neither yes nor no (perhaps); taken as blank." in told
    assert "column 'paid': 1 blank cell, of which the model saw none; taken as none of the values" in told


def amounts(cell, n=N):
    """A column of amounts with one cell that is looked at."""
    return [cell, *(str(100 + 7 * (row % 40)) for row in range(1, n))]


# name: (cells, delimiter, what the first becomes, or the error)
NUMERALS = {
    "thousands": (amounts("2,948"), ",", 2948),
    "thousands and decimals": (amounts("2,948.5"), ",", 2948.5),
    "thousands beside decimals": (["2,948", *map(str, X[1:])], ",", 2948),
    "millions": (amounts("1,002,948"), ",", 1002948),
    "thousands by apostrophes": (amounts("2'948.5"), ",", 2948.5),
    "thousands beside thousands written plainly": (
        ["2,948", *(str(1000 + row % 9) for row in range(1, N))],
        ",",
        "t.csv, line 2, column 'c': '2,948' is ambiguous",
    ),
    "a decimal comma": (
        amounts("3,14"),
        ",",
        "t.csv, line 2, column 'c': '3,14' has a decimal comma; write a point, or",
    ),
    "thousands below 1": (amounts("0,948"), ",", "t.csv, line 2, column 'c': '0,948' has a decimal comma"),
    "underscores": (amounts("1_000"), ",", "t.csv, line 2, column 'c': '1_000' is not a number"),
    "another unit": (
        ["5 mm", *(f"{row % 9} cm" for row in range(1, N))],
        ",",
        "t.csv, line 2, column 'c': '5 mm' is not in 'cm', unlike the other cells of the column",
    ),
    "a currency and none": (["12", *(f"${row % 9}" for row in range(1, N))], ",", "'12' is not in '$'"),
    "decimal commas": ([f"{row % 7 + 1},25" for row in range(N)], ";", 1.25),
    "decimal commas and thousands": (["1.234,56", *(f"{row % 7 + 1},25" for row in range(1, N))], ";", 1234.56),
    "thousands only, beside decimal commas": (["1.234", *(f"{row % 7 + 1},25" for row in range(1, N))], ";", 1234),
    "decimal points": ([f"{row % 7 + 1}.25" for row in range(N)], ";", 1.25),
    "three digits behind a point": (
        [f"{row % 7 + 1}.250" for row in range(N)],
        ";",
        "t.eu.csv, line 2, column 'c': '1.250' is ambiguous, its mark may separate thousands or decimals;",
    ),
    "both marks": (["3.14", *(f"{row % 7 + 1},25" for row in range(1, N))], ";", "has a decimal comma; write a point"),
}


@pytest.mark.parametrize("case", NUMERALS)
def test_numbers_as_people_write_them(case, capsys):
    cells, delimiter, expected = NUMERALS[case]
    whole = [str(row % 7) for row in range(N)]  # says nothing of decimals
    name = write_table("t.eu.csv" if delimiter == ";" else "t.csv", x=whole, c=cells, label=LABELS)
    if isinstance(expected, str):
        assert expected in understood(capsys, f"t={name}", code=2)
    else:
        assert read_labelled_files([f"t={name}"], None, Options()).joined.views["t"][0, 1] == expected


def test_a_european_file_is_read_as_it_is(capsys):
    """Semicolons, decimal commas and points between thousands, as spreadsheets write them there."""
    amount = [f"{1000 * row + 0.5:,.2f}".translate(str.maketrans(",.", ".,")) for row in range(N)]
    write_table("eu.csv", x=[str(value).replace(".", ",") for value in X], amount=amount, label=LABELS)
    found = understood(capsys, "t=eu.csv")
    assert found["notes"][0] == (
        "eu.csv is delimited by ';'. eu.csv has decimal commas (use --decimal . if they separate thousands)."
    )
    problem = read_labelled_files(["t=eu.csv"], None, Options())
    np.testing.assert_array_equal(problem.joined.views["t"], np.c_[X, 1000 * np.arange(N) + 0.5])
    # A single row does not tell, but the model does.
    assert run("classify t=eu.csv --out out -q") == 0
    Path("new.csv").write_text("x;amount\n2;1.000\n")
    assert run("predict out/model.lmssc t=new.csv --out p.csv -q") == 0
    Path("new.csv").write_text("x;amount\n2;1000\n")
    assert run("predict out/model.lmssc t=new.csv --out q.csv -q") == 0
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_decimal_can_be_told(capsys):
    write_table(x=[str(value).replace(".", ",") for value in X], c=amounts("2,948"), label=LABELS)
    assert "has a decimal comma; write a point, or pass --decimal , if all cells have one" in understood(
        capsys, "t.csv", code=2
    )
    view = numbers_of("t.csv", decimal=",")
    np.testing.assert_array_equal(view[:, 0], X)
    assert view[0, 1] == 2.948
    assert understood(capsys, "t.csv", "--decimal", ",")["views"][0]["features"] == 2
    write_table("eu.csv", x=[f"{row % 7 + 1}.250" for row in range(N)], label=LABELS)
    assert numbers_of("t=eu.csv", decimal=".")[0, 0] == 1.25
    assert numbers_of("t=eu.csv", decimal=",")[0, 0] == 1250


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("t.svm", "0 1:1_000\n1 1:2\n", "t.svm, line 1: '1:1_000' is not of the form feature:value"),
        (
            "t.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1_000\n",
            "t.mtx, line 4: expected 3 numbers",
        ),
    ],
)
def test_underscores_are_no_digits_in_sparse_files(file, content, message, capsys):
    Path(file).write_text(content)
    Path("y.csv").write_text("label\nu\nv\n")
    assert message in understood(capsys, file, "--labels", "y.csv", code=2)


def holed(values, *rows):
    return ["" if row in rows else value for row, value in enumerate(values)]


def test_one_blank_cell_does_not_stop_everything(capsys):
    z = RNG.normal(size=N).round(3)
    write_table(x=holed(X, 3), z=holed(z, 7, 8), colour=holed(COLOURS, 9), label=LABELS)
    assert run("classify t.csv --out out") == 0
    told = capsys.readouterr().out
    assert "t.csv: 3 blank cells filled in with the column median: x (1), z (2)." in told
    assert "colour (3, 1 blank as a value of their own)" in told
    model = lmssc.load("out/model.lmssc")
    assert model.impute == "median"
    assert model.imputed_["t"].tolist() == [1, 2, 0, 0, 0, 0]
    filled = numbers_of("t.csv")
    median = np.nanmedian(filled, axis=0)
    full = np.where(np.isnan(filled), median, filled)
    expected = lmssc.LMSSC(scaling={"t": "mixed"}, random_state=0).fit({"t": full}, [label or None for label in LABELS])
    assert [row["label"] for row in read_rows("out/predictions.csv")] == expected.transduction_.tolist()
    # New samples are filled in with what was learned.
    write_table(rows=slice(5), x=[""] * N, z=z, colour=COLOURS)
    assert run("predict out/model.lmssc t.csv --out p.csv") == 0
    assert "t.csv: 5 blank cells filled in with the column median: x (5)." in capsys.readouterr().out
    new = np.c_[np.full(5, median[0]), z[:5], full[:5, 2:]]
    assert [row["label"] for row in read_rows("p.csv")] == expected.predict({"t": new}).tolist()


def test_impute_none_refuses_blank_cells_as_ever(capsys):
    write_table(x=X, z=holed(X, 7), label=LABELS)
    message = "t.csv, line 9, column 'z': blank or NaN; fill it in, or use --impute"
    assert message in understood(capsys, "t.csv", "--impute", "none", code=2)
    assert "with the column mean: z (1)" in str(understood(capsys, "t.csv", "--impute", "mean")["notes"])
    write_table(x=X, z=X, label=LABELS)
    assert run("classify t.csv --impute none --out out -q") == 0
    write_table(x=X, z=holed(X, 7))
    assert run("predict out/model.lmssc t.csv --out p.csv") == 2
    assert "t.csv, line 9, column 'z': blank or NaN" in capsys.readouterr().err


def test_rows_in_another_order_are_understood_alike(capsys):
    columns = {"x": X, "c": COLOURS, "n": np.arange(N), "code": [f"k{row}" for row in range(N)], "label": LABELS}
    order = RNG.permutation(N)
    write_table(**columns)
    one = understood(capsys, "t.csv")
    write_table(**{name: [values[row] for row in order] for name, values in columns.items()})
    assert understood(capsys, "t.csv") == one
