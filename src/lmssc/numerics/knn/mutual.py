"""Points and queries that are near to each other, seen from either side: for samples that join a neighbour graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.approximate import has_index
from lmssc.numerics.knn.exact import BATCHES, BruteForceL2, listed_distances
from lmssc.numerics.knn.kmeans import rows_by_cluster
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class MutualSettings:
    """Settings of `near_pairs`."""

    sample_per_neighbor: int = 100
    """The distance of the farthest neighbour is bounded in a sample of this many points per neighbour."""
    n_cells: int = 256
    """Cells of the approximate search: each point belongs to the nearest of so many of the points."""
    min_pairs: int = 20_000_000
    """Up to so many pairs of a point and a query are all compared: that takes less time than cells."""
    n_measured: int = 100
    """Number of queries on which the recall is measured."""


SETTINGS = MutualSettings()


class NearPairs(NamedTuple):
    """Pairs of a query and a point, sorted by query, then by distance, then by point."""

    queries: NDArray
    points: NDArray
    squared_distances: NDArray


def near_pairs(points: NDArray, queries: NDArray, needed: int, reach: NDArray, recall: float = 1.0) -> NearPairs:
    """All pairs in which the point is among the `needed` nearest of the query, or the query within reach of the point.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Points; some, evenly spaced in their order, are the centres of the cells.
    queries : ndarray of shape (m, d)
        Queries.
    needed : int
        Nearest points of each query that are found, at most n; there may be more.
    reach : ndarray of shape (n,)
        Squared distance up to which a point sees queries.
    recall : float
        Share of the `needed` nearest that is found among many points, where the search is approximate; 1 is exact.

    Returns
    -------
    NearPairs

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> found = near_pairs(points, np.array([[0.8]]), needed=1, reach=np.array([0.0, 0.0, 20.0, 20.0]))
    >>> found.points, found.squared_distances.round(2)
    (array([1, 2]), array([ 0.04, 17.64]))
    """
    limits = _limits(points, queries, needed)
    blocks = [(np.arange(len(points)), np.arange(len(queries)))]
    if has_index(len(points), recall) and len(points) * len(queries) > SETTINGS.min_pairs:
        blocks = _cells(points, queries, limits, needed, recall)
    return _pairs_within(points, queries, blocks, limits, reach)


def _pairs_within(
    points: NDArray,
    queries: NDArray,
    blocks: Sequence[tuple[NDArray, NDArray]],
    limits: NDArray,
    reach: NDArray,
) -> NearPairs:
    """Pairs within the limit of the query or the reach of the point; `blocks` are points and queries to compare."""

    def find(members: NDArray, visitors: NDArray) -> tuple[NDArray, NDArray]:
        distances, errors = BruteForceL2.of(points[members]).distances(queries[visitors])
        distances -= errors[:, None]  # of the rounding
        near = distances <= limits[visitors][:, None]
        near |= distances <= reach[members]
        row, column = np.divmod(np.flatnonzero(near), len(members))
        return visitors[row], members[column]

    jobs = [
        (members[batch], visitors)
        for members, visitors in blocks
        for batch in gen_batches(len(members), BATCHES.rows_of_distances(max(1, len(visitors))))
    ]
    found = threaded_map(find, *zip(*jobs, strict=True))
    row, column = (np.concatenate(part) for part in zip(*found, strict=True))
    distances = listed_distances(points, queries[row], column[:, None])[:, 0]
    order = np.lexsort((column, distances, row))
    return NearPairs(row[order], column[order], distances[order])


def _limits(points: NDArray, queries: NDArray, needed: int) -> NDArray:
    """Upper bound of the squared distance of each query's farthest neighbour: the same in a sample of the points."""
    sample = points[:: max(1, len(points) // (SETTINGS.sample_per_neighbor * needed))]
    indices, _ = BruteForceL2.of(sample).nearest(queries, needed)
    return listed_distances(sample, queries, indices).max(axis=1)


def _cells(
    points: NDArray, queries: NDArray, limits: NDArray, needed: int, recall: float
) -> list[tuple[NDArray, NDArray]]:
    """Points of each cell, and the queries that visit it: each the cells that hold its neighbours, as far as measured.

    The number of cells that a query visits is the one with which `recall` of the neighbours of some queries is found.
    The limits are lowered, in place, to the distance of the farthest neighbour in a query's own cell.
    """
    centres = BruteForceL2.of(points[:: len(points) // SETTINGS.n_cells][: SETTINGS.n_cells])
    own = np.empty(len(points), dtype=np.intp)

    def assign(batch: slice) -> None:
        own[batch] = centres.distances(points[batch])[0].argmin(axis=1)

    threaded_map(assign, gen_batches(len(points), BATCHES.rows_of_distances(SETTINGS.n_cells)))
    cells = rows_by_cluster(own, SETTINGS.n_cells)
    ranks = np.argsort(np.argsort(centres.distances(queries)[0], axis=1, kind="stable"), axis=1, kind="stable")

    def lower(cell: int, members: NDArray) -> None:
        rows = np.flatnonzero(ranks[:, cell] == 0)
        if len(rows) and len(members) >= needed:
            nearest = members[BruteForceL2.of(points[members]).nearest(queries[rows], needed)[0]]
            limits[rows] = np.minimum(limits[rows], listed_distances(points, queries[rows], nearest).max(axis=1))

    threaded_map(lower, range(SETTINGS.n_cells), cells)
    measured = np.linspace(0, len(queries) - 1, min(SETTINGS.n_measured, len(queries)), dtype=np.intp)
    nobody = np.full(len(points), -np.inf, dtype=limits.dtype)
    truth = _pairs_within(points, queries, [(np.arange(len(points)), measured)], limits, nobody)
    first = np.searchsorted(truth.queries, measured)[:, None] + np.arange(needed)
    ranks_of_true = ranks[truth.queries[first], own[truth.points[first]]]
    n_visited = 1 + int(np.quantile(ranks_of_true, recall, method="higher"))
    return [(members, np.flatnonzero(ranks[:, cell] < n_visited)) for cell, members in enumerate(cells)]
