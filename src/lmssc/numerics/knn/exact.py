"""Nearest neighbours: exactly, and again after the points have moved a little without searching all of them."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from lmssc.data.views import Matrix, stored_like

# Bytes that one block of a chunked computation may take; more than the cache holds is slower, not faster.
BLOCK_BYTES = 1 << 22
# From so many features on, trees are of no use (scikit-learn's limit), and so many distances make blocks pay.
TREE_FEATURES = 15
FEWEST_DISTANCES = 1 << 20
# Distances in one block of the search of all points.
BLOCK_DISTANCES = 1 << 21
# Columns in a group, of which the smallest are looked for, at least; and groups for each of them, at most.
GROUPED = 8
GROUPS_EACH = 6
# What is fetched beyond what is asked for, to tell that nothing nearer was lost to rounding.
SPARE = 6
# Length of the lists that are kept, in units of those that are asked for.
KEPT = 3
# Beyond this share of points that moved far, or of lists of which the first part is not enough, all are searched again.
MOST_MOVED = 0.2
# Below this share, points that moved far are looked at one by one.
FEWEST_MOVED = 0.002
# Rows that tell whether the lists are of use at all.
PROBED = 500


class Neighbors(NamedTuple):
    """The nearest samples of each row, nearest first; an infinite distance ends a list that is shorter than others."""

    indices: NDArray
    squared_distances: NDArray


class Search(Protocol):
    """Neighbours of all points, asked for again and again while the points move."""

    def search(self, points: NDArray, needed: int, length: int) -> Neighbors:
        """Nearest others of every point: at least `needed` of each, and up to `length`."""

    def search_more(self, points: NDArray, rows: NDArray, length: int) -> Neighbors:
        """Longer lists of some points, after `search` for the same points."""

    def renumber(self, order: NDArray) -> None:
        """From now on the points come in another order."""

    def kept(self) -> NDArray | None:
        """The lists, if the answer depends on them and not on the points alone."""

    def keep(self, lists: NDArray | None) -> None:
        """Go on from what `kept` gave."""


def nearest_neighbors(points: Matrix, queries: Matrix, n_neighbors: int) -> Neighbors:
    """Nearest `points` (dense or sparse) of each query, exactly, ties by index.

    The search may use the expansion ‖a‖² − 2ab + ‖b‖², which loses digits where points almost coincide, so the
    distances of what was found are computed again from the differences.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> nearest_neighbors(points, np.array([[0.9]]), 2).indices
    array([[1, 0]])
    """
    queries = stored_like(points, queries)
    if not _by_blocks(points, queries.shape[0], n_neighbors):
        return _search(points, queries, n_neighbors)
    blocks = BruteForceL2.of(points)
    indices, least = blocks.nearest(queries, n_neighbors + SPARE)
    found = _ranked(points, queries, indices)
    result = Neighbors(found.indices[:, :n_neighbors].copy(), found.squared_distances[:, :n_neighbors].copy())
    doubtful = np.flatnonzero(np.sqrt(result.squared_distances[:, -1]) > least[:, -1])
    if len(doubtful):
        again = _search(points, queries[doubtful], n_neighbors)
        result.indices[doubtful], result.squared_distances[doubtful] = again
    return result


def _by_blocks(points: Matrix, n_queries: int, n_neighbors: int) -> bool:
    large = points.shape[0] * n_queries >= FEWEST_DISTANCES and points.shape[1] > TREE_FEATURES
    return large and not sparse.issparse(points) and n_neighbors + SPARE <= points.shape[0] // 8


def _search(points: Matrix, queries: Matrix, n_neighbors: int) -> Neighbors:
    """Nearest neighbours by scikit-learn."""
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="auto").fit(points)
    return _ranked(points, queries, search.kneighbors(queries, return_distance=False))


def _ranked(points: Matrix, queries: Matrix, indices: NDArray) -> Neighbors:
    """What was found, by distance from the differences and then by index."""
    distances = listed_distances(points, queries, indices)
    order = np.lexsort((indices, distances))
    return Neighbors(np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1))


def listed_distances(points: Matrix, queries: Matrix, indices: NDArray) -> NDArray:
    """Squared distances of each query to the points that are listed for it, from the differences, block by block.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> listed_distances(points, np.array([[0.5]]), np.array([[2, 0]]))
    array([[6.25, 0.25]])
    """
    distances = np.empty(indices.shape, dtype=points.dtype)
    n_listed = indices.shape[1]
    rows = max(1, BLOCK_BYTES // (n_listed * points.shape[1] * points.dtype.itemsize + 1))
    for first in range(0, len(indices), rows):
        block = slice(first, first + rows)
        if sparse.issparse(points):
            listed = indices[block]
            repeated = np.repeat(np.arange(first, first + len(listed)), n_listed)
            difference = points[listed.ravel()] - queries[repeated]
            distances[block] = np.asarray(difference.power(2).sum(axis=1)).reshape(listed.shape)
        else:
            difference = points[indices[block]] - queries[block, None]
            distances[block] = np.einsum("ijk,ijk->ij", difference, difference)
    return distances


def other_neighbors(points: Matrix, n_neighbors: int, rows: NDArray | None = None) -> Neighbors:
    """Nearest other samples of the samples `rows` (all of them if None).

    Examples
    --------
    >>> other_neighbors(np.array([[0.0], [1.0], [3.0]]), 1).indices.ravel()
    array([1, 0, 1])
    """
    rows = np.arange(points.shape[0]) if rows is None else rows
    found = nearest_neighbors(points, points[rows], n_neighbors + 1)
    return without_self(found, rows)


def without_self(found: Neighbors, rows: NDArray) -> Neighbors:
    """Lists of `rows` without the row itself, one shorter."""
    keep = found.indices != rows[:, None]
    # Among many duplicates a sample may not find itself: then its last neighbour is the one too many.
    keep[keep.all(axis=1), -1] = False
    shape = (len(rows), found.indices.shape[1] - 1)
    return Neighbors(found.indices[keep].reshape(shape), found.squared_distances[keep].reshape(shape))


class BruteForceL2(NamedTuple):
    """Dense points in single precision, for searches in which every distance is computed, by matrix products.

    Attributes
    ----------
    extended : ndarray of float32 of shape (n, d + 2)
        The points, from their mean; their squared norms; ones: distances are then one matrix product.
    centre : ndarray of shape (d,)
        Their mean.
    rounding : float
        What rounding can add to a squared distance, as a share of the squared norms.
    """

    extended: NDArray
    centre: NDArray
    rounding: float

    @classmethod
    def of(cls, points: NDArray) -> "BruteForceL2":
        """From points of any precision."""
        centre = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
        extended = np.ones((points.shape[0], points.shape[1] + 2), dtype=np.float32)
        extended[:, :-2] = points - centre
        extended[:, -2] = np.einsum("ij,ij->i", extended[:, :-2], extended[:, :-2])
        # Errors add up like a random walk; this is several times what is seen, and certainty is not needed:
        # distances of what is found are computed again.
        rounding = 4 * float(np.finfo(np.float32).eps) * (8 + np.sqrt(points.shape[1]))
        return cls(extended, centre, rounding)

    def distances(self, queries: NDArray) -> tuple[NDArray, NDArray]:
        """Squared distances of queries to all points, and what each row may be wrong by."""
        extended = np.ones((queries.shape[0], queries.shape[1] + 2), dtype=np.float32)
        extended[:, :-2] = queries - self.centre
        squares = np.einsum("ij,ij->i", extended[:, :-2], extended[:, :-2])
        extended[:, :-2] *= -2
        extended[:, -1] = squares
        return extended @ self.extended.T, self.rounding * (squares + self.extended[:, -2].max())

    def nearest(self, queries: NDArray, length: int) -> tuple[NDArray, NDArray]:
        """The nearest points of each query, in no order, and a lower bound of each distance to them, in order.

        No other point is nearer than the last of these bounds.
        """
        n_points = len(self.extended)
        indices = np.empty((len(queries), length), dtype=np.intp)
        bounds = np.empty((len(queries), length), dtype=np.float32)
        rows = max(1, BLOCK_DISTANCES // n_points)
        for first in range(0, len(queries), rows):
            block = slice(first, first + rows)
            distances, errors = self.distances(queries[block])
            found = argtopk(distances, length)
            indices[block] = found
            values = np.take_along_axis(distances, found, 1) - errors[:, None]
            order = np.argsort(values, axis=1)
            indices[block] = np.take_along_axis(found, order, 1)
            bounds[block] = np.sqrt(np.maximum(np.take_along_axis(values, order, 1), 0))
        return indices, bounds


def argtopk(values: NDArray, length: int) -> NDArray:
    """Columns of the `length` smallest of each row of squared distances in single precision, in no order.

    What rounding has made negative counts as zero. As many values at least are no larger than the `length`-th of the
    minima of some groups of columns; there are few more, and only these are sorted.

    Examples
    --------
    >>> np.sort(argtopk(np.array([[3.0, 0.0, 1.0, 2.0]], dtype=np.float32), 2))
    array([[1, 2]])
    """
    n_rows, n_columns = values.shape
    grouped = max(GROUPED, n_columns // (GROUPS_EACH * length))
    n_groups = n_columns // grouped
    if n_groups < 2 * length:
        return np.argpartition(values, length - 1, axis=1)[:, :length]
    minima = values[:, : grouped * n_groups].reshape(n_rows, grouped, n_groups).min(axis=1)
    minima.sort(axis=1)
    passed = np.flatnonzero(values <= minima[:, length - 1 : length])
    rows, columns = np.divmod(passed, n_columns)
    counts = np.bincount(rows, minlength=n_rows)
    most = int(counts.max())
    short = np.full((n_rows, most), np.iinfo(np.int64).max)
    short.ravel()[runs(most * np.arange(n_rows), counts)] = sortable(values.ravel()[passed], columns)
    short.sort(axis=1)
    return numbers_of(short[:, :length])


def runs(starts: NDArray, counts: NDArray) -> NDArray:
    """Consecutive numbers from each of `starts` on, `counts` of each.

    Examples
    --------
    >>> runs(np.array([5, 0, 9]), np.array([2, 3, 1]))
    array([5, 6, 0, 1, 2, 9])
    """
    return np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)


def sortable(values: NDArray, numbers: NDArray) -> NDArray:
    """Single-precision values and their numbers as integers that sort by value, and among equals by number.

    The bits of numbers that are not negative have their order; what is negative counts as zero.

    Examples
    --------
    >>> keys = sortable(np.array([2.5, 0.5], dtype=np.float32), np.array([7, 9]))
    >>> keys.sort()
    >>> numbers_of(keys)
    array([9, 7])
    """
    return (np.maximum(values, 0).view(np.int32).astype(np.int64) << 32) | numbers


def numbers_of(keys: NDArray) -> NDArray:
    """The numbers in what `sortable` made."""
    return keys & 0xFFFFFFFF


class IncrementalKNN:
    """Exact neighbours of points that move a little from one search to the next.

    Of each point a longer list is kept than is asked for, with the positions R that it was made for. A point that is
    not listed was at least as far as the last that is; since then it has come nearer by no more than both have moved.
    So whatever is nearer than that now is known to be exact, without a search. Points that moved far are searched
    again, and put into the lists of others where they belong.

    Features may be added at the end of all points: they only add to distances.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(2000, 20))
    >>> near = IncrementalKNN()
    >>> first = near.search(points, 5, 12)
    >>> moved = points + 0.01 * rng.normal(size=points.shape)
    >>> second = near.search(moved, 5, 12)
    >>> bool((second.indices[:, :5] == other_neighbors(moved, 5).indices).all()), near.n_full_searches
    (True, 1)
    """

    def __init__(self) -> None:
        self.n_full_searches = 0
        self._positions: NDArray | None = None  # R
        self._lists: NDArray
        self._bounds: NDArray  # lower bounds of the distances in R; infinite where the list has ended
        self._radius: NDArray  # in R, who is not listed is no nearer
        self._moves: NDArray  # how far each point is from R

    def search(self, points: NDArray, needed: int, length: int) -> Neighbors:
        """Nearest others of every point: at least `needed` of each, and up to `length` that are known to be exact."""
        if not _by_blocks(points, len(points), KEPT * length):
            return other_neighbors(points, length)
        everyone = np.arange(len(points))
        some = everyone[:: max(1, len(points) // PROBED)]
        if self._positions is None or self._outdated(*self._rank(points, some, needed, length)[1:], some, length):
            self._renew(points, length)
        found, moves, slack = self._rank(points, everyone, needed, length)
        if self._outdated(moves, slack, everyone, length):
            self._renew(points, length)
            found, moves, slack = self._rank(points, everyone, needed, length)
        far, _ = _far(moves, slack)
        if len(far) > FEWEST_MOVED * len(points):
            changed = self._refresh(points, far)
            again, moves_of_changed, _ = self._rank(points, changed, needed, length)
            found.indices[changed], found.squared_distances[changed] = again
            moves[changed] = moves_of_changed
        return self._certified(points, found, moves, needed, length)

    def _move(self, points: NDArray, rows: NDArray) -> NDArray:
        """How far points have moved since their list was made."""
        positions = self._positions[rows]  # type: ignore[index]
        return np.linalg.norm(points[rows, : positions.shape[1]] - positions, axis=1)

    def _outdated(self, moves: NDArray, slack: NDArray, rows: NDArray, length: int) -> bool:
        """Whether a new search of all points is cheaper than to look at what is kept."""
        far, limit = _far(moves, slack)
        first = np.minimum(self._bounds[rows, length - 1] - self._radius[rows], 0) if limit else 0
        long = int(np.count_nonzero(slack + first < limit))
        return max(len(far), long) > MOST_MOVED * len(rows)

    def _renew(self, points: NDArray, length: int) -> None:
        """Search all points."""
        self.n_full_searches += 1
        indices, bounds = BruteForceL2.of(points).nearest(points, KEPT * length + 1)
        rows = np.arange(len(points))
        found = without_self(Neighbors(indices, bounds), rows)
        self._positions, self._radius = points.copy(), bounds[:, -1].copy()
        self._lists, self._bounds = found.indices.astype(np.int32), found.squared_distances

    def _rank(self, points: NDArray, rows: NDArray, needed: int, length: int) -> tuple[Neighbors, NDArray, NDArray]:
        """The first of each list by where the points are now, how far each has moved, and how far all others may."""
        listed = self._lists[rows, :length]
        distances = listed_distances(points, points[rows], listed)
        distances[np.isinf(self._bounds[rows, :length])] = np.inf
        order = np.lexsort((listed, distances))
        found = Neighbors(np.take_along_axis(listed, order, 1), np.take_along_axis(distances, order, 1))
        moves = self._move(points, rows)
        return found, moves, self._radius[rows] - moves - np.sqrt(found.squared_distances[:, needed - 1])

    def _refresh(self, points: NDArray, far: NDArray) -> NDArray:
        """Search the points `far` again, and put them into the lists of others; rows of the lists that changed."""
        positions, lists, bounds = self._positions, self._lists, self._bounds
        positions[far] = points[far, : positions.shape[1]]  # type: ignore[index, union-attr]
        is_far = np.zeros(len(points), dtype=bool)
        is_far[far] = True
        blocks = BruteForceL2.of(positions)  # type: ignore[arg-type]
        length = lists.shape[1]
        visitors, hosts, near = [], [], []
        rows = max(1, BLOCK_DISTANCES // len(points))
        for first in range(0, len(far), rows):
            block = far[first : first + rows]
            distances, errors = blocks.distances(positions[block])  # type: ignore[index]
            distances -= errors[:, None]
            distances[np.arange(len(block)), block] = np.inf
            found = argtopk(distances, length)
            values = np.take_along_axis(distances, found, 1)
            order = np.argsort(values, axis=1)
            lists[block] = np.take_along_axis(found, order, 1)
            bounds[block] = np.sqrt(np.maximum(np.take_along_axis(values, order, 1), 0))
            visitor, host = np.divmod(
                np.flatnonzero(distances <= np.where(is_far, -np.inf, self._radius**2)), len(points)
            )
            visitors.append(block[visitor])
            hosts.append(host)
            near.append(np.sqrt(np.maximum(distances[visitor, host], 0)))
        self._radius[far] = bounds[far, -1]
        gone = is_far[lists] & ~is_far[:, None]
        bounds[gone] = np.inf
        hosts_of_all = np.concatenate(hosts)
        changed = gone.any(axis=1)
        changed[hosts_of_all] = True
        self._welcome(np.flatnonzero(changed), np.concatenate(visitors), hosts_of_all, np.concatenate(near))
        return np.flatnonzero(changed | is_far)

    def _welcome(self, changed: NDArray, visitors: NDArray, hosts: NDArray, near: NDArray) -> None:
        """Put each visitor into the list of its host, where the furthest make room; lists are sorted again."""
        length = self._lists.shape[1]
        order = np.lexsort((near, hosts))
        visitors, hosts, near = visitors[order], hosts[order], near[order]
        counts = np.bincount(np.searchsorted(changed, hosts), minlength=len(changed))
        places = np.arange(len(hosts)) - np.repeat(np.cumsum(counts) - counts, counts)
        # Of more visitors than there is room for, the nearest stay.
        kept = places < length
        rows = np.repeat(np.arange(len(changed)), counts)[kept]
        shape = (len(changed), min(length, int(counts.max(initial=0))))
        guests, distances = np.zeros(shape, dtype=np.int32), np.full(shape, np.inf, dtype=near.dtype)
        guests[rows, places[kept]], distances[rows, places[kept]] = visitors[kept], near[kept]
        everyone = np.hstack([self._lists[changed], guests])
        bounds = np.hstack([self._bounds[changed], distances])
        chosen = np.argsort(bounds, axis=1, kind="stable")[:, :length]
        self._lists[changed] = np.take_along_axis(everyone, chosen, 1)
        self._bounds[changed] = np.take_along_axis(bounds, chosen, 1)
        self._radius[changed] = np.minimum(self._radius[changed], self._bounds[changed, -1])

    def search_more(self, points: NDArray, rows: NDArray, length: int) -> Neighbors:
        """Nearest others of the points `rows`, after `search` for the same points: all `length`, or what is known."""
        if self._positions is None:
            return other_neighbors(points, length, rows)
        kept = self._lists.shape[1]
        if length > kept:
            return other_neighbors(points, length, rows)
        found = self._rank(points, rows, 1, kept)[0]
        self._cut(found, rows, self._radius[rows])
        result = Neighbors(found.indices[:, :length], found.squared_distances[:, :length])
        unknown = np.flatnonzero(np.isinf(result.squared_distances[:, length // 2]))
        if len(unknown):
            again = other_neighbors(points, length, rows[unknown])
            result.indices[unknown], result.squared_distances[unknown] = again
        return result

    def renumber(self, order: NDArray) -> None:
        """From now on the points come in another order."""
        if self._positions is not None:
            self._lists = np.argsort(order).astype(self._lists.dtype)[self._lists[order]]
            self._positions, self._bounds, self._radius = (
                self._positions[order],
                self._bounds[order],
                self._radius[order],
            )

    def kept(self) -> None:
        """Nothing: the answer is exact, whatever the lists are."""

    def keep(self, lists: NDArray | None) -> None:
        """Nothing is needed."""

    def _certified(self, points: NDArray, found: Neighbors, moves: NDArray, needed: int, length: int) -> Neighbors:
        """What was found as far as it is known to be exact; more is looked at where that is not enough."""
        self._moves = moves
        everyone = np.arange(len(points))
        self._cut(found, everyone, np.minimum(self._bounds[:, length - 1], self._radius))
        short = np.flatnonzero(np.isinf(found.squared_distances[:, needed - 1]))
        if len(short):
            longer = self._rank(points, short, needed, self._lists.shape[1])[0]
            self._cut(longer, short, self._radius[short])
            found.indices[short] = longer.indices[:, :length]
            found.squared_distances[short] = longer.squared_distances[:, :length]
            short = short[np.isinf(longer.squared_distances[:, needed - 1])]
        if len(short):
            found.indices[short], found.squared_distances[short] = other_neighbors(points, length, short)
        return found

    def _cut(self, found: Neighbors, rows: NDArray, bounds: NDArray) -> None:
        """End lists where points that are not in them, which were no nearer than `bounds`, may be now."""
        reach = (1 - 1e-6) * (bounds - self._moves[rows] - self._moves.max())
        found.squared_distances[found.squared_distances > np.maximum(reach, 0)[:, None] ** 2] = np.inf


def _far(moves: NDArray, slack: NDArray) -> tuple[NDArray, float]:
    """Points that moved further than a limit that the fewest are beyond and the fewest lists cannot bear; the limit."""
    limits, bearable = np.sort(moves), np.sort(slack)
    cost = np.arange(len(limits), 0, -1) - 1 + np.searchsorted(bearable, limits)
    limit = float(limits[cost.argmin()])
    return np.flatnonzero((moves > limit) | (slack < limit)), limit
