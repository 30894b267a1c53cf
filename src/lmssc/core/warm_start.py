"""Rounds before the alternation: propagate labels over the graph, regress them on Z, learn the graph again."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import relative_change
from lmssc.core.graph import laplacian
from lmssc.core.label_regression import LabelRegressor, NystroemRows, Regression
from lmssc.core.propagation import Propagation, propagate
from lmssc.core.targets import Targets

# More rounds change nothing.
MAX_ROUNDS = 3
# The rounds end when P changes by less than this share of itself: with many labels after the first.
MIN_CHANGE = 0.0125


class WarmStart(NamedTuple):
    """State after the warm start.

    Attributes
    ----------
    graph, laplacian : csr_array of shape (n, n)
        S and L.
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
    laplacian: sparse.csr_array
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
    make_laplacian: Callable[[sparse.csr_array], sparse.csr_array] = laplacian,
    propagated: tuple[sparse.csr_array, Propagation] | None = None,
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
        S ↦ L, with that of the links if there are any.
    propagated : tuple (laplacian, propagation), optional
        L of `graph` and F on it, if they are known already.

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
    if propagated is None:
        L = make_laplacian(graph)
        scores, unreached = propagate(L, targets, tol=tol, spatially_ordered=spatially_ordered)
    else:
        L, (scores, unreached) = propagated
    regressor = expected = previous = None
    initially_disconnected = unreached
    if weight:
        rows = embedded if features is None else features
        regression = Regression(rows, targets.labelled, weigh_classes=targets.has_classes)
        regression.adapt(scores)
        for _ in range(MAX_ROUNDS):
            candidate = regression.fit(scores).times(np.sqrt(weight))
            predicted = candidate.at(regression.rows)
            if previous is not None and relative_change(predicted, previous) < MIN_CHANGE:
                break
            previous, regressor = predicted, candidate.compressed()
            expected = predicted if regressor is candidate else regressor.at(regression.rows)
            graph = learn(np.hstack([embedded, expected]))
            L = make_laplacian(graph)
            scores, unreached = propagate(L, targets, scores, tol, spatially_ordered=spatially_ordered)
    return WarmStart(graph, L, scores, unreached, regressor, expected, initially_disconnected)


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
