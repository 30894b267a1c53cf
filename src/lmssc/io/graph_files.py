"""Files of links between the samples: lines of two ids and a weight, or a square matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.graph_view import Graph
from lmssc.io.errors import InputFileError
from lmssc.io.formats import read_table
from lmssc.io.options import Options
from lmssc.io.sources import split_argument
from lmssc.io.table import Table, counted, some, stem

# Names of the columns of a file of links; otherwise the first two or three columns are taken.
SOURCE, TARGET, WEIGHT = "source", "target", "weight"


@dataclass(frozen=True)
class Ids:
    """Ids of samples, and how they came about.

    Attributes
    ----------
    names : ndarray of str
        Id of each sample, in order.
    one_order : bool
        Whether a matrix without ids can be joined by position.
    """

    names: NDArray
    one_order: bool

    def places(self) -> dict[str, int]:
        """Number of each sample by its id."""
        return {str(name): place for place, name in enumerate(self.names)}


def read_graph_files(
    arguments: Sequence[str], ids: Ids, options: Options, names: Sequence[str]
) -> tuple[dict[str, Graph], list[str]]:
    r"""Read files of links between samples.

    Parameters
    ----------
    arguments : sequence of str
        Files, as ``FILE`` or ``NAME=FILE``.
    ids : Ids
        The samples.
    options : Options
        What the user said about the files.
    names : sequence of str
        Names of the views, which no graph may have.

    Returns
    -------
    graphs : dict of str to Graph
    lines : list of str
        What was understood, one line for each.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "cites.csv"
    >>> _ = path.write_text("source,target,weight\np,q,2\nq,r,1\n")
    >>> samples = Ids(np.array(["p", "q", "r"], dtype=object), one_order=True)
    >>> graphs, lines = read_graph_files([str(path)], samples, Options(), [])
    >>> graphs["cites"].affinity.toarray()
    array([[0., 2., 0.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    graphs, lines = {}, []
    for name, table in _tables(arguments, options, names):
        n_samples = len(ids.names)
        if table.blocks:
            links = _matrix(table, n_samples, n_samples)
            if not ids.one_order:
                raise InputFileError(
                    f"{table.path}: a matrix has no ids, and the files of the views are not in one order, so its rows "
                    "cannot be assigned to samples; write links as lines of two ids"
                )
        else:
            places = ids.places()
            source, target, weight = _edges(table)
            _refuse_unknown(table, (source, target), [places])
            pairs = [np.array([places[one] for one in column], dtype=np.intp) for column in (source, target)]
            links = sparse.csr_array(sparse.coo_array((weight, tuple(pairs)), shape=(n_samples, n_samples)))
        links, n_own = _without_own(links)
        own = f"; {counted(n_own, 'link')} of samples to themselves left out" if n_own else ""
        graphs[name] = Graph(links, ids=ids.names.tolist())
        n_without = int(((links + links.T).sum(axis=1) == 0).sum())
        without = f"; {counted(n_without, 'sample')} without any" if n_without else ""
        lines.append(f"Links {name!r}: {counted(links.nnz, 'link')}, {table.path}{_say_weights(table)}{own}{without}.")
    return graphs, lines


def read_new_links(
    arguments: Sequence[str], ids: Ids, fitted: Mapping[str, Sequence[str]], options: Options
) -> tuple[dict[str, Graph], list[str]]:
    """Read files of links between new samples and those of a model.

    Parameters
    ----------
    arguments : sequence of str
        Files, as ``FILE`` or ``NAME=FILE``.
    ids : Ids
        The new samples.
    fitted : mapping of str to sequence of str
        Ids of the samples of the model, by the name of the graph.
    options : Options
        What the user said about the files.

    Returns
    -------
    graphs : dict of str to Graph
    lines : list of str
    """
    graphs, lines = {}, []
    for name, table in _tables(arguments, options, []):
        if name not in fitted:
            known = some(map(repr, fitted)) or "none"
            hint = f"; name it with --graph {next(iter(fitted))}={table.path}" if fitted else ""
            raise InputFileError(f"{table.path}: the model has no graph {name!r}; its graphs are: {known}{hint}")
        known_ids = {one: place for place, one in enumerate(fitted[name])}
        if table.blocks:
            links = _matrix(table, len(ids.names), len(known_ids))
            lines.append(f"Links {name!r}: {counted(links.nnz, 'link')}, {table.path}.")
        else:
            places = ids.places()
            source, target, weight = _edges(table)
            _refuse_unknown(table, (source, target), [places, known_ids])
            rows, columns, kept = [], [], []
            n_ignored = 0
            for one, other, number in zip(source, target, weight, strict=True):
                if one in places and other in known_ids:
                    pair = (places[one], known_ids[other])
                elif other in places and one in known_ids and other not in known_ids:
                    pair = (places[other], known_ids[one])
                else:
                    n_ignored += 1
                    continue
                rows.append(pair[0])
                columns.append(pair[1])
                kept.append(number)
            shape = (len(ids.names), len(known_ids))
            links = sparse.csr_array(sparse.coo_array((np.array(kept, dtype=float), (rows, columns)), shape=shape))
            ignored = f"; {counted(n_ignored, 'link')} not between a new and a known sample" if n_ignored else ""
            lines.append(f"Links {name!r}: {counted(links.nnz, 'link')} to known samples, {table.path}{ignored}.")
        graphs[name] = Graph(links)
    return graphs, lines


def _tables(arguments: Sequence[str], options: Options, names: Sequence[str]) -> list[tuple[str, Table]]:
    """Name and content of each file."""
    found: dict[str, Table] = {}
    for argument in arguments:
        name, path = split_argument(argument)
        name = name or stem(path)
        if name in found or name in names:
            raise InputFileError(f"{path}: there are two views of the name {name!r}; give it another: NAME={path}")
        found[name] = read_table(path, delimiter=options.delimiter, keep_text=lambda _: True)
    return list(found.items())


def _matrix(table: Table, n_rows: int, n_columns: int) -> sparse.csr_array:
    if len(table.blocks) > 1:
        raise InputFileError(f"{table.path} has several matrices, {some(table.blocks)}; a file of links has one")
    (links,) = table.blocks.values()
    if links.shape != (n_rows, n_columns):
        raise InputFileError(
            f"{table.path} is {links.shape[0]} x {links.shape[1]}; links need a row for each of the {n_rows:,} samples "
            f"and a column for each of the {n_columns:,} that they link to"
        )
    links = sparse.csr_array(links, dtype=np.float64)
    if not np.isfinite(links.data).all() or (links.data < 0).any():
        raise InputFileError(f"{table.path}: weights must be finite and not negative; 0 is no link")
    return links


def _edges(table: Table) -> tuple[NDArray, NDArray, NDArray]:
    """Ids and weights of the links."""
    columns = list(table.columns)
    if len(columns) < 2:
        raise InputFileError(
            f"{table.path} needs two columns of ids, source and target (and a weight, if there is one)"
        )
    first, second = (SOURCE, TARGET) if {SOURCE, TARGET} <= set(columns) else columns[:2]
    third = _weight_column(table)
    ends = []
    for name in (first, second):
        ids = table.texts(name)
        blank = next((row for row, one in enumerate(ids) if one is None), None)
        if blank is not None:
            raise InputFileError(f"{table.rows.place(blank)}: no id in the column {name!r}")
        ends.append(ids)
    weights = np.ones(len(ends[0])) if third is None else _weights(table, third)
    return ends[0], ends[1], weights


def _without_own(links: sparse.csr_array) -> tuple[sparse.csr_array, int]:
    """The links between different samples, and the number of links of samples to themselves."""
    entries = links.tocoo()
    there, own = entries.data != 0, entries.row == entries.col
    kept = there & ~own
    between = (entries.data[kept], (entries.row[kept], entries.col[kept]))
    return sparse.csr_array(between, shape=links.shape), int((there & own).sum())


def _weight_column(table: Table) -> str | None:
    """The column of weights: "weight", or the third of three that is not an end of the links."""
    columns = list(table.columns)
    ends = {SOURCE, TARGET} if {SOURCE, TARGET} <= set(columns) else set(columns[:2])
    third = WEIGHT if WEIGHT in columns else columns[2] if len(columns) == 3 else None
    return None if third in ends else third


def _say_weights(table: Table) -> str:
    """Which column has the weights, if its name does not say it."""
    column = None if table.blocks else _weight_column(table)
    return "" if column in (None, WEIGHT) else f", weights in the column {column!r}"


def _weights(table: Table, column: str) -> NDArray:
    weights = np.empty(table.rows.count)
    for row, text in enumerate(table.texts(column)):
        try:
            weights[row] = float("nan" if text is None else text)
        except ValueError:
            weights[row] = np.nan
        if not (0 <= weights[row] < np.inf):
            raise InputFileError(
                f"{table.rows.place(row)}, column {column!r}: {text!r} is not a weight, a number that is not negative"
            )
    return weights


def _refuse_unknown(table: Table, ends: Sequence[NDArray], known: Sequence[Mapping[str, int]]) -> None:
    for column in ends:
        for row, one in enumerate(column):
            if not any(one in places for places in known):
                raise InputFileError(f"{table.rows.place(row)}: no sample has the id {one!r}")
