"""Columns whose values are so near to zero that their squares vanish: they would count as constant."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.present_rows import map_present
from lmssc.data.scaling import CENTRED, ViewScaling
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix


@dataclass(frozen=True)
class TinyLimits:
    """Largest values, by the bytes of a number, whose squares or differences vanish."""

    float32: float = 1e-36
    float64: float = 1e-150


LIMITS = TinyLimits()


def find_tiny_columns(raw: RawView, scaling: ViewScaling) -> NDArray:
    """Columns that are not zero, but too small to be told from a constant.

    Examples
    --------
    >>> from lmssc.data.scaling import fit_scaling
    >>> X = np.random.default_rng(0).normal(size=(9, 3)) * [1.0, 1e-200, 0.0]
    >>> raw = RawView("a", X, None)
    >>> find_tiny_columns(raw, fit_scaling(raw, "zscore"))
    array([1])
    """
    suspects = np.arange(raw.data.shape[1])
    if scaling.kind in CENTRED and scaling.column_scale is not None:
        suspects = np.flatnonzero(scaling.column_scale == 0)
    if not len(suspects):
        return suspects
    largest = np.max(list(map_present(_largest, raw)), axis=0)[suspects]
    limit = LIMITS.float32 if raw.data.dtype.itemsize < 8 else LIMITS.float64
    return suspects[(largest > 0) & (largest < limit)]


def _largest(block: Matrix) -> NDArray:
    """Largest absolute value of each column."""
    sizes = abs(block)
    return sizes.max(axis=0).toarray().ravel() if sparse.issparse(sizes) else sizes.max(axis=0, initial=0)
