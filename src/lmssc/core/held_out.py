"""Labels that are held out in folds, and the warm start without those of each fold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.calibration import (
    Calibration,
    GroupedCalibration,
    abundances,
    calibration_sample,
    fit_by_kind,
    fit_calibration,
    held_out_folds,
)
from lmssc.core.dense_propagation import MAX_SAMPLES, dense_laplacian
from lmssc.core.drawn_order import draw_numbers, project_views
from lmssc.core.fit_config import FitConfig
from lmssc.core.nystroem import NystroemRows
from lmssc.core.objective import Objective
from lmssc.core.permutation import Permutation
from lmssc.core.prior_correction import balance
from lmssc.core.propagation import propagate_without
from lmssc.core.self_consistency import WEIGHT, draw_labels, expected_classes, has_few_labels
from lmssc.core.targets import Targets
from lmssc.core.warm_start import WarmStart, warm_start
from lmssc.data.views import Views
from lmssc.numerics.knn.approximate import choose_search
from lmssc.numerics.knn.exact import Search
from lmssc.numerics.matrices import Matrix

MIN_LIKELIHOOD = 1e-3
"""Smaller likelihoods count as this, so that a single held-out label does not decide between two starts."""
MAX_CALIBRATION_SAMPLES = 3000
"""The confidence is calibrated on at most this many samples, and two of each class."""
MIN_CALIBRATION_LABELS = 300
"""If fewer of them have a label, as many labelled ones are added as there are: 20,000 short texts with 200 labels were
judged by 29 of these, which could not tell that the second opinion has twice the accuracy of the graph."""
TOLERANCE = 1e-5
"""Relative residual of the solver while labels are held out: a calibration needs no more digits."""


@dataclass(frozen=True)
class FirstGraph:
    """What the warm start and its calibration both begin with.

    Attributes
    ----------
    embedded : ndarray of shape (n, r)
        Z.
    graph : csr_array of shape (n, n)
        S on Z alone.
    features : NystroemRows
        Features of Z for the label regression.
    label_weight : float
        Weight of the expected scores, in units of squared distances in Z.
    search : Search
        The search that found the graph, which knows the neighbours in Z.
    """

    embedded: NDArray
    graph: sparse.csr_array
    features: NystroemRows
    label_weight: float
    search: Search


class Fold(NamedTuple):
    """Samples whose labels are held out together, the other targets, and the warm start with these."""

    rows: NDArray
    targets: Targets
    warm: WarmStart


@dataclass(frozen=True)
class HeldOutLabels:
    """Labels that are held out in folds, and the warm start without those of each fold.

    Attributes
    ----------
    views : Views
        Scaled views of the samples.
    targets : Targets
        Y, with all labels.
    kinds : ndarray of int of shape (n,)
        What each sample lacks: see `kinds_of`.
    prior_power : float
        Exponent of the prior correction, as for `balance`.
    folds : list of Fold
        Empty if no class has two labels.
    complete : bool
        Whether these are all samples of the fit.
    consistency : list of (scores, classes)
        With next to no labels: scores of samples from labels that are answers, and the classes that they are taken to
        have; see `self_consistency`.
    view_graph : csr_array of shape (n, n), or None
        Mean of the views' own graphs, if these are all samples and it has a weight.
    cache : dict
        Calibrations by a hash of the scores that they were fitted to: the same are asked for up to three times.
    """

    views: Views
    targets: Targets
    kinds: NDArray
    prior_power: float
    folds: list[Fold]
    complete: bool
    consistency: Sequence[tuple[NDArray, NDArray]] = ()
    view_graph: sparse.csr_array | None = None
    cache: dict[bytes, Calibration] = field(default_factory=dict)

    @cached_property
    def rows(self) -> NDArray:
        """All samples whose labels are held out, fold by fold."""
        return np.concatenate([np.empty(0, dtype=np.intp), *(fold.rows for fold in self.folds)])

    def balanced(self, scores: Sequence[NDArray]) -> NDArray:
        """Balanced scores of the held-out samples, from the scores of all samples in each fold."""
        parts = [np.empty((0, self.targets.n_classes))]
        for fold, found in zip(self.folds, scores, strict=True):
            parts.append(np.maximum(balance(found, fold.targets.codes, self.prior_power)[fold.rows], 0))
        return np.concatenate(parts)

    def calibrate(self, scores: NDArray) -> GroupedCalibration:
        """Calibration by the balanced scores of the held-out samples, and by self-consistency if labels are few."""
        known, kinds = self._known, self.kinds[self.rows]
        if self.consistency:
            found, classes = (np.concatenate(part) for part in zip(*self.consistency, strict=True))
            known = np.concatenate([known, classes * (WEIGHT / len(classes))])
            scores = np.concatenate([scores, found])
            kinds = np.concatenate([kinds, np.zeros(len(found), dtype=kinds.dtype)])
            return fit_by_kind(scores, known, kinds, self._abundance)
        return fit_by_kind(scores, known, kinds, self._abundance, shared=self._calibration(scores))

    def log_likelihoods(self, scores: NDArray) -> NDArray:
        """Log-likelihood of each held-out label, after a calibration of their balanced scores."""
        probabilities = self._calibration(scores)(scores, self._abundance)
        return (self._known * np.log(np.maximum(probabilities, np.finfo(float).tiny))).sum(axis=1)

    def _calibration(self, scores: NDArray) -> Calibration:
        """The calibration of balanced scores of the held-out samples, all classes with the same doubt."""
        key = sha256(scores.tobytes()).digest()
        if key not in self.cache:
            self.cache[key] = fit_calibration(scores, self._known, self._abundance)
        return self.cache[key]

    def log_likelihood(self, scores: NDArray) -> float:
        """Log-likelihood of the held-out labels, after a calibration of their balanced scores."""
        return float(self.log_likelihoods(scores).sum())

    @cached_property
    def fold_numbers(self) -> NDArray:
        """The fold of each of `rows`."""
        return np.repeat(np.arange(len(self.folds)), [len(fold.rows) for fold in self.folds])

    def log_likelihood_by_frequencies(self) -> float:
        """Log-likelihood of the held-out labels given the class frequencies of the others, one label added to each."""
        counts = np.bincount(self.targets.codes[self.targets.codes >= 0], minlength=self.targets.n_classes)
        frequencies = np.maximum(counts, 1) / (counts.sum() - 1 + len(counts))
        return float((self._known @ np.log(frequencies)).sum())

    def losses(self, scores: NDArray, calibration: GroupedCalibration) -> NDArray:
        """−ln p of each held-out label, given the balanced scores and their calibration."""
        probabilities = self.probabilities(scores, calibration)
        likelihood = (self._known * probabilities).sum(axis=1) / self._known.sum(axis=1)
        return -np.log(np.maximum(likelihood, MIN_LIKELIHOOD))

    def probabilities(self, scores: NDArray, calibration: GroupedCalibration) -> NDArray:
        """Calibrated probabilities of the held-out samples, given their balanced scores."""
        return calibration(scores, self.kinds[self.rows], self._abundance)

    @cached_property
    def _known(self) -> NDArray:
        return self.targets.matrix(np.dtype(float))[self.rows]

    @cached_property
    def _abundance(self) -> NDArray:
        return class_abundances(self.targets.codes, self.targets.n_classes)


def hold_out(
    objective: Objective,
    first: FirstGraph,
    permutation: Permutation,
    config: FitConfig,
    dealt_by: Views | None = None,
) -> HeldOutLabels:
    """Hold out labels in turn, and repeat the warm start without them, on some of the samples if they are many.

    Parameters
    ----------
    objective : Objective
        The problem, in the order of the fit.
    first : FirstGraph
        What the warm start began with.
    permutation : Permutation
        Order of the fit.
    config : FitConfig
        Parameters of the fit.
    dealt_by : Views, optional
        As for `begin`.

    Returns
    -------
    HeldOutLabels
    """
    n_samples, tol = len(first.embedded), max(objective.tolerance(), TOLERANCE)
    complete = permutation.is_identity and n_samples <= MAX_CALIBRATION_SAMPLES
    if complete:
        numbers = draw_numbers(project_views(objective.views if dealt_by is None else dealt_by))
    else:
        order, codes = permutation.shuffled(n_samples), objective.targets.codes
        chosen = order[calibration_sample(codes[order], MAX_CALIBRATION_SAMPLES, MIN_CALIBRATION_LABELS)]
        objective = replace(
            objective,
            views=objective.views.take(chosen),
            targets=objective.targets.take(chosen),
            groups=None if objective.groups is None else objective.groups[chosen],
            links=None if objective.links is None else objective.links.take(chosen),
        )
        embedded, n_more = first.embedded[chosen], objective.targets.n_classes if first.label_weight else None
        search = choose_search(n_samples, config.neighbor_recall, n_more)
        graph = objective.connect(embedded, search)
        canonical = chosen if permutation.order is None else permutation.order[chosen]
        numbers = draw_numbers(project_views(objective.views if dealt_by is None else dealt_by.take(canonical)))
        features = NystroemRows(embedded, np.argsort(numbers, kind="stable"))
        first = FirstGraph(embedded, graph, features, first.label_weight, search)
    return hold_out_of(objective, first, tol, config.balance, complete=complete, fold_numbers=numbers)


def hold_out_of(
    objective: Objective,
    first: FirstGraph,
    tol: float,
    prior_power: float,
    *,
    complete: bool,
    fold_numbers: NDArray | None = None,
) -> HeldOutLabels:
    """Hold out labels of the samples of `objective`, and repeat the warm start."""
    views, targets, kinds = objective.views, objective.targets, objective.sample_kinds()
    make_laplacian: Callable[[sparse.csr_array], Matrix] = objective.laplacian
    if len(targets) <= MAX_SAMPLES:
        links = None if objective.links is None else objective.links.laplacian
        make_laplacian = partial(dense_laplacian, links=links)
    run = partial(
        warm_start,
        first.embedded,
        first.graph,
        weight=first.label_weight,
        learn=partial(objective.connect, search=first.search),
        features=first.features,
        tol=tol,
        make_laplacian=make_laplacian,
    )
    drawn_numbers = draw_numbers(project_views(views)) if fold_numbers is None else fold_numbers
    folds, held_out = [], held_out_folds(targets.codes, drawn_numbers)
    L = make_laplacian(first.graph)
    for held, found in zip(held_out, propagate_without(L, targets, held_out, tol), strict=True):
        known = targets.without_labels(held)
        folds.append(Fold(held, known, run(targets=known, propagated=(L, found))))
    consistency = []
    if has_few_labels(targets):

        def label(known: Targets) -> NDArray:
            return balance(run(targets=known).scores, known.codes, prior_power)

        consistency = _answers_again(label, targets, kinds, np.argsort(drawn_numbers, kind="stable"))
    return HeldOutLabels(views, targets, kinds, prior_power, folds, complete, consistency)


def _answers_again(
    label: Callable[[Targets], NDArray], targets: Targets, kinds: NDArray, order: NDArray
) -> list[tuple[NDArray, NDArray]]:
    """Scores of samples from labels that are answers, and the classes that they are taken to have.

    `label` gives the scores of all samples with some labels, and `order` is a random order of them.
    """
    answers, found = label(targets).argmax(axis=1), []
    for drawn in draw_labels(answers, targets, order):
        rows = np.flatnonzero(~drawn.labelled & (kinds == 0))
        if len(rows):
            scores = np.maximum(label(drawn)[rows], 0)
            found.append((scores, expected_classes(scores, answers[rows])))
    return found


def class_abundances(codes: NDArray, n_classes: int) -> NDArray:
    """`abundances` of the classes of labelled samples; `codes` are −1 without a label.

    Examples
    --------
    >>> class_abundances(np.repeat([0, 1, -1], [99, 1, 50]), 2)
    array([1.  , 0.02])
    """
    return abundances(np.bincount(codes[codes >= 0], minlength=n_classes))
