"""Parquet and Feather files, read by pyarrow."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.io.arrow_sizes import CELL, MAGIC, batch_sizes
from lmssc.io.delimited import NAMELESS
from lmssc.io.errors import InputFileError
from lmssc.io.table import DATE, NUMBER, OTHER, TEXT, Column, Rows, Table, clean_texts, reason
from lmssc.io.unpacking import Unpacked, open_bytes

# The name that pandas gives to an unnamed index.
PANDAS_INDEX = "__index_level_0__"


def read_parquet(path: str) -> Table:
    """Read a Parquet file; numbers keep their type, such as float32."""
    parquet = import_optional("pyarrow.parquet", purpose="Parquet files", extra="files")
    return _read(path, lambda arrow, file: _read_row_groups(arrow, parquet, file, Unpacked(path)), "Parquet")


def read_feather(path: str) -> Table:
    """Read a Feather (Arrow IPC) file; numbers keep their type."""
    feather = import_optional("pyarrow.feather", purpose="Feather files", extra="files")
    import_optional("pyarrow.ipc", purpose="Feather files", extra="files")
    return _read(path, lambda arrow, file: _read_batches(arrow, feather, file, Unpacked(path)), "Feather")


def _read_row_groups(arrow: Any, parquet: Any, file: Any, unpacked: Unpacked) -> Any:
    """Read all rows. Repeated text is stored once: a small file can repeat it a million times."""
    types, schema = arrow.types, parquet.read_schema(file)
    nested = {number: field for number, field in enumerate(schema) if types.is_nested(field.type)}
    flat = [field.name for field in schema if not types.is_nested(field.type)] if nested else None
    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    content = parquet.ParquetFile(file, read_dictionary=texts)
    groups = []
    for number in range(content.num_row_groups):
        about = content.metadata.row_group(number)
        sizes = sum(about.column(column).total_uncompressed_size for column in range(about.num_columns))
        before = unpacked.total
        unpacked.add(max(sizes, CELL * about.num_columns * about.num_rows))
        groups.append(content.read_row_group(number, flat))
        unpacked.reach(max(unpacked.total, before + groups[-1].nbytes))
    table = arrow.concat_tables(groups) if groups else content.read()
    # Nested columns such as lists are not read: a blank column stands in for each.
    for number, field in nested.items() if groups else ():
        table = table.add_column(number, field, arrow.nulls(table.num_rows, field.type))
    return table


def _read_batches(arrow: Any, feather: Any, file: Any, unpacked: Unpacked) -> Any:
    if file.read(len(MAGIC)) == MAGIC:  # Feather version 1 is not compressed
        try:
            for size in batch_sizes(arrow, file):
                unpacked.add(size)
        except struct.error as error:
            raise InputFileError(f"{unpacked.path} is not a complete Feather file: {error}") from error
    file.seek(0)
    return feather.read_table(file)


def _read(path: str, read: Callable[[Any, Any], Any], what: str) -> Table:
    arrow = import_optional("pyarrow", purpose=f"{what} files", extra="files")
    with open_bytes(path) as file:
        if not file.read(1):
            raise InputFileError(f"{path} is empty, not a {what} file")
        file.seek(0)
        try:
            table = read(arrow, file)
            table.validate(full=True)  # the code below relies on valid text offsets
        except (arrow.ArrowException, OSError) as error:
            raise InputFileError(f"{path} is not a complete {what} file: {reason(error)}") from error
    names = [NAMELESS if name == PANDAS_INDEX else name for name in table.column_names]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputFileError(f"{path} has more than one column named {repeated[0]!r}")
    if not table.num_rows:
        raise InputFileError(f"{path} has columns but no rows")
    columns = {name: _column(arrow, column, path, name) for name, column in zip(names, table.columns, strict=True)}
    return Table(Rows(path, table.num_rows), columns)


def _column(arrow: Any, values: Any, path: str, name: str) -> Column:
    types = arrow.types
    kind = values.type.value_type if types.is_dictionary(values.type) else values.type
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return Column(TEXT, lambda: _texts(arrow, values))
    if kind != values.type:
        values = values.cast(kind)
    if types.is_integer(kind) or types.is_floating(kind):
        return Column(NUMBER, lambda: np.asarray(values.to_numpy()))
    if types.is_boolean(kind):
        return Column(NUMBER, lambda: np.asarray(values.cast(arrow.uint8()).to_numpy()), truth=True)
    if types.is_decimal(kind) or types.is_null(kind):
        return Column(NUMBER, lambda: np.asarray(values.cast(arrow.float64()).to_numpy()))
    fault = f"{path}, column {name!r}: it holds {kind}, neither numbers nor text; leave it out with --drop"
    return Column(DATE if types.is_temporal(kind) else OTHER, lambda: np.empty(0), fault)


def _texts(arrow: Any, values: Any) -> NDArray:
    if not arrow.types.is_dictionary(values.type):
        return clean_texts(values.to_pylist())
    parts = [np.empty(0, dtype=object)]
    for chunk in values.chunks:
        different = clean_texts([*chunk.dictionary.to_pylist(), None])  # the last one stands for a blank cell
        parts.append(different[chunk.indices.cast(arrow.int64()).fill_null(len(different) - 1).to_numpy()])
    return np.concatenate(parts)
