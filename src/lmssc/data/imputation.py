"""Single missing values: one replacement per column, learned in `fit` and used again in `predict`."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.column_names import name_columns
from lmssc.data.memmap import copy_to_disk, memory_map, release, slices, stored_bytes
from lmssc.data.parameters import Rule
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix

IMPUTE = Rule(lambda v: v is None or (isinstance(v, str) and v in ("median", "mean")), "'median', 'mean' or None")
# Memory for the columns that are sorted at a time, in bytes.
STRIP_BYTES = 1 << 27


def learn_fills(raw: RawView, impute: str, columns: Sequence[str] | None = None) -> NDArray:
    """Median or mean of each column of a view, over the samples that have the view and the value.

    The values are sorted first, so that the order of the samples cannot change the rounding of the mean.

    Parameters
    ----------
    raw : RawView
        The view; NaN in a row of a sample that has it is a missing value.
    impute : {"median", "mean"}
        Which statistic to use.
    columns : sequence of str, optional
        Names of the columns, for the error message.

    Returns
    -------
    ndarray of shape (d,)
        Replacement for each column, with the dtype of the view.

    Examples
    --------
    >>> raw = RawView("a", np.array([[1.0, 5.0], [2.0, np.nan], [9.0, 6.0]]), None)
    >>> learn_fills(raw, "median"), learn_fills(raw, "mean")
    (array([2. , 5.5]), array([4. , 5.5]))
    """
    parts = _sparse_columns(raw) if sparse.issparse(raw.data) else _dense_columns(raw)
    fills = np.concatenate([part.medians() if impute == "median" else part.means() for part in parts])
    empty = np.flatnonzero(np.isnan(fills))
    if len(empty) and (raw.present is None or raw.present.any()):
        raise ValueError(
            f"view {raw.name!r}, {name_columns(empty[0], columns)}: no sample has a number there, so there is no "
            f"{impute} to fill in; leave the column out"
        )
    return fills.astype(raw.data.dtype)


def fill_gaps(raw: RawView, fills: NDArray) -> tuple[RawView, NDArray]:
    """Fill in the single missing values of a view, and count them by column.

    The user's data are not changed: a view with missing values is copied, to a temporary file if it is on disk.

    Parameters
    ----------
    raw : RawView
        The view.
    fills : ndarray of shape (d,)
        Replacement for each column.

    Examples
    --------
    >>> filled, counts = fill_gaps(RawView("a", np.array([[1.0, np.nan]]), None), np.array([3.0, 4.0]))
    >>> filled.data, counts
    (array([[1., 4.]]), array([0, 1]))
    """
    counts = sum((np.bincount(gaps, minlength=len(fills)) for gaps in _gap_columns(raw)), np.zeros(len(fills), int))
    if not counts.any():
        return raw, counts
    fills = fills.astype(raw.data.dtype)
    blocks = (_filled(raw, rows, fills) for rows in _row_slices(raw.data))
    if not sparse.issparse(raw.data):
        data = _join(blocks, raw.data, raw.data.shape)
        return RawView(raw.name, data, raw.present), counts
    values = _join((block.data[:, None] for block in blocks), raw.data, (raw.data.nnz, 1))[:, 0]
    data = sparse.csr_array((values, raw.data.indices, raw.data.indptr), shape=raw.data.shape)
    return RawView(raw.name, data, raw.present), counts


def _join(blocks: Iterator[NDArray], source: Matrix, shape: tuple[int, int]) -> NDArray:
    """Concatenate blocks of rows into one array, on disk if the source is."""
    if memory_map(source) is not None:
        return copy_to_disk(blocks, shape[1], source.dtype)
    joined = np.empty(shape, dtype=source.dtype)
    first = 0
    for block in blocks:
        joined[first : first + len(block)] = block
        first += len(block)
    return joined


def _filled(raw: RawView, rows: slice, fills: NDArray) -> Matrix:
    """Copy some rows and fill in their missing values."""
    block = raw.data[rows].copy()
    gaps = _gaps(block, None if raw.present is None else raw.present[rows])
    if sparse.issparse(block):
        block.data[gaps] = fills[block.indices[gaps]]
    else:
        block[gaps] = np.broadcast_to(fills, block.shape)[gaps]
    release(raw.data)
    return block


def _gap_columns(raw: RawView) -> Iterator[NDArray]:
    """Column of each missing value, by batches of rows."""
    for rows in _row_slices(raw.data):
        block = raw.data[rows]
        gaps = _gaps(block, None if raw.present is None else raw.present[rows])
        yield block.indices[gaps] if sparse.issparse(block) else np.nonzero(gaps)[1]
        release(raw.data)


def _gaps(block: Matrix, present: NDArray | None) -> NDArray:
    """Mark the NaN in rows of samples that have the view; of a sparse block, among its stored values."""
    if sparse.issparse(block):
        has = True if present is None else np.repeat(present, np.diff(block.indptr))
        return np.isnan(block.data) & has
    return np.isnan(block) if present is None else np.isnan(block) & present[:, None]


def _row_slices(data: Matrix) -> Iterator[slice]:
    return slices(data.shape[0], stored_bytes(data) / max(data.shape[0], 1))


class _Columns:
    """Sorted values of some columns.

    Column j has the `stored[j]` values from index `starts[j]` on, none of them NaN, and `zeros[j]` zeros that are not
    stored.
    """

    def __init__(self, values: NDArray, starts: NDArray, stored: NDArray, zeros: NDArray) -> None:
        self._values, self._starts, self._stored, self._zeros = values, starts, stored, zeros
        self._counts = stored + zeros

    def medians(self) -> NDArray:
        """Median of each column; NaN if it has no value."""
        middle = (self._ranked((self._counts - 1) // 2) + self._ranked(self._counts // 2)) / 2
        return np.where(self._counts > 0, middle, np.nan)

    def means(self) -> NDArray:
        """Mean of each column; NaN if it has no value."""
        parts = zip(self._starts, self._stored, strict=True)
        sums = np.array([self._values[start : start + n].sum(dtype=np.float64) for start, n in parts])
        return np.where(self._counts > 0, sums / np.maximum(self._counts, 1), np.nan)

    def _ranked(self, rank: NDArray) -> NDArray:
        """Value of the given rank in each column; zeros that are not stored come after the negative values."""
        if not len(self._values):
            return np.zeros(len(rank))
        negative = np.array(
            [
                np.searchsorted(self._values[start : start + n], 0)
                for start, n in zip(self._starts, self._stored, strict=True)
            ],
            dtype=int,
        )
        place = self._starts + np.where(rank < negative, rank, rank - self._zeros)
        found = self._values[np.clip(place, 0, len(self._values) - 1)].astype(np.float64)
        return np.where((rank >= negative) & (rank < negative + self._zeros), 0.0, found)


def _strips(counts: NDArray, value_bytes: int) -> Iterator[slice]:
    """Split the columns, with `counts` values each, into strips that fit into `STRIP_BYTES`."""
    first = 0
    ends = np.cumsum(counts) * value_bytes
    while first < len(counts):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + STRIP_BYTES, side="right")))
        yield slice(first, last)
        first = last


def _dense_columns(raw: RawView) -> Iterator[_Columns]:
    data = raw.data
    n = data.shape[0] if raw.present is None else int(raw.present.sum())
    for strip in _strips(np.full(data.shape[1], n), data.dtype.itemsize):
        columns = np.empty((strip.stop - strip.start, n), dtype=data.dtype)
        first = 0
        for rows in _row_slices(data):
            block = data[rows, strip]
            block = block if raw.present is None else block[raw.present[rows]]
            columns[:, first : first + len(block)] = block.T
            first += len(block)
            release(data)
        columns.sort(axis=1)  # NaN comes last
        stored = n - np.isnan(columns).sum(axis=1)
        yield _Columns(columns.ravel(), n * np.arange(len(columns)), stored, np.zeros_like(stored))


def _sparse_columns(raw: RawView) -> Iterator[_Columns]:
    data = raw.data
    n, n_columns = data.shape[0] if raw.present is None else int(raw.present.sum()), data.shape[1]
    stored, gaps = np.zeros(n_columns, int), np.zeros(n_columns, int)
    for columns, values in _present_entries(raw):
        missing = np.isnan(values)
        gaps += np.bincount(columns[missing], minlength=n_columns)
        stored += np.bincount(columns[~missing], minlength=n_columns)
    for strip in _strips(stored, data.dtype.itemsize + data.indices.itemsize):
        found = []
        for columns, values in _present_entries(raw):
            chosen = (columns >= strip.start) & (columns < strip.stop) & ~np.isnan(values)
            found.append((columns[chosen], values[chosen]))
        columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        counts = stored[strip]
        starts = np.cumsum(counts) - counts
        yield _Columns(values[np.lexsort((values, columns))], starts, counts, n - counts - gaps[strip])


def _present_entries(raw: RawView) -> Iterator[tuple[NDArray, NDArray]]:
    """Columns and values of the entries stored for samples that have the view, by batches of rows."""
    for rows in _row_slices(raw.data):
        block = raw.data[rows]
        if raw.present is not None:
            block = block[raw.present[rows]]
        yield np.array(block.indices), np.array(block.data)
        release(raw.data)
