"""The smallest values of each row, by integers that hold a value and its column."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SelectionSettings:
    """How `argtopk` groups the columns."""

    min_group_size: int = 8
    max_groups_per_neighbor: int = 6
    """`argtopk` takes the minima of groups of at least `min_group_size` columns, with at most `max_groups_per_neighbor`
    groups for each neighbour, and at least two."""
    min_few_columns: int = 3
    """Among few columns groups may be smaller, but no smaller than this."""


SETTINGS = SelectionSettings()


def argtopk(values: NDArray, length: int) -> NDArray:
    """Columns of the `length` smallest values of each row of float32, in no order; negative values count as zero.

    The `length`-th smallest of the minima of groups of columns is an upper bound of the `length`-th smallest value.
    Few more than `length` values pass it, and only these are sorted.

    Examples
    --------
    >>> np.sort(argtopk(np.array([[3.0, 0.0, 1.0, 2.0]], dtype=np.float32), 2))
    array([[1, 2]])
    """
    n_rows, n_columns = values.shape
    group_size = max(SETTINGS.min_group_size, n_columns // (SETTINGS.max_groups_per_neighbor * length))
    group_size = min(group_size, n_columns // (2 * length))
    if group_size < SETTINGS.min_few_columns:  # few columns are partitioned at once
        keys = sort_keys(values, np.arange(n_columns))
        keys.partition(length - 1, axis=1)
        return indices_of_keys(keys[:, :length])
    n_groups = n_columns // group_size
    minima = values[:, : group_size * n_groups].reshape(n_rows, group_size, n_groups).min(axis=1)
    minima.sort(axis=1)
    passed = np.flatnonzero(values <= minima[:, length - 1 : length])
    rows, columns = np.divmod(passed, n_columns)
    counts = np.bincount(rows, minlength=n_rows)
    width = int(counts.max())
    keys = np.full((n_rows, width), np.iinfo(np.int64).max)
    keys.ravel()[concat_ranges(width * np.arange(n_rows), counts)] = sort_keys(values.ravel()[passed], columns)
    keys.sort(axis=1)
    return indices_of_keys(keys[:, :length])


def concat_ranges(starts: NDArray, counts: NDArray) -> NDArray:
    """Concatenation of the ranges that begin at `starts` and have `counts` elements.

    Examples
    --------
    >>> concat_ranges(np.array([5, 0, 9]), np.array([2, 3, 1]))
    array([5, 6, 0, 1, 2, 9])
    """
    return np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)


def sort_keys(values: NDArray, indices: NDArray) -> NDArray:
    """Integers that sort by float32 value, ties by index; negative values count as zero.

    The bit patterns of non-negative floats have the order of the floats.

    Examples
    --------
    >>> keys = sort_keys(np.array([2.5, 0.5], dtype=np.float32), np.array([7, 9]))
    >>> keys.sort()
    >>> indices_of_keys(keys)
    array([9, 7])
    """
    return (np.maximum(values, 0).view(np.int32).astype(np.int64) << 32) | indices


def indices_of_keys(keys: NDArray) -> NDArray:
    """The indices in the keys that `sort_keys` made."""
    return keys & 0xFFFFFFFF


def values_of_keys(keys: NDArray) -> NDArray:
    """The values in the keys that `sort_keys` made."""
    return (keys >> 32).astype(np.int32).view(np.float32)
