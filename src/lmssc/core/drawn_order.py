"""A random order of the samples that neither the order of the input, nor rounding, nor a change of units can change.

Samples are drawn by their ranks along a fixed random direction of the scaled features. The canonical order sorts by
hashes of the numbers themselves, which the last digit of the data changes entirely, as does another unit of a view:
with 20 labels, another deal of folds moved the accuracy by up to 7 points.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.data.canonical_order import splitmix64
from lmssc.data.memmap import release
from lmssc.data.views import Views
from lmssc.numerics.batches import gen_batches

MAX_DRAWN_SAMPLES = 3000
"""So many samples are drawn by their views; more by H·Wᵀ, which takes no further look at data that may be on disk."""
BATCH_ROWS = 65_536
"""Rows of H that are read at a time."""


def _directions(widths: Sequence[int]) -> list[NDArray]:
    """The direction in each view, between −1 and 1: the same for all, because their order is that of hashes."""
    words = splitmix64(splitmix64(np.arange(max(widths), dtype=np.uint64))) >> np.uint64(11)
    direction = words.astype(np.float64) / 2**52 - 1
    return [direction[:width] for width in widths]


def project_views(views: Views) -> NDArray:
    """Scaled views along the direction, of shape (n,)."""
    directions = _directions([view.data.shape[1] for view in views])
    return views.dot([direction.astype(views.dtype)[:, None] for direction in directions])[:, 0]


def project_latent(latent: Any, loadings: Sequence[NDArray]) -> NDArray:
    """The views as H·Wᵀ has them, along the direction; neither rotations nor signs of the components change it.

    Parameters
    ----------
    latent : ndarray of shape (n, r), or rows of one on disk
        H.
    loadings : sequence of ndarray of shape (d_v, r)
        W^v, in canonical order.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> H, W = rng.normal(size=(5, 2)), rng.normal(size=(7, 2))
    >>> bool(np.allclose(project_latent(H, [W]), project_latent(-H[:, ::-1], [-W[:, ::-1]])))
    True
    """
    directions = _directions([len(loading) for loading in loadings])
    weights = np.sum([u @ loading.astype(np.float64) for u, loading in zip(directions, loadings, strict=True)], axis=0)
    along = np.empty(latent.shape[0])
    for batch in gen_batches(len(along), BATCH_ROWS):
        np.einsum("ij,j->i", latent[batch], weights, out=along[batch])
        release(latent)
    return along


def draw_numbers(along: NDArray) -> NDArray:
    """A random number for each sample: a hash of its rank.

    Parameters
    ----------
    along : ndarray of shape (n,)
        Where the samples are along the direction.

    Returns
    -------
    ndarray of uint64 of shape (n,)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> one, other = (project_views(Views.from_arrays([view])) for view in (X, np.nextafter(X, np.inf)))
    >>> bool((draw_numbers(one) == draw_numbers(other)).all())
    True
    """
    ranks = np.empty(len(along), dtype=np.uint64)
    ranks[np.argsort(along, kind="stable")] = np.arange(len(along), dtype=np.uint64)
    return splitmix64(ranks)


def numbers_of_new(along: NDArray, new: NDArray) -> NDArray:
    """Random numbers of new samples: hashes of the ranks that they would have among those of fit.

    Examples
    --------
    >>> along = np.array([3.0, 1.0, 2.0])
    >>> bool((numbers_of_new(along, along) == draw_numbers(along)).all())
    True
    """
    return splitmix64(np.searchsorted(np.sort(along), new).astype(np.uint64))


def draw_samples(along: NDArray) -> NDArray:
    """The samples in the order of their random numbers.

    Examples
    --------
    >>> along = np.array([3.0, 1.0, 2.0])
    >>> bool((draw_samples(along) == np.argsort(draw_numbers(along))).all())
    True
    """
    return np.argsort(along, kind="stable")[np.argsort(splitmix64(np.arange(len(along), dtype=np.uint64)))]


def draw_order(order: NDArray, get_views: Callable[[], Views]) -> NDArray:
    """A random order of the samples, by their views if they are few.

    Parameters
    ----------
    order : ndarray of int of shape (n,)
        The samples in canonical order; if they are many, in the random order of the fit.
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
    return order[np.argsort(draw_numbers(project_views(get_views()))[order], kind="stable")]
