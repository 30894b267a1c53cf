"""Data that `lmssc compare` can be given by name or as a file."""

import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.datasets import load, make_multiview
from lmssc.datasets.catalogue import DATASET_NAMES


def load_for_comparison(data: str) -> tuple[dict[str, Any], NDArray]:
    """Views and labels of a named data set, of "synthetic", or of an .npz file with 2-D arrays and `y`.

    Parameters
    ----------
    data : str
        "synthetic", a name that :func:`lmssc.datasets.load` takes, or a path.

    Returns
    -------
    views : dict of ndarray or CSR array
    y : ndarray

    Examples
    --------
    >>> views, y = load_for_comparison("synthetic")
    >>> len(views), len(y)
    (3, 1000)
    """
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
