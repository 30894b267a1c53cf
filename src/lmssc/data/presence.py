"""Which samples have which views."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def rows_with(view: Any) -> NDArray:
    """Indices of the samples that have a view.

    Examples
    --------
    >>> from lmssc.data.view import View
    >>> rows_with(View(np.zeros((3, 1)), present=np.array([True, False, True])))
    array([0, 2])
    """
    return np.arange(view.data.shape[0]) if view.present is None else np.flatnonzero(view.present)


def presence_patterns(present: Sequence[NDArray | None], n_samples: int) -> list[tuple[NDArray, NDArray]]:
    """Samples that have the same views: their row numbers, and which views they have.

    Examples
    --------
    >>> presence_patterns([None, np.array([True, False, True])], 3)
    [(array([1]), array([ True, False])), (array([0, 2]), array([ True,  True]))]
    """
    if all(rows is None for rows in present):
        return [(np.arange(n_samples), np.ones(len(present), dtype=bool))]
    everyone = np.ones(n_samples, dtype=bool)
    has = np.array([everyone if rows is None else rows for rows in present])
    kinds, kind = np.unique(has.T, axis=0, return_inverse=True)
    rows = np.split(np.argsort(kind.ravel(), kind="stable"), np.cumsum(np.bincount(kind.ravel()))[:-1])
    return list(zip(rows, kinds, strict=True))
