"""Replace several files of a folder at one moment, whatever happens before or after it.

A file system replaces one name at a time. So the names become links to ``current/<name>`` in a hidden folder, where
``current`` is a link to the old files; then ``current`` becomes a link to the new ones, and that is the moment; then
the new files replace the links. At any time all names have their old content, or all have their new one. Files of
other names are not touched. A process killed on the way leaves the hidden folder behind, and `finish` completes or
undoes its work. The folder itself is never moved: it may be a mount point, or the working directory of a shell.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

OLD, NEW, CURRENT = "old", "new", "current"


def replace_together(stage: Path, out: Path) -> None:
    """Move the files of ``stage/new`` into `out` at one moment, and remove `stage`.

    Without symbolic links, as on Windows, the files are moved one after the other; if the process is killed in between,
    `finish` moves the rest.

    Parameters
    ----------
    stage : Path
        A folder in `out`.
    out : Path
        Destination; files of the same names are replaced.

    Raises
    ------
    OSError
        If that fails; then nothing is changed.

    Examples
    --------
    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> _ = (out / "a.txt").write_text("old")
    >>> (out / "stage" / "new").mkdir(parents=True)
    >>> for name in ("a.txt", "b.txt"):
    ...     _ = (out / "stage" / "new" / name).write_text("new")
    >>> replace_together(out / "stage", out)
    >>> {path.name: path.read_text() for path in sorted(out.iterdir())}
    {'a.txt': 'new', 'b.txt': 'new'}
    """
    names = sorted(os.listdir(stage / NEW))
    try:
        for name in names:
            if (out / name).is_dir():
                raise IsADirectoryError(f"{out / name} is a folder")
        if _can_link(stage):
            _keep_old(stage, out, names)
            _point_to(stage, OLD)
            for name in names:
                _put_link(Path(stage.name, CURRENT, name), stage / "link", out / name)
            _point_to(stage, NEW)
        else:
            (stage / CURRENT).touch()
    finally:
        finish(stage, out)


def finish(stage: Path, out: Path) -> None:
    """Complete a replacement that got past its moment, undo one that did not, and remove `stage`.

    Parameters
    ----------
    stage, out : Path
        As in `replace_together`.
    """
    decided = (stage / CURRENT).is_file() or _target(stage / CURRENT) == NEW
    for new in sorted((stage / NEW).iterdir()) if (stage / NEW).is_dir() else []:
        old = stage / OLD / new.name
        if decided:
            os.replace(new, out / new.name)
        elif _target(out / new.name) == os.path.join(stage.name, CURRENT, new.name):
            if old.exists():
                os.replace(old, out / new.name)
            else:
                (out / new.name).unlink()
    shutil.rmtree(stage, ignore_errors=True)


def _can_link(stage: Path) -> bool:
    if os.name == "nt":  # links need special rights there, and a link to a folder cannot be replaced in one step
        return False
    try:
        os.symlink(OLD, stage / "link")
    except OSError:
        return False
    (stage / "link").unlink()
    return True


def _keep_old(stage: Path, out: Path, names: list[str]) -> None:
    (stage / OLD).mkdir()
    for name in names:
        if not (out / name).exists():
            continue
        try:
            os.link((out / name).resolve(), stage / OLD / name)
        except OSError:  # hard links are not supported, or the file is on another disk
            shutil.copy2(out / name, stage / OLD / name)


def _point_to(stage: Path, version: str) -> None:
    _put_link(Path(version), stage / "link", stage / CURRENT)


def _put_link(target: Path, temporary: Path, path: Path) -> None:
    os.symlink(target, temporary)
    os.replace(temporary, path)


def _target(path: Path) -> str | None:
    with suppress(OSError):
        return os.readlink(path)
    return None
