"""How far the values of each column reach in fit, and which new samples are far beyond.

Values in a smaller unit, zeros or −999 for unknown ones may lie amid the samples of fit once they are embedded, where
neither distances nor residuals show that they are impossible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.outliers import Outliers
from lmssc.data.present_rows import distinct_rows
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix


@dataclass(frozen=True)
class LimitCriteria:
    """How the reach of a column is estimated."""

    max_rows: int = 1000
    max_values: int = 1 << 19
    """Distinct samples of fit, and their values, that are looked at."""
    tail: float = 0.1
    min_tail: int = 4
    """Share of the values on each side that are its tail, and the least number of them."""
    decades: float = 5.0
    """A tail that falls exponentially reaches as far as one in so many decades of its values."""


CRITERIA = LimitCriteria()
# Columns that are made dense at a time.
STRIP = 1000


class Reach(NamedTuple):
    """How far samples are beyond the reach of fit: 1 is as far as samples of fit; and in which column they are most."""

    ratios: NDArray
    columns: NDArray


@dataclass(frozen=True)
class ColumnLimits:
    """How far the values of some columns reach towards zero.

    Attributes
    ----------
    columns : ndarray of int of shape (c,)
        Number of the column; that after the last one is the sum of all columns, each times its `scale`.
    signs : ndarray of shape (c,)
        −1 for a column of positive values, 1 for one of negative ones.
    centres, lengths : ndarray of shape (c,)
        Median, and the distance from it to the value nearest to zero, or half of what the tail of values promises.
    scale : ndarray of shape (d,)
        Scale of each column in their sum.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(loc=[20, 0], size=(200, 2))
    >>> limits = find_limits(RawView("a", X, None), np.ones(2), None)
    >>> limits.reach(np.array([[20.0, 0.0], [18.0, 2.0], [0.02, 0.0]])).ratios.round(1)
    array([0. , 0.5, 5.5])
    """

    columns: NDArray
    signs: NDArray
    centres: NDArray
    lengths: NDArray
    scale: NDArray

    def reach(self, data: Matrix) -> Reach:
        """How far each row reaches, at least 0, and the column in which it reaches most."""
        ratios, columns = np.zeros(data.shape[0]), np.zeros(data.shape[0], dtype=np.intp)
        for first in range(0, len(self.columns), STRIP):
            part = slice(first, first + STRIP)
            values = _columns_of(data, self.columns[part], self.scale)
            with np.errstate(over="ignore", invalid="ignore"):
                found = self.signs[part] * (values - self.centres[part]) / self.lengths[part]
            best = found.argmax(axis=1)
            largest = found[np.arange(len(best)), best]
            further = largest > ratios
            ratios[further], columns[further] = largest[further], self.columns[part][best[further]]
        return Reach(ratios, columns)


def _columns_of(data: Matrix, columns: NDArray, scale: NDArray) -> NDArray:
    """Some columns in float64; that after the last one is the sum of all."""
    n_columns = data.shape[1]
    chosen = data[:, np.minimum(columns, n_columns - 1)]
    values = np.array(chosen.toarray() if sparse.issparse(chosen) else chosen, dtype=np.float64)
    if (columns == n_columns).any():
        values[:, columns == n_columns] = np.asarray(data @ scale, dtype=np.float64)[:, None]
    return values


def find_limits(raw: RawView, scale: NDArray, outliers: Outliers | None) -> ColumnLimits | None:
    """How far the columns of a view reach in fit, towards zero.

    Only columns whose values all have one sign have a limit: a smaller unit brings their values nearer to zero, and a
    code such as −999 beyond, while honest values seldom get there. Nor have columns in which few values differ, such as
    rare words, or columns that do not count. Values in a larger unit show by distances and residuals.

    Parameters
    ----------
    raw : RawView
        The view in canonical order, not scaled.
    scale : ndarray of shape (d,)
        What columns are multiplied by; a column with 0 does not count.
    outliers : Outliers or None
        What is replaced first.

    Returns
    -------
    ColumnLimits or None
        None if there are too few samples, or no column has a limit.
    """
    n_columns = raw.data.shape[1]
    max_rows = min(CRITERIA.max_rows, max(CRITERIA.max_values // max(n_columns, 1), 2 * _min_rows()))
    blocks = [block if outliers is None else outliers.replace(block) for block in distinct_rows(raw, max_rows)]
    if sum(block.shape[0] for block in blocks) < _min_rows():
        return None
    scale = np.asarray(scale, dtype=np.float64)
    parts = list(_limits_of(blocks, scale))
    columns, signs, centres, lengths = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ColumnLimits(columns, signs, centres, lengths, scale) if len(columns) else None


def _min_rows() -> int:
    return round(CRITERIA.min_tail / CRITERIA.tail)


def _limits_of(blocks: Sequence[Matrix], scale: NDArray) -> Iterator[Sequence[NDArray]]:
    """Columns, signs, centres and lengths, some columns at a time."""
    n_columns = blocks[0].shape[1]
    for first in range(0, n_columns + 1, STRIP):
        columns = np.arange(first, min(first + STRIP, n_columns + 1))
        values = np.concatenate([_columns_of(block, columns, scale) for block in blocks])
        # A column with values of both signs has no limit.
        one_sign = np.flatnonzero((values.min(axis=0) >= 0) | (values.max(axis=0) <= 0))
        columns, values = columns[one_sign], values if len(one_sign) == len(columns) else values[:, one_sign]
        centres = np.median(values, axis=0)
        signs = -np.sign(centres)
        beyond = np.sort(signs * (values - centres), axis=0)
        tail = beyond[-max(round(CRITERIA.tail * len(beyond)), CRITERIA.min_tail) - 1 :]
        start = tail[0]
        promised = start + np.log(10) * CRITERIA.decades * (tail[1:] - start).mean(axis=0)
        lengths = np.maximum(tail[-1], promised / 2)
        varies = ((tail[1:] > start).sum(axis=0) >= CRITERIA.min_tail) & (lengths > 0) & np.isfinite(lengths)
        counts = np.append(scale, 1.0)[columns] != 0
        chosen = np.flatnonzero(varies & (signs != 0) & counts)
        yield columns[chosen], signs[chosen], centres[chosen], lengths[chosen]
