"""`LMSSC.partial_update`: new samples and labels join a fit, without a new one as long as that is good enough."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from lmssc.core.confidence import calibrated
from lmssc.core.embedding import relative_norms
from lmssc.core.extended_graph import GraphRule
from lmssc.core.fit_config import FitContext
from lmssc.core.graph import separate_groups
from lmssc.core.incremental import (
    Updated,
    beside_neighbors,
    measured_recall,
    reasons_to_refit,
    tolerance,
    update,
)
from lmssc.core.laplacian import laplacian
from lmssc.core.new_samples import PROBE
from lmssc.core.one_class_components import OneClassSamples
from lmssc.core.parts.results import renumber_rows
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import Opinion
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import in_input_order, sample_keys
from lmssc.data.dataset import Dataset
from lmssc.data.labels import known_labels
from lmssc.data.parameters import one_of
from lmssc.data.row_index import index_of
from lmssc.data.soft_labels import is_soft
from lmssc.data.stacking import stack_rows_of
from lmssc.data.validation import Masks, check_rows
from lmssc.data.view import RawView
from lmssc.data.view_groups import group_of_samples
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.dense_only import need_dense
from lmssc.estimators.merged_samples import MergedSamples
from lmssc.estimators.problem import Solution
from lmssc.estimators.trust_state import given_codes
from lmssc.estimators.worker_results import local_model
from lmssc.numerics.scale import is_large
from lmssc.numerics.spatial_order import spatial_order

REFIT = one_of("auto", "always", "never")
# A refit is due if the graph has less than this share of the recall that the fit was asked for.
RECALL_SHARE = 0.9


class PartialUpdateMixin:
    """Lets new samples and labels join a fitted `LMSSC`."""

    def partial_update(
        self,
        X_new: Any = None,
        y_new: ArrayLike | None = None,
        present: Masks = None,
        *,
        refit: str = "auto",
        X: Any = None,
        X_present: Masks = None,
    ) -> Self:
        """Add new samples and labels to the fit, in a fraction of the time of a fit.

        New samples get latent positions from the loadings, and edges to and from their neighbours among the earlier
        samples. Then the labels are propagated over the whole graph, starting from the earlier scores. Scalings,
        loadings and calibration stay as they are. Afterwards all attributes, `predict`, `explain` and `save` cover all
        samples: the earlier rows first, then the new ones.

        Parameters
        ----------
        X_new : as in `fit`, optional
            New samples, with the views of the fit.
        y_new : array-like, optional
            Labels of the new samples (none by default), or of all samples, the earlier ones first; with X_new=None, of
            the earlier samples. Labels of earlier samples may be added, changed or removed. Classes that were not in
            the fit are an error.
        present : as in `fit`, optional
            Which of the new samples have which view.
        refit : {"auto", "always", "never"}
            Whether to fit all samples again instead. "auto" does so when an update may not be enough: more than twice
            the samples of the last fit, half as many new labels as it had, new samples that the loadings do not
            describe, scores of earlier samples that change by more than a quarter, or a graph that misses neighbours.
            "never" only warns then.
        X, X_present : as in `fit`, optional
            All earlier samples, which a refit needs: the model does not keep them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a refit is due and `X` is not given; if the labels have a new class; if the model was fitted with graphs.
            The model is then as it was.

        Examples
        --------
        >>> from lmssc import LMSSC
        >>> from lmssc.datasets import make_multiview
        >>> data = make_multiview(300, labelled=0.2, random_state=0)
        >>> clf = LMSSC().fit([view[:280] for view in data.views], data.y[:280])
        >>> clf.partial_update([view[280:] for view in data.views]).transduction_.shape
        (300,)
        >>> bool((clf.transduction_ == data.target)[280:].mean() > 0.8)
        True
        >>> data.y[5] = data.target[5]
        >>> bool(clf.partial_update(None, data.y).transduction_[5] == data.target[5])
        True
        """
        check_is_fitted(self)
        need_dense(self, "partial_update")
        if not REFIT.accepts(refit):
            raise ValueError(f"refit must be {REFIT.wanted}, got {refit!r}")
        if X_new is None and y_new is None:
            raise ValueError("pass X_new (new samples), y_new (labels of the samples of fit), or both")
        with self._fitting():  # type: ignore[attr-defined]
            _update(self, X_new, y_new, present, refit, (X, X_present))
        return self


@dataclass(frozen=True)
class _Update:
    """What an update is given: views of the new rows in the order of the model, and the labels of all rows.

    A refit learns anew what replaces single missing values, so it needs the views without what the fit fills in.
    """

    raws: list[RawView] | None
    unfilled: list[RawView] | None
    merged: MergedSamples
    given: NDArray
    before: NDArray

    @property
    def n_relabelled(self) -> int:
        """Number of labels that are given, changed or taken back."""
        return int(np.count_nonzero(self.given != self.before))


def _update(model: Any, X_new: Any, y_new: Any, present: Masks, refit: str, earlier: tuple[Any, Masks]) -> None:
    """Update a model, or fit it again."""
    _refuse(model)
    given = _read(model, X_new, y_new, present)
    if given.raws is not None:
        for v, raw, scaling in zip(model._order.views, given.raws, model._scalings, strict=True):
            model._warn_of_units(v, raw, scaling)
    why = _only_a_refit_can(model, given)
    if refit == "always" or (why and refit == "auto"):
        _refit(model, given, earlier, why or ["refit='always'"], avoidable=False)
        return
    if why:
        raise ValueError(f"this update needs a refit: {'; '.join(why)}. Pass refit='auto' and X, the earlier samples")
    before = dict(vars(model))
    reasons = _join(model, given)
    if not reasons:
        return
    if refit == "never":
        warn_caller(
            f"a refit is due: {'; '.join(reasons)}. Fit again, or pass refit='auto' and X, the earlier samples",
        )
        return
    vars(model).clear()
    vars(model).update(before)
    _refit(model, given, earlier, reasons, avoidable=True)


def _refuse(model: Any) -> None:
    """Raise an error if the model cannot be updated at all."""
    if local_model(model) is not model:
        raise ValueError("the results of the fit are with the workers of a cluster: fit again with all samples")
    if model.graph_names_:
        raise ValueError(
            f"the model was fitted with the graphs {model.graph_names_}, which new samples would change: fit again "
            "with all samples and links"
        )
    if isinstance(model.alpha_, float):
        raise ValueError(
            "alpha='mean' is a mean over all samples, which new ones would change: fit again, or use 'row'"
        )
    if "_memory" not in vars(model):
        raise ValueError("the model was saved by an earlier version of lmssc, without what an update needs: fit again")


def _read(model: Any, X_new: Any, y_new: Any, present: Masks) -> _Update:
    """Check the new samples and labels, and number them together with those of the fit."""
    raws, unfilled, keys = None, None, np.empty(0, dtype=np.uint64)
    if X_new is not None:
        unfilled = _read_in_order(model, X_new, present)
        raws = model._fill(unfilled)
        keys = sample_keys(raws)
    n_old, n_new = len(model._nodes), len(keys)
    before = np.concatenate([given_codes(model), np.full(n_new, -1)])
    given = before.copy()
    if y_new is not None:
        codes = _read_codes(y_new, model.classes_)
        if len(codes) not in ({n_new, n_old + n_new} if n_new else {n_old}):
            wanted = f"{n_new} new samples, or {n_old + n_new} of all" if n_new else f"{n_old} samples of fit"
            raise ValueError(f"y_new has {len(codes)} labels, but there must be one for each of the {wanted}")
        if n_new and index_of(y_new) is not None:
            check_rows(X_new, y_new.iloc[-n_new:], present)
        given[-len(codes) :] = codes
    lost = np.setdiff1d(np.arange(len(model.classes_)), given)
    if len(lost):
        name = model.classes_.tolist()[lost[0]]
        raise ValueError(f"the class {name!r} would have no label left: fit again without it")
    return _Update(raws, unfilled, MergedSamples.of(model._order, model._nodes, keys, given[n_old:]), given, before)


def _read_in_order(model: Any, X: Any, present: Masks) -> list[RawView]:
    """Views in the order of the model, before single missing values are filled in."""
    raws = model._read_unfilled(X, present=present)
    return [raws[v] for v in model._order.views]


def _read_codes(y_new: Any, classes: NDArray) -> NDArray:
    """Index in the classes of each label, −1 without one."""
    if is_soft(y_new):
        raise ValueError("y_new must be one label for each sample; for distributions over the classes, fit again")
    labels, known = known_labels(y_new)
    code_of = {name: code for code, name in enumerate(classes.tolist())}
    if labels.dtype == bool and classes.dtype != bool:  # True would count as 1
        raise ValueError(f"y_new has the labels True and False, but the classes are {classes.tolist()}")
    new = sorted({name for name in labels[known].tolist() if name not in code_of}, key=str)
    if new:
        raise ValueError(
            f"y_new has classes that were not in fit: {new}; the classes are {classes.tolist()}. Fit again with them"
        )
    codes = np.full(len(labels), -1)
    codes[known] = [code_of[name] for name in labels[known].tolist()]
    return codes


def _only_a_refit_can(model: Any, given: _Update) -> list[str]:
    """What an update cannot do at all."""
    reasons = []
    if model.view_graph_weight_:
        reasons.append("the neighbours in single views, which the model uses, have to be found again")
    if given.n_relabelled and model.label_noise != 0:
        reasons.append(f"label_noise={model.label_noise!r} has to judge the new labels")
    if given.raws is not None and model._groups is not None:
        present = [np.ones(raw.data.shape[0], bool) if raw.present is None else raw.present for raw in given.raws]
        first = group_of_samples(given.raws, model._view_groups)
        others = [has & (first != group) for has, group in zip(present, model._view_groups, strict=True)]
        if np.any(others):
            reasons.append("new samples have views of kinds that no earlier sample had together")
    return reasons


@dataclass(frozen=True)
class _Nodes:
    """Arrays of the distinct samples: those of the fit in canonical order, then the new ones."""

    latent: NDArray
    coordinates: NDArray
    n_missing: NDArray
    norms: NDArray | None
    groups: NDArray | None
    opinion: Opinion | None
    unusual: NDArray | None  # of the new ones


def _embed(model: Any, given: _Update, inner: NDArray) -> _Nodes:
    """Embed the new samples, and join them to those of the fit, whose canonical numbers are `inner`."""
    samples, n_new = model._order.samples[inner], len(given.merged.added)
    latent, coordinates = model.latent_[samples], model._embedded[samples]
    n_missing = model._memory.n_missing
    n_missing = np.zeros(len(samples), dtype=np.intp) if n_missing is None else n_missing[inner]
    groups = None if model._groups is None else model._groups[samples]
    norms, unusual = model._embedding.norms, None
    norms = None if norms is None else norms[inner]
    opinion = None if model._opinion is None else model._opinion.take(lambda rows: rows[samples])
    if n_new:
        raws = [raw.take(given.merged.added) for raw in given.raws or []]
        found, residuals, opinions = model._encoder()(raws)
        latent = _append(latent, found)
        coordinates = _append(coordinates, model._average().queries(found))
        lacks = [np.zeros(n_new, dtype=bool) if raw.present is None else ~raw.present for raw in raws]
        n_missing = _append(n_missing, np.sum(lacks, axis=0))
        if groups is not None:
            groups = _append(groups, group_of_samples(raws, model._view_groups))
        if norms is not None:
            norms = _append(norms, relative_norms(found * model._embedding.stretch, model._embedding.radius))
        if opinion is not None:
            opinion = opinion.take(lambda rows: _append(rows, opinions))
        if model._trust is not None:
            unusual = residuals > (PROBE.free_factor * model._trust.leftover) ** 2
    return _Nodes(latent, coordinates, n_missing, norms, groups, opinion, unusual)


def _append(old: NDArray, new: Any) -> NDArray:
    return np.concatenate([old, np.asarray(new, dtype=old.dtype)])


def _join(model: Any, given: _Update) -> list[str]:
    """Update the model, and say why a refit is due."""
    inner = _inner_order(model)
    if model._probe is not None:
        model._probe = replace(model._probe, samples=given.merged.position[model._probe.samples])
    given = replace(given, merged=given.merged.take_former(inner))
    samples, nodes = model._order.samples[inner], _embed(model, given, inner)
    places = np.empty(model.graph_.shape[0], dtype=model.graph_.indices.dtype)
    places[samples] = np.arange(len(samples))
    graph = renumber_rows(model.graph_, samples, places, len(samples))
    rule = GraphRule(model.n_neighbors_, model.beta, model._memory.gamma, model.neighbor_recall)
    targets = given.merged.targets(model._targets.take(inner), given.given, given.before, model._class_order)
    coordinates = nodes.coordinates
    if nodes.groups is not None:
        (coordinates,) = separate_groups((coordinates, nodes.groups))
    found = update(
        graph,
        model.alpha_[samples],
        coordinates,
        nodes.latent.shape[1],
        _raw_scores(model, graph, inner),
        np.isin(samples, model.unreached_),
        targets.counted,
        rule,
        nodes.opinion,
        given.n_relabelled,
    )
    model._memory = replace(model._memory, n_relabelled=model._memory.n_relabelled + given.n_relabelled)
    _store(model, given, nodes, found, targets)
    if len(given.merged.added):
        model.neighbor_recall_ = measured_recall(found.graph, coordinates, found.raw_scores, rule)
    recall = model.neighbor_recall_, RECALL_SHARE * model.neighbor_recall
    return reasons_to_refit(model._memory, len(nodes.latent), nodes.unusual, found.change, recall)


def _inner_order(model: Any) -> NDArray:
    """Canonical numbers of the distinct samples in the order of the computation.

    Many samples are in an order in which neighbours are close, so that products with the graph stay in the cache. It is
    computed once after a fit; updates insert new samples beside their neighbours.
    """
    if "_inner" in vars(model):
        return model._inner
    samples = model._order.samples
    return spatial_order(model._embedded[samples]) if is_large(len(samples)) else np.arange(len(samples))


def _raw_scores(model: Any, graph: sparse.csr_array, inner: NDArray) -> NDArray:
    """F of the distinct samples, before prior correction and calibration; solved for once after a model was loaded."""
    if "_raw_scores" in vars(model):
        return model._raw_scores[inner]
    samples = model._order.samples[inner]
    opinion = None if model._opinion is None else model._opinion.take(lambda rows: rows[samples])
    start = model._known_distributions()[inner].astype(graph.dtype)
    targets = model._targets.take(inner).counted
    return propagate(laplacian(graph), targets, start, tolerance(len(samples), 1), opinion=opinion).scores


def _store(model: Any, given: _Update, nodes: _Nodes, found: Updated, targets: Targets) -> None:
    """Assign everything that is about samples: that of all samples, in the order of the input."""
    merged, memory = given.merged, model._memory

    order = np.argsort(merged.position)
    of_rows = order[merged.nodes]

    def to_input(rows: NDArray) -> NDArray:
        return rows[of_rows]

    model._order, model._nodes = merged.order, merged.nodes
    model._given, model._labelled = given.given, given.given >= 0
    model.latent_, model._embedded = to_input(nodes.latent), to_input(nodes.coordinates)
    model.alpha_ = to_input(found.alpha)
    model._groups = None if nodes.groups is None else to_input(nodes.groups)
    model._opinion = None if nodes.opinion is None else nodes.opinion.take(to_input)
    if nodes.norms is not None:
        model._embedding = replace(model._embedding, norms=merged.reorder(nodes.norms))
    model._memory = replace(memory, n_missing=merged.reorder(nodes.n_missing) if nodes.n_missing.any() else None)
    model._raw_scores = merged.reorder(found.raw_scores)
    model._inner = merged.position[beside_neighbors(found.graph, len(merged.added))]
    for name in ("_candidates", "_novelty"):
        vars(model).pop(name, None)
    if hasattr(model, "ids_"):
        model.ids_ = _with_row_names(model.ids_, len(merged.nodes))
    model._targets, targets = targets.take(order), targets.counted
    scores = calibrated(found.found, targets.codes, nodes.n_missing, memory.calibration, model.balance)
    unlinked = np.zeros(len(order), dtype=bool)
    if nodes.groups is not None:
        with_label = np.unique(nodes.groups[targets.labelled])
        model._linked, unlinked = np.isin(model._view_groups, with_label), ~np.isin(nodes.groups, with_label)
    graph = renumber_rows(found.graph, order, merged.position, len(order))
    # In the order of the computation, neighbours are in the same part of the memory.
    one_class = OneClassSamples.of(found.graph, targets).renumber(merged.position)
    solution = Solution(scores[order], graph, found.found.unreached[order], one_class)
    model._accept(solution, model._targets.counted, unlinked[order])


def _refit(model: Any, given: _Update, earlier: tuple[Any, Masks], reasons: list[str], *, avoidable: bool) -> None:
    """Fit all samples again, the earlier ones as the user gives them."""
    why = "; ".join(reasons)
    X, present = earlier
    if X is None:
        raise ValueError(
            f"a refit is due: {why}. The model does not keep the views: pass X, the {len(model._nodes)} earlier "
            + ("samples, or refit='never' to skip the refit" if avoidable else "samples")
        )
    if model._soft:
        raise ValueError(f"a refit is due: {why}. The labels of the model are soft or weighted: call fit")
    raws = _read_in_order(model, X, present)
    keys = sample_keys(model._fill(raws))
    if not np.array_equal(keys, model._order.keys[model._nodes]):
        raise ValueError(
            f"X must be the {len(model._nodes)} earlier samples of the model, in their order, with the same values"
        )
    if given.unfilled is not None:
        raws = [stack_rows_of(old, new) for old, new in zip(raws, given.unfilled, strict=True)]
    views = in_input_order(raws, model._order)
    ids = getattr(model, "ids_", None)
    dataset = Dataset(
        views,
        model.classes_,
        given.given,
        model._layout,
        [None] * len(views),
        getattr(model, "_view_columns", {}),
        getattr(model, "feature_names_in_", None),
    )
    model._fit(dataset, FitContext())
    if ids is not None:
        model.ids_ = _with_row_names(ids, len(model._nodes))


def _with_row_names(ids: NDArray, n_rows: int) -> NDArray:
    """Names of the samples; those that have none are named after their row."""
    return np.append(ids, np.array([f"row {row}" for row in range(len(ids), n_rows)], dtype=ids.dtype.kind))
