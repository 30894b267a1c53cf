"""What a view is, judged by its values and without labels: words, amounts, components or measurements.

`scaling="auto"` follows from it. Every rule is a statistic of the view with a stated threshold, and a sentence that
says what was found.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtr

from lmssc.data.memmap import MappedRows
from lmssc.data.present_rows import distinct_rows, has_negative, map_present, map_values, present_count
from lmssc.data.text_detection import has_topics, idf_ratio, looks_like_words
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class KindCriteria:
    """Thresholds of `choose_scalings`."""

    max_text_density: float = 0.2
    max_amount_density: float = 0.5
    """Share of non-zeros below which a view may be words, and amounts: most values are zero."""
    min_effective_share: float = 0.1
    """Effective number of columns, as a share of the columns that vary, from which on they seem to share a unit."""
    min_idf_ratio: float = 2.0
    """Factor by which idf must lower the similarity of unrelated rows."""
    max_rows: int = 5000
    max_columns: int = 200
    min_rows: int = 10
    """Distinct rows, and columns with the largest variance, that are tested for correlation, and rows needed for it."""
    min_relative_deviation: float = 1e-6
    """Columns whose standard deviation is a smaller share of the largest are rounding errors."""
    max_p_value: float = 1e-3
    """Probability of correlations as small as those found, if the columns were independent."""
    n_first_columns: int = 32
    """Columns with the largest variance that are tested first: if they alone correlate enough, the others need not."""
    min_distinct_share: float = 0.5
    """Distinct values of a column, as a share of the rows: designed experiments have few, components many."""
    max_kurtosis: float = 10.0
    min_effective_rows: float = 10.0
    """Kurtosis of a column, Σ z⁴ / n of the standardised values, above which the effective number of rows that make up
    its variance, n / kurtosis, must be this large: columns with a few outliers are uncorrelated unless these are in the
    same rows."""


CRITERIA = KindCriteria()
# Distinct rows of at most this many values are held in memory; those of larger views are found again when needed.
MAX_HELD_VALUES = 1 << 22
# Hashes of values are the first bits of their product with 2⁶⁴ times the golden ratio; there are so many for each row.
HASH_FACTOR, HASHES_PER_VALUE = np.uint64(0x9E3779B97F4A7C15), 4


@dataclass(frozen=True)
class Choice:
    """The scaling that suits a view, the reason, and by what factor idf would lower the similarity of its rows."""

    kind: str
    reason: str
    idf_ratio: float = 0.0


def choose_scalings(raws: Sequence[RawView]) -> list[Choice]:
    """Choose what `"auto"` means for each view, from its values and not from how they are stored.

    Views of counted words get idf all together: one of them with frequent words shows that these were not removed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> measured = RawView("a", rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4)), None)
    >>> centred = measured.data - measured.data.mean(axis=0)
    >>> components = RawView("b", centred @ np.linalg.svd(centred)[2].T, None)
    >>> [choice.kind for choice in choose_scalings([measured, components])]
    ['zscore', 'center']
    """
    choices = threaded_map(_judge, raws)
    ratio = max((choice.idf_ratio for choice in choices), default=0.0)
    with_idf = ratio >= CRITERIA.min_idf_ratio
    return [_with_idf(choice, ratio) if choice.kind == "log" and with_idf else choice for choice in choices]


def _with_idf(choice: Choice, ratio: float) -> Choice:
    found = f"idf makes unrelated samples {ratio:.1f} times less alike, so frequent words were not removed"
    return replace(choice, kind="logidf", reason=f"counted words; {found}")


def _judge(raw: RawView) -> Choice:
    size = max(1, present_count(raw) * raw.data.shape[1])
    density = sum(map_values(np.count_nonzero, raw)) / size
    if not has_negative(raw):
        whole = all(map_values(lambda values: bool((values == np.rint(values)).all()), raw))
        if density < CRITERIA.max_text_density and looks_like_words(raw, counts=whole):
            return _words(raw, whole)
        if density < CRITERIA.max_amount_density and _share_a_unit(raw) and has_topics(raw):
            found = f"{1 - density:.0%} of the values are zero, columns are non-zero together"
            return Choice("sqrt", f"amounts in one unit: {found}")
    p_value = least_correlation(raw)
    if p_value < CRITERIA.max_p_value:
        return Choice("center", f"components: columns less correlated than by chance (p = {p_value:.1g})")
    return Choice("zscore", f"measurements: {density:.0%} of the values are not zero, columns correlate")


def _words(raw: RawView, whole: bool) -> Choice:
    if not whole:
        return Choice("unit", "words with weights, to which idf was applied already")
    ratio = idf_ratio(raw)
    found = f"idf makes unrelated samples only {ratio:.1f} times less alike, so frequent words were removed"
    return Choice("log", f"counted words; {found}", ratio)


def _share_a_unit(raw: RawView) -> bool:
    """Whether many columns contribute to the variance of the roots; a few in a larger unit would take all of it.

    The effective number of columns is (Σ v_j)² / Σ v_j², with v_j their variances. Views of 0 and 1 have no unit.
    """
    total, squares, binary = np.zeros(raw.data.shape[1]), np.zeros(raw.data.shape[1]), True
    for roots, sums, is_binary in map_present(_root_sums, raw):
        total, squares, binary = total + roots, squares + sums, binary and is_binary
    n = present_count(raw)
    variance = np.maximum(squares / n - (total / n) ** 2, 0)
    if binary or not variance.any():
        return False
    effective = variance.sum() ** 2 / (variance**2).sum()
    return bool(effective >= CRITERIA.min_effective_share * np.count_nonzero(variance))


def _root_sums(block: Matrix) -> tuple[NDArray, NDArray, bool]:
    """Sums over each column of the roots and of the values, and whether all values are 0 or 1."""
    width = block.shape[1]
    if sparse.issparse(block):
        columns, values = block.indices, block.data
    else:
        columns, values = np.broadcast_to(np.arange(width), block.shape).ravel(), block.ravel()
    roots = np.bincount(columns, weights=np.sqrt(values, dtype=np.float64), minlength=width)
    sums = np.bincount(columns, weights=values.astype(np.float64), minlength=width)
    return roots, sums, bool(((values == 0) | (values == 1)).all())


def least_correlation(raw: RawView) -> float:
    """Probability that independent columns correlate as little as these; 1 if the test does not apply.

    0.5 stands for any larger probability if a few columns show it.

    For n rows of independent columns, n·r² is about χ² with one degree of freedom for each pair, so the sum over m
    pairs is about χ² with m. The scores of a principal component analysis of the same samples have r = 0, and those of
    a singular value decomposition a cosine of 0; measurements have larger sums. In a part of the samples the sum is
    still below m. Columns with few distinct values do not count: in designed experiments they are uncorrelated too.
    With rare large values chance alone makes small sums, which the test allows for.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 5))
    >>> least_correlation(RawView("a", rows, None)) > 0.01
    True
    >>> least_correlation(RawView("a", np.linalg.svd(rows, full_matrices=False)[0], None)) < 1e-9
    True
    """
    data = raw.data.array if isinstance(raw.data, MappedRows) else raw.data
    if data.shape[1] < 2 or sparse.issparse(data):
        return 1.0
    blocks: Callable[[], Iterable[NDArray]] = partial(distinct_rows, raw, CRITERIA.max_rows)
    if min(raw.data.shape[0], CRITERIA.max_rows) * raw.data.shape[1] <= MAX_HELD_VALUES:
        held = list(blocks())
        blocks = partial(iter, held)
    deviation, n_rows = _deviations(blocks(), raw.data.shape[1])
    if n_rows < CRITERIA.min_rows:
        return 1.0
    order = np.argsort(-deviation, kind="stable")[: CRITERIA.max_columns]
    order = order[deviation[order] > CRITERIA.min_relative_deviation * deviation.max()]
    # Only these columns are kept: a view on disk may be far wider than memory.
    rows = np.vstack([block[:, order].astype(np.float64) for block in blocks()])
    if len(order) > 2 * CRITERIA.n_first_columns:
        some = _comparable(np.ascontiguousarray(rows[:, : CRITERIA.n_first_columns]))
        n_pairs = len(order) * (len(order) - 1) / 2
        # The median of χ² is below its degrees of freedom, and other pairs only add to the sum.
        if min(len(rows) * _sum_of_squares(cosines) for cosines, _ in some) > n_pairs:
            return 0.5
    return min(_less_than_chance(*columns) for columns in _comparable(rows))


def _comparable(rows: NDArray) -> list[tuple[NDArray, NDArray]]:
    """The columns that the test of correlations applies to, at length 1, centred and not; and their kurtosis."""
    rows = _columns(rows, have_distinct_values(rows, CRITERIA.min_distinct_share * len(rows)))
    centred = _at_length_1(rows - rows.mean(axis=0))
    kurtosis = _kurtosis(centred)
    light = kurtosis <= max(CRITERIA.max_kurtosis, len(rows) / CRITERIA.min_effective_rows)
    cosines = _at_length_1(_columns(rows, light))
    return [(_columns(centred, light), kurtosis[light]), (cosines, _kurtosis(cosines))]


def _columns(rows: NDArray, chosen: NDArray) -> NDArray:
    """Some columns; without a copy if all are chosen."""
    return rows if chosen.all() else rows[:, chosen]


def _sum_of_squares(cosines: NDArray) -> float:
    """Sum over all pairs of columns of length 1 of their squared products."""
    products = cosines.T @ cosines
    np.fill_diagonal(products, 0)
    return float(np.vdot(products, products)) / 2


def _deviations(blocks: Iterable[NDArray], n_columns: int) -> tuple[NDArray, int]:
    """Standard deviation of each column of some rows, and their number."""
    n_rows, shift = 0, None
    total, squares = np.zeros(n_columns), np.zeros(n_columns)
    for block in blocks:
        if not len(block):
            continue
        shift = block[0].astype(np.float64) if shift is None else shift  # keeps the digits of columns far from zero
        away = block - shift
        total += away.sum(axis=0)
        squares += np.einsum("ij,ij->j", away, away)
        n_rows += len(block)
    mean = total / max(n_rows, 1)
    return np.sqrt(np.maximum(squares / max(n_rows, 1) - mean**2, 0)), n_rows


def _less_than_chance(cosines: NDArray, kurtosis: NDArray) -> float:
    """Probability of a sum of squared cosines between columns of length 1 as small as this, by chance.

    Rare large values make the variance of n·r² 2 + κ_j·κ_k/n, with κ the excess kurtosis (Pitman 1937): few pairs then
    have most of the sum, and it is often small. A scaled χ² has this variance.
    """
    if cosines.shape[1] < 2:
        return 1.0
    excess = kurtosis - 3
    n_pairs = len(excess) * (len(excess) - 1) / 2
    mean_product = (excess.sum() ** 2 - excess @ excess) / 2 / n_pairs
    scale = 1 + max(float(mean_product) / (2 * len(cosines)), 0.0)
    return float(chdtr(n_pairs / scale, len(cosines) * _sum_of_squares(cosines) / scale))


def have_distinct_values(rows: NDArray, least: float) -> NDArray:
    """Which columns have at least so many distinct values.

    Different values may share a hash, so a column has at least as many values as hashes. Only columns with too few
    hashes are sorted.

    Examples
    --------
    >>> have_distinct_values(np.array([[1.0, 0.0], [2.0, -0.0], [3.0, 5.0]]), 3)
    array([ True, False])
    """
    n_bits = (HASHES_PER_VALUE * len(rows)).bit_length()
    shift, seen = np.uint64(64 - n_bits), np.empty(1 << n_bits, dtype=bool)
    enough = np.empty(rows.shape[1], dtype=bool)
    for j, column in enumerate(rows.T):
        # Zeros of both signs are equal, but differ in their bits.
        hashes = ((column + 0.0).view(np.uint64) * HASH_FACTOR) >> shift
        seen[:] = False
        seen[hashes.view(np.int64)] = True
        enough[j] = np.count_nonzero(seen) >= least
    unclear = np.flatnonzero(~enough)
    if len(unclear):
        columns = np.sort(rows.T[unclear], axis=1)
        enough[unclear] = 1 + np.count_nonzero(columns[:, 1:] != columns[:, :-1], axis=1) >= least
    return enough


def _at_length_1(columns: NDArray) -> NDArray:
    return columns / np.sqrt(np.einsum("ij,ij->j", columns, columns))


def _kurtosis(at_length_1: NDArray) -> NDArray:
    squares = at_length_1**2
    return len(at_length_1) * np.einsum("ij,ij->j", squares, squares)
