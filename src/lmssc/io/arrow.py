"""Parquet and Feather files, read by pyarrow."""

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.data.list_columns import ARROW_LISTS, ARROW_NUMBERS, arrow_lists
from lmssc.data.memmap import MIN_MAPPED_BYTES, copy_to_disk
from lmssc.io.arrow_sizes import CELL, MAGIC, batch_sizes
from lmssc.io.delimited import NAMELESS
from lmssc.io.errors import InputFileError
from lmssc.io.table import DATE, NUMBER, OTHER, TEXT, Column, LazyBlocks, Rows, Table, clean_texts, reason
from lmssc.io.unpacking import Unpacked, open_bytes

# The name that pandas gives to an unnamed index.
PANDAS_INDEX = "__index_level_0__"
# Rows and bytes of a column of lists, and bytes of a file, read at a time.
BATCH_ROWS = 1 << 14
BATCH_BYTES = 1 << 24
# Rows read at a time to see how long the lists are.
FIRST_ROWS = 64
PIECE = 1 << 18


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
    # Nested columns are not read here: a blank column stands in for each. Lists are read when they are used.
    for number, field in nested.items() if groups else ():
        table = table.add_column(number, field, arrow.nulls(table.num_rows, field.type))
    lists = [field.name for field in nested.values() if is_lists(field.type)]
    return table, {name: partial(_stream, unpacked.path, name) for name in lists}


def is_lists(kind: Any) -> bool:
    """Whether a type is that of lists of numbers.

    Examples
    --------
    >>> import pyarrow
    >>> [is_lists(kind) for kind in (pyarrow.list_(pyarrow.float32(), 3), pyarrow.list_(pyarrow.string()))]
    [True, False]
    """
    kind = getattr(kind, "storage_type", kind)
    return str(kind).startswith(ARROW_LISTS) and str(kind.value_type).startswith(ARROW_NUMBERS)


def _stream(path: str, name: str) -> NDArray:
    """Read a column of lists of a Parquet file a batch at a time; a large one stays on disk."""
    with open_lists(path, name, Unpacked(path)) as (n_rows, width, batches):
        head = next(batches)
        if n_rows * width * head.itemsize >= MIN_MAPPED_BYTES:
            return copy_to_disk(chain([head], batches), width, head.dtype)
        return np.concatenate([head, *batches])


@contextmanager
def open_lists(path: str, name: str, unpacked: Unpacked) -> Iterator[tuple[int, int, Iterator[NDArray]]]:
    """Open a column of lists of a Parquet file.

    Parameters
    ----------
    path, name : str
        The file and the column.
    unpacked : Unpacked
        Counts the bytes read.

    Yields
    ------
    n_rows, width : int
    batches : iterator of ndarray
        The rows, a batch at a time.
    """
    arrow = import_optional("pyarrow", purpose="Parquet files", extra="files")
    parquet = import_optional("pyarrow.parquet", purpose="Parquet files", extra="files")
    where = f"{path}, column {name!r}"
    # Otherwise pyarrow reads the whole file ahead.
    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=PIECE) as content:

        def columns(n_rows: int) -> Iterator[Any]:
            for batch in content.iter_batches(n_rows, columns=[name], use_threads=False):
                yield batch.column(0)

        def matrices(width: int) -> Iterator[NDArray]:
            start = 0
            for column in columns(max(1, min(BATCH_ROWS, BATCH_BYTES // (8 * width)))):
                unpacked.add(column.nbytes)
                yield arrow_lists(column, where, width, start)
                start += len(column)
            arrow.default_memory_pool().release_unused()

        width = getattr(content.schema_arrow.field(name).type, "list_size", None)
        for column in columns(FIRST_ROWS) if width is None else ():
            known = column.drop_null()
            if len(known):
                width = arrow_lists(known[:1], where).shape[1]
                break
        if not width:
            raise InputFileError(f"{where}: all its lists are {'missing' if width is None else 'empty'}")
        yield content.metadata.num_rows, width, matrices(width)


def _read_batches(arrow: Any, feather: Any, file: Any, unpacked: Unpacked) -> Any:
    if file.read(len(MAGIC)) == MAGIC:  # Feather version 1 is not compressed
        try:
            for size in batch_sizes(arrow, file):
                unpacked.add(size)
        except struct.error as error:
            raise InputFileError(f"{unpacked.path} is not a complete Feather file: {error}") from error
    file.seek(0)
    return feather.read_table(file), None


def _read(path: str, read: Callable[[Any, Any], Any], what: str) -> Table:
    arrow = import_optional("pyarrow", purpose=f"{what} files", extra="files")
    with open_bytes(path) as file:
        if not file.read(1):
            raise InputFileError(f"{path} is empty, not a {what} file")
        file.seek(0)
        try:
            table, lists = read(arrow, file)
            table.validate(full=True)  # the code below relies on valid offsets
        except (arrow.ArrowException, OSError) as error:
            raise InputFileError(f"{path} is not a complete {what} file: {reason(error)}") from error
    names = [NAMELESS if name == PANDAS_INDEX else name for name in table.column_names]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputFileError(f"{path} has more than one column named {repeated[0]!r}")
    if not table.num_rows:
        raise InputFileError(f"{path} has columns but no rows")
    return arrow_table(table.rename_columns(names), path, lists)


def arrow_table(table: Any, path: str, lists: Mapping[str, Callable[[], NDArray]] | None = None) -> Table:
    """Make a `Table` of a pyarrow table; columns of lists of numbers are matrices.

    Parameters
    ----------
    table : pyarrow.Table
        Checked.
    path : str
        Where it is from, for messages.
    lists : dict of str to callable, optional
        Columns of lists that are read in another way, when they are used.

    Returns
    -------
    Table
    """
    arrow = import_optional("pyarrow", purpose="Arrow tables", extra="files")
    blocks = dict(lists or {})
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name not in blocks and is_lists(column.type):
            blocks[name] = partial(arrow_lists, column, f"{path}, column {name!r}")
        elif name not in blocks:
            columns[name] = _column(arrow, column, path, name)
    return Table(Rows(path, table.num_rows), columns, LazyBlocks(blocks))


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
