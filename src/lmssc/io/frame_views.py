"""`lmssc.views_from_frame`: one wide data frame of mixed types becomes views, by the rules of `lmssc classify`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from lmssc.data.view_dict import ViewDict
from lmssc.data.warn_caller import warn_caller
from lmssc.io.column_types import TYPES
from lmssc.io.frame_table import FRAME, ids_of_frame, table_of_frame
from lmssc.io.join import Joined, join
from lmssc.io.labelled_files import choose_scaling
from lmssc.io.match_model import match_views, options_of_model
from lmssc.io.options import Options
from lmssc.io.sources import Source, find_label_column
from lmssc.io.view_plans import make_named_views, make_views

# What messages call options of the command line, and what they are called here.
WORDS = (
    (re.compile(r"--type (\S+)=(category|text|number)"), r"types={'\1': '\2'}"),
    (re.compile(r"--type overrides this"), "types= overrides this"),
    (re.compile(r"[,;]? use --id NAME if it has them"), ""),
    (re.compile(r"leave it out with --drop \S+"), "leave it out"),
    (re.compile(r"Leave it out with --drop, or make it a view of its own with --view"), "Make it a view of its own"),
    (re.compile(r"use --impute"), "pass impute="),
    (re.compile(r"--view (\S+):"), r"view \1:"),
)


@dataclass(frozen=True)
class FrameData:
    """Views of a data frame: ``LMSSC(**data.settings).fit(data.views, y, data.present)``.

    Attributes
    ----------
    views : dict of str to array or csr_array
        A row for each row of the frame. Text is counted words, which the classifier weighs by tf-idf.
    present : dict of str to ndarray of bool
        Which rows have which sparse view, for views that some rows lack.
    settings : dict of str to object
        Parameters of the classifier that suit the views: `scaling` and `impute`.
    notes : list of str
        What was understood of the columns.
    """

    views: ViewDict
    present: dict[str, NDArray] | None
    settings: dict[str, Any]
    notes: list[str]


def views_from_frame(
    frame: Any,
    views: Mapping[str, str | Sequence[str]] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    impute: str | None = "median",
) -> FrameData:
    """Make views of the columns of a data frame, by the same rules as ``lmssc classify``.

    Numbers stay numbers; yes/no become 1 and 0; few values, each in several rows, are a category with one feature per
    value; text becomes word counts, a view of its own; a column of lists (embeddings) is a view of its own. A
    classifier that is fitted to these views remembers words and categories: its `predict` takes a frame with the same
    columns.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
        One row per sample.
    views : dict of str to str or list of str, optional
        Columns of each view, by its name. Columns that are not named are not used. By default all columns: numbers and
        categories are the view "numbers", each column of text or lists is a view; dates, ids and a column "label" are
        left out.
    types : dict of str to {"number", "category", "text"}, optional
        What columns hold, if their values do not show it.
    impute : {"median", "mean"} or None
        How blank numbers are filled in; with None, they are an error.

    Returns
    -------
    FrameData

    Examples
    --------
    >>> import pandas as pd
    >>> from lmssc import LMSSC, views_from_frame
    >>> texts = ["cheap pills", "lunch today", "cheap watches", "lunch at noon"]
    >>> frame = pd.DataFrame({
    ...     "body": [f"{text} {number}" for number in range(5) for text in texts],
    ...     "links": [4, 0, 5, 1] * 5,
    ...     "color": ["red", "blue", "red", "red"] * 5,
    ... })
    >>> data = views_from_frame(frame, {"text": "body", "numbers": ["links"], "kind": ["color"]})
    >>> {name: view.shape for name, view in data.views.items()}, data.notes
    ({'text': (20, 12), 'numbers': (20, 1), 'kind': (20, 2)}, ['categories, one feature per value: color (2).'])
    >>> clf = LMSSC(**data.settings).fit(data.views, ["spam", "mail"] + [None] * 18)
    >>> bool((clf.predict(frame) == clf.transduction_).all())
    True
    """
    for column, kind in (types or {}).items():
        if kind not in TYPES:
            raise ValueError(f"types[{column!r}] must be one of {', '.join(TYPES)}, got {kind!r}")
    table = table_of_frame(frame)
    options = Options(types=dict(types or {}), impute=impute)
    labels = find_label_column(table, options) if views is None else None
    if labels in options.types:
        labels = None
    source = Source("numbers", False, table, None, labels)
    notes: list[str] = []
    try:
        if views is None:
            made = make_views([source], options, notes)
        else:
            made = make_named_views(source, _columns(views, table), options, notes)
        joined = join(made)
    except ValueError as error:
        raise ValueError(_in_python(str(error))) from error
    if labels is not None:
        notes.append(f"Not used in {FRAME}: {labels} (labels, by its name; views= and types= override this).")
    recipes = {view.name: view.recipe for view in made}
    return FrameData(
        ViewDict(joined.views, ids=ids_of_frame(frame), recipes=recipes, columns=joined.columns),
        joined.sparse_masks,
        {"scaling": choose_scaling(recipes), "impute": impute},
        [_in_python(note).removeprefix(f"{FRAME}: ") for note in notes],
    )


def _columns(views: Mapping[str, str | Sequence[str]], table: Any) -> dict[str, list[str]]:
    """Name → columns of the views; columns must be in the frame."""
    if not isinstance(views, Mapping) or not views:
        raise TypeError("views must be a dict of names and columns, such as {'text': 'body', 'numbers': ['a', 'b']}")
    chosen = {str(name): [columns] if isinstance(columns, str) else list(columns) for name, columns in views.items()}
    there = [*table.columns, *table.blocks]
    for name, columns in chosen.items():
        if not columns:
            raise ValueError(f"views: view {name!r} names no column; it has {there}")
        if absent := [column for column in columns if column not in there]:
            absence = f"names the columns {absent}, which the frame does not have"
            raise ValueError(f"views: view {name!r} {absence}; it has {there}")
    return chosen


def _in_python(text: str) -> str:
    """A message in the words of Python instead of the command line."""
    for pattern, words in WORDS:
        text = pattern.sub(words, text)
    return text


def match_frame(frame: Any, clf: Any) -> tuple[dict[str, Any], dict[str, NDArray] | None]:
    """Make the views of a classifier from a frame with the same columns.

    Parameters
    ----------
    frame : data frame
        New samples.
    clf : classifier
        Fitted to views that know how they were made.

    Returns
    -------
    views : dict of str to array
    present : dict of str to ndarray of bool, or None
    """
    notes: list[str] = []
    options = options_of_model(clf, Options())
    try:
        made = match_views([Source("", False, table_of_frame(frame), None, None)], clf, options, notes)
        joined: Joined = join(made)
    except ValueError as error:
        raise ValueError(_in_python(str(error))) from error
    for note in notes:
        if not note.startswith("Not used") and "filled in with" not in note:
            warn_caller(_in_python(note))
    return dict(joined.views), joined.sparse_masks
