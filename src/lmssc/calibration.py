"""From class scores to answers: classes with too much held back, and confidence that means what it says."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

FOLDS = 5
# What is taken for the temperature before any label was held out: with few labels scores are flatter than sure.
USUAL = 0.7
# How far its logarithm is likely to be from that.
SPREAD = 0.5
# By how many times a class has too much or too little, at most: what is beyond may be an outlier's doing.
MOST_MISSING = 2.0
# By how many times scores that are sharper or flatter than those that were calibrated may change it.
MOST_CHANGE = 3.0
LOWEST, HIGHEST = 0.05, 10.0
# Scores below this are no more certain: one label that was held out must not decide all.
LEAST = 1e-4


def temper(scores: NDArray, temperature: float) -> NDArray:
    """Rows to the power 1/temperature, made to sum to 1; zeros stay zeros, and labels labels.

    Examples
    --------
    >>> temper(np.array([[0.75, 0.25], [1.0, 0.0]]), temperature=0.5)
    array([[0.9, 0.1],
           [1. , 0. ]])
    """
    scores = np.maximum(scores, 0)
    powers = (scores / scores.max(axis=1, keepdims=True)) ** scores.dtype.type(1 / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def balance(scores: NDArray, codes: NDArray, power: float) -> NDArray:
    """Scores that are free of what a class has only because of where its labels are and how many, made to sum to 1.

    Propagated labels favour the classes that have many, and those whose few labels happen to lie in the middle of
    things. With q_j the share of class j among the labels (and one label more of each class) and m_j that among the
    scores of all samples, scores are multiplied by q_j^(−b)·(q_j/m_j)^min(1, 2b); q_j/m_j counts as 2 at most and as ½
    at least.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        F, of all samples.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 where it is not known.
    power : float
        b. With 0 scores stay as they are, with 0.5 the totals of the classes are about as the roots of their numbers of
        labels, with 1 about equal.

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
    counts = np.bincount(codes[codes >= 0], minlength=scores.shape[1]) + 1
    shares = counts / counts.sum()
    masses = scores.mean(axis=0, dtype=np.float64)
    missing = np.clip(shares / np.maximum(masses, np.finfo(float).tiny), 1 / MOST_MISSING, MOST_MISSING)
    weighted = scores * (shares**-power * missing ** min(1.0, 2 * power)).astype(scores.dtype)
    return weighted / weighted.sum(axis=1, keepdims=True)


def fit_temperature(scores: NDArray, codes: NDArray) -> float:
    """The temperature that makes held-out labels most likely, drawn to the usual one where they are few.

    Parameters
    ----------
    scores : ndarray of shape (m, c)
        Scores of samples whose labels were hidden.
    codes : ndarray of shape (m,)
        These labels.

    Returns
    -------
    float

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1]] * 100)
    >>> right = fit_temperature(sure, np.repeat([0, 1], [90, 10]))
    >>> often_wrong = fit_temperature(sure, np.repeat([0, 1], [60, 40]))
    >>> round(right, 1), bool(often_wrong > 2), fit_temperature(np.empty((0, 2)), np.empty(0, dtype=int))
    (1.0, True, 0.7)
    """
    if not len(codes):
        return USUAL
    logs = np.log(np.maximum(scores, LEAST))
    own = logs[np.arange(len(codes)), codes]

    def loss(log_temperature: float) -> float:
        scaled = logs / np.exp(log_temperature)
        peaks = scaled.max(axis=1)
        surprise = peaks + np.log(np.exp(scaled - peaks[:, None]).sum(axis=1)) - own / np.exp(log_temperature)
        return float(surprise.sum() + ((log_temperature - np.log(USUAL)) / SPREAD) ** 2 / 2)

    result = minimize_scalar(loss, bounds=(np.log(LOWEST), np.log(HIGHEST)), method="bounded")
    return float(np.exp(result.x))


def mean_confidence(scores: NDArray, temperature: float) -> float:
    """How sure the answers are on average: the mean probability of the most likely class.

    Examples
    --------
    >>> mean_confidence(np.array([[0.75, 0.25], [1.0, 0.0]]), temperature=0.5)
    0.95
    """
    return float(temper(scores, temperature).max(axis=1).mean(dtype=np.float64))


def match_confidence(scores: NDArray, confidence: float, temperature: float) -> float:
    """The temperature at which scores are as sure on average as others, which were calibrated, are at theirs.

    Parameters
    ----------
    scores : ndarray of shape (m, c)
        Scores, sharper or flatter than those that were calibrated.
    confidence : float
        Mean confidence of the calibrated ones.
    temperature : float
        Their temperature; the result is at most three times as high or as low.

    Returns
    -------
    float

    Examples
    --------
    >>> flat = np.array([[0.6, 0.4], [0.3, 0.7]])
    >>> sharp = temper(flat, 0.5)
    >>> round(match_confidence(sharp, mean_confidence(flat, 1.0), 1.0), 3)
    2.0
    """
    low, high = np.log(temperature / MOST_CHANGE), np.log(temperature * MOST_CHANGE)

    def excess(log_temperature: float) -> float:
        return mean_confidence(scores, float(np.exp(log_temperature))) - confidence

    surest, least_sure = excess(low), excess(high)
    if surest <= 0 or least_sure >= 0:  # out of reach, or all one whatever the temperature
        return temperature if surest == least_sure else float(np.exp(low if surest <= 0 else high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-4)))


def held_out_scores(codes: NDArray, refit: Callable[[NDArray], NDArray]) -> tuple[NDArray, NDArray]:
    """Scores of labelled samples from fits in which their labels were hidden, and these labels.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of each sample, −1 where it is not known, in an order by chance.
    refit : callable
        Codes ↦ scores of shape (n, c).

    Returns
    -------
    scores : ndarray of shape (m, c)
    labels : ndarray of shape (m,)
        The only label of a class is not held out.

    Examples
    --------
    >>> codes = np.array([0, 0, 1, 1, 2, -1])
    >>> scores, labels = held_out_scores(codes, lambda hidden: (hidden[:, None] == [0, 1, 2]).astype(float))
    >>> scores.shape, float(scores.sum()), np.sort(labels)
    ((4, 3), 0.0, array([0, 0, 1, 1]))
    """
    fold = np.full(len(codes), -1)
    dealt = 0
    for code in np.unique(codes[codes >= 0]):
        members = np.flatnonzero(codes == code)
        if len(members) > 1:
            fold[members] = (dealt + np.arange(len(members))) % min(FOLDS, len(members))
            dealt += len(members)
    parts = []
    for number in range(FOLDS):
        held = np.flatnonzero(fold == number)
        if len(held):
            hidden = codes.copy()
            hidden[held] = -1
            parts.append((np.maximum(refit(hidden)[held], 0), codes[held]))
    if not parts:
        return np.empty((0, max(1, int(codes.max()) + 1))), np.empty(0, dtype=codes.dtype)
    scores, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
    return scores, labels
