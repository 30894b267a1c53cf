"""Columns and matrices of a file become a view: numbers, words or a matrix, checked."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.missing_views import largest_value
from lmssc.io.column_types import CATEGORY, YES_NO, Kind
from lmssc.io.errors import InputFileError
from lmssc.io.features import blank_cells, make_features
from lmssc.io.options import Options
from lmssc.io.sources import Source
from lmssc.io.table import NUMBER, Rows, Table, counted, some
from lmssc.io.words import count_words
from lmssc.numerics.matrices import Matrix


@dataclass(frozen=True)
class FileView:
    """A view of one file, before rows of several files are joined.

    Attributes
    ----------
    name : str
        Name of the view.
    data : ndarray or CSR array
        Its values.
    present : ndarray of bool
        False for rows that lack the view.
    rows : Rows
        Where the rows are, for messages.
    ids : ndarray of str, or None
        Ids of the rows.
    id_column : str, or None
        Name of the id column.
    recipe : dict
        What `predict` needs to make the same view from another file: kind, columns.
    links : bool
        Whether the data are links between the samples, with a column for each row.
    skippable : bool
        Whether samples without any view are left out, as in containers, instead of being an error.
    columns : sequence of str, or None
        For each column of the data, the column of the file or the word that it comes from; None if they have no names.
    """

    name: str
    data: Matrix
    present: NDArray
    rows: Rows
    ids: NDArray | None
    id_column: str | None
    recipe: dict[str, Any]
    links: bool = False
    skippable: bool = False
    columns: Sequence[str] | None = None


def number_view(
    source: Source,
    view: str,
    kinds: Mapping[str, Kind],
    options: Options,
    notes: list[str],
    *,
    unknown: list[str] | None = None,
) -> FileView:
    """Make a view of numbers and categories; a row of blanks lacks the view.

    Parameters
    ----------
    source : Source
        The file.
    view : str
        Name of the view.
    kinds : dict of str to Kind
        Its columns and their kinds.
    options : Options
        What the user said about the files.
    notes : list of str
        A line on blank cells is appended.
    unknown : list of str, optional
        Lines on category values that `kinds` does not know are appended.

    Returns
    -------
    FileView
    """
    table = source.table
    parts, names = [], []
    for name, kind in kinds.items():
        part = make_features(table, name, kind, decimal=options.decimal, notes=unknown)
        parts.append(part)
        names += [name] * (1 if part.ndim == 1 else part.shape[1])
    single = all(part.dtype == np.float32 for part in parts)
    data = np.empty((table.rows.count, len(names)), dtype=np.float32 if single else np.float64)
    place = 0
    for part in parts:
        width = 1 if part.ndim == 1 else part.shape[1]
        data[:, place : place + width] = part.reshape(len(part), -1)
        place += width
    data[_rows_of_blanks(table, kinds, data, names)] = np.nan
    present = _check_dense(data, table.rows, names, options.impute, notes)
    special = {name: kind.as_data() for name, kind in kinds.items() if kind != Kind(NUMBER)}
    recipe = {"kind": "numbers", "columns": list(kinds), "kinds": special, "ranges": _ranges(data, names, kinds)}
    return FileView(view, data, present, table.rows, source.ids, source.id_column, recipe, columns=names)


def _ranges(data: NDArray, names: Sequence[str], kinds: Mapping[str, Kind]) -> dict[str, list[float]]:
    """The smallest and the largest number of each numeric column."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of NaN only
        low, high = np.nanmin(data, axis=0), np.nanmax(data, axis=0)
    return {
        name: [float(low[place]), float(high[place])]
        for place, name in enumerate(names)
        if kinds[name].role == NUMBER and np.isfinite(low[place])
    }


def _rows_of_blanks(table: Table, kinds: Mapping[str, Kind], data: NDArray, names: Sequence[str]) -> NDArray:
    """Rows that are blank in every column, although blank cells of categories have features.

    If all columns are categories, only empty cells count as blank: "NA" may be the answer in all of them.
    """
    special = {name: kind for name, kind in kinds.items() if kind.role in (CATEGORY, YES_NO) and kind.blank is not None}
    if not special:
        return np.zeros(len(data), dtype=bool)
    blank = np.ones(len(data), dtype=bool)
    for place, name in enumerate(names):
        if name not in special:
            blank &= np.isnan(data[:, place])
    for name, kind in special.items():
        if blank.any():
            blank &= blank_cells(table, name, kind, empty=len(special) == len(kinds))
    return blank


def text_view(source: Source, view: str, column: str, words: Sequence[str]) -> FileView:
    """Make a view of word counts from a column of text; a row without any word of the vocabulary lacks the view."""
    counts, present = count_words(source.table.texts(column), words)
    recipe = {"kind": "text", "columns": [column], "words": list(words)}
    return FileView(view, counts, present, source.table.rows, source.ids, source.id_column, recipe, columns=words)


def block_view(source: Source, view: str, block: str, transposed: bool, options: Options, notes: list[str]) -> FileView:
    """Make a view of a matrix in a file.

    If it is `transposed`, the matrix has one column per sample. A line on blank cells is appended to `notes`.
    """
    table, ids = source.table, source.ids
    data = table.blocks[block]
    rows = table.rows
    turned = transposed or table.transposed
    transposed = transposed and not table.transposed
    if transposed:
        data = data.T.tocsr() if sparse.issparse(data) else data.T
    if transposed or data.shape[0] != rows.count:
        rows = Rows(table.path, data.shape[0])
    if not data.shape[1]:
        raise InputFileError(f"{table.path}: view {view!r} has no columns")
    if data.dtype not in (np.float32, np.float64):
        data = data.astype(np.float64)
    # A matrix that does not have the name of its file is named in messages, such as a column of embeddings.
    of_block = "" if block == Path(table.path).name.partition(".")[0] else f" of {block!r}"
    if sparse.issparse(data):
        present = _check_sparse(data, rows, of_block)
    else:
        present = _check_dense(data, rows, None, options.impute, notes, of_block)
    if (mask := table.present(block)) is not None and not transposed:
        present &= mask
    recipe: dict[str, Any] = {"kind": "matrix", "columns": None}
    if block in table.links:
        recipe["kind"] = "links"
    if block != view:
        recipe["block"] = block
    if (features := table.features(block)) is not None and not transposed:
        recipe["features"] = list(features)
    if block in table.block_columns:
        recipe = {"kind": "numbered", "columns": None, "first": table.block_columns[block]}
    if turned:
        recipe["transposed"] = True
    if ids is not None and len(ids) != rows.count:
        raise InputFileError(f"{table.path}: view {view!r} has {rows.count} rows, but there are {len(ids)} ids")
    links, in_container = block in table.links, table.usual_blocks is not None
    columns = recipe.get("features")
    return FileView(view, data, present, rows, ids, source.id_column, recipe, links, in_container, columns)


def _check_dense(
    data: NDArray, rows: Rows, columns: Sequence[str] | None, impute: str | None, notes: list[str], of_block: str = ""
) -> NDArray:
    """Return which rows are not all NaN; raise for infinite and too large values, and for NaN that is not imputed."""
    largest = largest_value(data.dtype)
    if -largest <= data.min() <= data.max() <= largest:  # False if there is a NaN
        return np.ones(len(data), dtype=bool)
    blank = np.isnan(data)
    missing = blank.all(axis=1)
    if missing.all():
        shown = f"the matrix{of_block.removeprefix(' of')}" if columns is None else some(dict.fromkeys(columns))
        raise InputFileError(f"{rows.path}: all rows of {shown} are blank")
    wrong = ~(np.abs(data) <= largest) & ~missing[:, None]
    if impute is not None:
        wrong &= ~blank
    if wrong.any():
        row, place = (int(number) for number in np.argwhere(wrong)[0])
        name = f"{place + 1}{of_block}" if columns is None else repr(columns[place])
        raise InputFileError(f"{rows.place(row)}, column {name}: {_complaint(float(data[row, place]))}")
    notes += _describe_blanks(blank[~missing], rows.path, columns, impute, of_block)
    return ~missing


def _describe_blanks(
    blank: NDArray, path: str, columns: Sequence[str] | None, impute: str | None, of_block: str = ""
) -> list[str]:
    counts = blank.sum(axis=0)
    named: dict[Any, int] = {}
    for place in np.flatnonzero(counts).tolist():
        # The features of one category are blank in the same rows: count them once.
        named[place + 1 if columns is None else columns[place]] = int(counts[place])
    if not named:
        return []
    listed = some(f"{name} ({count:,})" for name, count in named.items())
    where = "" if columns is not None else "column "
    count = counted(sum(named.values()), "blank cell")
    return [f"{path}: {count} filled in with the column {impute}: {where}{listed}{of_block}."]


def _check_sparse(data: Any, rows: Rows, of_block: str) -> NDArray:
    bad = np.flatnonzero(~(np.abs(data.data) <= largest_value(data.dtype)))
    if len(bad):
        row = int(np.searchsorted(data.indptr, bad[0], side="right")) - 1
        complaint = _complaint(float(data.data[bad[0]]))
        raise InputFileError(f"{rows.place(row)}, column {int(data.indices[bad[0]]) + 1}{of_block}: {complaint}")
    return np.ones(data.shape[0], dtype=bool)


def _complaint(value: float) -> str:
    if np.isnan(value):
        return "blank or NaN; fill it in, or use --impute (only a row of blanks means that the sample lacks the view)"
    if np.isinf(value):
        return "infinite; values must be finite"
    return f"{value:g} is too large; if it marks a missing value, leave the cell blank"
