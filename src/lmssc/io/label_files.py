"""Read the known labels, from files of their own or from a column of a view."""

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmssc.data.labels import ClassName, case_twins, check_twins, is_doubtful, is_missing_word, number_twins
from lmssc.io.errors import InputFileError
from lmssc.io.formats import read_table
from lmssc.io.join import Joined
from lmssc.io.key_columns import find_label_ids
from lmssc.io.options import LABEL_NAMES, Options
from lmssc.io.row_order import refuse_labels_in_other_order
from lmssc.io.sources import Source, check_ids, find_id_column
from lmssc.io.table import Table, counted, some
from lmssc.io.transposed import suggest_transpose
from lmssc.io.typed_labels import GUESSES

UNKNOWN_NUMBER = "-1"
LIKELY = re.compile(r"label|annot|cell.?type|class|cluster|louvain|leiden|kind", re.IGNORECASE)
WHOLE_FLOAT = re.compile(r"-?\d{1,15}\.0")


@dataclass(frozen=True)
class KnownLabels:
    """Labels of the samples.

    Attributes
    ----------
    y : ndarray
        Integers with −1 for unlabelled samples if all labels are whole numbers; else text with None.
    known : ndarray of bool
        Which samples are labelled.
    source : str
        Their files and columns.
    counts : dict of str to int
        Number of labels of each class, in class order.
    """

    y: NDArray
    known: NDArray
    source: str
    counts: dict[str, int]


def find_label_texts(
    tables: Mapping[str, Table],
    sources: Sequence[Source],
    joined: Joined,
    options: Options,
    unlabelled: str | None,
    notes: list[str],
) -> tuple[NDArray, str]:
    """Find the labels as they are written, however few: in the files of --labels, or in the label column of a view.

    Parameters
    ----------
    tables : mapping of str to Table
        The files of labels by path, which are merged.
    sources : sequence of Source
        The files of the views.
    joined : Joined
        The samples.
    options : Options
        What the user said about the files.
    unlabelled : str, optional
        --unlabelled: text that marks an unlabelled sample.
    notes : list of str
        A line on every assumption is appended.

    Returns
    -------
    labels : ndarray of str of shape (n,)
        None for unlabelled samples.
    source : str
        Their files and columns.

    Raises
    ------
    InputFileError
        If a file cannot be read as labels of these samples, or two files contradict each other.
    """
    if not tables:
        table, column, ids = _in_views(sources, options)
        labels = _labels_of(table, column, ids, joined, unlabelled, notes, sources)
        return labels, f"{table.path}, column {column!r}"
    for source in sources:
        if source.label_column is not None and source.table.path not in tables:
            notes.append(
                f"Not used in {source.table.path}: {source.label_column} (labels come from {some(tables)}; to use "
                f"these too, add --labels {source.table.path})."
            )
    found: dict[str, NDArray] = {}
    for path, table in tables.items():
        column = _column_of(table, options)
        id_column = find_id_column(table, options)
        if id_column is None:
            id_column = next((name for name in joined.id_columns if name in table.columns), None)
        if id_column is None and joined.by_id:
            id_column = find_label_ids(table, joined.ids, column)
        ids = None if id_column in (None, column) else check_ids(table, str(id_column))
        if ids is None:
            refuse_labels_in_other_order(table, column, sources, options)
        name = f"{path}, column {column!r}" if len(table.columns) > 1 else path
        found[name] = _labels_of(table, column, ids, joined, unlabelled, notes, sources)
    return _merge(found, joined), "; ".join(found)


def _labels_of(
    table: Table,
    column: str,
    ids: NDArray | None,
    joined: Joined,
    unlabelled: str | None,
    notes: list[str],
    sources: Sequence[Source],
) -> NDArray:
    """The labels of one file in the order of the samples; None for unlabelled ones."""
    texts = table.texts(column)
    if ids is not None and len(texts) != len(ids):
        raise InputFileError(f"{table.path} has {len(texts)} labels ({column!r}) for {len(ids)} ids")
    try:
        return _without_blanks(_at_samples(texts, ids, table, joined, notes), unlabelled, notes)
    except InputFileError as error:
        advice = (suggest_transpose(one.name, one.table.columns, ids) for one in sources if ids is not None)
        raise InputFileError(f"{error}{next(filter(None, advice), '')}") from error


def _merge(found: Mapping[str, NDArray], joined: Joined) -> NDArray:
    """Merge the labels of all files; raise if two differ."""
    merged = np.full(len(joined.ids), None, dtype=object)
    origin = np.full(len(joined.ids), None, dtype=object)
    for name, labels in found.items():
        for row, label in enumerate(labels):
            if label is None:
                continue
            if merged[row] not in (None, label):
                raise InputFileError(
                    f"the sample {joined.ids[row]!r} is {merged[row]!r} in {origin[row]}, but {label!r} in {name}; "
                    "correct one of them"
                )
            merged[row], origin[row] = label, name
    return merged


def read_labels(path: str, options: Options) -> Table:
    """Read a file of labels; all cells are kept as written.

    Parameters
    ----------
    path : str
        The file.
    options : Options
        What the user said about the files.

    Returns
    -------
    Table
    """
    return read_table(path, delimiter=options.delimiter, keep_text=lambda name: True)


def _in_views(sources: Sequence[Source], options: Options) -> tuple[Table, str, NDArray | None]:
    having = [source for source in sources if source.label_column is not None]
    if not having and options.label_column is not None:
        names = [name for source in sources for name in source.table.columns]
        near = difflib.get_close_matches(options.label_column, names, 1, 0.75)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {some(names, 8) or 'none'}"
        raise InputFileError(f"--label-column {options.label_column}: no file has such a column; {hint}")
    cells = [name for source in sources if source.table.usual_blocks is not None for name in source.table.columns]
    if not having and cells:
        likely = [name for name in cells if LIKELY.search(name)]
        raise InputFileError(
            f"where are the labels? Name a column of obs: --label-column {(likely or cells[1:] or ['obs:KEY'])[0]} "
            f"(there are {some(cells[1:], 8) or 'none'})"
        )
    if not having:
        raise InputFileError(
            "where are the labels? Give a file with --labels FILE (columns 'id' and 'label'), or a column of a view, "
            "blank for unlabelled samples, with --label-column NAME"
        )
    if len(having) > 1:
        raise InputFileError(
            f"{some(source.table.path for source in having)} all have a column {having[0].label_column!r}: put the "
            "labels into a file of their own and pass it as --labels FILE"
        )
    (source,) = having
    return source.table, str(source.label_column), source.ids


def hide_labels(sources: Sequence[Source], tables: Mapping[str, Table], options: Options) -> list[Source]:
    """The files of views, in which a column that is called like the one with the labels is no feature.

    Parameters
    ----------
    sources : sequence of Source
        The files of the views.
    tables : mapping of str to Table
        The files of labels by path.
    options : Options
        What the user said about the files.

    Returns
    -------
    list of Source
    """
    if options.label_column is not None:  # which is no feature anyway
        return list(sources)
    names = [_candidates(table, options) for table in tables.values()]
    certain = [found[0] for found in names if len(found) == 1]

    def hide(source: Source) -> Source:
        theirs = [name for name in certain if name in source.table.columns and name != source.id_column]
        return replace(source, label_column=theirs[0]) if theirs and source.label_column is None else source

    return [hide(source) for source in sources]


def _candidates(table: Table, options: Options) -> list[str]:
    """Columns of a file of labels that may have them: one that is called so, else all but the ids."""
    ids = find_id_column(table, options)
    candidates = [name for name in table.columns if name != ids]
    named = [name for name in candidates if name.lower() in LABEL_NAMES]
    return named if len(named) == 1 else candidates


def _column_of(table: Table, options: Options) -> str:
    names = list(table.columns)
    if options.label_column is not None:
        if options.label_column not in table.columns:
            raise InputFileError(
                f"{table.path} has no column {options.label_column!r}, which --label-column names; it has "
                f"{some(names) or 'no columns'}"
            )
        return options.label_column
    candidates = _candidates(table, options)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise InputFileError(f"{table.path} has no column with labels; it has {some(names) or 'a matrix'}")
    raise InputFileError(
        f"{table.path}: which column has the labels? It has {some(candidates)}; say so with --label-column NAME"
    )


def _at_samples(texts: NDArray, ids: NDArray | None, table: Table, joined: Joined, notes: list[str]) -> NDArray:
    count = len(joined.ids)
    if ids is None:
        if not joined.one_order:
            raise InputFileError(
                f"{table.path} has no column of ids, and the views are in different orders, so its labels cannot be "
                "assigned to samples; add a column 'id'"
            )
        if len(texts) != count:
            raise InputFileError(
                f"{table.path} has {len(texts)} rows, but there are {count} samples: without a column of ids it must "
                "have one row per sample, blank (an empty line, if it is the only column) for unlabelled samples"
            )
        return texts
    if not joined.by_id and set(GUESSES) <= set(table.columns):  # to_label.csv, as `lmssc classify` wrote it
        notes.append(f"{table.path}: its ids are row numbers, because the views have no ids.")
    elif not joined.by_id:
        raise InputFileError(
            f"{table.path} has ids, but the views have none, so its labels cannot be assigned to samples; add a "
            "column of ids to the views, or give one row of labels per sample and no ids"
        )
    numbers = {value: row for row, value in enumerate(joined.ids)}
    values = np.full(count, None, dtype=object)
    left_out = set(joined.left_out)
    for row, (value, text) in enumerate(zip(ids, texts, strict=True)):
        if value in left_out:
            continue
        if value not in numbers:
            strangers = sum(other not in numbers for other in ids)
            raise InputFileError(
                f"{table.rows.place(row)}: no view has a sample with the id {value!r}"
                + (f" ({strangers} such ids in all; the first sample is {joined.ids[0]!r})" if strangers > 1 else "")
            )
        values[numbers[value]] = text
    return values


def _without_blanks(values: NDArray, unlabelled: str | None, notes: list[str]) -> NDArray:
    if unlabelled is None:
        words = Counter(value for value in values if is_missing_word(value))
        for word, count in sorted(words.items()):
            notes.append(
                f"{counted(count, 'label')} {'is' if count == 1 else 'are'} {word or 'blank'}, taken as unlabelled (if "
                "that is a class, pass --unlabelled '')."
            )
        y = np.array([None if value in words else value for value in values], dtype=object)
        for word, count in sorted(Counter(value for value in y if is_doubtful(value)).items()):
            notes.append(
                f"{count:,} labels are {word!r}, taken as a class (if it means not labelled: --unlabelled {word!r})."
            )
    else:
        # All other values are classes, even "NA".
        y = np.array(
            [None if value is None or value == unlabelled else ClassName(value) for value in values], dtype=object
        )
    known = [value for value in y if value is not None]
    if any("." in value for value in known) and all(WHOLE_FLOAT.fullmatch(value) for value in known):
        # pandas writes a column of whole numbers with blanks as 3.0.
        y = np.array([None if value is None else type(value)(int(float(value))) for value in y], dtype=object)
    return y


def _is_whole(value: str) -> bool:
    """Whether a label is an integer that would be written back in the same way."""
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 18 and str(int(value)) == value


def encode_labels(y: NDArray, source: str, notes: list[str]) -> KnownLabels:
    """Labels as written to labels of a fit: whole numbers become integers; refused if they are no classes.

    Examples
    --------
    >>> encode_labels(np.array(["2", None, "1", "2"], dtype=object), "labels.csv", []).y
    array([ 2, -1,  1,  2])
    """
    known = np.array([value is not None for value in y], dtype=bool)
    labels = y[known].tolist()
    if not labels:
        raise InputFileError(f"{source}: no sample has a label; at least two classes need one each")
    classes = set(labels)
    if len(classes) < 2:
        what = "the only label is" if len(labels) == 1 else f"all {len(labels):,} labels are"
        raise InputFileError(
            f"{source}: {what} {labels[0]!r}; at least two classes are needed (if -1 is one, pass --unlabelled '')"
        )
    if len(classes) == len(labels) > 50:
        raise InputFileError(f"{source}: no two of the {len(labels)} labels are the same; is this the right column?")
    try:
        check_twins(classes)
    except ValueError as error:
        raise InputFileError(f"{source}: {error}") from error
    twins = case_twins(map(str, classes))
    for spellings in twins:
        notes.append(f"The classes {' and '.join(spellings)} differ in case only; if they are one, write them alike.")
    same = number_twins(map(str, classes))
    for spellings in same:
        notes.append(f"The classes {' and '.join(spellings)} are the same number; if they are one, write them alike.")
    if twins or same or any(is_doubtful(value) for value in classes):  # told of here, and not once more by fit
        y = np.array([None if value is None else ClassName(value) for value in y], dtype=object)
    counts = Counter(labels)
    if all(_is_whole(value) for value in classes) and UNKNOWN_NUMBER not in classes:
        numbers = np.full(len(y), -1, dtype=np.int64)
        numbers[known] = [int(value) for value in labels]
        return KnownLabels(numbers, known, source, {key: counts[key] for key in sorted(classes, key=int)})
    return KnownLabels(y, known, source, {key: counts[key] for key in sorted(classes)})
