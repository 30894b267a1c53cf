"""Views on disk: npy, npz and Parquet files as memory maps, never loaded as a whole."""

import os
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from lmssc._optional import import_optional
from lmssc.data.list_columns import ARROW_NUMBERS
from lmssc.data.memmap import copy_to_disk, release, slices
from lmssc.io.arrow import BATCH_ROWS, PIECE, is_lists, open_lists
from lmssc.io.unpacking import Unpacked
from lmssc.numerics.matrices import Matrix

# Length of the fixed part of a local header in a zip file; at offset 26 it has the lengths of name and extra field.
LOCAL_HEADER = 30
# Arrays that `scipy.sparse.save_npz` writes.
SPARSE_MEMBERS = {"data", "indices", "indptr", "format", "shape"}


def open_view(
    path: str | os.PathLike[str], *, columns: Sequence[str] | None = None, member: str | None = None
) -> Matrix:
    """Open a view that stays on disk: it can be larger than memory.

    `LMSSC` reads it block by block in `fit`, `predict` and `transform`; other methods load all of it. Data that cannot
    be used in place (Parquet, compressed members of an npz, numbers that are not float32 or float64) are copied block
    by block to a temporary file, in the folder given by the environment variable TMPDIR. The copy is deleted with the
    array.

    Parameters
    ----------
    path : str or path
        A file that ends in ``.npy``, ``.npz`` or ``.parquet``. An npz may hold a CSR matrix as
        `scipy.sparse.save_npz` writes it.
    columns : sequence of str, optional
        Columns of a Parquet file; by default all numeric ones. Blank cells become NaN; float32 if all columns are. A
        single column of lists of one length, such as embeddings, is a view, too; a missing list is a row of NaN.
    member : str, optional
        Array of an npz file; needed if the file has several.

    Returns
    -------
    memmap or csr_array of shape (n, d)
        To be passed as a view.

    Examples
    --------
    >>> from lmssc import LMSSC, open_view
    >>> from lmssc.datasets import make_multiview
    >>> folder = Path(tempfile.mkdtemp())
    >>> data = make_multiview(200, labelled=0.1, random_state=0)
    >>> for name, view in zip(data.view_names, data.views):
    ...     np.save(folder / f"{name}.npy", view)
    >>> views = [open_view(folder / f"{name}.npy") for name in data.view_names]
    >>> LMSSC().fit(views, data.y).transduction_.shape
    (200,)
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], Matrix]] = {
        ".npy": _open_npy,
        ".npz": lambda path: _open_npz(path, member),
        ".parquet": lambda path: _open_parquet(path, columns),
    }
    ending = path.suffix.lower()
    if ending not in readers:
        raise ValueError(f"{path}: a view on disk must be a file that ends in {', '.join(readers)}")
    if columns is not None and ending != ".parquet":
        raise ValueError(f"columns={list(columns)!r} is for Parquet files; {path} has no column names")
    if member is not None and ending != ".npz":
        raise ValueError(f"member={member!r} is for npz files; {path} is a single array")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    return readers[ending](path)


def _open_npy(path: Path) -> NDArray:
    with open(path, "rb") as file:
        shape, by_columns, dtype = _read_header(file, path)
        _check(shape, dtype, str(path))
        return _as_floats(_map(file, shape, by_columns, dtype, file.tell(), path))


def _read_header(file: IO[bytes], where: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read shape, order and type of an array; leaves the file at its first number."""
    try:
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
        return read(file)
    except (ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{where} is not a complete npy file: {error}") from error


def _check(shape: tuple[int, ...], dtype: np.dtype, where: str) -> None:
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise ValueError(f"{where} holds {dtype}, not real numbers of at most 64 bits")
    if len(shape) != 2 or not all(shape):
        raise ValueError(f"{where} has the shape {shape}; a view has one row per sample and one column per feature")


def _map(
    file: IO[bytes], shape: tuple[int, ...], by_columns: bool, dtype: np.dtype, offset: int, where: Any
) -> np.memmap:
    needed = offset + int(np.prod(shape)) * dtype.itemsize
    if os.fstat(file.fileno()).st_size < needed:
        raise ValueError(f"{where} is cut off: its numbers end at byte {needed}, beyond the end of the file")
    return np.memmap(file, dtype, "r", offset, shape, "F" if by_columns else "C")


def _as_floats(array: Any) -> Any:
    """Return the array itself if its numbers can be used in place, else a copy on disk."""
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    dtype = np.dtype(np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64)

    def blocks() -> Iterable[NDArray]:
        for rows in slices(len(array), array.shape[1] * 8):
            yield array[rows]
            release(array)

    return copy_to_disk(blocks(), array.shape[1], dtype)


def _open_npz(path: Path, member: str | None) -> Matrix:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
            if member is None and set(names) >= SPARSE_MEMBERS:
                return _open_sparse(path, archive)
            if member is None and len(names) != 1:
                raise ValueError(f"{path} has the arrays {names}; name one as member=")
            if member is not None and member not in names:
                raise ValueError(f"{path} has no array {member!r}; it has {names}")
            name = names[0] if member is None else member
            array = _open_member(path, archive, name)
            _check(array.shape, array.dtype, f"{path}, array {name!r},")
            return _as_floats(array)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is not a complete npz file: {error}") from error


def _open_member(path: Path, archive: zipfile.ZipFile, name: str) -> Any:
    """Open an array of an npz: in place if it is uncompressed, else unpacked to a temporary file."""
    info = archive.getinfo(f"{name}.npy")
    where = f"{path}, array {name!r}"
    with archive.open(info) as packed:
        shape, by_columns, dtype = _read_header(packed, where)
        if dtype.hasobject:
            raise ValueError(f"{where}, holds objects, not numbers")
        if info.compress_type == zipfile.ZIP_STORED:
            with open(path, "rb") as file:
                file.seek(info.header_offset + 26)
                lengths = struct.unpack("<HH", file.read(4))
                offset = info.header_offset + LOCAL_HEADER + sum(lengths) + packed.tell()
                return _map(file, shape, by_columns, dtype, offset, where)
        with tempfile.TemporaryFile() as file:
            Unpacked(str(path)).add(info.file_size)
            while piece := packed.read(PIECE):
                file.write(piece)
            file.flush()
            return _map(file, shape, by_columns, dtype, 0, where)


def _open_sparse(path: Path, archive: zipfile.ZipFile) -> sparse.csr_array:
    with np.load(path) as content:
        kind, shape = content["format"].item(), tuple(content["shape"].tolist())
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind != "csr":
        raise ValueError(f"{path} holds a sparse matrix of the format {kind!r}; save it with tocsr()")
    values, indices, indptr = (_open_member(path, archive, name) for name in ("data", "indices", "indptr"))
    _check((len(values), 1), values.dtype, f"{path}, array 'data',")
    values = _as_floats(values.reshape(-1, 1)).reshape(-1)
    try:
        return sparse.csr_array((values, indices, indptr), shape=shape)
    except ValueError as error:
        raise ValueError(f"{path} is not a complete sparse matrix: {error}") from error


def _open_parquet(path: Path, columns: Sequence[str] | None) -> np.memmap:
    arrow = import_optional("pyarrow", purpose="Parquet files", extra="files")
    parquet = import_optional("pyarrow.parquet", purpose="Parquet files", extra="files")
    try:
        # Otherwise pyarrow reads the whole file ahead.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=PIECE) as file:
            if lists := _list_column(file.schema_arrow, columns):
                with open_lists(str(path), lists, Unpacked(str(path))) as (_, width, rows):
                    head = next(rows)
                    return copy_to_disk(chain([head], rows), width, head.dtype)
            chosen = _choose_columns(arrow.types, file.schema_arrow, columns, path)
            single = all(arrow.types.is_float32(file.schema_arrow.field(name).type) for name in chosen)
            dtype = np.dtype(np.float32 if single else np.float64)
            if not file.metadata.num_rows:
                raise ValueError(f"{path} has columns but no rows")
            batches = file.iter_batches(BATCH_ROWS, columns=chosen, use_threads=False)
            blocks = (np.column_stack([_numbers(batch.column(name), dtype) for name in chosen]) for batch in batches)
            return copy_to_disk(blocks, len(chosen), dtype)
    except arrow.ArrowException as error:
        raise ValueError(f"{path} is not a complete Parquet file: {str(error).partition(chr(10))[0]}") from error


def _list_column(schema: Any, columns: Sequence[str] | None) -> str | None:
    """The column of lists that was asked for, or that is the only one with numbers."""
    lists = [field.name for field in schema if is_lists(field.type)]
    if columns is not None:
        return columns[0] if list(columns) in [[name] for name in lists] else None
    numbers = [field.name for field in schema if str(field.type).startswith(ARROW_NUMBERS)]
    return lists[0] if len(lists) == 1 and not numbers else None


def _choose_columns(types: Any, schema: Any, columns: Sequence[str] | None, path: Path) -> list[str]:
    numeric = [field.name for field in schema if _is_number(types, field.type)]
    chosen = numeric if columns is None else list(columns)
    for name in chosen:
        if name not in schema.names:
            raise ValueError(f"{path} has no column {name!r}; it has {schema.names}")
        if name not in numeric:
            raise ValueError(f"{path}, column {name!r}: it holds {schema.field(name).type}, not numbers")
    if not chosen:
        raise ValueError(f"{path}: no column of numbers is {'there' if columns is None else 'named by columns='}")
    repeated = [name for name in chosen if schema.names.count(name) + chosen.count(name) > 2]
    if repeated:
        raise ValueError(f"{path}: the column {repeated[0]!r} appears twice")
    return chosen


def _is_number(types: Any, kind: Any) -> bool:
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _numbers(values: Any, dtype: np.dtype) -> NDArray:
    """Numbers of a column, NaN for blank cells."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=dtype)
