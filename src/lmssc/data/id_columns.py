"""Columns of narrow views that number the samples instead of measuring them.

As a view of its own, an id counts as much as all columns of another view, and makes neighbours of samples that have
nothing in common.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from lmssc.data.column_names import name_columns
from lmssc.data.dataset import Dataset
from lmssc.data.label_leaks import choose_rows, names_of_columns
from lmssc.data.memmap import read_rows
from lmssc.data.shared_files import readers_of
from lmssc.data.warn_caller import warn_caller


@dataclass(frozen=True)
class IdCriteria:
    """When the values of a column look like ids."""

    max_columns: int = 20
    """Views with more columns are not looked at: one of them hardly counts."""
    min_serial: int = 20
    """Rows from which on a column that counts them is no coincidence."""
    min_samples: int = 100
    """Samples that tell even values from a measurement, whose values are denser somewhere."""
    min_uniform: float = 0.05
    """Least p-value of Kolmogorov and Smirnov's test that the values are evenly spread."""
    min_unrelated: float = 0.01
    """Least p-value of Kruskal and Wallis' test that the values have nothing to do with the classes."""


CRITERIA = IdCriteria()


def warn_of_ids(dataset: Dataset) -> None:
    """Warn of columns that look like ids.

    Examples
    --------
    >>> import warnings
    >>> from lmssc.data.dataset import validate
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(200) < 0.2, rng.integers(0, 2, 200), -1)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_ids(validate({"a": rng.normal(size=(200, 5)), "key": np.c_[rng.permutation(200)]}, y))
    >>> print(str(caught[0].message)[:57])
    view 'key', column 0 (counted from 0) looks like an id: w
    """
    for v, view in enumerate(dataset.views):
        if view.data.shape[1] > CRITERIA.max_columns or sparse.issparse(view.data) or readers_of(view.data) is not None:
            continue
        names = names_of_columns(dataset, v)
        for column in find_ids(dataset, v):
            warn_caller(
                f"view {dataset.names[v]!r}, {name_columns(column, names)} looks like an id: whole numbers, all "
                "different, that either count the rows or are unrelated to the labels. As a feature it makes "
                "neighbours of samples that have nothing in common; leave it out",
            )


def find_ids(dataset: Dataset, v: int) -> list[int]:
    """Columns of one view that look like ids.

    Examples
    --------
    >>> from lmssc.data.dataset import validate
    >>> rng = np.random.default_rng(0)
    >>> columns = [np.arange(300), rng.integers(0, 10**9, 300), rng.normal(size=300) // 1e-9, rng.integers(0, 9, 300)]
    >>> find_ids(validate(np.transpose(columns), np.arange(300) % 3), 0)
    [0, 1]
    """
    data, present = dataset.views[v].data, dataset.views[v].present
    chosen = choose_rows(dataset, v, np.ones(dataset.n_samples, dtype=bool))
    first = np.arange(min(len(chosen), dataset.n_samples))
    sample, rows = (np.asarray(read_rows(data, some), dtype=np.float64) for some in (chosen, first))
    known = np.ones(dataset.n_samples, dtype=bool) if present is None else present
    found = []
    for column in range(data.shape[1]):
        there = known[chosen] & np.isfinite(sample[:, column])
        values, codes = sample[there, column], dataset.codes[chosen][there]
        if not _are_distinct_whole(values):
            continue
        if (known[first].all() and _counts_rows(rows[:, column])) or (
            _is_even(values) and _is_unrelated(values, codes)
        ):
            found.append(column)
    return found


def _are_distinct_whole(values: NDArray) -> bool:
    whole = len(values) > 1 and bool((values == np.rint(values)).all())
    return whole and len(np.unique(values)) == len(values)


def _counts_rows(values: NDArray) -> bool:
    """Whether each row has the number of the one before it, plus or minus a constant."""
    return len(values) >= CRITERIA.min_serial and len(np.unique(np.diff(values))) == 1


def _is_even(values: NDArray) -> bool:
    low, high = values.min(), values.max()
    if len(values) < CRITERIA.min_samples:
        return False
    return bool(stats.kstest((values - low) / (high - low), "uniform").pvalue >= CRITERIA.min_uniform)


def _is_unrelated(values: NDArray, codes: NDArray) -> bool:
    groups = [values[codes == code] for code in np.unique(codes[codes >= 0])]
    return len(groups) < 2 or bool(stats.kruskal(*groups).pvalue >= CRITERIA.min_unrelated)
