"""Locks of files and folders, and temporary folders of killed processes, which the next run removes.

The operating system releases a lock when its process ends, even if it is killed. Process ids would not do: two
containers that share a folder can have the same ones. Where the system has no locks, nothing is removed.
"""

import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


def lock(file: int | Path, timeout: float = 0.0, *, shared: bool = False) -> int | None:
    """Lock a file or folder for this process.

    Parameters
    ----------
    file : Path, or int
        Its path, or the descriptor of an open file.
    timeout : float
        Seconds to wait if another process has locked it.
    shared : bool
        Whether several processes may hold the lock. Processes that use a temporary file or folder share its lock; one
        that removes it needs an exclusive lock.

    Returns
    -------
    int or None
        A descriptor, whose closing releases the lock. None if another process has it, or the system has no locks.
    """
    if fcntl is None:
        return None
    until = time.monotonic() + timeout
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
    """Release a lock, given what `lock` returned."""
    if descriptor is not None:
        os.close(descriptor)


class LockedFolder:
    """A temporary folder, locked as long as this process uses it; those that killed processes left are removed.

    Parameters
    ----------
    prefix : str
        How its name begins. Folders beside it whose names begin so, too, and that no process has locked are removed.
    parent : str, optional
        Where to make it; by default where the system has temporary folders.

    Attributes
    ----------
    path : str
        The folder. It is deleted by `close`, or with this object.

    Examples
    --------
    >>> with LockedFolder("lmssc-example-") as folder:
    ...     os.path.isdir(folder.path)
    True
    >>> os.path.exists(folder.path)
    False
    """

    def __init__(self, prefix: str, parent: str | None = None) -> None:
        place = Path(tempfile.gettempdir() if parent is None else parent)
        for left in place.glob(f"{prefix}*/{LOCK}"):
            if (descriptor := lock(left)) is not None:
                shutil.rmtree(left.parent, ignore_errors=True)
                unlock(descriptor)
        self.path = tempfile.mkdtemp(prefix=prefix, dir=place)
        # It gets its name once it is locked, so that nobody takes the folder for one that was left.
        new = Path(self.path, LOCK + ".new")
        new.touch()
        descriptor = lock(new, shared=True)
        new.rename(new.with_name(LOCK))
        self._finalizer = weakref.finalize(self, _remove, self.path, descriptor)

    def close(self) -> None:
        """Delete the folder."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _remove(path: str, descriptor: int | None) -> None:
    shutil.rmtree(path, ignore_errors=True)
    unlock(descriptor)
