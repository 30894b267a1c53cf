"""Prediction sets of labelled samples: their own labels, as far as these are certain."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.estimators.trust_state import given_codes


def certain_labels(model: Any, coverage: float) -> tuple[NDArray, NDArray]:
    """Samples whose set follows from their labels alone, and these sets.

    A label does if it is right with a probability of at least `coverage` and is not overruled.

    Parameters
    ----------
    model : LMSSC
        Fitted.
    coverage : float
        Wanted probability that the set contains the true class.

    Returns
    -------
    rows : ndarray of int of shape (l,)
        Rows of the X of `fit`.
    sets : ndarray of bool of shape (l, c)
        Columns as in `classes_`.
    """
    targets, given = model._targets, given_codes(model)
    rows = np.flatnonzero(model._labelled)
    if targets.trust is not None:
        nodes = model._nodes[rows]
        overruled = model.classes_[given[rows]] != model.transduction_[rows]
        uncertain = np.isfinite(targets.trust[nodes]) & (overruled | (targets.weights[nodes] < coverage))
        rows = rows[~uncertain]
    sets = given[rows, None] == np.arange(len(model.classes_))
    totals = np.bincount(targets.counts[0], targets.counts[2])
    if len(targets.mixed) and totals.max() <= 1:  # without repeated labels, shares of several classes were given
        place = np.searchsorted(targets.mixed, model._nodes[rows])
        place[place == len(targets.mixed)] = 0
        soft = np.flatnonzero(targets.mixed[place] == model._nodes[rows])
        shares = np.empty((len(soft), len(model.classes_)))
        shares[:, model._class_order] = targets.shares[place[soft]]
        sets[soft] = fewest_classes(shares, coverage)
    return rows, sets


def fewest_classes(shares: NDArray, coverage: float) -> NDArray:
    """For each row the largest shares that sum to `coverage` or more; all of equal shares or none.

    Examples
    --------
    >>> fewest_classes(np.array([[0.95, 0.05, 0.0], [0.2, 0.7, 0.1], [0.4, 0.3, 0.3]]), 0.9)
    array([[ True, False, False],
           [ True,  True, False],
           [ True,  True,  True]])
    """
    ranked = -np.sort(-shares, axis=1)
    last = np.argmax(ranked.cumsum(axis=1) >= coverage - 1e-9, axis=1)
    return shares >= ranked[np.arange(len(shares)), last][:, None] - 1e-9
