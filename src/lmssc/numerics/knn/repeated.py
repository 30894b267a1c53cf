"""Exact nearest neighbours of points that are searched several times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.exact import BATCHES, SETTINGS, Neighbors, other_neighbors
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class ListSettings:
    """When lists of neighbours by some coordinates are kept, and how long they are."""

    factor: int = 6
    """Length of the lists, relative to the number of neighbours asked for."""
    n_without: int = 2
    """Searches before the lists are made, which takes as long as two or three."""
    max_points: int = 10_000
    """Lists of more points are not kept: they take too much memory."""
    max_too_short: float = 0.5
    """Lists that are too short for a larger share of the points are not used again."""
    min_gap: float = 1e-12
    """Relative difference between the last neighbour and the next that rounding cannot hide."""


LISTS = ListSettings()


@dataclass(frozen=True)
class KnownPart:
    """The nearest points by some of the coordinates.

    Further coordinates only add to a distance, so a point that is not listed is no nearer than the last that is.

    Attributes
    ----------
    points : ndarray of shape (n, r)
        The points in these coordinates.
    lists : Neighbors
        The nearest others of each.
    """

    points: NDArray
    lists: Neighbors

    @classmethod
    def of(cls, points: NDArray, length: int) -> "KnownPart":
        """With lists of this length."""
        return cls(points, other_neighbors(points, length))

    def search(self, points: NDArray, length: int) -> tuple[Neighbors, float]:
        """The `length` nearest other points of every point, and the share of points that no list was long enough for.

        These are searched among all.
        """
        n_points, n_listed = self.lists.indices.shape
        rest = np.ascontiguousarray(points[:, self.points.shape[1] :], dtype=np.float64)
        indices = np.empty((n_points, length), dtype=self.lists.indices.dtype)
        distances, unclear = np.empty((n_points, length), dtype=points.dtype), np.empty(n_points, dtype=bool)
        mask = (1 << (n_listed - 1).bit_length()) - 1

        def fill(batch: slice) -> None:
            listed, known = self.lists.indices[batch], self.lists.squared_distances[batch]
            total = known + _squares(rest, rest[batch], listed)
            # The position in the last bits of a distance: integers are selected several times faster.
            keys = (total.view(np.int64) & ~mask) | np.arange(n_listed)
            keys.partition(length, axis=1)
            position = np.sort(keys[:, : length + 1], axis=1) & mask
            total = np.take_along_axis(total, position, 1)
            indices[batch] = np.take_along_axis(listed, position[:, :length], 1)
            distances[batch] = total[:, :length]
            last = total[:, length - 1]
            unclear[batch] = (total[:, length] - last <= LISTS.min_gap * last) | (last >= known[:, -1])

        threaded_map(fill, gen_batches(n_points, max(1, BATCHES.n_bytes // (8 * n_listed * rest.shape[1]))))
        again = np.flatnonzero(unclear)
        if len(again):
            indices[again], distances[again] = other_neighbors(points, length, again)
        return Neighbors(indices, distances), len(again) / n_points


def _squares(points: NDArray, queries: NDArray, listed: NDArray) -> NDArray:
    """Squared distances of each query to the points that are listed for it, in float64."""
    difference = points.take(listed, axis=0)
    difference -= queries[:, None]
    return np.einsum("ijk,ijk->ij", difference, difference)


class ExactKNN:
    """Exact neighbours of all points.

    Where later points have the same first coordinates as those of the first search, and more, as in the rounds of a
    warm start, most of their neighbours are found among the nearest by these coordinates, which are listed once.

    Parameters
    ----------
    n_more : int, optional
        Number of coordinates that many later searches will add to those of the first, which then makes the lists. By
        default they are made when some such searches have come.

    Examples
    --------
    >>> ExactKNN().search(np.array([[0.0], [1.0], [3.0]]), 1, 2).indices
    array([[1, 2],
           [0, 2],
           [1, 0]])
    """

    def __init__(self, n_more: int | None = None) -> None:
        self._n_more = n_more
        self._first: NDArray | None = None
        self._known: KnownPart | None = None
        self._n_extended = 0

    def search(self, points: NDArray, needed: int, length: int) -> Neighbors:
        """The `length` nearest other points of every point."""
        if self._first is None:
            self._first = points
            if self._n_more is not None and do_lists_pay(len(points), self._n_more, length):
                self._known = KnownPart.of(points, LISTS.factor * length)
                return Neighbors(*(part[:, :length].copy() for part in self._known.lists))
        elif self._known is None and is_worth_listing(self._first, points, length):
            self._n_extended += 1
            if self._n_extended > LISTS.n_without:
                self._known = KnownPart.of(self._first, LISTS.factor * length)
        known = self._known
        if known is None or length >= known.lists.indices.shape[1] or not is_extended(known.points, points):
            return other_neighbors(points, length)
        found, too_short = known.search(points, length)
        if too_short > LISTS.max_too_short:
            self._first, self._known, self._n_extended = points, None, 0
        return found

    def search_more(self, points: NDArray, rows: NDArray, length: int) -> Neighbors:
        """The `length` nearest other points of the points `rows`."""
        return other_neighbors(points, length, rows)

    def renumber(self, order: NDArray) -> None:
        """Forget what was searched."""
        self._first = self._known = self._n_more = None

    def state(self) -> None:
        """None: the answer depends on the points alone."""

    def set_state(self, state: NDArray | None) -> None:
        """Nothing to restore."""


def is_extended(points: NDArray, later: NDArray) -> bool:
    """Whether `points` are the first coordinates of the later ones, which have more.

    Examples
    --------
    >>> points = np.zeros((2, 1))
    >>> is_extended(points, points), is_extended(points, np.zeros((2, 3))), is_extended(points, np.ones((2, 3)))
    (False, True, False)
    """
    n_points, n_known = points.shape
    return len(later) == n_points and later.shape[1] > n_known and np.array_equal(later[:, :n_known], points)


def is_worth_listing(points: NDArray, later: NDArray, length: int) -> bool:
    """Whether lists of the neighbours by the first coordinates save time.

    Examples
    --------
    >>> few, more = np.zeros((2000, 3)), np.zeros((2000, 8))
    >>> is_worth_listing(few, more, 12), is_worth_listing(few[:400], more[:400], 12), is_worth_listing(more, few, 12)
    (True, False, False)
    """
    n_more = later.shape[1] - points.shape[1]
    return do_lists_pay(len(points), n_more, length) and is_extended(points, later)


def do_lists_pay(n_points: int, n_more: int, length: int) -> bool:
    """Whether a search among the listed neighbours takes less time than one among all.

    Examples
    --------
    >>> do_lists_pay(2000, 5, 12), do_lists_pay(2000, 100, 12)
    (True, False)
    """
    n_listed = LISTS.factor * length
    # Longer lists are not searched by matrix products.
    few = n_points > LISTS.max_points or n_listed + SETTINGS.n_spare >= n_points // 8
    return not few and n_listed * (n_more + 2) <= n_points
