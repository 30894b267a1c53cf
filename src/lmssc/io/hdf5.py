"""HDF5 files from untrusted sources: no links to other files, and no more than the unpacking limit."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.data.memmap import MIN_MAPPED_BYTES, copy_to_disk, slices
from lmssc.io.errors import InputFileError
from lmssc.io.unpacking import ALWAYS_ALLOWED, Unpacked

# The filters that MATLAB and h5py use by default: gzip, byte shuffling and a checksum; and h5py's own lzf, which
# compresses by less than the limit allows.
DEFLATE, SHUFFLE, FLETCHER32, LZF = 1, 2, 3, 32000
# Gzip compresses by at most this factor, so that a small chunk cannot unpack to a large one.
MAX_GZIP_RATIO = 1032
SMALL_CHUNK = ALWAYS_ALLOWED // MAX_GZIP_RATIO
# A longer chain of links is taken for a cycle.
MAX_LINKS = 16
PIECE = 1 << 20
# Most texts read at a time.
TEXT_BATCH = 1 << 16


class SafeHDF5:
    """Access to what an HDF5 file itself contains.

    Parameters
    ----------
    h5py : module
        The module h5py.
    content : h5py.File
        Open for reading.
    unpacked : Unpacked
        Counts the bytes read.
    """

    def __init__(self, h5py: Any, content: Any, unpacked: Unpacked) -> None:
        self._h5py, self._content, self.unpacked = h5py, content, unpacked

    def item(self, group: Any, name: str) -> Any:
        """Return a group or dataset by name; links are followed within the file only."""
        return self._follow(group, name, f"{group.name.rstrip('/')}/{name}".lstrip("/"), 0)

    def _follow(self, group: Any, path: str, asked: str, links: int) -> Any:
        found = self._content if path.startswith("/") else group
        for name in filter(None, path.split("/")):
            link = found.get(name, getlink=True) if isinstance(found, self._h5py.Group) else None
            if isinstance(link, self._h5py.ExternalLink):
                raise InputFileError(
                    f"{self.unpacked.path}: {asked!r} is a link to another file ({link.filename!r}), which is not "
                    "followed; save the data in this file"
                )
            if isinstance(link, self._h5py.SoftLink):
                if links >= MAX_LINKS:
                    raise InputFileError(f"{self.unpacked.path}: {asked!r} is a link that leads back to itself")
                found = self._follow(found, link.path, asked, links + 1)
            elif link is None:
                raise InputFileError(
                    f"{self.unpacked.path}: {asked!r} is a link to {path!r}, which is not in the file; save it again"
                    if links
                    else f"{self.unpacked.path}: {asked!r} is not in the file"
                )
            else:
                found = found[name]
        return found

    def referred(self, reference: Any, asked: str) -> Any:
        """Return the dataset or group that a reference points to."""
        if not reference:
            raise InputFileError(f"{self.unpacked.path}: {asked!r} refers to nothing; save it again")
        return self._content[reference]

    def has(self, group: Any, name: str) -> bool:
        """Whether a group has an item."""
        return group.get(name, getlink=True) is not None

    def children(self, group: Any) -> list[str]:
        """Names of what a group contains, sorted."""
        return sorted(group)

    def is_group(self, item: Any) -> bool:
        """Whether an item is a group."""
        return isinstance(item, self._h5py.Group)

    def is_dataset(self, item: Any) -> bool:
        """Whether an item is a dataset."""
        return isinstance(item, self._h5py.Dataset)

    def is_text(self, dataset: Any) -> bool:
        """Whether a dataset holds text."""
        return self._h5py.check_string_dtype(dataset.dtype) is not None

    def values(self, dataset: Any) -> Any:
        """Return the numbers of a dataset, if they are in this file."""
        self._check(dataset)
        return dataset[()]

    def texts(self, dataset: Any) -> list[str]:
        """Return the texts of a dataset; a batch at a time, because all of them may be one long text of the file."""
        self._check(dataset)
        if len(dataset.shape or ()) != 1:
            raise InputFileError(f"{self.unpacked.path}: {dataset.name!r} must be a list of texts")
        batch = max(1, min(TEXT_BATCH, self.unpacked.most // max(1, self.unpacked.packed)))
        found: list[str] = []
        for start in range(0, len(dataset), batch):
            part = dataset[start : start + batch].tolist()
            self.unpacked.add(sum(map(len, part)))
            found += [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in part]
        return found

    def matrix(self, dataset: Any) -> NDArray:
        """Return the rows of a 2-D dataset of numbers; a large one is read in batches and stays on disk."""
        self._check(dataset)
        dtype = np.dtype(np.float32 if dataset.dtype.kind == "f" and dataset.dtype.itemsize <= 4 else np.float64)
        if dataset.shape[0] * dataset.shape[1] * dtype.itemsize < MIN_MAPPED_BYTES:
            return np.asarray(dataset[()], dtype=dtype)
        return copy_to_disk(_batches(dataset), dataset.shape[1], dtype)

    def _check(self, dataset: Any) -> None:
        """Refuse numbers in other files, and count the bytes."""
        where = f"{self.unpacked.path}: {dataset.name!r}"
        if dataset.external:
            raise InputFileError(
                f"{where} has its numbers in another file ({dataset.external[0][0]!r}), which is not read; save them "
                "in this file"
            )
        if dataset.is_virtual:
            raise InputFileError(
                f"{where} is assembled from other files, which are not read; save its numbers in this file"
            )
        self.unpacked.add(0 if dataset.shape is None else dataset.nbytes)
        self._check_chunks(dataset, where)

    def _check_chunks(self, dataset: Any, where: str) -> None:
        """Count what chunks really unpack to: HDF5 does not compare it with their stated size."""
        if dataset.chunks is None:
            return
        properties = dataset.id.get_create_plist()
        filters = {properties.get_filter(number)[0] for number in range(properties.get_nfilters())}
        if filters - {DEFLATE, SHUFFLE, FLETCHER32, LZF}:
            raise InputFileError(
                f"{where} is compressed by another filter than gzip or lzf; save it with gzip, or uncompressed"
            )
        if DEFLATE not in filters or dataset.id.get_storage_size() <= SMALL_CHUNK:
            return
        for number in range(dataset.id.get_num_chunks()):
            chunk = dataset.id.get_chunk_info(number)
            if chunk.size > SMALL_CHUNK:
                packed = dataset.id.read_direct_chunk(chunk.chunk_offset)[1]
                self.unpacked.reach(max(self.unpacked.total, _inflated_size(packed, self.unpacked.most)))


def _batches(dataset: Any) -> Iterator[NDArray]:
    """Rows in batches of whole chunks, so that no chunk is unpacked twice."""
    chunk = 1 if dataset.chunks is None else dataset.chunks[0]
    for rows in slices(-(-dataset.shape[0] // chunk), chunk * dataset.shape[1] * dataset.dtype.itemsize):
        yield dataset[rows.start * chunk : rows.stop * chunk]


def _inflated_size(packed: bytes, most: int) -> int:
    """Bytes that a gzip stream unpacks to, counted up to a little above `most`; nothing is kept in memory."""
    stream, size = zlib.decompressobj(), 0
    while packed and size <= most and not stream.eof:
        size += len(stream.decompress(packed, PIECE))
        packed = stream.unconsumed_tail
    return size
