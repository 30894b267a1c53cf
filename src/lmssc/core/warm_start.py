"""The first rounds: graph, labels propagated over it, what these let expect of a place, and again."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import relative_change
from lmssc.core.graph import laplacian
from lmssc.core.label_regression import LabelRegressor, NystroemRows, Regression
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets

# Rounds, at most; more change nothing. They end when what is expected moves by less than this share: with many labels
# after the first.
MOST_ROUNDS = 3
AT_REST = 0.0125


class WarmStart(NamedTuple):
    """Graph S, class scores F, samples that no label reaches, the expectation and P by it, if it has a weight.

    `initially_disconnected` are the samples that no label reaches on the first graph either.
    """

    graph: sparse.csr_array
    scores: NDArray
    unreached: NDArray
    expectation: LabelRegressor | None
    expected: NDArray | None
    initially_disconnected: NDArray


def warm_start(
    places: NDArray,
    graph: sparse.csr_array,
    targets: Targets,
    weight: float,
    learn: Callable[[NDArray], sparse.csr_array],
    rows: NystroemRows | None = None,
    tol: float = 1e-10,
) -> WarmStart:
    """Labels from a graph that knows no labels, and then from graphs that know more and more of them.

    Parameters
    ----------
    places : ndarray of shape (n, r)
        Z.
    graph : csr_array of shape (n, n)
        S on Z alone.
    targets : Targets
        Y.
    weight : float
        Weight of the expected scores in the squared distance; 0 leaves them out.
    learn : callable
        Places ↦ S.
    rows : NystroemRows, optional
        NystroemFeatures of the places, if they are known.
    tol : float
        Relative residual of the propagation.

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
    scores, unreached = propagate(laplacian(graph), targets, tol=tol)
    expectation = expected = None
    initially_disconnected = unreached
    if weight:
        regression = Regression(places if rows is None else rows, targets.labelled)
        regression.adapt(scores)
        for _ in range(MOST_ROUNDS):
            candidate = regression.fit(scores).times(np.sqrt(weight))
            moved = candidate.at(regression.rows)
            if expected is not None and relative_change(moved, expected) < AT_REST:
                break
            expectation, expected = candidate, moved
            graph = learn(np.hstack([places, expected]))
            scores, unreached = propagate(laplacian(graph), targets, scores, tol)
    return WarmStart(graph, scores, unreached, expectation, expected, initially_disconnected)
