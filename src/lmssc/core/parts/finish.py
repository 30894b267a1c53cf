"""The end of a fit in parts: final scores calibrated, predictions for new samples judged, arrays in canonical order."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.calibration import GroupedCalibration, fit_by_kind
from lmssc.core.drawn_order import draw_order
from lmssc.core.embed_views import residual_noise
from lmssc.core.fit_result import FitResult
from lmssc.core.graph import mean_squared_distances, new_list_length, new_rows, without_own
from lmssc.core.held_out import class_abundances
from lmssc.core.new_samples import NewSampleProbe, Trust, choose_probe
from lmssc.core.parts.components import one_class_samples
from lmssc.core.parts.executor import Executor, Part, collect, gather
from lmssc.core.parts.parted_objective import PartedObjective, PartedState, coordinates, embedded
from lmssc.core.parts.parted_start import PartedStart, balanced_weights, gather_embedded, gather_views
from lmssc.core.parts.results import graph_in_order, rows_in_order
from lmssc.core.predict import NeighborAverage
from lmssc.core.prior_correction import reweigh
from lmssc.core.second_opinion import Opinion
from lmssc.core.targets import Targets
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.approximate import nearest_of_few
from lmssc.numerics.knn.exact import Neighbors
from lmssc.numerics.matrices import pseudo_inverse

# Queries of an exact search at a time.
QUERIES = 500


def finish(
    start: PartedStart,
    given: Targets,
    state: PartedState,
    terms: dict[str, NDArray],
    converged: bool,
    *,
    on_disk: bool,
) -> FitResult:
    """The result in canonical order, as `lmssc.core.fit` has it; `given` are the labels before any is trusted less."""
    objective, order = start.objective, np.asarray(start.permutation.order)
    executor, config, targets = objective.executor, objective.config, objective.targets
    if start.regressor is not None:
        _rescue_disconnected(objective)
    if objective.opinion_weight:
        # Where no label reaches, Q alone has decided: not enough for an answer.
        executor.map(_set_unreached_scores, targets.frequencies)
    calibration = _calibrate(start)
    unreached = rows_in_order(executor, _named, "unreached", order=order, on_disk=False)
    alpha = rows_in_order(executor, _named, "alpha", order=order, on_disk=False)
    points = rows_in_order(executor, coordinates, objective.stretch, order=order, on_disk=on_disk)
    average = NeighborAverage.of(points, start.embedding, start.regressor, config, alpha)
    opinion = None
    if objective.opinion_weight:
        scores = rows_in_order(executor, _named, "opinion", order=order, on_disk=on_disk)
        opinion = Opinion(scores, objective.opinion_weight)
    codes = start.permutation.undo(targets.codes)
    positions = np.asarray(start.permutation.positions)
    random_order = start.permutation.shuffled_samples(len(codes))
    drawn = draw_order(random_order, lambda: gather_views(executor, positions))
    ridge, probe, trust = _judge_new_samples(start, state, choose_probe(codes, unreached, drawn), average)
    return FitResult(
        scores=rows_in_order(executor, _named, "calibrated", order=order, on_disk=on_disk),
        unreached=unreached,
        graph=graph_in_order(executor, order, on_disk=on_disk),
        latent=rows_in_order(executor, _named, "latent", order=order, on_disk=on_disk),
        loadings=state.loadings,
        alpha=alpha,
        average=average,
        ridge=ridge,
        probe=probe,
        trust=trust,
        calibration=calibration,
        gamma=objective.gamma,
        kinds=np.zeros(objective.n_samples, dtype=np.int8),
        terms=terms,
        converged=converged,
        neighbor_recall=objective.search.recall,
        targets=start.permutation.undo_targets(targets),
        second_opinion=start.second_opinion,
        opinion=opinion,
        one_class=one_class_samples(executor, given, start.permutation),
    )


def _named(part: Part, name: str) -> NDArray:
    return part[name]


def _set_unreached_scores(part: Part, frequencies: NDArray) -> None:
    scores = part["scores"]
    part["scores"] = np.where(part["unreached"][:, None], frequencies.astype(scores.dtype), scores)


def _rescue_disconnected(objective: PartedObjective) -> None:
    """Scores for samples that reach a label in the graph on Z, but not with P: see `rescue_disconnected`."""
    executor = objective.executor
    rescued = np.concatenate(executor.map(_disconnected_by_labels))
    if not len(rescued):
        return
    n_reached = objective.n_samples - sum(executor.map(_count_unreached))
    queries, k = gather_embedded(objective, rescued), min(objective.config.n_neighbors, n_reached)
    weights, samples = _connect(objective, queries, k, None, n_reached, reached_alone=True)
    executor.map(_set_rescued, rescued, weights @ gather(executor, "scores", samples))


def _disconnected_by_labels(part: Part) -> NDArray:
    return part.start + np.flatnonzero(part["unreached"] & ~part["disconnected"])


def _count_unreached(part: Part) -> int:
    return int(np.count_nonzero(part["unreached"]))


def _set_rescued(part: Part, samples: NDArray, found: NDArray) -> None:
    own = np.flatnonzero((samples >= part.start) & (samples < part.stop))
    if len(own):
        scores, unreached = part["scores"].copy(), part["unreached"].copy()
        scores[samples[own] - part.start] = found[own]
        unreached[samples[own] - part.start] = False
        part["scores"], part["unreached"] = scores, unreached


def _connect(
    objective: PartedObjective,
    queries: NDArray,
    n_neighbors: int,
    alpha: float | None,
    n_points: int,
    *,
    reached_alone: bool,
) -> tuple[sparse.csr_array, NDArray]:
    """Simplex rows from a few queries to samples, exactly; and the samples that its columns stand for.

    Queries are compared with Z of the samples that a label reaches, or with Z and P of all samples.
    """

    def search(rows: NDArray, length: int) -> Neighbors:
        found = []
        for batch in gen_batches(len(rows), QUERIES):
            arguments = queries[rows[batch]], length, objective.stretch, reached_alone
            pairs = zip(*objective.executor.map(_nearest, *arguments), strict=True)
            samples, distances = (np.concatenate(part, axis=1) for part in pairs)
            order = np.lexsort((samples, distances))[:, :length]
            found.append(Neighbors(np.take_along_axis(samples, order, 1), np.take_along_axis(distances, order, 1)))
        return Neighbors(*map(np.concatenate, zip(*found, strict=True)))

    first = search(np.arange(len(queries)), min(new_list_length(n_neighbors, alpha), n_points))
    weights = new_rows(search, first, objective.n_samples, n_neighbors, alpha)
    samples, columns = np.unique(weights.indices, return_inverse=True)
    entries = (weights.data, columns, weights.indptr)
    return sparse.csr_array(entries, shape=(len(queries), len(samples))), samples


def _nearest(
    part: Part, queries: NDArray, length: int, stretch: NDArray | None, reached_alone: bool
) -> tuple[NDArray, NDArray]:
    """The nearest samples of a part to each query, and their squared distances."""
    points, samples = coordinates(part, stretch), np.arange(part.start, part.stop)
    if reached_alone:
        reached = ~part["unreached"]
        points, samples = embedded(part, stretch)[reached], samples[reached]
    length = min(length, len(samples))
    if not length:
        return np.empty((len(queries), 0), dtype=np.intp), np.empty((len(queries), 0), dtype=points.dtype)
    found = nearest_of_few(points, queries, length)
    return samples[found.indices], found.squared_distances


def _calibrate(start: PartedStart) -> GroupedCalibration:
    """Probabilities of the final scores, as "calibrated" of each part: see `confidence.calibrate_scores`."""
    objective, before = start.objective, start.confidence
    executor, targets, weights = objective.executor, objective.targets, balanced_weights(objective)
    abundance, calibration = class_abundances(targets.codes, targets.n_classes), before.calibration
    if before.samples is not None and before.probabilities is not None:
        rows = np.asarray(start.permutation.positions)[before.samples]
        reached = ~gather(executor, "unreached", rows)
        balanced = reweigh(np.maximum(gather(executor, "scores", rows[reached]), 0), weights)
        kinds = np.zeros(len(balanced), dtype=np.intp)
        probabilities = before.probabilities[reached]
        calibration = fit_by_kind(balanced, probabilities, kinds, abundance, calibration, penalise=False)
    executor.map(_set_calibrated, calibration, weights, abundance)
    return calibration


def _set_calibrated(part: Part, calibration: GroupedCalibration, weights: NDArray, abundance: NDArray) -> None:
    scores = part["scores"]
    balanced = reweigh(np.maximum(scores, 0), weights)
    fixed = part["labelled"] | part["unreached"]
    calibrated = calibration(balanced, np.zeros(len(part), dtype=np.intp), abundance)
    part["calibrated"] = np.where(fixed[:, None], scores, calibrated)


def _judge_new_samples(
    start: PartedStart, state: PartedState, probed: NDArray, average: NeighborAverage
) -> tuple[NDArray, NewSampleProbe | None, Trust | None]:
    """The ridge of new samples that lack views, and the confidence of predictions for new samples."""
    objective, second_opinion = start.objective, start.second_opinion
    executor, n_samples = objective.executor, objective.n_samples
    rows = np.asarray(start.permutation.positions)[probed]
    views, places = gather_views(executor, rows), np.arange(len(rows))
    moments = state.gram / state.gram.dtype.type(n_samples)
    ridge = residual_noise(views, state.loadings, places) * pseudo_inverse(moments)
    if not objective.config.calibrate:
        return ridge, None, None
    opinions = None if second_opinion is None else gather(executor, "opinion", rows)
    probe = NewSampleProbe.of(views, state.loadings, places, ridge, second_opinion, opinions)
    probe = probe.with_leverages(gather(executor, "latent", rows), state.gram)
    probe = replace(replace(probe, samples=probed).judged_by(start.confidence.held_out), samples=places)
    k = min(average.n_neighbors + 1, n_samples - 1)

    def predict(latent: NDArray, own: NDArray) -> tuple[NDArray, NDArray]:
        queries = average.queries(latent)
        weights, samples = _connect(objective, queries, k, average.alpha, n_samples, reached_alone=False)
        weights = without_own(weights, np.searchsorted(samples, rows[own]))
        points = collect(executor, _take_coordinates, samples, objective.stretch)
        return weights @ _distributions(executor, samples), mean_squared_distances(weights, points, queries)

    everything = np.ones(len(views), dtype=bool)
    trust = probe.trust(everything, state.loadings, _distributions(executor, rows), predict, second_opinion)
    return ridge, replace(probe, samples=probed), trust


def _take_coordinates(part: Part, stretch: NDArray | None, rows: NDArray) -> NDArray:
    return coordinates(part, stretch)[rows]


def _distributions(executor: Executor, rows: NDArray) -> NDArray:
    """Final distributions of some samples."""
    scores = gather(executor, "calibrated", rows)
    return scores / scores.sum(axis=1, keepdims=True)
