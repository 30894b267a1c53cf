"""Make the views of a model from files of new samples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.io.column_types import TEXT as WORDS
from lmssc.io.column_types import TYPES, Kind
from lmssc.io.errors import InputFileError
from lmssc.io.file_views import FileView, block_view, number_view, text_view
from lmssc.io.options import Options
from lmssc.io.sources import Source, feature_columns
from lmssc.io.table import NUMBER, Table, some


def match_views(sources: Sequence[Source], model: Any, options: Options, notes: list[str]) -> list[FileView]:
    """Find the views of a model in files, by file names and columns.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    model : classifier
        Fitted; if `lmssc classify` made it, its `files_` says how its views were made.
    options : Options
        What the user said about the files.
    notes : list of str
        Lines on unused columns and on views that no file has are appended.

    Returns
    -------
    list of FileView
        In the order of the model, without views that no file has.
    """
    recipes = getattr(model, "files_", {}).get("views") or {
        name: {"kind": "matrix", "columns": None} for name in model.view_names_
    }
    widths = dict(zip(model.view_names_, model._layout.widths, strict=True))
    views, used, absent = [], set(), []
    for name, recipe in recipes.items():
        source = _home(name, recipe, sources, list(recipes))
        if source is None:
            absent.append(name)
            continue
        used.add(id(source))
        view = _make(source, name, recipe, widths[name], options, notes)
        if view.data.shape[1] != widths[name]:
            raise InputFileError(
                f"{source.table.path}: view {name!r} has {view.data.shape[1]} features, but the model was fitted to "
                f"{widths[name]}"
            )
        views.append(view)
    idle = [source.table.path for source in sources if id(source) not in used]
    if absent and idle:  # the unused file may be the view under another name
        raise InputFileError(
            f"no file has the view {absent[0]!r} of the model, whose views are {some(recipes)}; files are matched by "
            f"name, or pass {absent[0]}=FILE"
        )
    notes.extend(f"No file has the view {name!r}: it is missing for all samples." for name in absent)
    if idle:
        raise InputFileError(
            f"{idle[0]} matches none of the model's views, which are {some(recipes)}; see NAME=FILE in --help"
        )
    for source in sources:
        wanted = {column for recipe in recipes.values() for column in recipe["columns"] or ()}
        extra = [name for name in feature_columns(source, options) if name and wanted and name not in wanted]
        if extra:
            notes.append(f"Not used in {source.table.path}: {some(extra)} (unknown to the model).")
    return views


def _home(name: str, recipe: dict[str, Any], sources: Sequence[Source], names: Sequence[str]) -> Source | None:
    """The file of a view: by its name, else by its columns, else by position; None if no file has it."""
    block = recipe.get("block", name)
    having = [source for source in sources if block in source.table.blocks]
    if len(having) == 1:
        return having[0]
    if recipe["kind"] == "links":  # new samples have no links to each other that the model could use
        return None
    named = [source for source in sources if source.name == name or source in having]
    if len(named) == 1:
        return named[0]
    columns = recipe["columns"] or []
    having = [source for source in named or sources if columns and set(columns) <= set(source.table.columns)]
    if len(having) == 1:
        return having[0]
    if len(having) > 1 or len(named) > 1:
        found = having or named
        raise InputFileError(
            f"view {name!r} of the model could be in {some(source.table.path for source in found)}; say which with "
            f"{name}={found[0].table.path}"
        )
    if len(names) == len(sources) and (len(names) == 1 or list(names) == [f"view{v}" for v in range(len(names))]):
        return sources[list(names).index(name)]
    if columns and len(sources) == 1 and sources[0].name not in names:
        absent = [column for column in columns if column not in sources[0].table.columns]
        if len(names) == 1 or len(absent) < len(columns):
            raise InputFileError(
                f"{sources[0].table.path} lacks columns of the model's view {name!r}: {some(absent)} ({len(absent)} "
                f"of {len(columns)})"
            )
    return None


def _make(
    source: Source, name: str, recipe: dict[str, Any], width: int, options: Options, notes: list[str]
) -> FileView:
    table = source.table
    columns = recipe["columns"]
    wanted = next((block for block in (recipe.get("block"), name) if block in table.blocks), None)
    block = wanted or next(iter(table.blocks), None)
    has_columns = columns is not None and set(columns) <= set(table.columns)
    if block is not None and not has_columns and (len(table.blocks) == 1 or wanted is not None):
        view = block_view(source, name, block, recipe.get("transposed", False), options, notes)
        if "features" in recipe and "features" in view.recipe:
            view = replace(
                view, data=order_features(view.data, view.recipe["features"], recipe["features"], table.path)
            )
        return _renumber(view, recipe, width) if recipe["kind"] == "numbered" else view
    if columns is None:
        columns = [column for column in feature_columns(source, options) if table.columns[column].kind == NUMBER]
        if not columns:
            raise InputFileError(f"{table.path} has no columns of numbers for the model's view {name!r}")
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise InputFileError(
            f"{table.path} lacks columns of the model's view {name!r}: {some(absent)} ({len(absent)} of {len(columns)})"
        )
    if recipe["kind"] == "text":
        return text_view(source, name, columns[0], recipe["words"])
    special = recipe.get("kinds", {})
    kinds = {column: Kind.from_data(special.get(column, {"role": NUMBER})) for column in columns}
    view = number_view(source, name, kinds, options, notes, unknown=notes)
    grouped = [column for column in columns if table.columns[column].grouped]
    if grouped:
        notes.append(f"{table.path}: numbers with separated thousands: {some(grouped)}.")
    if options.decimal is None:
        for column in grouped:
            _check_thousands(table, column, recipe.get("ranges", {}).get(column))
    return view


def order_features(data: Any, found: Sequence[str], wanted: Sequence[str], where: str) -> Any:
    """Bring the columns of a matrix into the order of the features that a model was fitted to.

    Parameters
    ----------
    data : ndarray or csr_array of shape (n, d)
        The matrix.
    found, wanted : sequence of str
        Names of its columns, and of those of the model.
    where : str
        How messages call it.

    Returns
    -------
    ndarray or csr_array

    Examples
    --------
    >>> order_features(np.array([[1, 2, 3]]), ["a", "b", "c"], ["c", "a"], "x")
    array([[3, 1]])
    """
    if list(found) == list(wanted):
        return data
    place = {name: number for number, name in enumerate(found)}
    absent = [name for name in wanted if name not in place]
    if absent:
        raise InputFileError(
            f"{where} lacks {len(absent)} of the {len(wanted)} features of the model, such as {some(absent, 3)}"
        )
    return data[:, [place[name] for name in wanted]]


def options_of_model(model: Any, options: Options) -> Options:
    """How the files of a model were read, for files of new samples.

    Parameters
    ----------
    model : classifier
        Fitted.
    options : Options
        What the user said about the new files.

    Returns
    -------
    Options
    """
    before = getattr(model, "files_", {})
    # Columns of the model's views are features, so none of them is taken for ids.
    roles = {
        column: recipe.get("kinds", {}).get(column, {"role": NUMBER})["role"] if recipe["kind"] == "numbers" else WORDS
        for recipe in before.get("views", {}).values()
        for column in recipe["columns"] or ()
    }
    return replace(
        options,
        id_column=options.id_column or before.get("id_column"),
        label_column=before.get("label_column"),
        id_names=before.get("id_names", ()),
        usual_decimal=before.get("decimal"),
        transpose=[name for name, recipe in before.get("views", {}).items() if recipe.get("transposed")],
        types={column: role if role in TYPES else NUMBER for column, role in roles.items()},
        impute=getattr(model, "impute", None),
    )


def _check_thousands(table: Table, column: str, fitted: Sequence[float] | None) -> None:
    """Refuse "9,686" as 9686 if the model was made of numbers like 9.686."""
    if fitted is None:
        return
    values = table.numbers(column)
    values = values[np.isfinite(values)]
    low, high = fitted
    margin = (high - low) / 2

    def share(numbers: NDArray) -> float:
        return float(((numbers >= low - margin) & (numbers <= high + margin)).mean())

    grouped = np.abs(values) >= 1000
    if grouped.any() and share(values[grouped]) < 0.5 < share(values[grouped] / 1000):
        raise InputFileError(
            f"{table.path}, column {column!r}: read with separated thousands, its numbers go up to {values.max():g}, "
            f"but those of the model are from {low:g} to {high:g}; if the commas are decimal commas, pass --decimal , "
            "and otherwise --decimal ."
        )


def _renumber(view: FileView, recipe: dict[str, Any], width: int) -> FileView:
    """Match numbered features: features unknown to the model are dropped, absent ones are 0."""
    data = sparse.coo_array(view.data)
    first = view.recipe.get("first", 1)
    place = data.col + first - recipe["first"]
    keep = (place >= 0) & (place < width)
    kept = sparse.csr_array((data.data[keep], (data.row[keep], place[keep])), shape=(data.shape[0], width))
    return replace(view, data=kept)
