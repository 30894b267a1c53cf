"""Which columns of which file make which view."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from lmssc.io.column_types import BLANK, Kind, describe_kinds, recognise
from lmssc.io.column_types import TEXT as WORDS
from lmssc.io.errors import InputFileError
from lmssc.io.features import NotNumbersError
from lmssc.io.file_views import FileView, block_view, number_view, text_view
from lmssc.io.options import Options
from lmssc.io.sources import Source, feature_columns
from lmssc.io.table import NUMBER, OTHER, TEXT, some
from lmssc.io.words import learn_words


class ViewPlan(NamedTuple):
    """A view to be made: from some columns of a file, or from one of its matrices (block)."""

    source: Source
    name: str
    columns: list[str]
    block: str | None = None


def make_views(sources: Sequence[Source], options: Options, notes: list[str]) -> list[FileView]:
    """Make all views of the files.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    options : Options
        What the user said about the files.
    notes : list of str
        A line on everything that is left out is appended.

    Returns
    -------
    list of FileView
    """
    _check_named(sources, options)
    for source in sources:
        _ = source.ids  # bad ids are reported before anything else
    kinds = {id(source): _recognise_all(source, options) for source in sources}
    plans = _plan_selected(sources, options)
    selected = {id(plan.source) for plan in plans}
    for source in sources:
        known = kinds[id(source)]
        if id(source) in selected:
            notes += _note_unselected(source, plans, known)
        else:
            plans += _plan_whole(source, options, known)
            notes += [*describe_kinds(source.table.path, known), *_note_unused(source, known, options)]
    _check_names(plans, options)
    views = []
    for plan in plans:
        source = plan.source
        found = kinds[id(source)]
        # A column that is no feature by itself, such as one of the metadata of a folder, is one if it is asked for.
        found = found | _recognise_all(source, options, [name for name in plan.columns if name not in found])
        known = {name: found[name] for name in plan.columns}
        if len(plan.columns) == 1:  # a single column was asked for, whatever it holds
            known = {name: _as_it_is(source, name, kind) for name, kind in known.items()}
        if id(source) in selected:
            notes += describe_kinds(source.table.path, known)
        views.append(_make_view(plan, known, options, notes))
    return views


def make_named_views(
    source: Source, columns: Mapping[str, Sequence[str]], options: Options, notes: list[str]
) -> list[FileView]:
    """Make views of the columns that are named, and of no others.

    Parameters
    ----------
    source : Source
        A file or frame.
    columns : dict of str to sequence of str
        Columns of each view, or a single matrix.
    options : Options
        What the user said about the columns.
    notes : list of str
        Gets a line on everything that is not plain numbers or text.

    Returns
    -------
    list of FileView
    """
    _check_named([source], options)
    views = []
    for name, chosen in columns.items():
        blocks = [column for column in chosen if column in source.table.blocks]
        if blocks and len(chosen) > 1:
            raise InputFileError(
                f"view {name!r}: a matrix has to be a view of its own; {some(chosen)} cannot be combined"
            )
        known = _recognise_all(source, options, [] if blocks else chosen)
        if len(known) == 1:  # a single column was asked for, whatever it holds
            known = {column: _as_it_is(source, column, kind) for column, kind in known.items()}
        notes += describe_kinds(source.table.path, known)
        plan = ViewPlan(source, name, list(known), blocks[0] if blocks else None)
        views.append(_make_view(plan, known, options, notes))
    return views


def _note_unselected(source: Source, plans: Sequence[ViewPlan], known: Mapping[str, Kind]) -> list[str]:
    used = {column for plan in plans if plan.source is source for column in plan.columns}
    rest = [name for name in known if name not in used]
    return [f"Not used in {source.table.path}: {some(rest)} (in no --view)."] if rest else []


def _note_unused(source: Source, known: Mapping[str, Kind], options: Options) -> list[str]:
    table, special = source.table, (source.id_column, source.label_column)
    unused = [name for name in table.columns if name not in known and name not in special]
    if table.usual_blocks is not None:  # a container has dozens of columns; its matrices are what one may want
        unused = [name for name in table.blocks if name not in table.usual_blocks]
        return [f"Not used in {table.path}: {some(unused, 8)} (--views names what is used)."] if unused else []
    asides = [name for name in unused if not table.columns[name].feature and name not in options.drop]
    dropped = [name for name in unused if name not in asides]
    notes = [f"Not used in {table.path}: {some(dropped)}."] if dropped else []
    if asides:
        notes.append(f"Not used in {table.path}: {some(asides)} (--view NAME={asides[0]} uses it).")
    return notes


def _check_names(plans: Sequence[ViewPlan], options: Options) -> None:
    names = [plan.name for plan in plans]
    for name in names:
        homes = [plan.source.table for plan in plans if plan.name == name]
        if len(homes) > 1:
            ids = (
                f"pass --id {name} if that column has the ids, else "
                if all(name in table.columns for table in homes)
                else ""
            )
            raise InputFileError(
                f"two views would be named {name!r}, from {homes[0].path} and {homes[1].path}; {ids}give them names "
                "with NAME=FILE or --view NAME=COLUMNS"
            )
    unknown = [name for name in options.transpose if name not in names]
    if unknown:
        raise InputFileError(f"--transpose {unknown[0]}: there is no such view; the views are {some(names)}")


def _recognise_all(source: Source, options: Options, names: Sequence[str] | None = None) -> dict[str, Kind]:
    """The kinds of the columns that can be features, or of those that are named."""
    names = feature_columns(source, options) if names is None else names
    for name in names:
        if source.table.columns[name].kind == OTHER:
            raise InputFileError(source.table.columns[name].fault)
    kinds = {
        name: recognise(source.table, name, wanted=options.types.get(name), decimal=options.decimal) for name in names
    }
    if options.impute is None:  # blank cells are refused, so they are no value of a category
        kinds = {name: replace(kind, blank=None, n_blank=0) for name, kind in kinds.items()}
    return kinds


def _as_it_is(source: Source, name: str, kind: Kind) -> Kind:
    """The kind of a column that has to be used, even if it looks like dates or ids."""
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


def _plan_whole(source: Source, options: Options, kinds: Mapping[str, Kind]) -> list[ViewPlan]:
    """The views of a file without --view: its numbers, each column of text, each matrix."""
    table = source.table
    features = [name for name, kind in kinds.items() if kind.used]
    if not features and not table.blocks:
        features = [name for name, kind in kinds.items() if kind.role == BLANK]
    plans: list[ViewPlan] = []
    groups: dict[str, list[str]] = {}
    for name in features:
        if kinds[name].role != WORDS:
            prefix, found, _ = name.partition(options.prefix_separator) if options.prefix_separator else ("", "", "")
            groups.setdefault(prefix if found and prefix else source.name, []).append(name)
    plans += [ViewPlan(source, group, columns) for group, columns in groups.items()]
    plans += [ViewPlan(source, name, [name]) for name in features if kinds[name].role == WORDS]
    blocks = list(table.blocks) if table.usual_blocks is None else table.usual_blocks
    plans += [ViewPlan(source, name, [], name) for name in blocks if name not in options.drop]
    if not plans and table.blocks:
        raise InputFileError(f"{table.path}: which matrices are the views? --views {','.join(list(table.blocks)[:8])}")
    if not plans:
        raise InputFileError(f"{table.path} contains no view: {_why_none(source, kinds)}")
    if len(plans) == 1 and (source.named or (not options.prefix_separator and table.usual_blocks is None)):
        return [plans[0]._replace(name=source.name)]
    if source.named and not groups and len(plans) > 1:
        raise InputFileError(f"{source.name}={table.path}: the file has several views, {some(p.name for p in plans)}")
    return plans


def _why_none(source: Source, kinds: Mapping[str, Kind]) -> str:
    if kinds:
        return "; ".join(describe_kinds(source.table.path, kinds))
    others = [name for name in source.table.columns if name not in (source.id_column, source.label_column)]
    vectors = [name for name in others if not source.table.columns[name].feature]
    if vectors:
        return f"only the vector{'s' * (len(vectors) > 1)} {some(vectors)}"
    return "--drop leaves out all its columns" if others else "no columns besides ids and labels"


def _plan_selected(sources: Sequence[Source], options: Options) -> list[ViewPlan]:
    """The views that --view names."""
    plans: list[ViewPlan] = []
    for view, patterns in options.selections.items():
        homes: dict[int, tuple[Source, list[str], list[str]]] = {}
        for pattern in patterns.split(","):
            found = [(source, *_match(source, pattern, options)) for source in sources]
            found = [match for match in found if match[1] or match[2]]
            if not found:
                option = f"--views {view}" if view == patterns else f"--view {view}"
                raise InputFileError(f"{option}: no file has a column {pattern!r}{_near(pattern, sources)}")
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
                f"--view {view}: a matrix has to be a view of its own; {some([*blocks, *columns])} cannot be combined"
            )
        plans.append(ViewPlan(source, view, columns, blocks[0] if blocks else None))
    return plans


def _near(pattern: str, sources: Sequence[Source]) -> str:
    return _close(pattern, [name for source in sources for name in (*source.table.columns, *source.table.blocks)])


def _match(source: Source, pattern: str, options: Options) -> tuple[list[str], list[str]]:
    """Columns and matrices of a file that match a pattern: a name, a range A..B, or a name with * in it."""
    table, pattern = source.table, pattern.strip()
    if pattern in table.columns:
        if pattern == source.id_column or pattern == source.label_column:
            raise InputFileError(
                f"--view: column {pattern!r} of {table.path} holds the ids or labels, so it cannot be a feature"
            )
        if pattern in options.drop:
            raise InputFileError(f"--view: column {pattern!r} of {table.path} is left out by --drop")
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


def _make_view(plan: ViewPlan, kinds: Mapping[str, Kind], options: Options, notes: list[str]) -> FileView:
    source, view, table = plan.source, plan.name, plan.source.table
    transposed = view in options.transpose
    if plan.block is not None:
        return block_view(source, view, plan.block, transposed, options, notes)
    if transposed:
        raise InputFileError(f"--transpose {view}: {table.path} is a table with named columns and one row per sample")
    used = {name: kind for name, kind in kinds.items() if kind.used}
    texts = [name for name, kind in used.items() if kind.role == WORDS]
    if texts and len(used) > 1:
        raise InputFileError(
            f"view {view!r}: column {texts[0]!r} of {table.path} is text; a view has numbers and categories, or a "
            "single column of text. Leave it out with --drop, or make it a view of its own with --view"
        )
    if texts:
        words = learn_words(table.texts(texts[0]))
        if not words:
            raise InputFileError(f"{table.path}, column {texts[0]!r}: it contains no words")
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
