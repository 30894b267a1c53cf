"""Confidence of samples that lack views which nearly all labelled samples have: samples that have them stand in."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmssc.core.calibration import Calibration, fit_calibration
from lmssc.core.calibration_loss import PRIOR
from lmssc.core.confidence import StartConfidence, unlabelled_probabilities
from lmssc.core.embed_views import embed_views, gram_of
from lmssc.core.fit_config import FitConfig
from lmssc.core.held_out import HeldOutLabels, class_abundances
from lmssc.core.new_samples import PROBE
from lmssc.core.predict import NeighborAverage
from lmssc.core.prior_correction import class_weights, reweigh
from lmssc.core.start import Start

MAX_PATTERNS = 10
"""Sets of missing views, the most frequent first, that stand for all sets of as many."""


def calibrate_unlabelled_kinds(start: Start, held: HeldOutLabels, config: FitConfig) -> StartConfidence:
    """The confidence with calibrations of kinds of samples that have too few held-out labels for one of their own.

    Samples that have more views are embedded again without those that the kind lacks, and scored by their neighbours,
    as if they were new. Their calibrated probabilities, which come from all of their views, are taken for the truth.
    Kinds that lack links keep the calibration of all samples.

    Parameters
    ----------
    start : Start
        With the confidence that held-out labels give. If any samples lack views, it is in canonical order.
    held : HeldOutLabels
        The held-out labels.
    config : FitConfig
        Parameters of the fit.

    Returns
    -------
    StartConfidence
    """
    objective, state, confidence = start.objective, start.state, start.confidence
    if objective.ridge is None:
        return confidence
    kinds, unlabelled = objective.sample_kinds(), (objective.targets.codes < 0) & ~state.unreached
    counts = np.bincount(held.kinds[held.rows], minlength=int(kinds.max()) + 1)
    judged = counts >= PRIOR.min_group_samples
    wanted = [kind for kind in np.unique(kinds[unlabelled]) if not judged[kind] and 0 < kind < len(objective.views)]
    if not wanted or not judged.any():
        return confidence
    stand_ins = _StandIns(start, config)
    groups = dict(confidence.calibration.groups)
    for kind in wanted:
        found = stand_ins.calibrate(kinds == kind, unlabelled, judged[kinds])
        if found is not None:
            groups[int(kind)] = found
    calibration = replace(confidence.calibration, groups=groups)
    _, probabilities = unlabelled_probabilities(
        objective, state.scores, state.unreached, calibration, start.permutation, config.balance
    )
    return replace(confidence, calibration=calibration, probabilities=probabilities)


class _StandIns:
    """Samples that have more views than others, scored as if they had as few."""

    def __init__(self, start: Start, config: FitConfig) -> None:
        self.start, self.objective = start, start.objective
        self.average = NeighborAverage(
            self.objective.embed(start.state.latent),
            self.objective.embedding,
            start.regressor,
            config.n_neighbors,
            None,
            config.neighbor_recall,
            self.objective.groups,
        )
        codes, self.scores = self.objective.targets.codes, np.maximum(start.state.scores, 0)
        self.weights = class_weights(codes, self.scores.mean(axis=0, dtype=np.float64), config.balance)
        self.abundance = class_abundances(codes, self.objective.targets.n_classes)
        self.calibration, self.kinds = start.confidence.calibration, self.objective.sample_kinds()

    def calibrate(self, members: NDArray, unlabelled: NDArray, judged: NDArray) -> Calibration | None:
        """The calibration of samples of one kind, by others whose calibration is known; None if these are too few."""
        views = self.objective.views
        patterns = [(np.count_nonzero(members[rows] & unlabelled[rows]), has) for rows, has in views.patterns()]
        patterns = sorted((one for one in patterns if one[0]), key=lambda one: -one[0])[:MAX_PATTERNS]
        parts = []
        for number, has in patterns:
            there = np.ones(views.n_samples, dtype=bool)
            for view, shown in zip(views, has, strict=True):
                if shown and view.present is not None:
                    there &= view.present
            samples = np.flatnonzero(there & unlabelled & judged & ~members)[: PROBE.max_samples]
            if len(samples) >= PROBE.min_samples:
                parts.append((number / len(samples), *self._score(samples, has)))
        if not parts:
            return None
        total = sum(weight * len(scores) for weight, scores, _ in parts) / sum(len(scores) for _, scores, _ in parts)
        scores = np.concatenate([scores for _, scores, _ in parts])
        targets = np.concatenate([weight / total * truth for weight, _, truth in parts])
        prior = self.calibration.overall.temperature
        return fit_calibration(scores, targets, self.abundance, prior, penalise=False)

    def _score(self, samples: NDArray, has: NDArray) -> tuple[NDArray, NDArray]:
        """Balanced scores of samples by some of their views, and their probabilities by all of them."""
        some, loadings, opinion = (
            self.objective.views.take(samples),
            self.start.state.loadings,
            self.start.second_opinion,
        )
        products = [view.dot(one) for view, one, shown in zip(some, loadings, has, strict=True) if shown]
        latent = embed_views(np.sum(products, axis=0), gram_of(loadings, has), self.objective.ridge)
        groups = None if self.objective.groups is None else self.objective.groups[samples]
        scores = np.maximum(self.average(latent, self.start.state.scores, groups, samples)[0], 0)
        if opinion is not None:
            scores = opinion.blend(scores, opinion.decide(opinion.by_view(some), np.tile(has, (len(samples), 1))))
        found = scores.sum(axis=1) > 0
        balanced = reweigh(self.scores[samples], self.weights)
        truth = self.calibration(balanced, self.kinds[samples], self.abundance)
        return reweigh(scores[found], self.weights), truth[found]
