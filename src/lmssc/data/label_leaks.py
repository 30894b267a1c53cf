"""Columns that seem to be made from the labels: they tell the class of labelled samples, and differ on all others.

A copy of the labels among the features finds every held-out label and says nothing about any other sample, so that
wrong answers look certain. An honest feature has the same distribution on labelled and unlabelled samples of a class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from lmssc.data.column_names import name_columns
from lmssc.data.dataset import Dataset
from lmssc.data.memmap import read_rows
from lmssc.data.shared_files import readers_of
from lmssc.data.warn_caller import warn_caller
from lmssc.numerics.matrices import Matrix


@dataclass(frozen=True)
class LeakCriteria:
    """When a column counts as made from the labels."""

    max_rows: int = 2000
    min_rows: int = 100
    max_values: int = 1 << 21
    """Labelled samples, and unlabelled ones, that are compared; fewer of them if their values would be more."""
    risk: float = 1e-3
    """Probability of a false alarm in a view whose labelled samples were drawn at random, at most."""
    min_explained: float = 0.5
    """Least share of the variance among labelled samples that lies between the classes."""
    min_difference: float = 0.3
    """Least difference between the shares of labelled and unlabelled samples in an interval, from 0 to 1."""
    n_bins: int = 16
    n_steps: int = 100
    """Bins of a column, and steps that find the classes of its unlabelled samples."""


CRITERIA = LeakCriteria()
# Columns that are compared at a time.
STRIP = 1000


class Leak(NamedTuple):
    """A column that seems to be made from the labels, by number of view and column, and what shows it."""

    view: int
    column: int
    unlabelled: str


def warn_of_leaks(dataset: Dataset) -> None:
    """Warn of columns that seem to be made from the labels.

    Examples
    --------
    >>> import warnings
    >>> from lmssc.data.dataset import validate
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(rng.random(200) < 0.2, rng.integers(0, 2, 200), -1)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_leaks(validate({"a": np.c_[rng.normal(size=200), y]}, y))
    >>> print(str(caught[0].message)[:68])
    view 'a', column 1 (counted from 0) seems to be made from the labels
    """
    by_view: dict[int, list[Leak]] = {}
    for leak in find_leaks(dataset):
        by_view.setdefault(leak.view, []).append(leak)
    for v, leaks in by_view.items():
        names = names_of_columns(dataset, v)
        which, many = name_columns([leak.column for leak in leaks], names), len(leaks) > 1
        warn_caller(
            f"view {dataset.names[v]!r}, {which} seem{'s' * (not many)} to be made from the labels: "
            f"{'they tell' if many else 'it tells'} the classes of labelled samples apart, and "
            f"{leaks[0].unlabelled}. Held-out labels are then found too well, and unlabelled samples get wrong answers "
            f"with high confidence. Leave {'these columns' if many else 'the column'} out, unless only clear cases "
            "were labelled: then label some of the others",
        )


def names_of_columns(dataset: Dataset, v: int) -> Sequence[str] | None:
    """Names of the columns of a view, if they have names."""
    if dataset.feature_names is not None:
        return [str(name) for name in dataset.feature_names[dataset.layout.columns[v]]]
    return dataset.column_names.get(dataset.names[v])


def find_leaks(dataset: Dataset) -> list[Leak]:
    """Columns that seem to be made from the labels.

    A column is suspected if most of its variance among labelled samples lies between the classes, and unlabelled
    samples have one value only (or none at all) that labelled ones hardly have, or a distribution that no mixture of
    the classes has: which classes are frequent may differ between labelled and unlabelled samples, the classes
    themselves may not. Up to 2,000 labelled and 2,000 unlabelled samples are compared, fewer if a dense view has many
    columns, chosen by their hashes.

    Examples
    --------
    >>> from lmssc.data.dataset import validate
    >>> rng = np.random.default_rng(0)
    >>> t = rng.integers(0, 2, 200)
    >>> y = np.where(rng.random(200) < 0.2, t, -1)
    >>> find_leaks(validate(np.c_[t + 0.1 * rng.normal(size=200), y], y))
    [Leak(view=0, column=1, unlabelled='unlabelled samples have one value there')]
    """
    if (dataset.codes >= 0).all():
        return []
    return [leak for v in range(len(dataset.views)) for leak in _leaks_of_view(dataset, v)]


def _leaks_of_view(dataset: Dataset, v: int) -> Iterator[Leak]:
    view = dataset.views[v]
    if readers_of(view.data) is not None:  # on a cluster
        return
    labelled, others = (choose_rows(dataset, v, rows) for rows in (dataset.codes >= 0, dataset.codes < 0))
    if view.present is not None:
        labelled = labelled[view.present[labelled]]
    codes, known, rest = dataset.codes[labelled], read_rows(view.data, labelled), None
    n_columns = known.shape[1]
    risk = CRITERIA.risk / max(n_columns, 1)
    for first in range(0, n_columns, STRIP):
        columns = np.arange(first, min(first + STRIP, n_columns))
        suspects = columns[_tells_classes(known[:, columns], codes, risk)]
        if not len(suspects):
            continue
        rest = read_rows(view.data, others) if rest is None else rest
        unknown = _dense(rest, suspects)
        if view.present is not None:
            unknown[~view.present[others]] = np.nan
        for column, ours, theirs in zip(suspects.tolist(), _dense(known, suspects).T, unknown.T, strict=True):
            found = _difference(ours, codes, theirs, risk)
            if found is not None:
                yield Leak(v, column, found)


def choose_rows(dataset: Dataset, v: int, wanted: NDArray) -> NDArray:
    """Some of the wanted rows, ascending; by their hashes, so that their order does not matter."""
    rows, data = np.flatnonzero(wanted), dataset.views[v].data
    limit = CRITERIA.max_rows
    if not sparse.issparse(data):
        limit = min(limit, max(CRITERIA.min_rows, CRITERIA.max_values // max(data.shape[1], 1)))
    if len(rows) <= limit:
        return rows
    by_key = np.argsort(dataset.keys_by_view[v][rows])
    places = np.arange(limit) * len(rows) // limit  # identical rows keep their share
    return rows[np.sort(by_key[places])]


def _dense(data: Matrix, columns: NDArray) -> NDArray:
    part = data[:, columns]
    return np.array(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)


def _tells_classes(data: Matrix, codes: NDArray, risk: float) -> NDArray:
    """Which columns have most of their variance between the classes, more than by chance (an F test)."""
    if len(codes) == 0:
        return np.zeros(data.shape[1], dtype=bool)
    values, counts = _centred(data)
    members = sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))
    sums, sizes = members @ values, members @ counts
    if sparse.issparse(sums):
        sums = sums.tocoo()
        n_rows = float(len(codes))
        squares = np.bincount(sums.col, sums.data**2 / sizes[sums.row, 0], minlength=data.shape[1])
        total = np.asarray(values.power(2).sum(axis=0)).ravel()
        offset = np.asarray(values.sum(axis=0)).ravel() ** 2 / n_rows
        between, total = squares - offset, total - offset
        sizes, n_values = sizes[:, :1], n_rows
    else:
        between = (sums**2 / np.maximum(sizes, 1)).sum(axis=0)
        total, n_values = (values**2).sum(axis=0), counts.sum(axis=0)
    n_classes = (sizes > 0).sum(axis=0)
    explained = np.divide(between, total, out=np.zeros_like(total), where=total > 0).clip(0, 1)
    within = np.maximum(n_values - n_classes, 0) / 2
    tested = (within > 0) & (n_classes > 1) & (explained >= CRITERIA.min_explained)
    chance = special.betainc(np.where(tested, within, 1), np.where(tested, (n_classes - 1) / 2, 1), 1 - explained)
    return tested & (chance <= risk)


def _centred(data: Matrix) -> tuple[Matrix, NDArray]:
    """The values, centred by column if they are dense, with 0 for missing ones; and 1 for each that is there."""
    if sparse.issparse(data):
        return sparse.csr_array(data, dtype=np.float64), np.ones((data.shape[0], 1))
    data = np.asarray(data, dtype=np.float64)
    there = ~np.isnan(data)
    counts = there.sum(axis=0)
    mean = np.where(there, data, 0).sum(axis=0) / np.maximum(counts, 1)
    centred = np.where(there, data - mean, 0)
    # What is left of a constant column is rounding error.
    centred[:, (centred**2).sum(axis=0) <= counts * (8 * np.finfo(np.float64).eps * mean) ** 2] = 0
    return centred, there.astype(np.float64)


def _difference(ours: NDArray, codes: NDArray, theirs: NDArray, risk: float) -> str | None:
    """How unlabelled samples differ from labelled ones in a column, if chance or other classes cannot explain it."""
    missing = np.isnan(theirs)
    if missing.all() or (not missing.any() and (theirs == theirs[0]).all()):
        others = ~np.isnan(ours) if missing.all() else ours != theirs[0]
        alone = _chance_of_all(int(others.sum()), len(ours), len(ours) + len(theirs))
        what = "have no value there" if missing.all() else "have one value there"
        return f"unlabelled samples {what}" if alone <= risk else None
    here = ~np.isnan(ours)
    if _differs(ours[here], codes[here], theirs[~missing], risk):
        return "unlabelled samples have other values there"
    return None


def _chance_of_all(n_special: int, n_drawn: int, n_samples: int) -> float:
    """Probability that all of some special samples are among those that are drawn at random.

    Examples
    --------
    >>> round(_chance_of_all(2, 5, 10), 3)
    0.222
    """
    ratio = special.gammaln([n_drawn + 1, n_samples - n_special + 1]).sum()
    return float(np.exp(ratio - special.gammaln([n_drawn - n_special + 1, n_samples + 1]).sum()))


def _differs(ours: NDArray, codes: NDArray, theirs: NDArray, risk: float) -> bool:
    """Whether no mixture of the classes has the distribution of the unlabelled samples.

    The mixture that comes nearest is found by expectation maximisation; Kuiper's test says what chance gives.
    """
    edges = _edges(np.concatenate([ours, theirs]))
    n_bins = len(edges) + 1
    classes, sizes = np.unique(codes, return_counts=True)
    place = np.searchsorted(classes, codes) * n_bins + np.searchsorted(edges, ours)
    shares = np.bincount(place, minlength=len(classes) * n_bins).reshape(-1, n_bins) / sizes[:, None]
    wanted = np.bincount(np.searchsorted(edges, theirs), minlength=n_bins) / len(theirs)
    weights = sizes / sizes.sum()
    if _kuiper(wanted - weights @ shares) < CRITERIA.min_difference:  # the classes are as frequent as the labels
        return False
    for _ in range(CRITERIA.n_steps):
        mixed = weights @ shares
        ratio = np.divide(wanted, mixed, out=np.zeros(n_bins), where=mixed > 0)
        if not ratio.any():  # nothing in common
            break
        weights = weights * (shares @ ratio)
        weights /= weights.sum()
    difference = _kuiper(wanted - weights @ shares)
    square = difference**2 / ((weights**2 / sizes).sum() + 1 / len(theirs))
    by_chance = max(8 * square - 2, 1) * np.exp(-2 * square)
    return bool(difference >= CRITERIA.min_difference and by_chance <= risk)


def _kuiper(differences: NDArray) -> float:
    """Largest difference of two distributions in an interval, given that in each bin."""
    below = np.cumsum(differences)
    return float(max(below.max(), 0) - min(below.min(), 0))


def _edges(values: NDArray) -> NDArray:
    """Borders between up to `n_bins` bins of a column: between its distinct values, or about equally many in each."""
    distinct = np.unique(values)
    if len(distinct) > CRITERIA.n_bins:
        places = np.linspace(0, 1, CRITERIA.n_bins + 1)[1:-1]
        return np.unique(np.quantile(values, places, method="lower"))
    return distinct[:-1]
