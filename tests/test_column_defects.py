"""What a column of a table is: cells that mislead, in `lmssc classify` and `lmssc predict`."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import lmssc
from lmssc.cli import main
from lmssc.data.labels import encode_labels
from lmssc.data.outliers import find_outliers
from lmssc.data.view import RawView
from lmssc.io.column_types import Kind
from lmssc.io.labelled_files import read_labelled_files
from lmssc.io.options import Options
from small_files import table_text

N = 150
RNG = np.random.default_rng(5)
TRUTH = RNG.integers(0, 2, N)
CLASSES = ["AB"[code] for code in TRUTH]
LABELS = ["" if row % 3 else name for row, name in enumerate(CLASSES)]
NOISE = RNG.normal(size=N).round(3)


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, brief_report, quick_fits):
    monkeypatch.chdir(tmp_path)


def write_table(name="t.csv", **columns):
    if name.endswith(".parquet"):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({key: list(cells) for key, cells in columns.items()}), name)
    else:
        Path(name).write_text(table_text(list(columns), zip(*columns.values(), strict=True)), encoding="utf-8")
    return name


def understood(capsys, *arguments, code=0):
    """What is told of files, as data; or the error."""
    assert main(["classify", *arguments, "--dry-run", "--format", "json"]) == code
    captured = capsys.readouterr()
    return json.loads(captured.out)["understood"] if code == 0 else captured.err


def accuracy(path="out/predictions.csv"):
    """Of the labels that were not given."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = [(row["label"] == name) for row, name, given in zip(rows, CLASSES, LABELS, strict=True) if not given]
    return np.mean(found)


def numbers_of(path="t.csv", **options):
    return read_labelled_files([path], None, Options(**options)).joined.views["t"]


# --- blank cells of categories ---------------------------------------------------------------------------------------

SEVERITIES = ["None" if code else ("Mild" if RNG.random() < 0.7 else "Severe") for code in TRUTH]


@pytest.mark.parametrize("word", ["None", "NA", "", "?"])
def test_a_blank_in_a_category_is_a_value_of_its_own(word, capsys):
    cells = [word if cell == "None" else cell for cell in SEVERITIES]
    write_table(x=NOISE, sev=cells, label=LABELS)
    told = f"t.csv: categories, one feature per value: sev (2, {cells.count(word)} blank as a value of their own)."
    assert told in understood(capsys, "t.csv")["notes"]
    assert main(["classify", "t.csv", "--out", "out", "-q"]) == 0
    assert accuracy() > 0.95
    write_table(x=NOISE, sev=cells)
    assert main(["predict", "out/model.lmssc", "t.csv", "--out", "p.csv", "-q"]) == 0
    assert accuracy("p.csv") > 0.95


# Every third row has a label, so all of one colour.
@pytest.mark.filterwarnings("ignore:labelled samples lie among themselves")
def test_a_blank_that_fit_did_not_have_is_none_of_the_values(capsys):
    colours = [["red", "green", "blue"][row % 3] for row in range(N)]
    answers = [["yes", "no"][row % 2] for row in range(N)]
    write_table(x=NOISE, colour=colours, paid=answers, label=LABELS)
    assert main(["classify", "t.csv", "--out", "out", "-q"]) == 0
    recipe = lmssc.load("out/model.lmssc").files_["views"]["t"]
    assert recipe["kinds"]["colour"] == {"role": "category", "levels": ["blue", "green", "red"], "blank": False}
    write_table(x=NOISE, colour=["", *colours[1:]], paid=["NA", *answers[1:]])
    assert main(["predict", "out/model.lmssc", "t.csv", "--out", "p.csv"]) == 0
    assert "filled in" not in capsys.readouterr().out
    from lmssc.cli.predict_run import read_new_samples

    samples = read_new_samples(["t.csv"], lmssc.load("out/model.lmssc"), Options())
    assert samples.joined.views["t"][0, 1:].tolist() == [0, 0, 0, 0.5]


def test_a_blank_is_neither_yes_nor_no(capsys):
    answers = [["yes", "no", "NA"][row % 3] for row in range(N)]
    write_table(x=NOISE, paid=answers, label=LABELS)
    assert f"t.csv: yes/no, as 1 and 0: paid ({N // 3} blank as a value of their own)." in str(
        understood(capsys, "t.csv")["notes"]
    )
    np.testing.assert_array_equal(numbers_of()[:3, 1:], [[1, 0], [0, 0], [0, 1]])
    write_table("t.parquet", x=NOISE, paid=[[True, False, None][row % 3] for row in range(N)], label=LABELS)
    np.testing.assert_array_equal(numbers_of("t.parquet")[:3, 1:], [[1, 0], [0, 0], [0, 1]])


def test_a_tick_beside_blanks_is_a_value():
    write_table(x=NOISE, tick=["x" if code else "" for code in TRUTH], label=LABELS)
    np.testing.assert_array_equal(numbers_of()[:, 1], TRUTH)


def test_numbers_are_still_filled_in_and_impute_none_still_refuses(capsys):
    write_table(x=["", *NOISE[1:]], sev=SEVERITIES, label=LABELS)
    notes = understood(capsys, "t.csv")["notes"]
    assert "t.csv: 1 blank cell filled in with the column median: x (1)." in notes
    write_table(x=NOISE, sev=SEVERITIES, label=LABELS)
    first = 2 + SEVERITIES.index("None")
    message = f"t.csv, line {first}, column 'sev': blank or NaN"
    assert message in understood(capsys, "t.csv", "--impute", "none", code=2)


def test_a_row_of_blanks_lacks_the_view():
    write_table(id=range(1000, 1000 + N), x=["", *NOISE[1:]], sev=["NA", *SEVERITIES[1:]], label=LABELS)
    write_table("b.csv", id=range(1000, 1000 + N), z=NOISE)
    joined = read_labelled_files(["t.csv", "b.csv"], None, Options()).joined
    assert np.flatnonzero(~joined.present["t"]).tolist() == [0]
    # But "None" in all of a row's categories is an answer.
    write_table(id=range(1000, 1000 + N), one=SEVERITIES, two=SEVERITIES, label=LABELS)
    assert read_labelled_files(["t.csv"], None, Options()).joined.present["t"].all()


def test_models_of_before_fill_blank_categories_in():
    assert Kind.from_data({"role": "category", "levels": ["a", "b"]}).blank is None


# --- spellings -------------------------------------------------------------------------------------------------------


def test_values_that_differ_in_case_only_are_one(capsys):
    sex = [("m" if row % 2 else "M") if code else "f" for row, code in enumerate(TRUTH)]
    write_table(x=NOISE, sex=sex, label=LABELS)
    assert "t.csv: categories, one feature per value: sex (2)." in understood(capsys, "t.csv")["notes"]
    np.testing.assert_array_equal(numbers_of()[:, 2], TRUTH)


def test_several_words_for_yes_and_no(capsys):
    cells = [["TRUE", "False", "t", "F"][row % 4] for row in range(N)]
    write_table(x=NOISE, paid=cells, label=LABELS)
    assert "t.csv: yes/no, as 1 and 0: paid." in understood(capsys, "t.csv")["notes"]
    np.testing.assert_array_equal(numbers_of()[:4, 1], [1, 0, 1, 0])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_constant_number_is_left_out(ending, capsys):
    path = write_table(f"t.{ending}", x=NOISE, c=[7.5] * N, label=LABELS)
    found = understood(capsys, path)
    assert found["views"][0]["features"] == 1
    assert f"Not used in {path}: c (the same in all rows; --type overrides this)." in found["notes"]


# --- numbers that people write ---------------------------------------------------------------------------------------


def test_a_minus_sign_is_a_minus(capsys):
    write_table(
        x=[f"\u2212{40 + row}.40" for row in range(N)], z=[f"{v}".replace("-", "\u2212") for v in NOISE], label=LABELS
    )
    assert understood(capsys, "t.csv")["notes"] == []
    np.testing.assert_array_equal(numbers_of(), np.c_[-40.4 - np.arange(N), NOISE])


@pytest.mark.parametrize("word", ["?", "-", ".", "#DIV/0!"])
def test_signs_for_unknown_among_numbers_are_blank_and_told(word, capsys):
    write_table(x=[word, word, *NOISE[2:]], z=NOISE, label=LABELS)
    notes = understood(capsys, "t.csv")["notes"]
    assert f"t.csv: cells that count as blank: x ({word!r}: 2)." in notes
    assert "t.csv: 2 blank cells filled in with the column median: x (2)." in notes
    assert np.isnan(numbers_of()[:2, 0]).all()


@pytest.mark.parametrize(
    "cells",
    [
        ["2XL", "3XL", "M"],
        ["12", "14", "12a"],
        ["7.1", "8.2", "<6.4"],
        ["1.5", "2.5", "(15.94)"],
        ["1st", "2nd", "4th"],
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_not_a_number_names_the_way_out(cells, ending, capsys):
    column = [cells[min(row % 4, 2)] if row % 4 != 3 else cells[0] for row in range(N)]
    path = write_table(f"t.{ending}", x=NOISE, c=column, label=LABELS)
    code = main(["classify", path, "--dry-run"])
    captured = capsys.readouterr()
    if code:
        assert "--type c=category, --type c=text, or leave it out with --drop c" in captured.err
    else:
        assert "categories, one feature per value: c (3)" in captured.out
    for option in ("--type c=category", "--type c=text", "--drop c"):
        assert main(["classify", path, "--dry-run", *option.split()]) == 0


def test_durations_are_numbers(capsys):
    seconds = np.where(TRUTH, 500, 300) + RNG.integers(-60, 60, N)
    cells = [f"{value // 60}:{value % 60:02d}" for value in seconds]
    write_table(time=cells, label=LABELS)
    told = "t.csv: times such as 5:00 or 1:05:00, as numbers of seconds: time."
    assert told in understood(capsys, "t.csv")["notes"]
    np.testing.assert_array_equal(numbers_of()[:, 0], seconds)
    assert main(["classify", "t.csv", "--out", "out", "-q"]) == 0
    assert accuracy() > 0.9
    write_table(time=[f"0:0{cell}" for cell in cells])
    assert main(["predict", "out/model.lmssc", "t.csv", "--out", "p.csv", "-q"]) == 0
    assert accuracy("p.csv") > 0.9
    write_table(time=seconds)
    assert main(["predict", "out/model.lmssc", "t.csv", "--out", "q.csv"]) == 2
    assert "those of the model are in 'h:mm:ss'" in capsys.readouterr().err


CODES = {
    "phones": [f"+49 30 {1000000 + 7919 * row}" for row in range(N)],
    "phones in brackets": [f"(0{30 + row % 50}) {555 + row % 90}-{1000 + 37 * row}" for row in range(N)],
    "postcodes": [
        f"{['SW', 'EH', 'B'][row % 3]}{1 + row % 9}{'A' * (row % 2)} {row % 10}{'AXY'[row % 3]}B" for row in range(N)
    ],
    "Dutch postcodes": [f"{1000 + 31 * row} {'ABCDEFGH'[row % 8]}K" for row in range(N)],
    "a few unknown": ["unknown"] * 3 + [f"+1 555 {1000 + 37 * row}" for row in range(3, N)],
}


@pytest.mark.parametrize("cells", CODES.values(), ids=CODES)
def test_phone_numbers_and_postcodes_are_no_texts(cells, capsys):
    write_table(x=NOISE, contact=cells, label=LABELS)
    found = understood(capsys, "t.csv")
    assert [view["name"] for view in found["views"]] == ["t"]
    why = "Not used in t.csv: contact (codes such as phone numbers or postcodes; --type overrides this)."
    assert why in found["notes"]
    assert len(understood(capsys, "t.csv", "--type", "contact=text")["views"]) == 2


@pytest.mark.parametrize("repeats", [1, 2])
def test_digits_padded_with_zeros_are_no_numbers(repeats, capsys):
    """Postcodes such as 00501 were read as numbers."""
    write_table(x=NOISE, zip=[f"{501 + 631 * (row // repeats):05d}" for row in range(N)], label=LABELS)
    found = understood(capsys, "t.csv")
    assert found["views"][0]["features"] == 1
    assert any(note.startswith("Not used in t.csv: zip (") for note in found["notes"])


def test_texts_with_numbers_are_texts(capsys):
    texts = [f"room {row} has {row % 7} beds" for row in range(N)]
    write_table(x=NOISE, remark=texts, label=LABELS)
    assert len(understood(capsys, "t.csv")["views"]) == 2


def test_versions_are_no_dates(capsys):
    versions = [f"{1 + code}.0.{10 + row % 3}" for row, code in enumerate(TRUTH)]
    write_table(x=NOISE, version=versions, label=LABELS)
    assert "t.csv: categories, one feature per value: version (6)." in understood(capsys, "t.csv")["notes"]
    write_table(x=NOISE, version=[f"{row}.0.{row % 90 + 10}" for row in range(N)], label=LABELS)
    assert "Not used in t.csv: version (versions; --type overrides this)." in understood(capsys, "t.csv")["notes"]


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["unknown", "?", "-"])
def test_a_class_that_may_mean_unlabelled_is_told(word, capsys):
    labels = [label or word for label in LABELS]
    write_table(x=NOISE, label=labels)
    told = (
        f"{labels.count(word)} labels are {word!r}, taken as a class (if it means not labelled: --unlabelled {word!r})."
    )
    assert told in understood(capsys, "t.csv")["notes"]
    assert main(["classify", "t.csv", "--out", "out", "-q"]) == 0  # no warning besides
    found = understood(capsys, "t.csv", f"--unlabelled={word}")
    assert set(found["labels_per_class"]) == {"A", "B"}
    with pytest.warns(UserWarning, match=r"y has the class '.+'\. If that means unlabelled, put None there"):
        assert len(encode_labels(labels).classes) == 3


def test_classes_that_differ_in_case_only_are_told(capsys):
    labels = [label.lower() if row % 2 else label for row, label in enumerate(LABELS)]
    write_table(x=NOISE, label=labels)
    notes = understood(capsys, "t.csv")["notes"]
    assert "The classes A and a differ in case only; if they are one, write them alike." in notes
    assert main(["classify", "t.csv", "--out", "out", "-q"]) == 0
    with pytest.warns(UserWarning, match="differ in case only: 'A' and 'a'; 'B' and 'b'"):
        encode_labels([label or None for label in labels])


def test_the_largest_unsigned_number_beside_small_ones_is_told():
    with pytest.warns(UserWarning, match="y is uint8 and has the class 255, which is what -1 becomes in it"):
        encode_labels(np.array([0, 1, -1, 2]).astype(np.uint8))
    assert encode_labels(np.array([0, 200, 255], dtype=np.uint8)).codes.tolist() == [0, 1, 2]
    assert encode_labels(np.array([0, 1, 255])).codes.tolist() == [0, 1, 2]


# --- codes that are no codes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "share"), [(9999.0, 0.3), (-999.0, 1 / 3), (999.0, 0.2)])
def test_a_code_that_many_rows_have_is_not_erased(code, share):
    rng = np.random.default_rng(7)
    truth = (rng.random(400) < share).astype(int)
    X = np.column_stack([np.where(truth, code, rng.normal(size=400)), rng.normal(size=(400, 2))])
    y = np.where(rng.random(400) < 0.3, truth, -1)
    with pytest.warns(UserWarning, match="scale the view yourself and pass scaling=None for it"):
        model = lmssc.LMSSC().fit([X], y)
    assert (model.transduction_ == truth).mean() > 0.98
    with pytest.warns(UserWarning, match="far from all others"):
        assert (model.fit([X[:300]], y[:300]).predict([X[300:]]) == truth[300:]).mean() > 0.97


def test_rare_codes_still_count_as_the_mean():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[:10, 1] = -999
    outliers, _ = find_outliers(RawView("a", X, None), X.std(axis=0))
    assert outliers.replace(X)[0, 1] == pytest.approx(X[10:, 1].mean())


# --- thousands in predict --------------------------------------------------------------------------------------------


def test_predict_tells_of_thousands_and_doubts_them(capsys):
    x = (10 + 2 * TRUTH + RNG.normal(size=N)).round(3)
    write_table(x=x, z=NOISE, label=LABELS)
    assert main(["classify", "t.csv", "--out", "out", "-q"]) == 0
    write_table(x=[f"{value:.3f}".replace(".", ",") for value in x], z=NOISE)
    call = ["predict", "out/model.lmssc", "t.csv", "--out", "p.csv"]
    assert main(call) == 2
    message = "t.csv, column 'x': read with separated thousands, its numbers go up to"
    assert message in (told := capsys.readouterr().err)
    assert "if the commas are decimal commas, pass --decimal ," in told
    assert not Path("p.csv").exists()
    assert main([*call, "--decimal", "."]) == 0
    assert "t.csv: numbers with separated thousands: x." in capsys.readouterr().out
    # Numbers in the thousands are what they are.
    write_table(x=[f"{1000 * value:,.0f}" for value in x], z=NOISE, label=LABELS)
    assert main(["classify", "t.csv", "--out", "other", "-q"]) == 0
    capsys.readouterr()
    assert main(["predict", "other/model.lmssc", "t.csv", "--out", "q.csv"]) == 0
    assert "t.csv: numbers with separated thousands: x." in capsys.readouterr().out
    assert accuracy("q.csv") > 0.6
