"""MATLAB files: version 7.3, which is HDF5, by h5py, and the versions before."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc._optional import import_optional
from lmssc.files.arrays import make_table
from lmssc.files.delimited import open_bytes
from lmssc.files.matlab5 import read_matlab5
from lmssc.files.table import InputFileError, Table, reason

HDF5 = b"\x89HDF\r\n\x1a\n"


def read_matlab(path: str) -> Table:
    """Read a MATLAB file: matrices and the matrices of cells are views, vectors may be ids or labels.

    Parameters
    ----------
    path : str
        Name of the file.

    Returns
    -------
    Table
        Matrices of a cell X are named X1, X2, …
    """
    with open_bytes(path) as file:
        start = file.read(1024)
        if not start:
            raise InputFileError(f"{path} is empty, not a MATLAB file")
        file.seek(0)
        try:
            found = _read_hdf5(file) if HDF5 in (start[:8], start[512:520]) else _read_old(file)
        except ImportError:
            raise
        except Exception as error:  # what h5py raises on a damaged file is anyone's guess
            raise InputFileError(f"{path} is not a whole MATLAB file: {reason(error)}") from error
    arrays = {name: _as_vector(value) for name, value in found.items()}
    usable = {name: value for name, value in arrays.items() if value.dtype.kind in "biufU" and value.ndim <= 2}
    if not usable:
        raise InputFileError(f"{path} has no matrix of numbers in it")
    return make_table(usable, path)


def _as_vector(value: Any) -> Any:
    """Matrices of one row or column are vectors: MATLAB knows no other."""
    return value.ravel() if not sparse.issparse(value) and value.ndim == 2 and 1 in value.shape else value


def _read_old(file: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in read_matlab5(file.read()).items():
        found |= _cell_parts(name, value) if isinstance(value, list) else {name: value}
    return found


def _cell_parts(name: str, cell: list[Any]) -> dict[str, Any]:
    """The matrices of a cell as X1, X2, …; a cell of texts is one vector."""
    parts = [part for part in cell if part is not None and not isinstance(part, list)]
    if all(part.dtype.kind == "U" for part in parts):
        return {name: np.array([str(part.ravel()[0]) if part.size else "" for part in parts])}
    return {f"{name}{number}": part for number, part in enumerate(parts, 1)}


def _read_hdf5(file: Any) -> dict[str, Any]:
    h5py = import_optional("h5py", purpose="MATLAB 7.3 files", extra="files")
    with h5py.File(file, "r") as content:
        found: dict[str, Any] = {}
        for name, item in content.items():
            if name.startswith("#"):
                continue
            if isinstance(item, h5py.Dataset) and item.dtype == h5py.ref_dtype:
                parts = [_from_hdf5(h5py, content[reference]) for reference in item[()].ravel(order="F")]
                found |= _cell_parts(name, parts)
            else:
                value = _from_hdf5(h5py, item)
                if value is not None:
                    found[name] = value
        return found


def _from_hdf5(h5py: Any, item: Any) -> Any:
    """A matrix, a sparse matrix or text; MATLAB's columns are HDF5's rows."""
    if isinstance(item, h5py.Group):
        if "MATLAB_sparse" not in item.attrs:
            return None  # a structure
        pointers = item["jc"][()].astype(np.int64)
        shape = (int(item.attrs["MATLAB_sparse"]), len(pointers) - 1)
        empty: tuple[NDArray, NDArray] = (np.empty(0), np.empty(0, dtype=np.int64))
        data, rows = (item["data"][()], item["ir"][()].astype(np.int64)) if "data" in item else empty
        matrix = sparse.csc_array((data.astype(np.float64), rows, pointers), shape=shape)
        matrix.check_format(full_check=True)
        return matrix.tocsr()
    value = item[()]
    if not isinstance(value, np.ndarray):
        return np.asarray(value)
    value = value.T
    if item.attrs.get("MATLAB_class") in (b"char", "char"):
        return np.array(["".join(map(chr, row)) for row in value])
    return value
