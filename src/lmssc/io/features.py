"""Columns of a table as features: numbers, 0 and 1 for no and yes, one-hot categories."""

import numpy as np
from numpy.typing import NDArray

from lmssc.io.column_types import CATEGORY, WORDS, YES_NO, Kind
from lmssc.io.errors import InputFileError
from lmssc.io.numerals import CLOCK, are_durations, decimal_of, is_missing, read_durations, read_numbers
from lmssc.io.table import TEXT, Table, counted, some


class NotNumbersError(InputFileError):
    """A column of numbers has a cell that is none."""


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
    ndarray of shape (n,), or (n, k) for k features
        NaN where the cell of a number is blank. A blank cell of a category or of yes/no has the last feature, if
        blank cells have one.
    """
    if kind.role == CATEGORY:
        return _one_hot(table, name, kind, notes)
    if kind.role != YES_NO:
        return _numbers(table, name, kind, decimal)
    text = table.columns[name].kind == TEXT
    answers = _yes_no(table, name, notes) if text else _numbers(table, name, kind, decimal)
    blank = np.isnan(answers)
    if kind.blank is None:
        return answers
    if not kind.blank:
        _note_blanks(table, name, int(blank.sum()), notes)
        return np.where(blank, 0.5, answers)  # neither
    return np.column_stack([np.where(blank, 0, answers), blank])


def blank_cells(table: Table, name: str, kind: Kind, *, empty: bool = False) -> NDArray:
    """Which cells of a category or of yes/no say nothing; "None" may be an answer.

    Parameters
    ----------
    table, name, kind
        As for `make_features`.
    empty : bool
        Whether words such as "NA" are an answer, too, unlike cells with nothing in them.

    Returns
    -------
    ndarray of bool of shape (n,)
    """
    if kind.role == YES_NO and table.columns[name].kind != TEXT:
        return np.isnan(table.numbers(name))
    texts = table.texts(name)
    return np.array(
        [text is None or (not empty and is_missing(text) and text.lower() != "none") for text in texts], dtype=bool
    )


def _one_hot(table: Table, name: str, kind: Kind, notes: list[str] | None) -> NDArray:
    levels = kind.levels
    places = {level: place for place, level in enumerate(levels)}
    folded: dict[str, int] = {}
    for level, place in places.items():
        folded.setdefault(level.casefold(), place)
    texts = table.texts(name)
    data = np.zeros((len(texts), len(levels) + bool(kind.blank)))
    strange = []
    for row, text in enumerate(texts):
        if text is None or is_missing(text):
            if kind.blank is None:
                data[row] = np.nan
            elif kind.blank:
                data[row, -1] = 1
            continue
        place = places.get(text, folded.get(text.casefold(), -1))
        if place >= 0:
            data[row, place] = 1
        else:
            strange.append(text)
    if kind.blank is False and len(levels) > 1:
        _note_blanks(table, name, sum(text is None or is_missing(text) for text in texts), notes)
    if strange and notes is not None:
        notes.append(
            f"{table.path}, column {name!r}: {counted(len(strange), 'cell')} with values unknown to the model "
            f"({some(dict.fromkeys(strange), 3)}); they count as none of the known ones."
        )
    return data


def _note_blanks(table: Table, name: str, count: int, notes: list[str] | None) -> None:
    if count and notes is not None:
        notes.append(
            f"{table.path}, column {name!r}: {counted(count, 'blank cell')}, of which the model saw none; taken as "
            "none of the values that it knows."
        )


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
        if kind.unit == CLOCK and are_durations(text for text in texts if text is not None and not is_missing(text)):
            return read_durations(texts)
        numbers = read_numbers(
            texts.tolist(), mark, told=told, where=lambda row: f"{table.rows.place(row)}, column {name!r}"
        )
        if numbers.fault:
            raise NotNumbersError(numbers.fault)
        values, unit = numbers.values, numbers.unit
    else:
        if column.fault:
            raise NotNumbersError(column.fault)
        values, unit = table.numbers(name), column.unit
    if unit != kind.unit and not np.isnan(values).all():
        raise InputFileError(
            f"{table.path}, column {name!r}: its numbers {_beside(unit)}, but those of the model {_beside(kind.unit)}; "
            "write them in the same way"
        )
    return values


def _beside(unit: str) -> str:
    return f"are in {unit!r}" if unit else "have no unit"
