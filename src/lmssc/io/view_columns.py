"""Tables become views: which columns of which file, as numbers or as words."""

import difflib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.validation import LARGEST
from lmssc.data.views import Matrix
from lmssc.io.column_types import BLANK, CATEGORY, YES_NO, Kind, describe_kinds, recognise
from lmssc.io.column_types import TEXT as WORDS
from lmssc.io.delimited import NAMELESS
from lmssc.io.features import NotNumbersError, blank_cells, make_features
from lmssc.io.formats import read_table
from lmssc.io.table import NUMBER, OTHER, TEXT, InputFileError, Rows, Table, counted, some, stem
from lmssc.io.words import count_words, learn_words
from lmssc.persistence.atomic import readable

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
    decimal : {".", ","}, optional
        What stands before decimals.
    usual_decimal : {".", ","}, optional
        The same, where a file does not tell.
    types : dict of str to str
        --type: what columns are, "number", "category" or "text".
    impute : {"median", "mean"}, optional
        What blank cells are filled in with; None if they are refused.
    id_names : sequence of str
        Columns that have ids, besides the usual ones, where a file has them.
    """

    id_column: str | None = None
    label_column: str | None = None
    delimiter: str | None = None
    selections: Mapping[str, str] = field(default_factory=dict)
    prefix_separator: str | None = None
    drop: Sequence[str] = ()
    transpose: Sequence[str] = ()
    decimal: str | None = None
    usual_decimal: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    impute: str | None = "median"
    id_names: Sequence[str] = ()

    def keep_text(self, name: str) -> bool:
        """Whether a column is to be kept as written, because it may have ids or labels, or is not numbers."""
        return (
            _may_be(name, self.id_column, (*ID_NAMES, NAMELESS))
            or _may_be(name, self.label_column, LABEL_NAMES)
            or name in self.id_names
            or self.types.get(name, NUMBER) != NUMBER
        )

    def read(self, path: str) -> Table:
        """Read a file of views."""
        return read_table(
            path,
            delimiter=self.delimiter,
            decimal=self.decimal,
            usual_decimal=self.usual_decimal,
            keep_text=self.keep_text,
        )


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
        table = options.read(path)
        sources.append(
            Source(
                name or stem(path), bool(name), table, find_id_column(table, options), find_label_column(table, options)
            )
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
    """The column with ids: the one that was named or found, else "id", else a first one without a name.

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
    found = (name for name in options.id_names if name in table.columns)
    return next(found, None) or next(
        (name for name in table.columns if _may_be(name, None, (*ID_NAMES, NAMELESS))), None
    )


def find_label_column(table: Table, options: Options) -> str | None:
    """The column with labels: the one that was named, else "label".

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


# A source, the name of the view, and its columns or its block.
Plan = tuple[Source, str, list[str], str | None]


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
    _check_named(sources, options)
    for source in sources:
        _ = source.ids  # checked before anything else
    kinds = {id(source): _recognise_all(source, options) for source in sources}
    plans = _plan_selected(sources, options)
    selected = {id(source) for source, *_ in plans}
    for source in sources:
        known = kinds[id(source)]
        if id(source) not in selected:
            plans += _plan_whole(source, options, known)
            notes += describe_kinds(source.table.path, known)
            unused = [name for name in source.table.columns if name not in known]
            unused = [name for name in unused if name not in (source.id_column, source.label_column)]
            if unused:
                notes.append(f"Not used in {source.table.path}: {some(unused)}.")
        else:
            used = {column for plan in plans if plan[0] is source for column in plan[2]}
            rest = [name for name in known if name not in used]
            if rest:
                notes.append(f"Not used in {source.table.path}: {some(rest)} (in no --view).")
    _check_names(plans, options)
    views = []
    for source, view, columns, block in plans:
        known = {name: kinds[id(source)][name] for name in columns}
        if len(columns) == 1:  # someone wants it, whatever it is
            known = {name: _as_it_is(source, name, kind) for name, kind in known.items()}
        if id(source) in selected:
            notes += describe_kinds(source.table.path, known)
        views.append(_make_view(source, view, known, block, options, notes))
    return views


def _check_names(plans: Sequence[Plan], options: Options) -> None:
    names = [name for _, name, *_ in plans]
    for _, name, *_ in plans:
        homes = [source.table for source, other, *_ in plans if other == name]
        if len(homes) > 1:
            ids = f"--id {name} if it has the ids, else " if all(name in table.columns for table in homes) else ""
            raise InputFileError(
                f"two views would be named {name!r}, from {homes[0].path} and {homes[1].path}; {ids}give them names "
                "with NAME=FILE or --view NAME=COLUMNS"
            )
    unknown = [name for name in options.transpose if name not in names]
    if unknown:
        raise InputFileError(f"--transpose {unknown[0]}: there is no such view; the views are {some(names)}")


def _recognise_all(source: Source, options: Options) -> dict[str, Kind]:
    """What the columns are that may be features."""
    names = feature_columns(source, options)
    for name in names:
        if source.table.columns[name].kind == OTHER:
            raise InputFileError(source.table.columns[name].fault)
    kinds = {
        name: recognise(source.table, name, wanted=options.types.get(name), decimal=options.decimal) for name in names
    }
    if options.impute is None:  # blank cells are refused, and no value of a category
        kinds = {name: replace(kind, blank=None, n_blank=0) for name, kind in kinds.items()}
    return kinds


def _as_it_is(source: Source, name: str, kind: Kind) -> Kind:
    """What a column is if it is to be used, whatever is in it."""
    if kind.used:
        return kind
    column = source.table.columns[name]
    return Kind(WORDS) if column.kind == TEXT else Kind(NUMBER, unit=column.unit)


def _check_named(sources: Sequence[Source], options: Options) -> None:
    everything = [name for source in sources for name in (*source.table.columns, *source.table.blocks)]
    for name in options.drop:
        if name not in everything:
            raise InputFileError(f"--drop {name}: no file has such a column or matrix{_close(name, everything)}")
    columns = [name for source in sources for name in source.table.columns]
    for name in options.types:
        if name not in columns:
            raise InputFileError(f"--type {name}: no file has such a column{_close(name, columns)}")


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


def _plan_whole(source: Source, options: Options, kinds: Mapping[str, Kind]) -> list[Plan]:
    """The views of a file of which nothing was said: its numbers, each column of text, each block."""
    table = source.table
    features = [name for name, kind in kinds.items() if kind.used]
    if not features and not table.blocks:
        features = [name for name, kind in kinds.items() if kind.role == BLANK]
    plans: list[Plan] = []
    groups: dict[str, list[str]] = {}
    for name in features:
        if kinds[name].role != WORDS:
            prefix, found, _ = name.partition(options.prefix_separator) if options.prefix_separator else ("", "", "")
            groups.setdefault(prefix if found and prefix else source.name, []).append(name)
    plans += [(source, group, columns, None) for group, columns in groups.items()]
    plans += [(source, name, [name], None) for name in features if kinds[name].role == WORDS]
    plans += [(source, name, [], name) for name in table.blocks if name not in options.drop]
    if not plans:
        raise InputFileError(f"{table.path} has no view in it: {_why_none(source, kinds)}")
    if len(plans) == 1:
        (_, _, columns, block) = plans[0]
        return [(source, source.name if not options.prefix_separator or source.named else plans[0][1], columns, block)]
    if source.named and not groups:
        raise InputFileError(f"{source.name}={table.path}: the file has several views, {some(p[1] for p in plans)}")
    return plans


def _why_none(source: Source, kinds: Mapping[str, Kind]) -> str:
    if kinds:
        return "; ".join(describe_kinds(source.table.path, kinds))
    vectors = [name for name in source.table.columns if name not in (source.id_column, source.label_column)]
    return f"only {some(vectors)}, which is a vector" if vectors else "no column beside ids and labels"


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


def _make_view(
    source: Source, view: str, kinds: Mapping[str, Kind], block: str | None, options: Options, notes: list[str]
) -> FileView:
    table = source.table
    transposed = view in options.transpose
    if block is not None:
        return block_view(source, view, block, transposed, options, notes)
    if transposed:
        raise InputFileError(f"--transpose {view}: {table.path} is a table with named columns, one row a sample")
    used = {name: kind for name, kind in kinds.items() if kind.used}
    texts = [name for name, kind in used.items() if kind.role == WORDS]
    if texts and len(used) > 1:
        raise InputFileError(
            f"view {view!r}: column {texts[0]!r} of {table.path} is text; a view is numbers and categories, or one "
            "column of text. Leave it out with --drop, or make it a view of its own with --view"
        )
    if texts:
        words = learn_words(table.texts(texts[0]))
        if not words:
            raise InputFileError(f"{table.path}, column {texts[0]!r}: there are no words in it")
        return text_view(source, view, texts[0], words)
    if not used:
        raise InputFileError(f"--view {view}: {'; '.join(describe_kinds(table.path, kinds))}")
    try:
        return number_view(source, view, used, options, notes)
    except NotNumbersError as error:
        faulty = next((name for name in used if f"column {name!r}" in str(error)), None)
        if faulty is None or "--decimal" in str(error):
            raise
        raise InputFileError(
            f"{error}; if the column is not numbers: --type {faulty}=category, --type {faulty}=text, or leave it out "
            f"with --drop {faulty}"
        ) from error


def number_view(
    source: Source,
    view: str,
    kinds: Mapping[str, Kind],
    options: Options,
    notes: list[str],
    *,
    unknown: list[str] | None = None,
) -> FileView:
    """A view of columns of numbers and categories; rows that are all blank lack it.

    Parameters
    ----------
    source : Source
        The file.
    view : str
        Name of the view.
    kinds : dict of str to Kind
        Its columns, and what they are.
    options : Options
        What was said about the files.
    notes : list of str
        Gets a line on blank cells.
    unknown : list of str, optional
        Gets a line on values of categories that are not known.

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
    lacking = _all_blank(table, kinds, data, names)
    data[lacking] = np.nan
    present = _check_dense(data, table.rows, names, options.impute, notes)
    special = {name: kind.as_data() for name, kind in kinds.items() if kind != Kind(NUMBER)}
    recipe = {"kind": "numbers", "columns": list(kinds), "kinds": special, "ranges": _ranges(data, names, kinds)}
    return FileView(view, data, present, table.rows, source.ids, source.id_column, recipe)


def _ranges(data: NDArray, names: Sequence[str], kinds: Mapping[str, Kind]) -> dict[str, list[float]]:
    """The smallest and the largest number of each column of numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that is all NaN
        low, high = np.nanmin(data, axis=0), np.nanmax(data, axis=0)
    return {
        name: [float(low[place]), float(high[place])]
        for place, name in enumerate(names)
        if kinds[name].role == NUMBER and np.isfinite(low[place])
    }


def _all_blank(table: Table, kinds: Mapping[str, Kind], data: NDArray, names: Sequence[str]) -> NDArray:
    """Rows that have nothing in any column, though blank cells of categories have features.

    If all columns are categories, only empty cells count: "NA" may be what all of them say.
    """
    lacking = np.ones(len(data), dtype=bool)
    special = {name: kind for name, kind in kinds.items() if kind.role in (CATEGORY, YES_NO) and kind.blank is not None}
    if not special:
        return np.zeros(len(data), dtype=bool)
    for place, name in enumerate(names):
        if name not in special:
            lacking &= np.isnan(data[:, place])
    for name, kind in special.items():
        if lacking.any():
            lacking &= blank_cells(table, name, kind, empty=len(special) == len(kinds))
    return lacking


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


def block_view(source: Source, view: str, block: str, transposed: bool, options: Options, notes: list[str]) -> FileView:
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
    options : Options
        What was said about the files.
    notes : list of str
        Gets a line on blank cells.

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
    present = (
        _check_sparse(data, rows) if sparse.issparse(data) else _check_dense(data, rows, None, options.impute, notes)
    )
    recipe: dict[str, Any] = {"kind": "matrix", "columns": None}
    if block in table.block_columns:
        recipe = {"kind": "numbered", "columns": None, "first": table.block_columns[block]}
    if transposed:
        recipe["transposed"] = True
    if ids is not None and len(ids) != rows.count:
        raise InputFileError(f"{table.path}: view {view!r} has {rows.count} rows, but there are {len(ids)} ids")
    return FileView(view, data, present, rows, ids, source.id_column, recipe)


def _check_dense(
    data: NDArray, rows: Rows, columns: Sequence[str] | None, impute: str | None, notes: list[str]
) -> NDArray:
    """Rows that are not all NaN; an error for what is infinite or too large, and for a NaN that is not filled in."""
    largest = _largest(data.dtype)
    if -largest <= data.min() <= data.max() <= largest:  # False if there is a NaN
        return np.ones(len(data), dtype=bool)
    blank = np.isnan(data)
    missing = blank.all(axis=1)
    if missing.all():
        shown = "the matrix" if columns is None else some(dict.fromkeys(columns))
        raise InputFileError(f"{rows.path}: all rows of {shown} are blank")
    wrong = ~(np.abs(data) <= largest) & ~missing[:, None]
    if impute is not None:
        wrong &= ~blank
    if wrong.any():
        row, place = (int(number) for number in np.argwhere(wrong)[0])
        name = place + 1 if columns is None else repr(columns[place])
        raise InputFileError(f"{rows.place(row)}, column {name}: {_complaint(float(data[row, place]))}")
    notes += _describe_blanks(blank[~missing], rows.path, columns, impute)
    return ~missing


def _describe_blanks(blank: NDArray, path: str, columns: Sequence[str] | None, impute: str | None) -> list[str]:
    counts = blank.sum(axis=0)
    named: dict[Any, int] = {}
    for place in np.flatnonzero(counts).tolist():
        # All features of a category are blank in the same rows.
        named[place + 1 if columns is None else columns[place]] = int(counts[place])
    if not named:
        return []
    listed = some(f"{name} ({count:,})" for name, count in named.items())
    where = "" if columns is not None else "column "
    return [
        f"{path}: {counted(sum(named.values()), 'blank cell')} filled in with the {impute} of the column: "
        f"{where}{listed}."
    ]


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
        return "blank or NaN; fill it in, or let --impute do it (a sample that lacks the whole view has only blanks)"
    if np.isinf(value):
        return "infinity; values have to be finite"
    return f"{value:g} is too large; if it stands for a value that is not known, leave it blank"
