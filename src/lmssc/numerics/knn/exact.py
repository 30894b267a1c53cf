"""Exact nearest neighbours, ties by index."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.knn.topk import argtopk
from lmssc.numerics.matrices import Matrix, stored_like
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class BatchSizes:
    """Sizes of the arrays that a search works on at a time; larger ones leave the cache and are slower."""

    n_bytes: int = 1 << 20
    """Bytes of the differences between queries and their listed points."""
    n_distances: int = 1 << 21
    """Entries of a matrix of distances."""

    min_rows: int = 64
    """Queries that are compared with many points at a time: with fewer, products take several times as long."""

    def rows_of_distances(self, n_points: int) -> int:
        """Number of queries whose distances to `n_points` points are computed at a time."""
        return max(1, self.n_distances // n_points)


@dataclass(frozen=True)
class BruteForceSettings:
    """When a search by matrix products beats scikit-learn's, and how it computes the distances."""

    max_tree_features: int = 15
    """Up to this dimension scikit-learn's trees are used (its own limit) for many points."""
    max_dense_points: int = 2000
    """Among fewer points a tree does not pay."""
    max_few_features: int = 6
    max_medium_points: int = 20_000
    """With more features than `max_few_features` it does not pay either, up to `max_medium_points` points: the tree of
    5,000 spread points in 10 dimensions takes eight times as long as all distances."""
    n_spare: int = 6
    """Neighbours fetched beyond those asked for, to prove that rounding lost none of them."""
    max_precise_points: int = 600
    """All distances between at most this many points are computed in double precision, and only once."""
    min_precise_share: float = 1e-5
    """A squared distance that is a smaller share of the squared norms is computed from the differences."""
    n_precise_distances: int = 1 << 16
    """Distances in double precision that are computed at a time: they stay in the cache."""
    n_spare_columns: int = 3
    """Of these, so many more than asked for are selected in single precision."""
    max_mirrored_points: int = 5000
    max_points_per_feature: int = 20
    """Of at most this many points, in all and for each feature, the distances between all are kept in memory and each
    is computed once."""
    n_mirrored: int = 256
    """Rows and columns of the blocks that are mirrored: they stay in the cache."""


BATCHES = BatchSizes()
SETTINGS = BruteForceSettings()


class Neighbors(NamedTuple):
    """Neighbour lists, nearest first. An infinite distance ends a list that is shorter than the others."""

    indices: NDArray
    squared_distances: NDArray


class Search(Protocol):
    """Neighbours of all points, for repeated searches while the points move."""

    def search(self, points: NDArray, needed: int, length: int) -> Neighbors:
        """Nearest other points of every point: at least `needed` and up to `length` of each."""

    def search_more(self, points: NDArray, rows: NDArray, length: int) -> Neighbors:
        """Longer lists of the points `rows`, after `search` for the same points."""

    def renumber(self, order: NDArray) -> None:
        """Adapt to points that come in another order from now on."""

    def state(self) -> NDArray | None:
        """What the next answer depends on besides the points, for checkpoints."""

    def set_state(self, state: NDArray | None) -> None:
        """Continue from what `state` returned."""


def nearest_neighbors(points: Matrix, queries: Matrix, n_neighbors: int) -> Neighbors:
    """Nearest `points` (dense or sparse) of each query, exactly, ties by index.

    The search may expand distances to ‖a‖² − 2ab + ‖b‖², which loses digits where points almost coincide. So the
    distances of the neighbours are computed again from the differences.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> nearest_neighbors(points, np.array([[0.9]]), 2).indices
    array([[1, 0]])
    """
    queries = stored_like(points, queries)
    if not _prefers_brute_force(points, n_neighbors):
        return _search(points, queries, n_neighbors)
    index, length = BruteForceL2.of(points), n_neighbors + SETTINGS.n_spare
    mirrored = queries is points and _is_mirroring_faster(*points.shape)
    indices, bounds = index.nearest_to_each(length) if mirrored else index.nearest(queries, length)
    found = _ranked(points, queries, indices)
    result = Neighbors(found.indices[:, :n_neighbors].copy(), found.squared_distances[:, :n_neighbors].copy())
    doubtful = np.flatnonzero(np.sqrt(result.squared_distances[:, -1]) > bounds[:, -1])
    if len(doubtful):
        again = _search(points, queries[doubtful], n_neighbors)
        result.indices[doubtful], result.squared_distances[doubtful] = again
    return result


def _prefers_brute_force(points: Matrix, n_neighbors: int) -> bool:
    """Whether a search by matrix products is possible and faster than scikit-learn's."""
    n_points, n_features = points.shape
    few = n_features <= SETTINGS.max_few_features
    no_tree = n_features > SETTINGS.max_tree_features
    no_tree |= n_points <= (SETTINGS.max_dense_points if few else SETTINGS.max_medium_points)
    return no_tree and not sparse.issparse(points) and n_neighbors + SETTINGS.n_spare <= n_points // 8


def _is_mirroring_faster(n_points: int, n_features: int) -> bool:
    """Whether to compute each distance between points once takes less time, with the memory that this needs."""
    return n_points <= min(SETTINGS.max_mirrored_points, SETTINGS.max_points_per_feature * n_features)


def _search(points: Matrix, queries: Matrix, n_neighbors: int) -> Neighbors:
    """Nearest neighbours by scikit-learn."""
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="auto").fit(points)
    return _ranked(points, queries, search.kneighbors(queries, return_distance=False))


def _ranked(points: Matrix, queries: Matrix, indices: NDArray) -> Neighbors:
    """The listed neighbours, sorted by distance (from the differences) and then by index."""
    distances = listed_distances(points, queries, indices)
    order = np.argsort(distances, axis=1)
    ranked = np.take_along_axis(distances, order, 1)
    tied = np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1))
    if len(tied):  # to sort all by two keys takes three times as long
        order[tied] = np.lexsort((indices[tied], distances[tied]))
    return Neighbors(np.take_along_axis(indices, order, 1), ranked)


def listed_distances(points: Matrix, queries: Matrix, indices: NDArray) -> NDArray:
    """Squared distances of each query to the points listed for it, computed from the differences.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> listed_distances(points, np.array([[0.5]]), np.array([[2, 0]]))
    array([[6.25, 0.25]])
    """
    distances = np.empty(indices.shape, dtype=points.dtype)
    n_listed = indices.shape[1]
    batch_size = max(1, BATCHES.n_bytes // (n_listed * points.shape[1] * points.dtype.itemsize + 1))
    for batch in gen_batches(len(indices), batch_size):
        listed = indices[batch]
        if sparse.issparse(points):
            repeated = np.repeat(np.arange(batch.start, batch.stop), n_listed)
            difference = points[listed.ravel()] - queries[repeated]
            distances[batch] = np.asarray(difference.power(2).sum(axis=1)).reshape(listed.shape)
        else:
            difference = points.take(listed, axis=0)
            difference -= queries[batch, None]
            np.einsum("ijk,ijk->ij", difference, difference, out=distances[batch])
    return distances


def other_neighbors(points: Matrix, n_neighbors: int, rows: NDArray | None = None) -> Neighbors:
    """Nearest other points of the points `rows` (of all if None), exactly.

    Examples
    --------
    >>> other_neighbors(np.array([[0.0], [1.0], [3.0]]), 1).indices.ravel()
    array([1, 0, 1])
    """
    if rows is None and not sparse.issparse(points) and n_neighbors < points.shape[0] <= SETTINGS.max_precise_points:
        return _from_all_distances(points, n_neighbors)
    queries = points if rows is None else points[rows]
    rows = np.arange(points.shape[0]) if rows is None else rows
    return without_self(nearest_neighbors(points, queries, n_neighbors + 1), rows)


def _from_all_distances(points: NDArray, n_neighbors: int) -> Neighbors:
    """Nearest other points of all of few points, from their distances in double precision.

    Rows in which rounding could decide who is a neighbour, or hide how close neighbours are, are searched again.
    """
    n_points = len(points)
    centred = points - points.mean(axis=0, dtype=np.float64)
    squares = np.einsum("ij,ij->i", centred, centred)
    # In units of a power of two, which changes no digit, single precision has room for all distances.
    exponent = int(np.frexp(squares.max())[1]) // 2
    centred, squares = np.ldexp(centred, -exponent), np.ldexp(squares, -2 * exponent)
    doubled, numbers = -2 * centred, np.arange(n_points, dtype=np.int32)
    length = min(n_neighbors + 1, n_points - 1)
    n_chosen = min(length + SETTINGS.n_spare_columns, n_points - 1)
    mask = np.int32((1 << (n_points - 1).bit_length()) - 1)
    indices, found = np.empty((n_points, length), dtype=np.intp), np.empty((n_points, length))
    bounds = np.full(n_points, np.inf)
    n_rows = min(max(1, SETTINGS.n_precise_distances // n_points), n_points)
    # The same memory for all batches: large arrays that are made anew take as long as what fills them.
    all_distances, all_keys = np.empty((n_rows, n_points)), np.empty((n_rows, n_points), dtype=np.int32)
    for batch in gen_batches(n_points, n_rows):
        own = numbers[: batch.stop - batch.start]
        distances, keys = all_distances[: len(own)], all_keys[: len(own)]
        np.matmul(doubled[batch], centred.T, out=distances)
        distances += squares[batch, None]
        distances += squares
        distances[own, numbers[batch]] = np.inf
        # The column in the last bits of a distance in single precision: 32-bit integers are selected several times
        # faster than indices. Those selected, and a few more, are then sorted in double precision.
        keys.view(np.float32)[:] = distances
        keys &= ~mask
        keys |= numbers
        keys.partition(n_chosen - 1, axis=1)
        columns, row = keys[:, :n_chosen] & mask, n_points * own[:, None]
        order = distances.ravel().take(columns + row).view(np.int64)
        order &= ~mask
        order |= columns
        order.sort(axis=1)
        np.bitwise_and(order[:, :length], mask, out=indices[batch])
        distances.ravel().take(indices[batch] + row, out=found[batch])
        if n_chosen < n_points - 1:  # no other point is nearer than the last that was selected, but for rounding
            bounds[batch] = (keys[:, n_chosen - 1] & ~mask).view(np.float32)
    precise = SETTINGS.min_precise_share * (squares + squares.max())
    unclear = found[:, 0] < precise
    if length > n_neighbors:
        beyond = np.minimum(found[:, n_neighbors], bounds)
        unclear |= beyond - found[:, n_neighbors - 1] <= SETTINGS.min_precise_share * precise
    lengths = np.ldexp(found[:, :n_neighbors], 2 * exponent).astype(points.dtype)
    result = Neighbors(indices[:, :n_neighbors].copy(), lengths)
    again = np.flatnonzero(unclear)
    if len(again):
        result.indices[again], result.squared_distances[again] = without_self(
            nearest_neighbors(points, points[again], n_neighbors + 1), again
        )
    return result


def without_self(found: Neighbors, rows: NDArray) -> Neighbors:
    """The lists of `rows` without the row itself, one shorter.

    Examples
    --------
    >>> found = Neighbors(np.array([[7, 4, 5]]), np.array([[0.0, 1.0, 2.0]]))
    >>> without_self(found, np.array([7])).indices
    array([[4, 5]])
    """
    keep = found.indices != rows[:, None]
    # Among many duplicates a point may be missing from its own list; then the last neighbour is dropped.
    keep[keep.all(axis=1), -1] = False
    shape = (len(rows), found.indices.shape[1] - 1)
    return Neighbors(found.indices[keep].reshape(shape), found.squared_distances[keep].reshape(shape))


class BruteForceL2(NamedTuple):
    """Points in single precision, such that all distances to them are one matrix product.

    Attributes
    ----------
    extended : ndarray of float32 of shape (n, d + 2)
        The centred points, their squared norms, and ones.
    centre : ndarray of shape (d,)
        Mean of the points.
    rounding : float
        Bound of the rounding error of a squared distance, relative to the squared norms.
    """

    extended: NDArray
    centre: NDArray
    rounding: float

    @classmethod
    def of(cls, points: NDArray, centre: NDArray | None = None) -> "BruteForceL2":
        """From points of any precision; `centre` is by default their mean."""
        if centre is None:
            centre = points.mean(axis=0, dtype=np.float64).astype(points.dtype)
        return cls.of_blocks([points], None, centre)

    @classmethod
    def of_blocks(cls, blocks: Sequence[NDArray], places: NDArray | None, centre: NDArray) -> "BruteForceL2":
        """From blocks of points, of which row i of all together becomes row `places[i]`; they are never copied."""
        n_points, width = sum(map(len, blocks)), blocks[0].shape[1]
        extended = np.ones((n_points, width + 2), dtype=np.float32)
        first = 0
        for block in blocks:
            for batch in gen_batches(len(block), BATCHES.rows_of_distances(width)):
                rows = slice(first + batch.start, first + batch.stop)
                extended[rows if places is None else places[rows], :-2] = block[batch] - centre
            first += len(block)
        for rows in gen_batches(n_points, BATCHES.rows_of_distances(width)):
            extended[rows, -2] = np.einsum("ij,ij->i", extended[rows, :-2], extended[rows, :-2])
        # Errors add up like a random walk. This is several times what is observed, and it need not be certain:
        # distances of neighbours are computed again.
        rounding = 4 * float(np.finfo(np.float32).eps) * (8 + np.sqrt(width))
        return cls(extended, centre, rounding)

    def take(self, rows: NDArray | slice) -> "BruteForceL2":
        """Some of the points, with the same centre."""
        # numpy takes rows three times as fast as it indexes them.
        return self._replace(extended=self.extended[rows] if isinstance(rows, slice) else self.extended.take(rows, 0))

    def distances(self, queries: NDArray) -> tuple[NDArray, NDArray]:
        """Squared distances of queries to all points, and a bound of the rounding error of each row."""
        extended = np.ones((queries.shape[0], queries.shape[1] + 2), dtype=np.float32)
        extended[:, :-2] = queries - self.centre
        squares = np.einsum("ij,ij->i", extended[:, :-2], extended[:, :-2])
        extended[:, :-2] *= -2
        extended[:, -1] = squares
        return extended @ self.extended.T, self.rounding * (squares + self.extended[:, -2].max())

    def nearest(self, queries: NDArray, length: int) -> tuple[NDArray, NDArray]:
        """The nearest points of each query, and ascending lower bounds of their distances.

        No other point is nearer than the last bound.
        """
        n_points = len(self.extended)
        if BATCHES.rows_of_distances(n_points) >= BATCHES.min_rows:
            return self._select(len(queries), length, n_points, lambda batch: (*self.distances(queries[batch]), None))
        n_parts = -(-n_points * BATCHES.min_rows // BATCHES.n_distances)
        parts = list(gen_batches(n_points, -(-n_points // n_parts)))

        def best_of_parts(batch: slice) -> tuple[NDArray, NDArray, NDArray]:
            values, errors, columns = [], [], []
            for part in parts:
                distances, error = self.take(part).distances(queries[batch])
                found = argtopk(distances, min(length, distances.shape[1]))
                values.append(np.take_along_axis(distances, found, 1))
                errors.append(error)
                columns.append(found + part.start)
            return np.hstack(values), np.max(errors, axis=0), np.hstack(columns)

        return self._select(len(queries), length, BATCHES.n_distances // BATCHES.min_rows, best_of_parts)

    def nearest_to_each(self, length: int) -> tuple[NDArray, NDArray]:
        """`nearest` with the points themselves as queries: half of the products, and memory for all distances.

        Examples
        --------
        >>> BruteForceL2.of(np.array([[0.0], [1.0], [3.0], [7.0]])).nearest_to_each(2)[0].tolist()
        [[0, 1], [1, 0], [2, 1], [3, 2]]
        """
        n_points, squares = len(self.extended), self.extended[:, -2]
        queries = self.extended.copy()
        queries[:, :-2] *= -2
        queries[:, -2], queries[:, -1] = 1, squares
        distances = np.empty((n_points, n_points), dtype=np.float32)

        def fill(batch: slice) -> None:
            np.matmul(queries[batch], self.extended[batch.start :].T, out=distances[batch, batch.start :])
            for other in gen_batches(n_points - batch.stop, SETTINGS.n_mirrored):
                later = slice(batch.stop + other.start, batch.stop + other.stop)
                distances[later, batch] = distances[batch, later].T

        threaded_map(fill, gen_batches(n_points, SETTINGS.n_mirrored))
        errors = self.rounding * (squares + squares.max())
        return self._select(n_points, length, n_points, lambda batch: (distances[batch], errors[batch], None))

    def _select(
        self,
        n_queries: int,
        length: int,
        n_compared: int,
        compare: Callable[[slice], tuple[NDArray, NDArray, NDArray | None]],
    ) -> tuple[NDArray, NDArray]:
        """`nearest`, given a function that compares a batch of queries with `n_compared` points at a time.

        It returns distances, a bound of the error of each row, and the points, if these are not all in their order.
        """
        indices = np.empty((n_queries, length), dtype=np.intp)
        bounds = np.empty((n_queries, length), dtype=np.float32)

        def fill(batch: slice) -> None:
            distances, errors, points = compare(batch)
            found = argtopk(distances, length)
            values = np.take_along_axis(distances, found, 1) - errors[:, None]
            order = np.argsort(values, axis=1)
            found = np.take_along_axis(found, order, 1)
            indices[batch] = found if points is None else np.take_along_axis(points, found, 1)
            bounds[batch] = np.sqrt(np.maximum(np.take_along_axis(values, order, 1), 0))

        threaded_map(fill, gen_batches(n_queries, BATCHES.rows_of_distances(n_compared)))
        return indices, bounds
