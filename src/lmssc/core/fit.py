"""The fit of LMSSC as a pure function: scaled views, targets and parameters in, a `FitResult` out.

`begin` initializes, orders the samples in space, learns the first graph, and calibrates the warm start; the alternation
lowers J; the end undoes the order, calibrates the final scores, and judges predictions for new samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import Alternation, alternate
from lmssc.core.calibration import GroupedCalibration
from lmssc.core.confidence import calibrate_scores
from lmssc.core.drawn_order import draw_order
from lmssc.core.fit_config import CheckpointFile, FitConfig, FitContext, FitHooks
from lmssc.core.label_placement import LabelPlacement
from lmssc.core.link_choice import LinkChoice, LinkedViews, begin_with_links, resume_with_links
from lmssc.core.linked_samples import LinkMemory
from lmssc.core.new_samples import PROBE, NewSampleProbe, Trust, choose_probe, ridge_from_residuals
from lmssc.core.objective import IterationState
from lmssc.core.one_class_components import OneClassSamples
from lmssc.core.predict import NeighborAverage
from lmssc.core.propagation import Propagation, rescue_disconnected
from lmssc.core.saving import History, Saver, field_values
from lmssc.core.second_opinion import Opinion, SecondOpinion
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.data.views import Views


@dataclass(frozen=True)
class FitResult:
    """Everything that a fit finds; samples and views in canonical order.

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Calibrated class scores.
    raw_scores : ndarray of shape (n, c), or None
        F, before prior correction and calibration; None if the fit was in parts.
    unreached : ndarray of bool of shape (n,)
        Samples without a label in their component of the graph.
    graph : csr_array of shape (n, n)
        S.
    latent : ndarray of shape (n, r)
        H.
    loadings : list of ndarray of shape (d_v, r)
        W^v.
    alpha : ndarray of shape (n,)
        α of each row of S.
    average : NeighborAverage
        Averages over the neighbours of new samples; has the coordinates of the samples and the embedding.
    second_opinion : SecondOpinion or None
        Predicts the second opinion on new samples; None without trust in it.
    opinion : Opinion or None
        Q and η of the samples of fit.
    ridge : ndarray of shape (r, r), or None
        R, with which new samples that lack views are embedded: that of the fit if samples of fit lack views, otherwise
        from its residuals. None with a random start, which has no ridge either.
    probe : NewSampleProbe or None
        Samples that judge predictions for new samples; None without calibration.
    trust : Trust or None
        Confidence of predictions for new samples that have all views; None without calibration.
    calibration : GroupedCalibration
        Calibration of the final scores.
    gamma : float
        γ in the units of the coordinates.
    n_missing : ndarray of int of shape (n,)
        Number of views that each sample lacks.
    terms : dict of str to ndarray
        Terms of J after each iteration.
    converged : bool
        Whether F changed by less than the tolerance at the end.
    neighbor_recall : float
        Measured recall of the last neighbour search; 1 if it is exact.
    links : LinkMemory or None
        How the graphs are used, and what new samples need of them; None if there is none, or none says anything.
    targets : Targets
        The labels, with the trust that the fit had in each; none in those that it dropped.
    order : ndarray of int of shape (n,), or None
        The canonical sample at each position of the order in which the fit worked, if it is another.
    link_laplacian : csr_array of shape (n, n), or None
        What links, or the mean of the views' own graphs, add to the Laplacian of S in the system that the scores solve.
    view_weight : float
        Weight of the mean of the views' own graphs; 0 without it.
    held_out : tuple of ndarray of int of shape (l,) and ndarray of shape (l, c), or None
        As of `StartConfidence`.
    one_class : OneClassSamples or None
        Samples in components of the graph whose labels are all of one class, if they are known.
    candidates, placement
        As of `Start`.
    refused_links : ndarray of bool of shape (G,), or None
        As of `LinkChoice`.
    """

    scores: NDArray
    unreached: NDArray
    graph: sparse.csr_array
    latent: NDArray
    loadings: list[NDArray]
    alpha: NDArray
    average: NeighborAverage
    ridge: NDArray | None
    probe: NewSampleProbe | None
    trust: Trust | None
    calibration: GroupedCalibration
    gamma: float
    n_missing: NDArray
    terms: dict[str, NDArray]
    converged: bool
    neighbor_recall: float
    targets: Targets
    raw_scores: NDArray | None = None
    second_opinion: SecondOpinion | None = None
    opinion: Opinion | None = None
    links: LinkMemory | None = None
    order: NDArray | None = None
    link_laplacian: sparse.csr_array | None = None
    view_weight: float = 0.0
    held_out: tuple[NDArray, NDArray] | None = None
    one_class: OneClassSamples | None = None
    candidates: NDArray | None = None
    placement: LabelPlacement | None = None
    refused_links: NDArray | None = None


@dataclass(frozen=True)
class Answers:
    """The final answers for the samples of fit, in canonical order.

    Attributes
    ----------
    scores : ndarray or csr_array of shape (n, c)
        Calibrated class scores.
    distributions : ndarray or csr_array of shape (n, c)
        The same with rows that sum to 1, or to less if not all classes are listed.
    unreached : ndarray of bool of shape (n,)
        Samples without a label in their component of the graph.
    calibration : GroupedCalibration
        Calibration of the scores.
    targets : Targets
        The labels.
    raw_scores : ndarray of shape (n, c), optional
        F, before prior correction and calibration.
    opinion : Opinion, optional
        Q and η.
    """

    scores: Any
    distributions: Any
    unreached: NDArray
    calibration: GroupedCalibration
    targets: Targets
    raw_scores: NDArray | None = None
    opinion: Opinion | None = None


def fit(
    views: Views,
    targets: Targets,
    config: FitConfig,
    hooks: FitHooks | None = None,
    context: FitContext | None = None,
    groups: NDArray | None = None,
    graphs: Sequence[sparse.csr_array] = (),
) -> FitResult:
    """Learn latent positions, graph and class scores together.

    Parameters
    ----------
    views : Views
        Scaled views of distinct samples, in canonical order.
    targets : Targets
        Their labels.
    config : FitConfig
        Parameters.
    hooks : FitHooks, optional
        Progress callback and checkpoint.
    context : FitContext, optional
        Work shared with other fits.
    groups : ndarray of int of shape (n,), optional
        Group of connected views of each sample, if there is more than one group.
    graphs : sequence of csr_array of shape (n, n), optional
        Links between the samples.

    Returns
    -------
    FitResult

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.3], [5.0], [5.1], [5.3]])
    >>> targets = Targets.from_codes(np.array([0, -1, -1, 1, -1, -1]), 2)
    >>> fit(Views.from_arrays([X]), targets, FitConfig(n_neighbors=2)).scores.argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """
    hooks = FitHooks() if hooks is None else hooks
    context = FitContext() if context is None else context
    saved = None if hooks.checkpoint is None else hooks.checkpoint.read()
    linked = LinkedViews(views, graphs)
    if saved is None:
        start, choice = begin_with_links(linked, targets, config, context, groups)
    else:
        start, choice = resume_with_links(linked, targets, config, groups, saved)
    first, start = [start.state], start.without_state()
    weights = choice.weights
    saver = _FitSaver(start, hooks, choice)
    if saved is None:
        saver.save(first[0], [])
    state, terms, converged = iterate(start, first, config, hooks, context, saver.save_if_due)
    saver.close(state, terms, config, converged=converged)
    state = with_alpha(start, state)
    smoothed = linked.smoothed(weights)
    answers = _final_answers(start, state, config)
    result = make_result(smoothed, start, state, config, answers, terms, converged)
    result = replace(result, targets=result.targets.with_uncounted(targets), refused_links=choice.refused)
    if weights is None:
        return result
    memory = replace(linked.memory(weights)[0], loadings=result.loadings[len(views) :])
    if memory.loadings and result.probe is not None and result.ridge is not None:
        samples = choose_probe(answers.targets.codes, answers.unreached, _random_order(smoothed, start))
        memory = memory.judge_unlinked(
            views,
            samples,
            result.loadings,
            result.ridge,
            result.average,
            answers.distributions,
            start.second_opinion,
            start.confidence.held_out,
        )
    return replace(result, loadings=result.loadings[: len(views)], links=memory)


def iterate(
    start: Start,
    first: list[IterationState],
    config: FitConfig,
    hooks: FitHooks,
    context: FitContext,
    save: Callable[[IterationState, History], object] | None = None,
) -> Alternation[IterationState]:
    """Lower J from the start, until it converges or is interrupted.

    The only item of `first` is the first state. It is taken out, so that no graph but the last two is in memory.
    """
    return alternate(
        first.pop(),
        start.objective.step,
        start.objective.objective,
        max_iter=config.max_iter,
        tol=config.tol,
        callback=hooks.progress,
        history=start.history,
        save=save,
        interruptible=context.interruptible,
    )


def with_alpha(start: Start, state: IterationState) -> IterationState:
    """The state with α, which it lacks if it was interrupted before the end of the first iteration."""
    return state if state.alpha is not None else replace(state, alpha=start.objective.update_graph(state).alpha)


def _final_answers(start: Start, state: IterationState, config: FitConfig) -> Answers:
    """The scores at the end of the iterations, rescued where labels cut samples off, and calibrated."""
    objective, undo = start.objective, start.permutation.undo
    raw_scores = undo(state.scores)
    found = Propagation(raw_scores, undo(state.unreached))
    if start.initially_disconnected is not None:
        embedded = start.embedding.embed(undo(state.latent))
        found = rescue_disconnected(embedded, found, undo(start.initially_disconnected), config.n_neighbors)
    opinion = None
    if objective.opinion is not None:
        opinion = objective.opinion.take(undo)
        # Where no label reaches, Q alone has decided: not enough for an answer.
        frequencies = objective.targets.frequencies.astype(found.scores.dtype)
        found = found._replace(scores=np.where(found.unreached[:, None], frequencies, found.scores))
    codes, n_missing = undo(objective.targets.codes), undo(objective.sample_kinds())
    scores, calibration = calibrate_scores(found, codes, n_missing, start.confidence, config.balance)
    distributions = scores / scores.sum(axis=1, keepdims=True)
    targets = start.permutation.undo_targets(objective.targets)
    return Answers(scores, distributions, found.unreached, calibration, targets, raw_scores, opinion)


def make_result(
    views: Views,
    start: Start,
    state: IterationState,
    config: FitConfig,
    answers: Answers,
    terms: dict[str, NDArray],
    converged: bool,
) -> FitResult:
    """The result in canonical order, with predictions for new samples judged."""
    objective, undo, undo_graph = start.objective, start.permutation.undo, start.permutation.undo_graph
    latent, alpha = undo(state.latent), undo(np.asarray(state.alpha))
    embedded = start.embedding.embed(latent)
    points = embedded if objective.expected is None else np.hstack([embedded, undo(objective.expected)])
    groups = None if objective.groups is None else undo(objective.groups)
    average = NeighborAverage.of(points, start.embedding, start.regressor, config, alpha, groups)
    ridge, probe, trust = _judge_new_samples(views, start, state, config, answers, average, latent)
    return FitResult(
        scores=answers.scores,
        unreached=answers.unreached,
        graph=undo_graph(state.graph),
        latent=latent,
        loadings=state.loadings,
        alpha=alpha,
        average=average,
        ridge=ridge,
        probe=probe,
        trust=trust,
        calibration=answers.calibration,
        gamma=objective.gamma,
        n_missing=undo(objective.sample_kinds()),
        terms=terms,
        converged=converged,
        neighbor_recall=getattr(state.search, "recall", 1.0),
        targets=answers.targets,
        raw_scores=answers.raw_scores,
        second_opinion=start.second_opinion,
        opinion=answers.opinion,
        order=start.permutation.order,
        link_laplacian=None if objective.links is None else _sorted(undo_graph(objective.links.laplacian)),
        view_weight=start.view_weight,
        held_out=start.confidence.held_out,
        candidates=None if start.candidates is None else start.permutation.undo_lists(start.candidates),
        placement=start.placement,
    )


def _judge_new_samples(
    views: Views,
    start: Start,
    state: IterationState,
    config: FitConfig,
    answers: Answers,
    average: NeighborAverage,
    latent: NDArray,
) -> tuple[NDArray | None, NewSampleProbe | None, Trust | None]:
    """The ridge of new samples that lack views, and the confidence of predictions for new samples."""
    ridge = start.objective.ridge
    links, unusual = start.objective.links, answers.unreached
    if links is not None and links.n_without is not None:  # samples with links are judged by those that have some
        unlinked = unusual | (start.permutation.undo(links.n_without) > 0)
        unusual = unlinked if np.count_nonzero(~unlinked) >= PROBE.min_samples else unusual
    probed = choose_probe(answers.targets.codes, unusual, _random_order(views, start))
    if ridge is None and not config.random_start:
        ridge = ridge_from_residuals(views, latent, state.loadings, probed)
    if not config.calibrate or ridge is None:
        return ridge, None, None
    opinions = None if answers.opinion is None else answers.opinion.scores
    probe = NewSampleProbe.of(views, state.loadings, probed, ridge, start.second_opinion, opinions)
    probe = probe.judged_by(start.confidence.held_out)
    everything = np.ones(len(views), dtype=bool)
    trust = average.trust(probe, everything, state.loadings, answers.distributions, start.second_opinion)
    return ridge, probe, trust


def _random_order(views: Views, start: Start) -> NDArray:
    """A random order of the samples, whose views are in canonical order."""
    return draw_order(start.permutation.first_samples(views.n_samples, of=views.n_samples), lambda: views)


def _sorted(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same with its entries in order, so that sums over a row do not depend on the order of the fit."""
    result = matrix.copy()
    result.sum_duplicates()
    return result


# Parts of a state that are computed from the others, or saved separately.
_NOT_SAVED = ("XtH", "laplacian", "search")
# What the start adds to the objective and leaves for the end.
_SAVED_OBJECTIVE = ("gamma", "targets", "expected", "ridge", "opinion")
_SAVED_START = (
    "embedding",
    "regressor",
    "initially_disconnected",
    "second_opinion",
    "view_weight",
    "candidates",
    "placement",
)


class _FitSaver(Saver[Start, IterationState]):
    """Saves everything that `resume_with_links` needs."""

    def __init__(self, start: Start, hooks: FitHooks, choice: LinkChoice) -> None:
        super().__init__(start, hooks)
        self.choice = choice

    def _write(self, checkpoint: CheckpointFile, state: IterationState, history: History) -> None:
        start, objective = self.start, self.start.objective
        checkpoint.write(
            {
                "state": {name: part for name, part in field_values(state).items() if name not in _NOT_SAVED},
                "search": state.search.state(),
                "objective": {name: getattr(objective, name) for name in _SAVED_OBJECTIVE},
                "order": start.permutation.order,
                "drawn": start.permutation.drawn,
                "start": {name: getattr(start, name) for name in _SAVED_START},
                "confidence": field_values(start.confidence),
                "history": list(history),
                "links": None if self.choice.weights is None else field_values(self.choice.weights),
                "refused_links": self.choice.refused,
            }
        )
