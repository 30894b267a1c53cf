"""Colours, markers and lines that all figures share, and axes to draw on."""

from typing import TYPE_CHECKING, Any, Self

from lmssc._optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# Paul Tol's "muted" scheme, told apart by colour-blind readers, with a grey as its tenth colour. Ten colours
# and seven markers, used in turn, give seventy different pairs; markers also help where there is no colour.
COLOURS = (
    "#332288", "#CC6677", "#117733", "#88CCEE", "#DDCC77",
    "#882255", "#44AA99", "#999933", "#AA4499", "#777777",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "<", ">")

# For curves: the darker colours of Okabe and Ito, each with a dash pattern of its own.
LINES: tuple[dict[str, Any], ...] = (
    {"color": "#000000", "ls": "-", "marker": "o"},
    {"color": "#0072B2", "ls": "--", "marker": "s"},
    {"color": "#D55E00", "ls": "-.", "marker": "^"},
    {"color": "#009E73", "ls": ":", "marker": "D"},
    {"color": "#CC79A7", "ls": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
)


def new_axes(ax: "Axes | None") -> "Axes":
    """Return `ax`, or the axes of a new figure of pyplot with room for a legend beside them."""
    if ax is not None:
        return ax
    pyplot = import_optional("matplotlib.pyplot", purpose="figures", extra="plot")
    return pyplot.subplots(figsize=(9, 5), layout="constrained")[1]


class AxesDisplay:
    """A display on one pair of axes, which sets `ax_` and `figure_`; subclasses implement `_draw`."""

    ax_: "Axes"
    figure_: "FigureBase"

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure if None.

        Returns
        -------
        Self
            The display itself.
        """
        self._check()
        ax = new_axes(ax)
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _check(self) -> None:
        """Raise an error if there is nothing to draw or the parts do not fit, before a figure is made."""

    def _draw(self, ax: "Axes") -> None:
        raise NotImplementedError
