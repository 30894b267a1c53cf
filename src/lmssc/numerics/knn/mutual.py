"""Points and queries that are near to each other, seen from either side: for samples that join a neighbour graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    if has_index(len(points), recall) and len(points) * len(queries) > SETTINGS.min_pairs:
        return _search_cells(points, queries, needed, reach, recall)
    everyone = np.arange(len(points))
    blocks = [(slice(0, len(points)), np.arange(len(queries)))]
    limits = _limits(points, queries, needed)
    return _pairs_within(points, queries, (everyone, BruteForceL2.of(points)), blocks, limits, reach)


def _pairs_within(
    points: NDArray,
    queries: NDArray,
    indexed: tuple[NDArray, BruteForceL2],
    blocks: Sequence[tuple[slice, NDArray]],
    limits: NDArray,
    reach: NDArray | None,
) -> NearPairs:
    """Pairs within the limit of the query or the reach of the point, if points have any.

    `indexed` are the numbers of the points in some order, and the points in that order; `blocks` are slices of that
    order, and the queries that they are compared with.
    """
    order, index = indexed

    def find(part: slice, visitors: NDArray) -> tuple[NDArray, NDArray]:
        members = order[part]
        distances, errors = index.take(part).distances(queries[visitors])
        distances -= errors[:, None]  # of the rounding
        near = distances <= limits[visitors][:, None]
        if reach is not None:
            near |= distances <= reach[members]
        row, column = np.divmod(np.flatnonzero(near), len(members))
        return visitors[row], members[column]

    jobs = [
        (slice(members.start + batch.start, members.start + batch.stop), visitors)
        for members, visitors in blocks
        for batch in gen_batches(members.stop - members.start, BATCHES.rows_of_distances(max(1, len(visitors))))
    ]
    found = threaded_map(find, *zip(*jobs, strict=True))
    row, column = (np.concatenate(part) for part in zip(*found, strict=True))
    distances = listed_distances(points, queries[row], column[:, None])[:, 0]
    by_query = np.lexsort((column, distances, row))
    return NearPairs(row[by_query], column[by_query], distances[by_query])


def _limits(points: NDArray, queries: NDArray, needed: int) -> NDArray:
    """Upper bound of the squared distance of each query's farthest neighbour: the same in a sample of the points."""
    sample = points[:: max(1, len(points) // (SETTINGS.sample_per_neighbor * needed))]
    indices, _ = BruteForceL2.of(sample).nearest(queries, needed)
    return listed_distances(sample, queries, indices).max(axis=1)


def _search_cells(points: NDArray, queries: NDArray, needed: int, reach: NDArray, recall: float) -> NearPairs:
    """Pairs within the cells that a query visits: those that hold its neighbours, as far as measured.

    The number of cells that a query visits is the one with which `recall` of the neighbours of some queries is found.
    """
    centres = BruteForceL2.of(points[:: len(points) // SETTINGS.n_cells][: SETTINGS.n_cells])
    own = np.empty(len(points), dtype=np.intp)

    def assign(batch: slice) -> None:
        own[batch] = centres.distances(points[batch])[0].argmin(axis=1)

    threaded_map(assign, gen_batches(len(points), BATCHES.rows_of_distances(SETTINGS.n_cells)))
    order = np.concatenate(rows_by_cluster(own, SETTINGS.n_cells))
    indexed = order, BruteForceL2.of(points[order])
    ends = np.cumsum(np.bincount(own, minlength=SETTINGS.n_cells))
    cells = [slice(first, end) for first, end in pairwise([0, *ends.tolist()])]
    by_distance = np.argsort(centres.distances(queries)[0], axis=1, kind="stable")
    ranks = np.empty_like(by_distance)
    np.put_along_axis(ranks, by_distance, np.arange(SETTINGS.n_cells)[None], 1)
    limits = _limits_in_cells(points, queries, needed, indexed[1], list(zip(cells, ranks.T == 0, strict=True)))
    measured = np.linspace(0, len(queries) - 1, min(SETTINGS.n_measured, len(queries)), dtype=np.intp)
    truth = _pairs_within(points, queries, indexed, [(slice(0, len(points)), measured)], limits, None)
    first = np.searchsorted(truth.queries, measured)[:, None] + np.arange(needed)
    ranks_of_true = ranks[truth.queries[first], own[truth.points[first]]]
    n_visited = 1 + int(np.quantile(ranks_of_true, recall, method="higher"))
    blocks = [(members, np.flatnonzero(rank < n_visited)) for members, rank in zip(cells, ranks.T, strict=True)]
    return _pairs_within(points, queries, indexed, blocks, limits, reach)


def _limits_in_cells(
    points: NDArray, queries: NDArray, needed: int, index: BruteForceL2, cells: Sequence[tuple[slice, NDArray]]
) -> NDArray:
    """Upper bound of the squared distance of each query's farthest neighbour: the same in the cell nearest to it.

    `cells` are slices of the index, and which queries each is the nearest to; where it has too few points, a sample of
    all points takes its place.
    """
    limits = np.empty(len(queries), dtype=points.dtype)

    def bound(members: slice, is_nearest: NDArray) -> None:
        rows = np.flatnonzero(is_nearest)
        if not len(rows):
            return
        if members.stop - members.start < needed:
            limits[rows] = _limits(points, queries[rows], needed)
            return
        distances, errors = index.take(members).distances(queries[rows])
        limits[rows] = np.partition(distances, needed - 1, axis=1)[:, needed - 1] + errors

    threaded_map(bound, *zip(*cells, strict=True))
    return limits
