"""How the objective and its terms fall over the iterations."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lmssc.plotting.style import LINES, AxesDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERM_LABELS = {
    "fit": "fit of the views",
    "smoothness": "latent smoothness",
    "graph": "graph weights",
    "labels": "label smoothness",
    "ridge": "samples that lack views",
}


class ConvergenceDisplay(AxesDisplay):
    """How the objective J and each of its terms change over the iterations.

    The terms differ by orders of magnitude, and most of J may be a part that hardly moves. So what is drawn
    is the change since the first iteration, where the terms still sum to J; the legend has the first and the
    last value of each.

    Parameters
    ----------
    objective : array-like of shape (n_iterations,)
        J after each iteration.
    terms : mapping of str to array-like of shape (n_iterations,)
        The terms that sum to J, by name.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The plot.
    lines_ : dict of str to matplotlib Line2D
        The curves by name; the objective is ``"objective"``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = ConvergenceDisplay([9.0, 7.0], {"fit": [6.0, 5.0], "labels": [3.0, 2.0]})
    >>> list(display.plot(ax=Figure().subplots()).lines_)
    ['objective', 'fit', 'labels']
    """

    def __init__(self, objective: ArrayLike, terms: Mapping[str, ArrayLike]) -> None:
        self.objective = objective
        self.terms = terms

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: "Axes | None" = None) -> Self:
        """Draw the convergence of a fitted model.

        Parameters
        ----------
        estimator : LMSSC
            Fitted model, with `objective_` and `objective_terms_`.
        ax : matplotlib Axes, default=None
            Axes to draw on; a new figure if None.

        Returns
        -------
        ConvergenceDisplay
        """
        return cls(estimator.objective_, estimator.objective_terms_).plot(ax=ax)

    def _check(self) -> None:
        n_iterations = len(np.asarray(self.objective))
        if not n_iterations:
            raise ValueError("objective is empty: there is no iteration to draw")
        for name, values in self.terms.items():
            if len(np.asarray(values)) != n_iterations:
                raise ValueError(
                    f"terms[{name!r}] must have one value for each of the {n_iterations} iterations, "
                    f"got {len(np.asarray(values))}"
                )

    def _draw(self, ax: "Axes") -> None:
        """Draw the curves."""
        self.lines_ = {"objective": _curve(ax, "objective J", self.objective, lw=3, **LINES[0])}
        for index, (name, values) in enumerate(self.terms.items()):
            style = LINES[1 + index % (len(LINES) - 1)]
            self.lines_[name] = _curve(ax, TERM_LABELS.get(name, name), values, lw=1.4, **style)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlim(left=0.5)
        ax.set(xlabel="iteration", ylabel="change since the first iteration", title="Objective J and its terms")
        ax.grid(alpha=0.3)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)


def _curve(ax: "Axes", label: str, values: ArrayLike, **style: Any) -> Any:
    """Draw the change of `values` over the iterations, with the first and the last of them in the legend."""
    values = np.asarray(values, dtype=float)
    label = f"{label}: {values[0]:.6g} → {values[-1]:.6g}"
    (line,) = ax.plot(np.arange(1, len(values) + 1), values - values[0], ms=4.5, label=label, **style)
    return line
