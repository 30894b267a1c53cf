"""Columns of lists, such as embeddings, as matrices: pyarrow, polars and pandas; not copied where that is possible."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional

ARROW_LISTS = ("list<", "large_list<", "fixed_size_list<", "extension<arrow.fixed_shape_tensor")
ARROW_NUMBERS = ("int", "uint", "half", "float", "double")


def is_list_column(data: Any) -> bool:
    """Whether `data` is a column of lists of pyarrow, polars or pandas.

    Examples
    --------
    >>> import pandas as pd
    >>> is_list_column(pd.Series([[1.0, 2.0], None])), is_list_column(pd.Series([1.0, 2.0]))
    (True, False)
    """
    if hasattr(data, "type") and hasattr(data, "flatten"):  # pyarrow
        return str(data.type).startswith(ARROW_LISTS)
    dtype = getattr(data, "dtype", None)
    if dtype is None or len(getattr(data, "shape", ())) != 1 or isinstance(data, np.ndarray):
        return False
    if str(dtype).startswith((*ARROW_LISTS, "List(", "Array(")):
        return True
    return str(dtype) == "object" and isinstance(_first(data), list | tuple | np.ndarray)


def _first(data: Any) -> Any:
    """The first value of a column that is not missing."""
    return next((value for value in data if value is not None and not _is_nan(value)), None)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def list_column_to_array(data: Any, name: str) -> NDArray:
    """Numbers of a column of lists, one row each; a missing list is a row of NaN.

    Parameters
    ----------
    data : column of pyarrow, polars or pandas
        Lists of one length.
    name : str
        How messages call it.

    Returns
    -------
    ndarray of shape (n, d), float32 or float64
        A view of the data if nothing is missing, all lists are in one piece, and the numbers have one of these types.

    Raises
    ------
    ValueError
        If lists differ in length; the message names the first that does.

    Examples
    --------
    >>> import pandas as pd
    >>> list_column_to_array(pd.Series([[1.0, 2.0], None]), "x")
    array([[ 1.,  2.],
           [nan, nan]])
    """
    if hasattr(data, "type"):
        return arrow_lists(data, name)
    if str(data.dtype) != "object":
        arrow = import_optional("pyarrow", purpose="columns of lists", extra="files")
        column = data.to_arrow() if hasattr(data, "to_arrow") else arrow.array(data)
        return arrow_lists(column, name)
    return stack_lists(list(data), name)


def stack_lists(values: list[Any], name: str) -> NDArray:
    """Rows of Python lists or arrays; None and NaN are missing lists.

    Examples
    --------
    >>> stack_lists([[1, 2], [3]], "x")
    Traceback (most recent call last):
        ...
    ValueError: x, row 2: a list of 1 number, but the first has 2; a view has the same features in all rows
    """
    known = [row for row, value in enumerate(values) if value is not None and not _is_nan(value)]
    if not known:
        raise ValueError(f"{name}: all its lists are missing")
    width = len(values[known[0]])
    for row in known:
        if len(values[row]) != width:
            raise _ragged(name, row, len(values[row]), width)
    try:
        rows = np.array([values[row] for row in known])
        if rows.dtype.kind not in "biuf" or rows.ndim != 2:
            rows = rows.astype(object).astype(np.float64)  # None among numbers is a blank cell
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: its lists hold something else than numbers") from error
    return _spread(rows, np.array(known), len(values), width, name)


def arrow_lists(data: Any, name: str, width: int | None = None, start: int = 0) -> NDArray:
    """Numbers of a pyarrow column of lists.

    Parameters
    ----------
    data : pyarrow.Array or pyarrow.ChunkedArray
        Lists of one length.
    name : str
        How messages call it.
    width : int, optional
        Length of all lists; by default that of the first.
    start : int
        Number of the first row, for messages.

    Returns
    -------
    ndarray of shape (n, d)
    """
    chunks = data.chunks if hasattr(data, "chunks") else [data]
    widths, parts = [] if width is None else [width], []
    for chunk in (part.storage if hasattr(part, "storage") else part for part in chunks):
        known = np.flatnonzero(np.asarray(chunk.is_valid()))
        lengths = _lengths(chunk)[known]
        if len(lengths):
            widths.append(int(lengths[0]))
        wrong = np.flatnonzero(lengths != widths[0]) if widths else lengths
        if len(wrong):
            raise _ragged(name, start + int(known[wrong[0]]), int(lengths[wrong[0]]), widths[0])
        values = chunk.flatten()  # without the lists that are missing
        if not str(values.type).startswith(ARROW_NUMBERS):
            raise ValueError(f"{name}: its lists hold {values.type}, not numbers")
        parts.append((values.to_numpy(zero_copy_only=False), known, len(chunk)))
        start += len(chunk)
    if not widths:
        raise ValueError(f"{name}: all its lists are missing")
    made = [_spread(values.reshape(-1, widths[0]), known, n, widths[0], name) for values, known, n in parts if n]
    return made[0] if len(made) == 1 else np.concatenate(made)


def _lengths(chunk: Any) -> NDArray:
    if str(chunk.type).startswith("fixed_size_list<"):
        return np.full(len(chunk), chunk.type.list_size)
    return np.asarray(chunk.value_lengths().fill_null(0))


def _spread(rows: NDArray, known: NDArray, count: int, width: int, name: str) -> NDArray:
    """All rows as float32 or float64, with NaN where a list is missing."""
    if not width:
        raise ValueError(f"{name}: its lists are empty; a view has at least one feature")
    dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    if rows.dtype == np.float16:
        dtype = np.dtype(np.float32)
    if len(known) == count:
        return rows.astype(dtype, copy=False)
    everything = np.full((count, width), np.nan, dtype=dtype)
    everything[known] = rows
    return everything


def _ragged(name: str, row: int, length: int, width: int) -> ValueError:
    numbers = f"{length} number" + ("" if length == 1 else "s")
    return ValueError(
        f"{name}, row {row + 1}: a list of {numbers}, but the first has {width}; a view has the same features in all "
        "rows"
    )
