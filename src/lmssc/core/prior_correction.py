"""Prior correction: class scores reweighted by the number of labels of each class, and by its share of the scores."""

import numpy as np
from numpy.typing import NDArray

MAX_PRIOR_RATIO = 2.0
"""The prior correction of a class is clipped to [½, 2]: beyond, it may come from an outlier."""


def balance(scores: NDArray, codes: NDArray, power: float) -> NDArray:
    """Prior correction: scores reweighted by class, rows normalised to sum to 1.

    Propagation favours classes with many labels, and classes whose labels are central in the graph. With q_j the share
    of class j among the labels (plus one label of each class) and m_j its share among the scores of all samples, scores
    are multiplied by q_j^(−b)·(q_j/m_j)^min(1, 2b), with q_j/m_j clipped to [½, 2].

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        F, of all samples.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 without a label.
    power : float
        b. With 0 scores stay as they are; with 0.5 the totals of the classes are about proportional to the root of
        their number of labels; with 1 they are about equal.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> F = np.array([[1.0, 0.0], [0.0, 1.0], [0.55, 0.45], [0.9, 0.1], [0.8, 0.2]])
    >>> balance(F, np.array([0, 1, -1, -1, -1]), power=0.5).round(2)  # class 0 has more than its share
    array([[1.  , 0.  ],
           [0.  , 1.  ],
           [0.4 , 0.6 ],
           [0.83, 0.17],
           [0.68, 0.32]])
    """
    scores = np.maximum(scores, 0)
    return reweigh(scores, class_weights(codes, scores.mean(axis=0, dtype=np.float64), power))


def class_weights(codes: NDArray, masses: NDArray, power: float) -> NDArray:
    """What `balance` multiplies the scores of each class by; `masses` is the mean over all samples of its scores."""
    counts = np.bincount(codes[codes >= 0], minlength=len(masses)) + 1
    shares = counts / counts.sum()
    ratios = np.clip(shares / np.maximum(masses, np.finfo(float).tiny), 1 / MAX_PRIOR_RATIO, MAX_PRIOR_RATIO)
    return shares**-power * ratios ** min(1.0, 2 * power)


def reweigh(scores: NDArray, weights: NDArray) -> NDArray:
    """Scores times the weight of their class, rows normalised to sum to 1."""
    weighted = scores * weights.astype(scores.dtype)
    weighted /= weighted.sum(axis=1, keepdims=True)
    return weighted
