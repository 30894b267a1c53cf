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
        block = self.array[self.rows[index]]
        return block if sparse.issparse(block) else np.asarray(block)

    def take(self, rows: NDArray) -> "MappedRows":
        """Some of the rows, still on disk."""
        return MappedRows(self.array, self.rows[rows])

    @cached_property
    def _embedded(self) -> NDArray:
        """Numbers of the rows as they come in the file."""
        return np.argsort(self.rows, kind="stable")

    def blocks(self) -> Iterator[tuple[NDArray, Any]]:
        """Numbers of some rows, as they come in the file, and these rows."""
        for block in slices(len(self), stored_bytes(self) / max(len(self), 1)):
            part = self._embedded[block]
            first, last = self.rows[part[0]], self.rows[part[-1]]
            # Consecutive rows of the file need not be copied.
            yield part, self.array[first : last + 1] if last - first + 1 == len(part) else self[part]
            release(self.array)


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
