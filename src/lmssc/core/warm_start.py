"""Rounds before the alternation: propagate labels over the graph, regress them on Z, learn the graph again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import relative_change
from lmssc.core.label_regression import LabelRegressor, Regression
from lmssc.core.laplacian import laplacian
from lmssc.core.nystroem import NystroemRows
from lmssc.core.propagation import Propagation, propagate
from lmssc.core.targets import Targets
from lmssc.numerics.matrices import Matrix

# More rounds change nothing.
MAX_ROUNDS = 3
# The rounds end when P changes by less than this share of itself: with many labels after the first.
MIN_CHANGE = 0.0125


class WarmStart(NamedTuple):
    """State after the warm start.

    Attributes
    ----------
    graph : csr_array of shape (n, n)
        S.
    laplacian : csr_array or ndarray of shape (n, n)
        L.
    scores : ndarray of shape (n, c)
        F.
    unreached : ndarray of bool of shape (n,)
        Samples in components of S without a label.
    regressor : LabelRegressor or None
        Regression of F on Z; None without a weight.
    expected : ndarray of shape (n, c), or None
        P, the prediction of `regressor`; with very many classes in fewer columns, with the same distances.
    initially_disconnected : ndarray of bool of shape (n,)
        Samples in components without a label of the first graph, which is on Z alone.
    """

    graph: sparse.csr_array
    laplacian: Matrix
    scores: NDArray
    unreached: NDArray
    regressor: LabelRegressor | None
    expected: NDArray | None
    initially_disconnected: NDArray


def warm_start(
    embedded: NDArray,
    graph: sparse.csr_array,
    targets: Targets,
    weight: float,
    learn: Callable[[NDArray], sparse.csr_array],
    features: NystroemRows | None = None,
    tol: float = 1e-10,
    *,
    spatially_ordered: bool = False,
    make_laplacian: Callable[[sparse.csr_array], Matrix] = laplacian,
    propagated: tuple[Matrix, Propagation] | None = None,
    max_rounds: int = MAX_ROUNDS,
) -> WarmStart:
    """Propagate labels over a graph that knows no labels, then over graphs that know more and more of them.

    Parameters
    ----------
    embedded : ndarray of shape (n, r)
        Z.
    graph : csr_array of shape (n, n)
        S on Z alone.
    targets : Targets
        Y.
    weight : float
        Weight of P in the squared distance; with 0 there is only one propagation.
    learn : callable
        Coordinates [Z, P] ↦ S.
    features : NystroemRows, optional
        Features of Z for the regression, if they are computed already.
    tol : float
        Relative residual of the propagation.
    spatially_ordered : bool
        As for `propagate`.
    make_laplacian : callable
        S ↦ L, with that of the links if there are any; dense or sparse.
    propagated : tuple (laplacian, propagation), optional
        L of `graph` and F on it, if they are known already.
    max_rounds : int
        Maximum number of graphs that know labels.

    Returns
    -------
    WarmStart

    Examples
    --------
    >>> from lmssc.core.graph import learn_graph
    >>> Z = np.array([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]])
    >>> learn = lambda points: learn_graph(points, 2, 1.0)[0]
    >>> targets = Targets.from_codes(np.array([0, -1, -1, -1, -1, 1]), 2)
    >>> warm_start(Z, learn(Z), targets, 1.0, learn).scores.argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """
    L, found = (make_laplacian(graph), None) if propagated is None else propagated
    rows = embedded if features is None else features
    rounds = _RoundsInMemory(embedded, targets, learn, make_laplacian, rows, tol, spatially_ordered, graph, L, found)
    regressor = run_rounds(rounds, weight, max_rounds)
    scores, unreached = rounds.found  # type: ignore[misc]
    disconnected = rounds.initially_disconnected
    return WarmStart(rounds.graph, rounds.laplacian, scores, unreached, regressor, rounds.expected, disconnected)


class Rounds(Protocol):
    """The samples of a warm start, wherever they are, and what its rounds do with them."""

    def propagate(self) -> None:
        """F on the present graph."""

    def begin_regression(self) -> Regression:
        """The regression of F on Z."""

    def known_scores(self) -> NDArray:
        """F of the samples of the regression."""

    def predict(self, candidate: LabelRegressor) -> float:
        """Predict F of all samples; the relative change of the predictions, infinite for the first."""

    def accept(self, compressed: LabelRegressor | None) -> None:
        """Take the predictions for P, or those of a regressor with the same distances in fewer columns."""

    def connect(self) -> None:
        """S from Z and P."""


def run_rounds(rounds: Rounds, weight: float, max_rounds: int = MAX_ROUNDS) -> LabelRegressor | None:
    """Propagate, regress, learn the graph again, until P hardly changes; the last regressor, None without a weight."""
    rounds.propagate()
    if not weight:
        return None
    regressor, regression = None, rounds.begin_regression()
    regression.adapt(rounds.known_scores())
    for _ in range(max_rounds):
        candidate = regression.fit(rounds.known_scores()).times(np.sqrt(weight))
        if rounds.predict(candidate) < MIN_CHANGE:
            break
        regressor = candidate.compressed()
        rounds.accept(None if regressor is candidate else regressor)
        rounds.connect()
        rounds.propagate()
    return regressor


@dataclass
class _RoundsInMemory:
    """`Rounds` of samples in memory: the arguments of `warm_start`, then what the rounds change."""

    embedded: NDArray
    targets: Targets
    learn: Callable[[NDArray], sparse.csr_array]
    make_laplacian: Callable[[sparse.csr_array], Matrix]
    rows: NDArray | NystroemRows
    tol: float
    spatially_ordered: bool
    graph: sparse.csr_array
    laplacian: Matrix
    found: Propagation | None
    initially_disconnected: NDArray = field(init=False)
    expected: NDArray | None = None
    predicted: NDArray | None = None
    wide: LabelRegressor | None = None

    def propagate(self) -> None:
        if self.expected is not None:
            start, ordered = self.found.scores, self.spatially_ordered  # type: ignore[union-attr]
            self.found = propagate(self.laplacian, self.targets, start, self.tol, spatially_ordered=ordered)
            return
        if self.found is None:
            ordered = self.spatially_ordered
            self.found = propagate(self.laplacian, self.targets, tol=self.tol, spatially_ordered=ordered)
        self.initially_disconnected = self.found.unreached

    def begin_regression(self) -> Regression:
        self.regression = Regression(self.rows, self.targets.labelled, weigh_classes=self.targets.has_classes)
        return self.regression

    def known_scores(self) -> NDArray:
        return self.found.scores  # type: ignore[union-attr]

    def predict(self, candidate: LabelRegressor) -> float:
        if candidate.is_wide:  # P are the predictions of a compressed one
            last, self.wide = self.wide, candidate
            return np.inf if last is None else candidate.change_from(last, self.regression.rows)
        before, self.predicted = self.predicted, candidate.at(self.regression.rows)
        return np.inf if before is None else relative_change(self.predicted, before)

    def accept(self, compressed: LabelRegressor | None) -> None:
        self.expected = self.predicted if compressed is None else compressed.at(self.regression.rows)

    def connect(self) -> None:
        self.graph = self.learn(np.hstack([self.embedded, self.expected]))  # type: ignore[list-item]
        self.laplacian = self.make_laplacian(self.graph)


def trusted_targets(targets: Targets, start: WarmStart) -> Targets:
    """Targets in which disagreeing labels of identical samples are shrunk towards the scores of their neighbours.

    Parameters
    ----------
    targets : Targets
        Y.
    start : WarmStart
        Graph and scores found with these targets.

    Returns
    -------
    Targets
        The same object if there is nothing to shrink.
    """
    opinions = start.graph @ np.maximum(start.scores, 0)
    return targets.shrink(opinions / opinions.sum(axis=1, keepdims=True))
