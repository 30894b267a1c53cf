"""Temporary files and folders with unique names; those of killed processes are removed by a later run.

A file lock marks a temporary file as in use. The operating system releases the lock when the process ends, even if it
is killed. Process ids would not do: two containers that share a folder can have the same ones. Where the system has no
locks, nothing is removed.
"""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lmssc.data.file_lock import lock, unlock

# How long to wait for another process that creates or removes temporary files in the same folder.
LOCK_TIMEOUT_SECONDS = 2.0


def temporary_path(folder: Path, name: str = "") -> Path:
    r"""Return an unused path for a temporary file or folder.

    Parameters
    ----------
    folder : Path
        The folder to put it in.
    name : str
        Name of the file that it will replace; empty if it does not stand for a single file.

    Returns
    -------
    Path

    Examples
    --------
    >>> bool(re.fullmatch(r"\.out\.lmssc-[0-9a-f]{16}\.tmp", temporary_path(Path(), "out").name))
    True
    """
    return folder / f".{name}{'.' if name else ''}lmssc-{secrets.token_hex(8)}.tmp"


@contextmanager
def making_temporary(folder: Path) -> Iterator[None]:
    """Keep other processes from removing a temporary file between its creation and its lock.

    Parameters
    ----------
    folder : Path
        The folder in which it is created.
    """
    descriptor = lock(folder, LOCK_TIMEOUT_SECONDS, shared=True)
    try:
        yield
    finally:
        unlock(descriptor)


def leftovers(folder: Path, name: str = "") -> Iterator[Path]:
    """Find what killed processes left in a folder: temporary files that no process has locked.

    Parameters
    ----------
    folder : Path
        Where to look. A folder that does not exist or cannot be read has none.
    name : str
        As in `temporary_path`.

    Yields
    ------
    Path
        One at a time: finish or remove it before asking for the next.
    """
    pattern = re.compile(rf"\.{re.escape(name)}{'[.]' if name else ''}lmssc-[0-9a-f]{{16}}\.tmp")
    exclusive = lock(folder, LOCK_TIMEOUT_SECONDS)
    try:
        names = [] if exclusive is None else os.listdir(folder)
        for path in [folder / entry for entry in sorted(names) if pattern.fullmatch(entry)]:
            if (descriptor := lock(path)) is not None:
                unlock(descriptor)
                yield path
    finally:
        unlock(exclusive)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove what killed processes left in a folder; see `leftovers`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> temporary_path(folder, "out.csv").touch()
    >>> (folder / "mine.tmp").touch()
    >>> remove_leftovers(folder, "out.csv")
    >>> [path.name for path in folder.iterdir()]
    ['mine.tmp']
    """
    for path in leftovers(folder, name):
        remove(path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with its content, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
