"""Output that appears completely or not at all."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lmssc.io.errors import CommandError, OutputError
from lmssc.io.swap import NEW, finish, replace_together
from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.signals import raise_if_stopped, uninterrupted
from lmssc.persistence.temporary import (
    leftovers,
    lock,
    making_temporary,
    remove,
    remove_leftovers,
    temporary_path,
    unlock,
)


def refuse_inputs(outputs: Iterable[Path], inputs: Iterable[str]) -> None:
    """Check that no file that is to be written is one that is read, also under another name or through a link.

    Parameters
    ----------
    outputs : iterable of Path
        Files that are to be written.
    inputs : iterable of str
        Files that are read.

    Raises
    ------
    CommandError
        If one of the inputs would be replaced.
    """
    read = [path for path in inputs if os.path.exists(path)]
    for out in outputs:
        for path in read if out.exists() else ():
            if os.path.samefile(out, path):
                raise CommandError(
                    f"{path} is read, and would be replaced by the output {out}; name another --out (--force does not "
                    "allow it)"
                )


@contextmanager
def staged_folder(out: Path, *, force: bool, ready: Callable[[Path], object] | None = None) -> Iterator[Path]:
    """Give a folder to write into; its files appear in `out` at the end, or not at all if something fails.

    At every moment `out` has all of the old files or all of the new ones, even if the process is killed. The next run
    removes what a killed process left behind.

    Parameters
    ----------
    out : Path
        Folder for the files. A new folder appears in one step; in an existing one the files are replaced in one step,
        and files of other names are not touched.
    force : bool
        Whether existing files may be replaced.
    ready : callable, optional
        Called with the temporary folder when everything is written, just before it appears.

    Yields
    ------
    Path
        The folder to write into.

    Raises
    ------
    CommandError
        If `out` is a file, or is not empty and `force` is not set.
    OutputError
        If it cannot be written to.
    """
    if out.exists() and not out.is_dir():
        raise CommandError(f"--out {out} is a file; it must be a folder")
    made: list[Path] = []
    stage = locked = None
    try:
        with uninterrupted():
            for left in leftovers(out):
                finish(left, out)
            remove_leftovers(out.parent, out.name)
            if out.is_dir() and any(out.iterdir()) and not force:
                raise CommandError(f"--out {out} is not empty; choose another folder, or pass --force")
            _make_folders(out.parent, made)
            inside = out.is_dir()
            folder = out if inside else out.parent
            with making_temporary(folder):
                stage = temporary_path(folder, "" if inside else out.name)
                stage.mkdir()
                locked = lock(stage, shared=True)
            files = stage / NEW if inside else stage
            files.mkdir(exist_ok=True)
        yield files
        with uninterrupted():
            raise_if_stopped()
            if ready is not None:
                ready(files)
            if inside:
                whole, stage = stage, None  # after a failure `finish` needs it
                replace_together(whole, out)
            else:
                stage.rename(out)
            made.clear()
    except OSError as error:
        raise OutputError(f"--out {out} cannot be written: {error.strerror or error}") from error
    finally:
        with uninterrupted():
            if stage is not None:
                remove(stage)
            unlock(locked)
            for path in reversed(made):
                with suppress(OSError):
                    path.rmdir()


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Create a folder and its parents; those created are appended to `made`."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        made.append(path)


@contextmanager
def staged_file(out: Path, *, force: bool) -> Iterator[Any]:
    """Give a file, open in binary mode, that appears as `out` once it is complete.

    An existing file is replaced only with `force`.
    """
    if out.is_dir():
        raise CommandError(f"--out {out} is a folder; it must be a file, such as {out / 'predictions.csv'}")
    if out.exists() and not force:
        raise CommandError(f"--out {out} already exists; choose another file, or pass --force")
    try:
        remove_leftovers(out.parent, out.name)
        with open_atomically(out) as file:
            yield file
    except OSError as error:
        raise OutputError(f"--out {out} cannot be written: {error.strerror or error}") from error
