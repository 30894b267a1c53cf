"""Views that stay on disk: rows of a memory map, or of a CSR array of memory maps, are read in batches."""

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Smaller views are read into memory.
MIN_MAPPED_BYTES = 1 << 26
# Bytes of rows read at a time.
BATCH_BYTES = 1 << 24


def memory_map(data: Any) -> np.memmap | None:
    """The memory map that an array, or the values of a sparse one, are a view of; None if they are in memory.

    Examples
    --------
    >>> import tempfile
    >>> array = np.memmap(tempfile.NamedTemporaryFile(), np.float64, "w+", shape=(3, 2))
    >>> memory_map(np.asarray(array[1:])) is None, memory_map(array.copy()) is None
    (False, True)
    """
    values = data.data if sparse.issparse(data) else data
    # A copy of a memory map is of the same class, but has no map.
    while values is not None and getattr(values, "_mmap", None) is None:
        values = getattr(values, "base", None)
    return values


def release(data: Any) -> None:
    """Release the memory that caches a memory map; the system reads it again when it is needed.

    Examples
    --------
    >>> release(np.ones(3))
    """
    data = data.array if isinstance(data, MappedRows) else data
    for values in (data.data, data.indices) if sparse.issparse(data) else (data,):
        source = memory_map(values)
        # A map of the kind "c" keeps changes in memory alone.
        if source is not None and source.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
            source._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def slices(n_rows: int, row_bytes: float) -> Iterator[slice]:
    """Slices of the rows that fit into `BATCH_BYTES`.

    Examples
    --------
    >>> list(slices(3, BATCH_BYTES / 2))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    size = max(1, int(BATCH_BYTES / max(row_bytes, 1)))
    for first in range(0, n_rows, size):
        yield slice(first, min(first + size, n_rows))


def read_rows(array: Any, rows: slice | NDArray) -> Any:
    """Rows of an array on disk, in any order; only `BATCH_BYTES` of the file are mapped at a time.

    The system maps the pages around each row, too, if it has them in its cache: rows from all over the file would
    make all of it resident.

    Examples
    --------
    >>> import tempfile
    >>> array = np.memmap(tempfile.NamedTemporaryFile(), np.float64, "w+", shape=(3, 2))
    >>> array[:] = [[1, 2], [3, 4], [5, 6]]
    >>> read_rows(array, np.array([2, 0]))
    array([[5., 6.],
           [1., 2.]])
    """
    if isinstance(rows, slice) or memory_map(array) is None:
        block = array[rows]
        return block if isinstance(rows, slice) or sparse.issparse(block) else np.asarray(block)
    by_place = np.argsort(rows, kind="stable")
    rows_each = max(1, int(BATCH_BYTES * array.shape[0] / max(stored_bytes(array), 1)))
    pieces = np.split(by_place, np.flatnonzero(np.diff(rows[by_place] // rows_each)) + 1)
    if not sparse.issparse(array):
        result = np.empty((len(rows), *array.shape[1:]), array.dtype)
        for piece in pieces:
            result[piece] = array[rows[piece]]
            release(array)
        return result
    blocks = []
    for piece in pieces:
        blocks.append(array[rows[piece]])
        release(array)
    stacked = sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
    return stacked if (by_place[1:] > by_place[:-1]).all() else stacked[np.argsort(by_place)]


def copy_to_disk(blocks: Iterable[NDArray], n_columns: int, dtype: np.dtype) -> np.memmap:
    """Memory map of rows in an unnamed temporary file, which the system deletes with the map.

    Examples
    --------
    >>> copy_to_disk([np.ones((2, 3)), np.zeros((1, 3))], 3, np.dtype(float)).shape
    (3, 3)
    """
    n_rows = 0
    with tempfile.TemporaryFile() as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
            n_rows += len(block)
        file.flush()
        return np.memmap(file, dtype, "r", 0, (n_rows, n_columns))


@dataclass(frozen=True)
class FileArray:
    """An array in a file, by the name of the file and the place in it.

    Attributes
    ----------
    path : str
        The file.
    dtype, shape, strides
        As those of the array.
    offset : int
        Byte of the file at which the array begins.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.npy"
    >>> np.save(path, np.arange(6).reshape(3, 2))
    >>> FileArray.of(np.load(path, mmap_mode="r")[1:, 1]).open()
    array([3, 5])
    """

    path: str
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, array: NDArray) -> "FileArray":
        """The place of an array that is a view of a memory map of a file with a name."""
        source = memory_map(array)
        path = getattr(source, "filename", None)
        if source is None or path is None:
            raise ValueError("the array is not in a file that has a name")
        start = np.frombuffer(source._mmap, dtype=np.uint8).__array_interface__["data"][0]  # type: ignore[attr-defined]
        inside = array.__array_interface__["data"][0] - start
        skipped = source.offset - source.offset % mmap.ALLOCATIONGRANULARITY
        return cls(str(path), array.dtype, array.shape, array.strides, inside + skipped)

    def open(self) -> NDArray:
        """The array, as a memory map."""
        whole = np.memmap(self.path, np.uint8, "r")
        return np.ndarray(self.shape, self.dtype, whole, self.offset, self.strides)


def file_of(data: Any) -> Any:
    """What `open_file` makes an array of again, or a sparse one; small arrays in memory are themselves."""
    if sparse.issparse(data):
        return data.shape, *map(file_of, (data.data, data.indices, data.indptr))
    return data if memory_map(data) is None else FileArray.of(data)


def open_file(place: Any) -> Any:
    """The array, or the sparse one, that `file_of` described."""
    if isinstance(place, FileArray):
        return place.open()
    if not isinstance(place, tuple):
        return place
    values, indices, indptr = map(open_file, place[1:])
    result = sparse.csr_array(place[0], dtype=values.dtype)
    result.data, result.indices, result.indptr = values, indices, indptr  # the constructor might copy them
    return result


def _open_rows(place: Any, rows: NDArray) -> "MappedRows":
    return MappedRows(open_file(place), rows)


@dataclass(frozen=True)
class MappedRows:
    """Selected rows of an array on disk, in any order; nothing is kept in memory.

    Attributes
    ----------
    array : ndarray or CSR array of shape (m, d)
        A view of a memory map.
    rows : ndarray of int of shape (n,)
        Which rows, none of them twice, in which order. They are read in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> array = np.memmap(tempfile.NamedTemporaryFile(), np.float64, "w+", shape=(3, 2))
    >>> array[:] = [[1, 2], [3, 4], [5, 6]]
    >>> rows = MappedRows(array, np.array([2, 0]))
    >>> rows[:].tolist(), [(places.tolist(), block.tolist()) for places, block in rows.blocks()]
    ([[5.0, 6.0], [1.0, 2.0]], [([1, 0], [[1.0, 2.0], [5.0, 6.0]])])
    """

    array: Any
    rows: NDArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), self.array.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Data type of the file."""
        return self.array.dtype

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: slice | NDArray) -> Any:
        return read_rows(self.array, self.rows[index])

    def take(self, rows: NDArray) -> "MappedRows":
        """Some of the rows, still on disk."""
        return MappedRows(self.array, self.rows[rows])

    @cached_property
    def _embedded(self) -> NDArray:
        """Numbers of the rows as they come in the file."""
        return np.argsort(self.rows, kind="stable")

    def places(self, row_bytes: float) -> Iterator[tuple[NDArray, slice | NDArray]]:
        """Numbers of some rows, as they come in the file, and where they are there."""
        for block in slices(len(self), row_bytes):
            part = self._embedded[block]
            first, last = int(self.rows[part[0]]), int(self.rows[part[-1]])
            # Consecutive rows of the file need not be copied.
            yield part, slice(first, last + 1) if last - first + 1 == len(part) else self.rows[part]

    def blocks(self) -> Iterator[tuple[NDArray, Any]]:
        """Numbers of some rows, as they come in the file, and these rows."""
        for part, place in self.places(stored_bytes(self) / max(len(self), 1)):
            yield part, read_rows(self.array, place)
            release(self.array)

    def __reduce__(self) -> tuple[Any, ...]:
        # The name of the file travels to another process, not its content.
        return _open_rows, (file_of(self.array), self.rows)


def stored_bytes(data: Any) -> int:
    """Bytes of an array, or of the values and column numbers of a sparse one.

    Examples
    --------
    >>> stored_bytes(np.ones((3, 2)))
    48
    """
    if isinstance(data, MappedRows):
        return int(stored_bytes(data.array) * len(data) / max(data.array.shape[0], 1))
    return data.data.nbytes + data.indices.nbytes if sparse.issparse(data) else data.nbytes
