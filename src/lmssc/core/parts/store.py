"""Arrays by name in the files of a folder."""

import os
import shutil
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.numerics.matrices import Matrix as Value

# Files of a sparse array.
CSR = ("data", "indices", "indptr", "shape")


class FileStore(MutableMapping[str, Value]):
    """Arrays by name, each in files of a folder; what was read or written stays in memory until `forget`.

    Parameters
    ----------
    folder : str
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
        self._recent: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._recent:
            self._recent[name] = self._read(name)
        return self._recent[name]

    def _read(self, name: str) -> Value:
        if self._path(name, "indptr").exists():
            data, indices, indptr, shape = (np.load(self._path(name, field)) for field in CSR)
            result = sparse.csr_array(tuple(int(size) for size in shape), dtype=data.dtype)
            result.data, result.indices, result.indptr = data, indices, indptr  # the constructor would check them
            return result
        if not self._path(name).exists():
            raise KeyError(name)
        return np.load(self._path(name))

    def __setitem__(self, name: str, value: Value) -> None:
        self._recent[name] = value
        if isinstance(value, np.ndarray):
            self._write(self._path(name), value)
        else:
            for field in CSR:
                self._write(self._path(name, field), np.asarray(getattr(value, field)))

    def _write(self, path: Path, array: NDArray) -> None:
        """Under another name first: a snapshot may share the old file."""
        temporary = path.with_suffix(".new")
        with open(temporary, "wb") as file:
            np.save(file, array, allow_pickle=False)
        os.replace(temporary, path)

    def __delitem__(self, name: str) -> None:
        self._recent.pop(name, None)
        for path in (self._path(name), *(self._path(name, field) for field in CSR)):
            path.unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({path.name.split(".")[0] for path in self.folder.glob("*.npy")}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return self._path(str(name)).exists() or self._path(str(name), "indptr").exists()

    def _path(self, name: str, field: str = "") -> Path:
        return self.folder / (f"{name}.{field}.npy" if field else f"{name}.npy")

    def forget(self) -> None:
        """Drop what is in memory; the files stay."""
        self._recent.clear()

    def snapshot(self, folder: str | os.PathLike[str]) -> None:
        """The same files in another folder, by links where the file system allows it."""
        os.makedirs(folder)
        for path in self.folder.glob("*.npy"):
            _link(path, Path(folder) / path.name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
