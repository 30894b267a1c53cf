"""SVMlight and MatrixMarket files, plain or gzipped, for sparse views."""

import numpy as np
import scipy.io
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from lmssc.files.delimited import open_bytes
from lmssc.files.table import NUMBER, Column, InputFileError, Rows, Table, stem

# Features beyond this number in an SVMlight file are a mistake: every feature gets dense loadings.
MOST_FEATURES = 10_000_000


def read_svmlight(path: str) -> Table:
    """Read an SVMlight file: lines of a label and ``feature:value`` pairs.

    Parameters
    ----------
    path : str
        Name of the file.

    Returns
    -------
    Table
        Its label is the column "label", which is not a feature. Features are numbered from 0 if there is one of
        that number, else from 1.
    """
    with open_bytes(path) as file:
        fault, count = _check_svmlight(file, path)
        if fault:
            raise InputFileError(fault)
        file.seek(0)
        try:
            block, labels = load_svmlight_file(file, zero_based=True, dtype=np.float64)
        except (ValueError, OverflowError) as error:
            raise InputFileError(f"{path} is not an SVMlight file: {error}") from error
    block = sparse.csr_array(block)
    first = 0 if (block.indices == 0).any() else 1
    block = block[:, first:]
    column = Column(NUMBER, lambda: labels, feature=False)
    return Table(Rows(path, count), {"label": column}, {stem(path): block}, {stem(path): first})


def _check_svmlight(file: object, path: str) -> tuple[str, int]:
    """What is wrong with the first line that is, and the number of samples; scikit-learn names no line."""
    count = 0
    for number, line in enumerate(file, 1):  # type: ignore[arg-type,var-annotated]
        cells = line.partition(b"#")[0].split()
        if not cells:
            continue
        count += 1
        before = -1
        try:
            float(cells[0])
        except ValueError:
            return (
                f"{path}, line {number}: it has to start with a number, the label; it starts with {_show(cells[0])}",
                0,
            )
        for cell in cells[1:]:
            feature, _, value = cell.partition(b":")
            if feature == b"qid":
                continue
            try:
                place = int(feature)
                float(value)
            except ValueError:
                return f"{path}, line {number}: {_show(cell)} is not of the form feature:value", 0
            if not before < place <= MOST_FEATURES:
                return f"{path}, line {number}: feature {place} is out of order or beyond {MOST_FEATURES}", 0
            before = place
    return ("" if count else f"{path} is empty, not an SVMlight file"), count


def _show(cell: bytes) -> str:
    return repr(cell[:30].decode("utf-8", "replace"))


def read_matrix_market(path: str) -> Table:
    """Read a MatrixMarket file.

    Parameters
    ----------
    path : str
        Name of the file.

    Returns
    -------
    Table
    """
    with open_bytes(path) as file:
        start = file.read(14)
        if start != b"%%MatrixMarket":
            what = "is not a MatrixMarket file: its first line has to start with %%MatrixMarket"
            raise InputFileError(f"{path} is empty" if not start else f"{path}, line 1: it {what}")
        file.seek(0)
        try:
            block = scipy.io.mmread(file)
        except (ValueError, OverflowError, TypeError, MemoryError, IndexError) as error:
            raise InputFileError(f"{path} is not a whole MatrixMarket file: {error}") from error
    if block.dtype.kind == "c":
        raise InputFileError(f"{path} holds complex numbers; a view has real ones")
    if not min(block.shape):
        raise InputFileError(f"{path} has the shape {block.shape}: nothing in it")
    block = sparse.csr_array(block) if sparse.issparse(block) else np.asarray(block)
    return Table(Rows(path, block.shape[0]), {}, {stem(path): block})
