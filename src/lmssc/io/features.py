"""Columns of a table as features: numbers, 0 and 1 for no and yes, one-hot categories."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmssc.io.column_types import CATEGORY, WORDS, YES_NO, Kind
from lmssc.io.numerals import decimal_of, is_missing, read_numbers
from lmssc.io.table import TEXT, InputFileError, Table, counted, some


def make_features(
    table: Table, name: str, kind: Kind, *, decimal: str | None = None, notes: list[str] | None = None
) -> NDArray:
    """Make the features of a column.

    Parameters
    ----------
    table : Table
        A file.
    name : str
        The column.
    kind : Kind
        What it holds, or held in the files that the model was fitted to.
    decimal : {".", ","}, optional
        The decimal mark, if --decimal gives it.
    notes : list of str, optional
        A line on values that `kind` does not know is appended.

    Returns
    -------
    ndarray of shape (n,), or (n, k) for a category of k values
        NaN where the cell is blank.
    """
    if kind.role == CATEGORY:
        return _one_hot(table, name, kind.levels, notes)
    if kind.role == YES_NO and table.columns[name].kind == TEXT:
        return _yes_no(table, name, notes)
    return _numbers(table, name, kind, decimal)


def _one_hot(table: Table, name: str, levels: Sequence[str], notes: list[str] | None) -> NDArray:
    places = {level: place for place, level in enumerate(levels)}
    texts = table.texts(name)
    data = np.zeros((len(texts), len(levels)))
    strange = []
    for row, text in enumerate(texts):
        if text is None or is_missing(text):
            data[row] = np.nan
        elif text in places:
            data[row, places[text]] = 1
        else:
            strange.append(text)
    if strange and notes is not None:
        notes.append(
            f"{table.path}, column {name!r}: {counted(len(strange), 'cell')} with values unknown to the model "
            f"({some(dict.fromkeys(strange), 3)}); they count as none of the known ones."
        )
    return data


def _yes_no(table: Table, name: str, notes: list[str] | None) -> NDArray:
    texts = table.texts(name)
    values = np.full(len(texts), np.nan)
    strange = []
    for row, text in enumerate(texts):
        if text is not None and not is_missing(text):
            values[row] = WORDS.get(text.lower(), float(text) if text in ("0", "1") else np.nan)
            if np.isnan(values[row]):
                strange.append(text)
    if strange and notes is not None:
        notes.append(
            f"{table.path}, column {name!r}: {counted(len(strange), 'cell')} with neither yes nor no "
            f"({some(dict.fromkeys(strange), 3)}); taken as blank."
        )
    return values


def _numbers(table: Table, name: str, kind: Kind, decimal: str | None) -> NDArray:
    column = table.columns[name]
    if column.kind == TEXT:
        texts = column.load()
        mark = decimal or decimal_of(text for text in texts if text is not None) or kind.decimal
        told = decimal is not None
        numbers = read_numbers(
            texts.tolist(), mark, told=told, where=lambda row: f"{table.rows.place(row)}, column {name!r}"
        )
        if numbers.fault:
            raise InputFileError(numbers.fault)
        values, unit = numbers.values, numbers.unit
    else:
        values, unit = table.numbers(name), column.unit
    if unit != kind.unit and not np.isnan(values).all():
        raise InputFileError(
            f"{table.path}, column {name!r}: its numbers {_beside(unit)}, but those of the model {_beside(kind.unit)}; "
            "write them in the same way"
        )
    return values


def _beside(unit: str) -> str:
    return f"are in {unit!r}" if unit else "have no unit"
