"""CSV and TSV files, plain or gzipped, read in chunks; errors name the line."""

import csv
import io
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from lmssc.io.errors import InputFileError
from lmssc.io.numerals import COMMA, POINT, Numerals, are_digit_codes, is_missing, is_mostly_numbers, is_plain, marks
from lmssc.io.spreadsheet import unescape_formula
from lmssc.io.table import NUMBER, TEXT, Column, Rows, Table, clean_texts, counted
from lmssc.io.unpacking import Unpacked, open_bytes, packing

DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|"}
# A first line that tells Excel the delimiter; it is not part of the table.
DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?sep=([,;|\t])[ \t]*\r?\n", re.IGNORECASE)
# Name of the unnamed first column that pandas and R write.
NAMELESS = ""
# Bytes of the first line read to guess the delimiter.
HEADER_BYTES = 1 << 20
# Lines below it that are read if it has both commas and semicolons.
LINES_BELOW = 10
# Cells per chunk, few enough for the processor's cache; but at least some rows, because the first chunk decides which
# columns are numbers.
CHUNK_CELLS, MIN_CHUNK_ROWS = 30_000, 200
# Memory per row (its line number and id), per number, and per text besides its characters, until the views are made.
ROW_BYTES, NUMBER_BYTES, TEXT_BYTES = 100, 24, 24
# Distinct texts per column that are stored once, however often they occur.
MAX_SHARED_TEXTS = 1 << 14
MAGIC = {
    b"PK\x03\x04": "a zip archive, or a workbook whose name should end in .xlsx",
    b"PAR1": "a Parquet file: its name should end in .parquet",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a numpy file: its name should end in .npy",
    b"\x1f\x8b": "a gzip file: its name should end in .gz",
    b"\xd0\xcf\x11\xe0": "an old workbook (.xls): save the sheet as CSV",
    b"ARROW1": "an Arrow file: its name should end in .feather",
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
}


def read_delimited(
    path: str,
    delimiter: str,
    keep_text: Callable[[str], bool],
    decimal: str | None = None,
    usual_decimal: str | None = None,
) -> Table:
    r"""Read a CSV or TSV file with a header.

    Parameters
    ----------
    path : str
        Name of the file.
    delimiter : str
        Delimiter.
    keep_text : callable
        Called with the name of a column: whether its cells are kept as written, such as ids ("007") and labels. Any
        other column is numeric if most of its cells are numbers.
    decimal : {".", ","}, optional
        Decimal mark. By default a point, or a comma if the delimiter is not a comma and all numbers have decimal
        commas.
    usual_decimal : {".", ","}, optional
        Decimal mark of files that do not show theirs.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,x,note\n007,1.5,so\n008,2,la la\n")
    >>> table = read_delimited(str(path), ",", lambda name: name == "id")
    >>> table.texts("id"), table.numbers("x"), table.columns["note"].kind
    (array(['007', '008'], dtype=object), array([1.5, 2. ]), 'text')
    """
    csv.field_size_limit(2**31 - 1)
    found = decimal
    if decimal is None and delimiter != COMMA:
        with _opened(path, delimiter) as numbered:
            found = _find_decimal(numbered, path, delimiter, keep_text, usual_decimal)
    with _opened(path, delimiter) as numbered:
        table = _read(numbered, path, delimiter, keep_text, found)
    if found == COMMA and decimal is None:
        return replace(table, note=f"{path} has decimal commas (use --decimal . if they separate thousands).")
    return table


@contextmanager
def _opened(path: str, delimiter: str) -> Iterator["_Lines"]:
    with open_bytes(path) as raw:
        start = raw.read(4096)
        _refuse_binary(start, path)
        declaration = DECLARATION.match(start)
        raw.seek(declaration.end() if declaration else 0)
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        numbered = _Lines(file, delimiter, n_skipped=int(declaration is not None))
        try:
            yield numbered
        except UnicodeDecodeError as error:
            near = numbered.last + 1
            byte = error.object[error.start]
            raise InputFileError(
                f"{path}, line {near} or soon after: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
            ) from error
        except csv.Error as error:
            raise InputFileError(f"{path}, line {numbered.last + 1}: {error} (is a quotation mark missing?)") from error


def guess_delimiter(path: str) -> str:
    """Guess the delimiter: a comma, or a semicolon if the first line has semicolons but no comma.

    A first line such as ``sep=;`` decides, as it does for Excel.

    Raises
    ------
    InputFileError
        If it may be either.
    """
    with open_bytes(path) as raw:
        line = raw.readline(HEADER_BYTES)
        below = [raw.readline(HEADER_BYTES) for _ in range(LINES_BELOW)]
    declaration = DECLARATION.match(line)
    if declaration:
        return declaration[1].decode()
    n_semicolons = line.count(b";")
    written = [other for other in below if other.strip()]
    if n_semicolons and b"," in line and written and all(other.count(b";") == n_semicolons for other in written):
        raise InputFileError(
            f"{path}, line 1: it has commas and semicolons, like the lines below; say which of them separates the "
            "cells with --delimiter comma or --delimiter semicolon"
        )
    header = line.decode("utf-8-sig", "replace")
    return ";" if ";" in header and COMMA not in header else COMMA


class _Lines:
    """Rows of cells with the line number at which each starts."""

    def __init__(self, file: TextIO, delimiter: str, *, n_skipped: int = 0) -> None:
        self._reader = csv.reader(file, delimiter=delimiter, strict=True)
        self._n_skipped = n_skipped  # lines of the file before the first one read here
        self.last = n_skipped  # last line of the previous row

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        for cells in self._reader:
            first, self.last = self.last + 1, self._n_skipped + self._reader.line_num
            yield first, cells


def _refuse_binary(start: bytes, path: str) -> None:
    if not start.strip():
        raise InputFileError(f"{path} is empty; its first line must name the columns")
    for magic, what in MAGIC.items():
        if start.startswith(magic):
            raise InputFileError(f"{path} cannot be read as text: it is {what}")
    if b"\0" in start:
        raise InputFileError(
            f"{path} is not a text file: it contains zero bytes, the first at position {start.index(0)}"
        )


def _without_empty_lines(lines: Iterable[tuple[int, list[str]]], width: int) -> Iterator[tuple[int, list[str]]]:
    """Skip empty lines, except in a file of one column, where an empty line is a blank cell."""
    for line, cells in lines:
        if width == 1:
            yield line, cells or [""]
        elif len(cells) > 1 or any(cell.strip() for cell in cells):
            yield line, cells


def _names(rows: Iterator[tuple[int, list[str]]], path: str, delimiter: str) -> list[str]:
    header = next((cells for _, cells in rows if any(cell.strip() for cell in cells)), None)
    if header is None:
        raise InputFileError(f"{path} is empty; its first line must name the columns")
    return _check_header([unescape_formula(cell.strip()) for cell in header], path, delimiter)


def _chunks(
    rows: Iterator[tuple[int, list[str]]], names: Sequence[str], path: str
) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
    """Yield chunks of rows: their line numbers, and the cells of each column."""
    rows = _without_empty_lines(rows, len(names))
    while chunk := list(islice(rows, max(MIN_CHUNK_ROWS, CHUNK_CELLS // len(names)))):
        for line, cells in chunk:
            if len(cells) != len(names):
                raise InputFileError(
                    f"{path}, line {line}: {counted(len(cells), 'cell')}, but the first line names "
                    f"{counted(len(names), 'column')}{_why_other_width(cells, names)}"
                )
        yield [line for line, _ in chunk], list(zip(*(cells for _, cells in chunk), strict=True))


def _why_other_width(cells: Sequence[str], names: Sequence[str]) -> str:
    """What may be wrong with a row that has too few or too many cells.

    Examples
    --------
    >>> _why_other_width(["1", "5;2"], ["height; cm"])
    "; if ';' stands between the cells, say so with --delimiter semicolon"
    >>> _why_other_width(["1", "2"], ["# a comment"])
    "; lines that begin with '#' are not skipped: take them out, or begin the header with a name"
    """
    if any(row and row[0].lstrip().startswith("#") for row in (names, cells)):
        return "; lines that begin with '#' are not skipped: take them out, or begin the header with a name"
    for word, mark in DELIMITERS.items():
        count = sum(name.count(mark) for name in names)
        if count and count == sum(cell.count(mark) for cell in cells):
            return f"; if {mark!r} stands between the cells, say so with --delimiter {word}"
    if len(cells) == len(names) + 1 and not cells[-1].strip():
        return "; is there a delimiter too many at the end of the line? If another one is right: --delimiter"
    return ""


def _find_decimal(
    numbered: _Lines, path: str, delimiter: str, keep_text: Callable[[str], bool], usual: str | None
) -> str | None:
    """Detect the decimal mark of the numeric columns; None if there is none, or both are used."""
    rows = iter(numbered)
    names = _names(rows, path, delimiter)
    doubt = ""
    for lines, columns in _chunks(rows, names, path):
        found: set[str] = set()
        for name, cells in zip(names, columns, strict=True):
            written = [cell for cell in cells if not is_missing(cell)]
            if not keep_text(name) and is_mostly_numbers(written):
                certain, either = marks(written)
                found |= certain
                if either and not doubt:
                    where = f"{path}, line {lines[cells.index(either)]}, column {name!r}"
                    doubt = f"{where}: {either!r} is ambiguous, its mark may separate"
        if found:
            return found.pop() if len(found) == 1 else None
    if doubt and usual is None:
        raise InputFileError(f"{doubt} thousands or decimals; say which with --decimal . or --decimal ,")
    return usual


def _read(numbered: _Lines, path: str, delimiter: str, keep_text: Callable[[str], bool], decimal: str | None) -> Table:
    rows = iter(numbered)
    names = _names(rows, path, delimiter)
    columns = [_Cells(name, path, decimal, text=keep_text(name)) for name in names]
    lines = array("q")
    # What a few bytes of a packed file take in memory counts, too: "1," is a number, a text, a line and an id.
    held = Unpacked(path) if packing(path) else None
    for numbers, cells in _chunks(rows, names, path):
        if not lines:
            _refuse_spaces(names, cells[0][0], path)
        lines.extend(numbers)
        for column, values in zip(columns, cells, strict=True):
            column.extend(values, numbers)
        if held is not None:
            held.reach(ROW_BYTES * len(lines) + sum(column.n_bytes for column in columns))
    if not lines:
        raise InputFileError(f"{path} has a header but no rows")
    made = {column.name: column.finish() for column in columns}
    return Table(
        Rows(path, len(lines), np.frombuffer(lines, dtype=np.int64)), made, types_detected=True, decimal=decimal
    )


def _check_header(names: list[str], path: str, delimiter: str) -> list[str]:
    if len(names) == 1:
        for word, other in DELIMITERS.items():
            if other != delimiter and other in names[0]:
                raise InputFileError(
                    f"{path}, line 1: it has no {delimiter!r} but {other!r}; if that is the delimiter, say so with "
                    f"--delimiter {word}"
                )
    numeric = [name for name in names if is_plain(name)]
    if len(numeric) >= max(1, len(names) - 1) and not _are_names(numeric):
        raise InputFileError(
            f"{path}, line 1: numbers ({', '.join(numeric[:3])}), but the first line must name the columns"
        )
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name == NAMELESS and number > 1:
            ending = "; is there a delimiter too many at the end of each line?" if number == len(names) else ""
            raise InputFileError(f"{path}, line 1: column {number} has no name{ending}")
        if name in seen:
            raise InputFileError(f"{path}, line 1: columns {seen[name]} and {number} have the same name, {name!r}")
        seen[name] = number
    return names


def _are_names(numeric: Sequence[str]) -> bool:
    """Whether numbers in a header are names: 0, 1, 2, … as pandas writes them, or equally spaced, such as years."""
    values = np.array(numeric, dtype=np.float64)
    if list(numeric) in ([str(number + first) for number in range(len(numeric))] for first in (0, 1)):
        return True
    steps = np.diff(values)
    return len(numeric) > 3 and bool(np.allclose(steps, steps[0], rtol=1e-3)) and steps[0] != 0


def _refuse_spaces(names: Sequence[str], cell: str, path: str) -> None:
    """Raise for a file delimited by spaces: a single column of cells like "a1 0.3 0.7"."""
    words = cell.split()
    if len(names) == 1 and len(words) == len(names[0].split()) > 1 and any(is_plain(word) for word in words):
        raise InputFileError(
            f"{path}, line 1: a single column, {names[0]!r}; cells must be separated by a comma, tab, semicolon or "
            "bar, not by spaces"
        )


class _Cells:
    """A column while it is being read."""

    def __init__(self, name: str, path: str, decimal: str | None, *, text: bool) -> None:
        self.name = name
        self._kind = TEXT if text else None  # None as long as all cells are blank
        self._n_blank = 0  # blank cells before the first other one
        self._numbers = Numerals(
            lambda line: f"{path}, line {line}, column {name!r}", decimal or POINT, told=decimal is not None
        )
        self._texts: list[NDArray] = []
        self._shared: dict[str | None, str | None] = {}  # equal texts are held once
        self.n_bytes = 0  # held in memory

    def extend(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Add cells, with their line numbers."""
        if self._kind is None:
            self._kind = _guess(cells)
        if self._kind is None:
            self._n_blank += len(cells)
        elif self._kind == TEXT:
            self._texts.append(self._clean(cells))
        else:
            self._numbers.extend(cells, lines)
        self.n_bytes += (TEXT_BYTES if self._kind == TEXT else NUMBER_BYTES) * len(cells)

    def _clean(self, cells: Sequence[str]) -> NDArray:
        texts = clean_texts(cells)
        for row, text in enumerate(texts):
            if text is not None and text[0] == "'":
                text = unescape_formula(text)
            shared = self._shared.get(text, self)
            if shared is self:
                shared = text
                self.n_bytes += sys.getsizeof(text)
                if len(self._shared) < MAX_SHARED_TEXTS:
                    self._shared[text] = text
            texts[row] = shared
        return texts

    def finish(self) -> Column:
        """Return the complete column."""
        if self._kind == TEXT:
            texts = np.concatenate([np.full(self._n_blank, None, dtype=object), *self._texts])
            self._texts.clear()
            return Column(TEXT, lambda: texts)
        numbers = self._numbers.finish()
        values = np.concatenate([np.full(self._n_blank, np.nan), numbers.values])
        return Column(
            NUMBER,
            lambda: values,
            numbers.fault,
            unit=numbers.unit,
            grouped=numbers.grouped,
            odd_blanks=numbers.odd_blanks,
        )


def _guess(cells: Sequence[str]) -> str | None:
    """Guess the kind by most of the cells; None if all are blank."""
    written = [cell for cell in cells if not is_missing(cell)]
    if not written:
        return None
    return NUMBER if is_mostly_numbers(written) and not are_digit_codes(written) else TEXT
