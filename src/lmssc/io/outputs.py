"""Write predictions and the list of samples to label next."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.core.progress import Advance
from lmssc.io.spreadsheet import escape_formula
from lmssc.io.typed_labels import GUESSES
from lmssc.persistence.atomic import open_atomically

# Rows formatted at a time.
CHUNK = 50_000
# Characters that have to be quoted in a CSV file.
SPECIAL = re.compile(r'[",\r\n]')


def prediction_columns(distributions: NDArray, classes: NDArray, labels: NDArray) -> tuple[NDArray, NDArray]:
    """Return the confidence of each label and the runner-up class.

    Parameters
    ----------
    distributions : ndarray of shape (n, c)
        Distribution of each sample over the classes.
    classes : ndarray of shape (c,)
        The classes, sorted.
    labels : ndarray of shape (n,)
        The label of each sample.

    Returns
    -------
    confidence : ndarray of shape (n,)
        Probability of the label.
    runner_up : ndarray of shape (n,)
        The most likely of the other classes; None if all of them have probability 0.

    Examples
    --------
    >>> prediction_columns(np.array([[0.1, 0.2, 0.7], [1, 0, 0]]), np.array(["a", "b", "c"]), np.array(["c", "a"]))
    (array([0.7, 1. ]), array(['b', None], dtype=object))
    """
    place = np.searchsorted(classes, labels)
    rows = np.arange(len(labels))
    confidence = distributions[rows, place]
    others = distributions.copy()
    others[rows, place] = -1
    best = others.argmax(axis=1)
    runner_up = classes[best].astype(object)
    runner_up[others[rows, best] <= 0] = None
    return confidence, runner_up


def write_predictions(
    file: Any,
    ids: NDArray,
    model: Any,
    distributions: NDArray,
    labels: NDArray,
    flags: dict[str, NDArray],
    advance: Advance | None = None,
    id_column: str | None = None,
    notes: dict[str, NDArray] | None = None,
) -> None:
    """Write one line per sample: id, label, confidence, runner-up, a probability for each class, flags and notes.

    Parameters
    ----------
    file : file
        Open in binary mode.
    ids : ndarray of str
        The samples.
    model : classifier
        Fitted.
    distributions : ndarray of shape (n, c)
        Distribution of each sample over the classes.
    labels : ndarray of shape (n,)
        The label of each sample.
    flags : dict of str to ndarray of bool
        Further columns, written as yes and no.
    advance : callable, optional
        Called now and then with the number of lines written and of all lines.
    id_column : str, optional
        Name of the id column in the files; "id" if they have none.
    notes : dict of str to ndarray, optional
        Further columns of numbers or text.
    """
    notes = {} if notes is None else notes
    confidence, runner_up = prediction_columns(distributions, model.classes_, labels)
    names = [f"p_{name}" for name in model.classes_]
    header = _header(id_column, ["label", "confidence", "runner_up", *names, *flags, *notes])
    file.write((",".join(map(_cell, header)) + "\n").encode())
    # Formatting a whole line at once takes a quarter of the time of the csv module.
    kinds = ["%s"] * len(flags) + ["%.6f" if note.dtype.kind == "f" else "%s" for note in notes.values()]
    line = ",".join(["%s", "%s", "%.6f", "%s", *["%.6f"] * len(names), *kinds]) + "\n"
    classes = {name: _cell(name) for name in [*model.classes_.tolist(), None]}
    for start in range(0, len(labels), CHUNK):
        part = slice(start, start + CHUNK)
        columns = (
            map(_cell, ids[part].tolist()),
            [classes[name] for name in labels[part].tolist()],
            confidence[part].tolist(),
            [classes[name] for name in runner_up[part].tolist()],
            *distributions[part].T.tolist(),
            *(np.where(flag[part], "yes", "no").tolist() for flag in flags.values()),
            *(note[part].tolist() if note.dtype.kind == "f" else map(_cell, note[part]) for note in notes.values()),
        )
        file.write("".join([line % row for row in zip(*columns, strict=True)]).encode())
        if advance is not None:
            advance(min(part.stop, len(labels)), len(labels))


def _header(id_column: str | None, others: list[str]) -> list[str]:
    """Names of all columns; the id column keeps its name, so that the file can be joined to the views.

    Examples
    --------
    >>> _header("mouse", ["label"]), _header("", ["label"]), _header("label", ["label"])
    (['mouse', 'label'], ['id', 'label'], ['id', 'label'])
    """
    return ["id" if not id_column or id_column in others else id_column, *others]


def _cell(value: Any) -> str:
    """Format a value as a CSV cell that no spreadsheet evaluates; None is an empty cell.

    Examples
    --------
    >>> _cell("a"), _cell('a"b'), _cell("a,b"), _cell(7), _cell(None), _cell("=a")
    ('a', '"a""b"', '"a,b"', '7', '', "'=a")
    """
    text = "" if value is None else escape_formula(str(value))
    return '"' + text.replace('"', '""') + '"' if SPECIAL.search(text) else text


def write_to_label(
    path: Path,
    ids: NDArray,
    model: Any,
    order: NDArray,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
) -> None:
    """Write the samples to label next, most useful first, with their current predictions.

    Parameters
    ----------
    path : Path
        Name of the file.
    ids : ndarray of str
        The samples.
    model : classifier
        Fitted.
    order : ndarray of int
        Rows of the samples, most useful first.
    id_column, label_column : str, optional
        Names of the id and label columns in the files; "id" and "label" if they have none.
    """
    labels, distributions = model.transduction_[order], model.label_distributions_[order]
    confidence, runner_up = prediction_columns(distributions, model.classes_, labels)
    filled_in = label_column or "label"
    guesses = [f"{name}_" if name == filled_in else name for name in GUESSES]
    rows = [_header(id_column, [filled_in, *guesses])]
    for row, number in enumerate(order.tolist()):
        # The label is left blank for the user to fill in; the file can then be passed to --labels.
        rows.append([ids[number], "", labels[row], f"{confidence[row]:.6f}", runner_up[row]])
    _write_rows(path, rows)


def write_suspects(path: Path, ids: NDArray, suspects: Any, n: int, id_column: str | None = None) -> None:
    """Write the n most suspect labels: id, the label given, the one proposed, and how likely the given one is wrong.

    Parameters
    ----------
    path, ids, id_column
        As for `write_to_label`.
    suspects : Suspects
        All labelled samples, the most suspect first.
    n : int
        Number of lines.
    """
    rows = [_header(id_column, ["given", "proposed", "probability"])]
    for i in range(n):
        found = suspects.rows[i], suspects.given[i], suspects.proposed[i], suspects.probability[i]
        rows.append([ids[found[0]], found[1], found[2], f"{found[3]:.6f}"])
    _write_rows(path, rows)


def _write_rows(path: Path, rows: list[list[Any]]) -> None:
    with open_atomically(path) as file:
        file.write("".join(",".join(map(_cell, row)) + "\n" for row in rows).encode())


def labels_table(
    labels: Mapping[str, str], ids: Sequence[str], *, by_id: bool = True, id_column: str | None = None
) -> bytes:
    r"""Labels as a CSV file that ``lmssc classify --labels`` takes as it is.

    Parameters
    ----------
    labels : mapping of str to str
        Label of each labelled sample.
    ids : sequence of str
        All samples, in the order of the files.
    by_id : bool
        Whether the files have ids. If not, there is a line for each sample, blank without a label.
    id_column : str, optional
        Name of the id column in the files.

    Examples
    --------
    >>> labels_table({"p": "cat"}, ["o", "p"]), labels_table({"2": "cat"}, ["1", "2"], by_id=False)
    (b'id,label\np,cat\n', b'label\n\ncat\n')
    """
    if not by_id:
        rows = [["label"], *([labels.get(key, "")] for key in ids)]
    else:
        rows = [_header(id_column, ["label"]), *([key, labels[key]] for key in ids if key in labels)]
    return "".join(",".join(map(_cell, row)) + "\n" for row in rows).encode(errors="replace")
