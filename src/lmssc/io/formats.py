"""Choose the reader of a file by the ending of its name.

Every reader takes the path of a file, opens it and returns a `Table`: columns of numbers, texts or dates, and matrices,
each under a name. It raises `InputFileError`, which names the file and where possible the line, if the file is empty,
damaged or unpacks to too much. It never runs anything that the file contains.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lmssc.io.arrays import read_npy, read_npz
from lmssc.io.arrow import read_feather, read_parquet
from lmssc.io.cells import read_cells
from lmssc.io.delimited import DELIMITERS, guess_delimiter, read_delimited
from lmssc.io.errors import InputFileError
from lmssc.io.folders import read_folder
from lmssc.io.json_lines import read_json_lines
from lmssc.io.matlab import read_matlab
from lmssc.io.sparse import read_matrix_market, read_svmlight
from lmssc.io.table import Table
from lmssc.io.unpacking import PACKED, packing
from lmssc.io.workbook import read_workbook

TEXT_TABLES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
READERS: dict[str, Callable[[str], Table]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".feather": read_feather,
    ".arrow": read_feather,
    ".npy": read_npy,
    ".npz": read_npz,
    ".mat": read_matlab,
    ".svm": read_svmlight,
    ".svmlight": read_svmlight,
    ".libsvm": read_svmlight,
    ".mtx": read_matrix_market,
    ".xlsx": read_workbook,
    ".h5ad": read_cells,
    ".h5mu": read_cells,
    ".zarr": read_cells,
}
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
PACKABLE = (*TEXT_TABLES, ".jsonl", ".ndjson", ".svm", ".svmlight", ".libsvm", ".mtx")


def read_table(
    path: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    usual_decimal: str | None = None,
    keep_text: Callable[[str], bool] = lambda _: False,
) -> Table:
    """Read a file in any of the formats.

    Parameters
    ----------
    path : str
        Name of the file; its ending gives the format.
    delimiter : str, optional
        Delimiter of CSV and TSV files, as a word ("semicolon") or a character. By default a comma or a tab, by the
        ending, or a semicolon if the first line has semicolons but no comma.
    decimal, usual_decimal : {".", ","}, optional
        Decimal mark of text files, and the one of files that do not show theirs.
    keep_text : callable
        Called with the name of a column: whether its cells are kept as written, such as ids and labels.

    Returns
    -------
    Table

    Raises
    ------
    InputFileError
        If the file does not exist or cannot be used.
    """
    if ADDRESS.match(path):
        raise InputFileError(f"{path} is an address; download the file and name that")
    if Path(path).is_dir() and Path(path).suffix.lower() != ".zarr":
        return read_folder(path)
    if not Path(path).exists():
        raise InputFileError(f"{path}: no such file")
    packed = packing(path)
    suffix = Path(path.lower().removesuffix(packed)).suffix
    if suffix in TEXT_TABLES:
        between = _delimiter(delimiter) or TEXT_TABLES[suffix]
        if delimiter is None and suffix == ".csv":
            between = guess_delimiter(path)
        table = read_delimited(path, between, keep_text, decimal, usual_decimal)
        if delimiter is None and between != TEXT_TABLES[suffix]:
            return replace(table, note=f"{path} is delimited by {between!r}. {table.note}".strip())
        return table
    if suffix not in READERS or (packed and suffix not in PACKABLE):
        known = ", ".join((*TEXT_TABLES, *READERS))
        ending = f"{suffix}{packed}" if packed else suffix or "no ending"
        raise InputFileError(
            f"{path}: {ending} is not a supported format; supported are {known} ({', '.join(PACKABLE)} also "
            f"{', '.join(PACKED)})"
        )
    return READERS[suffix](path)


def _delimiter(given: str | None) -> str | None:
    if given is None or given in DELIMITERS.values():
        return given
    if given in DELIMITERS:
        return DELIMITERS[given]
    if given == "\\t":
        return "\t"
    raise InputFileError(f"--delimiter {given!r} is not one of {', '.join(DELIMITERS)}")
