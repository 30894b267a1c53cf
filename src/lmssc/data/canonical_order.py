"""A canonical order of samples and views, which depends on their content alone.

Sums of floating-point numbers and the breaking of ties depend on the order of the input. Samples and views are
therefore sorted by a hash of their content before anything is computed, so that permuting the input permutes the
answer and changes no bit of it. The same hashes recognise a training sample among new ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.shared_files import map_slices
from lmssc.data.view import RawView
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.parallel import threaded_map

# Values hashed at a time: temporary arrays of this size stay in the CPU cache.
VALUES_PER_BATCH = 1 << 16


class CanonicalOrder(NamedTuple):
    """Permutations of samples and views.

    Attributes
    ----------
    samples : ndarray of int of shape (n,)
        Row of the input at each position.
    views : list of int
        View of the input at each position.
    keys : ndarray of uint64 of shape (n,)
        Hashes of the samples, sorted.
    """

    samples: NDArray
    views: list[int]
    keys: NDArray


def in_input_order(items: Sequence[Any] | NDArray, order: CanonicalOrder) -> list[Any]:
    """Items of the views in canonical order, brought into the order of the input."""
    return [items[order.views.index(v)] for v in range(len(items))]


def splitmix64(values: NDArray) -> NDArray:
    """Hash 64-bit integers (the finaliser of SplitMix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    # In place, so that the arrays stay in the cache.
    shifted = mixed >> np.uint64(30)
    mixed ^= shifted
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(mixed, np.uint64(27), out=shifted)
    mixed ^= shifted
    mixed *= np.uint64(0x94D049BB133111EB)
    np.right_shift(mixed, np.uint64(31), out=shifted)
    mixed ^= shifted
    return mixed


def entry_keys(values: NDArray, columns: NDArray) -> NDArray:
    """Hash of each value and its column; 0 for a zero, so that dense and sparse storage agree."""
    bits = np.add(values, 0.0, dtype=np.float64).view(np.uint64)  # −0 becomes 0
    zero = bits == 0
    bits ^= splitmix64(columns.astype(np.uint64))
    keys = splitmix64(bits)
    keys[zero] = 0
    return keys


def row_keys(view: RawView) -> NDArray:
    """64-bit hash of each row of a view. Integer sums make it exact in any order of the columns.

    Examples
    --------
    >>> dense = np.array([[0.0, 2.0], [1.0, 0.0]])
    >>> same = row_keys(RawView("a", dense, None)) == row_keys(RawView("a", sparse.csr_array(dense), None))
    >>> bool(same.all())
    True
    """
    keys = np.empty(view.data.shape[0], dtype=np.uint64)
    for rows, found in map_slices(_slice_keys, view.data):
        keys[rows] = found
    if view.present is not None:
        keys[~view.present] = np.uint64(1)  # 0 is a row of zeros
    return splitmix64(keys)


def _slice_keys(data: Matrix, _: int) -> NDArray:
    """Hashes of the rows, computed in blocks that stay in the CPU cache."""
    n_values = data.nnz if sparse.issparse(data) else data.shape[0] * data.shape[1]
    size = max(1, int(VALUES_PER_BATCH * data.shape[0] / max(n_values, 1)))
    batches = gen_batches(data.shape[0], size)
    return np.concatenate([np.empty(0, np.uint64), *(_block_keys(data[batch]) for batch in batches)])


def _block_keys(block: Matrix) -> NDArray:
    if sparse.issparse(block):
        entries = entry_keys(block.data, block.indices)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        return sums[block.indptr[1:]] - sums[block.indptr[:-1]]
    return entry_keys(block, np.arange(block.shape[1])[None]).sum(axis=1, dtype=np.uint64)


def sample_keys(views: Sequence[RawView]) -> NDArray:
    """Hash of each sample over all views, which must be in canonical order.

    Examples
    --------
    >>> view = RawView("a", np.array([[1.0], [2.0], [1.0]]), None)
    >>> keys = sample_keys([view])
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    return _chain(threaded_map(row_keys, views))


def _chain(keys_by_view: Sequence[NDArray]) -> NDArray:
    keys = np.zeros_like(keys_by_view[0])
    for one in keys_by_view:
        keys = splitmix64(keys ^ one)
    return keys


def canonical_order(views: Sequence[RawView], codes: NDArray) -> CanonicalOrder:
    """Order of samples and views by content; identical samples are ordered by their label.

    Parameters
    ----------
    views : sequence of RawView
        As the user gave them.
    codes : ndarray of shape (n,)
        Class of each sample, −1 without a label.

    Returns
    -------
    CanonicalOrder

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, B, y = rng.normal(size=(5, 2)), rng.normal(size=(5, 3)), np.arange(5)
    >>> one = canonical_order([RawView("a", A, None), RawView("b", B, None)], y)
    >>> other = canonical_order([RawView("b", B[::-1], None), RawView("a", A[::-1], None)], y[::-1])
    >>> bool((one.samples == 4 - other.samples).all()), one.views == [1 - v for v in other.views]
    (True, True)
    """
    return order_by_keys(threaded_map(row_keys, views), codes, [view.data.shape[1] for view in views])


def order_by_keys(keys_by_view: Sequence[NDArray], codes: NDArray, widths: Sequence[int]) -> CanonicalOrder:
    """`canonical_order`, given the `row_keys` of each view, and how many columns it has.

    Views are in the order of their widths first, which neither units nor the last digit of the data change.
    """
    # Of identical samples one counts, so that repeating some does not change the order of the views.
    distinct = np.unique(_chain(keys_by_view), return_index=True)[1]
    view_keys = [int(splitmix64(keys[distinct]).sum(dtype=np.uint64)) for keys in keys_by_view]
    order = sorted(range(len(keys_by_view)), key=list(zip(widths, view_keys, strict=True)).__getitem__)
    keys = _chain([keys_by_view[v] for v in order])
    samples = np.lexsort((codes, keys))
    return CanonicalOrder(samples, order, keys[samples])


def first_copies(keys: NDArray) -> NDArray:
    """Which samples begin a run of identical ones; keys sorted.

    At least two runs begin, so that there is a graph even if all samples are identical.

    Examples
    --------
    >>> first_copies(np.array([3, 3, 3, 8], dtype=np.uint64)), first_copies(np.array([3, 3], dtype=np.uint64))
    (array([ True, False, False,  True]), array([ True,  True]))
    """
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    if not first[1:].any():
        first[-1] = True
    return first
