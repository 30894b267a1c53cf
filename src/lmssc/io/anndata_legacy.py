"""AnnData files of anndata 0.6 and before: a table is one dataset with a field for each column."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.io.anndata_elements import NUMBERS, decode, kind_of, kind_of_numbers, read_values
from lmssc.io.errors import InputFileError
from lmssc.io.table import OTHER, TEXT

INDEX_NAMES = ("index", "_index")


def is_legacy(store: Any, table: Any) -> bool:
    """Whether a table, or a collection of matrices, is one dataset with fields."""
    return store.is_dataset(table) and table.dtype.names is not None


def index_field(table: Any) -> str:
    """Name of the field with the names of the rows."""
    return next((name for name in INDEX_NAMES if name in table.dtype.names), table.dtype.names[0])


def read_legacy_index(store: Any, table: Any) -> NDArray:
    """Names of the rows, as text."""
    return _texts(store.values(table)[index_field(table)])


def _texts(values: NDArray) -> NDArray:
    return np.array([v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values], dtype=object)


def legacy_columns(store: Any, root: Any, table: Any) -> dict[str, str]:
    """Names of the columns, and what each holds."""
    own = index_field(table)
    return {name: _kind(store, root, name, table.dtype[name]) for name in table.dtype.names if name != own}


def _kind(store: Any, root: Any, name: str, dtype: np.dtype) -> str:
    if dtype.shape:
        return OTHER
    levels = _categories(store, root, name) if dtype.kind in "iu" else None
    if levels is not None:
        return kind_of(store, levels)
    return TEXT if dtype.kind in "SUO" else kind_of_numbers(dtype)


def _categories(store: Any, root: Any, name: str) -> Any:
    """The categories of a column, which are in uns under its name; None if it has none."""
    if not store.has(root, "uns") or not store.has(store.item(root, "uns"), f"{name}_categories"):
        return None
    return store.item(store.item(root, "uns"), f"{name}_categories")


def read_legacy_column(store: Any, root: Any, table: Any, name: str) -> NDArray:
    """Values of a column; categories are listed in uns, under the name of the column.

    Parameters
    ----------
    store : SafeHDF5
        The file.
    root : group
        What has the table and uns.
    table : dataset
        The table.
    name : str
        The column.

    Returns
    -------
    ndarray of shape (n,)
    """
    values = store.values(table)[name]
    levels = _categories(store, root, name) if values.dtype.kind in "iu" else None
    if levels is not None:
        where = f"{store.unpacked.path}: {table.name!r}, field {name!r}"
        return decode(values.astype(np.int64), read_values(store, levels), where)
    return np.asarray(values) if values.dtype.kind in NUMBERS else _texts(values)


def legacy_matrices(table: Any) -> dict[str, tuple[int, ...]]:
    """Names of the matrices in a dataset with fields, and their shapes."""
    kinds = {name: table.dtype[name] for name in table.dtype.names}
    return {
        name: (len(table), *kind.shape)
        for name, kind in kinds.items()
        if len(kind.shape) == 1 and kind.base.kind in NUMBERS
    }


def read_legacy_matrix(store: Any, table: Any, name: str) -> NDArray:
    """One of the matrices in a dataset with fields."""
    values = store.values(table)[name]
    if values.ndim != 2:
        raise InputFileError(f"{store.unpacked.path}: {table.name!r}, field {name!r}: not a matrix")
    return np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float32 else np.float64)
