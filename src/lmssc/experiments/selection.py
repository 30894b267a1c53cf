"""Parameters chosen by the labelled rows alone: their labels are hidden in turn, and found again or not."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lmssc.estimators.base import MultiViewClassifier, Problem, Solution
from lmssc.experiments.methods import fit_and_answer
from lmssc.inputs import ViewSpec
from lmssc.order import content_order, scramble
from lmssc.parameters import COUNT, Rule
from lmssc.views import RawView

FOLDS = 3
"""Folds where the labels allow it."""


def count_folds(codes: NDArray, most: int = FOLDS) -> int:
    """Number of folds that leave each class a label: as many as the smallest class has, at most `most`.

    Parameters
    ----------
    codes : ndarray of int
        Class of each row, −1 without a label.
    most : int
        Folds that are wanted.

    Returns
    -------
    int
        0 if some class has one label only, which cannot be both learned from and held out.

    Examples
    --------
    >>> [count_folds(np.array(codes)) for codes in ([0, 0, 0, 0, 1, 1, -1], [0, 0, 1, -1])]
    [2, 0]
    """
    smallest = int(np.unique(codes[codes >= 0], return_counts=True)[1].min())
    return min(most, smallest) if smallest > 1 else 0


def labelled_folds(raws: Sequence[RawView], codes: NDArray, seed: int, most: int = FOLDS) -> list[NDArray]:
    """Rows to be held out together, each labelled row in one fold, the classes spread evenly.

    Parameters
    ----------
    raws : sequence of RawView
        The views. The folds depend on the numbers in the rows and the seed, not on the order of the rows.
    codes : ndarray of int
        Class of each row, −1 without a label.
    seed : int
        Decides the folds.
    most : int
        Folds that are wanted; see `count_folds`.

    Returns
    -------
    list of ndarray
        Row numbers of each fold; empty if nothing can be held out.

    Examples
    --------
    >>> view = RawView("a", np.arange(8.0)[:, None], None)
    >>> codes = np.array([0, 0, 0, 1, 1, 1, -1, -1])
    >>> [np.sort(codes[fold]).tolist() for fold in labelled_folds([view], codes, seed=0)]
    [[0, 1], [0, 1], [0, 1]]
    """
    n_folds = count_folds(codes, most)
    order = content_order(raws, codes)
    draw = np.empty(len(codes), dtype=np.uint64)
    draw[order.samples] = scramble(order.keys ^ scramble(np.array([seed], dtype=np.uint64)))
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    for code in np.unique(codes[codes >= 0]):
        members = np.flatnonzero(codes == code)
        dealt = members[np.argsort(draw[members], kind="stable")]
        for number, fold in enumerate(folds):
            fold.extend(dealt[number::n_folds])
    return [np.array(fold) for fold in folds]


def held_out_accuracy(
    estimator: Any, raws: list[RawView], codes: NDArray, folds: Sequence[NDArray], joined: Any = None
) -> float:
    """Share of the held-out labels that are found by fits to all rows with the other labels.

    Parameters
    ----------
    estimator : classifier
        Not changed; each fold gets a clone.
    raws : list of RawView
        The views.
    codes : ndarray of int
        Class of each row, −1 without a label.
    folds : sequence of ndarray
        Rows to be held out together.
    joined : array, optional
        The views side by side, for an estimator that takes one.

    Returns
    -------
    float

    Examples
    --------
    >>> from lmssc import GFHF
    >>> raws = [RawView("a", np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), None)]
    >>> codes = np.array([0, 0, -1, 1, 1, -1])
    >>> held_out_accuracy(GFHF(n_neighbors=2), raws, codes, labelled_folds(raws, codes, seed=0))
    1.0
    """
    right = 0
    for fold in folds:
        labels = codes.copy()
        labels[fold] = -1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit with fewer labels warns of is not about the data
            _, predicted = fit_and_answer(estimator, raws, labels, joined)
        answers = np.full(len(codes), -1)
        answers[labels < 0] = predicted
        right += int((answers[fold] == codes[fold]).sum())
    return right / sum(len(fold) for fold in folds)


def best_setting(accuracies: Sequence[float]) -> int:
    """Number of the best setting, the first of equals; NaN stands for one that failed.

    Examples
    --------
    >>> best_setting([float("nan"), 0.8, 0.9, 0.9])
    2
    """
    return int(np.argmax(np.nan_to_num(np.asarray(accuracies, dtype=float), nan=-1.0)))


class TransductiveSearch(MultiViewClassifier):
    """A classifier with the setting that finds most of the labels which are hidden from it in turn.

    All rows take part in every fit, as they do in the end; only labels are held out. What is not labelled is never
    scored, so the true labels of those rows cannot have a part in the choice.

    Parameters
    ----------
    estimator : MultiViewClassifier
        The classifier whose parameters are chosen.
    settings : list of dict
        Parameters to choose among. The first is taken in a tie, and if a class has a single label, because then nothing
        can be held out: let it be the usual one, such as ``{}``.
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X fall into views, as for the classifier.
    n_splits : int
        Folds, or fewer if a class has fewer labels.
    random_state : int
        Decides the folds.

    Attributes
    ----------
    best_params_ : dict
        The setting that was chosen.
    best_estimator_ : MultiViewClassifier
        The classifier with it, fitted with all labels.
    held_out_accuracies_ : list of float
        Share of the held-out labels that each setting found; empty if nothing could be held out.
    label_distributions_, transduction_, graph_, classes_, unreached_
        As the classifier has them.

    Examples
    --------
    >>> from lmssc import GFHF
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(200, labelled=0.2, random_state=0)
    >>> search = TransductiveSearch(GFHF(), [{}, {"n_neighbors": 150}]).fit(data.views, data.y)
    >>> search.best_params_
    {}
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_splits": Rule(lambda value: COUNT.accepts(value) and value >= 2, "an integer of at least 2"),
        "settings": Rule(lambda value: len(value) > 0, "a list of at least one dict of parameters"),
    }

    def __init__(
        self,
        estimator: MultiViewClassifier,
        settings: Sequence[Mapping[str, Any]],
        *,
        views: ViewSpec = None,
        n_splits: int = FOLDS,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.settings = settings
        self.views = views
        self.n_splits = n_splits
        self.random_state = random_state

    def _solve(self, problem: Problem) -> Solution:
        raws = self._in_user_order(problem.views)
        candidates = [clone(self.estimator).set_params(**setting) for setting in self.settings]
        folds = labelled_folds(raws, problem.codes, self.random_state, self.n_splits)
        self.held_out_accuracies_ = [
            held_out_accuracy(candidate, raws, problem.codes, folds) for candidate in candidates if folds
        ]
        best = best_setting(self.held_out_accuracies_) if folds else 0
        self.best_params_ = dict(self.settings[best])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "[0-9]+ of [0-9]+ samples are in parts of the graph")  # said by this one
            self.best_estimator_ = candidates[best].fit(
                {raw.name: raw.data for raw in raws}, problem.codes, {raw.name: raw.present for raw in raws}
            )
        fitted = self.best_estimator_
        return Solution(fitted.label_distributions_, fitted.graph_, fitted.unreached_)

    def _extend(self, raws: list[RawView]) -> NDArray:
        raws = self._in_user_order(raws)
        return self.best_estimator_.predict_proba(
            {raw.name: raw.data for raw in raws}, {raw.name: raw.present for raw in raws}
        )

    def _in_user_order(self, raws: list[RawView]) -> list[RawView]:
        """Views as the user numbered them, because a setting may name a view by its number."""
        return sorted(raws, key=lambda raw: self.view_names_.index(raw.name))
