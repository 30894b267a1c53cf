"""Detection and replacement of outliers: values far from all others of their column, such as −999 for "unknown".

A few of them inflate the standard deviation of a column so much that its other values no longer count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.column_names import name_columns
from lmssc.data.present_rows import VALUES_PER_BATCH, distinct_rows, map_present, present_count
from lmssc.data.view import RawView
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix


@dataclass(frozen=True)
class OutlierCriteria:
    """Thresholds of `find_outliers`."""

    min_rows: int = 100
    max_rows: int = 1000
    max_values: int = 1 << 20
    """Limits of the sample of distinct rows from which the median and the typical distance from it are estimated."""
    bins_per_decade: int = 10
    n_bins: int = 150
    """Histogram of the distances on a log scale, starting at the typical distance."""
    min_distance: float = 10
    """A column is examined if some value is this many typical distances from its median."""
    min_gap: int = 10
    min_code_gap: int = 5
    """Empty bins between outliers and the other values (10 bins are a factor of 10), and for codes of "unknown"."""
    max_share: float = 0.1
    max_code_share: float = 0.5
    """Share of outliers, and of codes, among the values that are neither 0 nor the median."""
    min_inflation: float = 2
    """Outliers matter if the standard deviation with them is this many times that without them."""
    max_rare_share: float = 0.15
    code_offset: float = 1
    """Codes in a larger share of the rows than this may tell the classes apart. They are not replaced by the mean, but
    stay outside of the other values, by this many standard deviations of those."""


CRITERIA = OutlierCriteria()
# Codes for "unknown" or "too large" in many files, up to the sign: nines, the limits of integers, powers of ten.
CODES = np.unique(
    [
        *(10.0**digits - 1 for digits in range(2, 10)),
        *(2.0**bits - i for bits in (15, 16, 31, 32) for i in (0, 1)),
        *(10.0**digits for digits in range(5, 39)),
    ]
)


def is_code(values: NDArray) -> NDArray:
    """Which numbers are codes for "unknown".

    Examples
    --------
    >>> is_code(np.array([-999.0, 998.0, 32767.0, 1e8]))
    array([ True, False,  True,  True])
    """
    return np.isin(np.abs(values), CODES.astype(values.dtype))


@dataclass(frozen=True)
class Outliers:
    """Columns of a view that have outliers, and what the other numbers of each are like.

    Attributes
    ----------
    columns : ndarray of int of shape (c,)
        Which columns.
    low, high, mean : ndarray of shape (c,)
        The smallest and the largest number that is no outlier, and the mean of these. On the side of frequent codes a
        number beyond that, which they become.
    has_codes : ndarray of bool of shape (c,)
        Whether the outliers are codes for "unknown", and not frequent.
    counts : ndarray of int of shape (c,)
        Number of outliers.
    first, last : ndarray of shape (c,)
        The smallest and the largest outlier.
    """

    columns: NDArray
    low: NDArray
    high: NDArray
    mean: NDArray
    has_codes: NDArray
    counts: NDArray
    first: NDArray
    last: NDArray

    def describe(self, names: Sequence[str] | None = None) -> str:
        """One line with the number of outliers, their range and their columns; `names` are those of all columns.

        Examples
        --------
        >>> two = np.arange(2)
        >>> Outliers(two, two, two, two, two == 0, 1 + two, -999.0 - two, -999.0 - two).describe(["age", "size"])
        "3 values from -1000 to -999 in columns 'age', 'size'"
        """
        first, last, n_values = self.first.min(), self.last.max(), int(self.counts.sum())
        values = f"of {first:g}" if first == last else f"from {first:g} to {last:g}"
        return f"{n_values} value{'s' * (n_values > 1)} {values} in {name_columns(self.columns, names)}"

    def replace(self, data: Matrix) -> Matrix:
        """A copy of the data without outliers: codes become the mean, other outliers are clipped; 0 stays 0.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> X[0] = -999, -999.5
        >>> find_outliers(RawView("a", X, None), X.std(axis=0))[0].replace(X)[0].round(1), X[1:].min(axis=0).round(1)
        (array([-0.1, -2.4]), array([-2.4, -2.4]))
        """
        data = data.copy()
        if sparse.issparse(data):
            place = _positions(self.columns, data.shape[1])[data.indices]
            found = place >= 0
            data.data[found] = self._replaced(data.data[found], place[found])
        else:
            place = np.arange(len(self.columns))
            data[:, self.columns] = self._replaced(data[:, self.columns], place)
        return data

    def _replaced(self, values: NDArray, place: NDArray) -> NDArray:
        low, high = self.low[place], self.high[place]
        outside = (values != 0) & ((values < low) | (values > high))
        ordinary = np.where(self.has_codes[place] & is_code(values), self.mean[place], np.clip(values, low, high))
        return np.where(outside, ordinary, values)

    def take(self, which: NDArray) -> Self:
        """Some of the columns."""
        return type(self)(*(getattr(self, field.name)[which] for field in fields(self)))


def find_outliers(raw: RawView, deviation: NDArray) -> tuple[Outliers, NDArray] | None:
    """Find columns whose standard deviation, `deviation`, is due to a few values far from all others.

    Far means ten times as far from the median as any other value, or three times for codes of "unknown" such as −999.
    So a heavy tail without a gap has no outliers, and neither has a column of zeros and a few ones. The result does not
    depend on the order of the rows, or on repeating all of them.

    Returns
    -------
    outliers : Outliers
    deviation : ndarray
        Standard deviation of these columns without the outliers.

    None if there are no such columns.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[:3, 1] = -999
    >>> outliers, deviation = find_outliers(RawView("a", X, None), X.std(axis=0))
    >>> outliers.columns, outliers.counts, outliers.first
    (array([1]), array([3]), array([-999.]))
    """
    centre, usual = _centre_and_usual_distance(raw)
    columns = np.flatnonzero((usual > 0) & (deviation > 0))
    with np.errstate(over="ignore"):
        least = CRITERIA.min_distance * usual
        farthest = reduce(np.maximum, map_present(lambda block: _farthest(block, centre, least), raw))
        columns = columns[farthest[columns] > least[columns]]
        if not len(columns):
            return None
        return _judge(raw, columns, centre[columns], usual[columns], deviation[columns])


def _centre_and_usual_distance(raw: RawView) -> tuple[NDArray, NDArray]:
    """Median of each column, and the median distance from it of the values that differ from it; from a sample."""
    width = raw.data.shape[1]
    most = int(np.clip(CRITERIA.max_values // width, CRITERIA.min_rows, CRITERIA.max_rows))
    sample = [sparse.csc_array(b) if sparse.issparse(b) else b for b in distinct_rows(raw, most)]
    centre, usual = np.zeros(width), np.zeros(width)
    strip = max(1, VALUES_PER_BATCH // sum(block.shape[0] for block in sample))
    for first in range(0, width, strip):
        part = slice(first, first + strip)
        rows = np.vstack([b[:, part].toarray() if sparse.issparse(b) else b[:, part] for b in sample])
        columns, n_rows = rows.T.astype(np.float64, order="C"), len(rows)  # selection is fast in contiguous memory
        columns.partition((n_rows - 1) // 2, axis=1)
        centre[part] = columns[:, (n_rows - 1) // 2]
        with np.errstate(over="ignore"):
            distances = np.abs(columns - centre[part, None])
        equal = (distances == 0).sum(axis=1)
        middle = np.minimum((equal + n_rows) // 2, n_rows - 1)
        distances.partition(np.unique(middle), axis=1)
        usual[part] = np.take_along_axis(distances, middle[:, None], axis=1)[:, 0]
    return centre, usual


def _small_blocks(block: Matrix) -> Iterator[Matrix]:
    """The rows in blocks that are small enough to be copied as float64."""
    if sparse.issparse(block):
        yield block
    else:
        yield from (block[rows] for rows in gen_batches(len(block), max(1, VALUES_PER_BATCH // block.shape[1])))


def _farthest(block: Matrix, centre: NDArray, least: NDArray) -> NDArray:
    """Largest distance from the centre in each column, or less than `least` if it is no larger; zeros do not count."""
    farthest = np.zeros(len(centre))
    for part in _small_blocks(block):
        if sparse.issparse(part):
            np.maximum.at(farthest, part.indices, np.abs(part.data - centre[part.indices]))
        elif len(part):
            with np.errstate(over="ignore"):
                low, high = part.min(axis=0), part.max(axis=0)
                if (np.maximum(np.abs(low - centre), np.abs(high - centre)) <= least).all():
                    continue
                distances = np.where(part == 0, 0, np.abs(part - centre))
            np.maximum(farthest, distances.max(axis=0, initial=0), out=farthest)
    return farthest


def _positions(columns: NDArray, width: int) -> NDArray:
    """Position of each column of a view in `columns`; −1 if it is not among them."""
    places = np.full(width, -1)
    places[columns] = np.arange(len(columns))
    return places


def _entries(block: Matrix, columns: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
    """Column position and value, in float64, of the non-zero values of some columns."""
    places = _positions(columns, block.shape[1])
    for rows in _small_blocks(block):
        if sparse.issparse(rows):
            place = places[rows.indices]
            found = (place >= 0) & (rows.data != 0)
            yield place[found], rows.data[found].astype(np.float64)
        else:
            part = rows[:, columns]
            found = part != 0
            yield np.broadcast_to(np.arange(len(columns)), part.shape)[found], part[found].astype(np.float64)


def _bins(distances: NDArray, usual: NDArray) -> NDArray:
    """Bin of each distance; 0 up to the typical distance."""
    with np.errstate(divide="ignore"):
        tenths = np.ceil(CRITERIA.bins_per_decade * (np.log10(distances) - np.log10(usual)))
    return np.clip(tenths, 0, CRITERIA.n_bins - 1).astype(np.intp)


def _judge(
    raw: RawView, columns: NDArray, centre: NDArray, usual: NDArray, deviation: NDArray
) -> tuple[Outliers, NDArray] | None:
    counts = np.zeros((len(columns), CRITERIA.n_bins), dtype=np.intp)
    smallest, largest = np.full(counts.shape, np.inf), np.full(counts.shape, -np.inf)
    for some, low, high in map_present(lambda block: _histogram(block, columns, centre, usual), raw):
        counts += some
        np.minimum(smallest, low, out=smallest)
        np.maximum(largest, high, out=largest)
    codes = (counts > 0) & is_code(smallest) & is_code(largest)
    last = np.array([_last_ordinary_bin(*parts) for parts in zip(counts, codes, strict=True)])
    found = last < CRITERIA.n_bins
    beyond = (np.arange(CRITERIA.n_bins) > last[:, None]) & (counts > 0)
    outliers = Outliers(
        columns,
        np.minimum(np.where(beyond, np.inf, smallest).min(axis=1), centre),
        np.maximum(np.where(beyond, -np.inf, largest).max(axis=1), centre),
        centre,
        (codes | ~beyond).all(axis=1),
        np.where(beyond, counts, 0).sum(axis=1),
        np.where(beyond, smallest, np.inf).min(axis=1),
        np.where(beyond, largest, -np.inf).max(axis=1),
    ).take(found)
    mean, without = _moments_within(raw, outliers)
    decided = deviation[found] >= CRITERIA.min_inflation * without
    if not decided.any():
        return None
    outliers = _keep_frequent(replace(outliers, mean=mean), without, present_count(raw))
    return outliers.take(decided), without[decided]


def _histogram(block: Matrix, columns: NDArray, centre: NDArray, usual: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Number of values in each bin of each column, and the smallest and the largest of them."""
    counts = np.zeros((len(columns), CRITERIA.n_bins), dtype=np.intp)
    smallest, largest = np.full(counts.shape, np.inf), np.full(counts.shape, -np.inf)
    for place, values in _entries(block, columns):
        differs = values != centre[place]
        place, values = place[differs], values[differs]
        cells = (place, _bins(np.abs(values - centre[place]), usual[place]))
        np.add.at(counts, cells, 1)
        np.minimum.at(smallest, cells, values)
        np.maximum.at(largest, cells, values)
    return counts, smallest, largest


def _keep_frequent(outliers: Outliers, deviation: NDArray, n_rows: int) -> Outliers:
    """Keep codes of many rows outside of the other values, so that these rows still differ from the others."""
    frequent = outliers.has_codes & (outliers.counts > CRITERIA.max_rare_share * n_rows)
    offset = CRITERIA.code_offset * deviation
    below, above = outliers.first < outliers.low, outliers.last > outliers.high
    return replace(
        outliers,
        has_codes=outliers.has_codes & ~frequent,
        low=np.where(frequent & below, outliers.low - offset, outliers.low),
        high=np.where(frequent & above, outliers.high + offset, outliers.high),
    )


def _last_ordinary_bin(counts: NDArray, codes: NDArray) -> int:
    """The last bin before the outliers; `n_bins` if there are none. `codes` marks bins that hold only codes."""
    filled = np.flatnonzero(counts)
    empty = np.diff(filled) - 1
    for gap in np.flatnonzero(empty >= CRITERIA.min_code_gap):
        beyond = filled[gap + 1 :]
        share = counts[beyond].sum() / counts.sum()
        isolated = empty[gap] >= CRITERIA.min_gap and share <= CRITERIA.max_share
        if isolated or (codes[beyond].all() and share < CRITERIA.max_code_share):
            return int(filled[gap])
    return CRITERIA.n_bins


def _moments_within(raw: RawView, outliers: Outliers) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation without the outliers."""
    size = len(outliers.columns)
    n = present_count(raw) - outliers.counts

    def of_block(block: Matrix, power: int, shift: NDArray) -> NDArray:
        sums, found = np.zeros(size), np.zeros(size)
        for place, values in _entries(block, outliers.columns):
            inside = (values >= outliers.low[place]) & (values <= outliers.high[place])
            place, values = place[inside], values[inside]
            sums += np.bincount(place, weights=(values - shift[place]) ** power, minlength=size)
            found += np.bincount(place, minlength=size)
        return np.stack([sums, found])

    def total(power: int, shift: NDArray) -> NDArray:
        return sum(map_present(lambda block: of_block(block, power, shift), raw), np.zeros((2, size)))

    sums, found = total(1, np.zeros(size))
    mean = sums / n
    squares, _ = total(2, mean)
    return mean, np.sqrt((squares + (n - found) * mean**2) / n)
