"""Columns in which all new samples are far nearer to zero than those of fit: perhaps they are in another unit.

Where values near zero are usual, no single sample shows it (:mod:`lmssc.data.column_limits`); many together do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.present_rows import map_present, present_count
from lmssc.data.scaling import ViewScaling
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix


@dataclass(frozen=True)
class UnitCriteria:
    """When the values of a column are suspiciously small."""

    min_samples: int = 30
    """Fewer new samples may all be of a class in which a column is near zero."""
    max_ratio: float = 1 / 30
    """The largest value is at most this share of the root mean square of the column in fit."""


CRITERIA = UnitCriteria()
# Scalings that know the standard deviation of each column.
STANDARDISED = ("zscore", "mixed")


def columns_near_zero(raw: RawView, scaling: ViewScaling) -> NDArray:
    """Columns of new samples in which all values are far nearer to zero than those of fit are.

    A zero may mean "none" in any unit, so a single column counts only if it has no zeros. All columns of the view count
    if all are small and not all values are zero.

    Examples
    --------
    >>> from lmssc.data.scaling import fit_scaling
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> scaling = fit_scaling(RawView("a", X, None), "zscore")
    >>> columns_near_zero(RawView("a", X * [1, 0.001], None), scaling)
    array([1])
    """
    scale, mean = scaling.column_scale, scaling.mean
    if scaling.kind not in STANDARDISED or scale is None or mean is None or present_count(raw) < CRITERIA.min_samples:
        return np.empty(0, dtype=np.intp)
    blocks = list(map_present(_range_of_sizes, raw))
    smallest = np.min([low for low, _ in blocks], axis=0)
    largest = np.max([high for _, high in blocks], axis=0)
    varies = scale > 0
    deviation = 1 / np.where(varies, scale, 1).astype(np.float64)
    small = varies & (largest <= CRITERIA.max_ratio * np.hypot(mean, deviation))
    if small[varies].all() and largest[varies].any():
        return np.flatnonzero(varies)
    return np.flatnonzero(small & (smallest > 0))


def _range_of_sizes(block: Matrix) -> tuple[NDArray, NDArray]:
    """Smallest and largest absolute value of each column."""
    sizes = abs(block)
    if sparse.issparse(sizes):
        return sizes.min(axis=0).toarray().ravel(), sizes.max(axis=0).toarray().ravel()
    return sizes.min(axis=0, initial=np.inf), sizes.max(axis=0, initial=0)
