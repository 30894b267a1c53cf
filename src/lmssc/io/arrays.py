"""npy and npz files: plain arrays only, no pickle."""

import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.io.errors import InputFileError
from lmssc.io.table import NUMBER, TEXT, Column, Rows, Table, clean_texts, reason, some, stem
from lmssc.io.unpacking import Unpacked, open_bytes

MAGIC = b"\x93NUMPY"
# Bytes that even an empty row of a sparse matrix takes.
POINTER = 8


def read_npy(path: str) -> Table:
    """Read an .npy file: a matrix is a view, a vector may be labels."""
    with open_bytes(path) as file:
        return table_of_arrays({stem(path): _read_array(file, path)}, path)


def read_npz(path: str) -> Table:
    """Read an .npz file: every matrix in it is a view, vectors may be ids or labels."""
    with open_bytes(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                check_members(archive, Unpacked(path))
                arrays = {}
                for member in archive.namelist():
                    with archive.open(member) as part:
                        arrays[member.removesuffix(".npy")] = _read_array(part, f"{path}, array {member!r}")
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise InputFileError(f"{path} is not a complete .npz file: {error}") from error
    return table_of_arrays(_without_sparse_parts(arrays, path), path)


def check_members(archive: zipfile.ZipFile, unpacked: Unpacked) -> None:
    """Count what an archive unpacks to; a member never unpacks to more than its stated size.

    Parameters
    ----------
    archive : ZipFile
        Open for reading.
    unpacked : Unpacked
        Counts the bytes, and raises beyond the limit.
    """
    for member in archive.infolist():
        # Other methods unpack in large pieces, and numpy does not write them.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotImplementedError(f"{member.filename!r} is compressed by a method that numpy does not use")
        unpacked.add(member.file_size)


def _read_array(file: Any, where: str) -> NDArray:
    start = file.read(len(MAGIC))
    if start != MAGIC:
        raise InputFileError(f"{where} is not a numpy array" if start else f"{where} is empty, not a numpy array")
    try:
        return np.lib.format.read_array(_Rewound(file, start), allow_pickle=False)
    except Exception as error:  # numpy parses the header as Python text, which can raise anything
        if "Object arrays" in str(error):
            raise InputFileError(
                f"{where} holds Python objects, which are never read because they can run code; save numbers or text"
            ) from error
        raise InputFileError(f"{where} is not a complete numpy array: {reason(error)}") from error


class _Rewound:
    """A stream whose first bytes were already read: members of an archive cannot be rewound cheaply."""

    def __init__(self, file: BinaryIO, start: bytes) -> None:
        self._file, self._start = file, start

    def read(self, size: int = -1) -> bytes:
        if not self._start:
            return self._file.read(size)
        start, self._start = self._start[:size], self._start[size:]
        return start + (self._file.read(size - len(start)) if size > len(start) else b"")


def _without_sparse_parts(arrays: dict[str, NDArray], path: str) -> dict[str, Any]:
    """Assemble the sparse matrix of a file written by `scipy.sparse.save_npz`; return other arrays as they are."""
    if not {"format", "shape", "data"} <= set(arrays):
        return arrays
    try:
        kind = arrays["format"].item()
        kind = kind.decode() if isinstance(kind, bytes) else kind
        shape = tuple(arrays["shape"].tolist())
        Unpacked(path).add(POINTER * int(shape[0]))
        if kind in ("csr", "csc"):
            make = sparse.csr_array if kind == "csr" else sparse.csc_array
            matrix = make((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        else:
            matrix = sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
    except InputFileError:
        raise
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, MemoryError) as error:
        raise InputFileError(f"{path} is not a complete sparse matrix (csr, csc or coo): {error}") from error
    return {stem(path): sparse.csr_array(matrix)}


def table_of_arrays(arrays: dict[str, Any], path: str) -> Table:
    """Make a table of matrices (blocks) and vectors (columns) with one row per sample.

    Parameters
    ----------
    arrays : dict of str to ndarray or CSR array
        Content of the file.
    path : str
        Name of the file.

    Returns
    -------
    Table

    Examples
    --------
    >>> table = table_of_arrays({"X": np.ones((3, 2)), "y": np.array([0, 1, -1])}, "a.npz")
    >>> list(table.blocks), list(table.columns), table.rows.count
    (['X'], ['y'], 3)
    """
    blocks, columns = {}, {}
    for name, array in arrays.items():
        where = path if name == stem(path) else f"{path}, array {name!r}"
        if array.dtype.names or array.dtype.kind not in "biufUS":
            raise InputFileError(f"{where} holds {array.dtype}, neither real numbers nor text")
        if array.ndim == 1:
            if array.dtype.kind in "US":
                texts = clean_texts(np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array)
                columns[name] = Column(TEXT, lambda texts=texts: texts, feature=False)  # type: ignore[misc]
            else:
                columns[name] = Column(NUMBER, lambda array=array: array, feature=False)  # type: ignore[misc]
        elif array.ndim == 2 and array.dtype.kind not in "US":
            blocks[name] = array
        elif array.ndim != 0:
            raise InputFileError(
                f"{where} has the shape {array.shape}; a view is a 2-D array of numbers, samples × features"
            )
    heights = {name: block.shape[0] for name, block in blocks.items()}
    heights |= {name: len(column.load()) for name, column in columns.items() if not blocks}
    if not heights:
        raise InputFileError(f"{path} contains no matrix, only {some(arrays) or 'nothing'}")
    count = next(iter(heights.values()))
    if not count:
        raise InputFileError(f"{path} has no rows")
    return Table(Rows(path, count), columns, blocks)
