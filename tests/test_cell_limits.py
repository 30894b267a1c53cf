"""How much memory the cells of a text file take, and where it ends."""

import gzip
import os

import numpy as np
import pytest

from lmssc.io.delimited import read_delimited
from lmssc.io.errors import InputFileError
from lmssc.io.unpacking import VARIABLE
from peak_memory import run_and_measure

NOTHING = "import lmssc.io.formats"
READ = """
import sys
from lmssc.io.formats import read_table
from lmssc.io.errors import InputFileError
try:
    table = read_table(sys.argv[1], keep_text=lambda name: name == "label")
    print(table.rows.count, table.rows.lines[-1], table.columns["label"].load()[-1])
except InputFileError as error:
    print(error)
"""


def write_short_lines(path, n_rows, line=b"1,\n"):
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(b"x,label\n")
        for _ in range(n_rows // 10_000):
            file.write(line * 10_000)
    return n_rows * len(line)


@pytest.fixture(scope="module")
def before():
    """Memory of a process that reads nothing."""
    return run_and_measure(NOTHING)[1]


@pytest.mark.parametrize("line", [b"1,\n", b"2,cat\n"])
def test_short_lines_take_at_most_twenty_times_their_size(line, tmp_path, before):
    path = tmp_path / "b.csv.gz"
    n_bytes = write_short_lines(path, 600_000, line)
    assert path.stat().st_size < 50_000
    told, after = run_and_measure(READ, str(path))
    assert told.split()[:2] == ["600000", "600001"]
    assert after - before <= 20 * n_bytes / (1 << 20)


def test_the_limit_counts_what_is_held_in_memory(tmp_path, before):
    """A file of 1.2 MB, far below the limit of 32 MB, that would take more than that in memory."""
    path = tmp_path / "b.csv.gz"
    assert write_short_lines(path, 400_000) < 2 << 20
    message, after = run_and_measure(READ, str(path), env={**os.environ, VARIABLE: "32M"})
    assert "b.csv.gz has " in message
    assert "unpacks to more than the limit of 32 MiB" in message
    assert after - before < 40


def test_ordinary_packed_numbers_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1M")
    rows = np.random.default_rng(0).normal(size=(2000, 10)).round(3)
    text = "\n".join([",".join(f"x{j}" for j in range(10)), *(",".join(map(str, row)) for row in rows)])
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    table = read_delimited(str(tmp_path / "a.csv.gz"), ",", lambda name: False)
    np.testing.assert_array_equal(table.numbers("x3"), rows[:, 3])
    monkeypatch.setenv(VARIABLE, "1K")
    with pytest.raises(InputFileError, match="unpacks to more than the limit of 1 KiB"):
        read_delimited(str(tmp_path / "a.csv.gz"), ",", lambda name: False)


def test_equal_texts_are_held_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,label\n" + "1,dog\n2, cat\n3,'=1\n4,\n" * 10)
    texts = read_delimited(str(path), ",", lambda name: name == "label").texts("label")
    assert texts[:4].tolist() == ["dog", "cat", "=1", None]
    assert texts[0] is texts[4]
    assert texts[1] is texts[5]
