"""Groups of connected views: two views are connected if a sample has both, or through a chain of such views."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from lmssc.data.view import RawView


def connected_views(views: Sequence[RawView]) -> NDArray:
    """Number the groups of connected views: the group of each view.

    Samples of different groups cannot be compared, because no sample relates their views to each other.

    Examples
    --------
    >>> half = np.array([True, True, False, False])
    >>> one, other = RawView("a", np.zeros((4, 1)), half), RawView("b", np.zeros((4, 1)), ~half)
    >>> connected_views([one, other]), connected_views([one, RawView("c", np.zeros((4, 1)), None)])
    (array([0, 1]), array([0, 0]))
    """
    if any(view.present is None for view in views):  # a view that all samples have
        return np.zeros(len(views), dtype=np.intp)
    present = np.array([view.present for view in views])
    shared = present.astype(np.float32) @ present.T.astype(np.float32)
    return connected_components(shared, directed=False)[1].astype(np.intp)


def group_of_samples(views: Sequence[RawView], groups: NDArray) -> NDArray:
    """Group of each sample: that of the first view that it has.

    Examples
    --------
    >>> half = np.array([True, False])
    >>> views = [RawView("a", np.zeros((2, 1)), half), RawView("b", np.zeros((2, 1)), ~half)]
    >>> group_of_samples(views, np.array([0, 1]))
    array([0, 1])
    """
    result = np.empty(views[0].data.shape[0], dtype=np.intp)
    for view, group in reversed(list(zip(views, groups, strict=True))):
        result[slice(None) if view.present is None else view.present] = group
    return result


def labels_in_shared_views(views: Sequence[RawView], labelled: NDArray) -> NDArray:
    """Count, for each sample, the labelled samples that have one of its views.

    Examples
    --------
    >>> half = np.array([True, True, False, False])
    >>> views = [RawView("a", np.zeros((4, 1)), half), RawView("b", np.zeros((4, 1)), ~half)]
    >>> labels_in_shared_views(views, np.array([True, True, True, False]))
    array([2, 2, 1, 1])
    """
    if any(view.present is None for view in views):  # a view that all samples have
        return np.full(len(labelled), np.count_nonzero(labelled))
    present = np.array([view.present for view in views]).T
    patterns, pattern_of = np.unique(present, axis=0, return_inverse=True)
    pattern_of = pattern_of.ravel()
    n_labelled = np.bincount(pattern_of[labelled], minlength=len(patterns))
    shares = (patterns.astype(np.float32) @ patterns.T.astype(np.float32)) > 0
    return (shares @ n_labelled)[pattern_of]
