"""Folds of the labelled rows: labels that are held out together, so that a fit to all rows can be scored on them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmssc.data.canonical_order import CanonicalOrder, canonical_order, splitmix64
from lmssc.data.view import RawView

DEFAULT_FOLDS = 3


def count_folds(codes: NDArray, n_folds: int = DEFAULT_FOLDS) -> int:
    """Number of folds that the labels allow: at most `n_folds`, none of them empty.

    Parameters
    ----------
    codes : ndarray of int
        Class of each row, −1 without a label.
    n_folds : int
        Wanted folds, at least 2.

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
    return min(n_folds, largest) if largest > 1 else 0


def assign_folds(codes: NDArray, n_folds: int, draw: NDArray | None = None, *, rotate: bool = False) -> NDArray:
    """Fold of each row: the members of each class are dealt to the folds in turn.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Class of each row, −1 without a label.
    n_folds : int
        Number of folds.
    draw : ndarray of shape (n,), optional
        Rows of a class are dealt in ascending order of these numbers; by default in the order of the rows.
    rotate : bool
        Continue with the next fold from class to class, so that the folds have about the same size if classes have few
        labels; classes in the order of the first of their rows, whatever their codes. Otherwise each class starts with
        the first fold, and every fold up to the size of the class has it.

    Returns
    -------
    ndarray of int of shape (n,)
        −1 for rows without a label, and for a row that is the only one of its class.

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 1, 2, -1])
    >>> assign_folds(codes, 3), assign_folds(codes, 3, rotate=True)
    (array([ 0,  1,  0,  1, -1, -1]), array([ 0,  1,  0,  1, -1, -1]))
    >>> assign_folds(np.array([0, 0, 0, 1, 1, 1]), 2, rotate=True)
    array([0, 1, 0, 1, 0, 1])
    >>> assign_folds(np.array([1, 1, 1, 0, 0, 0]), 2, rotate=True)
    array([0, 1, 0, 1, 0, 1])
    >>> assign_folds(np.array([0, 0, 0, 1, 1, 1]), 2, np.array([3, 5, 4, 1, 0, 2]), rotate=True)
    array([1, 1, 0, 1, 0, 0])
    """
    fold = np.full(len(codes), -1)
    n_dealt = 0
    draw = np.arange(len(codes)) if draw is None else draw
    classes = np.unique(codes[codes >= 0])
    for code in classes[np.argsort([draw[codes == code].min() for code in classes], kind="stable")]:
        members = np.flatnonzero(codes == code)
        if len(members) > 1:
            members = members[np.argsort(draw[members], kind="stable")]
            fold[members] = (n_dealt + np.arange(len(members))) % min(n_folds, len(members))
            n_dealt += len(members) if rotate else 0
    return fold


def labelled_folds(raws: Sequence[RawView], codes: NDArray, seed: int, n_folds: int = DEFAULT_FOLDS) -> list[NDArray]:
    """Stratified folds of the labelled rows, in which each class keeps a label.

    Parameters
    ----------
    raws : sequence of RawView
        The views. The folds depend on the content of the rows and the seed, not on the order of the rows.
    codes : ndarray of int
        Class of each row, −1 without a label.
    seed : int
        Seed of the draw.
    n_folds : int
        Wanted folds; see `count_folds`.

    Returns
    -------
    list of ndarray
        Rows of each fold. Each labelled row is in one fold, except the only one of its class, which is in none. Empty
        if nothing can be held out.

    Examples
    --------
    >>> view = RawView("a", np.arange(8.0)[:, None], None)
    >>> codes = np.array([0, 0, 0, 1, 1, 1, 2, -1])
    >>> [np.sort(codes[fold]).tolist() for fold in labelled_folds([view], codes, seed=0)]
    [[0, 1], [0, 1], [0, 1]]
    """
    return draw_folds(canonical_order(raws, codes), codes, seed, n_folds)


def draw_folds(order: CanonicalOrder, codes: NDArray, seed: int, n_folds: int = DEFAULT_FOLDS) -> list[NDArray]:
    """`labelled_folds`, given the canonical order of the rows."""
    draw = np.empty(len(codes), dtype=np.uint64)
    draw[order.samples] = splitmix64(order.keys ^ splitmix64(np.array([seed], dtype=np.uint64)))
    n_folds = count_folds(codes, n_folds)
    fold = assign_folds(codes, n_folds, draw)
    # Within a fold class by class, in the order of the draw.
    by_class = np.lexsort((draw, codes))
    return [by_class[fold[by_class] == number] for number in range(n_folds)]


def without_labels(codes: NDArray, rows: NDArray) -> NDArray:
    """The labels without those of some rows.

    Examples
    --------
    >>> without_labels(np.array([0, 1, 1, -1]), np.array([2]))
    array([ 0,  1, -1, -1])
    """
    remaining = codes.copy()
    remaining[rows] = -1
    return remaining
