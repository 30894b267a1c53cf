"""Find a key: a column that identifies the samples in several files, though it is not called "id"."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmssc.io.column_types import looks_like_id
from lmssc.io.errors import InputFileError
from lmssc.io.options import Options
from lmssc.io.row_order import is_rank, refuse_other_order, suggests_key
from lmssc.io.sources import Source, find_label_column
from lmssc.io.table import NUMBER, TEXT, Table, some

# Whole numbers in fewer rows are not taken for ids.
MIN_ROWS = 5
# Rows looked at first, to rule a column out quickly.
N_SAMPLED = 1000
# Two columns may hold the same ids if more than this share of the shorter one is in the other.
MIN_OVERLAP = 0.5


@dataclass(frozen=True)
class Key:
    """A column of distinct values, as text."""

    table: Table
    name: str
    ids: NDArray

    @cached_property
    def values(self) -> frozenset[str]:
        """The set of its values."""
        return frozenset(self.ids)

    def overlaps(self, other: "Key") -> bool:
        """Whether most values of the shorter column are in the other one."""
        shared = len(self.values & other.values)
        return shared > MIN_OVERLAP * min(len(self.values), len(other.values))

    def agrees(self, other: "Key") -> bool:
        """Whether both have the same values in the same rows."""
        return len(self.ids) == len(other.ids) and bool((self.ids == other.ids).all())


def find_keys(
    sources: Sequence[Source], labels: Iterable[Table], options: Options, notes: list[str]
) -> tuple[list[Source], Options]:
    """Give files without an id column one that they share with other files or with the labels.

    Parameters
    ----------
    sources : sequence of Source
        The files of the views.
    labels : iterable of Table
        The files of labels.
    options : Options
        What the user said about the files.
    notes : list of str
        A line on what was found is appended.

    Returns
    -------
    sources : list of Source
        The same files; those that share a key have it as their id column.
    options : Options
        With the names of the keys.

    Raises
    ------
    InputFileError
        If several columns may be the key.
    """
    if options.id_column is not None:
        return list(sources), options
    found = _shared_by_views([source for source in sources if source.id_column is None], sources, options)
    if not found:
        found = _shared_with_labels(sources, list(labels), options)
    if not found:
        refuse_other_order(sources, options)
        return list(sources), options
    names = list(dict.fromkeys(key.name for key in found))
    paths = dict.fromkeys(key.table.path for key in found)
    notes.append(
        f"{some(paths)}: rows with the same {' or '.join(map(repr, names))} are taken for the same sample (--id names "
        "another column)."
    )
    options = replace(options, id_names=(*options.id_names, *names))
    keys = {key.table.path: key.name for key in found}
    sources = [_with_key(source, keys.get(source.table.path), options) for source in sources]
    refuse_other_order(sources, options)
    return sources, options


def _with_key(source: Source, name: str | None, options: Options) -> Source:
    if name is None:
        return source
    table = source.table
    if table.types_detected and table.columns[name].kind == NUMBER:
        table = options.read(table.path)  # again: ids have to be kept as written
    return Source(source.name, source.named, table, name, source.label_column)


def possible_keys(table: Table, besides: Collection[str] = ()) -> list[Key]:
    """Return the columns that may be ids: text or whole numbers, none blank, all distinct.

    Parameters
    ----------
    table : Table
        A file.
    besides : collection of str
        Columns known to hold something else.

    Returns
    -------
    list of Key

    Examples
    --------
    >>> from lmssc.io.table import Column, Rows
    >>> columns = {"key": Column("number", lambda: np.arange(6.0)), "x": Column("number", lambda: np.ones(6))}
    >>> [key.name for key in possible_keys(Table(Rows("a.csv", 6), columns))]
    ['key']
    """
    keys = []
    for name, column in table.columns.items():
        if name in besides or column.kind not in (NUMBER, TEXT) or column.fault or column.unit:
            continue
        values = column.load()
        if len(values) == table.rows.count and _may_be_ids(values[:N_SAMPLED]) and _may_be_ids(values):
            keys.append(Key(table, name, table.texts(name)))
    return keys


def _may_be_ids(values: NDArray) -> bool:
    if values.dtype.kind == "O":
        return all(value is not None for value in values) and len(set(values)) == len(values)
    if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.rint(values)).all()):
        return False
    return len(values) >= MIN_ROWS and values.dtype.kind != "b" and len(np.unique(values)) == len(values)


def _besides(source: Source, options: Options) -> set[str]:
    cells = source.table.usual_blocks is not None  # their obs_names are the ids
    unused = {
        name for name, column in source.table.columns.items() if not column.feature and (cells or column.kind != TEXT)
    }
    return {*unused, *options.drop, *options.types, *([source.label_column] if source.label_column else [])}


def _shared_by_views(lacking: Sequence[Source], sources: Sequence[Source], options: Options) -> list[Key]:
    """Keys of the files without ids, if other files have the same values."""
    if not lacking or len(sources) < 2:
        return []
    keys = [possible_keys(source.table, _besides(source, options)) for source in lacking]
    known = next((source for source in sources if source.id_column is not None), None)
    if known is not None:
        ids = Key(known.table, str(known.id_column), np.asarray(known.ids))
        return [key for some_keys in keys for key in _like_ids(some_keys, ids)]
    groups = _same_name(keys) or _other_name(keys)
    certain = [group for group in groups if all(key.values == group[0].values for key in group)]
    if len(certain) > 1:
        names = [group[0].name for group in certain]
        raise InputFileError(
            f"{some(key.table.path for key in certain[0])} share several columns that may be ids: {some(names)}; say "
            f"which with --id NAME, such as --id {names[0]}"
        )
    if certain:
        _refuse_ranks(certain[0])
        return certain[0]
    if groups:
        _ask(groups[0])
    _refuse_other_order(lacking, options)
    return []


def _same_name(keys: Sequence[Sequence[Key]]) -> list[list[Key]]:
    """Keys of the same name in two files or more, with values in common."""
    by_name: dict[str, list[Key]] = {}
    for key in (key for some_keys in keys for key in some_keys):
        by_name.setdefault(key.name, []).append(key)
    return [group for group in by_name.values() if len(group) > 1 and all(group[0].overlaps(key) for key in group[1:])]


def _other_name(keys: Sequence[Sequence[Key]]) -> list[list[Key]]:
    """Keys of text with the same values in all files but different names."""
    groups = []
    for first in keys[0]:
        others = [[key for key in some_keys if key.values == first.values] for some_keys in keys[1:]]
        if first.table.columns[first.name].kind == TEXT and all(len(found) == 1 for found in others):
            groups.append([first, *(found[0] for found in others)])
    return groups


def _like_ids(keys: Sequence[Key], ids: Key) -> list[Key]:
    """The key of a file whose values are the ids of another file, which has a column "id"."""
    fitting = [key for key in keys if key.overlaps(ids)]
    text = [key for key in fitting if key.table.columns[key.name].kind == TEXT or looks_like_id(key.name)]
    if len(text) == 1:
        return text
    doubtful = [key for key in fitting if len(fitting) > 1 or not key.agrees(ids)]
    if doubtful:
        raise InputFileError(
            f"{doubtful[0].table.path} has no column {ids.name!r}, but {some(key.name for key in fitting)} may have "
            f"the ids of {ids.table.path}; rename it to {ids.name!r}, or leave it out with --drop {doubtful[0].name}"
        )
    return []


def _ask(group: Sequence[Key]) -> None:
    first, other = group[0], next(key for key in group if key.values != group[0].values)
    shared = len(first.values & other.values)
    raise InputFileError(
        f"{first.table.path} and {other.table.path} both have a column {first.name!r}, with {shared:,} values in "
        f"common and {len(first.values ^ other.values):,} that only one of them has; if it has the ids "
        f"of the samples, pass --id {first.name}, else --drop {first.name}"
    )


def _refuse_ranks(group: Sequence[Key]) -> None:
    """Numbers from 1 to n in two orders may be ranks, which are no ids, unless the name suggests a key."""
    first = group[0]
    columns = [key.table.columns[key.name] for key in group]
    if (
        all(column.kind == NUMBER and is_rank(column.load()) for column in columns)
        and not any(suggests_key(key.name) for key in group)
        and not all(key.agrees(first) for key in group)
    ):
        raise InputFileError(
            f"{some(key.table.path for key in group)} have the same numbers in a column {first.name!r}, but not in the "
            f"same rows: are they ids or ranks? If ids, pass --id {first.name}, else --drop {first.name} (or "
            f"--type {first.name}=number, if it is a feature)"
        )


def _refuse_other_order(sources: Sequence[Source], options: Options) -> None:
    """Raise if files are about to be joined by position although an id-like column says otherwise."""
    first, *rest = sources
    for name in first.table.columns:
        for other in rest:
            if (
                looks_like_id(name)
                and name in other.table.columns
                and name not in _besides(first, options) | _besides(other, options)
                and not np.array_equal(first.table.texts(name), other.table.texts(name))
            ):
                raise InputFileError(
                    f"{first.table.path} and {other.table.path} both have a column {name!r}, but with different values "
                    f"in the same rows; if it has the ids of the samples, pass --id {name}, else --drop {name}"
                )


def _shared_with_labels(sources: Sequence[Source], labels: Sequence[Table], options: Options) -> list[Key]:
    """The key of a file of views that the file of labels shares."""
    if any(source.id_column is not None for source in sources):
        return []
    for table in labels:
        label_column = find_label_column(table, options)
        theirs = possible_keys(table, [label_column] if label_column else [])
        for source in sources:
            ours = possible_keys(source.table, _besides(source, options))
            pairs = [(key, other) for key in ours for other in theirs if _may_label(key, other)]
            names = list(dict.fromkeys(key.name for key, _ in pairs))
            if len(names) > 1:
                raise InputFileError(
                    f"{source.table.path} and {table.path} share several columns that may be ids: {some(names)}; say "
                    f"which with --id NAME, such as --id {names[0]}"
                )
            if pairs:
                return [pairs[0][0]]
    return []


def _may_label(key: Key, other: Key) -> bool:
    is_text = key.table.columns[key.name].kind == TEXT
    return (key.name == other.name or is_text) and key.overlaps(other)


def find_label_ids(table: Table, ids: NDArray, label_column: str) -> str | None:
    """Find the id column of a file of labels by its values.

    Parameters
    ----------
    table : Table
        The labels.
    ids : ndarray of str
        The samples.
    label_column : str
        Name of the label column.

    Returns
    -------
    str or None
    """
    samples = Key(table, "", ids)
    fitting = [key.name for key in possible_keys(table, [label_column]) if key.overlaps(samples)]
    return fitting[0] if len(fitting) == 1 else None
