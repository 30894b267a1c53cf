"""Files of views as they were read: a table each, with its columns of ids and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmssc.io.delimited import NAMELESS
from lmssc.io.errors import InputFileError
from lmssc.io.options import ID_NAMES, LABEL_NAMES, Options, may_be
from lmssc.io.table import NUMBER, Table, some, stem
from lmssc.io.transposed import transpose_table
from lmssc.persistence.atomic import readable


@dataclass(frozen=True)
class Source:
    """A file that was read: its table, and the names of its id and label columns."""

    name: str  # of its view: NAME of NAME=FILE, else from the file name
    named: bool  # whether NAME was given
    table: Table
    id_column: str | None
    label_column: str | None

    @cached_property
    def ids(self) -> NDArray | None:
        """Checked ids of its rows; None without an id column."""
        return None if self.id_column is None else check_ids(self.table, self.id_column)


def read_sources(arguments: Sequence[str], options: Options) -> list[Source]:
    """Read the files given on the command line as ``FILE`` or ``NAME=FILE``."""
    sources = []
    for argument in arguments:
        name, path = split_argument(argument)
        table, view = options.read(path), name or stem(path)
        if view in options.transpose and any(column.feature for column in table.columns.values()):
            table = transpose_table(table, view, options.drop)
        sources.append(
            Source(view, bool(name), table, find_id_column(table, options), find_label_column(table, options))
        )
    paths = [source.table.path for source in sources]
    repeated = [path for path in paths if paths.count(path) > 1]
    if repeated:
        raise InputFileError(f"{repeated[0]} is given twice")
    return sources


def split_argument(argument: str) -> tuple[str, str]:
    """Name and path of ``NAME=FILE``, or no name and the path.

    Examples
    --------
    >>> split_argument("text=new/words.csv"), split_argument("words.csv")
    (('text', 'new/words.csv'), ('', 'words.csv'))
    """
    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists() or "/" in name or not name:
        return "", argument
    return readable(name), path


def find_id_column(table: Table, options: Options) -> str | None:
    """Find the id column: the one named by --id, else one found before, else "id", else an unnamed first column."""
    if table.id_column is not None:
        return options.id_column if options.id_column in table.columns else table.id_column
    if options.id_column is not None:
        if options.id_column in table.columns:
            return options.id_column
        if any(column.feature for column in table.columns.values()):
            raise InputFileError(
                f"{table.path} has no column {options.id_column!r}, which --id names; it has {some(table.columns)}"
            )
        return None
    found = (name for name in options.id_names if name in table.columns)
    return next(found, None) or next(
        (name for name in table.columns if may_be(name, None, (*ID_NAMES, NAMELESS))), None
    )


def find_label_column(table: Table, options: Options) -> str | None:
    """Find the label column: the one named by --label-column, else "label"; "obs:" may be left out."""
    if table.id_column is not None and f"obs:{options.label_column}" in table.columns:
        return f"obs:{options.label_column}"
    return next((name for name in table.columns if may_be(name, options.label_column, LABEL_NAMES)), None)


def check_ids(table: Table, column: str) -> NDArray:
    """Return the ids of all rows as text; raise if one is blank or repeated."""
    values = table.columns[column]
    shown = column or "1 (which has no name)"
    if values.kind == NUMBER and not values.fault and np.asarray(values.load()).dtype.kind == "f":
        numbers = values.load()
        broken = np.flatnonzero(numbers != np.rint(numbers))
        if len(broken) and not np.isnan(numbers[broken[0]]):
            raise InputFileError(
                f"{table.rows.place(broken[0])}, column {shown!r}: {numbers[broken[0]]:g} is not an id; ids are "
                "text or whole numbers"
            )
    ids = table.texts(column)
    seen: dict[str, int] = {}
    for row, value in enumerate(ids):
        if value is None:
            raise InputFileError(f"{table.rows.place(row)}, column {shown!r}: the id is blank")
        if value in seen:
            raise InputFileError(
                f"{table.rows.place(row)}, column {shown!r}: the id {value!r} appears twice, first in "
                f"{table.rows.place(seen[value]).removeprefix(table.path + ', ')}"
            )
        seen[value] = row
    return ids


def _is_feature(source: Source, name: str, options: Options) -> bool:
    return (
        source.table.columns[name].feature
        and name not in (source.id_column, source.label_column)
        and name not in options.drop
    )


def feature_columns(source: Source, options: Options) -> list[str]:
    """Return the columns that can be features: not ids, labels or dropped."""
    return [name for name in source.table.columns if _is_feature(source, name, options)]
