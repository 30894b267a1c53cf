"""The first rounds: graph, labels propagated over it, what these let expect of a place, and again."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import relative_change
from lmssc.core.graph import laplacian
from lmssc.core.label_regression import Expectation, FeatureRows, Regression
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets

# Rounds, at most; more change nothing. They end when what is expected moves by less than this share: with many labels
# after the first.
MOST_ROUNDS = 3
AT_REST = 0.0125


class Settled(NamedTuple):
    """Graph S, class scores F, samples that no label reaches, the expectation and P by it, if it has a weight.

    `never_reached` are the samples that no label reaches on the first graph either.
    """

    graph: sparse.csr_array
    scores: NDArray
    unreached: NDArray
    expectation: Expectation | None
    expected: NDArray | None
    never_reached: NDArray


def settle(
    places: NDArray,
    graph: sparse.csr_array,
    targets: Targets,
    weight: float,
    learn: Callable[[NDArray], sparse.csr_array],
    rows: FeatureRows | None = None,
    tol: float = 1e-10,
) -> Settled:
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
    rows : FeatureRows, optional
        Features of the places, if they are known.
    tol : float
        Relative residual of the propagation.

    Returns
    -------
    Settled

    Examples
    --------
    >>> from lmssc.core.graph import learn_graph
    >>> Z = np.array([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]])
    >>> learn = lambda points: learn_graph(points, 2, 1.0)[0]
    >>> settle(Z, learn(Z), Targets.from_codes(np.array([0, -1, -1, -1, -1, 1]), 2), 1.0, learn).scores.argmax(axis=1)
    array([0, 0, 0, 1, 1, 1])
    """
    scores, unreached = propagate(laplacian(graph), targets, tol=tol)
    expectation = expected = None
    never_reached = unreached
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
    return Settled(graph, scores, unreached, expectation, expected, never_reached)
