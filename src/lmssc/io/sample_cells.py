"""What the files say about one sample, column by column, to show it to people."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from numpy.typing import NDArray

from lmssc.io.errors import InputFileError
from lmssc.io.sources import Source
from lmssc.io.table import NUMBER, TEXT, some


class _Place(NamedTuple):
    """Where a column is: how to load it, its row of each id (None: rows are samples), and whether it is text."""

    load: Callable[[], NDArray]
    rows: dict[str, int] | None
    is_text: bool


class SampleCells:
    r"""What the files say about one sample, column by column.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    ids : ndarray of str
        The samples.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from lmssc.io.options import Options
    >>> from lmssc.io.sources import read_sources
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,size,body\np,1.5,hello there\nq,,good bye\n")
    >>> sources, ids = read_sources([str(path)], Options()), np.array(["p", "q"], dtype=object)
    >>> cells = SampleCells(sources, ids)
    >>> cells.columns, cells.row(1)
    (['size', 'body'], {'body': 'good bye'})
    >>> cells.keep(cells.first_columns(1))
    >>> cells.row(0)
    {'body': 'hello there'}
    """

    def __init__(self, sources: Sequence[Source], ids: NDArray) -> None:
        self._places: dict[str, _Place] = {}
        for source in sources:
            rows = None if source.ids is None else {key: row for row, key in enumerate(source.ids)}
            for name, column in source.table.columns.items():
                hidden = name in (source.id_column, source.label_column)
                if not hidden and not column.fault and column.kind in (NUMBER, TEXT):
                    self._places.setdefault(name, _Place(column.load, rows, column.kind == TEXT))
        self._ids = ids
        self._loaded: dict[str, NDArray] = {}

    def keep(self, names: Iterable[str]) -> None:
        """Load these columns, forget the others, and let go of the files."""
        self._loaded = {name: self._places[name].load() for name in dict.fromkeys(names)}
        self._places = {name: self._places[name]._replace(load=self._loaded[name].copy) for name in self._loaded}

    def first_columns(self, most: int) -> list[str]:
        """The first columns, texts before numbers."""
        return sorted(self._places, key=lambda name: not self._places[name].is_text)[:most]

    @property
    def columns(self) -> list[str]:
        """Names of the columns; of columns with the same name, that of the first file."""
        return list(self._places)

    def is_text(self, name: str) -> bool:
        """Whether a column holds text."""
        return self._places[name].is_text

    def cell(self, name: str, sample: int) -> str | None:
        """The cell of a sample in a column; None if it is blank or the sample is not in that file."""
        place = self._places[name]
        row = sample if place.rows is None else place.rows.get(self._ids[sample])
        if row is None:
            return None
        if name not in self._loaded:
            self._loaded[name] = place.load()
        value = self._loaded[name][row]
        if isinstance(value, str) or value is None:
            return value
        return None if value != value else f"{value:.6g}"

    def row(self, sample: int, most: int | None = None) -> dict[str, str]:
        """The first `most` cells of a sample that are not blank, by column."""
        found: dict[str, str] = {}
        for name in self._places:
            if most is not None and len(found) == most:
                break
            value = self.cell(name, sample)
            if value is not None:
                found[name] = value
        return found


def check_column(cells: SampleCells, name: str, option: str) -> str:
    """Return the name of a column, or raise `InputFileError` if no file has it."""
    if name not in cells.columns:
        raise InputFileError(f"{option}: no file has a column {name!r}; there are {some(cells.columns, 8) or 'none'}")
    return name
