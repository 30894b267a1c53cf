"""Views and columns in which new samples are far larger, or far nearer to zero, than those of fit: in another unit?

Where values near zero are usual, no single sample shows it (:mod:`lmssc.data.column_limits`); many together do.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.memmap import read_rows
from lmssc.data.present_rows import map_present, present_count
from lmssc.data.scaling import ONE_FACTOR, ViewScaling
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix


@dataclass(frozen=True)
class UnitCriteria:
    """When the values of a column are suspiciously small."""

    min_samples: int = 30
    """Fewer new samples may all be of a class in which a column is near zero."""
    min_few: int = 5
    min_values: int = 30
    """From so many samples on, all columns count together if so many of their values are not zero."""
    max_ratio: float = 1 / 30
    """The largest value is at most this share of the root mean square of the column in fit."""
    max_view_ratio: float = 0.2
    """Or the root mean square itself is at most this share, in all columns of a view; medians are, too."""
    max_rows: int = 100
    max_growth: float = 30.0
    """A view is larger than in fit if the median norm of its rows, of so many of them, is so many times as large."""


CRITERIA = UnitCriteria()


def columns_near_zero(raw: RawView, scaling: ViewScaling) -> NDArray:
    """Columns of new samples in which all values are far nearer to zero than those of fit are.

    A zero may mean "none" in any unit, so a single column counts only if it has no zeros. All columns of the view count
    if all are small and not all values are zero; they need not be as small as a single one.

    Examples
    --------
    >>> from lmssc.data.scaling import fit_scaling
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> scaling = fit_scaling(RawView("a", X, None), "zscore")
    >>> columns_near_zero(RawView("a", X * [1, 0.001], None), scaling)
    array([1])
    """
    scale, mean, n_samples = scaling.inverse_deviations, scaling.mean, present_count(raw)
    if scale is None or mean is None or n_samples < CRITERIA.min_few:
        return np.empty(0, dtype=np.intp)
    smallest, largest, counts, squares = zip(*map_present(_range_of_sizes, raw), strict=True)
    least, most = np.min(smallest, axis=0), np.max(largest, axis=0)
    varies = scale > 0
    usual = np.hypot(mean, 1 / np.where(varies, scale, 1).astype(np.float64))
    small = varies & (most <= CRITERIA.max_ratio * usual)
    if np.sum(counts, axis=0)[varies].sum() >= CRITERIA.min_values:
        mean_square = np.sum(squares, axis=0) / n_samples
        smaller = (mean_square <= (CRITERIA.max_view_ratio * usual) ** 2)[varies].all()
        if small[varies].all() or (smaller and n_samples >= CRITERIA.min_samples and _has_small_medians(raw, scaling)):
            return np.flatnonzero(varies)
    return np.flatnonzero(small & (least > 0)) if n_samples >= CRITERIA.min_samples else np.empty(0, dtype=np.intp)


def _has_small_medians(raw: RawView, scaling: ViewScaling) -> bool:
    """Whether the medians of the columns are far nearer to zero than in fit, where these are known.

    A few large values can raise the root mean square of a column in fit, but hardly its median.
    """
    if scaling.limits is None:
        return True
    known = scaling.limits.columns < raw.data.shape[1]
    columns, centres = scaling.limits.columns[known], scaling.limits.centres[known]
    values = read_rows(raw.data, _some_rows(raw, np.arange(raw.data.shape[0])))[:, columns]
    medians = np.median(abs(values.toarray() if sparse.issparse(values) else values), axis=0)
    return bool((medians <= CRITERIA.max_view_ratio * np.abs(centres)).all())


def is_near_zero(raw: RawView, scaling: ViewScaling, n_views: int) -> bool:
    """Whether all new samples of a view whose columns keep their proportions are far nearer to zero than those of fit.

    Examples
    --------
    >>> from lmssc.data.scaling import fit_scalings
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> (scaling,) = fit_scalings([RawView("a", X, None)], ["center"])
    >>> is_near_zero(RawView("a", X, None), scaling, 1), is_near_zero(RawView("a", X / 1000, None), scaling, 1)
    (False, True)
    """
    scale, mean = scaling.column_scale, scaling.mean
    if scaling.kind not in ONE_FACTOR or scale is None or mean is None or present_count(raw) < CRITERIA.min_samples:
        return False
    from_zero = replace(scaling, mean=np.zeros_like(mean))
    origin = mean.astype(np.float64) * scale * scaling.factor
    ratio = CRITERIA.max_ratio**0.5 if scaling.kind == "sqrt" else CRITERIA.max_ratio
    largest = max(map_present(lambda block: float(_energies(from_zero, block).max(initial=0)), raw))
    return bool(0 < largest <= ratio**2 * (1 / n_views + origin @ origin))


def is_far_larger(raw: RawView, scaling: ViewScaling, n_views: int) -> bool:
    """Whether most new samples of a view are far larger than those of fit, whose mean squared row norm is 1/V.

    Examples
    --------
    >>> from lmssc.data.scaling import fit_scalings
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> (scaling,) = fit_scalings([RawView("a", X, None)], ["zscore"])
    >>> is_far_larger(RawView("a", X, None), scaling, 1), is_far_larger(RawView("a", 1000 * X, None), scaling, 1)
    (False, True)
    """
    return relative_size(raw, scaling, n_views, np.arange(raw.data.shape[0])) > CRITERIA.max_growth


def relative_size(raw: RawView, scaling: ViewScaling, n_views: int, rows: NDArray) -> float:
    """Typical norm of some rows of new samples of a view, in units of those of fit; 0 if it is not known.

    Examples
    --------
    >>> from lmssc.data.scaling import fit_scalings
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> (scaling,) = fit_scalings([RawView("a", X, None)], ["zscore"])
    >>> round(relative_size(RawView("a", 3 * X, None), scaling, 1, np.arange(50)), 1)
    2.7
    """
    some = _some_rows(raw, rows)
    if scaling.kind == "none" or not len(some):
        return 0.0
    return float(np.sqrt(np.median(_energies(scaling, read_rows(raw.data, some))) * n_views))


def _some_rows(raw: RawView, rows: NDArray) -> NDArray:
    """Some of the rows that have the view."""
    rows = rows if raw.present is None else rows[raw.present[rows]]
    return rows[:: max(-(-len(rows) // CRITERIA.max_rows), 1)]


def columns_far_larger(raw: RawView, scaling: ViewScaling) -> NDArray:
    """Columns in which most new samples are far larger than those of fit; none if the scaling does not tell.

    Examples
    --------
    >>> from lmssc.data.scaling import fit_scaling
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> columns_far_larger(RawView("a", X * [1, 1000], None), fit_scaling(RawView("a", X, None), "zscore"))
    array([1])
    """
    scale = scaling.inverse_deviations
    if scale is None or scaling.mean is None:
        return np.empty(0, dtype=np.intp)
    block = read_rows(raw.data, _some_rows(raw, np.arange(raw.data.shape[0])))
    values = np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.median(np.abs((values - scaling.mean) * scale), axis=0)
    return np.flatnonzero(~(sizes <= CRITERIA.max_growth))


def _energies(scaling: ViewScaling, block: Matrix) -> NDArray:
    """Squared norms of scaled rows; infinite beyond all numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = scaling.apply(RawView("", block, None)).row_energies().astype(np.float64)
    return np.where(np.isnan(found), np.inf, found)


def _range_of_sizes(block: Matrix) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Smallest and largest absolute value of each column, the number of values that are not zero, and their squares."""
    sizes = abs(block)
    if sparse.issparse(sizes):
        counts = np.bincount(sizes.nonzero()[1], minlength=sizes.shape[1])
        with np.errstate(over="ignore"):
            squares = sizes.astype(np.float64).power(2).sum(axis=0)
        return sizes.min(axis=0).toarray().ravel(), sizes.max(axis=0).toarray().ravel(), counts, squares
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->j", sizes, sizes, dtype=np.float64)
    return sizes.min(axis=0, initial=np.inf), sizes.max(axis=0, initial=0), np.count_nonzero(sizes, axis=0), squares
