"""Temporary files and folders: each has a name of its own, and is removed later if whoever made it was killed.

A lock says that one is in use. The system lets go of it when the process ends, however it ends; a process number would
not do, because the next container has the same ones. Where there are no locks nothing is taken for left over.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Seconds to wait for another process that makes or removes temporary files in the same folder.
PATIENCE = 2.0


def temporary_path(folder: Path, name: str = "") -> Path:
    r"""A path that is not in use, for something that will be called `name`.

    Parameters
    ----------
    folder : Path
        Where it is.
    name : str
        What it stands for; nothing for something in `folder` at large.

    Returns
    -------
    Path

    Examples
    --------
    >>> bool(re.fullmatch(r"\.out\.lmssc-[0-9a-f]{16}\.tmp", temporary_path(Path(), "out").name))
    True
    """
    return folder / f".{name}{'.' if name else ''}lmssc-{secrets.token_hex(8)}.tmp"


def lock(file: int | Path, patience: float = 0.0, *, shared: bool = False) -> int | None:
    """Lock a file or folder for this process.

    Parameters
    ----------
    file : Path, or int
        Its name, or the descriptor of a file that is open.
    patience : float
        Seconds to wait if it is locked.
    shared : bool
        Whether others may lock it so, too: whoever uses a temporary file or folder does, so that it can make others
        within; whoever removes them wants it alone.

    Returns
    -------
    int or None
        A descriptor; closing it gives up the lock. None if it is locked, or there are no locks.
    """
    if fcntl is None:
        return None
    until = time.monotonic() + patience
    try:
        descriptor = os.dup(file) if isinstance(file, int) else os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(0.005)
                continue
        except OSError:
            pass  # a file system without locks
        else:
            return descriptor
        os.close(descriptor)
        return None


def unlock(descriptor: int | None) -> None:
    """Give up what `lock` gave."""
    if descriptor is not None:
        os.close(descriptor)


@contextmanager
def making_temporary(folder: Path) -> Iterator[None]:
    """Keep others from taking what is made here, and not locked yet, for left over.

    Parameters
    ----------
    folder : Path
        Where it is made.
    """
    descriptor = lock(folder, PATIENCE, shared=True)
    try:
        yield
    finally:
        unlock(descriptor)


def leftovers(folder: Path, name: str = "") -> Iterator[Path]:
    """What killed processes left in a folder: nobody has a lock on these.

    Parameters
    ----------
    folder : Path
        Where to look. One that does not exist, or cannot be read, has nothing.
    name : str
        What it stands for, as in `temporary_path`.

    Yields
    ------
    Path
        To be dealt with before the next.
    """
    pattern = re.compile(rf"\.{re.escape(name)}{'[.]' if name else ''}lmssc-[0-9a-f]{{16}}\.tmp")
    alone = lock(folder, PATIENCE)
    try:
        names = [] if alone is None else os.listdir(folder)
        for path in [folder / entry for entry in sorted(names) if pattern.fullmatch(entry)]:
            if (descriptor := lock(path)) is not None:
                unlock(descriptor)
                yield path
    finally:
        unlock(alone)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove what killed processes left in a folder.

    Parameters
    ----------
    folder : Path
        Where to look.
    name : str
        What it stands for, as in `temporary_path`.

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
    """Remove a file, or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
