"""Functions of rows that are on disk, run by this process or by the workers of a cluster that share the folder.

All passes over large views go through `map_rows`, `sum_rows` and `map_slices`. While a fit on a cluster runs, its files
are read by the workers, and only what the functions return comes here.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lmssc.data.memmap import MappedRows, file_of, memory_map, open_file, read_rows, release, slices, stored_bytes
from lmssc.numerics.batches import gen_batches

# Blocks of rows in one task of a worker. Fixed, so that sums do not depend on the number of workers.
BLOCKS_PER_TASK = 4


class Readers(Protocol):
    """Other processes that read files of a folder.

    Attributes
    ----------
    folder : str
        Where they can write, too.
    """

    folder: str

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """`function(*task)` of all tasks, in their order."""


@dataclass(frozen=True)
class NewFile:
    """An array in a new file of a folder that several processes share; each writes some rows.

    Rows are written, not mapped: on network file systems, two processes that map the same page would lose changes.

    Parameters
    ----------
    folder : str
        The folder.
    shape : tuple of int
    dtype : dtype

    Examples
    --------
    >>> import tempfile
    >>> file = NewFile(tempfile.mkdtemp(), (3, 2), np.dtype(float))
    >>> file.write(1, np.ones((2, 2)))
    >>> file.open()
    memmap([[0., 0.],
            [1., 1.],
            [1., 1.]])
    """

    folder: str
    shape: tuple[int, ...]
    dtype: np.dtype
    path: str = field(init=False)

    def __post_init__(self) -> None:
        descriptor, path = tempfile.mkstemp(".bin", dir=self.folder)
        os.truncate(descriptor, max(1, int(np.prod(self.shape)) * self.dtype.itemsize))
        os.close(descriptor)
        object.__setattr__(self, "path", path)

    def write(self, first: int, rows: NDArray) -> None:
        """Write some rows, from row `first` on."""
        with open(self.path, "r+b") as file:
            file.seek(first * int(np.prod(self.shape[1:])) * self.dtype.itemsize)
            file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)

    def open(self) -> NDArray:
        """All rows, as a memory map; an empty array in memory."""
        if not np.prod(self.shape):
            return np.empty(self.shape, self.dtype)
        return np.memmap(self.path, self.dtype, "r", 0, self.shape)


_READERS: dict[str, Readers] = {}


@contextmanager
def read_by(readers: Readers, *folders: str) -> Iterator[None]:
    """Within this context, files of some folders are read by others."""
    _READERS.update(dict.fromkeys(folders, readers))
    try:
        yield
    finally:
        for folder in folders:
            del _READERS[folder]


def readers_of(data: Any) -> Readers | None:
    """Who reads an array, or a sparse one; None if this process does.

    Examples
    --------
    >>> readers_of(np.ones(3)) is None
    True
    """
    if not _READERS:
        return None
    source = memory_map(data.array if isinstance(data, MappedRows) else data)
    path = getattr(source, "filename", None)
    if path is None:
        return None
    return next((readers for folder, readers in _READERS.items() if str(path).startswith(folder + os.sep)), None)


def read_together(data: Sequence[Any]) -> Readers | None:
    """Who reads all of some arrays, which have the same samples in the same rows; None if nobody else does."""
    first = readers_of(data[0]) if isinstance(data[0], MappedRows) else None
    if first is None or not all(isinstance(one, MappedRows) and readers_of(one) is first for one in data):
        return None
    return first if have_same_rows(data) else None


def have_same_rows(data: Sequence[MappedRows]) -> bool:
    """Whether several arrays on disk have the same samples in the same rows."""
    return all(one.rows is data[0].rows or np.array_equal(one.rows, data[0].rows) for one in data)


def map_rows(function: Callable[..., Any], *data: MappedRows) -> Iterator[tuple[NDArray, Any]]:
    """Numbers of some rows, as they come in the files, and `function` of these rows of each array.

    Parameters
    ----------
    function : callable
        Takes a block of each array. It may be sent elsewhere.
    *data : MappedRows
        Arrays with the same samples in the same rows.

    Yields
    ------
    numbers : ndarray of int
    result : object
    """
    places = list(data[0].places(sum(map(stored_bytes, data)) / max(len(data[0]), 1)))
    readers = read_together(data)
    if readers is None:
        for numbers, place in places:
            yield numbers, _call(function, [one.array for one in data], place)
        return
    results = chain.from_iterable(readers.run(_call_each, list(_tasks(function, data, places))))
    yield from zip((numbers for numbers, _ in places), results, strict=True)


def sum_rows(function: Callable[..., NDArray], *data: MappedRows) -> NDArray:
    """Sum over all rows of an array that `function` makes of some of them; see `map_rows`."""
    readers = read_together(data)
    if readers is None:
        return reduce(np.add, (result for _, result in map_rows(function, *data)))
    places = list(data[0].places(sum(map(stored_bytes, data)) / max(len(data[0]), 1)))
    return reduce(np.add, readers.run(_sum, list(_tasks(function, data, places))))


def _tasks(function: Any, data: Sequence[MappedRows], places: Sequence[tuple[NDArray, Any]]) -> Iterator[tuple]:
    files = [file_of(one.array) for one in data]
    for some in gen_batches(len(places), BLOCKS_PER_TASK):
        yield function, files, [place for _, place in places[some]]


def _call(function: Callable[..., Any], arrays: Sequence[Any], place: slice | NDArray) -> Any:
    result = function(*(read_rows(array, place) for array in arrays))
    for array in arrays:
        release(array)
    return result


def _call_each(function: Callable[..., Any], files: Sequence[Any], places: Sequence[slice | NDArray]) -> list[Any]:
    arrays = list(map(open_file, files))
    return [_call(function, arrays, place) for place in places]


def _sum(function: Callable[..., Any], files: Sequence[Any], places: Sequence[slice | NDArray]) -> Any:
    return reduce(np.add, _call_each(function, files, places))


def map_slices(function: Callable[..., Any], data: Any, *by_row: NDArray) -> Iterator[tuple[slice, Any]]:
    """Slices of the rows, and `function(rows, first, *by_row)` of each: a block, its first row, its part of `by_row`.

    Examples
    --------
    >>> [result for _, result in map_slices(lambda rows, first: (first, rows.size), np.ones((3, 2)))]
    [(0, 6)]
    """
    parts = list(slices(data.shape[0], stored_bytes(data) / max(data.shape[0], 1)))
    readers = readers_of(data)
    if readers is None:
        for rows in parts:
            yield rows, _call(partial(_with_first, function, rows.start, [one[rows] for one in by_row]), [data], rows)
        return
    file = file_of(data)
    tasks = [(function, file, rows, [one[rows] for one in by_row]) for rows in parts]
    yield from zip(parts, readers.run(_call_slice, tasks), strict=True)


def _with_first(function: Callable[..., Any], first: int, by_row: Sequence[NDArray], block: Any) -> Any:
    return function(block, first, *by_row)


def _call_slice(function: Callable[..., Any], file: Any, rows: slice, by_row: Sequence[NDArray]) -> Any:
    return _call(partial(_with_first, function, rows.start, by_row), [open_file(file)], rows)
