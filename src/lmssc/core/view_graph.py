"""The mean of the views' own neighbour graphs beside S, as far as held-out labels ask for it.

Latent positions keep what varies most, and drop directions that look like noise. Where many views say a little each,
below much that is their own, or a view tells by small differences, the neighbours in single views know more.
"""

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.dense_propagation import dense_laplacian
from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import graph_among_all, learn_graph
from lmssc.core.held_out import HeldOutLabels
from lmssc.core.laplacian import laplacian
from lmssc.core.links import Links
from lmssc.core.objective import Objective
from lmssc.core.opinion_trust import TOLERANCE
from lmssc.core.propagation import propagate
from lmssc.data.presence import rows_with
from lmssc.data.view import MappedView, View
from lmssc.data.views import Views
from lmssc.numerics.climb import climb
from lmssc.numerics.matrices import Matrix

# Weights w of the mean graph beside S to choose from, besides 0.
WEIGHTS = (0.3, 1.0, 3.0)
# Log-likelihood of the held-out labels that any weight has to gain, and that an infinite one has to gain on top. On 19
# of 21 data sets these are the best for all others: benchmarks/view_graph.py.
MIN_GAIN = 1.0
GAIN_OF_FULL_WEIGHT = 2.0
# Fewer held-out labels cannot tell.
MIN_HELD_OUT = 20
# If the middle weight loses more than this, no other gains.
MAX_LOSS = 3.0
# More samples are not compared view by view, which takes a search in all features.
MAX_SAMPLES = 5000
MAX_ENTRIES = 10_000_000
# Views of mostly zeros gain nothing either: those with this share of medians among the entries of some rows.
MAX_SHARE_OF_MEDIANS = 0.5
N_ROWS_TO_LOOK_AT = 200


def mean_view_graph(views: Views, n_neighbors: int) -> sparse.csr_array:
    """Mean over the views of the neighbour graphs on their own rows, weights as in S; no self-loops.

    Parameters
    ----------
    views : Views
        Scaled views, in memory.
    n_neighbors : int
        k.

    Returns
    -------
    csr_array of shape (n, n)
        Rows sum to the share of the views that a sample has.

    Examples
    --------
    >>> views = Views.from_arrays([np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([[0.0], [5.0], [1.0], [7.0]])])
    >>> mean_view_graph(views, 1).toarray()
    array([[0. , 0.5, 0.5, 0. ],
           [0.5, 0. , 0. , 0.5],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0.5, 0.5, 0. ]])
    """
    # All edges at once: to add up sparse matrices takes longer.
    graphs = [_own_graph(view, n_neighbors) for view in views]
    rows = np.tile(np.arange(views.n_samples), len(graphs))
    row = np.repeat(rows, np.concatenate([np.diff(graph.indptr) for graph in graphs]))
    column = np.concatenate([graph.indices for graph in graphs])
    weights = np.concatenate([graph.data for graph in graphs])
    weights *= weights.dtype.type(1 / len(views))
    return sparse.csr_array((weights, (row, column)), shape=graphs[0].shape)


def _own_graph(view: View, n_neighbors: int) -> sparse.csr_array:
    """The neighbour graph of the samples that have a view."""
    n_samples = view.data.shape[0]
    rows = rows_with(view)
    if len(rows) < 3:
        return sparse.csr_array((n_samples, n_samples), dtype=view.data.dtype)
    graph, _ = learn_graph(_in_memory(view).points()[rows], min(n_neighbors, len(rows) - 2), 1.0)
    return graph if len(rows) == n_samples else graph_among_all(graph, rows, n_samples)


def add_view_graph(objective: Objective, weight: float, graph: sparse.csr_array | None = None) -> Objective:
    """The objective with w times the Laplacian of the mean graph of the views beside that of S.

    Parameters
    ----------
    objective : Objective
        The problem, without links.
    weight : float
        w; with 0 nothing changes.
    graph : csr_array of shape (n, n), optional
        The mean graph, if it is known already.

    Returns
    -------
    Objective
    """
    if not weight:
        return objective
    graph = mean_view_graph(objective.views, objective.n_neighbors) if graph is None else graph
    return replace(objective, links=Links(graph, weight))


def judge_view_graph(held: HeldOutLabels, objective: Objective, config: FitConfig) -> tuple[float, HeldOutLabels]:
    """Choose the weight of the mean graph: that with the most likely held-out labels, less a cost of weight.

    Not tried for texts and other sparse views, which take long and gain nothing; with links; and with few labels.

    Parameters
    ----------
    held : HeldOutLabels
        Labels held out in folds, and the warm start without those of each fold.
    objective : Objective
        The problem.
    config : FitConfig
        Parameters of the fit.

    Returns
    -------
    weight : float
        w.
    held : HeldOutLabels
        The same with scores that were propagated with this weight.
    """
    if not _is_comparable(objective, config) or len(held.rows) < MIN_HELD_OUT or held.consistency:
        return 0.0, held
    before = _log_likelihood(held)
    if -before <= cost_of_weight(WEIGHTS[0]):  # no weight can gain as much as it costs
        return 0.0, held
    graph = mean_view_graph(held.views, objective.n_neighbors)
    dense = isinstance(held.folds[0].warm.laplacian, np.ndarray)
    extra = dense_laplacian(graph) if dense else laplacian(graph)

    @cache
    def with_weight(weight: float) -> HeldOutLabels:
        return _propagate_folds(held, extra * extra.dtype.type(weight))

    @cache
    def gain(weight: float) -> float:
        return _log_likelihood(with_weight(weight)) - before - cost_of_weight(weight)

    middle = WEIGHTS[len(WEIGHTS) // 2]
    if gain(middle) + cost_of_weight(middle) < -MAX_LOSS:
        return 0.0, held
    best = climb(WEIGHTS, gain)
    if gain(best) <= 0:
        return 0.0, held
    return best, replace(with_weight(best), view_graph=graph if held.complete else None)


def cost_of_weight(weight: float) -> float:
    """Log-likelihood of the held-out labels that a weight has to gain.

    Examples
    --------
    >>> cost_of_weight(1.0), cost_of_weight(3.0)
    (2.0, 2.5)
    """
    return MIN_GAIN + GAIN_OF_FULL_WEIGHT * weight / (1 + weight)


def _is_comparable(objective: Objective, config: FitConfig) -> bool:
    views = objective.views
    return (
        not config.text
        and objective.links is None
        and objective.groups is None
        and len(views) > 1
        and 3 < views.n_samples <= MAX_SAMPLES
        and views.n_samples * views.n_features <= MAX_ENTRIES
        and max(map(_share_of_medians, views)) < MAX_SHARE_OF_MEDIANS
    )


def _share_of_medians(view: View) -> float:
    """Share of the entries of some rows that are the median of their column: that of zeros, where most are zeros.

    It does not depend on how a view is stored and scaled.
    """
    present = rows_with(view)
    if not len(present):
        return 0.0
    rows = present[np.linspace(0, len(present) - 1, min(N_ROWS_TO_LOOK_AT, len(present)), dtype=np.intp)]
    data = _in_memory(view).data[rows]
    data = data.toarray() if sparse.issparse(data) else data
    middle = (len(data) - 1) // 2  # the lower one of two
    return float((data == np.partition(data, middle, axis=0)[middle]).mean())


def _in_memory(view: View) -> View:
    """The view itself, or one on disk read and scaled."""
    if not isinstance(view, MappedView):
        return view
    numbers, blocks = zip(*view.blocks(), strict=True)
    stack = sparse.vstack if sparse.issparse(blocks[0].data) else np.vstack
    return View(
        stack([block.data for block in blocks])[np.argsort(np.concatenate(numbers))], blocks[0].offset, view.present
    )


def _log_likelihood(held: HeldOutLabels) -> float:
    return held.log_likelihood(held.balanced([fold.warm.scores for fold in held.folds]))


def _propagate_folds(held: HeldOutLabels, extra: Matrix) -> HeldOutLabels:
    """Each fold with one more Laplacian, and scores propagated with it."""
    folds = []
    for fold in held.folds:
        L = fold.warm.laplacian + extra
        scores: NDArray = propagate(L, fold.targets, fold.warm.scores, TOLERANCE).scores
        folds.append(fold._replace(warm=fold.warm._replace(laplacian=L, scores=scores)))
    return replace(held, folds=folds)
