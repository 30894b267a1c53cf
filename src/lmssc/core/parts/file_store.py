"""Arrays by name in the files of a folder."""

import json
import os
import shutil
import zlib
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.numerics.matrices import Matrix as Value

# Arrays of up to so many bytes stay in memory: a file would take more time than they are worth.
MAX_SMALL = 1 << 16
# What a sparse array is made of.
CSR = ("data", "indices", "indptr")
INDEX = "index.json"
# Bytes of a file that are read at a time for its checksum.
CHECKSUM_BYTES = 1 << 20


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, or a small one in memory.

    Examples
    --------
    >>> StoredArray.of(np.arange(3), "unused").read()
    array([0, 1, 2])
    """

    dtype: str
    shape: tuple[int, ...]
    path: str | None
    array: NDArray | None = None

    @classmethod
    def of(cls, array: NDArray, path: str) -> "StoredArray":
        """Write an array to a file, unless it is small."""
        dtype, shape = array.dtype.str, array.shape
        if array.nbytes <= MAX_SMALL:
            return cls(dtype, shape, None, array if array.base is None else array.copy())
        np.ascontiguousarray(array).tofile(path)
        return cls(dtype, shape, path)

    def read(self) -> NDArray:
        """The array, in memory."""
        if self.array is not None:
            return self.array
        return np.fromfile(str(self.path), dtype=np.dtype(self.dtype)).reshape(self.shape)

    def save(self, path: str) -> None:
        """The same in another file: a link where the file system allows it."""
        if self.array is not None:
            np.ascontiguousarray(self.array).tofile(path)
            return
        try:
            os.link(str(self.path), path)
        except OSError:  # another file system, or one without links
            shutil.copyfile(str(self.path), path)


@dataclass(frozen=True)
class StoredValue:
    """An array, or a sparse one with its shape."""

    arrays: tuple[StoredArray, ...]
    shape: tuple[int, int] | None = None

    def read(self) -> Value:
        """The value, in memory."""
        arrays = [array.read() for array in self.arrays]
        if self.shape is None:
            return arrays[0]
        result = sparse.csr_array(self.shape, dtype=arrays[0].dtype)
        result.data, result.indices, result.indptr = arrays  # the constructor would check them
        return result

    @property
    def paths(self) -> set[str]:
        """The files."""
        return {array.path for array in self.arrays if array.path is not None}


def checksum(path: str | os.PathLike[str]) -> int:
    """CRC-32 of a file; 0 if there is none.

    Examples
    --------
    >>> checksum("no such file")
    0
    """
    found = 0
    if os.path.exists(path):
        with open(path, "rb") as file:
            while block := file.read(CHECKSUM_BYTES):
                found = zlib.crc32(block, found)
    return found


class FileStore(MutableMapping[str, Value]):
    """Arrays by name, each in a file that is written once; what was read or written stays in memory until `forget`.

    Parameters
    ----------
    folder : str or path
        The folder; it is created if there is none.

    Examples
    --------
    >>> import tempfile
    >>> store = FileStore(tempfile.mkdtemp())
    >>> store["a"] = np.arange(3)
    >>> store.forget()
    >>> list(store), store["a"]
    (['a'], array([0, 1, 2]))
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._values: dict[str, StoredValue] = {}
        self._marked: dict[str, StoredValue] = {}
        self._recent: dict[str, Value] = {}
        self._numbers = count()

    def __getitem__(self, name: str) -> Value:
        if name not in self._recent:
            self._recent[name] = self._values[name].read()
        return self._recent[name]

    def __setitem__(self, name: str, value: Value) -> None:
        is_dense = isinstance(value, np.ndarray)
        arrays = [value] if is_dense else [getattr(value, field) for field in CSR]
        stored = tuple(StoredArray.of(array, self._new_path()) for array in arrays)
        self._drop(name)
        self._values[name] = StoredValue(stored, None if is_dense else tuple(map(int, value.shape)))  # type: ignore[arg-type]
        self._recent[name] = value

    def _new_path(self) -> str:
        """A file that does not exist: replacing one makes some file systems wait for the disk."""
        return str(self.folder / f"{next(self._numbers)}.bin")

    def _drop(self, name: str) -> None:
        """Delete the files of a name, unless they are marked."""
        kept: set[str] = set().union(*(value.paths for value in self._marked.values()))
        for path in (self._values[name].paths if name in self._values else set()) - kept:
            os.unlink(path)

    def __delitem__(self, name: str) -> None:
        self._drop(name)
        del self._values[name]
        self._recent.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def forget(self) -> None:
        """Drop what is in memory; the files stay."""
        self._recent.clear()

    def mark(self) -> None:
        """Remember all arrays as they are now."""
        before, self._marked = self._marked, dict(self._values)
        self._clean(before)

    def rollback(self) -> None:
        """Go back to the last `mark`."""
        before, self._values = self._values, dict(self._marked)
        self._recent.clear()
        self._clean(before)

    def _clean(self, before: dict[str, StoredValue]) -> None:
        """Delete files of earlier values that nothing needs any more."""
        kept: set[str] = set().union(*(v.paths for v in (*self._values.values(), *self._marked.values())))
        for path in set().union(*(value.paths for value in before.values())) - kept:
            Path(path).unlink(missing_ok=True)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write all arrays to a folder that does not exist yet; large ones by links where that is possible."""
        target = Path(folder)
        target.mkdir(parents=True)
        index = {}
        for number, (name, value) in enumerate(self._values.items()):
            files = [f"{number}-{i}.bin" for i in range(len(value.arrays))]
            for array, file in zip(value.arrays, files, strict=True):
                array.save(str(target / file))
            arrays = [
                [file, array.dtype, array.shape, checksum(target / file)]
                for array, file in zip(value.arrays, files, strict=True)
            ]
            index[name] = {"arrays": arrays, "shape": value.shape}
        (target / INDEX).write_text(json.dumps(index), encoding="utf-8")

    def restore(self, folder: str | os.PathLike[str]) -> None:
        """Replace all arrays by those that `save` wrote; an error if a file is not as it was written."""
        index = json.loads((Path(folder) / INDEX).read_text(encoding="utf-8"))
        for file, _, _, written in (array for entry in index.values() for array in entry["arrays"]):
            if checksum(Path(folder) / file) != written:
                raise ValueError(
                    f"the checkpoint is damaged: '{Path(folder) / file}' is not as it was written. Remove the "
                    "checkpoint and the folder of its parts, and fit again"
                )
        before, self._values = self._values, {}
        self._recent.clear()
        for name, entry in index.items():
            arrays = [
                self._copy(StoredArray(dtype, tuple(shape), str(Path(folder) / file)))
                for file, dtype, shape, _ in entry["arrays"]
            ]
            self._values[name] = StoredValue(tuple(arrays), None if entry["shape"] is None else tuple(entry["shape"]))
        self._clean(before)

    def _copy(self, source: StoredArray) -> StoredArray:
        """An array of another folder, in this one."""
        if os.path.getsize(str(source.path)) <= MAX_SMALL:
            return replace(source, path=None, array=source.read())
        path = self._new_path()
        source.save(path)
        return replace(source, path=path)
