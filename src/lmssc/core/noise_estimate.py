"""Two judges of a held-out label, the graph and the means of the classes in Z, and how likely they make the labels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from lmssc.core.held_out_folds import LatentProblem
from lmssc.core.targets import Targets

MIN_SCORE = 1e-4
"""Smaller scores of the graph count as this, so that no single label decides."""
EXPONENTS, LOG_STD = np.array([0.2, 0.8]), np.array([1.0, 0.7])
"""Usual exponents of the judges, class means first, and standard deviations of their logarithms."""
MIN_EXPONENT, MAX_EXPONENT = 1e-3, 12.0
"""Range of the exponents."""
NOISES = np.arange(1, 9) * 0.05
"""Shares of wrong labels to choose from, if any are: fewer cannot be told from classes that overlap."""
NOISE_PRIOR = NOISES**2 * (1 - NOISES) ** 13 / (NOISES**2 * (1 - NOISES) ** 13).sum()
"""How likely each of them is beforehand, as by Beta(3, 14): mostly 5 to 30 %, and 17 % on average."""
MAX_FITTED = 2000
"""Labels that the exponents are fitted to, at most: enough for two numbers."""


class NoiseEstimate(NamedTuple):
    """What the judges say about held-out labels.

    Attributes
    ----------
    distributions : ndarray of shape (l, c)
        Class distributions of the samples without their labels, by both judges.
    noise : float
        Share of wrong labels; 0 if the labels are more likely without any.
    evidence : float
        Logarithm of the likelihood of the labels, with or without noise.
    """

    distributions: NDArray
    noise: float
    evidence: float


def held_out_logs(problem: LatentProblem, known: Targets, members: NDArray) -> NDArray:
    """What both judges say about some samples, given labels of others.

    The graph is the better judge, but bends to every label that it is given. The means of the classes hardly do: with
    few labels, some of them wrong, they are often the better one.

    Parameters
    ----------
    problem : LatentProblem
        The samples.
    known : Targets
        Labels, without those of `members`.
    members : ndarray of int of shape (m,)
        Samples.

    Returns
    -------
    ndarray of shape (2, m, c)
        Logarithms of their class scores, by class means and by the graph.

    Examples
    --------
    >>> problem = LatentProblem(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), 2, 1.0, 0.0, 0.0)
    >>> targets = Targets.from_codes(np.array([0, 0, -1, 1, 1, -1]), 2)
    >>> held_out_logs(problem, targets, np.array([2, 5])).argmax(axis=2)
    array([[0, 1],
           [0, 1]])
    """
    opinions = None if problem.opinions is None else problem.opinions[members]
    scores = problem.blend(problem.label(known)[members], opinions)
    graph = np.log(np.maximum(scores, MIN_SCORE).astype(np.float64))
    return np.stack([class_mean_logs(problem.embedded, known, members), graph])


def class_mean_logs(points: NDArray, known: Targets, members: NDArray) -> NDArray:
    """−‖z − m_j‖²/2s² of samples: m_j is the mean of class j, and s² the variance within classes per coordinate.

    A class without a label is as far as the farthest. Single labels of their classes say nothing about s²: what they
    lack to one degree of freedom is made up by the variance of all samples.

    Parameters
    ----------
    points : ndarray of shape (n, r)
        Z.
    known : Targets
        The labels; they count as much as they are likely right.
    members : ndarray of int of shape (m,)
        Samples.

    Returns
    -------
    ndarray of shape (m, c)

    Examples
    --------
    >>> points = np.array([[0.0], [2.0], [9.0], [11.0], [1.0]])
    >>> class_mean_logs(points, Targets.from_codes(np.array([0, 0, 1, 1, -1]), 2), np.array([4]))
    array([[ -0.  , -20.25]])
    """
    labelled, n_classes = np.flatnonzero(known.labelled), known.n_classes
    own, codes, weights = points[labelled].astype(np.float64), known.codes[labelled], known.weights[labelled]
    share = (codes[:, None] == np.arange(n_classes)) * weights[:, None]
    totals = share.sum(axis=0)
    means = share.T @ own / np.maximum(totals, np.finfo(float).tiny)[:, None]
    squares = np.square(own - means[codes]).sum(axis=1)
    # As for a variance: the mean is closer to its own points than to others.
    freedom = float(weights.sum()) - float((np.square(share).sum(axis=0) / np.maximum(totals, 1e-9)).sum())
    missing = max(1 - freedom, 0.0)
    spread = float(points.var(axis=0, dtype=np.float64).sum()) if missing else 0.0
    variance = (float(weights @ squares) + missing * spread) / max(freedom, 1.0) / points.shape[1]
    variance = max(variance, np.finfo(float).tiny)
    asked = points[members].astype(np.float64)
    distances = np.stack([np.square(asked - mean).sum(axis=1) for mean in means], axis=1)
    distances[:, totals == 0] = distances[:, totals > 0].max(axis=1, keepdims=True)
    return -distances / (2 * variance)


def estimate_noise(logs: NDArray, codes: NDArray, noise: float | None = None) -> NoiseEstimate:
    """Pool the judges, and tell wrong labels from classes that overlap.

    A label is y with probability (1 − ε)·g_y + ε/c, ε = ν·c/(c − 1), where g is the product of the judges' scores to
    some powers. For each ν the powers make the labels most likely. There is noise if the labels are more likely on
    average over `NOISES` than with ν = 0; ν is then its posterior mean.

    Parameters
    ----------
    logs : ndarray of shape (2, l, c)
        What the judges say about held-out samples.
    codes : ndarray of int of shape (l,)
        Their labels.
    noise : float, optional
        ν, if it is known.

    Returns
    -------
    NoiseEstimate

    Examples
    --------
    >>> codes = np.repeat([0, 1], 40)
    >>> one = np.log([[0.999, 0.001]] * 30 + [[0.7, 0.3]] * 7 + [[0.3, 0.7]] * 3)
    >>> said = np.concatenate([one, one[:, ::-1]])
    >>> estimate_noise(np.stack([said, said]), codes).noise
    0.0
    >>> said[[0, 1, 2, 3, 4, 40, 41, 42]] = said[[43, 44, 45, 46, 47, 5, 6, 7]]
    >>> 0.05 < estimate_noise(np.stack([said, said]), codes).noise < 0.2
    True
    """
    fitted = logs[:, :MAX_FITTED], codes[:MAX_FITTED]
    if noise is not None:
        exponents, likelihood = fit_exponents(*fitted, noise)
        return NoiseEstimate(_pooled(logs, exponents), noise, likelihood)
    exponents, without = fit_exponents(*fitted, 0.0)
    joint = np.log(NOISE_PRIOR) + [fit_exponents(*fitted, share)[1] for share in NOISES]
    with_noise = float(logsumexp(joint))
    found = 0.0
    if with_noise > without:
        found = float(NOISES @ softmax(joint))
        exponents, _ = fit_exponents(*fitted, found)
    return NoiseEstimate(_pooled(logs, exponents), found, float(np.logaddexp(with_noise, without) - np.log(2)))


def _pooled(logs: NDArray, exponents: NDArray) -> NDArray:
    return softmax(np.tensordot(exponents, logs, 1), axis=1)


def fit_exponents(logs: NDArray, codes: NDArray, noise: float) -> tuple[NDArray, float]:
    """Powers of the judges that make the labels most likely with a share of wrong ones; and that likelihood's log.

    Both have a log-normal prior. Parameters are as for `estimate_noise`.

    Examples
    --------
    >>> sure = np.log(np.repeat([[0.9, 0.1], [0.1, 0.9]], 20, axis=0))
    >>> useless = np.zeros_like(sure)
    >>> exponents, _ = fit_exponents(np.stack([useless, sure]), np.repeat([0, 1], 20), 0.0)
    >>> bool(exponents[1] > EXPONENTS[1]), round(float(exponents[0]), 2)
    (True, 0.2)
    """
    n_labels, n_classes = logs.shape[1:]
    every = np.arange(n_labels)
    doubt = min(noise * n_classes / (n_classes - 1), 1.0)
    usual = np.log(EXPONENTS)

    def loss(log_exponents: NDArray) -> tuple[float, NDArray]:
        exponents, away = np.exp(log_exponents), (log_exponents - usual) / LOG_STD
        found = np.exp(log_softmax(np.tensordot(exponents, logs, 1), axis=1))
        right = (1 - doubt) * found[every, codes]
        likelihood = np.maximum(right + doubt / n_classes, np.finfo(float).tiny)
        # How much more a judge says for the label than for what the judges expect.
        above = logs[:, every, codes] - np.einsum("jic,ic->ji", logs, found)
        slope = -exponents * (above @ (right / likelihood)) + away / LOG_STD
        return -float(np.log(likelihood).sum()) + float(away @ away) / 2, slope

    bounds = [(np.log(MIN_EXPONENT), np.log(MAX_EXPONENT))] * len(usual)
    best = minimize(loss, usual, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.exp(best.x), -float(best.fun)
