"""Files that are never half-written."""

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
        Name of the file. One that exists is replaced at the end, and left as it is if something goes wrong.

    Yields
    ------
    file
        Open for bytes.
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
    r"""Text from the command line, or the name of a file, whatever the locale: its bytes are UTF-8.

    Parameters
    ----------
    text : str
        With half characters for the bytes that the locale could not decode.

    Returns
    -------
    str
        The same if its bytes are not UTF-8.

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
    r"""Write a table as CSV, numbers with six digits, NaN and None as nothing.

    Parameters
    ----------
    path : Path
        Name of the file.
    columns : sequence of str
        The columns, in this order.
    rows : iterable of dict
        Each has all columns; what else it has is left out.

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
    return value  # None becomes nothing


def prepare_folder(folder: Path) -> None:
    """Make `folder`, and find out now rather than after the computation whether files can be written there.

    Parameters
    ----------
    folder : Path
        Where files are to be written.

    Raises
    ------
    OSError
        If it is a file, or cannot be made or written to.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"--out {folder} is a file; it has to be a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        probe = temporary_path(folder)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(f"--out {folder} cannot be written to: {error.strerror}") from error
