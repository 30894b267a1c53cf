"""JSON Lines files become the same columns as a CSV file of the same cells."""

import gzip
import json

import numpy as np
import pytest

from lmssc.io.formats import read_table
from lmssc.io.json_lines import read_json_lines


def read(tmp_path, *values):
    """The column "x" of a file with these values of it; ... leaves the key out."""
    path = tmp_path / "a.jsonl"
    objects = [{"i": row} | ({} if value is ... else {"x": value}) for row, value in enumerate(values)]
    path.write_text("".join(json.dumps(found) + "\n" for found in objects))
    return read_json_lines(str(path))


@pytest.mark.parametrize(
    ("values", "kind", "loaded"),
    [
        ([1, 2], "number", [1, 2]),
        ([1, 2.5, None], "number", [1, 2.5, np.nan]),
        ([..., 1, ...], "number", [np.nan, 1, np.nan]),
        ([float("nan"), 1], "number", [np.nan, 1]),
        ([None, None], "number", [np.nan, np.nan]),
        ([True, False], "number", [1, 0]),
        ([True, None], "number", [1, np.nan]),
        (["a ", "", None], "text", ["a", None, None]),
        ([1, "b", 2.5, True], "text", ["1", "b", "2.5", "true"]),
        ([2**70, 1], "text", [str(2**70), "1"]),
    ],
)
def test_values(values, kind, loaded, tmp_path):
    column = read(tmp_path, *values).columns["x"]
    assert column.kind == kind
    assert not column.fault
    np.testing.assert_array_equal(column.load(), np.array(loaded, dtype=object if kind == "text" else float))
    assert column.truth == ({type(value) for value in values} <= {bool, type(None)} and True in values)


def test_ids_are_kept_to_the_last_digit(tmp_path):
    ids = [2**53, 2**53 + 1]
    assert read(tmp_path, *ids).texts("x").tolist() == list(map(str, ids))


def test_text_of_digits_is_not_a_number(tmp_path):
    assert read(tmp_path, "007", "008").texts("x").tolist() == ["007", "008"]


def test_lines_are_those_of_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"x": 1}\r\n\r\n  \n{"x": "\xe2\x80\xa8\\u00e9"}')  # U+2028 does not end a line
    table = read_table(str(path))
    assert table.rows.lines.tolist() == [1, 4]
    assert table.rows.place(1) == f"{path}, line 4"


@pytest.mark.parametrize("name", ["a.jsonl", "A.JSONL", "a.ndjson", "a.jsonl.gz", "a.ndjson.gz"])
def test_endings(name, tmp_path):
    content = b'{"x": 1}\n{"x": 2}\n'
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert read_table(str(tmp_path / name)).numbers("x").tolist() == [1, 2]
