"""Scaling of the views: learned in `fit`, applied again in `predict`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.column_limits import ColumnLimits, Reach, find_limits
from lmssc.data.kept_deviations import KeptDeviations
from lmssc.data.memmap import MappedRows
from lmssc.data.outliers import Outliers, find_outliers
from lmssc.data.present_rows import has_negative, map_present, map_values, present_count
from lmssc.data.view import MappedView, RawView, View
from lmssc.data.view_kinds import Choice, choose_scalings
from lmssc.data.views import Views
from lmssc.data.whitening import Whitening
from lmssc.numerics.matrices import Matrix
from lmssc.numerics.parallel import threaded_map

SCALINGS = ("none", "zscore", "mixed", "unit", "tfidf", "sample", "center", "sqrt", "log", "logidf")
# Scalings that subtract the mean of each column.
CENTRED = ("zscore", "mixed", "center", "sqrt")
# Those of them that multiply all columns by the same factor, so that their variances stay in proportion.
ONE_FACTOR = ("center", "sqrt")
# Those whose factors are 1 over the standard deviation of each column.
STANDARDISED = ("zscore", "mixed")
# Factor for columns of 0 and 1 in "mixed". With it, samples of different categories are at distance 1, the standard
# deviation of a number. Standardised they would be at least 2 apart, and never neighbours, however alike otherwise.
INDICATOR = 0.5**0.5
# Scalings of views of words.
WORDS = ("tfidf", "unit", "log", "logidf")
# Those with weights for rare words.
WITH_IDF = ("tfidf", "logidf")
# What replaces each value first; new samples may have negative ones.
CHANGES = {
    "sqrt": lambda values: np.sign(values) * np.sqrt(np.abs(values)),
    "log": lambda values: np.sign(values) * np.log1p(np.abs(values)),
    "logidf": lambda values: np.sign(values) * np.log1p(np.abs(values)),
}
# Scalings of counts or amounts, which are not negative.
NOT_NEGATIVE = (*WITH_IDF, *CHANGES)
# Standardising a row removes two degrees of freedom: with fewer features than this, hardly any are left.
MIN_FEATURES = 4


@dataclass(frozen=True)
class ViewScaling:
    """Scaling of one view.

    `apply` replaces values beyond the `outliers` of fit, takes the root ("sqrt") or ln(1 + x) ("log", "logidf"),
    subtracts `mean`, multiplies the columns by `column_scale`, normalises the rows (words and "sample"), multiplies all
    by `factor`, and applies `whitening`. `reason` says why this kind was chosen, and `limits` how far the columns reach
    in fit, if they are centred. `standard_scale` would standardise columns that were given back their variances.
    """

    kind: str
    column_scale: NDArray | None = None
    mean: NDArray | None = None
    factor: float = 1.0
    outliers: Outliers | None = None
    reason: str = ""
    limits: ColumnLimits | None = None
    whitening: Whitening | None = None
    standard_scale: NDArray | None = None

    @property
    def inverse_deviations(self) -> NDArray | None:
        """1 over the standard deviation of each column in fit, 0 for a constant one; None if it is not known."""
        return self.column_scale if self.kind in STANDARDISED else self.standard_scale

    def changed(self, change: Whitening | KeptDeviations | None) -> "ViewScaling":
        """The same scaling, which standardises, and then this change."""
        better = f"{self.reason}; held-out labels are found better with"
        if isinstance(change, Whitening):
            reason = f"{better} correlated columns whitened (strength {change.strength:g})"
            return replace(self, whitening=change, reason=reason)
        if change is not None and self.column_scale is not None:
            scale = (self.column_scale.astype(np.float64) * change.weights).astype(self.column_scale.dtype)
            reason = f"{better} the variances of columns kept"
            return replace(self, kind="center", column_scale=scale, standard_scale=self.column_scale, reason=reason)
        return self

    def reach(self, raw: RawView) -> Reach:
        """How far each sample is beyond the reach of the columns in fit; 0 for a sample that lacks the view."""
        if self.limits is None:
            n_samples = raw.data.shape[0]
            return Reach(np.zeros(n_samples), np.zeros(n_samples, dtype=np.intp))
        data = raw.data if raw.present is None else _zero_rows(raw.data, ~raw.present)
        found = self.limits.reach(data if self.outliers is None else self.outliers.replace(data))
        return found if raw.present is None else Reach(np.where(raw.present, found.ratios, 0), found.columns)

    def apply(self, raw: RawView, *, in_place: bool = False) -> View:
        """Scale a view; a sparse view stays sparse. With `in_place`, the data of `raw` may be overwritten.

        Examples
        --------
        >>> ViewScaling("unit").apply(RawView("a", np.array([[3.0, 4.0]]), None)).data
        array([[0.6, 0.8]])
        """
        if isinstance(raw.data, MappedRows):
            return MappedView(raw.data, present=raw.present, scale=self.apply)
        data = raw.data if raw.present is None else _zero_rows(raw.data, ~raw.present)
        factor = data.dtype.type(self.factor)
        if self.outliers is not None:
            data = self.outliers.replace(data)
        if self.kind in CHANGES:
            data, in_place = _change(data, self.kind), True
        if self.kind in CENTRED:
            scale = self.column_scale * factor
            if sparse.issparse(data):
                return View(_scale_columns(data, scale), self.mean * scale, raw.present)
            if in_place or raw.present is not None:
                data -= self.mean
            else:
                data = data - self.mean
            data *= scale
            if self.whitening is not None:
                data = self.whitening.apply(data)
            if raw.present is not None:
                data[~raw.present] = 0
            return View(data, None, raw.present)
        if self.column_scale is not None:
            data = _scale_columns(data, self.column_scale)
        if self.kind in WORDS:
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


def _change(data: Matrix, kind: str) -> Matrix:
    """A copy with the root or the logarithm of each value; zeros stay zeros."""
    if sparse.issparse(data):
        return sparse.csr_array((CHANGES[kind](data.data), data.indices, data.indptr), shape=data.shape)
    return CHANGES[kind](data)


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
    """Standardise each row: dense, and zero for a constant row.

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
    """Choose what `"auto"` means for one view (:func:`~lmssc.data.view_kinds.choose_scalings`).

    Examples
    --------
    >>> choose_scaling(RawView("a", np.array([[1.5, -2.0], [0.3, 0.0]]), None))
    'zscore'
    >>> choose_scaling(RawView("a", 2 * np.eye(10), None))
    'log'
    >>> choose_scaling(RawView("a", np.diag(np.arange(10.0)), None))
    'zscore'
    """
    return choose_scalings([raw])[0].kind


def fit_scaling(raw: RawView, scaling: str) -> ViewScaling:
    """Learn the scaling of one view from the samples that have it; `factor` is left at 1.

    `"sample"` standardises each row, and makes a sparse view dense. It would leave hardly anything of fewer than 4
    features, so such a view is standardised by column instead. Outliers are excluded from the mean and the standard
    deviation (:func:`~lmssc.data.outliers.find_outliers`).

    Examples
    --------
    >>> fit_scaling(RawView("a", np.array([[1.0, 7.0], [3.0, 7.0]]), None), "zscore").column_scale
    array([1., 0.])
    """
    kind = choose_scaling(raw) if scaling == "auto" else scaling
    if kind == "sample" and raw.data.shape[1] < MIN_FEATURES:
        kind = "zscore"
    dtype = raw.data.dtype
    if kind in NOT_NEGATIVE and has_negative(raw):
        raise ValueError(f"scaling={kind!r} needs counts, but view {raw.name!r} has negative values; use 'zscore'")
    if kind in CENTRED:
        mean, scale = _moments(raw)
        found = find_outliers(raw, np.where(scale > 0, 1 / np.where(scale > 0, scale, 1), 0))
        outliers = None
        if found is not None:  # the ones of a column of 0, 1 and an imputed value are none
            numbers = ~_are_indicators(raw)[found[0].columns]
            found = (found[0].take(numbers), found[1][numbers]) if numbers.any() else None
        if found is not None:
            outliers, deviation = found
            mean[outliers.columns] = outliers.mean
            scale[outliers.columns] = _inverse(outliers.mean, deviation**2, dtype)
        if kind in CHANGES:
            mean, scale = _moments(
                raw, lambda block: _change(block if outliers is None else outliers.replace(block), kind)
            )
        if kind in ONE_FACTOR:
            scale = (scale > 0).astype(dtype)
        if kind == "mixed":
            scale = np.where(_are_indicators(raw) & (scale > 0), INDICATOR, scale)
        limits = find_limits(raw, scale, outliers)
        return ViewScaling(kind, scale.astype(dtype), mean.astype(dtype), outliers=outliers, limits=limits)
    if kind in WITH_IDF:
        frequency = sum(map_present(lambda block: np.asarray(block.astype(bool).sum(axis=0)).ravel(), raw))
        return ViewScaling(kind, (np.log((1 + present_count(raw)) / (1 + frequency)) + 1).astype(dtype))
    return ViewScaling(kind)


def _moments(raw: RawView, change: Callable[[Matrix], Matrix] = lambda block: block) -> tuple[NDArray, NDArray]:
    """Mean of each column and 1 over its standard deviation, in float64, after `change`; 0 for a constant column."""
    n, zeros = present_count(raw), np.zeros(raw.data.shape[1])
    mean = sum(map_present(lambda block: _sums(change(block)), raw), zeros) / n
    first, second = sum(map_present(lambda block: _moments_about(change(block), mean), raw), np.zeros((2, len(mean))))
    # Long sums round: without what they miss of the mean, many values of 0.1 would vary.
    missed = first / n
    mean += missed
    return mean, _inverse(mean, second / n - missed**2, raw.data.dtype)


def _inverse(mean: NDArray, variance: NDArray, dtype: np.dtype) -> NDArray:
    """1 over the standard deviation of each column; 0 for a constant one."""
    # A smaller variance is rounding error of a constant column, or too small to divide by.
    limits = np.finfo(dtype)
    varies = variance > np.maximum(8 * limits.eps * np.abs(mean), limits.tiny) ** 2
    return np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)


def _are_indicators(raw: RawView) -> NDArray:
    """Which columns hold only 0 and 1; one more value between them is allowed, the imputed one.

    Examples
    --------
    >>> _are_indicators(RawView("a", np.array([[0.0, 0.0], [1.0, 0.3], [0.4, 0.7]]), None))
    array([ True, False])
    """
    lows, highs = zip(*map_present(_range_of_others, raw), strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    return (low > high) | ((low == high) & (low > 0) & (high < 1))


def _range_of_others(block: Matrix) -> tuple[NDArray, NDArray]:
    """Smallest and largest value of each column that is neither 0 nor 1."""
    low, high = np.full(block.shape[1], np.inf), np.full(block.shape[1], -np.inf)
    values = block.data if sparse.issparse(block) else block
    other = np.nonzero((values != 0) & (values != 1))
    columns = block.indices[other] if sparse.issparse(block) else other[1]
    np.minimum.at(low, columns, values[other])
    np.maximum.at(high, columns, values[other])
    return low, high


def _sums(block: Matrix) -> NDArray:
    """Sum of each column, in float64."""
    if sparse.issparse(block):
        return np.asarray(block.astype(np.float64).sum(axis=0)).ravel()
    return block.sum(axis=0, dtype=np.float64)


def _moments_about(block: Matrix, mean: NDArray) -> NDArray:
    """Sums over each column of the differences from `mean`, and of their squares."""
    if not sparse.issparse(block):
        centred = block - mean
        return np.stack([centred.sum(axis=0), np.einsum("ij,ij->j", centred, centred)])
    n_zeros = block.shape[0] - np.bincount(block.indices, minlength=len(mean))
    differences = block.data - mean[block.indices]
    sums, squares = (np.bincount(block.indices, weights=differences**power, minlength=len(mean)) for power in (1, 2))
    return np.stack([sums - n_zeros * mean, squares + n_zeros * mean**2])


def scaling_by_view(
    scaling: str | Sequence[str | None] | Mapping[str, str | None] | None, names: Sequence[str]
) -> list[str]:
    """List one scaling per view, given one for all, a list, or a dict by view name (default "auto").

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
    """Learn the scalings of all views; with `equalise`, each scaled view has the mean squared row norm 1/V.

    A view with scaling `"none"` is used as it is. A view of zeros keeps its zeros.

    Examples
    --------
    >>> raw = RawView("a", np.array([[1.0], [3.0]]), None)
    >>> scalings = fit_scalings([raw, raw], ["unit", "zscore"])
    >>> [scaling.apply(raw).data.ravel().round(3).tolist() for scaling in scalings]
    [[0.707, 0.707], [-0.707, 0.707]]
    """
    for raw in raws:
        if not present_count(raw):
            raise ValueError(f"view {raw.name!r} is missing (NaN) for every sample; leave it out")
    autos = [v for v, scaling in enumerate(scalings) if scaling == "auto"]
    choices = [Choice(scaling, "as asked for") for scaling in scalings]
    for v, choice in zip(autos, choose_scalings([raws[v] for v in autos]), strict=True):
        choices[v] = choice

    def fit(raw: RawView, choice: Choice) -> ViewScaling:
        one = replace(fit_scaling(raw, choice.kind), reason=choice.reason)
        if one.kind == "none":
            _check_unscaled(raw)
        elif equalise:
            energy = _energy(one, raw)
            one = replace(one, factor=float(1 / np.sqrt(len(raws) * energy)) if energy > 0 else 1.0)
        return one

    return threaded_map(fit, raws, choices)


def _energy(scaling: ViewScaling, raw: RawView) -> float:
    """Mean squared row norm of the scaled view, over the samples that have it."""
    if scaling.kind == "zscore" and scaling.column_scale is not None:
        return float(np.count_nonzero(scaling.column_scale))  # every column that varies contributes 1
    return scaling.apply(raw).squared_norm() / present_count(raw)


def _check_unscaled(raw: RawView) -> None:
    """Raise an error if the fourth power of a value would overflow: unscaled values are squared twice."""
    largest = float(np.finfo(raw.data.dtype).max) ** 0.25
    if any(found > largest for found in map_values(lambda values: np.abs(values).max(initial=0), raw)):
        raise ValueError(
            f"view {raw.name!r} has values beyond ±{largest:.1e}, too large to be used unscaled in "
            f"{raw.data.dtype}; use another scaling than None, or another unit"
        )


def scale_views(raws: Sequence[RawView], scalings: Sequence[ViewScaling], *, in_place: bool = False) -> Views:
    """Apply fitted scalings."""
    return Views(threaded_map(lambda raw, scaling: scaling.apply(raw, in_place=in_place), raws, scalings))
