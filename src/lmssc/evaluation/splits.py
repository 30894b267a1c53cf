"""Rows in random order with labels for a share of each class."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Split(NamedTuple):
    """`order` shuffles the rows; `given` is a mask, in that order, of the rows whose label is given."""

    order: NDArray
    given: NDArray


def stratified_split(codes: NDArray, rate: float, seed: int) -> Split:
    """Shuffle the rows and give the labels of a share of each class, at least one.

    Parameters
    ----------
    codes : ndarray of int
        True classes 0, 1, … of all rows.
    rate : float
        Share of each class, between 0 and 1.
    seed : int
        Random seed.

    Returns
    -------
    Split

    Examples
    --------
    >>> order, given = stratified_split(np.array([0, 0, 0, 0, 1, 1]), 0.5, seed=0)
    >>> sorted(np.array([0, 0, 0, 0, 1, 1])[order][given].tolist())
    [0, 0, 1]
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    shuffled = codes[order]
    given = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        members = np.flatnonzero(shuffled == code)
        given[members[: max(1, round(rate * len(members)))]] = True
    return Split(order, given)
