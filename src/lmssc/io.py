"""Files that are never half-written."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
