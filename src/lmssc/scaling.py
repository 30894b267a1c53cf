"""Scaling of the views, learned in fit and used again in predict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.mapped import MappedRows
from lmssc.threads import threaded_map
from lmssc.views import MappedView, Matrix, RawView, View, Views

SCALINGS = ("none", "zscore", "unit", "tfidf", "sample")
# Those of views of words.
WORDS = ("tfidf", "unit")
# A view with fewer non-zeros than this, none of them negative, is taken for words or other rare events.
TEXT_DENSITY = 0.2
# Values of which moments are taken at a time: they stay in the cache.
BLOCK_VALUES = 1 << 16
# Standardising a sample takes two of its degrees of freedom; of fewer features than this next to nothing is left.
FEWEST_FEATURES = 4


@dataclass(frozen=True)
class ViewScaling:
    """Scaling of one view: columns times `column_scale`, minus `mean` times it, unit rows if asked, times `factor`."""

    kind: str
    column_scale: NDArray | None = None
    mean: NDArray | None = None
    factor: float = 1.0

    def apply(self, raw: RawView, *, in_place: bool = False) -> View:
        """Scale a view; a sparse one stays sparse. If it may be done in place, `raw` is of no use after it.

        Examples
        --------
        >>> ViewScaling("unit").apply(RawView("a", np.array([[3.0, 4.0]]), None)).data
        array([[0.6, 0.8]])
        """
        if isinstance(raw.data, MappedRows):
            return MappedView(raw.data, present=raw.present, scale=self.apply)
        data = raw.data if raw.present is None else _zero_rows(raw.data, ~raw.present)
        factor = data.dtype.type(self.factor)
        if self.kind == "zscore":
            scale = self.column_scale * factor
            if sparse.issparse(data):
                return View(_scale_columns(data, scale), self.mean * scale, raw.present)
            if in_place or raw.present is not None:
                data -= self.mean
            else:
                data = data - self.mean
            data *= scale
            if raw.present is not None:
                data[~raw.present] = 0
            return View(data, None, raw.present)
        if self.column_scale is not None:
            data = _scale_columns(data, self.column_scale)
        if self.kind in ("unit", "tfidf"):
            data = _unit_rows(data)
        if self.kind == "sample":
            data = _standard_rows(data)
        return View(data if self.factor == 1.0 else data * factor, None, raw.present)


def _zero_rows(data: Matrix, rows: NDArray) -> Matrix:
    data = data.copy()
    if sparse.issparse(data):
        data.data[np.repeat(rows, np.diff(data.indptr))] = 0
        data.eliminate_zeros()
    else:
        data[rows] = 0
    return data


def _scale_columns(data: Matrix, scale: NDArray) -> Matrix:
    if sparse.issparse(data):
        data = data.copy()
        data.data *= scale[data.indices]
        return data
    return data * scale


def _unit_rows(data: Matrix) -> Matrix:
    if sparse.issparse(data):
        data = data.copy()
        norms = np.sqrt(np.asarray(data.astype(np.float64).power(2).sum(axis=1)).ravel())
        data.data /= np.repeat(np.where(norms > 0, norms, 1), np.diff(data.indptr)).astype(data.dtype)
        return data
    norms = np.sqrt(np.einsum("ij,ij->i", data, data, dtype=np.float64))
    return data / np.where(norms > 0, norms, 1)[:, None].astype(data.dtype)


def _standard_rows(data: Matrix) -> NDArray:
    """Each row minus its mean, over its standard deviation; dense, and zero for a constant row.

    Examples
    --------
    >>> _standard_rows(np.array([[1.0, 3.0], [5.0, 5.0]]))
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    data = data.toarray() if sparse.issparse(data) else data
    mean = data.mean(axis=1, dtype=np.float64, keepdims=True).astype(data.dtype)
    centred = data - mean
    deviation = np.sqrt(np.einsum("ij,ij->i", centred, centred, dtype=np.float64) / data.shape[1])[:, None]
    limits = np.finfo(data.dtype)
    varies = deviation > np.maximum(8 * limits.eps * np.abs(mean), limits.tiny)
    return np.where(varies, centred / np.where(varies, deviation, 1), 0).astype(data.dtype)


def choose_scaling(raw: RawView) -> str:
    """What `"auto"` means for a view, by its numbers and not by how they are stored.

    Mostly zeros and nothing negative is text: whole numbers are counts (`"tfidf"`), others are weights already
    (`"unit"`). Anything else is measured (`"zscore"`).

    Examples
    --------
    >>> choose_scaling(RawView("a", np.array([[1.5, -2.0], [0.3, 0.0]]), None))
    'zscore'
    >>> choose_scaling(RawView("a", 2 * np.eye(10), None))
    'tfidf'
    """
    size = _present_count(raw) * raw.data.shape[1]
    filled = sum(np.count_nonzero(values) for values in _present_values(raw))
    if filled >= TEXT_DENSITY * size or any((values < 0).any() for values in _present_values(raw)):
        return "zscore"
    return "tfidf" if all((values == np.rint(values)).all() for values in _present_values(raw)) else "unit"


def _present_count(raw: RawView) -> int:
    return raw.data.shape[0] if raw.present is None else int(raw.present.sum())


def _present_blocks(raw: RawView) -> Iterator[Matrix]:
    """The rows of the samples that have the view, in one or several blocks."""
    data = raw.data
    if isinstance(data, MappedRows):
        present = data if raw.present is None else data.take(np.flatnonzero(raw.present))
        yield from (block for _, block in present.blocks())
        return
    rows = data.shape[0] if sparse.issparse(data) else max(1, BLOCK_VALUES // data.shape[1])
    for first in range(0, data.shape[0], rows):
        part = slice(first, first + rows)
        yield data[part] if raw.present is None else data[part][raw.present[part]]


def _present_values(raw: RawView) -> Iterator[NDArray]:
    """All numbers, in one or several arrays."""
    yield from (block.data if sparse.issparse(block) else block for block in _present_blocks(raw))


def fit_scaling(raw: RawView, scaling: str) -> ViewScaling:
    """Learn the scaling of one view from the samples that have it; `factor` is left at 1.

    `"sample"` standardises each row, and makes a sparse view dense; a view of fewer than 4 features, of which it would
    leave nothing, is standardised by column instead.

    Examples
    --------
    >>> fit_scaling(RawView("a", np.array([[1.0, 7.0], [3.0, 7.0]]), None), "zscore").column_scale
    array([1., 0.])
    """
    kind = choose_scaling(raw) if scaling == "auto" else scaling
    if kind == "sample" and raw.data.shape[1] < FEWEST_FEATURES:
        kind = "zscore"
    dtype = raw.data.dtype
    if kind == "zscore":
        mean, scale = _moments(raw)
        return ViewScaling(kind, scale.astype(dtype), mean.astype(dtype))
    if kind == "tfidf":
        if any((values < 0).any() for values in _present_values(raw)):
            raise ValueError(f"scaling='tfidf' needs counts, but view {raw.name!r} has negative values; use 'zscore'")
        frequency = sum(np.asarray(block.astype(bool).sum(axis=0)).ravel() for block in _present_blocks(raw))
        return ViewScaling(kind, (np.log((1 + _present_count(raw)) / (1 + frequency)) + 1).astype(dtype))
    return ViewScaling(kind)


def _moments(raw: RawView) -> tuple[NDArray, NDArray]:
    """Mean of each column and 1 over its standard deviation, in float64; 0 for a constant column."""
    n, zeros = _present_count(raw), np.zeros(raw.data.shape[1])
    mean = sum((_sums(block) for block in _present_blocks(raw)), zeros) / n
    variance = sum((_squares(block, mean) for block in _present_blocks(raw)), zeros) / n
    # What rounding alone leaves of a constant column, and what is too small to be divided by.
    limits = np.finfo(raw.data.dtype)
    varies = variance > np.maximum(8 * limits.eps * np.abs(mean), limits.tiny) ** 2
    return mean, np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)


def _sums(block: Matrix) -> NDArray:
    """Sum of each column, in float64."""
    if sparse.issparse(block):
        return np.asarray(block.astype(np.float64).sum(axis=0)).ravel()
    return block.sum(axis=0, dtype=np.float64)


def _squares(block: Matrix, mean: NDArray) -> NDArray:
    """Sum of squared differences from the mean of each column."""
    if not sparse.issparse(block):
        centred = block - mean
        return np.einsum("ij,ij->j", centred, centred)
    stored = np.bincount(block.indices, minlength=len(mean))
    differences = block.data - mean[block.indices]
    squares = np.bincount(block.indices, weights=differences**2, minlength=len(mean))
    return squares + (block.shape[0] - stored) * mean**2


def scaling_by_view(
    scaling: str | Sequence[str | None] | Mapping[str, str | None] | None, names: Sequence[str]
) -> list[str]:
    """One scaling name for each view, from one for all, a list, or a dict by view name (absent: auto).

    Examples
    --------
    >>> scaling_by_view({"text": "tfidf"}, ["image", "text"])
    ['auto', 'tfidf']
    """
    if isinstance(scaling, Mapping):
        named = {str(name): one for name, one in scaling.items()}
        unknown = sorted(set(named) - set(names))
        if unknown:
            raise ValueError(f"scaling names the views {unknown}, but the views are {list(names)}")
        chosen = [named.get(name, "auto") for name in names]
    elif scaling is None or isinstance(scaling, str) or not isinstance(scaling, Iterable):
        chosen = [scaling] * len(names)
    else:
        chosen = list(scaling)
        if len(chosen) != len(names):
            raise ValueError(f"scaling has {len(chosen)} entries, but there are {len(names)} views: {list(names)}")
    chosen = ["none" if one is None else one for one in chosen]
    for one in chosen:
        if not isinstance(one, str) or one not in ("auto", *SCALINGS):
            raise ValueError(
                f"scaling must be 'auto', None or one of {SCALINGS}, for all views or a list or dict of "
                f"these by view; got {one!r}"
            )
    return [str(one) for one in chosen]


def fit_scalings(raws: Sequence[RawView], scalings: Sequence[str], *, equalise: bool = True) -> list[ViewScaling]:
    """Scaling of all views, if `equalise` so that each scaled view has the same mean squared row norm 1/V.

    A view with scaling `"none"` is used as it is. A view of zeros keeps its zeros.

    Examples
    --------
    >>> raw = RawView("a", np.array([[1.0], [3.0]]), None)
    >>> scalings = fit_scalings([raw, raw], ["unit", "zscore"])
    >>> [scaling.apply(raw).data.ravel().round(3).tolist() for scaling in scalings]
    [[0.707, 0.707], [-0.707, 0.707]]
    """

    def fit(raw: RawView, scaling: str) -> ViewScaling:
        if not _present_count(raw):
            raise ValueError(f"view {raw.name!r} is missing (NaN) for every sample; leave it out")
        one = fit_scaling(raw, scaling)
        if one.kind == "none":
            _check_unscaled(raw)
        elif equalise:
            energy = _energy(one, raw)
            one = replace(one, factor=float(1 / np.sqrt(len(raws) * energy)) if energy > 0 else 1.0)
        return one

    return threaded_map(fit, raws, scalings)


def _energy(scaling: ViewScaling, raw: RawView) -> float:
    """Mean squared row norm of a view that is scaled, over the samples that have it."""
    if scaling.kind == "zscore" and scaling.column_scale is not None:
        return float(np.count_nonzero(scaling.column_scale))  # every column that varies adds 1
    return scaling.apply(raw).squared_norm() / _present_count(raw)


def _check_unscaled(raw: RawView) -> None:
    """Unscaled values end up squared and squared again: leave room for it."""
    largest = float(np.finfo(raw.data.dtype).max) ** 0.25
    if any(np.abs(values).max(initial=0) > largest for values in _present_values(raw)):
        raise ValueError(
            f"view {raw.name!r} has values beyond ±{largest:.1e}, too large to be used unscaled in "
            f"{raw.data.dtype}; use another scaling than None, or another unit"
        )


def scale_views(raws: Sequence[RawView], scalings: Sequence[ViewScaling], *, in_place: bool = False) -> Views:
    """Apply fitted scalings."""
    return Views(threaded_map(lambda raw, scaling: scaling.apply(raw, in_place=in_place), raws, scalings))
