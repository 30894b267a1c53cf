"""Is a sample of one of the labelled classes at all? Random walks that die before they find a label say no."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.graph import mean_squared_distances
from lmssc.core.held_out_folds import ALWAYS_KNOWN, HeldOutFolds, LatentProblem, split_labels
from lmssc.core.label_system import LabelSolver, LabelSystem
from lmssc.core.laplacian import laplacian
from lmssc.core.targets import Targets

RESTART = 0.02
"""Probability, relative to a step, that a walk dies: a walk of about 50 steps finds a label of the same class."""
FAR = 8.0
"""Walks die faster at samples whose squared distance to their neighbours is more than this multiple of the median."""


def find_rates(graph: sparse.csr_array, labelled: NDArray, death: NDArray) -> NDArray:
    """Probability that a random walk over the graph finds a labelled sample before it dies.

    u solves (L_uu + diag(ε_i·l_ii))·u = −L_ul·1. A class without a label is a region of the graph where walks stay
    long, however certain the propagated scores are: these are ratios of probabilities of finding each class.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        S on Z alone.
    labelled : ndarray of bool of shape (n,)
        Which samples have a label.
    death : ndarray of shape (n,)
        ε.

    Returns
    -------
    ndarray of shape (n,)
        1 for labelled samples.

    Examples
    --------
    >>> chain = sparse.csr_array(([1.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    >>> find_rates(chain, np.array([True, False, False]), np.full(3, 0.5)).round(3)
    array([1.   , 0.429, 0.286])
    """
    L = laplacian(graph).astype(np.float64)
    # A walk that dies is one that is caught by the opinion 0.
    death = np.maximum(death * L.diagonal(), np.finfo(float).tiny)
    system = LabelSystem(L, labelled[:, None].astype(float), np.where(labelled, np.inf, 0.0), death)
    fixed = system.labels
    return np.clip(LabelSolver(system, tol=1e-6).solve(-(L @ fixed))[:, 0] + fixed[:, 0], 0, 1)


def death_rates(problem: LatentProblem) -> tuple[NDArray, float]:
    """ε of each sample, and the squared distance to the neighbours from which on it grows.

    Examples
    --------
    >>> problem = LatentProblem(np.array([[0.0], [0.1], [0.2], [0.3], [99.0]]), 1, 1.0, 0.0, 0.0)
    >>> death_rates(problem)[0].round(2)[[0, 1, 4]] > 1
    array([False, False,  True])
    """
    distances = mean_squared_distances(problem.graph, problem.embedded, problem.embedded)
    usual = FAR * max(float(np.median(distances)), float(np.finfo(np.float32).tiny))
    return RESTART * np.maximum(1.0, distances.astype(np.float64) / usual) ** 2, usual


def held_out_find_rates(problem: LatentProblem, targets: Targets, folds: HeldOutFolds) -> NDArray:
    """`find_rates` of each sample, with the labels of its own fold held out; NaN for a label that cannot be held out.

    A labelled sample that is always known is judged as a new sample in its place is. The parameters are those of
    `held_out_folds.fold_scores`.
    """
    result, (death, _) = np.full(len(targets), np.nan), death_rates(problem)
    always = np.flatnonzero(folds.number == ALWAYS_KNOWN)
    for members, rates in _rates_by_fold(problem, targets, folds, death):
        result[members] = rates[members]
        if len(always):
            result[always] = (problem.graph[always] @ rates) / (1 + death[always])
    return result


def new_find_rates(
    problem: LatentProblem,
    targets: Targets,
    folds: HeldOutFolds,
    fold_of_new: NDArray,
    weights: sparse.csr_array,
    distances: NDArray,
) -> tuple[NDArray, NDArray]:
    """`held_out_find_rates`, and the rates of new samples, each with the labels of one fold held out as well.

    Parameters
    ----------
    problem, targets, folds
        As for `held_out_find_rates`.
    fold_of_new : ndarray of int of shape (m,)
        Fold of each new sample.
    weights : csr_array of shape (m, n)
        Weights of the neighbours of each new sample.
    distances : ndarray of shape (m,)
        Mean squared distance of each new sample to them.

    Returns
    -------
    held_out : ndarray of shape (n,)
    new : ndarray of shape (m,)
    """
    death, usual = death_rates(problem)
    own = RESTART * np.maximum(1.0, distances.astype(np.float64) / usual) ** 2
    held_out, new = np.full(len(targets), np.nan), np.ones(len(fold_of_new))
    for members, rates in _rates_by_fold(problem, targets, folds, death):
        held_out[members] = rates[members]
        here = fold_of_new == folds.number[members[0]]
        new[here] = (weights[here] @ rates) / (1 + own[here])
    return held_out, new


def _rates_by_fold(
    problem: LatentProblem, targets: Targets, folds: HeldOutFolds, death: NDArray
) -> Iterator[tuple[NDArray, NDArray]]:
    """For each fold its samples, and the rates of all samples without its labels."""
    if not problem.fast:
        for members, remaining in split_labels(targets, folds):
            yield members, find_rates(problem.graph, remaining.labelled, death)
        return
    # Products are several times faster where neighbours are close in memory.
    order, nearby = problem.in_space
    back = np.argsort(order)
    for members, remaining in split_labels(targets, folds):
        yield members, find_rates(nearby.graph, remaining.labelled[order], death[order])[back]
