"""Excel workbooks (.xlsx): the first sheet, whose first row names the columns."""

import zipfile
from itertools import islice
from typing import Any

import numpy as np

from lmssc._optional import import_optional
from lmssc.io.arrays import check_members
from lmssc.io.errors import InputFileError
from lmssc.io.frame_table import column_of_objects
from lmssc.io.table import Rows, Table, reason
from lmssc.io.unpacking import Unpacked, open_bytes

# Bytes that a cell takes, also a blank one.
CELL = 64
MAX_COLUMNS = 1 << 14


def read_workbook(path: str) -> Table:
    """Read the first sheet of an Excel workbook.

    Formulas count as their last result, nothing is computed. Messages name the rows of the sheet.
    """
    openpyxl = import_optional("openpyxl", purpose="Excel workbooks", extra="excel")
    unpacked = Unpacked(path)
    with open_bytes(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                check_members(archive, unpacked)
            file.seek(0)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            names, cells, lines = _read_cells(book.worksheets[0], path, unpacked)
            others = book.sheetnames[1:]
            book.close()
        except InputFileError:
            raise
        except Exception as error:  # zip, zlib, XML and openpyxl have errors of their own
            raise InputFileError(f"{path} is not a complete Excel workbook: {reason(error)}") from error
    rows = Rows(path, len(lines), np.array(lines), "row")
    columns = {name: column_of_objects(values, name, path) for name, values in zip(names, cells, strict=True)}
    note = f"{path}: the first of {len(others) + 1} sheets is read." if others else ""
    return Table(rows, columns, note=note)


def _read_cells(sheet: Any, path: str, unpacked: Unpacked) -> tuple[list[str], list[list[Any]], list[int]]:
    """Names and cells of the columns, and the number of each row that is not blank."""
    stream = enumerate(sheet.iter_rows(values_only=True), 1)
    first, header = next(((number, row) for number, row in stream if any(cell is not None for cell in row)), (0, ()))
    names = ["" if cell is None else str(cell).strip() for cell in header]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise InputFileError(f"{path} is empty; the first row names the columns")
    if len(names) > MAX_COLUMNS:
        raise InputFileError(f"{path}: more than {MAX_COLUMNS} columns")
    for place, name in enumerate(names):
        if (not name and place) or names.index(name) != place:
            what = f"the column {name!r} appears twice" if name else f"column {place + 1} has no name"
            raise InputFileError(f"{path}, row {first}: {what}")
    cells: list[list[Any]] = [[] for _ in names]
    lines = []
    for number, row in stream:
        if all(cell is None for cell in row):
            continue
        if any(cell is not None for cell in islice(row, len(names), None)):
            raise InputFileError(f"{path}, row {number}: more cells than the {len(names)} columns that have names")
        unpacked.add(CELL * len(names))
        lines.append(number)
        padded = [*row[: len(names)], *[None] * (len(names) - len(row))]
        for column, cell in zip(cells, padded, strict=True):
            column.append(cell)
    if not lines:
        raise InputFileError(f"{path} has columns but no rows")
    return names, cells, lines
