"""A graph as a picture of its weights, with the samples sorted by class."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from lmssc._optional import import_optional
from lmssc.plotting.style import AxesDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Cells along each side of the picture: no screen or print shows more. Several samples share a cell if there are more.
MAX_CELLS = 250


class GraphDisplay(AxesDisplay):
    """The weights of a graph as a picture, rows and columns sorted by class.

    Weight within a class falls into the squares along the diagonal. The title has its share of all weight, and the
    share that edges to random other samples would have.

    Parameters
    ----------
    graph : sparse matrix of shape (n_samples, n_samples)
        Weight of the edge from each sample (row) to each other.
    labels : array-like of shape (n_samples,)
        Class of each sample, by which they are sorted.

    Attributes
    ----------
    homophily_ : float
        Share of the weight that joins samples of one class.
    chance_ : float
        That share if every sample chose its neighbours at random.
    ax_, figure_ : matplotlib Axes and Figure
        The plot.
    image_ : matplotlib AxesImage
        The picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from scipy import sparse
    >>> graph = sparse.csr_array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])
    >>> display = GraphDisplay(graph, ["cat", "cat", "dog"]).plot(ax=Figure().subplots())
    >>> display.homophily_, round(display.chance_, 3)
    (0.5, 0.333)
    """

    def __init__(self, graph: Any, labels: ArrayLike) -> None:
        self.graph = graph
        self.labels = labels

    @classmethod
    def from_estimator(cls, estimator: Any, *, y: ArrayLike | None = None, ax: "Axes | None" = None) -> Self:
        """Draw the graph of a fitted model.

        Parameters
        ----------
        estimator : LMSSC or other classifier of lmssc
            Fitted model, with `graph_` and `transduction_`.
        y : array-like of shape (n_samples,), default=None
            True labels to sort by; the labels that the model gave if None.
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure if None.

        Returns
        -------
        GraphDisplay
        """
        return cls(estimator.graph_, estimator.transduction_ if y is None else y).plot(ax=ax)

    def _draw(self, ax: "Axes") -> None:
        """Draw the picture."""
        colors = import_optional("matplotlib.colors", purpose="figures", extra="plot")
        labels = np.asarray(self.labels)
        self.homophily_, self.chance_ = homophily(self.graph, labels)
        classes, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        cells = bin_weights(self.graph, np.argsort(codes, kind="stable"), MAX_CELLS)
        # The root makes single weak edges visible beside cells that hold many.
        self.image_ = ax.imshow(
            np.ma.masked_equal(cells, 0),
            extent=(0, len(labels), len(labels), 0),
            cmap="viridis_r",
            norm=colors.PowerNorm(0.5, vmin=0, vmax=max(float(cells.max()), np.finfo(float).tiny)),
            interpolation="nearest",
        )
        ends = np.cumsum(sizes)
        for end in ends[:-1]:
            ax.axhline(end, color="black", lw=0.6)
            ax.axvline(end, color="black", lw=0.6)
        middles = ends - sizes / 2
        ax.set_xticks(middles, [str(label) for label in classes])
        ax.set_yticks(middles, [str(label) for label in classes])
        ax.tick_params(length=0)
        if max(len(str(label)) for label in classes) * len(classes) > 30:
            ax.tick_params(axis="x", rotation=90)
        ax.set(
            xlabel="neighbour, by class",
            ylabel="sample, by class",
            title=(
                f"{100 * self.homophily_:.1f} % of the weight within classes\n"
                f"(random neighbours: {100 * self.chance_:.1f} %)"
            ),
        )


def homophily(graph: Any, labels: ArrayLike) -> tuple[float, float]:
    """Share of a graph's weight that joins samples of one class, and what random neighbours would have.

    Parameters
    ----------
    graph : sparse matrix of shape (n_samples, n_samples)
        Weights.
    labels : array-like of shape (n_samples,)
        Class of each sample.

    Returns
    -------
    share : float
        Share of the weight; NaN without any weight.
    chance : float
        Mean share of the other samples that are of a sample's own class.

    Examples
    --------
    >>> homophily(sparse.eye_array(4).tocsr()[[1, 0, 3, 2]], [0, 0, 1, 1])
    (1.0, 0.3333333333333333)
    """
    edges = _edges(graph)
    _, codes, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    if len(codes) != edges.shape[0]:
        raise ValueError(f"labels must have one label for each of the {edges.shape[0]} samples, got {len(codes)}")
    total = float(edges.data.sum())
    within = float(edges.data[codes[edges.row] == codes[edges.col]].sum())
    chance = float(np.sum(sizes * (sizes - 1)) / max(len(codes) * (len(codes) - 1), 1))
    return within / total if total else float("nan"), chance


def bin_weights(graph: Any, order: NDArray[np.integer], most_cells: int) -> NDArray[np.floating]:
    """Sums of a graph's weights over cells, with the samples in a given order.

    Parameters
    ----------
    graph : sparse matrix of shape (n_samples, n_samples)
        Weights.
    order : ndarray of int of shape (n_samples,)
        Which sample comes first, second, …
    most_cells : int
        Rows and columns of cells; one for each sample if there are fewer samples.

    Returns
    -------
    ndarray of shape (n_cells, n_cells)

    Examples
    --------
    >>> bin_weights(sparse.csr_array([[0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 3], [4, 0, 0, 0]]), np.arange(4), 2)
    array([[1., 2.],
           [4., 3.]])
    """
    edges = _edges(graph)
    n_samples = edges.shape[0]
    n_cells = min(n_samples, most_cells)
    cell = np.empty(n_samples, dtype=np.int64)
    cell[order] = np.arange(n_samples) * n_cells // n_samples
    flat = np.bincount(cell[edges.row] * n_cells + cell[edges.col], weights=edges.data, minlength=n_cells**2)
    return flat.reshape(n_cells, n_cells).astype(float)


def _edges(graph: Any) -> sparse.coo_array:
    """The edges of a graph, or an error if it is none."""
    edges = sparse.coo_array(graph)
    if edges.ndim != 2 or edges.shape[0] != edges.shape[1]:
        raise ValueError(f"graph must be square, with a row and a column for each sample; got the shape {edges.shape}")
    if edges.nnz and not edges.data.min() >= 0:
        raise ValueError(f"graph must have weights of at least 0, got {edges.data[~(edges.data >= 0)][0]:g}")
    return edges
