"""Parquet and Feather files, by pyarrow."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.files.delimited import NAMELESS, open_bytes
from lmssc.files.table import NUMBER, OTHER, TEXT, Column, InputFileError, Rows, Table, clean_texts, reason

# How pandas names an index that has no name.
PANDAS_INDEX = "__index_level_0__"


def read_parquet(path: str) -> Table:
    """Read a Parquet file.

    Parameters
    ----------
    path : str
        Name of the file.

    Returns
    -------
    Table
        Numbers keep their type, float32 for one.
    """
    parquet = import_optional("pyarrow.parquet", purpose="Parquet files", extra="files")
    return _read(path, lambda file: parquet.ParquetFile(file).read(), "Parquet")


def read_feather(path: str) -> Table:
    """Read a Feather (Arrow IPC) file.

    Parameters
    ----------
    path : str
        Name of the file.

    Returns
    -------
    Table
    """
    feather = import_optional("pyarrow.feather", purpose="Feather files", extra="files")
    return _read(path, lambda file: feather.read_table(file), "Feather")


def _read(path: str, read: Callable[[Any], Any], what: str) -> Table:
    arrow = import_optional("pyarrow", purpose=f"{what} files", extra="files")
    with open_bytes(path) as file:
        if not file.read(1):
            raise InputFileError(f"{path} is empty, not a {what} file")
        file.seek(0)
        try:
            table = read(file)
            table.validate(full=True)  # what is read below trusts the offsets of texts
        except (arrow.ArrowException, OSError) as error:
            raise InputFileError(f"{path} is not a whole {what} file: {reason(error)}") from error
    names = [NAMELESS if name == PANDAS_INDEX else name for name in table.column_names]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputFileError(f"{path} has more than one column of the name {repeated[0]!r}")
    if not table.num_rows:
        raise InputFileError(f"{path} has columns but no rows")
    columns = {name: _column(arrow, column, path, name) for name, column in zip(names, table.columns, strict=True)}
    return Table(Rows(path, table.num_rows), columns)


def _column(arrow: Any, values: Any, path: str, name: str) -> Column:
    types = arrow.types
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if types.is_integer(kind) or types.is_floating(kind):
        return Column(NUMBER, lambda: np.asarray(values.to_numpy()))
    if types.is_boolean(kind):
        return Column(NUMBER, lambda: np.asarray(values.cast(arrow.uint8()).to_numpy()))
    if types.is_decimal(kind) or types.is_null(kind):
        return Column(NUMBER, lambda: np.asarray(values.cast(arrow.float64()).to_numpy()))
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return Column(TEXT, lambda: _texts(values))
    fault = f"{path}, column {name!r}: it holds {kind}, neither numbers nor text; leave it out with --drop"
    return Column(OTHER, lambda: np.empty(0), fault)


def _texts(values: Any) -> NDArray:
    return clean_texts(values.to_pylist())
