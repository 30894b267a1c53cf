"""Samples that lack views, and samples that lack single values of a view."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from lmssc.data.frames import frame_columns, is_frame
from lmssc.data.shared_files import map_slices
from lmssc.data.storage import smaller
from lmssc.data.validation import Masks, list_some, unique_names
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix

# Values up to this share of the square root of the largest float can be squared and summed over all samples.
MAX_SHARE_OF_ROOT = 1e-3


def largest_value(dtype: np.dtype) -> float:
    """Largest value that a view may have: its square can be summed over all samples.

    Examples
    --------
    >>> f"{largest_value(np.dtype(np.float32)):.0e}"
    '2e+16'
    """
    return MAX_SHARE_OF_ROOT * float(np.sqrt(np.finfo(dtype).max))


class CheckedView(NamedTuple):
    """A view, and the rows in which single values are missing (None if there are none)."""

    raw: RawView
    gap_rows: NDArray | None


def make_raw_views(blocks: Mapping[str, Matrix], present: Masks, *, gaps: bool = False) -> list[RawView]:
    """Find out which samples lack which view.

    Parameters
    ----------
    blocks : mapping of str to array
        Views by name, as `read_collection` returns them.
    present : list or dict of boolean arrays, optional
        Which samples have each view, besides rows of NaN.
    gaps : bool
        Accept single missing values. Otherwise they are an error.

    Returns
    -------
    list of RawView

    Examples
    --------
    >>> raw = make_raw_views({"a": np.array([[np.nan, np.nan], [1.0, 2.0]]), "b": np.ones((2, 1))}, None)
    >>> raw[0].present, raw[1].present
    (array([False,  True]), None)
    """
    checked = check_views(blocks, present)
    if not gaps:
        refuse_gaps(checked)
    return [view.raw for view in checked]


def check_views(blocks: Mapping[str, Matrix], present: Masks) -> list[CheckedView]:
    """As `make_raw_views`, with the rows in which single values are missing.

    Examples
    --------
    >>> (checked,) = check_views({"a": np.array([[np.nan, 1.0], [1.0, 2.0]])}, None)
    >>> checked.gap_rows
    array([ True, False])
    """
    n_samples = next(iter(blocks.values())).shape[0]
    checked = []
    for (name, block), mask in zip(blocks.items(), _read_masks(present, list(blocks), n_samples), strict=True):
        missing, gap_rows = _check_rows(block, name, mask)
        has = mask & ~missing
        gap_rows &= mask
        # `stack_views` stores dense views as sparse ones.
        has_gaps = bool(gap_rows.any())
        raw = RawView(name, smaller(block, has_gaps=has_gaps), None if has.all() else has)
        checked.append(CheckedView(raw, gap_rows if has_gaps else None))
    nowhere = ~has_any_view([view.raw for view in checked])
    if nowhere.any():
        raise ValueError(
            f"samples that are missing (NaN) in every view: rows {list_some(np.flatnonzero(nowhere))}. "
            "Nothing is known about them; drop them"
        )
    return checked


def has_any_view(raws: Sequence[RawView], wanted: NDArray | None = None) -> NDArray:
    """Which samples have at least one of the views, or of those `wanted` by a boolean array.

    Examples
    --------
    >>> half = RawView("a", np.ones((2, 1)), np.array([True, False]))
    >>> has_any_view([half]), has_any_view([half, RawView("b", np.ones((2, 1)), None)], np.array([True, False]))
    (array([ True, False]), array([ True, False]))
    """
    found = np.zeros(raws[0].data.shape[0], dtype=bool)
    for v, raw in enumerate(raws):
        if wanted is None or wanted[v]:
            found |= True if raw.present is None else raw.present
    return found


def refuse_gaps(checked: Sequence[CheckedView]) -> None:
    """Raise an error that names the first row in which single values are missing."""
    for raw, gap_rows in checked:
        if gap_rows is not None:
            row = int(np.argmax(gap_rows))
            block = raw.data[row : row + 1]
            nan, stored = _count_by_row(block, np.isnan(_values(block)))
            raise ValueError(
                f"view {raw.name!r}, row {row}: contains NaN in {nan[0]} of {stored[0]} values. A sample that lacks "
                "the view has NaN in the whole row; single missing values are filled in with the median of their "
                'column if the estimator has impute="median" (or "mean")'
            )


def _read_masks(present: Any, names: Sequence[str], n_samples: int) -> list[NDArray]:
    """One mask per view; a table of masks has a row for each sample, so that scikit-learn can take some of them."""
    if is_frame(present):
        present = {name: np.asarray(present[name]) for name in frame_columns(present)}
    elif isinstance(present, np.ndarray) and present.shape == (n_samples, len(names)) and n_samples != len(names):
        present = list(present.T)
    if present is None:
        given: list[ArrayLike | None] = [None] * len(names)
    elif isinstance(present, Mapping):
        named = dict(zip(unique_names(present, "present"), present.values(), strict=True))
        unknown = sorted(set(named) - set(names))
        if unknown:
            raise ValueError(f"present names the views {unknown}, but the views are {list(names)}")
        given = [named.get(name) for name in names]
    elif isinstance(present, str) or not isinstance(present, Iterable):
        raise TypeError(f"present must be a list or dict with a boolean mask (or None) for each view, got {present!r}")
    else:
        given = list(present)
        if len(given) != len(names):
            raise ValueError(f"present has {len(given)} masks, but there are {len(names)} views")
    masks = []
    for name, mask in zip(names, given, strict=True):
        if isinstance(mask, np.ma.MaskedArray):
            raise TypeError(f"present: the mask of view {name!r} is a masked array, and would lose its own mask")
        try:
            array = np.ones(n_samples, bool) if mask is None else np.asarray(mask)
        except ValueError:
            array = np.asarray(mask, dtype=object)  # ragged lists
        if array.dtype != bool or array.shape != (n_samples,):
            raise ValueError(
                f"present: the mask of view {name!r} must be {n_samples} booleans, True where the sample has "
                f"the view; got {array.dtype} of shape {array.shape}"
            )
        masks.append(array)
    return masks


def _check_rows(block: Matrix, name: str, mask: NDArray) -> tuple[NDArray, NDArray]:
    """Rows that are all NaN, and rows that are NaN in part; infinite and huge values within `mask` are refused."""
    missing, gaps = np.zeros((2, block.shape[0]), dtype=bool)
    for rows, found in map_slices(partial(_check_part, name), block, mask):
        missing[rows], gaps[rows] = found
    return missing, gaps


def _check_part(name: str, block: Matrix, start: int, mask: NDArray) -> tuple[NDArray, NDArray]:
    """`_check_rows` for a slice of the rows that begins at row `start`."""
    values = _values(block)
    largest = largest_value(values.dtype)
    if not values.size or -largest <= values.min() <= values.max() <= largest:  # False if there is a NaN
        nothing = np.zeros(block.shape[0], dtype=bool)
        return nothing, nothing
    infinite, _ = _count_by_row(block, np.isinf(values))
    bad = np.flatnonzero((infinite > 0) & mask)
    if len(bad):
        raise ValueError(f"view {name!r}, row {start + bad[0]}: contains infinity (inf); values must be finite")
    with np.errstate(invalid="ignore"):
        huge, _ = _count_by_row(block, np.abs(values) > largest)
    bad = np.flatnonzero((huge > 0) & mask)
    if len(bad):
        raise ValueError(
            f"view {name!r}, row {start + bad[0]}: contains a value beyond ±{largest:.1e}, too large to be squared "
            f"in {values.dtype}. If it marks missing values, put NaN there; else use another unit"
        )
    nan, stored = _count_by_row(block, np.isnan(values))
    return (nan > 0) & (nan == stored), (nan > 0) & (nan < stored)


def _values(block: Matrix) -> NDArray:
    return block.data if sparse.issparse(block) else block


def _count_by_row(block: Matrix, flags: NDArray) -> tuple[NDArray, NDArray]:
    """Number of flagged and of stored values in each row."""
    if sparse.issparse(block):
        sums = np.concatenate([[0], np.cumsum(flags)])
        return sums[block.indptr[1:]] - sums[block.indptr[:-1]], np.diff(block.indptr)
    return flags.sum(axis=1), np.full(block.shape[0], block.shape[1])
