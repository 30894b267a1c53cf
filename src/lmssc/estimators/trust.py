"""How far to trust each answer: why, what if a label is wrong, none of these, and sets that keep their promise."""

import reprlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc.cluster.dask_views import map_blocks
from lmssc.core.conformal import class_p_values, count_of_scarce_kinds, interpolated_p_values
from lmssc.core.drawn_order import draw_samples
from lmssc.core.held_out_folds import ALWAYS_KNOWN, HeldOutFolds, LatentProblem, fold_scores
from lmssc.core.label_noise import LabelDoubt, doubt_labels
from lmssc.core.novelty import held_out_find_rates, new_find_rates
from lmssc.core.targets import Targets
from lmssc.data.parameters import COUNT, SHARE
from lmssc.data.validation import Masks, has_dask
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.explain import explain_new, explain_rows
from lmssc.estimators.explanation import Explanation
from lmssc.estimators.label_sets import certain_labels
from lmssc.estimators.new_sets import new_scores
from lmssc.estimators.once import once
from lmssc.estimators.suspects import Suspects
from lmssc.estimators.trust_state import (
    fitted_kinds,
    fitted_model,
    given_codes,
    label_folds,
    latent_problem,
    read_new,
    sample_names,
    suspicion_folds,
)

# Distinct samples without a label, at most, among which labels are suspected: as many as calibrate the confidence.
MAX_UNLABELLED = 3000


class TrustMixin:
    """Judges the answers of a fitted `LMSSC`, from what the fit has stored; the views are not needed."""

    def explain(
        self,
        rows: ArrayLike | None = None,
        n: int = 5,
        *,
        X: Any = None,
        present: Masks = None,
        ids: Sequence[str] | None = None,
    ) -> Explanation:
        """Why samples have their labels: the labelled samples that count most, with their weights.

        With the graph fixed, the scores of a sample are exactly a weighted mean of the given labels and, with the
        weight `regression`, of the second opinion. The prior correction and the calibration turn these scores into the
        final answer.

        Parameters
        ----------
        rows : array-like of int, optional
            Rows of the X of `fit`; all rows if both `rows` and X are None. Pass either `rows` or X, not both.
        n : int
            Number of labelled samples to name for each.
        X : as in `fit`, optional
            Samples to explain instead, new or from `fit`.
        present : as in `fit`, optional
            Which samples of X have which view.
        ids : sequence of str, optional
            Names of the samples of `fit`; by default those of the files that `lmssc classify` read, or row numbers.

        Returns
        -------
        Explanation

        Notes
        -----
        One sparse solve for each sample, in batches. From 10,000 samples on the weights are in single precision, to
        about 0.00003.
        """
        model = fitted_model(self)
        if not COUNT.accepts(n):
            raise ValueError(f"n must be {COUNT.wanted}, got {n!r}")
        if X is not None:
            if rows is not None:
                raise ValueError(
                    "pass rows (samples of fit) or X (other samples), not both; X[...] takes some rows of X"
                )
            found, distributions = read_new(model, X, present), model.predict_proba(X, present)
            return explain_new(model, found, distributions, n, sample_names(model, ids))
        return explain_rows(model, _check_rows(rows, len(model.transduction_)), n, sample_names(model, ids))

    def suspect_labels(self) -> Suspects:
        """Labels that the other labels contradict, the most suspect first.

        Labels are held out in folds and predicted from the latent positions of the fit, by a graph and by the means of
        the classes; if labels are few, also with those trusted less that others contradict. The graph of the fit is not
        used, because it has seen the labels and would support each of them too much. If there are more than 3,000
        distinct samples without a label, 3,000 of them are used. With many labels among very many samples, each half of
        the labels judges the other.

        Returns
        -------
        Suspects
        """
        model = fitted_model(self)
        return once(model, "suspects", lambda: _suspects(model, _doubt(model)))

    @property
    def overruled_(self) -> NDArray:
        """Rows of the X of `fit` whose given label differs from their label in `transduction_`."""
        model = fitted_model(self)
        codes = given_codes(model)
        return np.flatnonzero(model._labelled & (model.classes_[codes] != model.transduction_))

    @property
    def novelty_(self) -> NDArray:
        """How well each sample of `fit` goes with the labelled classes: a p-value, small for "none of these"."""
        model = fitted_model(self)
        if "_novelty" not in vars(model):
            folds = label_folds(model)
            rates = held_out_find_rates(latent_problem(model), model._targets, folds)
            model._novelty = _novelty(model, folds, rates, rates)[model._nodes]
        return model._novelty

    def novelty(self, X: Any, present: Masks = None) -> NDArray:
        """P-values that are small for samples unlike every labelled class.

        A random walk over a graph of neighbours that knows no labels should soon reach a label if the class of the
        sample has any. The p-value ranks how often it does among labelled samples whose labels are held out. If the
        labelled samples are a random choice of their classes, at most about 5 % of the samples of these classes have a
        p-value of 0.05 or less.

        Parameters
        ----------
        X : as in `fit`
            Samples; a sample of `fit` gets its `novelty_`.
        present : as in `fit`, optional
            Which samples have which view.

        Returns
        -------
        ndarray of shape (n,)
        """
        model = fitted_model(self)
        found, folds = read_new(model, X, present), label_folds(model)
        held_out, rates = new_find_rates(
            latent_problem(model), model._targets, folds, folds.of_new(found.along), found.weights, found.distances
        )
        result = _novelty(model, folds, held_out, rates)
        known = found.nodes >= 0
        if known.any():
            result[known] = self.novelty_[model._order.samples[found.nodes[known]]]
        return result

    def predict(self, X: Any, present: Masks = None, reject: float | None = None) -> NDArray:
        """Most likely class of each sample, known from fit or new.

        Parameters
        ----------
        X : as in `fit`
            Samples; views that a sample lacks are NaN.
        present : as in `fit`, optional
            Which samples have which view.
        reject : float, optional
            Samples whose `novelty` is at most this get no class: −1 if the classes are integers, otherwise None. 0.05
            rejects about 5 % of the samples of labelled classes. With m labels, no p-value is below 1 / (m + 1), so
            0.05 needs at least 19 labels, and more if classes have a single label. `predict` warns if nothing can be
            rejected.

        Returns
        -------
        ndarray of shape (n,)
        """
        if reject is not None and has_dask(X):
            return map_blocks(fitted_model(self), "predict", X, {"present": present, "reject": reject})
        labels = super().predict(X, present)  # type: ignore[misc]
        if reject is None:
            return labels
        if not SHARE.accepts(reject):
            raise ValueError(f"reject must be {SHARE.wanted}, got {reject!r}")
        least = _least_novelty(fitted_model(self))
        if least > reject:
            warn_caller(
                f"reject={reject:g} rejects nothing: with these labels no p-value is below {least:.2g}. Give more "
                "labels, at least two of each class, or raise reject",
            )
        rejected = self.novelty(X, present) <= reject
        if labels.dtype.kind not in "iu":
            labels = labels.astype(object)
            labels[rejected] = None
            return labels
        labels = labels.astype(np.result_type(labels.dtype, np.int8))
        labels[rejected] = -1
        return labels

    def predict_set(
        self,
        X: Any = None,
        coverage: float = 0.9,
        by_class: bool = False,
        groups: ArrayLike | None = None,
        present: Masks = None,
    ) -> NDArray:
        """Sets of classes that contain the true one with a given probability.

        Conformal prediction: labels are held out in folds, and a set contains each class whose p-value, its rank among
        the held-out labels, is above 1 − `coverage`. If many of very many samples have labels, one part of the labels
        is held out instead. The coverage holds on average over samples that are exchangeable with the labelled ones,
        for any data; and for samples that lack equally many views or links if at least 20 of them have labels. With
        few labels the sets are large: with fewer than nine, no class can be left out at 90 %.
        Holding out labels from the final graph would not be valid, because it has seen them.

        Parameters
        ----------
        X : as in `fit`, optional
            Samples; those of `fit` if None.
        coverage : float
            Probability that the set contains the true class.
        by_class : bool
            Whether the coverage holds for each class rather than on average. Classes with few labels are then in most
            sets.
        groups : array-like of shape (n,), optional
            Group of each sample of `fit`, such as patient or site. Labels of a group are held out together, so that the
            coverage holds for samples of a new group.
        present : as in `fit`, optional
            Which samples of X have which view.

        Returns
        -------
        ndarray of bool of shape (n, c)
            Columns as in `classes_`. The set of a labelled sample of `fit` is its label alone; if it is a distribution,
            the fewest classes whose shares reach the coverage. If trust in the label is less than the coverage, or the
            label is overruled, and for samples without a label that are identical to it, here or in X, the set has that
            label in addition to the classes that it would have without it. A set may be empty: then no class fits the
            sample well enough.

        Examples
        --------
        >>> from lmssc import LMSSC
        >>> from lmssc.datasets import make_multiview
        >>> data = make_multiview(300, labelled=0.2, random_state=0)
        >>> sets = LMSSC().fit(data.views, data.y).predict_set(coverage=0.9)
        >>> unlabelled = data.y == -1
        >>> bool(sets[unlabelled, data.target[unlabelled]].mean() > 0.8)
        True
        """
        model = fitted_model(self)
        if not (SHARE.accepts(coverage) and coverage < 1):
            raise ValueError(f"coverage must be a number between 0 and 1, got {coverage!r}")
        # The second opinion on a sample has seen the other labels of its group.
        folds, problem = label_folds(model, groups), latent_problem(model, second_opinion=groups is None)
        nodes, codes = _held_out_labels(model, folds)
        known, n_classes = fitted_kinds(model)[nodes], len(model.classes_)

        def p_values(held_out: NDArray, scores: NDArray, kinds: NDArray) -> NDArray:
            found = class_p_values(held_out[nodes], codes, scores, by_class=by_class, kinds=(known, kinds))
            found[np.isnan(scores).any(axis=1)] = 1.0  # copies of a label that cannot be held out: it could be anything
            result = np.empty_like(found)
            result[:, model._class_order] = found
            return result

        def of_fit(asked: NDArray) -> NDArray:
            held_out = _fold_scores(model, problem, folds, once_for_all=groups is None)
            return p_values(held_out, held_out[asked], fitted_kinds(model)[asked])

        labels = np.zeros((len(model._order.samples), n_classes), dtype=bool)
        labels[model._nodes[model._labelled], given_codes(model)[model._labelled]] = True
        if X is None:
            _warn_of_scarce_kinds(known, fitted_kinds(model)[model._nodes[~model._labelled]], coverage)
            result = (of_fit(model._nodes) > 1 - coverage) | labels[model._nodes]
            rows, shares = certain_labels(model, coverage)
            result[rows] = shares
            return result
        found = read_new(model, X, present, warn_of_units=True)
        _warn_of_scarce_kinds(known, found.kinds, coverage)
        held_out, scores = new_scores(model, problem, certain(model._targets), folds, found)
        values = p_values(held_out, scores, found.kinds)
        # Copies of samples of fit have the sets of these.
        copies = np.flatnonzero((found.nodes >= 0) & np.isnan(scores).any(axis=1))
        if len(copies):
            values[copies] = of_fit(found.nodes[copies])
        return (values > 1 - coverage) | (labels[found.nodes] & (found.nodes >= 0)[:, None])


def _warn_of_scarce_kinds(known: NDArray, asked: NDArray, coverage: float) -> None:
    """Warn of samples that lack views or links which nearly all labelled samples have."""
    count = count_of_scarce_kinds(known, asked) if len(asked) else 0
    if count:
        warn_caller(
            f"{count} of {len(asked)} samples lack views or links that nearly all labelled samples have: their sets "
            f"are made for samples that have them, and may contain the true class less often than {coverage:g}. Label "
            "some samples that lack them",
        )


def certain(targets: Targets) -> Targets:
    """The targets as they were given, all labels certain."""
    return replace(targets, trust=None)


def _fold_scores(model: Any, problem: LatentProblem, folds: HeldOutFolds, *, once_for_all: bool) -> NDArray:
    """Scores of all samples by the fits of their folds; those without groups are found once for all coverages."""
    if not once_for_all:
        return fold_scores(problem, certain(model._targets), folds)
    return once(model, "fold scores", lambda: fold_scores(problem, certain(model._targets), folds))


def _held_out_labels(model: Any, folds: HeldOutFolds) -> tuple[NDArray, NDArray]:
    """Distinct sample and class of each given label, in canonical order: what the sets are calibrated on.

    Identical samples count as often as they are labelled, each with its own label: where labels of copies differ, their
    majority would be wrong less often than they are. If all labels are repeated equally often, they count once.
    """
    rows = np.flatnonzero(model._labelled & (folds.number[model._nodes] != ALWAYS_KNOWN))
    codes = np.argsort(model._class_order)[given_codes(model)[rows]]
    pairs, counts = np.unique(np.stack([model._nodes[rows], codes]), axis=1, return_counts=True)
    nodes, codes = np.repeat(pairs, counts // np.gcd.reduce(counts), axis=1)
    return nodes, codes


def _check_rows(rows: ArrayLike | None, n_samples: int) -> NDArray:
    """Rows of the X of fit, as an array; all of them if None."""
    if rows is None:
        return np.arange(n_samples)
    asked = np.atleast_1d(np.asarray(rows))
    if asked.dtype.kind == "b":
        raise TypeError("rows must be row numbers of the X of fit, got booleans; use np.flatnonzero(rows)")
    if asked.ndim != 1 or (asked.size and asked.dtype.kind not in "iu"):
        raise TypeError(
            f"rows must be row numbers of the X of fit, got {reprlib.repr(rows)}; use X=... for other samples"
        )
    if asked.size and not (asked.min() >= 0 and asked.max() < n_samples):
        raise ValueError(f"rows must be from 0 to {n_samples - 1}, got {asked.min()} to {asked.max()}")
    return asked.astype(np.intp)


def _doubt(model: Any) -> LabelDoubt:
    """How likely each label of a fit is wrong, judged among all labelled samples and some of the others."""
    problem, targets, folds = latent_problem(model), certain(model._targets), suspicion_folds(model)
    others = np.flatnonzero(~targets.labelled)
    if len(others) <= MAX_UNLABELLED or problem.links is not None:  # links to samples left out would be lost
        return doubt_labels(problem, targets, folds)
    drawn = others[draw_samples(folds.along[others])[:MAX_UNLABELLED]]
    rows = np.sort(np.concatenate([np.flatnonzero(targets.labelled), drawn]))
    found = doubt_labels(problem.take(rows), targets.take(rows), folds.take(rows))
    scores, wrong = np.full((len(targets), targets.n_classes), np.nan), np.zeros(len(targets))
    scores[rows], wrong[rows] = found.scores, found.wrong
    return LabelDoubt(scores, wrong, found.noise)


def _suspects(model: Any, found: LabelDoubt) -> Suspects:
    """All labelled samples, in the order of the input, ranked by the doubt in their labels."""
    rows = np.flatnonzero(model._labelled)
    nodes, given = model._nodes[rows], given_codes(model)[rows]
    own_class = np.argsort(model._class_order)[given]
    score = found.scores[nodes, own_class]
    # A label that differs from those of its identical copies is judged by its own class.
    wrong = np.where(own_class == model._targets.codes[nodes], found.wrong[nodes], 1 - score)
    order = np.lexsort((rows, np.nan_to_num(score, nan=2.0), -np.nan_to_num(wrong, nan=-1.0)))
    best = np.nan_to_num(found.scores[nodes], nan=-1.0).argmax(axis=1)
    proposed = np.where(np.isnan(wrong), given, model._class_order[best])
    return Suspects(
        rows[order], model.classes_[given][order], model.classes_[proposed][order], wrong[order], found.noise
    )


def _novelty(model: Any, folds: HeldOutFolds, held_out: NDArray, rates: NDArray) -> NDArray:
    """P-values of samples whose walks find a label at these rates, among the labelled samples that were held out."""
    known = held_out[model._targets.labelled & (folds.number != ALWAYS_KNOWN)]
    seen = ~np.isnan(known)
    result = interpolated_p_values(-known[seen], -np.nan_to_num(rates, nan=np.inf), int((~seen).sum()))
    return np.minimum(result, 1.0)


def _least_novelty(model: Any) -> float:
    """The least p-value that a sample can have; labels that cannot be held out count as stranger than it."""
    folds = label_folds(model)
    labelled = model._targets.labelled & (folds.number != ALWAYS_KNOWN)
    n_held_out = int(np.isin(folds.number[labelled], folds.used).sum())
    n_labels = int(labelled.sum())
    return (n_labels - n_held_out + 1) / (n_labels + 1)
