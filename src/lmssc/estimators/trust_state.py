"""What `LMSSC.explain`, `suspect_labels`, `novelty` and `predict_set` read of a fitted model, in canonical order."""

import reprlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from lmssc.core.drawn_order import draw_numbers, draw_samples, project_latent
from lmssc.core.graph import connect_new
from lmssc.core.held_out_folds import N_FOLDS, HeldOutFolds, LatentProblem, has_plenty_of_labels
from lmssc.core.label_system import LabelSolver, LabelSystem
from lmssc.core.laplacian import laplacian
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import sample_keys
from lmssc.data.labels import is_missing
from lmssc.data.link_order import link_keys
from lmssc.data.validation import Masks
from lmssc.data.view_groups import group_of_samples
from lmssc.estimators.dense_only import need_dense
from lmssc.estimators.once import once
from lmssc.estimators.worker_results import local_model
from lmssc.numerics.scale import is_large

# Relative residual of the weights of labels, for small data and, in single precision, for large data.
TOLERANCE, LARGE_TOLERANCE = 1e-12, 1e-4
# Folds in which labels are suspected if there are many: each half judges the other.
N_FOLDS_OF_MANY = 2


class NewRows(NamedTuple):
    """Samples that are given after the fit, known or new.

    Attributes
    ----------
    nodes : ndarray of int of shape (m,)
        The distinct sample of fit that each is identical to; −1 for a new one.
    along : ndarray of shape (m,)
        Where they are along the direction by which samples are drawn.
    weights : csr_array of shape (m, n_nodes)
        Weights of the samples of fit in the average of each new sample; the sample itself for a known one.
    distances : ndarray of shape (m,)
        Mean squared distance of new samples to these; 0 for known ones.
    latent : ndarray of shape (m, r)
        Latent positions.
    regression : ndarray of shape (m,)
        Weight of the second opinion on each new sample itself; 0 for known ones.
    opinions : ndarray of shape (m, c), or None
        Second opinion on each sample; None without trust in it.
    kinds : ndarray of int of shape (m,)
        What each sample lacks: see `kinds_of`.
    groups : ndarray of int of shape (m,), or None
        Groups of connected views, if there is more than one.
    """

    nodes: NDArray
    along: NDArray
    weights: sparse.csr_array
    distances: NDArray
    latent: NDArray
    regression: NDArray
    opinions: NDArray | None
    kinds: NDArray
    groups: NDArray | None = None


def fitted_model(clf: Any) -> Any:
    """The fitted `LMSSC` behind a classifier: itself, or the best estimator of a search."""
    check_is_fitted(clf)
    model = getattr(clf, "best_estimator_", clf)
    if not hasattr(model, "_targets"):
        raise TypeError(f"{type(model).__name__} has no latent positions to judge answers by; use LMSSC")
    need_dense(model, "this judgement of answers")
    return local_model(model)


def latent_problem(model: Any, *, second_opinion: bool = True) -> LatentProblem:
    """What it takes to label the samples again with some labels held out; the second opinion can be left out.

    All questions to a fit share it, and with it the graph on Z alone.
    """
    problem = once(model, "latent problem", lambda: _latent_problem(model))
    if second_opinion or problem.opinions is None:
        return problem
    return replace(problem, opinions=None)


def _latent_problem(model: Any) -> LatentProblem:
    samples, opinion = model._order.samples, model._opinion
    return LatentProblem(
        model._embedded[samples][:, : model.latent_.shape[1]],
        model.n_neighbors_,
        model.beta,
        model.label_weight if model.init == "svd" else 0.0,
        model.balance,
        model.alpha == "mean",
        model.neighbor_recall,
        None if model._groups is None else model._groups[samples],
        links=model._link_laplacian,
        opinions=None if opinion is None else opinion.scores[samples],
        opinion_share=model.second_opinion_,
        fast=is_large(len(samples)),
        candidates=getattr(model, "_candidates", None),
        drawn=draw_samples(project_samples(model)),
    )


def project_samples(model: Any, latent: NDArray | None = None) -> NDArray:
    """Where the distinct samples, or those at other latent positions, are along the direction of `drawn_order`."""
    latent = model.latent_[model._order.samples] if latent is None else latent
    return project_latent(latent, [model.loadings_[v] for v in model._order.views])


def label_folds(model: Any, groups: ArrayLike | None = None) -> HeldOutFolds:
    """Folds of the labels; `groups` has one entry for each sample of fit."""
    if groups is None:
        if _has_one_fold(model):
            return HeldOutFolds.draw_one(model._targets, project_samples(model))
        return HeldOutFolds.draw(model._targets, project_samples(model))
    along = project_samples(model)
    return HeldOutFolds.draw(model._targets, along, _groups_of_nodes(_read_groups(model, groups), model._nodes, along))


def _read_groups(model: Any, groups: ArrayLike) -> NDArray:
    """Number of the group of each sample of fit."""
    if isinstance(groups, list | tuple):  # as an array, NaN beside text would be the text "nan", and 1 be "1"
        names = np.empty(len(groups), dtype=object)
        names[:] = groups
    else:
        names = np.asarray(groups)
    if names.shape != (len(model._nodes),):
        raise ValueError(
            f"groups must have one entry for each of the {len(model._nodes)} samples of fit, got shape {names.shape}"
        )
    numbers: dict[Any, int] = {}
    place = np.empty(len(names), dtype=np.intp)
    for row, name in enumerate(names.tolist()):
        if is_missing(name):
            raise ValueError(f"groups has no group for sample {row}: {name!r}; give it one, or a group of its own")
        try:
            place[row] = numbers.setdefault(name, len(numbers))
        except TypeError:
            raise TypeError(
                f"groups must be numbers, text or tuples, got {reprlib.repr(name)} for sample {row}"
            ) from None
    if len(numbers) < 2:
        raise ValueError("groups must name at least 2 groups, so that one can be held out from the others")
    return place


def _groups_of_nodes(place: NDArray, nodes: NDArray, along: NDArray) -> NDArray:
    """Group of each distinct sample; one that is in several groups is in one of them, whatever the order of the rows.

    Examples
    --------
    >>> nodes, along = np.array([0, 1, 2, 0]), np.array([0.3, 0.1, 0.2])
    >>> one = _groups_of_nodes(np.array([0, 0, 1, 1]), nodes, along)
    >>> other = _groups_of_nodes(np.array([1, 1, 0, 0]), nodes[::-1], along)
    >>> bool((one == other).all())
    True
    """
    draw, keys = draw_numbers(along), np.zeros(place.max() + 1, dtype=np.uint64)
    np.add.at(keys, place, draw[nodes])
    rank = np.argsort(np.argsort(keys, kind="stable"))
    result = np.full(len(along), len(keys))
    np.minimum.at(result, nodes, rank[place])
    return result


def _has_one_fold(model: Any) -> bool:
    """Whether a part of the labels is enough: of very many samples plenty have one, and no copy of these is without."""
    targets = model._targets
    if not (is_large(len(targets)) and has_plenty_of_labels(targets)):
        return False
    return not targets.labelled[model._nodes[~model._labelled]].any()


def suspicion_folds(model: Any) -> HeldOutFolds:
    """Folds in which every label is held out once that can be."""
    targets = model._targets
    many = is_large(len(targets)) and has_plenty_of_labels(targets)
    return HeldOutFolds.draw(targets, project_samples(model), n_folds=N_FOLDS_OF_MANY if many else N_FOLDS)


def label_system(model: Any) -> LabelSystem:
    """The system that the scores of the fit solve at its graph: the one place where it is read from a model."""
    samples, targets = model._order.samples, model._targets
    graph = model.graph_[samples][:, samples].tocsr().astype(np.float64)
    graph.sort_indices()  # sums over a row must not depend on the order of the input
    L = laplacian(graph)
    if model._link_laplacian is not None:
        L = (L + model._link_laplacian).tocsr()
    trust = np.where(targets.labelled, np.inf, 0.0)
    if targets.trust is not None:
        trust[targets.labelled] = targets.trust[targets.labelled]
    labels = targets.matrix(np.dtype(np.float64))
    if model._opinion is None:
        return LabelSystem(L, labels, trust)
    anchor = np.where(np.isinf(trust), 0.0, model._opinion.weight)
    return LabelSystem(L, labels, trust, anchor, model._opinion.scores[samples].astype(np.float64))


def label_solver(model: Any) -> LabelSolver:
    """Solver of `label_system`, with a coarse level for large data."""
    system = label_system(model)
    if not is_large(system.n_samples):
        return LabelSolver(system, tol=TOLERANCE)
    order, _ = latent_problem(model).in_space
    return LabelSolver(system, order, tol=LARGE_TOLERANCE, dtype=np.float32)


def fitted_rows(model: Any, system: LabelSystem, nodes: NDArray) -> sparse.csr_array:
    """Weights of samples in the score of each node: 1 for itself; for a rescued one, those of its neighbours."""
    one = np.ones(len(nodes))
    rows = sparse.csr_array((one, nodes, np.arange(len(nodes) + 1)), shape=(len(nodes), system.n_samples))
    rescued = ~system.reached & ~np.isin(model._order.samples, model.unreached_)
    places = np.flatnonzero(rescued[nodes])
    if not len(places):
        return rows
    Z = model._embedded[model._order.samples][:, : model.latent_.shape[1]]
    reached = np.flatnonzero(system.reached)
    weights = connect_new(Z[reached], Z[nodes[places]], min(model.n_neighbors_, len(reached))).tocoo()
    rows = rows.tolil()
    rows[places] = 0
    rows = rows.tocsr()
    shape = rows.shape
    return rows + sparse.csr_array((weights.data, (places[weights.row], reached[weights.col])), shape=shape)


def read_new(model: Any, X: Any, present: Masks, *, warn_of_units: bool = False) -> NewRows:
    """Samples given after the fit: recognised, or embedded and joined to their neighbours."""
    raws = model._read_views(X, present=present)
    raws = [raws[v] for v in model._order.views]
    if warn_of_units and model._probe is not None:
        model._check_values(raws)
    links = model._read_links(X, raws)
    keys = link_keys(sample_keys(raws), links) if links else sample_keys(raws)
    nodes, is_new = model._recognise(keys)
    nodes = np.where(is_new, -1, nodes)
    samples = model._order.samples
    groups = None if model._groups is None else group_of_samples(raws, model._view_groups)
    encoder = model._encoder(links)
    latent, _, opinions = encoder(raws)
    weights, distances = model._average().connect(latent, groups)
    known = nodes >= 0
    latent[known], distances[known] = model.latent_[samples[nodes[known]]], 0
    kept = sparse.diags_array((~known).astype(float)) @ weights
    rows = np.flatnonzero(known)
    own = sparse.csr_array((np.ones(len(rows)), (rows, nodes[rows])), shape=weights.shape)
    regression = np.where(known, 0.0, model.second_opinion_)
    if opinions is not None and model._opinion is not None:
        opinions[known] = model._opinion.scores[samples[nodes[known]]]
    joined, kinds = (kept + own).tocsr(), encoder.sample_kinds(raws)
    kinds[known] = fitted_kinds(model)[nodes[known]]  # which count links that lead to a sample, too
    along = project_samples(model, latent)
    return NewRows(nodes, along, joined, distances, latent, regression, opinions, kinds, groups)


def fitted_kinds(model: Any) -> NDArray:
    """What each distinct sample of fit lacks, as one number: see `kinds_of`."""
    memory = getattr(model, "_memory", None)  # models of earlier versions have none
    if memory is None or memory.n_missing is None:
        return np.zeros(len(model._order.samples), dtype=np.intp)
    return memory.n_missing


def given_codes(model: Any) -> NDArray:
    """Index in `classes_` of the label that each sample of fit was given, −1 without one."""
    if hasattr(model, "_given"):
        return model._given
    return np.where(model._labelled, np.searchsorted(model.classes_, model.transduction_), -1)


def sample_names(model: Any, ids: Sequence[str] | None = None) -> Sequence[str]:
    """Names of the samples of fit: as given, of the files that they came from, or row numbers."""
    n_samples = len(model.transduction_)
    names = getattr(model, "ids_", None) if ids is None else ids
    if names is None:
        return [f"row {row}" for row in range(n_samples)]
    by_position: Sequence[Any] = list(names)  # a Series may have another index
    if len(by_position) != n_samples:
        raise ValueError(f"ids must have one name for each of the {n_samples} samples of fit, got {len(by_position)}")
    return by_position


def spread_to_samples(model: Any) -> sparse.csr_array:
    """Matrix that shares out the weight of each distinct sample over its labelled copies: shape (n_nodes, n)."""
    rows = np.flatnonzero(model._labelled)
    nodes = model._nodes[rows]
    counts = np.bincount(nodes, minlength=len(model._order.samples))
    return sparse.csr_array((1 / counts[nodes], (nodes, rows)), shape=(len(counts), len(model._nodes)))


def former_targets(fitted: dict[str, Any]) -> Targets:
    """Targets of a model that an earlier version saved without them."""
    rank = np.argsort(fitted["_class_order"])
    rows = np.flatnonzero(fitted["_labelled"])
    codes = rank[np.searchsorted(fitted["classes_"], fitted["transduction_"][rows])]
    return Targets.from_labels(fitted["_nodes"][rows], codes, len(fitted["_order"].samples), len(fitted["classes_"]))
