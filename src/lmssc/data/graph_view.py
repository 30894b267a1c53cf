"""Views that are links between the samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.view import RawView


class Graph:
    """Links between the samples, to pass as a view in addition to views of features.

    A graph says which samples belong together, such as papers that cite each other or people who know each other. `fit`
    learns the weight of each graph: links that do not help to tell the classes apart get little or none.

    Parameters
    ----------
    affinity : array, sparse matrix or data frame of shape (n, n), or (m, n) for new samples
        Weights of the links, not negative; 0 is no link. Entry (i, j) links sample i to sample j, in the order of the
        rows of the other views. Links may be directed or not, weighted or not; directions, and links of a sample to
        itself, are ignored. A sample without links has a row of zeros. For new samples, rows are the new samples and
        columns the samples of `fit`, in their order. The columns of a data frame are put into the order of its index.
    ids : sequence of str, optional
        Names of the samples of the columns. If `fit` had names, the columns of new samples are matched by them.

    See Also
    --------
    LMSSC : Takes graphs beside views of features.

    Examples
    --------
    >>> import numpy as np
    >>> from lmssc import LMSSC, Graph
    >>> rng = np.random.default_rng(0)
    >>> topic = np.repeat([0, 1], 50)
    >>> text = rng.normal(size=(100, 5)) + topic[:, None]
    >>> cites = (rng.random((100, 100)) < 0.1) & (topic[:, None] == topic)
    >>> y = np.where(np.arange(100) % 10 == 0, topic, -1)
    >>> clf = LMSSC().fit({"text": text, "cites": Graph(cites)}, y)
    >>> clf.link_weights_["cites"] > 0, bool((clf.transduction_ == topic).mean() > 0.9)
    (True, True)
    >>> clf.predict({"text": text[:2] + 0.1, "cites": Graph(cites[:2])})
    array([0, 0])
    """

    def __init__(self, affinity: Any, ids: Sequence[str] | None = None) -> None:
        self.affinity = affinity
        self.ids = ids

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the affinities."""
        shape = getattr(self.affinity, "shape", None)
        return tuple(np.asarray(self.affinity, dtype=object).shape if shape is None else shape)

    def __repr__(self) -> str:
        return f"Graph(shape={self.shape})"


@dataclass(frozen=True)
class LinkRows(RawView):
    """The links of a graph as rows: a view of features for methods that take no graphs."""

    def take(self, rows: NDArray | slice) -> "LinkRows":
        """The links among some of the samples."""
        return LinkRows(self.name, self.data[rows][:, rows].tocsr(), None)

    def as_features(self) -> RawView:
        """The same numbers as features, of which some rows keep all columns."""
        return RawView(self.name, self.data, None)


@dataclass(frozen=True)
class GraphView:
    """Links of one graph, checked.

    Attributes
    ----------
    name : str
        Name of the view.
    links : csr_array of shape (n, n), or (m, n) for new samples
        Weights, positive, without links of a sample to itself.
    columns : list of str, or None
        Names of the samples that a data frame had.
    """

    name: str
    links: sparse.csr_array
    columns: list[str] | None = None

    def take(self, rows: NDArray) -> "GraphView":
        """The links among some of the samples.

        Examples
        --------
        >>> chain = GraphView("a", sparse.csr_array(np.eye(4, k=1)))
        >>> chain.take(np.array([2, 1])).links.toarray()
        array([[0., 0.],
               [1., 0.]])
        """
        columns = None if self.columns is None else [self.columns[row] for row in rows]
        links = self.links[rows][:, rows].tocsr()
        links.sort_indices()  # sums over a row must not depend on the order of the input
        return GraphView(self.name, links, columns)
