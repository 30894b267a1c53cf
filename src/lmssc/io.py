"""Files that are never half-written."""

import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
        probe = folder / f".lmssc-{os.getpid()}.tmp"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(f"--out {folder} cannot be written to: {error.strerror}") from error
