"""Parquet files as dask arrays: row groups are read by the workers of a cluster, answers are written part by part."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.io.errors import CommandError
from lmssc.io.outputs import prediction_columns

# Rows of a block, at least: row groups are read together up to this number.
BLOCK_ROWS = 100_000


@dataclass(frozen=True)
class RowGroups:
    """Consecutive row groups of a file.

    Attributes
    ----------
    path : str
        The file.
    first, end : int
        The first row group, and the one after the last.
    n_rows : int
        Number of rows in them.
    """

    path: str
    first: int
    end: int
    n_rows: int

    def read(self, columns: Sequence[str]) -> Any:
        """Some columns, as an Arrow table."""
        with _parquet().ParquetFile(self.path) as file:
            return file.read_row_groups(list(range(self.first, self.end)), columns=list(columns))


@dataclass(frozen=True)
class ParquetView:
    """A Parquet file, or a folder of them, whose numbers are a view.

    Attributes
    ----------
    name : str
        Name of the view.
    blocks : list of RowGroups
        What is read at a time.
    columns : list of str
        Columns of numbers.
    id_column, label_column : str or None
        Columns with ids and labels, if there are any.
    unused : list of str
        Other columns.
    """

    name: str
    blocks: list[RowGroups]
    columns: list[str]
    id_column: str | None
    label_column: str | None
    unused: list[str]

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return sum(block.n_rows for block in self.blocks)

    def features(self) -> Any:
        """The numbers, as a dask array of float32."""
        return self._array(_read_numbers, self.columns, (len(self.columns),), np.dtype(np.float32))

    def texts(self, column: str) -> Any:
        """A column, as a dask array of objects; None for blank cells."""
        return self._array(_read_objects, [column], (), np.dtype(object))

    def names_samples(self, column: str) -> bool:
        """Whether a column has whole numbers that all differ in the first block, as keys of samples do."""
        values = self.blocks[0].read([column]).column(0)
        is_whole = import_optional("pyarrow", purpose="Parquet files", extra="files").types.is_integer(values.type)
        return is_whole and len(values.unique()) == len(values)

    def _array(self, read: Any, columns: list[str], shape: tuple[int, ...], dtype: np.dtype) -> Any:
        da = import_optional("dask.array", purpose="--dask", extra="dask")
        delayed = import_optional("dask", purpose="--dask", extra="dask").delayed(read)
        parts = [da.from_delayed(delayed(one, columns), (one.n_rows, *shape), dtype) for one in self.blocks]
        return da.concatenate(parts)


def _parquet() -> Any:
    return import_optional("pyarrow.parquet", purpose="Parquet files", extra="files")


def open_parquet(
    name: str, path: str, id_column: str | None, label_column: str | None, drop: Sequence[str]
) -> ParquetView:
    """Look at the columns and row groups of a Parquet file or a folder of them, without reading the rows.

    Parameters
    ----------
    name : str
        Name of the view.
    path : str
        The file, or the folder.
    id_column, label_column : str or None
        Columns with ids and labels; by default "id" and "label", if there are such columns.
    drop : sequence of str
        Columns to ignore.

    Returns
    -------
    ParquetView
    """
    parquet, folder = _parquet(), Path(path)
    files = sorted(folder.glob("*.parquet")) if folder.is_dir() else [folder]
    if not files or not files[0].exists():
        raise CommandError(f"{path}: there is no such Parquet file, or folder with .parquet files")
    blocks: list[RowGroups] = []
    schema = None
    for file in files:
        try:
            metadata = parquet.read_metadata(file)
        except (OSError, ValueError) as error:
            raise CommandError(f"{file} is not a Parquet file: --dask reads no other format") from error
        own = parquet.read_schema(file)
        if schema is not None and own.names != schema.names:
            raise CommandError(f"{file} has other columns than {files[0]}")
        schema = own
        blocks += _group(str(file.absolute()), [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)])
    if id_column is not None and id_column not in schema.names:  # type: ignore[union-attr]
        raise CommandError(f"{path} has no column {id_column!r}, which --id names")
    given = id_column or "id", label_column or "label"
    ids, labels = (column if column in schema.names else None for column in given)  # type: ignore[union-attr]
    others = [field for field in schema if field.name not in (ids, labels, *drop)]  # type: ignore[union-attr]
    numbers = [field.name for field in others if _is_number(field.type)]
    if not numbers:
        raise CommandError(f"{path} has no column of numbers")
    return ParquetView(name, blocks, numbers, ids, labels, [f.name for f in others if f.name not in numbers])


def _is_number(kind: Any) -> bool:
    types = import_optional("pyarrow", purpose="Parquet files", extra="files").types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)


def _group(path: str, sizes: Sequence[int]) -> list[RowGroups]:
    """Row groups, together up to `BLOCK_ROWS` rows.

    Examples
    --------
    >>> [(block.first, block.end) for block in _group("a", [60_000, 60_000, 60_000])]
    [(0, 2), (2, 3)]
    """
    found, first, rows = [], 0, 0
    for number, size in enumerate(sizes):
        rows += size
        if rows >= BLOCK_ROWS or number == len(sizes) - 1:
            found.append(RowGroups(path, first, number + 1, rows))
            first, rows = number + 1, 0
    return [block for block in found if block.n_rows]


def _read_numbers(block: RowGroups, columns: Sequence[str]) -> NDArray:
    table = block.read(columns)
    numbers = [table.column(name).to_numpy(zero_copy_only=False).astype(np.float32) for name in columns]
    return np.column_stack(numbers)


def _read_objects(block: RowGroups, columns: Sequence[str]) -> NDArray:
    found = np.empty(block.n_rows, dtype=object)
    found[:] = block.read(columns).column(columns[0]).to_pylist()
    return found


def write_part(
    path: str,
    id_column: str,
    ids: NDArray,
    distributions: NDArray,
    labels: NDArray,
    classes: NDArray,
    flags: dict[str, NDArray],
) -> int:
    """Write the answers for some samples to a Parquet file; the number of them.

    Parameters
    ----------
    path : str
        The file.
    id_column : str
        Name of the first column.
    ids : ndarray of shape (n,)
        Names or numbers of the samples.
    distributions, labels, classes
        Answers, as a model has them.
    flags : dict of str to ndarray of bool
        Further columns.
    """
    arrow = import_optional("pyarrow", purpose="Parquet files", extra="files")
    confidence, runner_up = prediction_columns(distributions, classes, labels)
    columns = {
        id_column: ids.tolist(),
        "label": labels.tolist(),
        "confidence": confidence.astype(np.float32),
        "runner_up": runner_up.tolist(),
        **{f"p_{name}": distributions[:, c].astype(np.float32) for c, name in enumerate(classes.tolist())},
        **flags,
    }
    _parquet().write_table(arrow.table(columns), path)
    return len(labels)
