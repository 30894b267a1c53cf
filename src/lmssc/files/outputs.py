"""What is written: all of it or nothing."""

import csv
import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.bar import Advance
from lmssc.commands.errors import CommandError, OutputError
from lmssc.io import open_atomically

# Rows that are made into text at a time.
CHUNK = 50_000
# Text with any of these has quotes around it in a CSV file.
SPECIAL = re.compile(r'[",\r\n]')


@contextmanager
def staged_folder(out: Path, *, force: bool) -> Iterator[Path]:
    """A folder to write into; what is in it at the end appears in `out`, and nothing does if something goes wrong.

    Parameters
    ----------
    out : Path
        Where the files are to be. A new folder appears under its name in one step; into one that is there the
        finished files are moved.
    force : bool
        Whether files that are there may be replaced.

    Yields
    ------
    Path
        The folder to write into.

    Raises
    ------
    CommandError
        If `out` is a file, or has something in it and `force` is not set.
    OutputError
        If it cannot be written to.
    """
    if out.exists() and not out.is_dir():
        raise CommandError(f"--out {out} is a file; it has to be a folder")
    made: list[Path] = []
    try:
        if out.is_dir() and any(out.iterdir()) and not force:
            raise CommandError(f"--out {out} has something in it; name another folder, or pass --force")
        made = _make_folders(out.parent)
        inside = out.is_dir()
        name = f".lmssc-{os.getpid()}.tmp"
        stage = out / name if inside else out.parent / f".{out.name}{name}"
        stage.mkdir()
        try:
            yield stage
            if inside:
                for path in sorted(stage.iterdir()):
                    os.replace(path, out / path.name)
            else:
                stage.rename(out)
            made = []
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"--out {out} cannot be written to: {error.strerror or error}") from error
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; the ones that were made."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    made = []
    for path in reversed(missing):
        path.mkdir()
        made.append(path)
    return made


@contextmanager
def staged_file(out: Path, *, force: bool) -> Iterator[Any]:
    """A file open for bytes that appears under its name once it is complete.

    Parameters
    ----------
    out : Path
        Its name.
    force : bool
        Whether one that is there may be replaced.

    Yields
    ------
    file
        Open for bytes.
    """
    if out.is_dir():
        raise CommandError(f"--out {out} is a folder; it has to be a file, such as {out / 'predictions.csv'}")
    if out.exists() and not force:
        raise CommandError(f"--out {out} is there already; name another file, or pass --force")
    try:
        with open_atomically(out) as file:
            yield file
    except OSError as error:
        raise OutputError(f"--out {out} cannot be written to: {error.strerror or error}") from error


def prediction_columns(distributions: NDArray, classes: NDArray, labels: NDArray) -> tuple[NDArray, NDArray]:
    """How sure each label is, and which class comes next.

    Parameters
    ----------
    distributions : ndarray of shape (n, c)
        Of each sample.
    classes : ndarray of shape (c,)
        The classes, sorted.
    labels : ndarray of shape (n,)
        The label of each sample.

    Returns
    -------
    confidence : ndarray of shape (n,)
        Probability of the label.
    runner_up : ndarray of shape (n,)
        The most likely of the other classes, None if they are all impossible.

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
) -> None:
    """Write a line a sample: id, label, confidence, runner-up, a probability for each class, then the flags.

    Parameters
    ----------
    file : file
        Open for bytes.
    ids : ndarray of str
        The samples.
    model : classifier
        Fitted.
    distributions : ndarray of shape (n, c)
        Of each sample.
    labels : ndarray of shape (n,)
        The label of each sample.
    flags : dict of str to ndarray of bool
        More columns, as yes and no.
    advance : callable, optional
        Called with the number of lines that are written and of all, now and then.
    """
    confidence, runner_up = prediction_columns(distributions, model.classes_, labels)
    names = [f"p_{name}" for name in model.classes_]
    header = ["id", "label", "confidence", "runner_up", *names, *flags]
    file.write((",".join(map(_cell, header)) + "\n").encode())
    # One format for a whole line takes a quarter of the time of the csv module.
    line = ",".join(["%s", "%s", "%.6f", "%s", *["%.6f"] * len(names), *["%s"] * len(flags)]) + "\n"
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
        )
        file.write("".join([line % row for row in zip(*columns, strict=True)]).encode())
        if advance is not None:
            advance(min(part.stop, len(labels)), len(labels))


def _cell(value: Any) -> str:
    """A value as a cell of a CSV file, None as nothing.

    Examples
    --------
    >>> _cell("a"), _cell('a"b'), _cell("a,b"), _cell(7), _cell(None)
    ('a', '"a""b"', '"a,b"', '7', '')
    """
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if SPECIAL.search(text) else text


def write_to_label(path: Path, ids: NDArray, model: Any, order: NDArray) -> None:
    """Write the samples to label next, most useful first, with what is thought of them now.

    Parameters
    ----------
    path : Path
        Name of the file.
    ids : ndarray of str
        The samples.
    model : classifier
        Fitted.
    order : ndarray of int
        Row numbers.
    """
    labels, distributions = model.transduction_[order], model.label_distributions_[order]
    confidence, runner_up = prediction_columns(distributions, model.classes_, labels)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "label", "guess", "confidence", "runner_up"])
    for row, number in enumerate(order.tolist()):
        # The column "label" is left blank, to be filled in: the file can then be given to --labels with the others.
        writer.writerow([ids[number], "", labels[row], f"{confidence[row]:.6f}", runner_up[row]])
    with open_atomically(path) as file:
        file.write(text.getvalue().encode())
