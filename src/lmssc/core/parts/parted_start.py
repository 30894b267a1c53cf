"""What the alternation in parts starts from: `lmssc.core.begin`, with the samples where they are.

The regression of the labels, the second opinion and the calibration need some thousand samples only. These are
gathered, and the functions of a fit in memory do the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lmssc.core.begin import MAX_NEIGHBOR_DISTANCES
from lmssc.core.calibration import GroupedCalibration, calibration_sample
from lmssc.core.confidence import StartConfidence
from lmssc.core.drawn_order import (
    MAX_DRAWN_SAMPLES,
    draw_numbers,
    draw_order,
    draw_samples,
    project_latent,
    project_views,
)
from lmssc.core.embedding import IDENTITY, Embedding, relative_norms, stretch_of
from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import neighbor_distance
from lmssc.core.held_out import (
    MAX_CALIBRATION_SAMPLES,
    MIN_CALIBRATION_LABELS,
    FirstGraph,
    class_abundances,
    hold_out_of,
)
from lmssc.core.held_out import TOLERANCE as HELD_OUT_TOLERANCE
from lmssc.core.initialization import start_directions, wanted_components
from lmssc.core.label_regression import LabelRegressor, Regression
from lmssc.core.nystroem import MAX_FIT_SAMPLES, MAX_LANDMARKS, NystroemFeatures, NystroemRows, first_of_each
from lmssc.core.objective import Objective
from lmssc.core.opinion_trust import judge_opinion, least_trust
from lmssc.core.parts.executor import Executor, Part, collect, forget, gather, total
from lmssc.core.parts.neighbors import PartedKNN
from lmssc.core.parts.parted_graph import subgraph
from lmssc.core.parts.parted_objective import PartedObjective, PartedState, embedded, latent_products
from lmssc.core.parts.partition import scatter, start_positions, views_of
from lmssc.core.permutation import Permutation
from lmssc.core.prior_correction import class_weights, reweigh
from lmssc.core.second_opinion import MAX_FIT_SAMPLES as MAX_OPINION_SAMPLES
from lmssc.core.second_opinion import OpinionRegression, SecondOpinion, anchor_weight
from lmssc.core.targets import Targets
from lmssc.core.warm_start import run_rounds
from lmssc.data.memmap import release
from lmssc.data.view import View
from lmssc.data.views import Views
from lmssc.numerics.knn.approximate import choose_search
from lmssc.numerics.spatial_order import spatial_order


@dataclass(frozen=True)
class PartedStart:
    """What the alternation starts from; the rest is with the parts.

    Attributes
    ----------
    objective : PartedObjective
        The problem.
    state : PartedState
        First state.
    permutation : Permutation
        The order of the fit.
    embedding : Embedding
        Maps H to Z, samples in canonical order.
    regressor : LabelRegressor or None
        Predicts the expected scores P from Z.
    confidence : StartConfidence
        Confidence of the warm start.
    second_opinion : SecondOpinion or None
        Predicts the second opinion Q.
    history : list of dict
        Terms of J after the iterations that are done already.
    """

    objective: PartedObjective
    state: PartedState
    permutation: Permutation
    embedding: Embedding
    regressor: LabelRegressor | None
    confidence: StartConfidence
    second_opinion: SecondOpinion | None
    history: list[dict[str, float]]


def begin(views: Views, targets: Targets, config: FitConfig, make_executor: Callable[[int], Executor]) -> PartedStart:
    """Initial positions, parts, first graph, warm start and its calibration.

    Parameters
    ----------
    views : Views
        Scaled views of distinct samples, in canonical order; complete.
    targets : Targets
        Their labels.
    config : FitConfig
        Parameters.
    make_executor : callable
        Makes the parts, given the number of components.

    Returns
    -------
    PartedStart
    """
    n_components, above_noise = wanted_components(views, config)
    loadings = views.split(start_directions(views, n_components, above_noise=above_noise))
    latent = start_positions(views, loadings)
    drawn = draw_samples(project_latent(latent, loadings)) if views.n_samples > MAX_DRAWN_SAMPLES else None
    permutation = Permutation(spatial_order(latent, partial(release, latent), drawn), drawn)
    del latent
    targets = permutation.apply_to_targets(targets)
    executor = make_executor(loadings[0].shape[1])
    scatter(executor, views, np.asarray(permutation.order))
    objective, embedding = _objective(executor, views, targets, config, loadings, permutation)
    objective.connect(expected=False)
    features = _features(objective, permutation)
    objective = replace(objective, gamma=config.gamma * _distance_unit(objective, permutation, features.energy))
    weight = config.label_weight * features.energy
    regressor = _warm_start(objective, permutation, features, weight)
    trusted = _trusted_targets(objective)
    if trusted is not objective.targets:
        objective = replace(objective, targets=trusted)
        _set_targets(executor, trusted, objective.dtype)
        executor.map(forget, ("scores", "expected", "previous"))
        objective.connect(expected=False)
        regressor = _warm_start(objective, permutation, features, weight)
    objective, second_opinion, confidence = _second_opinion(objective, permutation, weight)
    if config.nonnegative:
        loadings = [np.maximum(loading, 0) for loading in loadings]
    *XtH, gram = total(executor.map(latent_products))
    state = PartedState(loadings, list(XtH), gram)
    return PartedStart(objective, state, permutation, embedding, regressor, confidence, second_opinion, [])


def _objective(
    executor: Executor,
    views: Views,
    targets: Targets,
    config: FitConfig,
    loadings: list[NDArray],
    permutation: Permutation,
) -> tuple[PartedObjective, Embedding]:
    """The objective, and the embedding of all samples in canonical order; the parts get H and Y."""
    _set_targets(executor, targets, views.dtype)
    squares = total(executor.map(_begin_latent, loadings))
    embedding, stretch = IDENTITY, None
    if config.by_direction:
        stretch = stretch_of(np.sqrt(squares).astype(views.dtype))
        radius = float(np.sqrt(squares.sum() / views.n_samples))
        norms = np.concatenate(executor.map(_set_norms, stretch, radius))
        embedding = Embedding(stretch, radius, permutation.undo(norms))
    energies = [float(energy) for energy in total(executor.map(_energies))]
    search = PartedKNN(executor, config.neighbor_recall)
    return PartedObjective(search, config, targets, energies, views.dtype, stretch, config.gamma), embedding


def _set_targets(executor: Executor, targets: Targets, dtype: np.dtype) -> None:
    bounds = executor.bounds
    each = [targets.take(np.arange(bounds[p], bounds[p + 1])).matrix(dtype) for p in range(len(bounds) - 1)]
    executor.map(_put_labels, each=each)


def _put_labels(part: Part, labels: NDArray) -> None:
    part["labels"], part["labelled"] = labels, labels.any(axis=1)


def _begin_latent(part: Part, loadings: list[NDArray]) -> NDArray:
    latent = views_of(part).dot(loadings)
    part["latent"] = latent
    return np.einsum("ij,ij->j", latent, latent, dtype=np.float64)


def _set_norms(part: Part, stretch: NDArray, radius: float) -> NDArray:
    part["norms"] = relative_norms(part["latent"] * stretch, radius)
    return part["norms"]


def _energies(part: Part) -> tuple[float, ...]:
    return tuple(views_of(part).energies)


def take_embedded(part: Part, stretch: NDArray | None, rows: NDArray) -> NDArray:
    """Z of some samples of a part."""
    return embedded(part, stretch, rows)


def gather_embedded(objective: PartedObjective, rows: NDArray) -> NDArray:
    """Z of some samples."""
    return collect(objective.executor, take_embedded, rows, objective.stretch)


def gather_views(executor: Executor, rows: NDArray) -> Views:
    """The scaled views of some samples."""
    offsets = executor.map(_offsets)[0]
    return Views([View(gather(executor, f"view{v}", rows), offset) for v, offset in enumerate(offsets)])


def _offsets(part: Part) -> list[NDArray | None]:
    return [view.offset for view in views_of(part)]


def _features(objective: PartedObjective, permutation: Permutation) -> NystroemFeatures:
    """Features of Z for the label regression."""
    executor, n_samples, stretch = objective.executor, objective.n_samples, objective.stretch
    centre = total(executor.map(_embedded_sum, stretch)) / n_samples
    spread = float(total(executor.map(_embedded_squares, stretch, centre)).sum() / n_samples)
    order = permutation.shuffled(n_samples)
    chosen = draw_order(order, lambda: gather_views(executor, np.arange(n_samples)))[:MAX_LANDMARKS]
    return NystroemFeatures.from_moments(centre, spread, gather_embedded(objective, chosen))


def _embedded_sum(part: Part, stretch: NDArray | None) -> NDArray:
    return embedded(part, stretch).sum(axis=0, dtype=np.float64)


def _embedded_squares(part: Part, stretch: NDArray | None, centre: NDArray) -> NDArray:
    centred = embedded(part, stretch) - centre
    return np.einsum("ij,ij->j", centred, centred)


def _distance_unit(objective: PartedObjective, permutation: Permutation, energy: float) -> float:
    """Squared distance that γ is relative to."""
    rows = permutation.first(MAX_CALIBRATION_SAMPLES, of=objective.n_samples)
    graph, samples = subgraph(objective.executor, "graph", rows)
    near = neighbor_distance(graph, gather_embedded(objective, samples), np.searchsorted(samples, rows))
    return min(energy, MAX_NEIGHBOR_DISTANCES * near)


def _warm_start(
    objective: PartedObjective, permutation: Permutation, features: NystroemFeatures, weight: float
) -> LabelRegressor | None:
    """The rounds of `lmssc.core.warm_start`; the parts get P and F."""
    labelled = objective.targets.labelled
    rows = np.arange(len(labelled))
    if len(labelled) > 2 * MAX_FIT_SAMPLES:
        rows = first_of_each(labelled, permutation.random_order)
    regressor = run_rounds(_PartedRounds(objective, features, rows), weight)
    objective.executor.map(forget, ("predicted", "previous"))
    return regressor


@dataclass
class _PartedRounds:
    """Rounds of the warm start over parts; the regression is on the samples `rows`."""

    objective: PartedObjective
    features: NystroemFeatures
    rows: NDArray

    def propagate(self) -> None:
        self.objective.propagate(self.objective.tolerance())
        self.objective.executor.map(_keep_disconnected)

    def begin_regression(self) -> Regression:
        known = NystroemRows(gather_embedded(self.objective, self.rows), features=self.features)
        return Regression(known, self.objective.targets.labelled[self.rows])

    def known_scores(self) -> NDArray:
        return gather(self.objective.executor, "scores", self.rows)

    def predict(self, candidate: LabelRegressor) -> float:
        difference, size = total(self.objective.executor.map(_predict, candidate, self.objective.stretch))
        return float(np.sqrt(difference / size)) if size else np.inf

    def accept(self, compressed: LabelRegressor | None) -> None:
        self.objective.executor.map(_accept, compressed, self.objective.stretch)

    def connect(self) -> None:
        self.objective.connect(expected=True)


def _keep_disconnected(part: Part) -> None:
    """Samples in components without a label of the first graph, which is on Z alone."""
    if "expected" not in part:
        part["disconnected"] = part["unreached"]


def _predict(part: Part, regressor: LabelRegressor, stretch: NDArray | None) -> tuple[float, float]:
    """Predict the scores of all samples; squared norms of the change from the last predictions, and of these."""
    predicted = regressor(embedded(part, stretch))
    part["predicted"] = predicted
    old = part.get("previous")
    if old is None:
        return 0.0, 0.0
    return float(np.linalg.norm(predicted - old)) ** 2, float(np.linalg.norm(old)) ** 2


def _accept(part: Part, compressed: LabelRegressor | None, stretch: NDArray | None) -> None:
    """Take the predictions for P, or those of a regressor with the same distances in fewer columns."""
    part["previous"] = part["predicted"]
    part["expected"] = part["predicted"] if compressed is None else compressed(embedded(part, stretch))


def _trusted_targets(objective: PartedObjective) -> Targets:
    """Targets in which disagreeing labels of identical samples are shrunk, as `warm_start.trusted_targets` does."""
    targets = objective.targets
    if not len(targets.mixed):
        return targets
    nodes = np.flatnonzero(targets.labelled)
    graph, samples = subgraph(objective.executor, "graph", nodes)
    scores = np.maximum(gather(objective.executor, "scores", samples), 0)
    opinions = (graph @ scores)[np.searchsorted(samples, nodes)]
    own = targets.take(nodes)
    shrunk = own.shrink(opinions / opinions.sum(axis=1, keepdims=True))
    if shrunk is own:
        return targets
    codes = targets.codes.copy()
    codes[nodes] = shrunk.codes
    return replace(targets, codes=codes, mixed=nodes[shrunk.mixed], shares=shrunk.shares)


def _second_opinion(
    objective: PartedObjective, permutation: Permutation, weight: float
) -> tuple[PartedObjective, SecondOpinion | None, StartConfidence]:
    """The objective with the second opinion, if it is trusted; and the confidence of the start."""
    config = objective.config
    trust, calibration, losses, held_out = config.second_opinion, None, None, None
    if config.calibrate:
        chosen_objective, first = _calibration_problem(objective, permutation, weight)
        tol = max(objective.tolerance(), HELD_OUT_TOLERANCE)
        complete = objective.n_samples <= MAX_CALIBRATION_SAMPLES
        held = hold_out_of(chosen_objective, first, tol, config.balance, complete=complete)
        trust, scores, _, _ = judge_opinion(held, config.second_opinion, least_trust(objective.targets))
        calibration = held.calibrate(scores)
        losses = held.losses(scores, calibration)
        if objective.n_samples <= MAX_CALIBRATION_SAMPLES and len(scores):
            held_out = held.rows, held.probabilities(scores, calibration)
    second_opinion = None
    if trust:
        second_opinion = _add_opinion(objective, permutation, trust)
        objective = replace(objective, opinion_weight=anchor_weight(trust))
        objective.propagate(objective.tolerance())
    confidence = StartConfidence()
    if calibration is not None:
        confidence = replace(_calibrate_start(objective, calibration, permutation), losses=losses, held_out=held_out)
    return objective, second_opinion, confidence


def _calibration_problem(
    objective: PartedObjective, permutation: Permutation, weight: float
) -> tuple[Objective, FirstGraph]:
    """Some samples, in canonical order, as a problem in memory."""
    config, targets, n_samples = objective.config, objective.targets, objective.n_samples
    order = permutation.shuffled(n_samples)
    chosen = order[calibration_sample(targets.codes[order], MAX_CALIBRATION_SAMPLES, MIN_CALIBRATION_LABELS)]
    some = Objective(
        gather_views(objective.executor, chosen),
        targets.take(chosen),
        config.n_neighbors,
        config.beta,
        objective.gamma,
        config.nonnegative,
        config.shared_alpha,
        config.freeze_alpha,
    )
    points = gather_embedded(objective, chosen)
    search = choose_search(n_samples, config.neighbor_recall)
    features = NystroemRows(points, np.argsort(draw_numbers(project_views(some.views)), kind="stable"))
    return some, FirstGraph(points, some.connect(points, search), features, weight, search)


def _add_opinion(objective: PartedObjective, permutation: Permutation, trust: float) -> SecondOpinion:
    """Fit the second opinion to the labels, and give each part that on its samples."""
    executor, targets, n_samples = objective.executor, objective.targets, objective.n_samples
    order = permutation.shuffled(n_samples)
    rows = order[targets.labelled[order]][:MAX_OPINION_SAMPLES]
    few = n_samples <= MAX_CALIBRATION_SAMPLES
    regression = OpinionRegression(gather_views(executor, rows), targets.take(rows), laplacian=few, n_samples=n_samples)
    second_opinion = regression.finish(trust)
    executor.map(_set_opinion, second_opinion, rows, regression.left_out_distributions())
    return second_opinion


def _set_opinion(part: Part, second_opinion: SecondOpinion, rows: NDArray, left_out: NDArray) -> None:
    scores = second_opinion(views_of(part))
    own = np.flatnonzero((rows >= part.start) & (rows < part.stop))
    scores[rows[own] - part.start] = left_out[own]
    part["opinion"] = scores


def balanced_weights(objective: PartedObjective) -> NDArray:
    """What `balance` multiplies the scores of each class by."""
    masses = total(objective.executor.map(_score_sum)) / objective.n_samples
    return class_weights(objective.targets.codes, masses, objective.config.balance)


def _score_sum(part: Part) -> NDArray:
    return np.maximum(part["scores"], 0).sum(axis=0, dtype=np.float64)


def _calibrate_start(
    objective: PartedObjective, calibration: GroupedCalibration, permutation: Permutation
) -> StartConfidence:
    """Predict some unlabelled samples with the calibrated scores of the warm start."""
    targets, executor, n_samples = objective.targets, objective.executor, objective.n_samples
    samples = permutation.first_samples(MAX_CALIBRATION_SAMPLES, of=n_samples)
    positions = permutation.first(MAX_CALIBRATION_SAMPLES, of=n_samples)
    unlabelled = (targets.codes[positions] < 0) & ~gather(executor, "unreached", positions)
    samples, positions = samples[unlabelled], positions[unlabelled]
    scores = np.maximum(gather(executor, "scores", positions), 0)
    balanced = reweigh(scores, balanced_weights(objective))
    abundance = class_abundances(targets.codes, targets.n_classes)
    kinds = np.zeros(len(samples), dtype=np.intp)
    return StartConfidence(calibration, samples, calibration(balanced, kinds, abundance))
