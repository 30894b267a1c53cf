"""Elements of AnnData files: columns of a table and matrices, in the encodings of all versions of anndata.

The encodings are described in "On-disk format" of anndata's documentation. What is older than anndata 0.7, tables as
one dataset with fields, is read by `anndata_legacy`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.io.arrays import POINTER
from lmssc.io.errors import InputFileError
from lmssc.io.table import NUMBER, OTHER, TEXT

SPARSE = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}
NULLABLE = ("nullable-integer", "nullable-boolean", "nullable-string-array")
# Kinds of numbers of numpy.
NUMBERS = "biuf"
# What a column holds: booleans are numbers, too.
TRUTH = "truth"


def encoding(item: Any) -> str:
    """How an element is encoded; empty for files of early versions, which do not say.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> encoding(SimpleNamespace(attrs={"encoding-type": b"array"})), encoding(SimpleNamespace(attrs={}))
    ('array', '')
    """
    found = item.attrs.get("encoding-type", "")
    if not found and "h5sparse_format" in item.attrs:
        return f"{_text(item.attrs['h5sparse_format'])}_matrix"
    return _text(found)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def names_in_order(group: Any) -> list[str]:
    """Names of the columns of a table, in their order.

    Parameters
    ----------
    group : group
        A table ("dataframe").

    Returns
    -------
    list of str
    """
    found = np.asarray(group.attrs.get("column-order", ())).ravel().tolist()
    return [_text(name) for name in found]


def read_index(store: Any, group: Any) -> NDArray:
    """Names of the rows of a table, as text.

    Parameters
    ----------
    store : SafeHDF5 or SafeZarr
        The file.
    group : group
        A table.

    Returns
    -------
    ndarray of str
    """
    name = _text(group.attrs.get("_index", "_index"))
    values = read_values(store, store.item(group, name))
    return np.array([str(value) for value in values.tolist()], dtype=object)


def read_values(store: Any, item: Any) -> NDArray:
    """Values of a column: numbers (NaN where missing), booleans, or text (dtype object, None where missing).

    Parameters
    ----------
    store : SafeHDF5 or SafeZarr
        The file.
    item : group or dataset
        The column.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    InputFileError
        If it holds neither numbers nor text.
    """
    where = f"{store.unpacked.path}: {item.name!r}"
    if store.is_group(item):
        if encoding(item) == "categorical":
            return _from_codes(store, store.item(item, "codes"), store.item(item, "categories"), where)
        if encoding(item) in NULLABLE:
            values, mask = (read_values(store, store.item(item, part)) for part in ("values", "mask"))
            return with_gaps(values, np.asarray(mask, dtype=bool), where)
        raise InputFileError(f"{where} is {encoding(item) or 'a group'}, neither numbers nor text")
    if len(item.shape or ()) != 1:
        raise InputFileError(f"{where} has the shape {item.shape}; a column has one value for each row")
    if "categories" in item.attrs:  # anndata 0.7
        categories = store.referred(item.attrs["categories"], item.name)
        return _from_codes(store, item, categories, where)
    if store.is_text(item):
        return np.array([*store.texts(item), None], dtype=object)[:-1]
    if item.dtype.kind not in NUMBERS:
        raise InputFileError(f"{where} holds {item.dtype}, neither numbers nor text")
    return np.asarray(store.values(item))


def kind_of(store: Any, item: Any) -> str:
    """What a column holds, by what the file says of it: "text", "number", "truth", or "other"."""
    if store.is_group(item):
        part = {"categorical": "categories"}.get(encoding(item), "values" if encoding(item) in NULLABLE else "")
        return kind_of(store, store.item(item, part)) if part else OTHER
    if "categories" in item.attrs:  # anndata 0.7
        return kind_of(store, store.referred(item.attrs["categories"], item.name))
    if len(item.shape or ()) != 1:
        return OTHER
    return TEXT if store.is_text(item) else kind_of_numbers(item.dtype)


def kind_of_numbers(dtype: np.dtype) -> str:
    """What numbers of a type are: "number", "truth", or "other".

    Examples
    --------
    >>> [kind_of_numbers(np.dtype(kind)) for kind in ("f4", "?", "c16")]
    ['number', 'truth', 'other']
    """
    return TRUTH if dtype.kind == "b" else NUMBER if dtype.kind in NUMBERS else OTHER


def _from_codes(store: Any, codes: Any, categories: Any, where: str) -> NDArray:
    numbers, levels = store.values(codes), read_values(store, categories)
    if np.ndim(numbers) != 1 or numbers.dtype.kind not in "iu":
        raise InputFileError(f"{where}: the codes of its categories must be a list of whole numbers")
    return decode(numbers.astype(np.int64), levels, where)


def decode(codes: NDArray, levels: NDArray, where: str) -> NDArray:
    """Values of categories by their codes; −1 is a missing value.

    Examples
    --------
    >>> decode(np.array([1, -1]), np.array(["a", "b"], dtype=object), "x"), decode(np.array([0, -1]), np.arange(2), "x")
    (array(['b', None], dtype=object), array([ 0., nan]))
    """
    if len(codes) and not -1 <= codes.min() <= codes.max() < len(levels):
        raise InputFileError(f"{where}: a code is not one of its {len(levels)} categories")
    values = np.zeros(len(codes), dtype=levels.dtype)
    known = codes >= 0
    values[known] = levels[codes[known]]
    return with_gaps(values, ~known, where)


def with_gaps(values: NDArray, mask: NDArray, where: str) -> NDArray:
    """Mark missing values: None in text, NaN among numbers.

    Examples
    --------
    >>> with_gaps(np.array([1, 2]), np.array([False, True]), "x")
    array([ 1., nan])
    """
    if len(mask) != len(values):
        raise InputFileError(f"{where}: it has {len(values)} values, but {len(mask)} marks of missing ones")
    if not mask.any():
        return values
    values = values.astype(object if values.dtype == object else np.float64)
    values[mask] = None if values.dtype == object else np.nan
    return values


def matrix_shape(store: Any, item: Any) -> tuple[int, ...]:
    """Shape of a matrix, dense or sparse; of a table its rows and columns; empty if it is neither."""
    if store.is_group(item):
        if encoding(item) in SPARSE:
            shape = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
            return tuple(int(size) for size in np.asarray(shape).ravel())
        return (-1, len(names_in_order(item))) if encoding(item) == "dataframe" else ()
    return tuple(item.shape or ()) if item.dtype.kind in NUMBERS else ()


def read_matrix(store: Any, item: Any) -> NDArray | sparse.csr_array:
    """Read a matrix: dense, sparse by rows or columns, or a table of numbers; a large dense one stays on disk.

    Parameters
    ----------
    store : SafeHDF5 or SafeZarr
        The file.
    item : group or dataset
        The matrix.

    Returns
    -------
    ndarray or csr_array of shape (n, d)

    Raises
    ------
    InputFileError
        If it is damaged, or not a matrix of numbers.
    """
    where = f"{store.unpacked.path}: {item.name!r}"
    if not store.is_group(item):
        if item.dtype.kind not in NUMBERS:
            raise InputFileError(f"{where} holds {item.dtype}, not numbers")
        if len(item.shape or ()) != 2:
            raise InputFileError(f"{where} has the shape {item.shape}; a view has one row per cell and 2 dimensions")
        return store.matrix(item)
    if encoding(item) == "dataframe":
        columns = [read_values(store, store.item(item, name)) for name in names_in_order(item)]
        texts = [number for number, column in enumerate(columns) if column.dtype == object]
        if texts or not columns:
            what = f"column {names_in_order(item)[texts[0]]!r} is text" if texts else "it has no columns"
            raise InputFileError(f"{where}: {what}; a view has numbers")
        return np.column_stack([column.astype(np.float64) for column in columns])
    if encoding(item) not in SPARSE:
        raise InputFileError(f"{where} is {encoding(item) or 'a group'}, not a matrix")
    return _read_sparse(store, item, where)


def _read_sparse(store: Any, group: Any, where: str) -> sparse.csr_array:
    shape = matrix_shape(store, group)
    if len(shape) != 2 or min(shape) < 0:
        raise InputFileError(f"{where}: a sparse matrix has two sizes, not {shape}")
    store.unpacked.add(POINTER * (shape[0] if encoding(group) == "csr_matrix" else shape[1]))
    data, indices, indptr = (store.values(store.item(group, part)) for part in ("data", "indices", "indptr"))
    if data.dtype.kind not in NUMBERS or indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise InputFileError(f"{where}: its data must be numbers, its indices and indptr whole numbers")
    try:
        matrix = SPARSE[encoding(group)]((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputFileError(f"{where} is not a complete sparse matrix: {error}") from error
    matrix = sparse.csr_array(matrix)
    if not matrix.has_canonical_format:
        matrix.sum_duplicates()
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
