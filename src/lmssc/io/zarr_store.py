"""zarr folders from untrusted sources, with the methods of `SafeHDF5`: nothing outside the folder, no pickle."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.data.memmap import MIN_MAPPED_BYTES, copy_to_disk, slices
from lmssc.io.errors import InputFileError
from lmssc.io.unpacking import Unpacked

# Codecs that do no more than compress or lay out numbers and text; "pickle" would run what it reads.
CODECS = frozenset(
    [
        "blosc",
        "bytes",
        "crc32c",
        "delta",
        "endian",
        "gzip",
        "lz4",
        "lzma",
        "shuffle",
        "transpose",
        "vlen-array",
        "vlen-bytes",
        "vlen-utf8",
        "zlib",
        "zstd",
        "bz2",
        "sharding_indexed",
        "adler32",
        "crc32",
        "fletcher32",
        "numcodecs.zlib",
        "numcodecs.zstd",
        "numcodecs.blosc",
    ]
)
METADATA = (".zarray", "zarr.json", ".zmetadata")


def open_zarr(path: str) -> tuple["SafeZarr", Any]:
    """Open a zarr folder for reading.

    Parameters
    ----------
    path : str
        The folder.

    Returns
    -------
    store : SafeZarr
    root : group

    Raises
    ------
    InputFileError
        If it has a link to outside, or a codec that could run code.
    """
    zarr = import_optional("zarr", purpose="zarr folders", extra="zarr")
    size = 0
    for folder, folders, files in os.walk(path):
        for name in [*folders, *files]:
            inner = Path(folder, name)
            if inner.is_symlink():
                raise InputFileError(f"{path}: {inner.relative_to(path)} is a link, which is not followed; copy it")
        for name in files:
            size += Path(folder, name).stat().st_size
            if name in METADATA:
                _check_codecs(Path(folder, name), path)
    return SafeZarr(zarr, Unpacked(path, size)), zarr.open_group(path, mode="r")


def _check_codecs(file: Path, path: str) -> None:
    """Refuse codecs that are not known to be harmless."""

    def names(found: Any) -> set[str]:
        if isinstance(found, list):
            return set().union(*map(names, found))
        if not isinstance(found, dict):
            return set()
        own = {str(found[key]) for key in ("id", "name") if key in found}
        inner = found.get("configuration")
        return own | (
            names(inner.get("codecs")) | names(inner.get("index_codecs")) if isinstance(inner, dict) else set()
        )

    def walk(found: Any) -> set[str]:
        if not isinstance(found, dict):
            return set()
        own = set().union(*(names(found.get(key)) for key in ("filters", "compressor", "codecs")))
        return own.union(*(walk(part) for part in found.values() if isinstance(part, dict)))

    try:
        used = walk(json.loads(file.read_bytes()))
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path}: {file.name} is not JSON") from error
    strange = sorted(used - CODECS)
    if strange:
        raise InputFileError(f"{path}: {file.parent.name!r} is packed by {strange[0]!r}, which is not read")


class SafeZarr:
    """Access to a zarr folder.

    Parameters
    ----------
    zarr : module
        The module zarr.
    unpacked : Unpacked
        Counts the bytes read.
    """

    def __init__(self, zarr: Any, unpacked: Unpacked) -> None:
        self._zarr, self.unpacked = zarr, unpacked

    def has(self, group: Any, name: str) -> bool:
        """Whether a group has an item."""
        return name in group

    def item(self, group: Any, name: str) -> Any:
        """Return a group or dataset by name."""
        if name not in group:
            raise InputFileError(f"{self.unpacked.path}: {f'{group.path}/{name}'.lstrip('/')!r} is not in the file")
        return group[name]

    def children(self, group: Any) -> list[str]:
        """Names of what a group contains, sorted."""
        return sorted(group.keys())

    def is_group(self, item: Any) -> bool:
        """Whether an item is a group."""
        return isinstance(item, self._zarr.Group)

    def is_dataset(self, item: Any) -> bool:
        """Whether an item is a dataset."""
        return isinstance(item, self._zarr.Array)

    def is_text(self, dataset: Any) -> bool:
        """Whether a dataset holds text."""
        return dataset.dtype.kind in "OTUS"

    def referred(self, reference: Any, asked: str) -> Any:
        """There are no references in zarr."""
        raise InputFileError(f"{self.unpacked.path}: {asked!r} refers to another array, which zarr cannot do")

    def values(self, dataset: Any) -> Any:
        """Return the numbers of a dataset."""
        self._check(dataset)
        return np.asarray(dataset[...])

    def texts(self, dataset: Any) -> list[str]:
        """Return the texts of a dataset."""
        self._check(dataset)
        return [str(value) for value in np.asarray(dataset[...]).tolist()]

    def matrix(self, dataset: Any) -> NDArray:
        """Return the rows of a 2-D dataset of numbers; a large one is read in batches and stays on disk."""
        self._check(dataset)
        dtype = np.dtype(np.float32 if dataset.dtype.kind == "f" and dataset.dtype.itemsize <= 4 else np.float64)
        if dataset.shape[0] * dataset.shape[1] * dtype.itemsize < MIN_MAPPED_BYTES:
            return np.asarray(dataset[...], dtype=dtype)
        chunk = dataset.chunks[0]
        rows = slices(-(-dataset.shape[0] // chunk), chunk * dataset.shape[1] * dataset.dtype.itemsize)
        parts = (np.asarray(dataset[part.start * chunk : part.stop * chunk]) for part in rows)
        return copy_to_disk(parts, dataset.shape[1], dtype)

    def _check(self, dataset: Any) -> None:
        self.unpacked.add(int(np.prod(dataset.shape, dtype=object)) * max(1, dataset.dtype.itemsize))
