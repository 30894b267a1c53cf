"""The fit of LMSSC as a pure function: scaled views, targets and parameters in, a `FitResult` out.

`begin` initializes, orders the samples in space, learns the first graph, and calibrates the warm start; the alternation
lowers J; the end undoes the order, calibrates the final scores, and judges predictions for new samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import Alternation, alternate
from lmssc.core.confidence import calibrate_scores
from lmssc.core.drawn_order import draw_order
from lmssc.core.embed_views import ridge_from_residuals
from lmssc.core.fit_checkpoint import FitSaver
from lmssc.core.fit_config import FitConfig, FitContext, FitHooks
from lmssc.core.fit_result import Answers, FitResult
from lmssc.core.link_choice import LinkedViews, begin_with_links, resume_with_links
from lmssc.core.links import LinkWeights
from lmssc.core.new_samples import PROBE, NewSampleProbe, Trust, choose_probe
from lmssc.core.objective import IterationState
from lmssc.core.predict import NeighborAverage
from lmssc.core.propagation import Propagation, rescue_disconnected
from lmssc.core.saving import History
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.core.view_forms import STANDARDISED, Form, FormedViews, begin_formed
from lmssc.core.word_regression import can_regress, keep_totals, regress_on_words
from lmssc.data.views import Views


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
    formed = FormedViews.of(views, config)
    if saved is None:
        form, start = begin_formed(formed, targets, config, context, groups)
        linked = LinkedViews(formed.at(form), graphs)
        context = formed.context(context, form)
        start, choice = begin_with_links(linked, start, targets, config, context, groups, formed.views)
    else:
        form = Form(*saved.get("form", STANDARDISED))
        linked = LinkedViews(formed.at(form), graphs)
        start, choice = resume_with_links(linked, targets, config, groups, saved)
    handover, start = [start.state], start.without_state()
    weights = choice.weights
    saver = FitSaver(start, hooks, choice, form)
    if saved is None:
        saver.save(handover[0], [])
    state, terms, converged = iterate(start, handover, config, hooks, context, saver.save_if_due)
    saver.close(state, terms, config, converged=converged)
    state = with_alpha(start, state)
    answers = _final_answers(linked.smoothed(weights), start, state, config)
    result = make_result(linked.smoothed(weights), start, state, config, answers, terms, converged)
    result = replace(
        result,
        targets=result.targets.with_uncounted(targets),
        refused_links=choice.refused,
        changes=formed.changes(form),
    )
    return result if weights is None else _with_links(result, linked, weights, start, answers)


def iterate(
    start: Start,
    handover: list[IterationState],
    config: FitConfig,
    hooks: FitHooks,
    context: FitContext,
    save: Callable[[IterationState, History], object] | None = None,
) -> Alternation[IterationState]:
    """Lower J from the start, until it converges or is interrupted.

    `handover` is a list of the first state alone. It is taken out: as long as the caller held it, its graph would be in
    memory beside the last two.
    """
    return alternate(
        handover.pop(),
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


def _final_answers(views: Views, start: Start, state: IterationState, config: FitConfig) -> Answers:
    """The scores at the end of the iterations, rescued where labels cut samples off, and calibrated.

    Of texts, a regression on all words then predicts them, and has the same confidence.
    """
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
    codes, kinds = undo(objective.targets.codes), undo(objective.sample_kinds())
    scores, calibration = calibrate_scores(found, codes, kinds, start.confidence, config.balance)
    distributions = scores / scores.sum(axis=1, keepdims=True)
    if config.text and config.label_weight and config.calibrate and can_regress(views):
        predicted = regress_on_words(views, distributions, codes >= 0, found.unreached)
        predicted, _ = calibrate_scores(Propagation(predicted, found.unreached), codes, kinds, start.confidence, 0.0)
        scores = distributions = keep_totals(predicted, distributions, (codes >= 0) | found.unreached)
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
        kinds=undo(objective.sample_kinds()),
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
    ridge, links, left_out = start.objective.ridge, start.objective.links, answers.unreached
    if links is not None and links.n_without is not None:  # samples with links are judged by those that have some
        unlinked = left_out | (start.permutation.undo(links.n_without) > 0)
        left_out = unlinked if np.count_nonzero(~unlinked) >= PROBE.min_samples else left_out
    probed = choose_probe(answers.targets.codes, left_out, _random_order(views, start))
    if ridge is None and not config.random_start:
        ridge = ridge_from_residuals(views, latent, state.loadings, probed)
    if not config.calibrate or ridge is None:
        return ridge, None, None
    opinions = None if answers.opinion is None else answers.opinion.scores
    probe = NewSampleProbe.of(views, state.loadings, probed, ridge, start.second_opinion, opinions)
    probe = probe.with_leverages(latent[probed], latent.T @ latent).judged_by(start.confidence.held_out)
    all_views = np.ones(len(views), dtype=bool)
    trust = average.trust(probe, all_views, state.loadings, answers.distributions, start.second_opinion)
    return ridge, probe, trust


def _with_links(
    result: FitResult, linked: LinkedViews, weights: LinkWeights, start: Start, answers: Answers
) -> FitResult:
    """The result with what new samples need of the links; its loadings are then those of the given views alone."""
    n_views = len(linked.views)
    memory = replace(linked.memory(weights)[0], loadings=result.loadings[n_views:])
    if memory.loadings and result.probe is not None and result.ridge is not None:
        order = _random_order(linked.smoothed(weights), start)
        memory = memory.judge_unlinked(
            linked.views,
            choose_probe(answers.targets.codes, answers.unreached, order),
            result.loadings,
            result.ridge,
            result.average,
            answers.distributions,
            result.second_opinion,
            result.held_out,
        )
    return replace(result, loadings=result.loadings[:n_views], links=memory)


def _random_order(views: Views, start: Start) -> NDArray:
    """A random order of the samples, whose views are in canonical order."""
    return draw_order(start.permutation.shuffled_samples(views.n_samples), lambda: views)


def _sorted(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same with its entries in order, so that sums over a row do not depend on the order of the fit."""
    result = matrix.copy()
    result.sum_duplicates()
    return result
