"""Reading of graphs: what a user passes as `lmssc.Graph` becomes checked links."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.frames import frame_columns, is_frame
from lmssc.data.graph_view import Graph, GraphView
from lmssc.data.row_index import index_of, is_default
from lmssc.data.validation import list_some, name_parts, read_block
from lmssc.data.warn_caller import warn_caller
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.matrices import Matrix

# A square view of fewer samples than this gets no hint: too little to tell links from features.
MIN_SAMPLES_FOR_HINT = 20
# A view that is not symmetric looks like links if its diagonal is empty although so many entries would be there by
# chance.
MIN_CHANCE_ON_DIAGONAL = 10
# Rows of a dense view that are compared with its columns at a time.
BATCH_ROWS = 128


def split_graphs(X: Any) -> tuple[dict[str, Any], dict[str, Graph]]:
    """The views of features and the graphs of a list or dict of views, by name.

    Examples
    --------
    >>> split_graphs({"text": [[1.0]], "cites": Graph([[0]])})
    ({'text': [[1.0]]}, {'cites': Graph(shape=(1, 1))})
    """
    parts = name_parts(X)
    graphs = {name: part for name, part in parts.items() if isinstance(part, Graph)}
    if graphs and len(graphs) == len(parts):
        raise ValueError(
            f"X has only graphs ({', '.join(map(repr, graphs))}): at least one view of features is needed, such as the "
            "rows of an adjacency, which say whom a sample is linked to"
        )
    return {name: part for name, part in parts.items() if name not in graphs}, graphs


def read_graphs(graphs: Mapping[str, Graph], n_samples: int) -> list[GraphView]:
    """Check the graphs of `fit`: square, one row and one column per sample, finite, not negative.

    Parameters
    ----------
    graphs : mapping of str to Graph
        The graphs by name.
    n_samples : int
        Number of samples of the other views.

    Returns
    -------
    list of GraphView

    Examples
    --------
    >>> (view,) = read_graphs({"cites": Graph([[1, 2], [0, 0]])}, 2)
    >>> view.links.toarray()  # a link of a sample to itself says nothing
    array([[0., 2.],
           [0., 0.]])
    >>> read_graphs({"cites": Graph([[1, 2]])}, 2)
    Traceback (most recent call last):
        ...
    ValueError: graph 'cites' has the shape (1, 2), but there are 2 samples: it needs a row and a column for each
    """
    views = []
    for name, graph in graphs.items():
        needs = f"there are {n_samples} samples: it needs a row and a column for each"
        links = _read_links(graph, name, (n_samples, n_samples), needs)
        columns = _checked_names(graph, name, n_samples)
        index = index_of(graph.affinity)
        if columns is not None and index is not None and not is_default(index):
            place = _places(list(map(str, index)), columns, f"graph {name!r}: the index and the columns")
            links, columns = links[:, place].tocsr(), [columns[column] for column in place]
        views.append(GraphView(name, _without_loops(links), columns))
    return views


def read_new_graphs(
    graphs: Mapping[str, Graph], n_new: int, n_fitted: int, columns: Mapping[str, list[str]]
) -> list[GraphView]:
    """Check the links of new samples to those of `fit`.

    Parameters
    ----------
    graphs : mapping of str to Graph
        The graphs by name.
    n_new, n_fitted : int
        Number of new samples and of samples of `fit`.
    columns : mapping of str to list of str
        Names of the samples in the graphs of `fit` that came as data frames.

    Returns
    -------
    list of GraphView

    Examples
    --------
    >>> read_new_graphs({"cites": Graph([[0, 2, 0]])}, 1, 3, {})[0].links.toarray()
    array([[0., 2., 0.]])
    """
    needs = f"it needs a row for each of the {n_new} new samples and a column for each of the {n_fitted} samples of fit"
    views = []
    for name, graph in graphs.items():
        links = _read_links(graph, name, (n_new, n_fitted), needs)
        own, fitted = _checked_names(graph, name, n_fitted), columns.get(name)
        if own is not None and fitted is not None and own != fitted:
            links = links[:, _places(fitted, own, f"graph {name!r}: the samples of fit and the columns")].tocsr()
        views.append(GraphView(name, links))
    return views


def _read_links(graph: Graph, name: str, shape: tuple[int, int], needs: str) -> sparse.csr_array:
    """The affinities as a CSR array of positive numbers; the error for another shape ends with `needs`."""
    data = graph.affinity
    if isinstance(data, Graph):
        raise TypeError(f"graph {name!r} is a Graph of a Graph; pass its affinity")
    if hasattr(data, "nodes") and hasattr(data, "edges"):
        raise TypeError(
            f"graph {name!r} is a {type(data).__name__} object; pass its adjacency in the order of the samples, such "
            "as networkx.to_scipy_sparse_array(G, nodelist=ids)"
        )
    links = sparse.csr_array(read_block(data, f"graph {name!r}"))
    _check_weights(links, name)
    if not links.data.all():
        links = links.copy()
        links.eliminate_zeros()
    if links.shape != shape:
        raise ValueError(f"graph {name!r} has the shape {links.shape}, but {needs}")
    return links


def _check_weights(links: sparse.csr_array, name: str) -> None:
    for bad, what in (
        (np.isnan(links.data), "contains NaN; a sample without links has a row of zeros"),
        (np.isinf(links.data), "contains infinity (inf); weights must be finite"),
        (links.data < 0, "has a negative weight; weights are affinities, 0 for no link. Distances are no affinities"),
        (links.data > np.sqrt(np.finfo(links.dtype).max) * 1e-3, "has a weight that is too large; use another unit"),
    ):
        if bad.any():
            row = int(np.searchsorted(links.indptr, np.argmax(bad), side="right")) - 1
            raise ValueError(f"graph {name!r}, row {row}: {what}")


def _without_loops(links: sparse.csr_array) -> sparse.csr_array:
    if not links.diagonal().any():
        return links
    links = links.copy()
    links.data[links.indices == np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))] = 0
    links.eliminate_zeros()
    return links


def _checked_names(graph: Graph, name: str, n_columns: int) -> list[str] | None:
    names = _sample_names(graph)
    if names is not None and len(names) != n_columns:
        raise ValueError(f"graph {name!r} has {len(names)} ids for {n_columns} columns")
    if names is not None and len(set(names)) < len(names):
        twice = next(one for one, count in Counter(names).items() if count > 1)
        raise ValueError(f"graph {name!r} has the id {twice!r} more than once; each sample needs a name of its own")
    return names


def _sample_names(graph: Graph) -> list[str] | None:
    """Names of the samples of the columns; None for an array, or a frame with columns that are numbered from 0."""
    if graph.ids is not None:
        return [str(name) for name in graph.ids]
    if not is_frame(graph.affinity):
        return None
    if is_default(graph.affinity.columns):
        return None
    return [str(name) for name in frame_columns(graph.affinity)]


def _places(wanted: list[str], names: list[str], what: str) -> NDArray:
    """Place of each wanted name among the names; both must be the same samples."""
    known = {name: place for place, name in enumerate(names)}
    lone = [name for name in wanted if name not in known]
    if lone or len(known) < len(names) or len(set(wanted)) < len(wanted):
        example = f"{lone[0]!r} is not in both" if lone else "some are there several times"
        raise ValueError(f"{what} must be the same samples, but {example}")
    return np.array([known[name] for name in wanted], dtype=np.intp)


def hint_at_links(blocks: Mapping[str, Matrix]) -> None:
    """Warn of square views of features that look like links between the samples.

    Parameters
    ----------
    blocks : mapping of str to array
        Views of features by name.

    Examples
    --------
    >>> import warnings
    >>> ring = np.eye(30, k=1) + np.eye(30, k=-1)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     hint_at_links({"friends": ring, "age": np.ones((30, 1))})
    >>> print(caught[0].message)
    view 'friends' has a column for each sample and looks like links between the samples, but its columns are used as \
features. If they are links, pass lmssc.Graph(friends)
    """
    for name, block in blocks.items():
        if looks_like_links(block):
            warn_caller(
                f"view {name!r} has a column for each sample and looks like links between the samples, but its columns "
                f"are used as features. If they are links, pass lmssc.Graph({name})",
            )


def looks_like_links(block: Matrix) -> bool:
    """Whether a view is square, not negative, and symmetric or without a diagonal, as links between samples are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> links = np.triu(rng.random((30, 30)) < 0.2, k=1).astype(float)
    >>> looks_like_links(links + links.T), looks_like_links(rng.random((30, 30))), looks_like_links(np.eye(30))
    (True, False, False)
    """
    n_samples = block.shape[0]
    if n_samples != block.shape[1] or n_samples < MIN_SAMPLES_FOR_HINT:
        return False
    values = block.data if sparse.issparse(block) else block
    if not (np.isfinite(values).all() and values.min(initial=0) >= 0):
        return False
    n_entries = np.count_nonzero(values != 0)
    on_diagonal = np.count_nonzero(block.diagonal())
    if n_entries - on_diagonal < n_samples // 2:
        return False
    if on_diagonal == 0 and MIN_CHANCE_ON_DIAGONAL * n_samples <= n_entries <= n_samples**2 // 2:
        return True
    return _is_symmetric(block)


def _is_symmetric(block: Matrix) -> bool:
    """Whether a square block equals its transpose; of a dense one that does not, often only some rows are read."""
    if sparse.issparse(block):
        return not (abs(block - block.T).max() > 0)
    return all(np.array_equal(block[rows], block[:, rows].T) for rows in gen_batches(len(block), BATCH_ROWS))


def match_index(views: list[GraphView], index: Any) -> None:
    """Refuse graphs whose columns name the samples of another order than the index of the other views.

    Examples
    --------
    >>> import pandas as pd
    >>> view = GraphView("cites", sparse.csr_array((2, 2)), ["q", "p"])
    >>> match_index([view], pd.Index(["p", "q"]))
    Traceback (most recent call last):
        ...
    ValueError: graph 'cites': its columns name the samples in another order than the index of the other views; bring \
both into one order
    """
    if index is None or is_default(index):
        return
    ids = [str(name) for name in index]
    for view in views:
        if view.columns is None or view.columns == ids:
            continue
        if set(view.columns) == set(ids):
            raise ValueError(
                f"graph {view.name!r}: its columns name the samples in another order than the index of the other "
                "views; bring both into one order"
            )
        lone = list_some(map(repr, sorted(set(view.columns) ^ set(ids))), 3)
        raise ValueError(f"graph {view.name!r}: its columns and the index of the other views differ: {lone}")
