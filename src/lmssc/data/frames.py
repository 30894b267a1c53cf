"""Data frames of any library, through narwhals."""

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional


def is_frame(data: Any) -> bool:
    """Whether `data` is a data frame: it has named columns."""
    return hasattr(data, "shape") and hasattr(data, "columns") and not isinstance(data, np.ndarray)


def is_lazy_frame(data: Any) -> bool:
    """Whether `data` is a query that has yet to be run, such as a LazyFrame of polars."""
    return hasattr(data, "collect_schema") and not hasattr(data, "shape")


def _narwhals() -> ModuleType:
    return import_optional("narwhals", purpose="data frames", extra="frames")


def frame_columns(frame: Any) -> list[str]:
    """Names of the columns of a data frame.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_columns(pd.DataFrame({"a": [1], "b": [2]}))
    ['a', 'b']
    """
    return list(_narwhals().from_native(frame, eager_only=True).columns)


def frame_to_array(frame: Any) -> NDArray:
    """Numbers of a data frame, float32 if all its columns are; null becomes NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_to_array(pd.DataFrame({"a": [1, 2], "b": [0.5, None]}))
    array([[1. , 0.5],
           [2. , nan]])
    """
    nw = _narwhals()
    table = nw.from_native(frame, eager_only=True)
    if not table.columns:
        raise ValueError("the frame has no columns; a view has at least one")
    for name, dtype in table.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            kind = frame[name].dtype if dtype == nw.Unknown else dtype
            hint = "pass frame.sparse.to_coo()" if str(kind).startswith("Sparse") else "drop it or encode it as numbers"
            raise TypeError(f"column {name!r} is {kind}, not numbers; {hint}")
    single = all(dtype == nw.Float32 for dtype in table.schema.values())
    return np.asarray(table.select(nw.all().cast(nw.Float32 if single else nw.Float64)).to_numpy())
