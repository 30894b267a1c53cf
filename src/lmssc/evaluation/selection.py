"""Choose parameters of any method by the labelled rows alone, for the reproduction of the paper's tables."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.data.folds import without_labels
from lmssc.data.view import RawView
from lmssc.evaluation.methods import fit_and_answer


def held_out_accuracy(
    estimator: Any, views: list[RawView], codes: NDArray, folds: Sequence[NDArray], concatenated: Any = None
) -> float:
    """Accuracy on held-out labels, each fold predicted by a fit to all rows with the other labels.

    Parameters
    ----------
    estimator : classifier
        Not changed; each fold gets a clone.
    views : list of RawView
        The views.
    codes : ndarray of int
        Class of each row, −1 without a label.
    folds : sequence of ndarray
        Rows to be held out together.
    concatenated : array, optional
        The views from `scaled_concatenation`, for an estimator that takes one array.

    Returns
    -------
    float

    Examples
    --------
    >>> from lmssc import GFHF
    >>> from lmssc.data.folds import labelled_folds
    >>> views = [RawView("a", np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), None)]
    >>> codes = np.array([0, 0, -1, 1, 1, -1])
    >>> held_out_accuracy(GFHF(n_neighbors=2), views, codes, labelled_folds(views, codes, seed=0))
    1.0
    """
    right = 0
    for fold in folds:
        labels = without_labels(codes, fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit with fewer labels may warn, but not about the data
            _, predicted = fit_and_answer(estimator, views, labels, concatenated)
        answers = np.full(len(codes), -1)
        answers[labels < 0] = predicted
        right += int((answers[fold] == codes[fold]).sum())
    return right / sum(len(fold) for fold in folds)


def best_setting(accuracies: Sequence[float]) -> int:
    """Index of the best setting, the first of equals; NaN marks a setting that failed.

    Examples
    --------
    >>> best_setting([float("nan"), 0.8, 0.9, 0.9])
    2
    """
    return int(np.argmax(np.nan_to_num(np.asarray(accuracies, dtype=float), nan=-1.0)))
