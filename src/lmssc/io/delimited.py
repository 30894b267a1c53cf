"""CSV and TSV files, plain or gzipped, read in pieces, with the line of whatever is wrong."""

import csv
import gzip
import io
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import BinaryIO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from lmssc.io.numerals import COMMA, POINT, Numerals, is_missing, is_mostly_numbers, is_plain, marks
from lmssc.io.spreadsheet import unescape_formula
from lmssc.io.table import NUMBER, TEXT, Column, InputFileError, Rows, Table, clean_texts, counted
from lmssc.io.unpacking import Unpacked, open_gzip

DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|"}
# The column that pandas and R put first without a name.
NAMELESS = ""
# Bytes of a first line that are looked at to tell what is between the cells.
HEADER = 1 << 20
# Cells that are held as text at a time (few, so that they stay in the processor's cache), but so many rows at least,
# because the first of them decide what is numbers.
CELLS, LEAST_ROWS = 30_000, 200
# Bytes that are held in memory of a row (its line and id), of a number and of a text besides its letters, until the
# views are made; and texts of a column of which equal ones are held once.
ROW_BYTES, NUMBER_BYTES, TEXT_BYTES = 100, 24, 24
MOST_SHARED = 1 << 14
MAGIC = {
    b"PK\x03\x04": "a zip archive or a workbook (.xlsx): save the sheet as CSV",
    b"PAR1": "a Parquet file: its name should end in .parquet",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a numpy file: its name should end in .npy",
    b"\x1f\x8b": "a gzip file: its name should end in .gz",
    b"\xd0\xcf\x11\xe0": "an old workbook (.xls): save the sheet as CSV",
    b"ARROW1": "an Arrow file: its name should end in .feather",
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
}


@contextmanager
def open_bytes(path: str) -> Iterator[BinaryIO]:
    """Open a file, unpacked if its name ends in .gz; errors name the file."""
    packed = path.lower().endswith(".gz")
    try:
        with open_gzip(path) if packed else open(path, "rb") as file:
            yield cast(BinaryIO, file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputFileError(f"{path}: not a whole gzip file ({error})") from error
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        raise InputFileError(f"{path}: {error.strerror or error}") from error


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
        What stands between two cells.
    keep_text : callable
        Whether the column of a name is to be kept as it is written, such as ids ("007") and labels. Of the other
        columns one is numbers if most of its cells are.
    decimal : {".", ","}, optional
        What stands before decimals. By default a point; but a comma where something else is between the cells, and
        columns have numbers with decimal commas only.
    usual_decimal : {".", ","}, optional
        The decimal mark where the file does not tell.

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
        return replace(table, note=f"{path} has decimal commas (--decimal . if the commas set thousands apart).")
    return table


@contextmanager
def _opened(path: str, delimiter: str) -> Iterator["_Lines"]:
    with open_bytes(path) as raw:
        _refuse_binary(raw.read(4096), path)
        raw.seek(0)
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        numbered = _Lines(file, delimiter)
        try:
            yield numbered
        except UnicodeDecodeError as error:
            near = numbered.last + 1
            byte = error.object[error.start]
            raise InputFileError(
                f"{path}, line {near} or soon after: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
            ) from error
        except csv.Error as error:
            raise InputFileError(f"{path}, line {numbered.last + 1}: {error} (a quotation mark too few?)") from error


def guess_delimiter(path: str) -> str:
    """A comma, unless the first line has none but has semicolons, as programs write them where decimals have commas.

    Parameters
    ----------
    path : str
        Name of the file.

    Returns
    -------
    str
    """
    with open_bytes(path) as raw:
        header = raw.readline(HEADER).decode("utf-8-sig", "replace")
    return ";" if ";" in header and COMMA not in header else COMMA


class _Lines:
    """Rows of cells, each with the number of its first line."""

    def __init__(self, file: TextIO, delimiter: str) -> None:
        self._reader = csv.reader(file, delimiter=delimiter, strict=True)
        self.last = 0  # the last line of the row before

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        for cells in self._reader:
            first, self.last = self.last + 1, self._reader.line_num
            yield first, cells


def _refuse_binary(start: bytes, path: str) -> None:
    if not start.strip():
        raise InputFileError(f"{path} is empty; its first line has to name the columns")
    for magic, what in MAGIC.items():
        if start.startswith(magic):
            raise InputFileError(f"{path} is not a text file but {what}")
    if b"\0" in start:
        raise InputFileError(f"{path} is not a text file: it has bytes of value zero, the first at {start.index(0)}")


def _without_empty_lines(lines: Iterable[tuple[int, list[str]]], width: int) -> Iterator[tuple[int, list[str]]]:
    """Rows without the empty lines; but in a file of one column an empty line is a blank cell."""
    for line, cells in lines:
        if width == 1:
            yield line, cells or [""]
        elif len(cells) > 1 or any(cell.strip() for cell in cells):
            yield line, cells


def _names(rows: Iterator[tuple[int, list[str]]], path: str, delimiter: str) -> list[str]:
    header = next((cells for _, cells in rows if any(cell.strip() for cell in cells)), None)
    if header is None:
        raise InputFileError(f"{path} is empty; its first line has to name the columns")
    return _check_header([unescape_formula(cell.strip()) for cell in header], path, delimiter)


def _chunks(
    rows: Iterator[tuple[int, list[str]]], names: Sequence[str], path: str
) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
    """Some rows at a time: their lines, and the cells of each column."""
    rows = _without_empty_lines(rows, len(names))
    while chunk := list(islice(rows, max(LEAST_ROWS, CELLS // len(names)))):
        for line, cells in chunk:
            if len(cells) != len(names):
                raise InputFileError(
                    f"{path}, line {line}: {counted(len(cells), 'cell')}, but the first line names "
                    f"{counted(len(names), 'column')}"
                )
        yield [line for line, _ in chunk], list(zip(*(cells for _, cells in chunk), strict=True))


def _find_decimal(
    numbered: _Lines, path: str, delimiter: str, keep_text: Callable[[str], bool], usual: str | None
) -> str | None:
    """The decimal mark that the columns of numbers have for certain; None if there are no marks, or both."""
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
                    doubt = f"{path}, line {lines[cells.index(either)]}, column {name!r}: {either!r} may have thousands"
        if found:
            return found.pop() if len(found) == 1 else None
    if doubt and usual is None:
        raise InputFileError(f"{doubt} or decimals behind its mark; say which with --decimal . or --decimal ,")
    return usual


def _read(numbered: _Lines, path: str, delimiter: str, keep_text: Callable[[str], bool], decimal: str | None) -> Table:
    rows = iter(numbered)
    names = _names(rows, path, delimiter)
    columns = [_Cells(name, path, decimal, text=keep_text(name)) for name in names]
    lines = array("q")
    # What a few bytes of a packed file take in memory counts, too: "1," is a number, a text, a line and an id.
    held = Unpacked(path) if path.lower().endswith(".gz") else None
    for numbers, cells in _chunks(rows, names, path):
        if not lines:
            _refuse_spaces(names, cells[0][0], path)
        lines.extend(numbers)
        for column, values in zip(columns, cells, strict=True):
            column.extend(values, numbers)
        if held is not None:
            held.reach(ROW_BYTES * len(lines) + sum(column.n_bytes for column in columns))
    if not lines:
        raise InputFileError(f"{path} has a first line with names and nothing below it")
    made = {column.name: column.finish() for column in columns}
    return Table(Rows(path, len(lines), np.frombuffer(lines, dtype=np.int64)), made, decimal=decimal)


def _check_header(names: list[str], path: str, delimiter: str) -> list[str]:
    if len(names) == 1:
        for word, other in DELIMITERS.items():
            if other != delimiter and other in names[0]:
                raise InputFileError(
                    f"{path}, line 1: no {delimiter!r} in it, but {other!r} ({word}); if that stands between the "
                    f"cells, say so with --delimiter {word}"
                )
    numeric = [name for name in names if is_plain(name)]
    if len(numeric) >= max(1, len(names) - 1) and not _are_names(numeric):
        raise InputFileError(
            f"{path}, line 1: numbers ({', '.join(numeric[:3])}), but the first line has to name the columns"
        )
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name == NAMELESS and number > 1:
            raise InputFileError(f"{path}, line 1: column {number} has no name")
        if name in seen:
            raise InputFileError(f"{path}, line 1: columns {seen[name]} and {number} have the same name, {name!r}")
        seen[name] = number
    return names


def _are_names(numeric: Sequence[str]) -> bool:
    """Whether numbers in a header are names: 0, 1, 2, … as pandas writes them, years or wavelengths in even steps."""
    values = np.array(numeric, dtype=np.float64)
    if list(numeric) in ([str(number + first) for number in range(len(numeric))] for first in (0, 1)):
        return True
    steps = np.diff(values)
    return len(numeric) > 3 and bool(np.allclose(steps, steps[0], rtol=1e-3)) and steps[0] != 0


def _refuse_spaces(names: Sequence[str], cell: str, path: str) -> None:
    """A single column of cells like "a1 0.3 0.7" is a file with blanks between the cells."""
    words = cell.split()
    if len(names) == 1 and len(words) == len(names[0].split()) > 1 and any(is_plain(word) for word in words):
        raise InputFileError(
            f"{path}, line 1: a single column, {names[0]!r}; cells have to be separated by a comma, tab, semicolon or "
            "bar, not by blanks"
        )


class _Cells:
    """One column while it is read."""

    def __init__(self, name: str, path: str, decimal: str | None, *, text: bool) -> None:
        self.name = name
        self._kind = TEXT if text else None  # None while all cells are blank
        self._n_blank = 0  # cells before the kind was known
        self._numbers = Numerals(
            lambda line: f"{path}, line {line}, column {name!r}", decimal or POINT, told=decimal is not None
        )
        self._texts: list[NDArray] = []
        self._shared: dict[str | None, str | None] = {}  # equal texts are held once
        self.n_bytes = 0  # held in memory

    def extend(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """More cells, and the lines that they are in."""
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
                if len(self._shared) < MOST_SHARED:
                    self._shared[text] = text
            texts[row] = shared
        return texts

    def finish(self) -> Column:
        """The column, once all of it is read."""
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
    """Numbers if most cells that are not blank are; None if all are blank."""
    written = [cell for cell in cells if not is_missing(cell)]
    if not written:
        return None
    return NUMBER if is_mostly_numbers(written) else TEXT
