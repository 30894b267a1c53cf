"""Iteration over the rows of the samples that have a view, in batches."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.canonical_order import row_keys
from lmssc.data.memmap import MappedRows, release
from lmssc.data.shared_files import map_rows
from lmssc.data.view import RawView
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix

# Batches of this many values stay in the CPU cache.
VALUES_PER_BATCH = 1 << 16


def present_count(raw: RawView) -> int:
    """Number of samples that have the view.

    Examples
    --------
    >>> present_count(RawView("a", np.ones((2, 1)), np.array([True, False])))
    1
    """
    return raw.data.shape[0] if raw.present is None else int(raw.present.sum())


def map_present(function: Callable[[Matrix], Any], raw: RawView) -> Iterator[Any]:
    """`function` of the rows of the samples that have the view, in one or several blocks; see `map_rows`.

    Examples
    --------
    >>> list(map_present(np.ndarray.tolist, RawView("a", np.array([[1.0], [2.0]]), np.array([False, True]))))
    [[[2.0]]]
    """
    data = raw.data
    if isinstance(data, MappedRows):
        present = data if raw.present is None else data.take(np.flatnonzero(raw.present))
        yield from (result for _, result in map_rows(function, present))
    else:
        yield from map(function, _present_blocks(raw))


def _present_blocks(raw: RawView) -> Iterator[Matrix]:
    data = raw.data
    rows = data.shape[0] if sparse.issparse(data) else max(1, VALUES_PER_BATCH // data.shape[1])
    for first in range(0, data.shape[0], rows):
        part = slice(first, first + rows)
        yield data[part] if raw.present is None else data[part][raw.present[part]]


def has_values(raw: RawView) -> NDArray:
    """Which samples have a value other than zero in the view; those that lack the view have none.

    Examples
    --------
    >>> has_values(RawView("a", np.array([[1.0], [0.0], [2.0]]), np.array([True, True, False])))
    array([ True, False, False])
    """
    data = raw.data
    found = np.zeros(data.shape[0], dtype=bool)
    for rows, block in data.blocks() if isinstance(data, MappedRows) else [(np.arange(len(found)), data)]:
        found[rows[np.unique(block.nonzero()[0])]] = True
    return found if raw.present is None else found & raw.present


def map_values(function: Callable[[NDArray], Any], raw: RawView) -> Iterator[Any]:
    """`function` of all values, in one or several arrays, without the zeros that a sparse view does not store.

    Examples
    --------
    >>> [int(count) for count in map_values(np.count_nonzero, RawView("a", np.array([[1.0, 2.0]]), None))]
    [2]
    """
    return map_present(lambda block: function(block.data if sparse.issparse(block) else block), raw)


def has_negative(raw: RawView) -> bool:
    """Whether a value is below zero.

    Examples
    --------
    >>> has_negative(RawView("a", np.array([[1.0, -2.0]]), None))
    True
    """
    return any(map_values(lambda values: bool((values < 0).any()), raw))


def distinct_rows(raw: RawView, max_rows: int) -> Iterator[Matrix]:
    """The first `max_rows` distinct rows, in blocks.

    In canonical order these are as good as a random sample, which does not depend on the order of the input or on
    repeating all samples.

    Examples
    --------
    >>> raw = RawView("a", np.array([[1.0], [2.0], [1.0]]), None)
    >>> [block.tolist() for block in distinct_rows(raw, 10)]
    [[[1.0], [2.0]]]
    """
    if raw.keys is not None and not isinstance(raw.data, MappedRows) and not sparse.issparse(raw.data):
        yield from _distinct_by_keys(raw, raw.keys, max_rows)
        return
    seen = np.empty(0, dtype=np.uint64)
    n_values = raw.data.nnz if sparse.issparse(raw.data) else raw.data.shape[0] * raw.data.shape[1]
    for rows in gen_batches(raw.data.shape[0], max(1, VALUES_PER_BATCH * raw.data.shape[0] // max(n_values, 1))):
        part = raw.take(rows)
        release(raw.data)
        block = part.data if part.present is None else part.data[part.present]
        if part.keys is None:
            keys = row_keys(RawView(raw.name, block, None))
        else:
            keys = part.keys if part.present is None else part.keys[part.present]
        new = np.sort(np.unique(keys, return_index=True)[1])
        new = (new[~np.isin(keys[new], seen)] if len(seen) else new)[: max_rows - len(seen)]
        seen = np.concatenate([seen, keys[new]])
        if len(new):
            yield block[new]
        if len(seen) == max_rows:
            return


def _distinct_by_keys(raw: RawView, keys: NDArray, max_rows: int) -> Iterator[Matrix]:
    """`distinct_rows` of a dense view in memory whose keys are known; without copies if all rows are distinct."""
    present = np.arange(len(keys)) if raw.present is None else np.flatnonzero(raw.present)
    n_looked_at, first = max_rows, present[:0]
    while len(first) < max_rows:
        first = np.sort(np.unique(keys[present[:n_looked_at]], return_index=True)[1])
        if n_looked_at >= len(present):
            break
        n_looked_at *= 2
    rows = present[first[:max_rows]]
    for batch in gen_batches(len(rows), max(1, VALUES_PER_BATCH // raw.data.shape[1])):
        some = rows[batch]
        consecutive = some[-1] - some[0] == len(some) - 1
        yield raw.data[some[0] : some[-1] + 1] if consecutive else raw.data[some]
