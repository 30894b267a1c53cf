"""An order of the samples in which neighbours in space are neighbours in memory."""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.parallel import threaded_map


class PointRows(Protocol):
    """Rows that can be read by their numbers."""

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: NDArray) -> NDArray: ...


LEAF_SIZE = 300
"""Parts of up to this size are not split (a block of the two-level preconditioner)."""
MAX_SAMPLES_FOR_DIRECTION = 2000
"""Number of points that the direction of a split is computed from."""
BATCH_ROWS = 1 << 20
"""Points that are in memory at a time, if they are on disk."""


def spatial_order(
    points: PointRows, after_batch: Callable[[], object] | None = None, drawn: NDArray | None = None
) -> NDArray:
    """An order in which points that are close in space have close indices.

    The points are split in half along their first principal direction, and each half again.

    Parameters
    ----------
    points : ndarray of shape (n, r), or rows of one on disk
        Positions of the samples.
    after_batch : callable, optional
        Called when some of the points were read, such as to release the memory of points that are on disk.
    drawn : ndarray of int of shape (n,), optional
        A random order of the points to begin with; their own by default.

    Returns
    -------
    ndarray of int of shape (n,)
        Indices of the samples in the new order.

    Examples
    --------
    >>> points = np.array([[0.0], [9.0], [0.1], [9.1]] * 200)
    >>> order = spatial_order(points)
    >>> int(np.count_nonzero(np.abs(np.diff(points[order, 0])) > 5))
    1
    """
    order = np.arange(len(points)) if drawn is None else drawn.copy()
    parts = [(0, len(points))]
    while parts[0][1] - parts[0][0] > BATCH_ROWS:
        parts = list(chain.from_iterable(_halve(points, order, part, after_batch) for part in parts))
    for first, end in parts:
        # Read once: deeper halves have points from all over the file, and each would be a page of its own.
        chosen = order[first:end]
        order[first:end] = chosen[_order_in_memory(points[chosen])]
        if after_batch is not None:
            after_batch()
    return order


def _order_in_memory(points: NDArray) -> NDArray:
    """The order of points that are in memory; halves of the same depth are split side by side."""
    order = np.arange(len(points))
    parts = [(0, len(points))]
    while parts:
        large = [part for part in parts if part[1] - part[0] > LEAF_SIZE]
        parts = list(chain.from_iterable(threaded_map(partial(_halve, points, order), large)))
    return order


def _halve(
    points: PointRows, order: NDArray, part: tuple[int, int], after_batch: Callable[[], object] | None = None
) -> list[tuple[int, int]]:
    """Split the points `order[first:end]` along their first principal direction; the two halves."""
    first, end = part
    middle, chosen = (first + end) // 2, order[first:end]
    sample = chosen[:: max(1, len(chosen) // MAX_SAMPLES_FOR_DIRECTION)]
    direction = _principal_direction(points[sample])
    along = np.empty(len(chosen), dtype=points.dtype)
    # What is on disk is read in the order of the file.
    places = np.arange(len(chosen)) if after_batch is None else np.argsort(chosen)
    for batch in gen_batches(len(chosen), BATCH_ROWS):
        along[places[batch]] = points[chosen[places[batch]]] @ direction
        if after_batch is not None:
            after_batch()
    order[first:end] = chosen[np.argpartition(along, middle - first)]
    return [(first, middle), (middle, end)]


def _principal_direction(points: NDArray) -> NDArray:
    """First principal direction of the points, its largest entry positive, so that rounding does not turn it."""
    centred = points - points.mean(axis=0)
    direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    return direction if direction[np.abs(direction).argmax()] > 0 else -direction
