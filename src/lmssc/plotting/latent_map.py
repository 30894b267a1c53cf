"""A map of the latent space."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc.data.labels import known_labels
from lmssc.plotting.style import COLOURS, MARKERS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND_ROWS = 18


class LatentMapDisplay:
    """The samples in the plane of the two main directions of the latent space, coloured by their label.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, 2)
        Where each sample is drawn.
    predicted : ndarray of shape (n_samples,)
        The label each sample got.
    classes : ndarray of shape (n_classes,)
        All labels, in the order of the legend.
    given : ndarray of bool of shape (n_samples,), default=None
        Samples whose label was given; they get a ring.
    mistaken : ndarray of bool of shape (n_samples,), default=None
        Samples whose label is wrong; they get a cross.
    explained : tuple of two floats, default=None
        Share of the variance of the latent space along each axis, shown in the axis labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

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
        """Draw the latent space of a fitted model.

        Parameters
        ----------
        estimator : LMSSC
            Fitted model, with `latent_`, `transduction_` and `classes_`.
        y : array-like of shape (n_samples,), default=None
            The labels as they were passed to `fit`, if the given ones are to be shown.
        y_true : array-like of shape (n_samples,), default=None
            The true labels, if the mistakes are to be shown.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        LatentMapDisplay
            What was drawn.
        """
        coordinates, explained = principal_plane(estimator.latent_)
        predicted = np.asarray(estimator.transduction_)
        display = cls(
            coordinates,
            predicted,
            estimator.classes_,
            given=None if y is None else known_labels(y)[1],
            mistaken=None if y_true is None else predicted != np.asarray(y_true),
            explained=explained,
        )
        return display.plot(ax=ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        LatentMapDisplay
            This object.
        """
        self._check()
        ax = new_axes(ax)
        # Many samples get smaller marks, or they would hide each other.
        shrink = float(np.clip(300 / max(len(self.predicted), 1), 0.35**2, 1.0)) ** 0.5
        for index, label in enumerate(self.classes):
            style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
            # rasterized: a vector file with one shape a sample would be slow to open
            self._scatter(
                ax, self.predicted == label, str(label), s=18 * shrink, alpha=0.85, lw=0, rasterized=True, **style
            )
        if self.given is not None:
            label = f"label given ({np.sum(self.given)})"
            self._scatter(ax, self.given, label, marker="o", s=50 * shrink, fc="none", ec="black", lw=0.9 * shrink)
        if self.mistaken is not None:
            label = f"wrong label ({np.sum(self.mistaken)})"
            self._scatter(ax, self.mistaken, label, marker="x", s=24 * shrink, color="black", lw=1.0 * shrink)
        ax.set(
            xlabel=self._axis_label(0),
            ylabel=self._axis_label(1),
            title="Latent space, coloured by predicted label",
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
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _check(self) -> None:
        n_samples = len(self.predicted)
        if np.shape(self.coordinates) != (n_samples, 2):
            raise ValueError(
                f"coordinates must have the shape ({n_samples}, 2), a point for each of predicted; "
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
        label = f"main direction {axis + 1}"
        return label if self.explained is None else f"{label} ({100 * self.explained[axis]:.0f} % of the variance)"


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
