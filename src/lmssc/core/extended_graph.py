"""New samples join a learned graph: their rows, and the rows of old samples that are nearer to them than to others."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.graph import MAX_NEIGHBORS, adaptive_alpha, graph_from_rows, mean_squared_distances, simplex_rows
from lmssc.numerics.knn.exact import listed_distances, other_neighbors
from lmssc.numerics.knn.mutual import near_pairs
from lmssc.numerics.knn.topk import concat_ranges


@dataclass(frozen=True)
class GraphRule:
    """How S is learned from the coordinates of the samples.

    Attributes
    ----------
    n_neighbors : int
        k.
    beta, gamma : float
        β, and γ in the units of the coordinates.
    recall : float
        Recall of the neighbour search; 1 is exact.
    """

    n_neighbors: int
    beta: float
    gamma: float
    recall: float = 1.0


class ExtendedRows(NamedTuple):
    """The extended graph, α of each row, and the old rows that changed."""

    graph: sparse.csr_array
    alpha: NDArray
    changed: NDArray


class ExtendedGraph:
    """A learned graph that new samples join, for given class scores.

    The rows of new samples are those of the update of S. An old row changes if a new sample is nearer than the distance
    at which its weights reach zero; it is then the update of S over its neighbours and these new samples, which is
    exact, because its other old samples were too far before and still are. Its α is again the largest that leaves at
    most k neighbours. All other rows stay as they are.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        S of the old samples.
    alpha : ndarray of shape (n,)
        α of its rows.
    coordinates : ndarray of shape (n + m, q)
        Z, and P beside it, of the old samples, and of the new samples after them.
    scores : ndarray of shape (n, c)
        F of the old samples.
    rule : GraphRule
        How S is learned.

    Examples
    --------
    >>> S = sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> points, F = np.array([[0.0], [1.0], [4.0], [3.0]]), np.zeros((4, 2))
    >>> alpha = np.array([2.0, 2.0, 1.75])  # with k = 1
    >>> extended = ExtendedGraph(S, alpha, points, F[:3], GraphRule(n_neighbors=1, beta=1.0, gamma=1.0))
    >>> extended.connect(F).graph.toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 1., 0.]])
    """

    def __init__(
        self, graph: sparse.csr_array, alpha: NDArray, coordinates: NDArray, scores: NDArray, rule: GraphRule
    ) -> None:
        self.graph, self.alpha, self.rule = graph, alpha, rule
        self.n_old, self.n_new = graph.shape[0], len(coordinates) - graph.shape[0]
        self.points = coordinates * coordinates.dtype.type(np.sqrt(rule.beta))
        self.new = np.arange(self.n_old, len(coordinates))
        reach = np.full(len(coordinates), -np.inf, dtype=self.points.dtype)
        reach[: self.n_old] = self._heights(scores)
        self._length = min(2 * rule.n_neighbors + 2, len(coordinates) - 1)
        found = near_pairs(self.points, self.points[self.n_old :], self._length + 1, reach, rule.recall)
        other = found.points != self.new[found.queries]
        query, point, distances = (part[other] for part in found)
        starts = np.searchsorted(query, np.arange(self.n_new))
        first = starts[:, None] + np.arange(self._length)
        self._listed, self._distances = point[first], distances[first]
        seen = distances < reach[point]
        order = np.lexsort((query[seen], point[seen]))
        # Old samples that new ones may be neighbours of, and these; scores decide, which only add to a distance.
        self._reach = reach
        self._seeing, self._seen = point[seen][order], self.n_old + query[seen][order]

    def _heights(self, scores: NDArray) -> NDArray:
        """Squared distance at which the weights of each old row reach zero: that of each neighbour + 4αβ·its weight."""
        points = np.hstack([self.points[: self.n_old], scores * scores.dtype.type(np.sqrt(self.rule.gamma))])
        squares = np.asarray(self.graph.power(2).sum(axis=1)).ravel()
        return mean_squared_distances(self.graph, points, points) + 4 * self.rule.beta * self.alpha * squares

    def first_scores(self, scores: NDArray, default: NDArray) -> NDArray:
        """Scores of the new samples before any propagation: means over their old neighbours by coordinates alone."""
        weights, _ = self._weights(self._listed, self._distances)
        old = weights[:, : self.n_old]
        known = np.asarray(old.sum(axis=1)).ravel()
        means = (old @ scores) / np.maximum(known, np.finfo(scores.dtype).tiny)[:, None]
        return np.where((known > 0)[:, None], means, default).astype(scores.dtype)

    def connect(self, scores: NDArray) -> ExtendedRows:
        """The graph for the scores F of all samples, of shape (n + m, c)."""
        scores = np.ascontiguousarray(scores) * scores.dtype.type(np.sqrt(self.rule.gamma))
        new_rows, own_alpha = self._weights(*self._new_lists(scores))
        changed, changed_rows, changed_alpha = self._changed_rows(scores)
        alpha = np.concatenate([self.alpha, own_alpha.astype(self.alpha.dtype)])
        alpha[changed] = changed_alpha
        n_all = self.n_old + self.n_new
        old_rows = sparse.csr_array((self.n_old, n_all), dtype=self.graph.dtype)
        # The constructor would copy the entries.
        old_rows.data, old_rows.indices, old_rows.indptr = self.graph.data, self.graph.indices, self.graph.indptr
        other_rows = sparse.vstack([changed_rows, new_rows], format="csr") if len(changed) else new_rows
        other_rows.sort_indices()
        stacked = sparse.vstack([old_rows, other_rows.astype(self.graph.dtype)], format="csr")
        # Each row is that of the old graph, or of those after it.
        source = np.arange(n_all)
        source[changed] = self.n_old + np.arange(len(changed))
        source[self.n_old :] += len(changed)
        graph = stacked[source]
        graph.has_sorted_indices = True
        return ExtendedRows(graph, alpha, changed)

    def _weights(
        self, listed: NDArray, distances: NDArray, alpha: NDArray | None = None
    ) -> tuple[sparse.csr_array, NDArray]:
        """Rows of S from lists that are sorted by distance, and their α: that which leaves k neighbours.

        Rows whose list is not longer than k keep the given α.
        """
        k, beta = self.rule.n_neighbors, self.rule.beta
        with np.errstate(invalid="ignore"):  # ∞ − ∞ of short lists
            own = adaptive_alpha(distances, k, beta)
        if alpha is not None:
            own = np.where(np.isfinite(own) & (distances.shape[1] > k), own, alpha)
        weights, _ = simplex_rows(distances, 4 * beta * own)
        return graph_from_rows(listed, weights, self.n_old + self.n_new), own

    def _new_lists(self, scores: NDArray) -> tuple[NDArray, NDArray]:
        """Neighbour lists of the new samples, nearest first, by coordinates and scores.

        Scores only add to a distance, so a list by coordinates holds all neighbours if it goes as far as the farthest
        of them with its scores; otherwise a longer one is fetched.
        """
        listed, distances = self._rank(scores, self.new, self._listed, self._distances)
        far = self._distances[:, -1].copy()
        length, most = listed.shape[1], min(MAX_NEIGHBORS, self.n_old + self.n_new - 1)
        while length < most:
            beyond = distances[:, min(self.rule.n_neighbors, distances.shape[1] - 1)]
            short = np.flatnonzero(beyond > far)
            if not len(short):
                break
            length = min(2 * length, most)
            found = other_neighbors(self.points, length, self.new[short])
            longer = self._rank(scores, self.new[short], *found)
            far[short] = found.squared_distances[:, -1]
            # The nearest k + 2 are all that a row needs.
            listed[short], distances[short] = (part[:, : listed.shape[1]] for part in longer)
        return listed, distances

    def _rank(self, scores: NDArray, rows: NDArray, listed: NDArray, own: NDArray) -> tuple[NDArray, NDArray]:
        """Lists of some samples, nearest first by coordinates and scores; `own` are distances by coordinates."""
        return _sorted_lists(listed, own + _score_distances(scores, rows, listed))

    def _changed_rows(self, scores: NDArray) -> tuple[NDArray, sparse.csr_array, NDArray]:
        """Old rows that new samples change, their new weights, and their α."""
        seeing, seen = self._seeing, self._seen
        pairs = listed_distances(self.points, self.points[seeing], seen[:, None])[:, 0]
        near = pairs + _score_distances(scores, seeing, seen[:, None])[:, 0] < self._reach[seeing]
        changed, counts = np.unique(seeing[near], return_counts=True)
        if not len(changed):
            return changed, self.graph[:0], self.alpha[:0]
        old = self.graph[changed]
        old_counts = np.diff(old.indptr)
        width = int((old_counts + counts).max(initial=0))
        listed = np.zeros((len(changed), width), dtype=np.intp)
        valid = np.arange(width) < (old_counts + counts)[:, None]
        starts = width * np.arange(len(changed))
        listed.ravel()[concat_ranges(starts, old_counts)] = old.indices
        listed.ravel()[concat_ranges(starts + old_counts, counts)] = seen[near]
        distances = listed_distances(self.points, self.points[changed], listed)
        distances += _score_distances(scores, changed, listed)
        distances[~valid] = np.inf
        listed, distances = _sorted_lists(listed, distances)
        return changed, *self._weights(listed, distances, self.alpha[changed])


def _score_distances(scores: NDArray, rows: NDArray, listed: NDArray) -> NDArray:
    """Squared distances between the scores of the rows and of the samples listed for each."""
    return listed_distances(scores, scores[rows], listed)


def _sorted_lists(listed: NDArray, distances: NDArray) -> tuple[NDArray, NDArray]:
    """Lists and distances, nearest first, ties by index."""
    order = np.lexsort((listed, distances))
    return np.take_along_axis(listed, order, 1), np.take_along_axis(distances, order, 1)
