"""Write answers into the AnnData or MuData file that the cells come from; at any moment the file is whole."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.io.anndata_elements import names_in_order
from lmssc.io.anndata_parts import PartOfFile
from lmssc.io.errors import CommandError, InputFileError, OutputError
from lmssc.io.hdf5 import SafeHDF5
from lmssc.io.read_anndata import Annotation
from lmssc.io.unpacking import Unpacked, show_size
from lmssc.persistence.signals import raise_if_stopped, uninterrupted
from lmssc.persistence.temporary import lock, making_temporary, remove_leftovers, temporary_path, unlock

ENDINGS = (".h5ad", ".h5mu")
# Room for the answers beside the copy: numbers of a cell besides its probabilities and latent position.
OTHER_NUMBERS = 8
VERSIONS = {"array": "0.2.0", "string-array": "0.2.0", "categorical": "0.2.0", "dict": "0.1.0", "string": "0.2.0"}


class TargetFile:
    """A file that answers are to be written into, as it was when it was read.

    Parameters
    ----------
    path : str
        A file that ends in .h5ad or .h5mu.

    Raises
    ------
    CommandError
        If there is no such file, or it is of another kind, or cannot be written.
    """

    def __init__(self, path: str) -> None:
        if not os.path.isfile(path):
            raise CommandError(f"--in-place: there is no file {path}")
        if not path.lower().endswith(ENDINGS):
            raise CommandError(f"--in-place writes into files that end in {' or '.join(ENDINGS)}, not into {path}")
        self.path = path
        self.real = Path(os.path.realpath(path))  # a link keeps pointing to the file
        if not os.access(self.real, os.W_OK) or not os.access(self.real.parent, os.W_OK):
            raise OutputError(f"--in-place: {path} or its folder is read-only")
        self._stamp = self._look()

    def _look(self) -> tuple[int, ...]:
        found = os.stat(self.real)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def write(self, found: Annotation, key: str = "lmssc") -> None:
        """Add the answers; what a former run added under this key is replaced, all else stays as it is.

        The answers are added to a copy beside the file, which then takes its place in one step: a process that is
        killed leaves the old file or the new one.

        Parameters
        ----------
        found : Annotation
            The answers, for cells of the file.
        key : str
            Beginning of the names of all that is added.
        """
        h5py = import_optional("h5py", purpose="AnnData files", extra="files")
        self._check_space(found)
        spread = found.at(PartOfFile(str(self.real)).names, self.path)
        try:
            remove_leftovers(self.real.parent, self.real.name)
            with _copy(self.real) as copy:
                # The copy has a lock already, which says that it is in use.
                with h5py.File(copy, "r+", locking=False) as content:
                    _add(SafeHDF5(h5py, content, Unpacked(str(copy))), content, spread, key)
                _flush(copy)
                with uninterrupted():
                    raise_if_stopped()
                    if self._look() != self._stamp:
                        raise CommandError(f"{self.path} was changed while this ran; it is left as it is. Run again")
                    os.replace(copy, self.real)
                    _flush(self.real.parent)
        except OSError as error:
            raise OutputError(f"--in-place: {self.path} cannot be written: {error.strerror or error}") from error

    def _check_space(self, found: Annotation) -> None:
        width = found.distributions.shape[1] + OTHER_NUMBERS + (0 if found.latent is None else found.latent.shape[1])
        needed = 2 * os.path.getsize(self.real) + 8 * width * len(found.ids)
        free = shutil.disk_usage(self.real.parent).free
        if needed - os.path.getsize(self.real) > free:
            raise OutputError(
                f"--in-place: {self.path} needs {show_size(needed - os.path.getsize(self.real))} of disk space for a "
                f"copy, but only {show_size(free)} are free"
            )


@contextmanager
def _copy(path: Path) -> Iterator[Path]:
    """A copy beside a file, with its permissions; removed at the end if it is still there."""
    copy, locked = temporary_path(path.parent, path.name), None
    try:
        with making_temporary(path.parent):
            copy.touch()
            locked = lock(copy, shared=True)
        shutil.copyfile(path, copy)
        shutil.copymode(path, copy)
        if hasattr(os, "chown") and os.geteuid() == 0:
            os.chown(copy, os.stat(path).st_uid, os.stat(path).st_gid)
        yield copy
    finally:
        with uninterrupted():
            copy.unlink(missing_ok=True)
            unlock(locked)


def _flush(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # folders cannot be opened on Windows
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _add(store: SafeHDF5, root: Any, found: Annotation, key: str) -> None:
    """Add columns, matrices and a description to an open file."""
    classes = found.about["classes"]
    numbers = {name: code for code, name in enumerate(classes)}
    codes = np.array([numbers.get(label, -1) for label in found.labels.tolist()])
    codes = codes.astype(np.min_scalar_type(-len(classes)))
    columns = {f"{key}_label": codes, f"{key}_confidence": found.confidence, f"{key}_given": found.given}
    matrices = {f"{key}_proba": found.distributions}
    if found.latent is not None:
        matrices[f"X_{key}"] = found.latent
    uns = _group(store, root, "uns")
    if store.is_dataset(store.item(root, "obs")):
        _extend(store, root, "obs", columns)
        _extend(store, root, "obsm", matrices)
        _texts(uns, f"{key}_label_categories", classes)
    else:
        _add_columns(store.item(root, "obs"), columns, classes)
        for name, matrix in matrices.items():
            _numbers(_group(store, root, "obsm"), name, matrix)
    about = _mark(_replaced(uns, key).create_group(key), "dict")
    for name, value in found.about.items():
        if isinstance(value, list):
            _texts(about, name, value)
        else:
            about[name] = str(value)
            _mark(about[name], "string")


def _add_columns(obs: Any, columns: dict[str, NDArray], classes: list[str]) -> None:
    """Add columns to a table; the first is one of categories."""
    (label, codes), *others = columns.items()
    group = _mark(_replaced(obs, label).create_group(label), "categorical")
    group.attrs["ordered"] = False
    _numbers(group, "codes", codes)
    _texts(group, "categories", classes)
    for name, values in others:
        _numbers(obs, name, values)
    order = [name for name in names_in_order(obs) if name not in columns]
    h5py = import_optional("h5py", purpose="AnnData files", extra="files")
    obs.attrs.create("column-order", np.array([*order, *columns], dtype=object), dtype=h5py.string_dtype())


def _replaced(group: Any, name: str) -> Any:
    """The group, without what a former run added under this name."""
    if name in group:
        del group[name]
    return group


def _group(store: SafeHDF5, root: Any, name: str) -> Any:
    """A group of named elements of this file, which is made if it is missing."""
    if not store.has(root, name):
        return _mark(root.create_group(name), "dict")
    group = store.item(root, name)
    if not store.is_group(group):
        raise InputFileError(f"{name!r} of the file is not a group, so nothing can be added to it; save it again")
    return group


def _mark(item: Any, encoding: str) -> Any:
    item.attrs["encoding-type"] = encoding
    item.attrs["encoding-version"] = VERSIONS[encoding]
    return item


def _numbers(group: Any, name: str, values: NDArray) -> None:
    _mark(_replaced(group, name).create_dataset(name, data=values), "array")


def _texts(group: Any, name: str, values: list[str]) -> None:
    h5py = import_optional("h5py", purpose="AnnData files", extra="files")
    texts = np.array(values, dtype=object)
    _mark(_replaced(group, name).create_dataset(name, data=texts, dtype=h5py.string_dtype()), "string-array")


def _extend(store: SafeHDF5, root: Any, name: str, columns: dict[str, NDArray]) -> None:
    """Add fields to a table of anndata 0.6 and before, which is one dataset; the other fields stay as they are."""
    old = store.item(root, name) if store.has(root, name) else None
    if old is not None and not store.is_dataset(old):
        for field, column in columns.items():
            _numbers(_group(store, root, name), field, column)
        return
    values = None if old is None else store.values(old)
    kept = [] if values is None else [field for field in values.dtype.names if field not in columns]
    kinds = [] if values is None else [(field, values.dtype[field]) for field in kept]
    kinds += [(field, column.dtype, column.shape[1:]) for field, column in columns.items()]  # type: ignore[misc]
    table = np.empty(len(next(iter(columns.values()))), dtype=kinds)
    for field in kept:
        table[field] = values[field]  # type: ignore[index]
    for field, column in columns.items():
        table[field] = column
    attributes = {} if old is None else dict(old.attrs)
    if old is not None:
        del root[name]
    made = root.create_dataset(name, data=table)
    for attribute, value in attributes.items():
        made.attrs[attribute] = value
