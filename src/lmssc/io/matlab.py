"""MATLAB files: version 7.3, which is HDF5, and the versions before."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc._optional import import_optional
from lmssc.io.arrays import POINTER, table_of_arrays
from lmssc.io.errors import InputFileError
from lmssc.io.hdf5 import SafeHDF5
from lmssc.io.matlab5 import read_matlab5
from lmssc.io.table import Table, reason
from lmssc.io.unpacking import Unpacked, open_bytes

HDF5 = b"\x89HDF\r\n\x1a\n"


def read_matlab(path: str) -> Table:
    """Read a MATLAB file: matrices are views, vectors may be ids or labels.

    The matrices of a cell X are views too, named X1, X2, …
    """
    with open_bytes(path) as file:
        start = file.read(1024)
        if not start:
            raise InputFileError(f"{path} is empty, not a MATLAB file")
        file.seek(0)
        try:
            read = _read_hdf5 if HDF5 in (start[:8], start[512:520]) else _read_old
            found = read(file, Unpacked(path))
        except (ImportError, InputFileError):
            raise
        except Exception as error:  # h5py raises all kinds of errors on damaged files
            raise InputFileError(f"{path} is not a complete MATLAB file: {reason(error)}") from error
    arrays = {name: _as_vector(value) for name, value in found.items()}
    usable = {name: value for name, value in arrays.items() if value.dtype.kind in "biufU" and value.ndim <= 2}
    if not usable:
        raise InputFileError(f"{path} contains no matrix of numbers")
    return table_of_arrays(usable, path)


def _as_vector(value: Any) -> Any:
    """Flatten a matrix of one row or column: MATLAB has no other vectors."""
    return value.ravel() if not sparse.issparse(value) and value.ndim == 2 and 1 in value.shape else value


def _read_old(file: Any, unpacked: Unpacked) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in read_matlab5(file.read(), unpacked).items():
        found |= _cell_parts(name, value) if isinstance(value, list) else {name: value}
    return found


def _cell_parts(name: str, cell: list[Any]) -> dict[str, Any]:
    """The matrices of a cell as X1, X2, …; a cell of texts is one vector."""
    parts = [part for part in cell if part is not None and not isinstance(part, list)]
    if all(part.dtype.kind == "U" for part in parts):
        return {name: np.array([str(part.ravel()[0]) if part.size else "" for part in parts])}
    return {f"{name}{number}": part for number, part in enumerate(parts, 1)}


def _read_hdf5(file: Any, unpacked: Unpacked) -> dict[str, Any]:
    h5py = import_optional("h5py", purpose="MATLAB 7.3 files", extra="files")
    with h5py.File(file, "r") as content:
        inside = SafeHDF5(h5py, content, unpacked)
        found: dict[str, Any] = {}
        for name in content:
            if name.startswith("#"):
                continue
            item = inside.item(content, name)
            if isinstance(item, h5py.Dataset) and item.dtype == h5py.ref_dtype:
                references = inside.values(item).ravel(order="F")
                found |= _cell_parts(name, [_from_hdf5(h5py, inside, inside.referred(r, name)) for r in references])
            else:
                value = _from_hdf5(h5py, inside, item)
                if value is not None:
                    found[name] = value
        return found


def _from_hdf5(h5py: Any, inside: SafeHDF5, item: Any) -> Any:
    """Return a matrix, a sparse matrix or text; None for anything else. Columns of MATLAB are rows of HDF5."""
    if isinstance(item, h5py.Group):
        return _sparse_from_hdf5(inside, item) if "MATLAB_sparse" in item.attrs else None  # a structure
    if not isinstance(item, h5py.Dataset) or item.dtype.kind not in "biuf":
        return None
    value = inside.values(item)
    if not isinstance(value, np.ndarray):
        return np.asarray(value)
    value = value.T
    if item.attrs.get("MATLAB_class") in (b"char", "char"):
        return np.array(["".join(map(chr, row)) for row in value])
    return value


def _sparse_from_hdf5(inside: SafeHDF5, group: Any) -> sparse.csr_array:
    pointers = inside.values(inside.item(group, "jc")).astype(np.int64)
    shape = (int(group.attrs["MATLAB_sparse"]), len(pointers) - 1)
    inside.unpacked.add(POINTER * shape[0])
    data: NDArray = np.empty(0)
    rows: NDArray = np.empty(0, dtype=np.int64)
    if group.get("data", getlink=True) is not None:
        data, rows = (inside.values(inside.item(group, part)) for part in ("data", "ir"))
    matrix = sparse.csc_array((data.astype(np.float64), rows.astype(np.int64), pointers), shape=shape)
    matrix.check_format(full_check=True)
    return matrix.tocsr()
