"""Builds the `Explanation` of samples of fit and of new samples from a fitted model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.bottleneck import Bottleneck, weakest_edges
from lmssc.core.influence import label_weights, strongest_labels
from lmssc.core.label_system import LabelSystem
from lmssc.core.view_support import view_support
from lmssc.estimators.explanation import Explanation
from lmssc.estimators.once import once
from lmssc.estimators.trust_state import NewRows, fitted_rows, given_codes, label_solver, spread_to_samples

# `strongest_ids` takes a solve for each label, so it is not done beyond this number of samples times labels.
MAX_SOLVED = 300_000_000
# Relative residual of their weights, of which only the order is shown.
NAMES_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Query:
    """Samples to explain: their edges, latent positions, and the mean that their score is (row `place` of `means`)."""

    rows: NDArray
    names: list[str]
    means: sparse.csr_array
    place: NDArray
    edges: sparse.csr_array
    latent: NDArray
    distributions: NDArray
    regression: NDArray | float = 0.0


def explain_rows(model: Any, rows: NDArray, n: int, ids: Sequence[str]) -> Explanation:
    """Explanation of samples of fit."""
    solver = label_solver(model)
    system = solver.original
    # In canonical order, each distinct sample once, so that the order of the rows changes no digit.
    nodes, place = np.unique(model._nodes[rows], return_inverse=True)
    query = Query(
        rows,
        [str(ids[row]) for row in rows],
        fitted_rows(model, system, nodes),
        place,
        _affinities(system, nodes[place]),
        model.latent_[rows],
        model.label_distributions_[rows],
    )
    bottleneck = weakest_edges(system.laplacian, system.labelled)
    return _explain(model, solver, query, bottleneck, nodes[place], n, ids)


def explain_new(model: Any, found: NewRows, distributions: NDArray, n: int, ids: Sequence[str]) -> Explanation:
    """Explanation of samples that are given after the fit, known or new."""
    solver = label_solver(model)
    system = solver.original
    known = found.nodes >= 0
    own = np.where(known, found.nodes, 0)
    means = found.weights.tolil()
    if known.any():
        means[np.flatnonzero(known)] = fitted_rows(model, system, own[known]).tolil()
    edges = sparse.diags_array((~known).astype(float)) @ found.weights
    edges = edges + sparse.diags_array(known.astype(float)) @ _affinities(system, own)
    names = [
        str(ids[model._order.samples[node]]) if node >= 0 else f"new sample {row}"
        for row, node in enumerate(found.nodes)
    ]
    every = np.arange(len(names))
    query = Query(every, names, means.tocsr(), every, edges.tocsr(), found.latent, distributions, found.regression)
    whole = weakest_edges(system.laplacian, system.labelled)
    strength, edge = whole.strength[own], whole.edge[own]
    for i in np.flatnonzero(~known):
        # Over the neighbour that the strongest path leads through.
        neighbours = found.weights[[i]]
        through = np.minimum(neighbours.data, whole.strength[neighbours.indices])
        best = neighbours.indices[through.argmax()]
        strength[i], edge[i] = through.max(), whole.edge[best]
    bottleneck = Bottleneck(strength, edge)
    return _explain(model, solver, query, bottleneck, every, n, ids)


def _explain(
    model: Any, solver: Any, query: Query, bottleneck: Bottleneck, places: NDArray, n: int, ids: Sequence[str]
) -> Explanation:
    """The explanation; `places` are the entries of `bottleneck` that belong to the samples."""
    found = label_weights(solver, query.means)
    weights = (found.weights @ spread_to_samples(model)).tocsr()[query.place]
    # A new sample is the mean of its neighbours and of what the regression says about itself.
    kept = np.broadcast_to(1 - np.asarray(query.regression), len(query.rows))
    weights = (sparse.diags_array(kept) @ weights).tocsr()
    loadings = [model.loadings_[v] for v in range(len(model.view_names_))]
    latent = model.latent_[model._order.samples]
    shares = view_support(query.edges, latent, query.latent, loadings)
    samples, edge = model._order.samples, bottleneck.edge[places]
    codes = given_codes(model)
    given = np.array([None if code < 0 else model.classes_[code] for code in codes], dtype=object)
    return Explanation(
        rows=query.rows,
        names=query.names,
        labels=model._decide(query.distributions),
        confidence=query.distributions.max(axis=1),
        weights=weights,
        regression=kept * found.anchor[query.place] + (1 - kept),
        strongest=_strongest(weights, n),
        given=given,
        ids=ids,
        view_shares=dict(zip(model.view_names_, shares.T, strict=True)),
        bottleneck=bottleneck.strength[places],
        bottleneck_edge=np.where(edge >= 0, samples[edge], -1),
    )


def _affinities(system: LabelSystem, nodes: NDArray) -> sparse.csr_array:
    """Rows of (S + Sᵀ)/2."""
    rows = system.laplacian[nodes]
    entries = system.laplacian.diagonal()[nodes], (np.arange(len(nodes)), nodes)
    return (sparse.csr_array(entries, shape=rows.shape) - rows).tocsr()


def _strongest(weights: sparse.csr_array, n: int) -> NDArray:
    """Columns of the n largest entries of each row, −1 where there are fewer; of equal entries the first."""
    result = np.full((weights.shape[0], n), -1)
    for i in range(weights.shape[0]):
        entries = slice(weights.indptr[i], weights.indptr[i + 1])
        columns, values = weights.indices[entries], weights.data[entries]
        best = columns[np.lexsort((columns, -values))][:n]
        result[i, : len(best)] = best
    return result


def strongest_ids(model: Any, n: int) -> NDArray | None:
    """Rows of the n labelled samples with most weight in each sample of fit; None if that takes too long.

    Each distinct labelled sample is named by the first of its labelled copies; −1 where there are fewer.
    """
    n_nodes, n_labelled = len(model._order.samples), model._targets.n_labelled
    if n_nodes * n_labelled > MAX_SOLVED:
        return None
    nodes = once(model, f"strongest {n}", lambda: strongest_labels(label_solver(model), n, NAMES_TOLERANCE)[0])
    rows = np.flatnonzero(model._labelled)[::-1]
    first = np.full(n_nodes, -1)
    first[model._nodes[rows]] = rows
    return np.where(nodes >= 0, first[nodes], -1)[model._nodes]
