"""The content of one file: columns with one value per row, matrices (blocks), and the position of each row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.io.errors import InputFileError
from lmssc.io.unpacking import packing
from lmssc.numerics.matrices import Matrix
from lmssc.persistence.atomic import readable

NUMBER, TEXT, DATE, OTHER = "number", "text", "date", "other"


@dataclass(frozen=True)
class Column:
    """A named column of a file.

    Attributes
    ----------
    kind : {"number", "text", "date", "other"}
        Type of its values.
    load : callable
        Returns its values: numbers with NaN for blank cells, or text (dtype object) with None for blank cells.
    fault : str
        Why it cannot be used, raised when it is used; empty if it can. The kind "other" requires it.
    feature : bool
        Whether it is a feature by default. A vector next to matrices is not: it may be the labels.
    unit : str
        Unit written with its numbers, such as "%"; empty if there is none.
    grouped : bool
        Whether some of its numbers have separated thousands.
    truth : bool
        Whether it is boolean, stored as 1 and 0.
    odd_blanks : tuple of (str, int)
        Cells such as "?" in a numeric column that count as blank, and how many of each.
    """

    kind: str
    load: Callable[[], NDArray]
    fault: str = ""
    feature: bool = True
    unit: str = ""
    grouped: bool = False
    truth: bool = False
    odd_blanks: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.kind == OTHER and not self.fault:
            raise ValueError("a column of the kind 'other' needs a fault, the message for those who use it")


@dataclass(frozen=True)
class Rows:
    """The rows of a file, and how messages refer to them.

    Attributes
    ----------
    path : str
        Name of the file, as given.
    count : int
        Number of rows.
    lines : ndarray of int, optional
        Line of each row, counted from 1, in a format of which a row is a line.
    word : {"line", "row"}
        What a line is called.

    Examples
    --------
    >>> Rows("a.csv", 2, np.array([2, 5])).place(1), Rows("a.npy", 2).place(1)
    ('a.csv, line 5', 'a.npy, row 2')
    """

    path: str
    count: int
    lines: NDArray | None = None
    word: str = "line"

    def place(self, row: int) -> str:
        """Describe the position of a row (counted from 0): its line in a text file, else its number, both from 1."""
        where = f"row {row + 1}" if self.lines is None else f"{self.word} {self.lines[row]}"
        return f"{self.path}, {where}"


class LazyBlocks(Mapping[str, Matrix]):
    """Matrices of a file that are read when they are asked for.

    Parameters
    ----------
    loaders : dict of str to callable
        For each matrix, a function that reads it.

    Examples
    --------
    >>> blocks = LazyBlocks({"a": lambda: np.eye(2)})
    >>> list(blocks), blocks["a"].shape
    (['a'], (2, 2))
    """

    def __init__(self, loaders: Mapping[str, Callable[[], Matrix]]) -> None:
        self._loaders = dict(loaders)

    def __getitem__(self, name: str) -> Matrix:
        return self._loaders[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._loaders

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


@dataclass(frozen=True)
class Table:
    """The content of one file.

    Attributes
    ----------
    rows : Rows
        Its rows.
    columns : dict of str to Column
        Columns, one value per row.
    blocks : dict of str to ndarray or CSR array
        Matrices.
    block_columns : dict of str to int
        Number of the first column of blocks whose columns are numbered in the file, such as SVMlight's.
    types_detected : bool
        Whether the types of the columns were detected from text, as in CSV and TSV files: reading the file again can
        keep a column as written.
    decimal : {".", ","}, or None
        Decimal mark of a CSV or TSV file, if it is known.
    note : str
        How the file was read, if that was detected and is unusual.
    id_column : str, or None
        Column with the ids, in a format that says which.
    usual_blocks : sequence of str, or None
        Matrices that are views if none is named; None for all of them.
    features : callable
        Names of the columns of a matrix, by its name; None where they have no names.
    present : callable
        Which rows a matrix has, by its name; None for all.
    links : sequence of str
        Matrices that are links between the samples.
    transposed : bool
        Whether the file has a column for each sample, and was turned.
    """

    rows: Rows
    columns: Mapping[str, Column]
    blocks: Mapping[str, Matrix] = field(default_factory=dict)
    block_columns: Mapping[str, int] = field(default_factory=dict)
    types_detected: bool = False
    decimal: str | None = None
    note: str = ""
    id_column: str | None = None
    usual_blocks: Sequence[str] | None = None
    features: Callable[[str], Sequence[str] | None] = lambda block: None
    present: Callable[[str], NDArray | None] = lambda block: None
    links: Sequence[str] = ()
    transposed: bool = False

    @property
    def path(self) -> str:
        """Name of the file, as given."""
        return self.rows.path

    def numbers(self, name: str) -> NDArray:
        """Values of a column of numbers."""
        column = self.columns[name]
        if column.fault:
            raise InputFileError(column.fault)
        if column.kind != NUMBER:
            raise InputFileError(f"{self.path}, column {name!r}: it holds {column.kind}, not numbers")
        return column.load()

    def texts(self, name: str) -> NDArray:
        """Values of a column as text, None for blank cells; whole numbers have no decimal point."""
        column = self.columns[name]
        if column.fault or column.kind not in (NUMBER, TEXT):
            raise InputFileError(column.fault or f"{self.path}, column {name!r}: it holds neither numbers nor text")
        return column.load() if column.kind == TEXT else _as_text(column.load())


def _as_text(values: NDArray) -> NDArray:
    texts = np.empty(len(values), dtype=object)
    if values.dtype.kind in "iub":
        texts[:] = [str(value) for value in values.tolist()]
        return texts
    known = ~np.isnan(values)
    for row in np.flatnonzero(known):
        value = float(values[row])
        texts[row] = str(int(value)) if value.is_integer() else repr(value)
    return texts


def clean_texts(values: Iterable[Any]) -> NDArray:
    """Strip whitespace; None where nothing is left.

    Examples
    --------
    >>> clean_texts([" a", "", None, "b c"])
    array(['a', None, None, 'b c'], dtype=object)
    """
    cleaned = [None if value is None else (str(value).strip() or None) for value in values]
    texts = np.empty(len(cleaned), dtype=object)
    texts[:] = cleaned
    return texts


def stem(path: str) -> str:
    """Name of a file without its folder and endings.

    Examples
    --------
    >>> stem("data/word counts.csv.gz"), stem("v1.2.parquet")
    ('word counts', 'v1.2')
    """
    name = Path(path).name
    return readable(Path(name[: len(name) - len(packing(name))]).stem)


def some(things: Iterable[Any], most: int = 5) -> str:
    """List the first few items, and how many more there are.

    Examples
    --------
    >>> some("abcdefg", 3)
    'a, b, c and 4 more'
    """
    listed = [str(thing) for thing in things]
    rest = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + rest


def counted(number: int, what: str) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> counted(1, "cell"), counted(2500, "cell")
    ('1 cell', '2,500 cells')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def reason(error: BaseException) -> str:
    r"""First line of the message of an error, or its class if it has no message.

    Examples
    --------
    >>> reason(ValueError("one line\nand another")), reason(MemoryError())
    ('one line', 'MemoryError')
    """
    return str(error).strip().partition("\n")[0] or type(error).__name__
