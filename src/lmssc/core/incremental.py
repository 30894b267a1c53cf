"""New samples and labels join a fit: its graph grows where they are, and the scores are propagated from what they were.

Loadings, regressions and the calibration stay as the fit left them. `reasons_to_refit` says when that is too little.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.calibration import GroupedCalibration
from lmssc.core.extended_graph import ExtendedGraph, GraphRule
from lmssc.core.laplacian import laplacian
from lmssc.core.objective import TOLERANCE
from lmssc.core.propagation import Propagation, propagate, rescue_disconnected
from lmssc.core.second_opinion import Opinion
from lmssc.core.targets import Targets
from lmssc.numerics.knn.approximate import points_within
from lmssc.numerics.knn.exact import listed_distances

# Residual of the solver, as a share of the root of the share of samples that are new or have another label. With 1 %
# new samples of 200,000, one label in 7,000 differs from that of the exact solution.
RESIDUAL_SHARE = 0.1
# Samples on which the recall of the graph is measured.
N_MEASURED = 100


@dataclass(frozen=True)
class RefitLimits:
    """When an update is not enough."""

    growth: float = 2.0
    """Samples, as a multiple of those of the last fit."""
    relabelled: float = 0.5
    """Labels that were given, changed or taken back since the last fit, as a share of its labels."""
    unusual: float = 0.2
    """Share of the new samples whose residual is more than twice as large as that of 99 % of the samples of the fit:
    those of which `predict` is less certain."""
    min_unusual: int = 10
    """Fewer such samples may be chance."""
    change: float = 0.25
    """Relative change of the scores of the samples that were there before."""


LIMITS = RefitLimits()


@dataclass(frozen=True)
class UpdateMemory:
    """What a fit leaves for updates besides its fitted attributes.

    Attributes
    ----------
    gamma : float
        γ in the units of the coordinates.
    calibration : GroupedCalibration
        Calibration of the scores.
    n_missing : ndarray of int of shape (n,), or None
        Kind of each distinct sample, in canonical order: see `kinds_of`; None if none lacks anything.
    n_samples, n_labels : int
        Distinct samples and labels of the last fit.
    n_relabelled : int
        Labels that were given, changed or taken back since then.
    """

    gamma: float
    calibration: GroupedCalibration
    n_missing: NDArray | None
    n_samples: int
    n_labels: int
    n_relabelled: int = 0


class Updated(NamedTuple):
    """Result of an update; the old samples first, then the new ones.

    Attributes
    ----------
    raw_scores : ndarray of shape (n + m, c)
        F, the solution of the system of the extended graph.
    found : Propagation
        F with the scores of samples that no label reaches, and which these are.
    graph : csr_array of shape (n + m, n + m)
        S.
    alpha : ndarray of shape (n + m,)
        α of its rows.
    change : float
        Relative change of F of the old samples.
    """

    raw_scores: NDArray
    found: Propagation
    graph: sparse.csr_array
    alpha: NDArray
    change: float


def tolerance(n_samples: int, n_changed: int) -> float:
    """Relative residual of the solver after a change of some samples.

    Examples
    --------
    >>> tolerance(1000, 10), tolerance(1_000_000, 1)
    (1e-10, 0.0001)
    """
    if n_samples <= TOLERANCE.max_exact_samples:
        return TOLERANCE.tightest
    return max(float(RESIDUAL_SHARE * np.sqrt(n_changed / n_samples)), TOLERANCE.tightest)


def update(
    graph: sparse.csr_array,
    alpha: NDArray,
    coordinates: NDArray,
    n_latent: int,
    scores: NDArray,
    unreached: NDArray,
    targets: Targets,
    rule: GraphRule,
    opinion: Opinion | None,
    n_relabelled: int,
) -> Updated:
    """Extend the graph by the samples that it does not have yet, and propagate all labels over it.

    Parameters
    ----------
    graph, alpha, coordinates, scores, rule
        As for `ExtendedGraph`.
    n_latent : int
        Width of Z.
    unreached : ndarray of bool of shape (n,)
        Old samples that no label reached.
    targets : Targets
        Labels of all n + m samples.
    opinion : Opinion, optional
        Q and η of all samples.
    n_relabelled : int
        Number of labels that the update gave, changed or took back.

    Returns
    -------
    Updated
    """
    n_old, n_all = graph.shape[0], len(coordinates)
    start, disconnected = scores, unreached
    if n_all > n_old:
        extended = ExtendedGraph(graph, alpha, coordinates, scores, rule)
        known = np.hstack([scores, unreached[:, None].astype(scores.dtype)])
        first = extended.first_scores(known, np.append(targets.frequencies, 1.0))
        start, disconnected = np.concatenate([scores, first[:, :-1]]), np.append(unreached, first[:, -1] > 0.5)
        start[targets.certain_labels] = targets.matrix(start.dtype)[targets.certain_labels]
        graph, alpha, _ = extended.connect(start)
    tol = tolerance(n_all, n_all - n_old + n_relabelled)
    found = propagate(laplacian(graph), targets, start, tol, opinion=opinion)
    raw_scores = found.scores
    change = float(np.linalg.norm(raw_scores[:n_old] - scores) / max(float(np.linalg.norm(scores)), 1e-300))
    if n_latent < coordinates.shape[1]:
        found = rescue_disconnected(coordinates[:, :n_latent], found, disconnected, rule.n_neighbors)
    if opinion is not None:
        frequencies = targets.frequencies.astype(found.scores.dtype)
        found = found._replace(scores=np.where(found.unreached[:, None], frequencies, found.scores))
    return Updated(raw_scores, found, graph, alpha, change)


def beside_neighbors(graph: sparse.csr_array, n_new: int) -> NDArray:
    """Order of the samples in which each of the new ones, the last of the graph, follows an earlier neighbour.

    Examples
    --------
    >>> S = sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> beside_neighbors(S, n_new=1)
    array([0, 2, 1])
    """
    n_old = graph.shape[0] - n_new
    place = np.arange(graph.shape[0], dtype=np.float64)
    place[n_old:] = np.minimum(graph.indices[graph.indptr[n_old:-1]], n_old) + 0.5
    return np.argsort(place, kind="stable")


def measured_recall(graph: sparse.csr_array, coordinates: NDArray, scores: NDArray, rule: GraphRule) -> float:
    """Share of the true nearest neighbours among the neighbours in the graph, measured on some samples.

    Examples
    --------
    >>> S = sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> rule = GraphRule(n_neighbors=1, beta=1.0, gamma=1.0)
    >>> round(measured_recall(S, np.array([[0.0], [1.0], [3.0]]), np.zeros((3, 2)), rule), 2)
    0.67
    """
    rows = np.linspace(0, graph.shape[0] - 1, min(N_MEASURED, graph.shape[0]), dtype=np.intp)
    roots = np.sqrt([rule.beta, rule.gamma]).astype(coordinates.dtype)
    points = np.hstack([coordinates * roots[0], scores.astype(coordinates.dtype, copy=False) * roots[1]])
    some = graph[rows]
    sizes = np.diff(some.indptr)
    number = np.repeat(np.arange(len(rows)), sizes)
    # The farthest neighbour in the graph is no nearer than the farthest true one: points beyond it are skipped.
    own = listed_distances(points, points[rows][number], some.indices[:, None])[:, 0]
    limits = np.zeros(len(rows), dtype=own.dtype)
    np.maximum.at(limits, number, own)
    query, point, distances = points_within(points, points[rows], limits)
    other = point != rows[query]
    query, point, distances = query[other], point[other], distances[other]
    order = np.lexsort((point, distances, query))
    query, point = query[order], point[order]
    rank = np.arange(len(query)) - np.searchsorted(query, np.arange(len(rows)))[query]
    true = (query * graph.shape[0] + point)[rank < sizes[query]]
    found = number * graph.shape[0] + some.indices
    return float(np.isin(true, found, assume_unique=True).sum() / sizes.sum())


def reasons_to_refit(
    memory: UpdateMemory, n_samples: int, unusual: NDArray | None, change: float, recall: tuple[float, float]
) -> list[str]:
    """Why the fit should be repeated with all samples; empty if the update is good enough.

    Parameters
    ----------
    memory : UpdateMemory
        Of the last fit, with the labels that changed since then.
    n_samples : int
        Number of distinct samples after the update.
    unusual : ndarray of bool of shape (m,), or None
        Which new samples have residuals beyond those of the samples of the fit; None if that is not known.
    change : float
        Relative change of the scores of the old samples.
    recall : tuple of float
        Recall of the neighbours in the graph, measured, and the least that is wanted.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from lmssc.core.calibration import Calibration
    >>> memory = UpdateMemory(1.0, GroupedCalibration(Calibration(), {}), None, n_samples=100, n_labels=10)
    >>> reasons_to_refit(memory, 150, None, 0.0, (1.0, 0.95))
    []
    >>> reasons_to_refit(memory, 201, None, 0.0, (1.0, 0.95))
    ['there are 201 samples, and the last fit had 100']
    """
    reasons = []
    if n_samples > LIMITS.growth * memory.n_samples:
        reasons.append(f"there are {n_samples} samples, and the last fit had {memory.n_samples}")
    if memory.n_relabelled > LIMITS.relabelled * memory.n_labels:
        reasons.append(
            f"{memory.n_relabelled} labels were given or changed since the last fit, which had {memory.n_labels}"
        )
    if unusual is not None and unusual.sum() >= LIMITS.min_unusual and unusual.mean() > LIMITS.unusual:
        reasons.append(f"{int(unusual.sum())} of {len(unusual)} new samples are unlike those of the last fit")
    if change > LIMITS.change:
        reasons.append(f"the scores of earlier samples changed by {change:.0%}")
    if recall[0] < recall[1]:
        reasons.append(f"the graph has {recall[0]:.1%} of the nearest neighbours, less than {recall[1]:.1%}")
    return reasons
