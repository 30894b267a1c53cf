"""Answers for labelled samples whose labels were held out, from the latent positions that a fit has found."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.drawn_order import draw_numbers, numbers_of_new
from lmssc.core.graph import learn_graph, separate_groups
from lmssc.core.label_regression import LabelRegressor
from lmssc.core.laplacian import laplacian
from lmssc.core.nystroem import NystroemRows
from lmssc.core.prior_correction import balance
from lmssc.core.targets import Targets
from lmssc.core.warm_start import MAX_ROUNDS, warm_start
from lmssc.data.folds import assign_folds
from lmssc.numerics.knn.approximate import ApproximateKNN, choose_search
from lmssc.numerics.knn.exact import Search
from lmssc.numerics.scale import is_large
from lmssc.numerics.spatial_order import spatial_order

N_FOLDS = 5
"""Folds of held-out labels: each answer comes from a fit that has four fifths of the labels."""
MAX_ROUNDS_IF_FAST, TOLERANCE_IF_FAST = 1, 1e-4
"""Rounds of the warm start, and relative residual of the propagation, of very many samples:
the promise of p-values does not depend on how good the scores are."""
MIN_LABELS, MIN_LABELS_PER_CLASS = 900, 60
"""With so many labels, and so many of each class, a part of them is enough to rank answers by."""
MIN_HELD_OUT, MIN_PARTS = 1000, 3
"""That part is the smallest of a fifth to a third that has so many labels, if any has."""
ALWAYS_KNOWN = -2
"""Number of labelled samples that could be held out, but are not: enough others are."""


class LatentFit(NamedTuple):
    """Answers for all samples with some of the labels.

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Class scores, balanced.
    expected : ndarray of shape (n, c), or None
        P, as in `WarmStart`.
    regressor : LabelRegressor or None
        Predicts P from Z.
    """

    scores: NDArray
    expected: NDArray | None
    regressor: LabelRegressor | None


@dataclass(frozen=True)
class LatentProblem:
    """What is needed to label the samples of a fit again with other labels, samples in canonical order.

    The latent positions are those of the fit, so the views are not needed, and each repetition takes a fraction of the
    fit: a graph, propagation, regression of the labels, and the graph that this gives, as in the warm start.

    Attributes
    ----------
    embedded : ndarray of shape (n, r)
        Z.
    n_neighbors : int
        k.
    beta : float
        β.
    label_weight : float
        Weight of the expected scores P, relative to the variance of Z.
    prior_power : float
        Exponent of the prior correction, as for `balance`.
    shared_alpha : bool
        Whether all rows of S share one α.
    recall : float
        Recall of the neighbour search.
    groups : ndarray of int of shape (n,), or None
        Group of connected views of each sample, if there is more than one group.
    tol : float
        Relative residual of the propagation.
    links : csr_array of shape (n, n), or None
        What links between the samples add to the Laplacian of S.
    opinions : ndarray of shape (n, c), or None
        Second opinion Q on each sample, without its own label; None without trust in it.
    opinion_share : float
        t.
    positions : ndarray of int of shape (n,), or None
        Position of each sample in canonical order, if the samples are in spatial order instead.
    fast : bool
        Whether the samples are some or all of very many. The answers are then in single precision and from one round
        of the warm start, and neighbours are sought among candidates that are found once.
    candidates : ndarray of int of shape (n, p), or None
        Samples near to each, found without any label, among which neighbours are sought first.
    drawn : ndarray of int of shape (n,), or None
        The samples in random order, if their own is not.
    """

    embedded: NDArray
    n_neighbors: int
    beta: float
    label_weight: float
    prior_power: float
    shared_alpha: bool = False
    recall: float = 0.95
    groups: NDArray | None = None
    tol: float = 1e-6
    links: sparse.csr_array | None = None
    opinions: NDArray | None = None
    opinion_share: float = 0.0
    positions: NDArray | None = None
    fast: bool = False
    candidates: NDArray | None = None
    drawn: NDArray | None = None

    def take(self, rows: NDArray) -> "LatentProblem":
        """The same for some of the samples, or for all in another order; links to samples left out are lost."""
        groups, opinions = (None if part is None else part[rows] for part in (self.groups, self.opinions))
        links = None if self.links is None else self.links[rows][:, rows].tocsr()
        parts = {"embedded": self.embedded[rows], "groups": groups, "opinions": opinions, "links": links}
        drawn = None if self.drawn is None else np.argsort(np.argsort(self.drawn)[rows])
        return replace(self, **parts, drawn=drawn, candidates=None)

    @cached_property
    def graph(self) -> sparse.csr_array:
        """S on Z alone, which no label has seen."""
        if self.fast and self.positions is None:
            _, problem = self.in_space
            return problem.graph[problem.positions][:, problem.positions].tocsr()
        return self.connect(self.embedded, self._first_search)

    @cached_property
    def _first_search(self) -> Search:
        """The search for neighbours in Z alone."""
        search = self._new_search()
        if self.candidates is not None and isinstance(search, ApproximateKNN):
            search.set_state(self.candidates.copy())
        return search

    def _new_search(self) -> Search:
        if self.fast and self.recall < 1:
            return ApproximateKNN(self.recall)
        return choose_search(len(self.embedded), self.recall)

    @cached_property
    def features(self) -> NystroemRows:
        """Features of Z for the label regression."""
        return NystroemRows(self.embedded, self.positions if self.drawn is None else self.drawn)

    @cached_property
    def in_space(self) -> tuple[NDArray, "LatentProblem"]:
        """An order in which neighbours are close in memory, and the problem in this order."""
        order = spatial_order(self.embedded, drawn=self.drawn)
        positions = np.argsort(order)
        lists = self.candidates
        if lists is not None:
            lists = positions.astype(lists.dtype)[lists[order]]
        problem = replace(self.take(order), positions=positions, candidates=lists)
        if self.fast:
            single = problem.embedded.astype(np.float32)
            problem = replace(problem, embedded=single, tol=max(self.tol, TOLERANCE_IF_FAST))
        return order, problem

    def connect(self, points: NDArray, search: Search | None = None) -> sparse.csr_array:
        """S on coordinates of the samples; a search that is given starts from what it has found before."""
        if self.groups is not None:
            (points,) = separate_groups((points, self.groups))
        if search is None:
            search = self._new_search()
        k = min(self.n_neighbors, len(points) - 1)
        return learn_graph(points, k, self.beta, shared_alpha=self.shared_alpha, search=search)[0]

    def laplacian(self, graph: sparse.csr_array) -> sparse.csr_array:
        """L of the graph S, plus that of the links."""
        own = laplacian(graph)
        return own if self.links is None else (own + self.links.astype(own.dtype)).tocsr()

    def label(self, targets: Targets) -> NDArray:
        """Class scores of all samples with these labels, balanced; rows sum to 1."""
        return self.fit(targets).scores

    def fit(self, targets: Targets) -> "LatentFit":
        """The answers with these labels, and what the answers for new samples need."""
        if self.positions is None and (self.fast or is_large(len(self.embedded))):
            order, problem = self.in_space
            scores, expected, regressor = problem.fit(targets.take(order))
            back = problem.positions
            return LatentFit(scores[back], None if expected is None else expected[back], regressor)
        weight = self.label_weight * self.features.features.energy
        graph = self.graph
        learn: Callable[[NDArray], sparse.csr_array] = self.connect
        if self.positions is not None:
            # Candidates that no label has seen, whatever labels were held out before.
            search = self._new_search()
            search.set_state(deepcopy(self._first_search.state()))
            learn = partial(self.connect, search=search)
        start = warm_start(
            self.embedded,
            graph,
            targets,
            weight,
            learn,
            self.features,
            self.tol,
            spatially_ordered=self.positions is not None,
            make_laplacian=self.laplacian,
            max_rounds=MAX_ROUNDS_IF_FAST if self.fast else MAX_ROUNDS,
        )
        return LatentFit(balance(start.scores, targets.codes, self.prior_power), start.expected, start.regressor)

    def blend(self, scores: NDArray, opinions: NDArray | None) -> NDArray:
        """Scores of samples by the graph with the second opinion on them, as for a new sample.

        Only the opinion on the sample itself counts: those on its neighbours may have seen its label.
        """
        if self.opinions is None or opinions is None:
            return scores
        return (1 - self.opinion_share) * scores + self.opinion_share * opinions


@dataclass(frozen=True)
class HeldOutFolds:
    """Fold of each sample: there a labelled sample has its label held out; an unlabelled one is scored as it is.

    A sample without a label is answered by the fit of one fold only, as the held-out labels of that fold are. So it is
    one of them in all but its label, which is what the guarantee of prediction sets and of p-values rests on: the mean
    over all folds would be more certain than any held-out sample can be.

    Attributes
    ----------
    number : ndarray of int of shape (n,)
        Fold of each sample; −1 for labelled samples that cannot be held out, because their class has no other, and
        `ALWAYS_KNOWN` for those that need not be.
    n_folds : int
        Number of folds.
    along : ndarray of shape (n,)
        Where the samples are along the direction by which they are dealt.
    """

    number: NDArray
    n_folds: int
    along: NDArray

    @classmethod
    def draw(
        cls, targets: Targets, along: NDArray, groups: NDArray | None = None, n_folds: int = N_FOLDS
    ) -> "HeldOutFolds":
        """Folds that depend on the content of the samples alone, and neither on units nor on the last digit.

        Parameters
        ----------
        targets : Targets
            The labels.
        along : ndarray of shape (n,)
            Where the samples are along a random direction: see `drawn_order`.
        groups : ndarray of int of shape (n,), optional
            Group of each sample: a group is in one fold, labelled samples and others alike.
        n_folds : int
            Number of folds, without groups.

        Examples
        --------
        >>> targets = Targets.from_codes(np.array([0, 0, 1, 1, 2, -1]), 3)
        >>> HeldOutFolds.draw(targets, np.arange(6.0)).number[:5]
        array([ 1,  0,  1,  0, -1])
        """
        codes = targets.codes
        if groups is None:
            number = (draw_numbers(along) % np.uint64(n_folds)).astype(np.intp)
            number[targets.labelled] = _deal_labels(targets, along, n_folds)
            return cls(number, n_folds, along)
        number = _folds_of_groups(groups, targets.labelled, draw_numbers(along))
        # A class keeps a label in every fold: one whose labels are all in one fold is not held out.
        for code in range(targets.n_classes):
            own = codes == code
            if len(np.unique(number[own])) < 2:
                number[own] = -1
        return cls(number, N_FOLDS, along)

    @classmethod
    def draw_one(cls, targets: Targets, along: NDArray) -> "HeldOutFolds":
        """A single fold: a part of the labels, and all samples without one. For plenty of labels.

        This is split conformal prediction: the labels of the fold are ranked with the samples that have none, and the
        other labels are known to the one fit that scores both. It is as valid as several folds, for a fraction of the
        time.

        Examples
        --------
        >>> codes = np.repeat([0, 1, -1], [4, 6, 2])
        >>> folds = HeldOutFolds.draw_one(Targets.from_codes(codes, 2), np.arange(12.0))
        >>> [(int(number), int((folds.number == number).sum())) for number in (ALWAYS_KNOWN, 0)]
        [(-2, 6), (0, 6)]
        """
        dealt = _deal_labels(targets, along, count_parts(targets.n_labelled))
        number = np.zeros(len(targets), dtype=np.intp)
        number[targets.labelled] = np.where(dealt > 0, ALWAYS_KNOWN, dealt)
        return cls(number, 1, along)

    def take(self, rows: NDArray) -> "HeldOutFolds":
        """The folds of some of the samples."""
        return replace(self, number=self.number[rows], along=self.along[rows])

    def of_new(self, along: NDArray) -> NDArray:
        """Folds of new samples, by where they are along the same direction."""
        folds = np.array(self.used or [0])
        return folds[(numbers_of_new(self.along, along) % np.uint64(len(folds))).astype(np.intp)]

    @property
    def used(self) -> list[int]:
        """Folds that have any sample."""
        return [fold for fold in range(self.n_folds) if (self.number == fold).any()]


def has_plenty_of_labels(targets: Targets) -> bool:
    """Whether a part of the labels is enough to rank answers by: there are many, and many of each class.

    Examples
    --------
    >>> has_plenty_of_labels(Targets.from_codes(np.repeat([0, 1], [840, 60]), 2))
    True
    >>> has_plenty_of_labels(Targets.from_codes(np.repeat([0, 1], [2000, 59]), 2))
    False
    """
    counts = np.bincount(targets.codes[targets.labelled], minlength=targets.n_classes)
    return targets.n_labelled >= MIN_LABELS and bool(counts.min() >= MIN_LABELS_PER_CLASS)


def count_parts(n_labelled: int) -> int:
    """Into how many parts the labels are dealt of which one is held out.

    Examples
    --------
    >>> [count_parts(n) for n in (1000, 4500, 5000)]
    [3, 4, 5]
    """
    return int(np.clip(n_labelled // MIN_HELD_OUT, MIN_PARTS, N_FOLDS))


def _deal_labels(targets: Targets, along: NDArray, n_folds: int) -> NDArray:
    """Folds of the labelled samples, by their ranks among each other: another sample without a label changes none."""
    labelled = targets.labelled
    return assign_folds(targets.codes[labelled], n_folds, draw_numbers(along[labelled]), rotate=True)


def _folds_of_groups(groups: NDArray, labelled: NDArray, draw: NDArray) -> NDArray:
    """Deal groups to the folds, those with most labels first, each to the fold that has the fewest labels."""
    names, place = np.unique(groups, return_inverse=True)
    counts = np.bincount(place, labelled, len(names))
    first = np.full(len(names), np.iinfo(np.uint64).max)
    np.minimum.at(first, place, draw)
    fold, load = np.zeros(len(names), dtype=np.intp), np.zeros(N_FOLDS)
    for name in np.lexsort((first, -counts)):
        fold[name] = load.argmin()
        load[fold[name]] += counts[name] + 1e-3
    return fold[place]


def fold_scores(problem: LatentProblem, targets: Targets, folds: HeldOutFolds) -> NDArray:
    """Class scores of each sample from the fit of its own fold, whose labels are held out; NaN without a fold.

    Parameters
    ----------
    problem : LatentProblem
        The samples.
    targets : Targets
        All labels.
    folds : HeldOutFolds
        The folds.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> problem = LatentProblem(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), 2, 1.0, 0.0, 0.0)
    >>> targets = Targets.from_codes(np.array([0, 0, -1, 1, 1, -1]), 2)
    >>> folds = HeldOutFolds.draw(targets, np.arange(6.0))
    >>> fold_scores(problem, targets, folds).argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """
    result = np.full((len(targets), targets.n_classes), np.nan)
    for members, remaining in split_labels(targets, folds):
        opinions = None if problem.opinions is None else problem.opinions[members]
        result[members] = problem.blend(problem.label(remaining)[members], opinions)
    return result


def split_labels(targets: Targets, folds: HeldOutFolds) -> Iterator[tuple[NDArray, Targets]]:
    """For each fold its samples, and the labels of all others."""
    for fold in folds.used:
        members = np.flatnonzero(folds.number == fold)
        yield members, targets.without_labels(members)
