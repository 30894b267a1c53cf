"""SVMlight and MatrixMarket files, plain or gzipped, for sparse views."""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.io.arrays import POINTER
from lmssc.io.errors import InputFileError
from lmssc.io.table import NUMBER, Column, Rows, Table, stem
from lmssc.io.unpacking import Unpacked, open_bytes

# A larger feature number in an SVMlight file is taken for a mistake: every feature gets dense loadings.
MAX_FEATURES = 10_000_000
# Lines parsed at a time.
CHUNK = 100_000


def read_svmlight(path: str) -> Table:
    """Read an SVMlight file: lines of a label and ``feature:value`` pairs.

    The labels are the column "target", which is not a feature. Features are numbered from 0 if feature 0 occurs, else
    from 1.
    """
    from sklearn.datasets import load_svmlight_file  # slow to import, and needed here alone

    with open_bytes(path) as file:
        lines = _check_svmlight(file, path)
        file.seek(0)
        try:
            block, labels = load_svmlight_file(file, zero_based=True, dtype=np.float64)
        except (ValueError, OverflowError) as error:
            raise InputFileError(f"{path} is not an SVMlight file: {error}") from error
    block = sparse.csr_array(block)
    first = 0 if (block.indices == 0).any() else 1
    block = block[:, first:]
    column = Column(NUMBER, lambda: labels, feature=False)
    return Table(Rows(path, len(lines), lines), {"target": column}, {stem(path): block}, {stem(path): first})


def _check_svmlight(file: BinaryIO, path: str) -> NDArray:
    """Return the line of each sample; raise the first fault with its line, which scikit-learn does not name."""
    lines = []
    for number, line in enumerate(file, 1):
        cells = line.partition(b"#")[0].split()
        if not cells:
            continue
        lines.append(number)
        if fault := _fault_of_cells(cells):
            raise InputFileError(f"{path}, line {number}: {fault}")
    if not lines:
        raise InputFileError(f"{path} is empty, not an SVMlight file")
    return np.array(lines)


def _fault_of_cells(cells: list[bytes]) -> str:
    """What is wrong with a line of an SVMlight file; empty if nothing is."""
    try:
        float(cells[0])
    except ValueError:
        return f"it must start with a number, the label; it starts with {_show(cells[0])}"
    before = -1
    for cell in cells[1:]:
        feature, _, value = cell.partition(b":")
        if feature == b"qid":
            continue
        try:
            place = int(feature)
            float(value)
            if b"_" in cell:  # Python takes "1_000" for a number
                raise ValueError
        except ValueError:
            return f"{_show(cell)} is not of the form feature:value"
        if not before < place <= MAX_FEATURES:
            return f"feature {place} is out of order or beyond {MAX_FEATURES}"
        before = place
    return ""


def _show(cell: bytes) -> str:
    return repr(cell[:30].decode("utf-8", "replace"))


def read_matrix_market(path: str) -> Table:
    """Read a MatrixMarket file.

    Notes
    -----
    `scipy.io.mmread` is not used: on some damaged files with a correct header it crashes the interpreter (scipy 1.17:
    103 of 3,000 files with a few bytes changed after the header), and it reads "1_000" as 1 without complaint.
    """
    with open_bytes(path) as file:
        lines = ((number, line) for number, line in enumerate(file, 1) if number == 1 or _has_content(line))
        form, width, symmetry = _head(next(lines, (1, b""))[1], path)
        number, sizes = next(lines, (2, b""))
        try:
            shape = [int(size) for size in sizes.split()]
        except ValueError:
            shape = []
        if len(shape) != (3 if form == "coordinate" else 2) or min(shape[:2]) < 1:
            raise InputFileError(f"{path}, line {number}: it must give the size: rows, columns (and entries)")
        Unpacked(path).add(POINTER * shape[0])
        n_entries = shape[2] if form == "coordinate" else shape[0] * shape[1]
        entries = _entries(lines, width, n_entries, path)
    if form == "array":
        block = entries.reshape(shape[0], shape[1], order="F")
    else:
        block = _from_entries(entries, (shape[0], shape[1]), symmetry, path)
    return Table(Rows(path, shape[0]), {}, {stem(path): block})


def _has_content(line: bytes) -> bool:
    return not line.startswith(b"%") and bool(line.strip())


def _head(line: bytes, path: str) -> tuple[str, int, str]:
    """Return format, numbers per entry, and symmetry."""
    words = line.decode("ascii", "replace").lower().split()
    if not words:
        raise InputFileError(f"{path} is empty, not a MatrixMarket file")
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise InputFileError(f"{path}, line 1: not a MatrixMarket file, which starts with %%MatrixMarket matrix")
    form, field, symmetry = words[2:]
    widths = {"real": 3, "double": 3, "integer": 3, "pattern": 2}
    if field not in widths:
        raise InputFileError(f"{path} holds {field} numbers; a view must have real ones")
    if form == "array" and symmetry == "general" and field != "pattern":
        return form, 1, symmetry
    if form != "coordinate" or symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise InputFileError(f"{path}, line 1: {form} {field} {symmetry} is not a supported kind of matrix")
    return form, widths[field], symmetry


def _entries(lines: Iterator[tuple[int, bytes]], width: int, count: int, path: str) -> NDArray:
    """Return the numbers of all entries, one row each."""
    parts = [np.empty((0, width))]
    while chunk := list(islice(lines, CHUNK)):
        cells = [line.split() for _, line in chunk]
        try:
            numbers = np.array(cells).astype(np.float64)
            if any(b"_" in line for _, line in chunk):  # Python takes "1_000" for a number
                numbers = np.empty(0)
        except ValueError:  # not all of one length, or no numbers
            numbers = np.empty(0)
        if numbers.shape != (len(chunk), width):
            raise InputFileError(f"{path}, line {_bad_line(chunk, width)}: expected {width} numbers")
        parts.append(numbers)
    entries = np.concatenate(parts)
    if len(entries) != count:
        raise InputFileError(f"{path} is not a whole MatrixMarket file: it has {len(entries)} of {count} entries")
    return entries


def _bad_line(chunk: list[tuple[int, bytes]], width: int) -> int:
    for number, line in chunk:
        try:
            if b"_" in line or len([float(cell) for cell in line.split()]) != width:
                return number
        except ValueError:
            return number
    return chunk[0][0]


def _from_entries(entries: NDArray, shape: tuple[int, int], symmetry: str, path: str) -> sparse.csr_array:
    places = entries[:, :2]
    wrong = np.flatnonzero(((places != np.rint(places)) | (places < 1) | (places > shape)).any(axis=1))
    if len(wrong):
        row, column = places[wrong[0]]
        raise InputFileError(
            f"{path}, entry {wrong[0] + 1}: ({row:g}, {column:g}) is not within {shape[0]} x {shape[1]}"
        )
    row, column = (places - 1).astype(np.int64).T
    values = entries[:, 2] if entries.shape[1] == 3 else np.ones(len(entries))
    if symmetry != "general":
        if shape[0] != shape[1]:
            raise InputFileError(f"{path}, line 1: a {symmetry} matrix is square, this is {shape[0]} x {shape[1]}")
        off = row != column
        sign = 1 if symmetry == "symmetric" else -1
        values = np.concatenate([values, sign * values[off]])
        row, column = np.concatenate([row, column[off]]), np.concatenate([column, row[off]])
    return sparse.csr_array(sparse.coo_array((values, (row, column)), shape=shape))
