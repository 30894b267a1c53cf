"""Data frames in memory as a `Table`, so that the rules for the columns of files hold for them, too."""

import datetime
import numbers
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.data.frames import is_frame
from lmssc.data.list_columns import is_list_column, list_column_to_array
from lmssc.data.row_index import index_of, is_default
from lmssc.io.table import DATE, NUMBER, OTHER, TEXT, Column, LazyBlocks, Rows, Table, clean_texts

FRAME = "the frame"


def table_of_frame(frame: Any) -> Table:
    """Make a table of a data frame of pandas, polars or pyarrow.

    Parameters
    ----------
    frame : data frame
        Columns of numbers, booleans, text, dates, or lists of numbers.

    Returns
    -------
    Table

    Examples
    --------
    >>> import pandas as pd
    >>> table = table_of_frame(pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [[1.0, 2.0], [3.0, 4.0]]}))
    >>> {name: column.kind for name, column in table.columns.items()}, list(table.blocks)
    ({'a': 'number', 'b': 'text'}, ['c'])
    """
    if not is_frame(frame):
        raise TypeError(f"pass a data frame of pandas, polars or pyarrow, not {type(frame).__name__}")
    nw = import_optional("narwhals", purpose="data frames", extra="frames")
    table = nw.from_native(frame, eager_only=True)
    if not len(table):
        raise ValueError(f"{FRAME} has no rows")
    columns, blocks = {}, {}
    for name in table.columns:
        series, native = table[name], table[name].to_native()
        if is_list_column(native):
            blocks[str(name)] = partial(list_column_to_array, native, f"{FRAME}, column {name!r}")
        else:
            columns[str(name)] = _column(nw, series, str(name))
    return Table(Rows(FRAME, len(table)), columns, LazyBlocks(blocks))


def _column(nw: Any, series: Any, name: str) -> Column:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return Column(NUMBER, lambda: np.asarray(series.cast(nw.Float64).to_numpy()), truth=True)
    if dtype.is_numeric():
        whole = dtype.is_integer() and not series.null_count()
        return Column(NUMBER, lambda: np.asarray((series if whole else series.cast(nw.Float64)).to_numpy()))
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return Column(TEXT, lambda: clean_texts(_without_nan(series.to_list())))
    if dtype.is_temporal():
        return _dates(name, dtype)
    return column_of_objects(_without_nan(series.to_list()), name)


def _dates(name: str, kind: Any, path: str = FRAME) -> Column:
    return Column(DATE, lambda: np.empty(0), f"{path}, column {name!r}: it holds {kind}, neither numbers nor text")


def _without_nan(values: list[Any]) -> list[Any]:
    """None in place of NaN, NaT and NA."""
    return [None if value is None or value != value or type(value).__name__ == "NAType" else value for value in values]


def column_of_objects(values: list[Any], name: str, path: str = FRAME) -> Column:
    """Make a column without a type of its own: by what its values are.

    Parameters
    ----------
    values : list
        Its values, None where it is blank.
    name, path : str
        Its name, and where it is from, for messages.

    Returns
    -------
    Column

    Examples
    --------
    >>> [column_of_objects(values, "x").kind for values in ([1, None], ["a", 1], [datetime.date(2024, 1, 31)])]
    ['number', 'text', 'date']
    """
    known = [value for value in values if value is not None]
    if all(isinstance(value, str) for value in known):
        return Column(TEXT, lambda: clean_texts(values))
    if all(isinstance(value, bool | np.bool_) for value in known):
        return Column(NUMBER, lambda: _floats(values), truth=True)
    if all(isinstance(value, numbers.Number) and not isinstance(value, complex) for value in known):
        whole = len(known) == len(values) and all(type(value) is int and abs(value) < 2**63 for value in known)
        return Column(NUMBER, lambda: np.array(values) if whole else _floats(values))
    if all(isinstance(value, datetime.date | datetime.time | datetime.timedelta) for value in known):
        return _dates(name, "dates", path)
    kinds = sorted({type(value).__name__ for value in known})
    if set(kinds) <= {"str", "int", "float", "bool"}:  # as in a CSV file, numbers and words are text
        return Column(TEXT, lambda: clean_texts(values))
    fault = f"{path}, column {name!r}: it holds {', '.join(kinds)}, neither numbers nor text; leave it out"
    return Column(OTHER, lambda: np.empty(0), fault)


def _floats(values: list[Any]) -> NDArray:
    return np.array([np.nan if value is None else float(value) for value in values])


def ids_of_frame(frame: Any) -> list[str] | None:
    """Names of the rows: the index of a pandas frame, if it is not the default and names each row once.

    Examples
    --------
    >>> import pandas as pd
    >>> ids_of_frame(pd.DataFrame({"a": [1]}, index=["p"])), ids_of_frame(pd.DataFrame({"a": [1]}))
    (['p'], None)
    """
    index = index_of(frame)
    if index is None or is_default(index):
        return None
    ids = [str(value) for value in index]
    return ids if len(set(ids)) == len(ids) else None
