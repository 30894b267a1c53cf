"""A random order of the samples that neither the order of the input, nor rounding, nor a change of units can change."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lmssc.data.canonical_order import splitmix64
from lmssc.data.views import Views

MAX_DRAWN_SAMPLES = 3000
"""Of more samples, the first ones in canonical order are the landmarks and probes, as they are those that calibrate."""


def draw_numbers(views: Views) -> NDArray:
    """A random number for each sample: a hash of its rank along a fixed random direction of the scaled features.

    Folds that are dealt by these numbers stay the same if the last digit of the data changes, as it does from one
    processor to another, or the unit of a view, which scaling removes. The canonical order sorts by hashes of the
    numbers themselves, which both change entirely: with 20 labels, another deal moved the accuracy by up to 7 points.

    Parameters
    ----------
    views : Views
        Scaled views.

    Returns
    -------
    ndarray of uint64 of shape (n,)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> numbers = draw_numbers(Views.from_arrays([X]))
    >>> bool((numbers == draw_numbers(Views.from_arrays([np.nextafter(X, np.inf)]))).all())
    True
    """
    widths = [view.data.shape[1] for view in views]
    # All views have the same direction, because their order is that of hashes. The numbers are between −1 and 1.
    words = splitmix64(splitmix64(np.arange(max(widths), dtype=np.uint64))) >> np.uint64(11)
    direction = (words.astype(np.float64) / 2**52 - 1).astype(views.dtype)[:, None]
    along = views.dot([direction[:width] for width in widths])[:, 0]
    ranks = np.empty(len(along), dtype=np.uint64)
    ranks[np.argsort(along, kind="stable")] = np.arange(len(along), dtype=np.uint64)
    return splitmix64(ranks)


def draw_order(order: NDArray, get_views: Callable[[], Views]) -> NDArray:
    """A random order of the samples, by `draw_numbers` if they are not too many.

    Parameters
    ----------
    order : ndarray of int of shape (n,)
        The samples in canonical order.
    get_views : callable
        Returns the scaled views of all samples.

    Returns
    -------
    ndarray of int of shape (n,)

    Examples
    --------
    >>> views = Views.from_arrays([np.random.default_rng(0).normal(size=(6, 2))])
    >>> sorted(draw_order(np.arange(6), lambda: views).tolist())
    [0, 1, 2, 3, 4, 5]
    """
    if len(order) > MAX_DRAWN_SAMPLES:
        return order
    return order[np.argsort(draw_numbers(get_views())[order], kind="stable")]
