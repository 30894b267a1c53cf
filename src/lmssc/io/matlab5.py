"""MATLAB files of versions 5 to 7 from untrusted sources: scipy's reader crashes the interpreter on some damaged files.

The format is described in "MAT-File Format" by The MathWorks: a header of 128 bytes, then elements, each a tag (type
and number of bytes) and its bytes; a matrix is an element that has elements in it.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.io.arrays import POINTER
from lmssc.io.unpacking import Unpacked

NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXTS = {2: "utf-8", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
MATRIX, COMPRESSED = 14, 15
# Bytes of a tag, which has the type and the number of bytes of an element.
TAG = 8
CELL, CHARACTERS, SPARSE, NUMERIC = 1, 4, 5, range(6, 16)
COMPLEX = 0x0800
# Deeper nesting of cells is taken for a damaged file.
MAX_DEPTH = 20


class DamagedMatlabError(ValueError):
    """Bytes that are not a MATLAB file of version 5 to 7."""


def read_matlab5(content: bytes, unpacked: Unpacked | None = None) -> dict[str, Any]:
    """Read the variables of a file: arrays, CSR arrays, arrays of text, and lists for cells; others are skipped.

    Parameters
    ----------
    content : bytes
        The whole file.
    unpacked : Unpacked, optional
        Counts what is unpacked, and raises beyond the limit.

    Returns
    -------
    dict of str to ndarray, csr_array or list

    Examples
    --------
    >>> import io, scipy.io
    >>> file = io.BytesIO()
    >>> scipy.io.savemat(file, {"X": np.eye(2), "name": ["ab", "cd"]})
    >>> read_matlab5(file.getvalue())
    {'X': array([[1., 0.],
           [0., 1.]]), 'name': array(['ab', 'cd'], dtype='<U2')}
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None or not content.startswith(b"MATLAB"):
        raise DamagedMatlabError("it does not start like one (if MATLAB 4 wrote it, save it again with -v7)")
    unpacked = Unpacked("the MATLAB file", len(content)) if unpacked is None else unpacked
    found: dict[str, Any] = {}
    for kind, payload in _elements(memoryview(content)[128:], order):
        if kind == COMPRESSED:
            ((kind, payload),) = _elements(memoryview(_unpack(payload, order, unpacked)), order)
        if kind != MATRIX:
            raise DamagedMatlabError(f"it has an element of type {kind} where a variable should be")
        name, value = _variable(payload, order, unpacked)
        if value is not None:
            found[name] = value
    return found


def _unpack(payload: memoryview, order: str, unpacked: Unpacked) -> bytes:
    """Decompress an element to the size that its tag states, which is checked first."""
    try:
        stream = zlib.decompressobj()
        tag = stream.decompress(payload, TAG)
        if len(tag) < TAG:
            raise DamagedMatlabError("it ends within an element")
        kind, size = struct.unpack(f"{order}II", tag)
        size = 0 if kind >> 16 else size + -size % 8
        unpacked.add(TAG + size)
        content = tag + (stream.decompress(stream.unconsumed_tail, size) if size else b"")
        if stream.decompress(stream.unconsumed_tail, 1):
            raise DamagedMatlabError("it has a compressed element that is longer than stated")
        # The rest is the checksum.
        stream.flush()
        if not stream.eof:
            raise DamagedMatlabError("it ends within an element")
        return content
    except zlib.error as error:
        raise DamagedMatlabError(str(error)) from error


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield type and bytes of each element."""
    start = 0
    while start < len(data):
        if len(data) - start < 8:
            raise DamagedMatlabError("it ends within an element")
        kind, size = struct.unpack_from(f"{order}II", data, start)
        if kind >> 16:  # a small element: its bytes are in the second half of the tag
            kind, size, begin = kind & 0xFFFF, kind >> 16, start + 4
            start += 8
        else:
            begin = start + 8
            # Elements are padded to 8 bytes, compressed ones are not.
            start = begin + size + (0 if kind == COMPRESSED else -size % 8)
        if begin + size > min(start, len(data)):
            raise DamagedMatlabError("it ends within an element")
        yield kind, data[begin : begin + size]


def _variable(payload: memoryview, order: str, unpacked: Unpacked, depth: int = 0) -> tuple[str, Any]:
    """Return name and value of a variable; None for what is neither numbers nor text, such as a structure."""
    if not payload:  # an empty cell
        return "", np.empty((0, 0))
    parts = _elements(payload, order)
    try:
        flags = _numbers(*next(parts), order)
        shape = [int(size) for size in _numbers(*next(parts), order)]
        name = bytes(next(parts)[1]).decode("ascii", "replace")
        if len(flags) != 2 or len(shape) < 2 or min(shape) < 0:
            raise DamagedMatlabError("it has a matrix without a size")
        kind = int(flags[0]) & 0xFF
        if kind == CELL:
            if depth > MAX_DEPTH:
                raise DamagedMatlabError("its cells are nested too deeply")
            cell = [_variable(part, order, unpacked, depth + 1)[1] for _, part in parts]
            if len(cell) != math.prod(shape):
                raise DamagedMatlabError(f"it has a cell of {shape} with {len(cell)} matrices")
            return name, cell
        if kind == CHARACTERS:
            return name, _text(*next(parts, (2, memoryview(b""))), shape, order)
        if kind == SPARSE:
            unpacked.add(POINTER * shape[0])
            rows, starts, data = (_numbers(*next(parts), order) for _ in range(3))
            return name, _sparse(rows, starts, data, shape)
        if kind in NUMERIC:
            values = _numbers(*next(parts), order)
            if len(values) != math.prod(shape):
                raise DamagedMatlabError(f"it has a matrix of {shape} with {len(values)} numbers")
            values = values.reshape(shape, order="F")
            return name, values * 1j if int(flags[0]) & COMPLEX else values
    except StopIteration:
        raise DamagedMatlabError("it has an incomplete matrix") from None
    return name, None


def _numbers(kind: int, payload: memoryview, order: str) -> NDArray:
    if kind not in NUMBERS:
        raise DamagedMatlabError(f"it has an element of type {kind} where numbers should be")
    dtype = np.dtype(NUMBERS[kind])
    if len(payload) % dtype.itemsize:
        raise DamagedMatlabError("it has a part of a number")
    return np.frombuffer(payload, f"{order}{NUMBERS[kind]}").astype(dtype)


def _text(kind: int, payload: memoryview, shape: list[int], order: str) -> NDArray:
    """Decode text, which is stored column by column, into one string per row."""
    if kind not in TEXTS:
        raise DamagedMatlabError(f"it has an element of type {kind} where text should be")
    coding = TEXTS[kind] + ("" if TEXTS[kind] == "utf-8" else "-le" if order == "<" else "-be")
    # An array of characters takes far less memory than a list of them.
    letters = np.frombuffer(bytes(payload).decode(coding, "replace").encode("utf-32-le"), dtype="<U1")
    if len(shape) != 2 or len(letters) != math.prod(shape):
        if shape[0] != 1:
            raise DamagedMatlabError(f"it has text of {shape} with {len(letters)} characters")
        return np.array(["".join(letters.tolist())])
    rows = letters.reshape(shape, order="F") if len(letters) else np.empty((shape[0], 0), dtype=str)
    return np.array(["".join(row) for row in rows.tolist()], dtype=str)


def _sparse(rows: NDArray, starts: NDArray, data: NDArray, shape: list[int]) -> Any:
    if len(shape) != 2 or len(starts) != shape[1] + 1 or starts[-1] < 0:
        raise DamagedMatlabError("it has an incomplete sparse matrix")
    count = int(starts[-1])
    try:
        matrix = sparse.csc_array((data[:count].astype(np.float64), rows[:count], starts), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise DamagedMatlabError(f"it has an incomplete sparse matrix: {error}") from error
    return matrix.tocsr()
