"""Data that `lmssc compare` can be given by name or as files."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.graph_view import Graph
from lmssc.datasets import load, make_multiview
from lmssc.datasets.catalogue import DATASET_NAMES
from lmssc.io.graph_files import Ids, read_graph_files
from lmssc.io.labelled_files import describe, read_labelled_files
from lmssc.io.options import Options


def load_for_comparison(
    data: str | Sequence[str],
    labels: Sequence[str] = (),
    options: Options | None = None,
    unlabelled: str | None = None,
    graphs: Sequence[str] = (),
) -> tuple[dict[str, Any], NDArray, list[str]]:
    """Views and labels of a named data set, of "synthetic", or of files as `lmssc classify` reads them.

    Parameters
    ----------
    data : str or list of str
        "synthetic", a name that :func:`lmssc.datasets.load` takes, or files of views. Of an .npz file with `y`, that
        array is the labels.
    labels : sequence of str
        Files of labels.
    options : Options, optional
        What the user said about the files.
    unlabelled : str, optional
        Text that marks an unlabelled sample.
    graphs : sequence of str
        Files of links, as ``FILE`` or ``NAME=FILE``. The samples of a named data set, or of an .npz file, are numbered
        from 1.

    Returns
    -------
    views : dict of ndarray, CSR array or Graph
    y : ndarray
    lines : list of str
        What was understood of the files, to print.

    Examples
    --------
    >>> views, y, lines = load_for_comparison("synthetic")
    >>> len(views), len(y)
    (3, 1000)
    """
    paths = [data] if isinstance(data, str) else list(data)
    if len(paths) == 1 and (paths[0] in DATASET_NAMES or paths[0] == "synthetic"):
        bunch = make_multiview(1000, random_state=0) if paths[0] == "synthetic" else load(paths[0])
        return _with_links(dict(zip(bunch.view_names, bunch.views, strict=True)), bunch.target, graphs)
    options = Options() if options is None else options
    if len(paths) == 1 and paths[0].endswith(".npz") and not labels and options.label_column is None:
        return _with_links(*_load_npz(paths[0]), graphs)
    if len(paths) == 1 and "." not in Path(paths[0]).name and not Path(paths[0]).exists():
        raise ValueError(f"DATA must be {', '.join(DATASET_NAMES)}, synthetic, or files of views, got {paths[0]!r}")
    found = read_labelled_files(paths, labels, options, unlabelled, graphs)
    known = found.labels.known
    views = {name: _complete(view, options.impute) for name, view in found.views.items()}
    views = {
        name: Graph(view.affinity[known][:, known]) if isinstance(view, Graph) else view[known]
        for name, view in views.items()
    }
    lines = describe(found)
    if not known.all():
        lines.append(f"Compared on the {int(known.sum()):,} samples with a label.")
    return views, found.labels.y[known], lines


def _with_links(views: dict[str, Any], y: NDArray, graphs: Sequence[str]) -> tuple[dict[str, Any], NDArray, list[str]]:
    """Views with the links of files added to them; samples are numbered from 1."""
    numbers = np.array([str(number) for number in range(1, len(y) + 1)], dtype=object)
    links, lines = read_graph_files(graphs, Ids(numbers, one_order=True), Options(), list(views))
    return views | links, y, lines


def _complete(view: Any, impute: str | None) -> Any:
    """Fill in blank cells, which not every method takes; a row of blanks means that the sample lacks the view."""
    if impute is None or isinstance(view, Graph) or sparse.issparse(view):
        return view
    blank = np.isnan(view)
    blank &= ~blank.all(axis=1, keepdims=True)
    if not blank.any():
        return view
    fills = (np.nanmedian if impute == "median" else np.nanmean)(view, axis=0)
    return np.where(blank, fills, view)


def _load_npz(path: str) -> tuple[dict[str, Any], NDArray]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, TypeError) as error:
        raise ValueError(f"{path} is not an .npz file of plain arrays: {error}") from error
    if "y" not in arrays:
        raise ValueError(f"{path} has no array 'y' with the labels; it has {sorted(arrays)}")
    y = arrays.pop("y")
    views = {name: array for name, array in arrays.items() if array.ndim == 2}
    if not views:
        raise ValueError(f"{path} has no 2-D array; every 2-D array in it is a view")
    return views, y
