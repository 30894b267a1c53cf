"""CSV files are read in pieces: what is in them does not depend on where the pieces end."""

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

from lmssc.io import delimited
from lmssc.io.delimited import read_delimited
from lmssc.io.errors import InputFileError
from small_files import table_text


@pytest.fixture(params=[1, 3, 10_000])
def rows_at_a_time(request, monkeypatch):
    monkeypatch.setattr(delimited, "CHUNK_CELLS", 1)
    monkeypatch.setattr(delimited, "MIN_CHUNK_ROWS", request.param)


@pytest.fixture
def read(tmp_path):
    def read(text, keep_text=lambda name: name == "id"):
        path = tmp_path / "a.csv"
        path.write_text(text, encoding="utf-8", newline="")
        return read_delimited(str(path), ",", keep_text)

    return read


@pytest.mark.usefixtures("rows_at_a_time")
def test_numbers_are_those_that_pandas_wrote(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 4)) * 10.0 ** rng.integers(-9, 9, size=(50, 4)), columns=list("pqrs"))
    frame.iloc[3, 1] = frame.iloc[40, 2] = np.nan
    frame["whole"] = rng.integers(-5, 5, 50)
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    table = read_delimited(str(path), ",", lambda name: False)
    assert list(table.columns) == list(frame.columns)
    for name in frame.columns:
        np.testing.assert_array_equal(table.numbers(name), frame[name].to_numpy(dtype=float))


@pytest.mark.usefixtures("rows_at_a_time")
def test_a_column_that_starts_with_blanks_can_be_text_or_numbers(read):
    table = read("id,t,n,b\n" + "1,,,\n" * 4 + "5,word,7.5,\n6,,NA,\n7,more words,8,\n")
    assert table.columns["t"].kind == "text"
    assert table.texts("t").tolist() == [None] * 4 + ["word", None, "more words"]
    np.testing.assert_array_equal(table.numbers("n"), [np.nan] * 4 + [7.5, np.nan, 8])
    np.testing.assert_array_equal(table.numbers("b"), [np.nan] * 7)
    assert table.texts("id").tolist() == ["1", "1", "1", "1", "5", "6", "7"]


@pytest.mark.usefixtures("rows_at_a_time")
def test_the_line_of_a_fault_is_told_when_the_column_is_used(read):
    table = read("x,y,t\n" + '1,2,"two\nlines"\n' * 5 + "\n1,oops,t\n1,again,t\n")
    np.testing.assert_array_equal(table.numbers("x"), 1)
    with pytest.raises(InputFileError, match=r"a\.csv, line 13, column 'y': 'oops' is not a number"):
        table.numbers("y")
    assert table.rows.place(6).endswith("a.csv, line 14")


@pytest.mark.usefixtures("rows_at_a_time")
def test_any_table_comes_back_as_it_was_written(tmp_path):
    """Against Python's own reader, for cells with every kind of nuisance."""
    rng = np.random.default_rng(1)
    parts = ["a", '"', ",", "\n", "ß", " ", "x y", "'", ";", "\r\n"]
    rows = [["k" + "".join(rng.choice(parts, 3)) + "k" for _ in range(3)] for _ in range(40)]
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(table_text(["p", "q", "r"], rows).encode()))
    table = read_delimited(str(path), ",", lambda name: False)
    assert list(zip(*(table.texts(name).tolist() for name in "pqr"), strict=True)) == [tuple(row) for row in rows]


def test_empty_lines_are_nothing_but_in_a_single_column(read):
    assert read("x,t\n\n1,a\n \n2,b\n\n").numbers("x").tolist() == [1, 2]
    table = read('label\nu\n\n\nv\n""\n\n', lambda name: True)
    assert table.texts("label").tolist() == ["u", None, None, "v", None, None]
    assert table.rows.lines.tolist() == [2, 3, 4, 5, 6, 7]
    with pytest.raises(InputFileError, match="is empty"):
        read("\ufeff\n\n")


def test_a_field_longer_than_the_usual_limit(read):
    assert csv.field_size_limit() > 0
    table = read(f"id,t\n1,{'word ' * 50_000}\n2,b\n")
    assert len(table.texts("t")[0]) == 5 * 50_000 - 1


def test_numbered_columns_are_names(read):
    """As pandas writes an array."""
    assert list(read("0,1,2\n5,6,7\n").columns) == ["0", "1", "2"]
    assert list(read(",0,1\nr,6,7\n").columns) == ["", "0", "1"]
    assert list(read("id,1,2\nr,6,7\n").columns) == ["id", "1", "2"]


def test_years_and_wavelengths_are_names(read):
    assert list(read("id,2019,2020,2021,2022\nr,6,7,8,9\n").columns)[1] == "2019"
    assert "400.5" in read("400.5,401,401.5,402\n6,7,8,9\n").columns
    for header in ("1,5,3,8", "7,7,7,7", "id,0.5,0.25,3,1", "3"):
        with pytest.raises(InputFileError, match=r"line 1: numbers \("):
            read(f"{header}\n{header}\n")
