"""The numbers of a view, without the samples that lack it: block by block, or some of the different rows."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches

from lmssc.data.canonical_order import row_keys
from lmssc.data.memmap import MappedRows, release
from lmssc.data.views import Matrix, RawView

# Values of which moments are taken at a time: they stay in the cache.
BLOCK_VALUES = 1 << 16


def present_count(raw: RawView) -> int:
    """Number of samples that have the view.

    Examples
    --------
    >>> present_count(RawView("a", np.ones((2, 1)), np.array([True, False])))
    1
    """
    return raw.data.shape[0] if raw.present is None else int(raw.present.sum())


def present_blocks(raw: RawView) -> Iterator[Matrix]:
    """The rows of the samples that have the view, in one or several blocks.

    Examples
    --------
    >>> [block.tolist() for block in present_blocks(RawView("a", np.array([[1.0], [2.0]]), np.array([False, True])))]
    [[[2.0]]]
    """
    data = raw.data
    if isinstance(data, MappedRows):
        present = data if raw.present is None else data.take(np.flatnonzero(raw.present))
        yield from (block for _, block in present.blocks())
        return
    rows = data.shape[0] if sparse.issparse(data) else max(1, BLOCK_VALUES // data.shape[1])
    for first in range(0, data.shape[0], rows):
        part = slice(first, first + rows)
        yield data[part] if raw.present is None else data[part][raw.present[part]]


def present_values(raw: RawView) -> Iterator[NDArray]:
    """All numbers, in one or several arrays; zeros that are not stored are left out.

    Examples
    --------
    >>> [values.tolist() for values in present_values(RawView("a", np.array([[1.0, 2.0]]), None))]
    [[[1.0, 2.0]]]
    """
    yield from (block.data if sparse.issparse(block) else block for block in present_blocks(raw))


def distinct_rows(raw: RawView, most: int) -> Iterator[Matrix]:
    """The first rows, up to `most`, no two of them equal, in blocks.

    In content order these are as good as drawn at random, and neither the order in which the samples came nor how
    often all of them are repeated matters.

    Examples
    --------
    >>> raw = RawView("a", np.array([[1.0], [2.0], [1.0]]), None)
    >>> [block.tolist() for block in distinct_rows(raw, 10)]
    [[[1.0], [2.0]]]
    """
    seen = np.empty(0, dtype=np.uint64)
    for rows in gen_batches(raw.data.shape[0], max(1, BLOCK_VALUES // raw.data.shape[1])):
        part = raw.take(rows)
        release(raw.data)
        block = part.data if part.present is None else part.data[part.present]
        keys = row_keys(RawView(raw.name, block, None))
        new = np.sort(np.unique(keys, return_index=True)[1])
        new = new[~np.isin(keys[new], seen)][: most - len(seen)]
        seen = np.concatenate([seen, keys[new]])
        if len(new):
            yield block[new]
        if len(seen) == most:
            return
