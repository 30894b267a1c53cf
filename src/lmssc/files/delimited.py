"""CSV and TSV files, plain or gzipped, read in pieces, with the line of whatever is wrong."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from lmssc.files.table import NUMBER, TEXT, Column, InputFileError, Rows, Table, clean_texts, counted

DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "bar": "|"}
# Cells of numbers that stand for "not known".
MISSING = {"", "na", "nan", "n/a", "null", "none", "<na>", "#n/a"}
# The column that pandas and R put first without a name.
NAMELESS = ""
# Cells that are held as text at a time (few, so that they stay in the processor's cache), but so many rows at least,
# because the first of them decide what is numbers.
CELLS, LEAST_ROWS = 30_000, 200
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
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
        with gzip.open(path) if packed else open(path, "rb") as file:
            yield cast(BinaryIO, file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputFileError(f"{path}: not a whole gzip file ({error})") from error
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        raise InputFileError(f"{path}: {error.strerror or error}") from error


def read_delimited(path: str, delimiter: str, keep_text: Callable[[str], bool]) -> Table:
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
    with open_bytes(path) as raw:
        _refuse_binary(raw.read(4096), path)
        raw.seek(0)
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        numbered = _Lines(file, delimiter)
        try:
            return _read(numbered, path, delimiter, keep_text)
        except UnicodeDecodeError as error:
            near = numbered.last + 1
            byte = error.object[error.start]
            raise InputFileError(
                f"{path}, line {near} or soon after: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
            ) from error
        except csv.Error as error:
            raise InputFileError(f"{path}, line {numbered.last + 1}: {error} (a quotation mark too few?)") from error


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


def _read(numbered: _Lines, path: str, delimiter: str, keep_text: Callable[[str], bool]) -> Table:
    rows = iter(numbered)
    header = next((cells for _, cells in rows if any(cell.strip() for cell in cells)), None)
    if header is None:
        raise InputFileError(f"{path} is empty; its first line has to name the columns")
    names = _check_header([cell.strip() for cell in header], path, delimiter)
    rows = _without_empty_lines(rows, len(names))
    columns = [_Cells(name, path, text=keep_text(name)) for name in names]
    lines: list[int] = []
    while chunk := list(islice(rows, max(LEAST_ROWS, CELLS // len(names)))):
        for line, cells in chunk:
            if len(cells) != len(names):
                raise InputFileError(
                    f"{path}, line {line}: {counted(len(cells), 'cell')}, but the first line names "
                    f"{counted(len(names), 'column')}"
                )
        numbers = [line for line, _ in chunk]
        if not lines:
            _refuse_spaces(names, chunk[0][1], path)
        lines += numbers
        for column, values in zip(columns, zip(*(cells for _, cells in chunk), strict=True), strict=True):
            column.extend(values, numbers)
    if not lines:
        raise InputFileError(f"{path} has a first line with names and nothing below it")
    made = {column.name: column.finish() for column in columns}
    return Table(Rows(path, len(lines), np.array(lines)), made)


def _check_header(names: list[str], path: str, delimiter: str) -> list[str]:
    if len(names) == 1:
        for word, other in DELIMITERS.items():
            if other != delimiter and other in names[0]:
                raise InputFileError(
                    f"{path}, line 1: no {delimiter!r} in it, but {other!r} ({word}); if that stands between the "
                    f"cells, say so with --delimiter {word}"
                )
    numeric = [name for name in names if _is_number(name)]
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


def _refuse_spaces(names: Sequence[str], cells: Sequence[str], path: str) -> None:
    """A single column of cells like "a1 0.3 0.7" is a file with blanks between the cells."""
    words = cells[0].split()
    if len(names) == 1 and len(words) == len(names[0].split()) > 1 and any(_is_number(word) for word in words):
        raise InputFileError(
            f"{path}, line 1: a single column, {names[0]!r}; cells have to be separated by a comma, tab, semicolon or "
            "bar, not by blanks"
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class _Cells:
    """One column while it is read."""

    def __init__(self, name: str, path: str, *, text: bool) -> None:
        self.name, self._path = name, path
        self._kind = TEXT if text else None  # None while all cells are blank
        self._n_blank = 0  # cells before the kind was known
        self._numbers: list[NDArray] = []
        self._texts: list[str | None] = []
        self._fault = ""

    def extend(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """More cells, and the lines that they are in."""
        if self._kind is None:
            self._kind = _guess(cells)
        if self._kind is None:
            self._n_blank += len(cells)
        elif self._kind == TEXT:
            self._texts += cells
        else:
            try:
                self._numbers.append(np.fromiter(map(float, cells), np.float64, len(cells)))
            except ValueError:
                self._numbers.append(self._one_by_one(cells, lines))

    def _one_by_one(self, cells: Sequence[str], lines: Sequence[int]) -> NDArray:
        values = np.full(len(cells), np.nan)
        for i, cell in enumerate(cells):
            if _is_number(cell):
                values[i] = float(cell)
            elif cell.strip().lower() not in MISSING and not self._fault:
                advice = "; write decimals with a point" if DECIMAL_COMMA.fullmatch(cell) else ""
                shown = cell if len(cell) < 40 else cell[:37] + "..."
                self._fault = (
                    f"{self._path}, line {lines[i]}, column {self.name!r}: {shown!r} is not a number, as the other "
                    f"cells of the column are{advice}"
                )
                if advice:
                    self._fault = (
                        f"{self._path}, line {lines[i]}, column {self.name!r}: {shown!r} has a decimal comma{advice}"
                    )
        return values

    def finish(self) -> Column:
        """The column, once all of it is read."""
        if self._kind == TEXT:
            texts = clean_texts([None] * self._n_blank + self._texts)
            return Column(TEXT, lambda: texts)
        values = np.concatenate([np.full(self._n_blank, np.nan), *self._numbers])
        self._numbers = []
        return Column(NUMBER, lambda: values, self._fault)


def _guess(cells: Sequence[str]) -> str | None:
    """Numbers if most cells that are not blank are; None if all are blank."""
    written = [cell for cell in cells if cell.strip().lower() not in MISSING]
    if not written:
        return None
    n_numbers = sum(_is_number(cell) or DECIMAL_COMMA.fullmatch(cell) is not None for cell in written)
    return NUMBER if 2 * n_numbers > len(written) else TEXT
