"""Data that `lmssc compare` can be given by name or as a file."""

import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.data.graph_view import Graph
from lmssc.datasets import load, make_multiview
from lmssc.datasets.catalogue import DATASET_NAMES
from lmssc.io.graph_files import Ids, read_graph_files
from lmssc.io.options import Options


def load_for_comparison(data: str, graphs: Sequence[str] = ()) -> tuple[dict[str, Any], NDArray]:
    """Views and labels of a named data set, of "synthetic", or of an .npz file with 2-D arrays and `y`.

    Parameters
    ----------
    data : str
        "synthetic", a name that :func:`lmssc.datasets.load` takes, or a path.
    graphs : sequence of str
        Files of links between the samples, which are numbered from 1, as ``FILE`` or ``NAME=FILE``.

    Returns
    -------
    views : dict of ndarray, CSR array or Graph
    y : ndarray

    Examples
    --------
    >>> views, y = load_for_comparison("synthetic")
    >>> len(views), len(y)
    (3, 1000)
    """
    views, y = _load(data)
    numbers = np.array([str(number) for number in range(1, len(y) + 1)], dtype=object)
    links, _ = read_graph_files(graphs, Ids(numbers, one_order=True), Options(), list(views))
    return {**views, **{name: Graph(graph.affinity) for name, graph in links.items()}}, y


def _load(data: str) -> tuple[dict[str, Any], NDArray]:
    if data in DATASET_NAMES or data == "synthetic":
        bunch = make_multiview(1000, random_state=0) if data == "synthetic" else load(data)
        return dict(zip(bunch.view_names, bunch.views, strict=True)), bunch.target
    if not data.endswith(".npz"):
        raise ValueError(
            f"DATA must be {', '.join(DATASET_NAMES)}, synthetic, or a file that ends in .npz, got {data!r}"
        )
    try:
        with open(data, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, TypeError) as error:
        raise ValueError(f"{data} is not an .npz file of plain arrays: {error}") from error
    if "y" not in arrays:
        raise ValueError(f"{data} has no array 'y' with the labels; it has {sorted(arrays)}")
    y = arrays.pop("y")
    views = {name: array for name, array in arrays.items() if array.ndim == 2}
    if not views:
        raise ValueError(f"{data} has no 2-D array; every 2-D array in it is a view")
    return views, y
