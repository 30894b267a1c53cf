"""Labelled rows whose labels are hidden in turn, so that a fit to all rows can be judged by finding them again."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmssc.data.canonical_order import canonical_order, splitmix64
from lmssc.data.views import RawView

FOLDS = 3
"""Folds where the labels allow it."""


def count_folds(codes: NDArray, most: int = FOLDS) -> int:
    """Number of folds that can be made of the labels: at most `most`, and none without a row in it.

    Parameters
    ----------
    codes : ndarray of int
        Class of each row, −1 without a label.
    most : int
        Folds that are wanted, at least 2.

    Returns
    -------
    int
        0 if no class has 2 labels: the only label of a class cannot be both learned from and held out.

    Examples
    --------
    >>> [count_folds(np.array(codes)) for codes in ([0, 0, 0, 0, 1, 1, -1], [0, 0, 1, -1], [0, 1, -1])]
    [3, 2, 0]
    """
    largest = int(np.bincount(codes[codes >= 0]).max())
    return min(most, largest) if largest > 1 else 0


def labelled_folds(raws: Sequence[RawView], codes: NDArray, seed: int, most: int = FOLDS) -> list[NDArray]:
    """Rows to be held out together, the classes spread evenly, so that each class keeps a label.

    Parameters
    ----------
    raws : sequence of RawView
        The views. The folds depend on the numbers in the rows and the seed, not on the order of the rows.
    codes : ndarray of int
        Class of each row, −1 without a label.
    seed : int
        Decides the folds.
    most : int
        Folds that are wanted; see `count_folds`.

    Returns
    -------
    list of ndarray
        Row numbers of each fold: each labelled row is in one, but those that are the only one of their class are in
        none. Empty if nothing can be held out.

    Examples
    --------
    >>> view = RawView("a", np.arange(8.0)[:, None], None)
    >>> codes = np.array([0, 0, 0, 1, 1, 1, 2, -1])
    >>> [np.sort(codes[fold]).tolist() for fold in labelled_folds([view], codes, seed=0)]
    [[0, 1], [0, 1], [0, 1]]
    """
    n_folds = count_folds(codes, most)
    order = canonical_order(raws, codes)
    draw = np.empty(len(codes), dtype=np.uint64)
    draw[order.samples] = splitmix64(order.keys ^ splitmix64(np.array([seed], dtype=np.uint64)))
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    for code in np.unique(codes[codes >= 0]):
        members = np.flatnonzero(codes == code)
        if len(members) > 1:
            dealt = members[np.argsort(draw[members], kind="stable")]
            for number, fold in enumerate(folds):
                fold.extend(dealt[number::n_folds])
    return [np.array(fold) for fold in folds]


def hide(codes: NDArray, fold: NDArray) -> NDArray:
    """The labels without those of a fold.

    Examples
    --------
    >>> hide(np.array([0, 1, 1, -1]), np.array([2]))
    array([ 0,  1, -1, -1])
    """
    labels = codes.copy()
    labels[fold] = -1
    return labels
