"""Files of samples that a person will label: their views, the labels so far, and the cells of each sample to show."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.io.labelled_files import SamplesInFiles, join_files
from lmssc.io.options import Options
from lmssc.io.sample_cells import SampleCells


@dataclass(frozen=True)
class FilesToLabel(SamplesInFiles):
    """Samples from files, for a person to label.

    Attributes
    ----------
    labels : ndarray of str of shape (n,)
        Labels that the files have already; None for unlabelled samples.
    cells : SampleCells
        What the files say about each sample.
    """

    labels: NDArray
    cells: SampleCells


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
    arguments, options, unlabelled, graphs
        As for `read_labelled_files`.
    labels : sequence of str
        Files of labels; without any, a view may have a label column.

    Returns
    -------
    FilesToLabel

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
    sources, options, joined, notes = files.sources, files.options, files.joined, files.notes
    if labels or options.label_column is not None or any(source.label_column is not None for source in sources):
        known, _ = files.find_label_texts(unlabelled)
    else:
        known = np.full(len(joined.ids), None, dtype=object)
    links, lines = files.read_graphs(graphs)
    cells = SampleCells(sources, joined.ids)
    return FilesToLabel(joined, files.recipes, files.facts, [*lines, *notes], links, known, cells)
