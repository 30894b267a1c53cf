"""JSON Lines files, plain or gzipped: an object per line, its keys are the columns; errors name the line."""

import json
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.data.list_columns import stack_lists
from lmssc.io.errors import InputFileError
from lmssc.io.table import NUMBER, OTHER, TEXT, Column, LazyBlocks, Rows, Table, clean_texts
from lmssc.io.unpacking import Unpacked, open_bytes

# Bytes that a cell takes, also a blank one: every key is a column of all rows.
CELL = 8


def read_json_lines(path: str) -> Table:
    r"""Read a JSON Lines file: every line is an object, every key is a column.

    Parameters
    ----------
    path : str
        Name of the file.

    Returns
    -------
    Table
        A key that a line lacks, null and NaN are blank cells. A column with both numbers and text is text. A column
        of lists of numbers is a matrix.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.jsonl"
    >>> _ = path.write_text('{"id": "007", "x": 1.5}\n\n{"id": "008", "wet": true}\n')
    >>> table = read_json_lines(str(path))
    >>> table.texts("id"), table.numbers("x"), table.columns["wet"].truth
    (array(['007', '008'], dtype=object), array([1.5, nan]), True)
    >>> table.rows.place(1).removeprefix(str(path))
    ', line 3'
    """
    unpacked = Unpacked(path)
    cells: dict[str, list[Any]] = {}
    lines: list[int] = []
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            found = _parse(line, f"{path}, line {number}", first=number == 1)
            new = [name for name in found if name not in cells]
            # A few bytes per line can make a column of all rows: count before the cells are made.
            unpacked.reach(CELL * (len(lines) + 1) * (len(cells) + len(new)))
            cells |= {name: [None] * len(lines) for name in new}
            for name, column in cells.items():
                column.append(found.get(name))
            lines.append(number)
    if not lines:
        raise InputFileError(f"{path} is empty; each line must be a JSON object")
    rows = Rows(path, len(lines), np.array(lines))
    lists = {name for name, values in cells.items() if _are_lists_of_numbers(values)}
    columns = {name: _column(values, rows, name) for name, values in cells.items() if name not in lists}
    return Table(
        rows, columns, LazyBlocks({name: partial(_stack, cells[name], rows, name) for name in cells if name in lists})
    )


def _are_lists_of_numbers(values: list[Any]) -> bool:
    lists = [value for value in values if value is not None]
    return bool(lists) and all(
        type(value) is list and all(type(one) in (int, float, type(None)) for one in value) for value in lists
    )


def _stack(values: list[Any], rows: Rows, name: str) -> NDArray:
    """A column of lists of numbers, such as embeddings, as a matrix."""
    width = next(len(value) for value in values if value is not None)
    for row, value in enumerate(values):
        if value is not None and len(value) != width:
            raise InputFileError(
                f"{rows.place(row)}, column {name!r}: a list of {len(value)}, but the first has {width}; all lists "
                "of a view must have the same length. Or leave the column out with --drop"
            )
    return stack_lists(values, f"{rows.path}, column {name!r}")


def _parse(line: bytes, where: str, *, first: bool) -> dict[str, Any]:
    try:
        text = line.decode("utf-8-sig" if first else "utf-8").strip()
        found = json.loads(text, object_pairs_hook=_without_repeats)
        if "\\u" in text:  # half of a surrogate pair is valid JSON, but cannot be written to a file
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputFileError(f"{where}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from error
    except UnicodeEncodeError as error:
        raise InputFileError(f"{where}: half of a surrogate pair (\\ud800 to \\udfff) is not text") from error
    except json.JSONDecodeError as error:  # its own message says "line 1"
        raise InputFileError(f"{where}: not a JSON object, {error.msg} at character {error.colno}") from error
    except _RepeatedKeyError as error:
        raise InputFileError(f"{where}: the key {error.args[0][:30]!r} appears twice") from error
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise InputFileError(f"{where}: too long a number or too deeply nested") from error
    if not isinstance(found, dict):
        raise InputFileError(f'{where}: it must be an object such as {{"id": "a1", "x": 0.5}}, not {_type(found)}')
    return found


class _RepeatedKeyError(Exception):
    """A key that an object has twice; `json` would keep the last value without a word."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _RepeatedKeyError(name)
        found[name] = value
    return found


def _column(values: list[Any], rows: Rows, name: str) -> Column:
    types = {type(value) for value in values} - {type(None)}
    if types & {list, dict}:
        row = next(row for row, value in enumerate(values) if isinstance(value, list | dict))
        fault = f"{rows.place(row)}, column {name!r}: {_type(values[row])}, neither a number nor text; leave it out "
        return Column(OTHER, lambda: np.empty(0), fault + "with --drop")
    if str in types or any(type(value) is int and not -(2**63) <= value < 2**63 for value in values):
        texts = clean_texts(value if value is None or isinstance(value, str) else json.dumps(value) for value in values)
        return Column(TEXT, lambda: texts)
    numbers = _numbers(values, types)
    return Column(NUMBER, lambda: numbers, truth=types == {bool})


def _numbers(values: list[Any], types: set[type]) -> NDArray:
    """Whole numbers stay whole: ids beyond 2**53 would not survive as floats."""
    if None not in values and types <= {int, bool}:
        return np.array(values, dtype=np.uint8 if types == {bool} else np.int64)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _type(value: Any) -> str:
    names = {list: "a list", dict: "an object", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
