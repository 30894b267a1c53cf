"""The last step for texts: a regression of the class probabilities of all samples on all words of all views.

The graph sees words through a few latent dimensions. The regression sees each word, and what neighbours know of the
class of the samples that use it.
"""

import numpy as np
from numpy.typing import NDArray

from lmssc.core.label_regression import RIDGE
from lmssc.core.view_graph import MAX_SAMPLES
from lmssc.data.view import MappedView
from lmssc.data.views import Views
from lmssc.numerics.conjugate_gradient import conjugate_gradient

MIN_PROBABILITY = 1e-6
"""Least prediction: a regression may predict less than nothing."""
TOL = 1e-8
"""Relative residual of the regression."""
LABELLED_SHARE = 0.15
"""Share of samples with a label above which the predictions count less, in inverse proportion: they come to know the
labels by heart."""
TOTAL_ROUNDS = 5
"""Rounds in which the totals of the classes are restored."""


def can_regress(views: Views) -> bool:
    """Whether all samples have all views, and they are no more than are fitted at once; fits in parts are larger.

    Examples
    --------
    >>> can_regress(Views.from_arrays([np.eye(2)]))
    True
    """
    return views.complete and views.n_samples <= MAX_SAMPLES


def regress_on_words(views: Views, probabilities: NDArray, labelled: NDArray, unreached: NDArray) -> NDArray:
    """Class probabilities of all samples as a ridge regression on all features predicts them.

    Labelled and unlabelled samples each have half of the weight, and the ridge is that of P, `RIDGE` times the variance
    of the features. If more than `LABELLED_SHARE` of the samples have a label, this is averaged with the probabilities.

    Parameters
    ----------
    views : Views
        The views, for which `can_regress` holds.
    probabilities : ndarray of shape (n, c)
        Calibrated probabilities; rows of labelled samples are their labels.
    labelled, unreached : ndarray of bool of shape (n,)
        Samples with a label; and samples whose probabilities say nothing. Both keep their rows.

    Returns
    -------
    ndarray of shape (n, c)
        Rows sum to 1.

    Examples
    --------
    >>> words = Views.from_arrays([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.9, 0.1]])])
    >>> P = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.4, 0.6]])
    >>> regress_on_words(words, P, np.array([True, True, False, False]), np.zeros(4, dtype=bool)).round(2)
    array([[1.  , 0.  ],
           [0.  , 1.  ],
           [0.87, 0.13],
           [0.5 , 0.5 ]])
    """
    free = ~labelled & ~unreached
    if not free.any():
        return probabilities
    dtype = np.dtype(np.float64)
    if any(isinstance(view, MappedView) for view in views):
        views = views.take(np.arange(views.n_samples))  # in memory
    X, Y = views.points().astype(dtype), probabilities.astype(dtype)
    weights = np.where(labelled, 0.5 / labelled.sum(), np.where(free, 0.5 / free.sum(), 0.0))[:, None]
    mean, expected = X.T @ weights, weights.T @ Y
    energy = (X.multiply(X) if hasattr(X, "multiply") else X * X).sum(axis=1)
    ridge = RIDGE * max(float(energy @ weights[:, 0] - np.vdot(mean, mean)), np.finfo(dtype).tiny)

    def times_gram(B: NDArray) -> NDArray:
        return X.T @ (weights * (X @ B)) - mean @ (mean.T @ B) + ridge * B

    cross = X.T @ (weights * Y) - mean @ expected
    B = conjugate_gradient(times_gram, cross, np.zeros_like(cross), np.copy, tol=TOL)
    predicted = np.maximum(X @ B + (expected - mean.T @ B), MIN_PROBABILITY)
    predicted /= predicted.sum(axis=1, keepdims=True)
    share = min(1.0, LABELLED_SHARE / float(labelled.mean()))
    mixed = share * predicted + (1 - share) * probabilities
    return np.where(free[:, None], mixed.astype(probabilities.dtype), probabilities)


def keep_totals(predicted: NDArray, probabilities: NDArray, fixed: NDArray) -> NDArray:
    """Predictions with the totals of the classes that the probabilities had: a ridge draws small classes to zero.

    Parameters
    ----------
    predicted, probabilities : ndarray of shape (n, c)
        Predictions, and what they were before the regression; rows sum to 1.
    fixed : ndarray of bool of shape (n,)
        Samples that keep their predictions.

    Returns
    -------
    ndarray of shape (n, c)
        Rows sum to 1.

    Examples
    --------
    >>> before, predicted = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.6, 0.4], [0.9, 0.1]])
    >>> keep_totals(predicted, before, np.zeros(2, dtype=bool)).round(2)
    array([[0.53, 0.47],
           [0.87, 0.13]])
    """
    totals, result = probabilities[~fixed].sum(axis=0), predicted[~fixed]
    for _ in range(TOTAL_ROUNDS):
        result = result * (totals / np.maximum(result.sum(axis=0), np.finfo(result.dtype).tiny))
        result /= result.sum(axis=1, keepdims=True)
    kept = predicted.copy()
    kept[~fixed] = result
    return kept
