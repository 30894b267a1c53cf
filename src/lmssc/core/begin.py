"""What the alternation starts from: initial positions, order of the samples, first graph, warm start, calibration."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.confidence import StartConfidence, calibrate_start
from lmssc.core.drawn_order import (
    MAX_DRAWN_SAMPLES,
    draw_order,
    draw_samples,
    project_latent,
)
from lmssc.core.embedding import Embedding
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.graph import neighbor_distance
from lmssc.core.held_out import MAX_CALIBRATION_SAMPLES, FirstGraph, HeldOutLabels, hold_out
from lmssc.core.held_out_folds import HeldOutFolds, LatentProblem
from lmssc.core.initialization import initialize, initialize_randomly
from lmssc.core.label_noise import doubt_labels, trust_labels
from lmssc.core.label_placement import place_labels
from lmssc.core.links import Links
from lmssc.core.nystroem import NystroemRows
from lmssc.core.objective import IterationState, Objective
from lmssc.core.opinion_trust import judge_opinion, least_trust
from lmssc.core.permutation import Permutation
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import OpinionRegression, SecondOpinion
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.core.unlabelled_kinds import calibrate_unlabelled_kinds
from lmssc.core.view_graph import add_view_graph, judge_view_graph
from lmssc.core.warm_start import WarmStart, trusted_targets, warm_start
from lmssc.data.views import Views
from lmssc.numerics.knn.approximate import ApproximateKNN, choose_search
from lmssc.numerics.knn.exact import Search
from lmssc.numerics.scale import is_large
from lmssc.numerics.spatial_order import spatial_order

# γ is in units of the spread of Z, or of this many squared distances to the neighbours if that is less: in tight
# clusters F alone would otherwise decide who is a neighbour, and labelled samples would turn to each other.
MAX_NEIGHBOR_DISTANCES = 3.0
# With more samples, questions about the fit do without its first neighbour lists, which take 200 bytes a sample.
MAX_SAMPLES_WITH_CANDIDATES = 300_000


def begin(
    views: Views,
    targets: Targets,
    config: FitConfig,
    context: FitContext | None = None,
    groups: NDArray | None = None,
    links: Links | None = None,
    drawn: NDArray | None = None,
    dealt_by: Views | None = None,
) -> Start:
    """What the alternation starts from: H and W, the first graph, the warm start and its calibration.

    Parameters
    ----------
    views, targets, config, context, groups
        As for `fit`.
    links : Links, optional
        Links between the samples.
    drawn : ndarray of int of shape (n,), optional
        The random order of another start, if both are to be judged by the same labels.
    dealt_by : Views, optional
        The views that deal labels to folds, if not `views`. Starts from other views that are compared need the same.

    Returns
    -------
    Start
    """
    if config.random_start:
        return _begin_randomly(views, targets, config, groups, links)
    latent, loadings, embedding, ridge = initialize(views, config, context)
    permutation = choose_order(views, latent, loadings, drawn)
    objective = replace(make_objective(views, targets, config, groups, permutation, embedding, links), ridge=ridge)
    latent = permutation.apply(latent)
    first = _first_graph(objective, latent, permutation, config)
    candidates = _unbiased_lists(first.search, views.n_samples)
    objective = replace(objective, gamma=objective.gamma * _distance_unit(first, permutation))
    if config.label_noise != 0:
        objective = replace(objective, targets=_doubt_labels(objective, first, permutation, config, latent, loadings))
    objective, warm = _warm_start(objective, first)
    placement = None
    if targets.has_classes:
        placement = place_labels(first.graph, permutation.apply(targets.labelled), warm.scores.argmax(axis=1))
    judged = _judge(objective, warm, first, permutation, config, dealt_by)
    objective, warm = judged.objective, judged.warm
    state = IterationState(
        loadings=loadings,
        latent=latent,
        XtH=objective.views.transpose_dot(latent),
        graph=warm.graph,
        laplacian=warm.laplacian,
        scores=warm.scores,
        unreached=warm.unreached,
        search=first.search,
    )
    start = Start(
        objective,
        state,
        permutation,
        embedding,
        warm.regressor,
        None if warm.expected is None else warm.initially_disconnected,
        judged.confidence,
        judged.second_opinion,
        judged.view_weight,
        candidates=candidates,
        placement=placement,
    )
    if judged.held is not None:
        start = replace(start, confidence=calibrate_unlabelled_kinds(start, judged.held, config))
    if config.nonnegative:
        start = replace(start, state=replace(state, loadings=[np.maximum(loading, 0) for loading in loadings]))
    return start


def choose_order(
    views: Views, latent: NDArray, loadings: Sequence[NDArray], drawn: NDArray | None = None
) -> Permutation:
    """Order of the fit: by position in space if there are many samples, and all have all views; else canonical.

    If there are more than a few samples, some of them are drawn in a random order by H·Wᵀ.

    Parameters
    ----------
    views : Views
        The views.
    latent : ndarray of shape (n, r)
        Initial latent positions.
    loadings : sequence of ndarray of shape (d_v, r)
        Initial loadings.
    drawn : ndarray of int of shape (n,), optional
        The random order, if it is known already.

    Returns
    -------
    Permutation

    Examples
    --------
    >>> choose_order(Views.from_arrays([np.eye(3)]), np.eye(3), [np.eye(3)]).is_identity
    True
    """
    if len(latent) <= MAX_DRAWN_SAMPLES:
        return Permutation()
    drawn = draw_samples(project_latent(latent, loadings)) if drawn is None else drawn
    in_space = views.complete and is_large(len(latent))
    return Permutation(spatial_order(latent, drawn=drawn) if in_space else None, drawn)


def same_folds(views: Views, start: Start) -> dict[str, Any]:
    """Arguments of `begin` with which a start from other views holds out the same labels as `start` from these."""
    return {"drawn": start.permutation.drawn, "dealt_by": views}


def _begin_randomly(
    views: Views, targets: Targets, config: FitConfig, groups: NDArray | None, links: Links | None
) -> Start:
    """Random H and S, and F = 0 for unlabelled samples, as in the paper."""
    (latent, loadings, embedding, _), graph = initialize_randomly(views, config)
    objective = make_objective(views, targets, config, groups, Permutation(), embedding, links)
    state = IterationState(
        loadings=loadings,
        latent=latent,
        XtH=views.transpose_dot(latent),
        graph=graph,
        laplacian=objective.laplacian(graph),
        scores=targets.matrix(views.dtype),
        unreached=np.zeros(len(latent), dtype=bool),
        search=choose_search(views.n_samples, config.neighbor_recall),
    )
    return Start(objective, state)


def make_objective(
    views: Views,
    targets: Targets,
    config: FitConfig,
    groups: NDArray | None,
    permutation: Permutation,
    embedding: Embedding,
    links: Links | None = None,
) -> Objective:
    """The objective with its samples in the order of the fit."""
    return Objective(
        permutation.apply_to_views(views),
        permutation.apply_to_targets(targets),
        config.n_neighbors,
        config.beta,
        config.gamma,
        config.nonnegative,
        config.shared_alpha,
        config.freeze_alpha,
        permutation.apply_to_embedding(embedding),
        groups=None if groups is None else permutation.apply(groups),
        spatially_ordered=not permutation.is_identity,
        links=links if links is None or permutation.order is None else links.take(permutation.order),
    )


def _first_graph(objective: Objective, latent: NDArray, permutation: Permutation, config: FitConfig) -> FirstGraph:
    """The graph on Z alone, and the features of Z."""
    embedded, n_samples = objective.embed(latent), len(latent)
    # With so few samples the search is also that of all folds of held-out labels, which add P to Z.
    shared = config.calibrate and config.label_weight > 0 and n_samples <= MAX_CALIBRATION_SAMPLES
    search = choose_search(n_samples, config.neighbor_recall, objective.targets.n_classes if shared else None)
    graph = objective.connect(embedded, search)
    order = permutation.shuffled(n_samples)
    features = NystroemRows(embedded, draw_order(order, lambda: objective.views))
    return FirstGraph(embedded, graph, features, config.label_weight * features.features.energy, search)


def _unbiased_lists(search: Search, n_samples: int) -> NDArray | None:
    """Neighbour lists that no label has seen: later searches sort them by distances that labels have a part in."""
    if not isinstance(search, ApproximateKNN) or n_samples > MAX_SAMPLES_WITH_CANDIDATES:
        return None
    return deepcopy(search.state())


def _distance_unit(first: FirstGraph, permutation: Permutation) -> float:
    """Squared distance that γ is relative to."""
    rows = permutation.first(MAX_CALIBRATION_SAMPLES, of=len(first.embedded))
    near = neighbor_distance(first.graph, first.embedded, rows)
    return min(first.features.features.energy, MAX_NEIGHBOR_DISTANCES * near)


def _doubt_labels(
    objective: Objective,
    first: FirstGraph,
    permutation: Permutation,
    config: FitConfig,
    latent: NDArray,
    loadings: Sequence[NDArray],
) -> Targets:
    """The labels that count, with less trust in those that labels held out in turn contradict."""
    undo, targets = permutation.undo, permutation.undo_targets(objective.targets)
    along = project_latent(undo(latent), loadings)
    problem = LatentProblem(
        undo(first.embedded),
        config.n_neighbors,
        config.beta,
        config.label_weight,
        config.balance,
        config.shared_alpha,
        config.neighbor_recall,
        None if objective.groups is None else undo(objective.groups),
        links=None if objective.links is None else permutation.undo_graph(objective.links.laplacian),
        drawn=draw_samples(along),
    )
    folds = HeldOutFolds.draw(targets, along)
    doubt = doubt_labels(problem, targets, folds, config.label_noise)
    return permutation.apply_to_targets(trust_labels(targets, doubt).counted)


def _warm_start(objective: Objective, first: FirstGraph) -> tuple[Objective, WarmStart]:
    """The warm start, repeated if it shows that labels of identical samples are to be trusted less.

    The objective gets the labels as they are trusted, and P.
    """

    def run(targets: Targets) -> WarmStart:
        return warm_start(
            first.embedded,
            first.graph,
            targets,
            first.label_weight,
            partial(objective.connect, search=first.search),
            first.features,
            objective.tolerance(),
            spatially_ordered=objective.spatially_ordered,
            make_laplacian=objective.laplacian,
        )

    warm = run(objective.targets)
    trusted = trusted_targets(objective.targets, warm)
    if trusted is not objective.targets:
        warm = run(trusted)
    return replace(objective, targets=trusted, expected=warm.expected), warm


class _Judged(NamedTuple):
    """The warm start with what held-out labels decide; `held` is None if none are held out."""

    objective: Objective
    warm: WarmStart
    held: HeldOutLabels | None = None
    confidence: StartConfidence = StartConfidence()
    second_opinion: SecondOpinion | None = None
    view_weight: float = 0.0


def _judge(
    objective: Objective,
    warm: WarmStart,
    first: FirstGraph,
    permutation: Permutation,
    config: FitConfig,
    dealt_by: Views | None,
) -> _Judged:
    """Hold out labels, which choose the weight of the views' own graphs and the trust in Q, and calibrate."""
    if not config.calibrate:
        if not config.second_opinion:
            return _Judged(objective, warm)
        few = objective.views.n_samples <= MAX_CALIBRATION_SAMPLES  # as in parts
        given = OpinionRegression(objective.views, objective.targets, permutation.random_order, laplacian=few)
        objective, warm = _with_opinion(objective, warm, given, config.second_opinion)
        return _Judged(objective, warm, second_opinion=given.finish(config.second_opinion))
    held = hold_out(objective, first, permutation, config, dealt_by)
    view_weight, held = judge_view_graph(held, objective, config)
    objective, warm = _with_view_graph(objective, warm, view_weight, held.view_graph)
    trust, held_scores, regression, kernel = judge_opinion(held, config.second_opinion, least_trust(objective.targets))
    second_opinion = None
    if trust:
        if regression is None or not held.complete:  # there is none, or one on some of the samples
            order, kernel = permutation.random_order, None
            regression = OpinionRegression(objective.views, objective.targets, order, laplacian=held.complete)
        objective, warm = _with_opinion(objective, warm, regression, trust, kernel)
        second_opinion = regression.finish(trust)
    confidence = calibrate_start(objective, warm, held, held_scores, permutation, config.balance)
    return _Judged(objective, warm, held, confidence, second_opinion, view_weight)


def _with_view_graph(
    objective: Objective, warm: WarmStart, weight: float, graph: sparse.csr_array | None
) -> tuple[Objective, WarmStart]:
    """The objective and the warm start with the mean of the views' own graphs, if it has a weight."""
    if not weight:
        return objective, warm
    objective = add_view_graph(objective, weight, graph)
    L = objective.laplacian(warm.graph)
    scores, unreached = propagate(L, objective.targets, warm.scores, objective.tolerance())
    return objective, warm._replace(laplacian=L, scores=scores, unreached=unreached)


def _with_opinion(
    objective: Objective, warm: WarmStart, regression: OpinionRegression, trust: float, kernel: NDArray | None = None
) -> tuple[Objective, WarmStart]:
    """The objective and the warm start with the second opinion."""
    opinion = regression.opinion(objective.views, trust, kernel)
    scores = propagate(warm.laplacian, objective.targets, warm.scores, objective.tolerance(), opinion=opinion).scores
    return replace(objective, opinion=opinion), warm._replace(scores=scores)
