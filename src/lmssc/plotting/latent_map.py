"""A map of the samples: a layout of the learned graph, with the names of the classes on their clusters."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc._optional import import_optional
from lmssc.data.canonical_order import row_keys, splitmix64
from lmssc.data.labels import known_labels
from lmssc.data.view import RawView
from lmssc.numerics.graph_layout import graph_layout
from lmssc.plotting.style import COLOURS, MARKERS, AxesDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND_ROWS = 18
# Cells along each axis of the grid on which the densest part of a class is found.
DENSITY_CELLS = 24


class LatentMapDisplay(AxesDisplay):
    """A scatter plot of the samples, coloured by predicted label, with each class named on its densest cluster.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, 2)
        Position of each sample, such as those of `map_positions` or `principal_plane`.
    predicted : ndarray of shape (n_samples,)
        Predicted labels.
    classes : ndarray of shape (n_classes,)
        All labels, in the order of the legend.
    given : ndarray of bool of shape (n_samples,), default=None
        Samples whose label was given; they get a ring.
    mistaken : ndarray of bool of shape (n_samples,), default=None
        Samples whose predicted label is wrong; they get a cross.
    explained : tuple of two floats, default=None
        Share of the variance along each axis, for the axis labels. Only a projection such as `principal_plane` has it.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The plot.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> labels = np.array(["cat", "dog"])
    >>> display = LatentMapDisplay(np.eye(2), labels, labels, given=np.array([True, False]))
    >>> legend = display.plot(ax=Figure().subplots()).ax_.get_legend()
    >>> [text.get_text() for text in legend.get_texts()]
    ['cat', 'dog', 'label given (1)']
    """

    def __init__(
        self,
        coordinates: NDArray[np.floating],
        predicted: NDArray[Any],
        classes: NDArray[Any],
        *,
        given: NDArray[np.bool_] | None = None,
        mistaken: NDArray[np.bool_] | None = None,
        explained: tuple[float, float] | None = None,
    ) -> None:
        self.coordinates = coordinates
        self.predicted = predicted
        self.classes = classes
        self.given = given
        self.mistaken = mistaken
        self.explained = explained

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        y: ArrayLike | None = None,
        y_true: ArrayLike | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the samples of a fitted model where a layout of its graph puts them.

        Parameters
        ----------
        estimator : classifier of lmssc
            Fitted model, with `graph_`, `label_distributions_`, `transduction_` and `classes_`.
        y : array-like of shape (n_samples,), default=None
            Labels as passed to `fit`, to mark those that were given.
        y_true : array-like of shape (n_samples,), default=None
            True labels, to mark the mistakes.
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure if None.

        Returns
        -------
        LatentMapDisplay
        """
        predicted = np.asarray(estimator.transduction_)
        display = cls(
            map_positions(estimator),
            predicted,
            estimator.classes_,
            given=None if y is None else known_labels(y)[1],
            mistaken=None if y_true is None else predicted != np.asarray(y_true),
        )
        return display.plot(ax=ax)

    def _draw(self, ax: "Axes") -> None:
        """Draw the map."""
        # Markers shrink as samples grow in number, so that they do not hide each other.
        shrink = float(np.clip(300 / max(len(self.predicted), 1), 0.35**2, 1.0)) ** 0.5
        for index, label in enumerate(self.classes):
            style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
            # Rasterized: a vector file with a shape for each sample opens slowly.
            self._scatter(
                ax, self.predicted == label, str(label), s=18 * shrink, alpha=0.85, lw=0, rasterized=True, **style
            )
        if self.given is not None:
            label = f"label given ({np.sum(self.given)})"
            self._scatter(ax, self.given, label, marker="o", s=50 * shrink, fc="none", ec="black", lw=0.9 * shrink)
        if self.mistaken is not None:
            label = f"wrong label ({np.sum(self.mistaken)})"
            self._scatter(ax, self.mistaken, label, marker="x", s=24 * shrink, color="black", lw=1.0 * shrink)
        self._name_classes(ax)
        title = "The learned graph" if self.explained is None else "Latent space"
        ax.set(
            xlabel=self._axis_label(0),
            ylabel=self._axis_label(1),
            title=f"{title}, coloured by predicted label",
            xticks=[],
            yticks=[],
        )
        ax.legend(
            title="label",
            alignment="left",
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            frameon=False,
            markerscale=1.3 / shrink**0.5,
            ncols=-(-len(self.classes) // LEGEND_ROWS),
        )

    def _name_classes(self, ax: "Axes") -> None:
        """Write the name of each class on its densest part."""
        effects = import_optional("matplotlib.patheffects", purpose="figures", extra="plot")
        outline = [effects.withStroke(linewidth=3, foreground="white", alpha=0.8)]
        size = 11 if len(self.classes) <= 12 else 8
        for label in self.classes:
            where = self.predicted == label
            if where.any():
                x, y = densest_point(self.coordinates, where)
                style: dict[str, Any] = {"ha": "center", "va": "center", "size": size, "weight": "bold", "zorder": 5}
                ax.text(x, y, str(label), path_effects=outline, clip_on=True, parse_math=False, **style)

    def _check(self) -> None:
        n_samples = len(self.predicted)
        if np.shape(self.coordinates) != (n_samples, 2):
            raise ValueError(
                f"coordinates must have the shape ({n_samples}, 2), a row for each entry of predicted; "
                f"got {np.shape(self.coordinates)}"
            )
        if not np.isfinite(self.coordinates).all():
            raise ValueError("coordinates must be finite")
        for name, marks in (("given", self.given), ("mistaken", self.mistaken)):
            if marks is not None and np.shape(marks) != (n_samples,):
                raise ValueError(f"{name} must have a value for each of the {n_samples} samples, got {np.shape(marks)}")
        strange = set(np.asarray(self.predicted).tolist()) - set(np.asarray(self.classes).tolist())
        if strange:
            raise ValueError(f"predicted has the label {min(strange, key=str)!r}, which is not one of classes")

    def _scatter(self, ax: "Axes", which: NDArray[np.bool_], label: str, **style: Any) -> None:
        x, y = self.coordinates[which].T
        ax.scatter(x, y, label=label, **style)

    def _axis_label(self, axis: int) -> str:
        if self.explained is None:
            return ""
        return f"principal component {axis + 1} ({100 * self.explained[axis]:.0f} % of the variance)"


def map_positions(estimator: Any) -> NDArray[np.float64]:
    """Lay out the graph of a fitted model: linked samples close together, all others apart.

    The layout knows the graph only. Labels enter it as far as they shaped the graph, which LMSSC learns with them.

    Parameters
    ----------
    estimator : classifier of lmssc
        Fitted model, with `graph_` and `label_distributions_`.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Positions of the samples, whatever their order.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.3, random_state=0)
    >>> map_positions(LMSSC(max_iter=2).fit(data.views, data.y)).shape
    (60, 2)
    """
    graph = estimator.graph_.tocsr()
    keys = row_keys(RawView("answers", np.asarray(estimator.label_distributions_, dtype=float), None))
    for _ in range(2):
        keys = _mix_neighbors(keys, graph)
    order = np.argsort(keys, kind="stable")
    positions = np.empty((len(order), 2))
    positions[order] = graph_layout(graph[order][:, order])
    return positions


def _mix_neighbors(keys: NDArray[np.uint64], graph: Any) -> NDArray[np.uint64]:
    """Key of each sample from its own, those of its neighbours and the weights between: no order of the rows counts."""
    bits = np.asarray(graph.data, dtype=np.float64).view(np.uint64)
    sums = np.zeros(len(bits) + 1, dtype=np.uint64)
    np.cumsum(splitmix64(bits ^ keys[graph.indices]), out=sums[1:])
    return splitmix64(keys ^ (sums[graph.indptr[1:]] - sums[graph.indptr[:-1]]))


def densest_point(coordinates: NDArray[np.floating], where: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the middle of the largest crowd of some samples: the place for the name of a class.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, 2)
        Positions of all samples.
    where : ndarray of bool of shape (n_samples,)
        The samples of the class, at least one.

    Returns
    -------
    tuple of two floats
        Median position of the samples in the densest part of a grid and in the cells around it.

    Examples
    --------
    >>> crowd = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [9.0, 9.0]])
    >>> densest_point(crowd, np.array([True, True, True, True]))
    (0.0, 0.0)
    """
    low, span = coordinates.min(axis=0), np.ptp(coordinates, axis=0)
    cells = ((coordinates[where] - low) / np.where(span > 0, span, 1) * (DENSITY_CELLS - 1)).astype(int) + 1
    counts = np.zeros((DENSITY_CELLS + 2, DENSITY_CELLS + 2), dtype=int)
    np.add.at(counts, tuple(cells.T), 1)
    # Each cell together with the eight around it.
    sums = np.lib.stride_tricks.sliding_window_view(counts, (3, 3)).sum(axis=(2, 3))
    peak = np.unravel_index(sums.argmax(), sums.shape)
    near = (np.abs(cells - 1 - peak) <= 1).all(axis=1)
    x, y = np.median(coordinates[where][near], axis=0).tolist()
    return x, y


def principal_plane(latent: ArrayLike) -> tuple[NDArray[np.floating], tuple[float, float]]:
    """Project points onto their two directions of largest variance.

    The sign of each direction is such that its largest entry is positive: the same points give the same
    picture on every machine.

    Parameters
    ----------
    latent : array-like of shape (n_samples, n_components)
        The points.

    Returns
    -------
    coordinates : ndarray of shape (n_samples, 2)
        Positions in the plane; the second column is zero if there is one direction only.
    explained : tuple of two floats
        Share of the variance along each of the two.

    Examples
    --------
    >>> coordinates, explained = principal_plane([[0.0], [2.0], [4.0]])
    >>> coordinates.tolist(), explained
    ([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]], (1.0, 0.0))
    """
    points = np.asarray(latent, dtype=float)
    points = points - points.mean(axis=0)
    _, lengths, directions = np.linalg.svd(points, full_matrices=False)
    directions = directions[:2]
    largest = np.argmax(np.abs(directions), axis=1)
    signs = np.sign(np.take_along_axis(directions, largest[:, None], axis=1))
    coordinates = np.zeros((len(points), 2))
    coordinates[:, : len(directions)] = points @ (signs * directions).T
    shares = lengths**2 / max(np.sum(lengths**2), np.finfo(float).tiny)
    first, second = np.append(shares, [0.0, 0.0])[:2].tolist()
    return coordinates, (first, second)
