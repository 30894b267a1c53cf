"""Write files so that they are complete or not there at all."""

import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmssc.persistence.signals import uninterrupted
from lmssc.persistence.temporary import lock, making_temporary, remove_leftovers, temporary_path, unlock


@contextmanager
def open_atomically(path: Path) -> Iterator[io.BufferedWriter]:
    """Open a file for writing that appears under its name only once it is complete.

    Parameters
    ----------
    path : Path
        Path of the file. An existing file is replaced at the end, and left as it is after an error.

    Yields
    ------
    file
        Open in binary mode.
    """
    temporary = temporary_path(path.parent, path.name)
    locked = None
    try:
        with making_temporary(path.parent):
            file = open(temporary, "wb")  # noqa: SIM115 (closed below)
            locked = lock(file.fileno(), shared=True)
        with file:
            yield file
        os.replace(temporary, path)
    finally:
        with uninterrupted():
            temporary.unlink(missing_ok=True)
            unlock(locked)


def readable(text: str) -> str:
    r"""Decode a command-line argument or file name as UTF-8, whatever the locale.

    Parameters
    ----------
    text : str
        Text with surrogate escapes for the bytes that the locale could not decode.

    Returns
    -------
    str
        The decoded text; `text` itself if its bytes are not UTF-8.

    Examples
    --------
    >>> readable("gr\udcc3\udcb6n"), readable("grün"), readable("gr\udcf6n")
    ('grön', 'grün', 'gr\udcf6n')
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    r"""Write a table as CSV: floats with six digits, NaN and None as empty cells.

    Parameters
    ----------
    path : Path
        Name of the file.
    columns : sequence of str
        Columns to write, in this order.
    rows : iterable of dict
        Rows with all these columns; other keys are ignored.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> write_csv(path, ["method", "accuracy"], [{"method": "a, b", "accuracy": 2 / 3}])
    >>> path.read_text()
    'method,accuracy\n"a, b",0.666667\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row[column]) for column in columns] for row in rows)
    with open_atomically(path) as file:
        file.write(text.getvalue().encode())


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value  # csv writes None as an empty cell


def prepare_folder(folder: Path) -> None:
    """Create a folder and check that it can be written to, before a long computation.

    Parameters
    ----------
    folder : Path
        Folder for output files.

    Raises
    ------
    OSError
        If it is a file, or cannot be created or written to.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"--out {folder} is a file; it must be a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        probe = temporary_path(folder)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(f"--out {folder} cannot be written to: {error.strerror}") from error
