"""A fit to very many classes: nothing of the size samples × classes is ever dense.

J sees the labels through codes of a few hundred dimensions, in which distances between label distributions are nearly
the same. The scores themselves are sparse: see `sparse_scores`.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.begin import begin
from lmssc.core.calibration import Calibration, GroupedCalibration
from lmssc.core.class_codes import CodedTargets, label_matrix
from lmssc.core.drawn_order import draw_order
from lmssc.core.fit import iterate, make_result, with_alpha
from lmssc.core.fit_config import FitConfig, FitContext, FitHooks
from lmssc.core.fit_result import Answers, FitResult
from lmssc.core.held_out import MAX_CALIBRATION_SAMPLES
from lmssc.core.objective import IterationState
from lmssc.core.self_consistency import has_few_labels
from lmssc.core.sparse_scores import (
    balance_sparsely,
    calibrate_sparsely,
    fit_sparse_calibration,
    propagate_sparsely,
    replace_rows,
)
from lmssc.core.start import Start
from lmssc.core.targets import Targets
from lmssc.data.views import Views

MIN_CLASSES = 1000
"""Up to so many classes, scores are dense, however many samples there are."""
MAX_DENSE_SCORES = 25_000_000
"""More scores, samples times classes, are sparse: a dense fit holds about 20 arrays of them."""


def has_many_classes(n_samples: int, n_classes: int) -> bool:
    """Whether scores are sparse.

    Examples
    --------
    >>> has_many_classes(22_000, 20_000), has_many_classes(1_000_000, 100), has_many_classes(4000, 1000)
    (True, False, False)
    """
    return n_classes > MIN_CLASSES and n_samples * n_classes > MAX_DENSE_SCORES


def fit_many_classes(
    views: Views,
    targets: Targets,
    config: FitConfig,
    hooks: FitHooks,
    context: FitContext,
    groups: NDArray | None = None,
) -> FitResult:
    """`fit` to very many classes.

    There is no second opinion, and no graph of the views. The confidence is calibrated on one label of each class that
    has two: all of these are held out at once. With fewer than three labels per class on average there is no prior
    correction: the scores of a class that has one or two samples are chance.

    Parameters
    ----------
    views, targets, config, hooks, context, groups
        As for `fit`; labels are certain.

    Returns
    -------
    FitResult
        Its `scores` are a CSR array: the largest of each sample, calibrated. What a row lacks of 1 belongs to classes
        that are not listed.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.3], [5.0], [5.1], [5.3]])
    >>> targets = Targets.from_codes(np.array([0, -1, -1, 1, -1, -1]), 2)
    >>> config = FitConfig(n_neighbors=2)
    >>> found = fit_many_classes(Views.from_arrays([X]), targets, config, FitHooks(), FitContext())
    >>> found.scores.toarray().argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """
    if context.cache is None:  # the start is repeated with held-out labels
        context = replace(context, cache={})
    power = 0.0 if has_few_labels(targets) else config.balance
    plain = replace(config, calibrate=False, second_opinion=0.0, balance=power)
    start = begin(views, CodedTargets.of(targets), plain, context, groups)
    state, terms, converged = iterate(start, [start.state], config, hooks, context)
    state = with_alpha(start, state)
    raw, unreached = _scores(start, state, targets)
    calibration = Calibration()
    if config.calibrate:
        calibration = _calibrate(views, targets, plain, context, groups, start, raw, unreached)
    balanced = balance_sparsely(raw, targets.codes, power)
    fixed = np.flatnonzero(targets.labelled | unreached)
    scores = replace_rows(calibrate_sparsely(balanced, calibration), fixed, raw[fixed])
    answers = Answers(scores, scores, unreached, GroupedCalibration(calibration, {}), targets)
    return make_result(views, start, state, config, answers, terms, converged)


def _scores(start: Start, state: IterationState, targets: Targets) -> tuple[sparse.csr_array, NDArray]:
    """Sparse scores on a graph of the fit, and the samples that no label reaches; in canonical order."""
    permutation = start.permutation
    scores, unreached = propagate_sparsely(state.laplacian, permutation.apply_to_targets(targets))
    return (scores if permutation.positions is None else scores[permutation.positions]), permutation.undo(unreached)


def _calibrate(
    views: Views,
    targets: Targets,
    config: FitConfig,
    context: FitContext,
    groups: NDArray | None,
    start: Start,
    raw: sparse.csr_array,
    unreached: NDArray,
) -> Calibration:
    """Calibration of the final scores, to match those of the warm start, which held-out labels calibrate."""
    drawn = draw_order(start.permutation.shuffled_samples(len(targets)), lambda: views)
    held_out = one_label_of_each_class(targets.codes, drawn)
    if not len(held_out):
        return Calibration()
    known = targets.without_labels(held_out)
    again = begin(views, CodedTargets.of(known), config, context, groups)
    found, lost = _scores(again, again.state, known)
    judged = held_out[~lost[held_out]]
    found = balance_sparsely(found, known.codes, config.balance)
    first = fit_sparse_calibration(found[judged], label_matrix(targets)[judged])
    before, _ = _scores(start, start.state, targets)
    unlabelled = drawn[(~targets.labelled & ~unreached)[drawn]][:MAX_CALIBRATION_SAMPLES]
    if not len(unlabelled):
        return first
    expected, final = (balance_sparsely(one, targets.codes, config.balance)[unlabelled] for one in (before, raw))
    return fit_sparse_calibration(final, calibrate_sparsely(expected, first), first.temperature, penalise=False)


def one_label_of_each_class(codes: NDArray, order: NDArray) -> NDArray:
    """The first labelled sample, in a random order, of each class that has another.

    Examples
    --------
    >>> one_label_of_each_class(np.array([2, 0, -1, 0, 0, 1]), np.arange(6))
    array([1])
    """
    labelled = order[codes[order] >= 0]
    _, first, counts = np.unique(codes[labelled], return_index=True, return_counts=True)
    return np.sort(labelled[first[counts > 1]])
