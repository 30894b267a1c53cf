"""Which columns of one 2-D X belong to which view."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmssc.data.validation import ViewSpec, default_names, list_some, unique_names
from lmssc.numerics.matrices import Matrix

WANTED = "views must be widths (integers), slices, or a dict of name → columns"


class Layout(NamedTuple):
    """Names of the views and the column indices of each in one 2-D X."""

    names: list[str]
    columns: list[NDArray]

    @classmethod
    def from_widths(cls, names: Sequence[str], widths: Sequence[int]) -> "Layout":
        """Views side by side.

        Examples
        --------
        >>> Layout.from_widths(["a", "b"], [2, 1])
        Layout(names=['a', 'b'], columns=[array([0, 1]), array([2])])
        """
        return cls(list(names), np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1]))

    @property
    def widths(self) -> list[int]:
        """Number of features of each view."""
        return [len(columns) for columns in self.columns]

    def split(self, block: Matrix) -> dict[str, Matrix]:
        """Cut one 2-D X into views; adjacent columns of a dense X are not copied."""
        return {name: _take_columns(block, columns) for name, columns in zip(self.names, self.columns, strict=True)}


def _take_columns(block: Matrix, columns: NDArray) -> Matrix:
    adjacent = isinstance(block, np.ndarray) and (np.diff(columns) == 1).all()
    return block[:, columns[0] : columns[-1] + 1] if adjacent else block[:, columns]


def read_layout(views: ViewSpec, n_columns: int, feature_names: Sequence[str] | None) -> Layout:
    """Read the parameter `views`: how the columns of one 2-D X are divided into views.

    Parameters
    ----------
    views : list of int, list of slices, dict of name → columns, or None
        Widths, slices, or columns by name; None for a single view.
    n_columns : int
        Columns of X.
    feature_names : sequence of str, optional
        Names of the columns of X, if it is a data frame.

    Returns
    -------
    Layout

    Examples
    --------
    >>> read_layout([2, 1], 3, None)
    Layout(names=['view0', 'view1'], columns=[array([0, 1]), array([2])])
    >>> read_layout({"text": slice(1, 3), "age": [0]}, 3, None).names
    ['text', 'age']
    """
    if views is None:
        return Layout.from_widths(["view0"], [n_columns])
    if isinstance(views, Mapping) and len(views):
        names = unique_names(views, "views")
        columns = [_find_columns(spec, n_columns, feature_names, name) for name, spec in views.items()]
    elif isinstance(views, Sequence | np.ndarray) and not isinstance(views, str) and len(views):
        names = default_names(len(views))
        columns = _read_sequence(list(views), names, n_columns)
    else:
        raise TypeError(WANTED)
    for name, chosen in zip(names, columns, strict=True):
        if not len(chosen):
            raise ValueError(f"views: view {name!r} is empty")
    _check_partition(columns, n_columns)
    return Layout(names, columns)


def _read_sequence(specs: list[Any], names: list[str], n_columns: int) -> list[NDArray]:
    """Columns of views that are given as slices or widths."""
    if all(isinstance(spec, slice) for spec in specs):
        return [_slice_columns(spec, n_columns, name) for name, spec in zip(names, specs, strict=True)]
    if not all(isinstance(spec, int | np.integer) and not isinstance(spec, bool) for spec in specs):
        raise TypeError(WANTED)
    if min(specs) < 1:
        raise ValueError(f"views has a width of {min(specs)}: an empty view; widths are at least 1")
    if sum(specs) != n_columns:
        raise ValueError(f"views has widths that add up to {sum(specs)}, but X has {n_columns} columns")
    return Layout.from_widths(names, specs).columns


def _find_columns(spec: Any, n_columns: int, feature_names: Sequence[str] | None, view: str) -> NDArray:
    """Column indices of one entry of a `views` dict."""
    if isinstance(spec, slice):
        return _slice_columns(spec, n_columns, view)
    single = isinstance(spec, int | np.integer | str) or not isinstance(spec, Iterable)
    wanted: list[Any] = [spec] if single else list(spec)
    if any(isinstance(column, str) for column in wanted):
        return _find_names(wanted, feature_names, view)
    strange = [c for c in wanted if not isinstance(c, int | np.integer) or isinstance(c, bool)]
    if strange:
        raise TypeError(f"views: view {view!r} must be column numbers, names or a slice, not {strange[0]!r}")
    outside = [column for column in wanted if not 0 <= column < n_columns]
    if outside:
        raise ValueError(f"views: view {view!r} has the columns {outside}, but X has {n_columns} columns")
    return np.array(wanted, dtype=int)


def _find_names(wanted: list[Any], feature_names: Sequence[str] | None, view: str) -> NDArray:
    if feature_names is None:
        raise ValueError(f"views: view {view!r} names columns, but X has no column names (it is not a frame)")
    known = {name: number for number, name in enumerate(feature_names)}
    absent = [column for column in wanted if column not in known]
    if absent:
        raise ValueError(f"views: view {view!r} names the columns {absent}, which X does not have")
    return np.array([known[column] for column in wanted])


def _slice_columns(spec: slice, n_columns: int, view: str) -> NDArray:
    """Column indices of a slice; a stop beyond the last column is a mistake in `views`."""
    if isinstance(spec.stop, int | np.integer) and spec.stop > n_columns:
        raise ValueError(f"views: view {view!r} ends at column {spec.stop}, but X has {n_columns} columns")
    return np.arange(n_columns)[spec]


def _check_partition(columns: Sequence[NDArray], n_columns: int) -> None:
    times = np.bincount(np.concatenate(columns), minlength=n_columns)
    for wrong, what in ((times == 0, "in no view"), (times > 1, "in more than one view")):
        if wrong.any():
            raise ValueError(
                f"views do not add up to the {n_columns} columns of X: columns "
                f"{list_some(np.flatnonzero(wrong))} are {what}"
            )
