"""Load the paper's four data sets and seven more for development; `load` takes any of them by name."""

import csv
import inspect
import io
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy.io
import scipy.sparse as sp
from sklearn.utils import Bunch

from lmssc._optional import import_optional
from lmssc.data.graph_view import Graph
from lmssc.datasets.catalogue import DATASET_NAMES, FACTS, describe
from lmssc.datasets.digits import load_digits_views
from lmssc.datasets.fetch import DataFileError, fetch
from lmssc.datasets.registry import FILES
from lmssc.io.hdf5 import SafeHDF5
from lmssc.io.unpacking import Unpacked

Loader = TypeVar("Loader", bound=Callable[..., Bunch])
Content = tuple[list[npt.NDArray], npt.NDArray]
"""Views of shape (n_samples, n_features), and the class number of each sample, from 1."""

_SECTIONS = """\
Parameters
----------
download : bool, default=True
    Download the file if it is neither in $LMSSC_DATA nor in the cache; if False, a missing file is an error.

Returns
-------
Bunch
    ``views`` : {views};
    ``view_names`` : list of str;
    ``target`` : integer array of shape ({n_samples},), {target}{order};
    ``target_names`` : list of str, {target_names};
    ``DESCR`` : origin, licence and sizes.

Raises
------
DataFileError
    An OSError: the file is missing and cannot be downloaded, or it has the wrong content.

"""


def _describe_bunch(*, views: str, target: str, target_names: str) -> Callable[[Loader], Loader]:
    """Insert the sections that all loaders share into a docstring, before its examples."""

    def describe_loader(loader: Loader) -> Loader:
        facts = FACTS[loader.__name__.removeprefix("load_")]
        order = "; the rows are sorted by class" if facts.by_class else ""
        sections = _SECTIONS.format(
            views=views, target=target, target_names=target_names, n_samples=facts.n_samples, order=order
        )
        summary, heading, examples = inspect.cleandoc(loader.__doc__ or "").partition("Examples\n")
        loader.__doc__ = summary + sections + heading + examples
        return loader

    return describe_loader


@_describe_bunch(
    views="list of four CSR arrays of shape (145, n_features), one for each segment",
    target="0 or 1",
    target_names='``"1"`` and ``"2"`` as in the file',
)
def load_bbc(*, download: bool = True) -> Bunch:
    """Load BBC: 145 news articles as word counts of four segments, in two classes of 134 and 11.

    Always answering the larger class is right for 92.4 % of the samples: look at balanced accuracy too.

    Examples
    --------
    >>> from lmssc.datasets import load_bbc
    >>> data = load_bbc()
    >>> [view.shape for view in data.views]
    [(145, 4659), (145, 4633), (145, 4665), (145, 4684)]
    """
    return _load("bbc", _read_bbc, download)


@_describe_bunch(
    views="list of three float arrays of shape (208, 20)",
    target="0 for rock and 1 for mine",
    target_names='``"rock"`` and ``"mine"``',
)
def load_sonar(*, download: bool = True) -> Bunch:
    """Load Sonar: 208 sonar signals off rocks and mines, 60 frequency bands in three views of 20.

    Examples
    --------
    >>> from lmssc.datasets import load_sonar
    >>> data = load_sonar()
    >>> data.view_names, [view.shape for view in data.views]
    (['low_bands', 'middle_bands', 'high_bands'], [(208, 20), (208, 20), (208, 20)])
    """
    return _load("sonar", _read_sonar, download)


@_describe_bunch(
    views="list of float arrays of shape (2000, n_features), in the paper's order",
    target="the digit",
    target_names='``"0"`` to ``"9"``',
)
def load_handwritten(*, download: bool = True) -> Bunch:
    """Load HW: 2000 handwritten digits in six sets of features, "Multiple Features" of the UCI repository.

    Examples
    --------
    >>> from lmssc.datasets import load_handwritten
    >>> data = load_handwritten()
    >>> for name, view in zip(data.view_names, data.views):
    ...     print(name, view.shape)
    profiles (2000, 216)
    fourier (2000, 76)
    karhunen_loeve (2000, 64)
    morphology (2000, 6)
    pixels (2000, 240)
    zernike (2000, 47)
    """
    return _load("handwritten", _read_cells, download)


@_describe_bunch(
    views="list of five CSR arrays of shape (1200, 2000), one for each language",
    target="0 to 5",
    target_names='``"1"`` to ``"6"`` as in the file',
)
def load_reuters(*, download: bool = True) -> Bunch:
    """Load Reuters: 1200 news documents in five languages, tf-idf weights of 2000 words per language, six classes.

    The views are in the order in which the source of the file lists the languages.

    Examples
    --------
    >>> from lmssc.datasets import load_reuters
    >>> data = load_reuters()
    >>> data.views[0].shape, data.views[0].nnz
    ((1200, 2000), 42018)
    """
    return _load("reuters", _read_cells, download)


@_describe_bunch(
    views="list of float arrays of shape (210, n_features)",
    target="0 to 6",
    target_names='``"1"`` to ``"7"`` as in the file',
)
def load_msrc(*, download: bool = True) -> Bunch:
    """Load MSRC-v5: 210 images in five sets of features, seven classes of 30. For development.

    Examples
    --------
    >>> from lmssc.datasets import load_msrc
    >>> data = load_msrc()
    >>> dict(zip(data.view_names, (view.shape[1] for view in data.views)))
    {'colour_moments': 24, 'hog': 576, 'gist': 512, 'lbp': 256, 'centrist': 254}
    """
    return _load("msrc", _read_cells, download)


@_describe_bunch(
    views="list of two CSR arrays of shape (544, n_features), one for each segment",
    target="0 to 4",
    target_names='``"1"`` to ``"5"`` as in the file',
)
def load_bbcsport(*, download: bool = True) -> Bunch:
    """Load BBCSport: 544 sports articles as term weights of two segments, five classes of 61 to 193. For development.

    Examples
    --------
    >>> from lmssc.datasets import load_bbcsport
    >>> data = load_bbcsport()
    >>> [view.shape for view in data.views]
    [(544, 3183), (544, 3203)]
    """
    return _load("bbcsport", _read_cells, download)


@_describe_bunch(
    views="list of three float arrays of shape (1600, 64)",
    target="0 to 99",
    target_names='``"1"`` to ``"100"`` as in the file',
)
def load_leaves(*, download: bool = True) -> Bunch:
    """Load 100Leaves: 1600 leaves by margin, shape and texture, one hundred classes of 16. For development.

    Examples
    --------
    >>> from lmssc.datasets import load_leaves
    >>> data = load_leaves()
    >>> data.view_names, len(data.target_names)
    (['margin', 'shape', 'texture'], 100)
    """
    return _load("leaves", _read_cells, download)


@_describe_bunch(
    views="list of a CSR array of shape (2708, 1433) and a `Graph` of shape (2708, 2708)",
    target="0 to 6",
    target_names='``"1"`` to ``"7"`` as in the file',
)
def load_cora(*, download: bool = True) -> Bunch:
    """Load Cora: 2708 papers by their words and their citations, seven classes of 180 to 818. For development.

    Examples
    --------
    >>> from lmssc.datasets import load_cora
    >>> data = load_cora()
    >>> dict(zip(data.view_names, data.views))["citations"]
    Graph(shape=(2708, 2708))
    """
    return _load("cora", _read_cells, download)


@_describe_bunch(
    views="list of a CSR array of shape (3025, 1870) and four `Graph` of shape (3025, 3025)",
    target="0 to 2",
    target_names='``"1"`` to ``"3"`` as in the file',
)
def load_acm(*, download: bool = True) -> Bunch:
    """Load ACM: 3025 papers by their words and four kinds of links, three classes of 965 to 1061. For development.

    Examples
    --------
    >>> from lmssc.datasets import load_acm
    >>> data = load_acm()
    >>> data.view_names, data.views[1]
    (['words', 'graph1', 'graph2', 'graph3', 'graph4'], Graph(shape=(3025, 3025)))
    """
    return _load("acm", _read_cells, download)


@_describe_bunch(
    views="list of three CSR arrays of shape (169, n_features), one for each source",
    target="0 to 5",
    target_names='``"1"`` to ``"6"`` as in the file',
)
def load_3sources(*, download: bool = True) -> Bunch:
    """Load 3Sources: 169 news stories as word counts of three sources, six classes of 11 to 56. For development.

    Examples
    --------
    >>> from lmssc.datasets import load_3sources
    >>> data = load_3sources()
    >>> [view.shape for view in data.views]
    [(169, 3560), (169, 3631), (169, 3068)]
    """
    return _load("3sources", _read_cells, download)


@_describe_bunch(
    views="list of two CSR arrays of shape (617, n_features)",
    target="0 to 16",
    target_names='``"1"`` to ``"17"`` as in the file',
)
def load_movies(*, download: bool = True) -> Bunch:
    """Load Movies: 617 films by their keywords and their actors, 17 classes of 7 to 46. For development.

    Examples
    --------
    >>> from lmssc.datasets import load_movies
    >>> data = load_movies()
    >>> [view.shape for view in data.views], len(data.target_names)
    ([(617, 1878), (617, 1398)], 17)
    """
    return _load("movies", _read_cells, download)


_LOADERS: dict[str, Callable[..., Bunch]] = {
    "bbc": load_bbc,
    "sonar": load_sonar,
    "handwritten": load_handwritten,
    "reuters": load_reuters,
    "msrc": load_msrc,
    "bbcsport": load_bbcsport,
    "leaves": load_leaves,
    "cora": load_cora,
    "acm": load_acm,
    "3sources": load_3sources,
    "movies": load_movies,
}


def load(name: str, *, download: bool = True) -> Bunch:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        "bbc", "sonar", "handwritten", "reuters", "msrc", "bbcsport", "leaves", "cora", "acm", "3sources", "movies"
        or "digits".
    download : bool, default=True
        Download the file if it is neither in $LMSSC_DATA nor in the cache; if False, a missing file is an error. The
        digits come with scikit-learn and need no download.

    Returns
    -------
    Bunch
        ``views``, ``view_names``, ``target``, ``target_names``, ``DESCR``, as the loader of that data set returns them.

    Raises
    ------
    ValueError
        If there is no data set of that name.
    DataFileError
        An OSError: the file is missing and cannot be downloaded, or it has the wrong content.

    Examples
    --------
    >>> from lmssc.datasets import load
    >>> len(load("digits").target)
    1797
    """
    if name == "digits":
        return load_digits_views()
    if name not in _LOADERS:
        raise ValueError(f"name must be one of {', '.join(DATASET_NAMES)}, got {name!r}")
    return _LOADERS[name](download=download)


def _load(name: str, read: Callable[[bytes], Content], download: bool) -> Bunch:
    """Read the file of a data set, compare its sizes with those of the catalogue, and make the Bunch."""
    facts = FACTS[name]
    path = fetch(FILES[name], download=download)
    views, numbers = read(path.read_bytes())
    views = [views[cell] for cell in facts.cells or range(len(views))]
    expected = [(facts.n_samples, width) for width in facts.views.values()]
    shapes = [view.shape for view in views]
    if shapes != expected:
        raise DataFileError(f"{path} has views of shapes {shapes} instead of {expected}")
    target = numbers.astype(np.intp) - 1
    sizes = list(facts.classes.values())
    in_order = target if facts.by_class else np.sort(target)
    if not np.array_equal(in_order, np.repeat(np.arange(len(sizes)), sizes)):
        after = ", one after the other" if facts.by_class else ""
        raise DataFileError(f"{path} does not have classes 1 to {len(sizes)} of sizes {sizes}{after}")
    arrays = [sp.csr_array(view, dtype=np.float64) if facts.sparse else view.astype(np.float64) for view in views]
    return Bunch(
        views=[Graph(view) if name in facts.graphs else view for name, view in zip(facts.views, arrays, strict=True)],
        view_names=list(facts.views),
        target=target,
        target_names=list(facts.classes),
        DESCR=describe(name),
    )


def _read_cells(content: bytes) -> Content:
    """Read a MATLAB file with a cell X of views, samples × features, and labels y from 1."""
    matlab = scipy.io.loadmat(io.BytesIO(content))
    return list(matlab["X"].ravel()), matlab["y"].ravel()


def _read_bbc(content: bytes) -> Content:
    """Read a MATLAB 7.3 file, which is HDF5: a cell of views, there features × samples, and labels from 1."""
    h5py = import_optional("h5py", purpose="the BBC data", extra="data")
    with h5py.File(io.BytesIO(content), "r") as file:
        inside = SafeHDF5(h5py, file, Unpacked("the BBC data", len(content)))
        references = inside.values(inside.item(file, "data")).ravel()
        views = [inside.values(inside.referred(reference, "data")).T for reference in references]
        return views, inside.values(inside.item(file, "labels")).ravel()


def _read_sonar(content: bytes) -> Content:
    """Read rows of 60 numbers and R or M."""
    rows = list(csv.reader(io.StringIO(content.decode("ascii"))))
    numbers = np.array([row[:-1] for row in rows], dtype=np.float64)
    return np.hsplit(numbers, [20, 40]), np.array(["RM".index(row[-1]) + 1 for row in rows])
