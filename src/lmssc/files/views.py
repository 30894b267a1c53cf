"""Tables become views: which columns of which file, as numbers or as words."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.files.delimited import NAMELESS
from lmssc.files.formats import read_table
from lmssc.files.table import NUMBER, TEXT, InputFileError, Rows, Table, some, stem
from lmssc.files.words import count_words, learn_words
from lmssc.inputs import LARGEST
from lmssc.views import Matrix

ID_NAMES = ("id", "ids")
LABEL_NAMES = ("label", "labels")


@dataclass(frozen=True)
class Options:
    """What the user said about the files.

    Attributes
    ----------
    id_column, label_column : str, optional
        Names of the columns with ids and labels; by default "id" and "label".
    delimiter : str, optional
        What stands between the cells of CSV and TSV files.
    selections : dict of str to str
        --view: name of a view and the columns that it has.
    prefix_separator : str, optional
        What ends the prefix of a column's name that names its view.
    drop : sequence of str
        Columns and matrices that are not to be used.
    transpose : sequence of str
        Views whose files have a column a sample.
    """

    id_column: str | None = None
    label_column: str | None = None
    delimiter: str | None = None
    selections: Mapping[str, str] = field(default_factory=dict)
    prefix_separator: str | None = None
    drop: Sequence[str] = ()
    transpose: Sequence[str] = ()

    def keep_text(self, name: str) -> bool:
        """Whether a column is to be kept as written, because it may have ids or labels."""
        return _may_be(name, self.id_column, (*ID_NAMES, NAMELESS)) or _may_be(name, self.label_column, LABEL_NAMES)


def _may_be(name: str, wanted: str | None, usual: Sequence[str]) -> bool:
    return name.lower() in usual if wanted is None else name == wanted


@dataclass(frozen=True)
class Source:
    """A file that was read: its table, and its columns with ids and labels."""

    name: str  # of the view, as given or from the file's name
    named: bool  # whether the name was given
    table: Table
    id_column: str | None
    label_column: str | None

    @cached_property
    def ids(self) -> NDArray | None:
        """Ids of its rows, checked; None if it has none."""
        return None if self.id_column is None else check_ids(self.table, self.id_column)


@dataclass(frozen=True)
class FileView:
    """A view as it is in a file.

    Attributes
    ----------
    name : str
        Its name.
    data : ndarray or CSR array
        Its numbers.
    present : ndarray of bool
        Which rows have it.
    rows : Rows
        Where they are.
    ids : ndarray of str, or None
        Their ids.
    id_column : str, or None
        Where those are.
    recipe : dict
        What `predict` has to know to make the same view of another file: kind, columns.
    """

    name: str
    data: Matrix
    present: NDArray
    rows: Rows
    ids: NDArray | None
    id_column: str | None
    recipe: dict[str, Any]


def read_sources(arguments: Sequence[str], options: Options) -> list[Source]:
    """Read the files given as ``FILE`` or ``NAME=FILE``.

    Parameters
    ----------
    arguments : sequence of str
        As given.
    options : Options
        What else was said.

    Returns
    -------
    list of Source
    """
    sources = []
    for argument in arguments:
        name, path = split_argument(argument)
        table = read_table(path, delimiter=options.delimiter, keep_text=options.keep_text)
        sources.append(
            Source(name or stem(path), bool(name), table, find_id_column(table, options), _label_column(table, options))
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
    return name, path


def find_id_column(table: Table, options: Options) -> str | None:
    """The column with ids: the one that was named, else "id", else a first one without a name.

    Parameters
    ----------
    table : Table
        A file.
    options : Options
        What was said about the files.

    Returns
    -------
    str or None
    """
    if options.id_column is not None:
        if options.id_column in table.columns:
            return options.id_column
        if any(column.feature for column in table.columns.values()):
            raise InputFileError(
                f"{table.path} has no column {options.id_column!r}, which --id names; it has {some(table.columns)}"
            )
        return None
    return next((name for name in table.columns if _may_be(name, None, (*ID_NAMES, NAMELESS))), None)


def _label_column(table: Table, options: Options) -> str | None:
    return next((name for name in table.columns if _may_be(name, options.label_column, LABEL_NAMES)), None)


def check_ids(table: Table, column: str) -> NDArray:
    """Ids of all rows: none blank, no two alike.

    Parameters
    ----------
    table : Table
        Where they are.
    column : str
        Name of the column.

    Returns
    -------
    ndarray of str
    """
    values = table.columns[column]
    shown = column or "1 (which has no name)"
    if values.kind == NUMBER and not values.fault and np.asarray(values.load()).dtype.kind == "f":
        numbers = values.load()
        broken = np.flatnonzero(numbers != np.rint(numbers))
        if len(broken) and not np.isnan(numbers[broken[0]]):
            raise InputFileError(
                f"{table.rows.place(broken[0])}, column {shown!r}: {numbers[broken[0]]:g} is no id; ids are text or "
                "whole numbers"
            )
    ids = table.texts(column)
    seen: dict[str, int] = {}
    for row, value in enumerate(ids):
        if value is None:
            raise InputFileError(f"{table.rows.place(row)}, column {shown!r}: the id is blank")
        if value in seen:
            raise InputFileError(
                f"{table.rows.place(row)}, column {shown!r}: the id {value!r} is there twice, first in "
                f"{table.rows.place(seen[value]).removeprefix(table.path + ', ')}"
            )
        seen[value] = row
    return ids


def make_views(sources: Sequence[Source], options: Options, notes: list[str]) -> list[FileView]:
    """All views of the files.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    options : Options
        What was said about them.
    notes : list of str
        Gets a line on everything that is left out.

    Returns
    -------
    list of FileView
    """
    _check_dropped(sources, options)
    plans = _plan_selected(sources, options)
    selected = {id(source) for source, *_ in plans}
    for source in sources:
        if id(source) not in selected:
            plans += _plan_whole(source, options)
            unused = [name for name, column in source.table.columns.items() if not _is_feature(source, name, options)]
            unused = [name for name in unused if name not in (source.id_column, source.label_column)]
            if unused:
                notes.append(f"Not used in {source.table.path}: {some(unused)}.")
        else:
            used = {column for plan in plans if plan[0] is source for column in plan[2]}
            rest = [name for name in feature_columns(source, options) if name not in used]
            if rest:
                notes.append(f"Not used in {source.table.path}: {some(rest)} (in no --view).")
    names = [name for _, name, *_ in plans]
    for _, name, *_ in plans:
        if names.count(name) > 1:
            paths = [source.table.path for source, other, *_ in plans if other == name]
            raise InputFileError(
                f"two views would be named {name!r}, from {' and '.join(paths[:2])}; give them names with "
                "NAME=FILE or --view NAME=COLUMNS"
            )
    unknown = [name for name in options.transpose if name not in names]
    if unknown:
        raise InputFileError(f"--transpose {unknown[0]}: there is no such view; the views are {some(names)}")
    return [_make_view(plan, plan[1] in options.transpose) for plan in plans]


# A source, the name of the view, and its columns or its block.
Plan = tuple[Source, str, list[str], str | None]


def _check_dropped(sources: Sequence[Source], options: Options) -> None:
    everything = [name for source in sources for name in (*source.table.columns, *source.table.blocks)]
    for name in options.drop:
        if name not in everything:
            raise InputFileError(f"--drop {name}: no file has such a column or matrix{_close(name, everything)}")


def _close(name: str, names: Any) -> str:
    near = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {some(names)}"


def _is_feature(source: Source, name: str, options: Options) -> bool:
    return (
        source.table.columns[name].feature
        and name not in (source.id_column, source.label_column)
        and name not in options.drop
    )


def feature_columns(source: Source, options: Options) -> list[str]:
    """Columns that are features unless --view says otherwise.

    Parameters
    ----------
    source : Source
        A file.
    options : Options
        What was said about the files.

    Returns
    -------
    list of str
    """
    return [name for name in source.table.columns if _is_feature(source, name, options)]


def _plan_whole(source: Source, options: Options) -> list[Plan]:
    """The views of a file of which nothing was said: its numbers, each column of text, each block."""
    table, features = source.table, feature_columns(source, options)
    faulty = [table.columns[name].fault for name in features if table.columns[name].kind not in (NUMBER, TEXT)]
    if faulty:
        raise InputFileError(faulty[0])
    plans: list[Plan] = []
    groups: dict[str, list[str]] = {}
    for name in features:
        if table.columns[name].kind == NUMBER:
            prefix, found, _ = name.partition(options.prefix_separator) if options.prefix_separator else ("", "", "")
            groups.setdefault(prefix if found and prefix else source.name, []).append(name)
    plans += [(source, group, columns, None) for group, columns in groups.items()]
    plans += [(source, name, [name], None) for name in features if table.columns[name].kind == TEXT]
    plans += [(source, name, [], name) for name in table.blocks if name not in options.drop]
    if not plans:
        vectors = [name for name in table.columns if name not in (source.id_column, source.label_column)]
        why = f"only {some(vectors)}, which is a vector" if vectors else "no column beside ids and labels"
        raise InputFileError(f"{table.path} has no view in it: {why}")
    if len(plans) == 1:
        (_, _, columns, block) = plans[0]
        return [(source, source.name if not options.prefix_separator or source.named else plans[0][1], columns, block)]
    if source.named and not groups:
        raise InputFileError(f"{source.name}={table.path}: the file has several views, {some(p[1] for p in plans)}")
    return plans


def _plan_selected(sources: Sequence[Source], options: Options) -> list[Plan]:
    """The views that --view names."""
    plans: list[Plan] = []
    for view, patterns in options.selections.items():
        homes: dict[int, tuple[Source, list[str], list[str]]] = {}
        for pattern in patterns.split(","):
            found = [(source, *_match(source, pattern, options)) for source in sources]
            found = [match for match in found if match[1] or match[2]]
            if not found:
                raise InputFileError(f"--view {view}: no file has a column {pattern!r}{_near(pattern, sources)}")
            if len(found) > 1:
                paths = some(match[0].table.path for match in found)
                raise InputFileError(f"--view {view}: {pattern!r} is in more than one file: {paths}")
            source, columns, blocks = found[0]
            home = homes.setdefault(id(source), (source, [], []))
            home[1].extend(column for column in columns if column not in home[1])
            home[2].extend(blocks)
        if len(homes) > 1:
            raise InputFileError(
                f"--view {view}: its columns are in more than one file: {some(h[0].table.path for h in homes.values())}"
            )
        ((source, columns, blocks),) = homes.values()
        if blocks and (columns or len(blocks) > 1):
            raise InputFileError(
                f"--view {view}: a matrix is a view of its own; {some([*blocks, *columns])} are several"
            )
        plans.append((source, view, columns, blocks[0] if blocks else None))
    return plans


def _near(pattern: str, sources: Sequence[Source]) -> str:
    return _close(pattern, [name for source in sources for name in (*source.table.columns, *source.table.blocks)])


def _match(source: Source, pattern: str, options: Options) -> tuple[list[str], list[str]]:
    """Columns and blocks of a file that a pattern means: a name, a range A..B, or a name with * in it."""
    table, pattern = source.table, pattern.strip()
    if pattern in table.columns:
        if pattern == source.id_column or pattern == source.label_column:
            raise InputFileError(f"--view: column {pattern!r} of {table.path} has the ids or labels, it is no feature")
        return [pattern], []
    if pattern in table.blocks:
        return [], [pattern]
    features = feature_columns(source, options)
    first, dots, last = (part.strip() for part in pattern.partition(".."))
    if dots and first in features and last in features:
        start, stop = features.index(first), features.index(last)
        if stop < start:
            raise InputFileError(f"--view: {pattern!r}: in {table.path} {last!r} comes before {first!r}")
        return features[start : stop + 1], []
    return [name for name in features if fnmatchcase(name, pattern)], []


def _make_view(plan: Plan, transposed: bool) -> FileView:
    source, view, columns, block = plan
    table = source.table
    if block is not None:
        return block_view(source, view, block, transposed)
    if transposed:
        raise InputFileError(f"--transpose {view}: {table.path} is a table with named columns, one row a sample")
    texts = [name for name in columns if table.columns[name].kind == TEXT]
    if texts and len(columns) > 1:
        raise InputFileError(
            f"view {view!r}: column {texts[0]!r} of {table.path} is text; a view is numbers or one column of text. "
            "Leave it out with --drop, or make it a view of its own with --view"
        )
    if texts:
        words = learn_words(table.texts(texts[0]))
        if not words:
            raise InputFileError(f"{table.path}, column {texts[0]!r}: there are no words in it")
        return text_view(source, view, texts[0], words)
    return number_view(source, view, columns)


def number_view(source: Source, view: str, columns: Sequence[str]) -> FileView:
    """A view of columns of numbers; rows that are all blank lack it.

    Parameters
    ----------
    source : Source
        The file.
    view : str
        Name of the view.
    columns : sequence of str
        Its columns.

    Returns
    -------
    FileView
    """
    table = source.table
    first = table.numbers(columns[0])
    single = True
    data = np.empty((table.rows.count, len(columns)), dtype=np.float32 if first.dtype == np.float32 else np.float64)
    for place, name in enumerate(columns):
        values = table.numbers(name)
        single = single and values.dtype == np.float32
        if not single and data.dtype == np.float32:
            data = data.astype(np.float64)
        data[:, place] = values
    present = _check_dense(data, table.rows, columns)
    recipe = {"kind": "numbers", "columns": list(columns)}
    return FileView(view, data, present, table.rows, source.ids, source.id_column, recipe)


def text_view(source: Source, view: str, column: str, words: Sequence[str]) -> FileView:
    """A view of the words of a column of text; rows without any of them lack it.

    Parameters
    ----------
    source : Source
        The file.
    view : str
        Name of the view.
    column : str
        Its column.
    words : sequence of str
        The words that count.

    Returns
    -------
    FileView
    """
    counts, present = count_words(source.table.texts(column), words)
    recipe = {"kind": "text", "columns": [column], "words": list(words)}
    return FileView(view, counts, present, source.table.rows, source.ids, source.id_column, recipe)


def block_view(source: Source, view: str, block: str, transposed: bool) -> FileView:
    """A view of a matrix.

    Parameters
    ----------
    source : Source
        The file.
    view : str
        Name of the view.
    block : str
        Name of the matrix.
    transposed : bool
        Whether it has a column for each sample.

    Returns
    -------
    FileView
    """
    table, ids = source.table, source.ids
    data = table.blocks[block]
    rows = table.rows
    if transposed:
        data = data.T.tocsr() if sparse.issparse(data) else data.T
    if transposed or data.shape[0] != rows.count:
        rows = Rows(table.path, data.shape[0])
    if not data.shape[1]:
        raise InputFileError(f"{table.path}: view {view!r} has no columns")
    if data.dtype not in (np.float32, np.float64):
        data = data.astype(np.float64)
    present = _check_sparse(data, rows) if sparse.issparse(data) else _check_dense(data, rows, None)
    recipe: dict[str, Any] = {"kind": "matrix", "columns": None}
    if block in table.block_columns:
        recipe = {"kind": "numbered", "columns": None, "first": table.block_columns[block]}
    if transposed:
        recipe["transposed"] = True
    if ids is not None and len(ids) != rows.count:
        raise InputFileError(f"{table.path}: view {view!r} has {rows.count} rows, but there are {len(ids)} ids")
    return FileView(view, data, present, rows, ids, source.id_column, recipe)


def _check_dense(data: NDArray, rows: Rows, columns: Sequence[str] | None) -> NDArray:
    """Rows that are not all NaN; an error for what is infinite or too large, and for rows that are partly NaN."""
    largest = _largest(data.dtype)
    if -largest <= data.min() <= data.max() <= largest:  # False if there is a NaN
        return np.ones(len(data), dtype=bool)
    missing = np.isnan(data).all(axis=1)
    wrong = np.argwhere(~(np.abs(data) <= largest) & ~missing[:, None])
    if len(wrong):
        row, place = (int(number) for number in wrong[0])
        name = place + 1 if columns is None else repr(columns[place])
        raise InputFileError(f"{rows.place(row)}, column {name}: {_complaint(float(data[row, place]))}")
    if missing.all():
        raise InputFileError(f"{rows.path}: all rows of {'the matrix' if columns is None else some(columns)} are blank")
    return ~missing


def _check_sparse(data: Any, rows: Rows) -> NDArray:
    bad = np.flatnonzero(~(np.abs(data.data) <= _largest(data.dtype)))
    if len(bad):
        row = int(np.searchsorted(data.indptr, bad[0], side="right")) - 1
        complaint = _complaint(float(data.data[bad[0]]))
        raise InputFileError(f"{rows.place(row)}, column {int(data.indices[bad[0]]) + 1}: {complaint}")
    return np.ones(data.shape[0], dtype=bool)


def _largest(dtype: np.dtype) -> float:
    return LARGEST * float(np.sqrt(np.finfo(dtype).max))


def _complaint(value: float) -> str:
    if np.isnan(value):
        return "blank or NaN; fill it in (only a sample that lacks the whole view has blanks, in all of its row)"
    if np.isinf(value):
        return "infinity; values have to be finite"
    return f"{value:g} is too large; if it stands for a value that is not known, leave it blank"
