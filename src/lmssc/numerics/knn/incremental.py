"""Exact neighbours of points that move a little, without searching all of them again."""

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.knn.exact import (
    BATCHES,
    BruteForceL2,
    Neighbors,
    _prefers_brute_force,
    argtopk,
    listed_distances,
    other_neighbors,
    without_self,
)

LIST_FACTOR = 3
MOST_MOVED = 0.2
FEWEST_MOVED = 0.002
PROBED = 500


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
        if not _prefers_brute_force(points, len(points), LIST_FACTOR * length):
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
        indices, bounds = BruteForceL2.of(points).nearest(points, LIST_FACTOR * length + 1)
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
        rows = max(1, BATCHES.n_distances // len(points))
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

    def state(self) -> None:
        """Nothing: the answer is exact, whatever the lists are."""

    def set_state(self, state: NDArray | None) -> None:
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
