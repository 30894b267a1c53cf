"""Files of samples that a person will label: their views, the labels so far, and the cells of each sample to show."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmssc.data.graph_view import Graph
from lmssc.io.errors import InputFileError
from lmssc.io.join import Joined
from lmssc.io.label_files import find_label_texts
from lmssc.io.labelled_files import ViewFacts, choose_scaling, join_files
from lmssc.io.options import Options
from lmssc.io.sources import Source
from lmssc.io.table import NUMBER, TEXT, some


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
    >>> from lmssc.io.sources import read_sources
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,size,body\np,1.5,hello there\nq,,good bye\n")
    >>> cells = SampleCells(read_sources([str(path)], Options()), np.array(["p", "q"], dtype=object))
    >>> cells.columns, cells.row(1)
    (['size', 'body'], {'body': 'good bye'})
    """

    def __init__(self, sources: Sequence[Source], ids: NDArray) -> None:
        self._places: dict[str, tuple[Source, dict[str, int] | None]] = {}
        for source in sources:
            rows = None if source.ids is None else {key: row for row, key in enumerate(source.ids)}
            for name, column in source.table.columns.items():
                hidden = name in (source.id_column, source.label_column)
                if not hidden and not column.fault and column.kind in (NUMBER, TEXT):
                    self._places.setdefault(name, (source, rows))
        self._ids = ids
        self._loaded: dict[str, NDArray] = {}

    @property
    def columns(self) -> list[str]:
        """Names of the columns; of columns with the same name, that of the first file."""
        return list(self._places)

    def is_text(self, name: str) -> bool:
        """Whether a column holds text."""
        source, _ = self._places[name]
        return source.table.columns[name].kind == TEXT

    def cell(self, name: str, sample: int) -> str | None:
        """The cell of a sample in a column; None if it is blank or the sample is not in that file."""
        source, rows = self._places[name]
        row = sample if rows is None else rows.get(self._ids[sample])
        if row is None:
            return None
        if name not in self._loaded:
            self._loaded[name] = source.table.columns[name].load()
        value = self._loaded[name][row]
        if isinstance(value, str) or value is None:
            return value
        return None if value != value else f"{value:.6g}"

    def row(self, sample: int, most: int | None = None) -> dict[str, str]:
        """The first `most` cells of a sample that are not blank, by column."""
        found: dict[str, str] = {}
        for name in self._places:
            value = self.cell(name, sample) if most is None or len(found) < most else None
            if value is not None:
                found[name] = value
        return found


@dataclass(frozen=True)
class FilesToLabel:
    """Samples from files, for a person to label.

    Attributes
    ----------
    joined : Joined
        The samples and their views.
    labels : ndarray of str of shape (n,)
        Labels that the files have already; None for unlabelled samples.
    scaling : str or dict
        The scaling for `LMSSC`.
    cells : SampleCells
        What the files say about each sample.
    facts : list of ViewFacts
        For each view, its line of the summary.
    notes : list of str
        What was left out or assumed.
    graphs : dict of str to Graph
        Links between the samples.
    """

    joined: Joined
    labels: NDArray
    scaling: str | dict[str, str]
    cells: SampleCells
    facts: list[ViewFacts]
    notes: list[str] = field(default_factory=list)
    graphs: dict[str, Graph] = field(default_factory=dict)


def read_files_to_label(
    arguments: Sequence[str],
    labels: Sequence[str],
    options: Options,
    unlabelled: str | None = None,
    graphs: Sequence[str] = (),
) -> FilesToLabel:
    r"""Read views and the labels so far, of which there may be none, and join their rows.

    Parameters
    ----------
    arguments : sequence of str
        Files of views, as ``FILE`` or ``NAME=FILE``.
    labels : sequence of str
        Files of labels; without any, a view may have a label column.
    options : Options
        What the user said about the files.
    unlabelled : str, optional
        Text that marks an unlabelled sample.
    graphs : sequence of str
        Files of links, as ``FILE`` or ``NAME=FILE``.

    Returns
    -------
    FilesToLabel

    Raises
    ------
    InputFileError
        If the files do not fit together; the message says where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,x,y\np,1,2\nq,3,4\nr,5,7\n")
    >>> read_files_to_label([str(path)], [], Options()).labels
    array([None, None, None], dtype=object)
    """
    files = join_files(arguments, labels, options)
    sources, options, _, joined, notes = files
    if labels or options.label_column is not None or any(source.label_column is not None for source in sources):
        known, _ = find_label_texts(labels, sources, joined, options, unlabelled, notes)
    else:
        known = np.full(len(joined.ids), None, dtype=object)
    links, lines = files.read_graphs(graphs)
    cells = SampleCells(sources, joined.ids)
    return FilesToLabel(joined, known, choose_scaling(files.recipes), cells, files.facts, [*lines, *notes], links)


def check_column(cells: SampleCells, name: str, option: str) -> str:
    """Return the name of a column, or raise `InputFileError` if no file has it."""
    if name not in cells.columns:
        raise InputFileError(f"{option}: no file has a column {name!r}; there are {some(cells.columns, 8) or 'none'}")
    return name
