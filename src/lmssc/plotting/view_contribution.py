"""What each view contributes to the answer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lmssc.model_selection.refit import hold_out, view_shares
from lmssc.plotting.style import LINES, AxesDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ViewContributionDisplay(AxesDisplay):
    """Share of each view in what the method learned, and what is lost without the view.

    The share of a view is its part of all that the latent positions reproduce of the data (`LMSSC`), or its weight
    (`AMGL`, `MLAN`). It describes the data. What a view contributes to the labels is the accuracy on held-out labels
    that is lost without it.

    Parameters
    ----------
    shares : mapping of str to float
        Share of each view, from 0 to 1.
    accuracy : float, default=None
        Accuracy on held-out labels with all views.
    without : mapping of str to float, default=None
        The same without each view; drawn if it is given.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        The shares.
    marks_ : matplotlib Line2D, or None
        The accuracies without each view.
    ax_, figure_ : matplotlib Axes and Figure
        The plot.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> without = {"image": 0.6, "text": 0.9}
    >>> display = ViewContributionDisplay({"image": 0.7, "text": 0.3}, accuracy=0.9, without=without)
    >>> display = display.plot(ax=Figure().subplots())
    >>> [float(bar.get_width()) for bar in display.bars_], display.marks_.get_xdata().tolist()
    ([70.0, 30.0], [60.0, 90.0])
    """

    def __init__(
        self,
        shares: Mapping[str, float],
        *,
        accuracy: float | None = None,
        without: Mapping[str, float] | None = None,
    ) -> None:
        self.shares = shares
        self.accuracy = accuracy
        self.without = without

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        X: Sequence[Any] | Mapping[str, Any] | None = None,
        y: ArrayLike | None = None,
        present: Any = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw what the views contribute to a fitted model.

        Parameters
        ----------
        estimator : LMSSC, AMGL or MLAN
            Fitted model.
        X : list or dict of views, default=None
            The views as given to `fit`. With `y`, the model is fitted again without each view, and the accuracy on
            labels that were held out meanwhile is drawn too: three fits for each view, and three with all.
        y : array-like of shape (n_samples,), default=None
            The labels as given to `fit`.
        present : list or dict of boolean arrays, default=None
            As given to `fit`.
        random_state : int, default=0
            Decides which labels are held out together.
        n_jobs : int, default=None
            Fits at the same time, through joblib.
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure if None.

        Returns
        -------
        ViewContributionDisplay
        """
        shares = view_shares(estimator)
        if not shares:
            raise ValueError(
                f"{type(estimator).__name__} does not weigh the views; LMSSC, AMGL and MLAN do, once they are fitted"
            )
        if (X is None) != (y is None):
            raise ValueError("X and y go together: the views and the labels as they were given to fit")
        if X is None or y is None:
            return cls(shares).plot(ax=ax)
        if len(shares) < 2:
            raise ValueError("X has one view only, which cannot be left out; draw it without X and y")
        found = hold_out(estimator, X, y, present, without=[None, *shares], random_state=random_state, n_jobs=n_jobs)
        if not len(found[None].rows):
            raise ValueError("y has no class with 2 labels, one to hold out and one to learn from")
        without = {name: found[name].accuracy for name in shares}
        return cls(shares, accuracy=found[None].accuracy, without=without).plot(ax=ax)

    def _check(self) -> None:
        _check_shares("shares", self.shares.values())
        if self.without is not None and set(self.without) != set(self.shares):
            raise ValueError(f"without has the views {sorted(self.without)}, but shares has {sorted(self.shares)}")
        if (self.without is None) != (self.accuracy is None):
            raise ValueError("accuracy and without go together: with all views, and without each")
        _check_shares("accuracy", [] if self.accuracy is None else [self.accuracy])
        _check_shares("without", [] if self.without is None else self.without.values())

    def _draw(self, ax: "Axes") -> None:
        """Draw the bars, and the accuracies if there are any."""
        names = list(self.shares)
        rows = np.arange(len(names))
        percent = [100 * self.shares[name] for name in names]
        self.bars_ = ax.barh(rows, percent, height=0.6, color="#88CCEE", label="share of the view")
        self.marks_ = None
        xlabel = "share (%)"
        if self.accuracy is not None and self.without is not None:
            style = {**LINES[2], "ls": "none"}
            found = 100 * np.array([self.without[name] for name in names], dtype=float)
            (self.marks_,) = ax.plot(found, rows, ms=7, label="accuracy without the view", **style)
            ax.axvline(100 * self.accuracy, color="black", lw=1, ls="--", label="accuracy with all views")
            xlabel = "share; accuracy on held-out labels (%)"
        ax.set_yticks(rows, names)
        ax.invert_yaxis()  # the first view on top
        ax.set(xlim=(0, 100), xlabel=xlabel, title="What each view contributes")
        ax.grid(axis="x", alpha=0.3)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)


def _check_shares(name: str, values: Iterable[float]) -> None:
    outside = [value for value in values if not 0 <= value <= 1]
    if outside:
        raise ValueError(f"{name} must be from 0 to 1, got {outside[0]:g}")
