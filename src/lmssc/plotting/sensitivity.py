"""How a score depends on β, γ and the number of components."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lmssc._optional import import_optional
from lmssc.estimators.lmssc import LMSSC

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PARAMETERS = ("n_components", "beta", "gamma")


class SensitivityDisplay:
    """Accuracy over β × γ as a heat map with numbers, one panel for each number of components r.

    Parameters
    ----------
    scores : array-like of shape (n_components, n_beta, n_gamma)
        Accuracies, as shares; NaN where there is none.
    n_components : sequence of int or "auto"
        r of each panel.
    beta : sequence of float
        β of each row of a panel.
    gamma : sequence of float
        γ of each column of a panel.

    Attributes
    ----------
    axes_, figure_ : ndarray of matplotlib Axes, and Figure
        The panels, and their figure.
    images_ : list of matplotlib AxesImage
        The heat maps, all on one colour scale.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = SensitivityDisplay([[[0.7, 0.8]]], n_components=[5], beta=[0.1], gamma=[0.1, 1.0])
    >>> panel = display.plot(ax=[Figure().subplots()]).axes_[0]
    >>> [text.get_text() for text in panel.texts], panel.get_title()
    (['70.0', '80.0'], 'r = 5')
    """

    def __init__(
        self, scores: ArrayLike, *, n_components: Iterable[int | str], beta: Iterable[float], gamma: Iterable[float]
    ) -> None:
        self.scores = scores
        self.n_components = n_components
        self.beta = beta
        self.gamma = gamma

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: "Iterable[Axes] | None" = None) -> Self:
        """Draw the scores of a search over settings of `LMSSC`.

        Parameters
        ----------
        estimator : LMSSCCV or GridSearchCV
            Fitted search, with `cv_results_`; a parameter that a setting does not have is that of its `estimator`.
        ax : sequence of matplotlib Axes, default=None
            One for each number of components; a new figure if None.

        Returns
        -------
        SensitivityDisplay
        """
        usual = (LMSSC() if estimator.estimator is None else estimator.estimator).get_params(deep=False)
        absent = [name for name in PARAMETERS if name not in usual]
        if absent:
            raise ValueError(
                f"{type(estimator).__name__} has not searched over LMSSC: its estimator has no {absent[0]}"
            )
        rows = zip(estimator.cv_results_["params"], estimator.cv_results_["mean_test_score"], strict=True)
        runs = [
            {**{name: setting.get(name, usual[name]) for name in PARAMETERS}, "accuracy": score}
            for setting, score in rows
        ]
        return cls.from_results(runs, ax=ax)

    @classmethod
    def from_results(
        cls, results: Iterable[Mapping[str, Any]], *, score: str = "accuracy", ax: "Iterable[Axes] | None" = None
    ) -> Self:
        """Draw the mean of results over repeated splits.

        Parameters
        ----------
        results : iterable of mappings
            One for each run, with `n_components`, `beta`, `gamma` and the score.
        score : str, default="accuracy"
            Which entry to draw.
        ax : sequence of matplotlib Axes, default=None
            One for each number of components; a new figure if None.

        Returns
        -------
        SensitivityDisplay

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> runs = [{"n_components": 5, "beta": 1.0, "gamma": 0.1, "accuracy": value} for value in (0.7, 0.8)]
        >>> display = SensitivityDisplay.from_results(runs, ax=[Figure().subplots()])
        >>> display.scores.round(3).tolist()
        [[[0.75]]]
        """
        runs = list(results)
        if not runs:
            raise ValueError("results is empty: there is nothing to draw")
        # "auto" comes after the numbers.
        values = {
            name: sorted({run[name] for run in runs}, key=lambda value: (isinstance(value, str), value))
            for name in PARAMETERS
        }
        sums, counts = np.zeros((2, *map(len, values.values())))
        for run in runs:
            cell = tuple(known.index(run[name]) for name, known in values.items())
            sums[cell] += run[score]
            counts[cell] += 1
        means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
        return cls(means, **values).plot(ax=ax)

    def plot(self, ax: "Iterable[Axes] | None" = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, default=None
            One for each number of components; a new figure if None.

        Returns
        -------
        SensitivityDisplay
        """
        scores = 100 * np.asarray(self.scores, dtype=float)
        n_components, beta, gamma = list(self.n_components), list(self.beta), list(self.gamma)
        if scores.shape != (len(n_components), len(beta), len(gamma)):
            raise ValueError(
                f"scores must have the shape ({len(n_components)}, {len(beta)}, {len(gamma)}) of n_components, beta "
                f"and gamma, got {scores.shape}"
            )
        if np.isnan(scores).all():
            raise ValueError("scores has no number: there is nothing to draw")
        if ax is None:
            pyplot = import_optional("matplotlib.pyplot", purpose="figures", extra="plot")
            ax = pyplot.subplots(1, len(scores), figsize=(3.4 * len(scores) + 1, 3.8), layout="constrained")[1]
        self.axes_ = np.ravel(np.asarray(ax, dtype=object))
        if len(self.axes_) != len(scores):
            raise ValueError(
                f"ax must have one panel for each of the {len(scores)} n_components, got {len(self.axes_)}"
            )
        low, high = np.nanmin(scores), np.nanmax(scores)
        self.images_ = []
        for panel, r, values in zip(self.axes_, n_components, scores, strict=True):
            image = panel.imshow(values, cmap="cividis", vmin=low, vmax=high, aspect="auto", origin="lower")
            for (row, column), value in np.ndenumerate(values):
                if not np.isnan(value):
                    bright = value - low > 0.5 * (high - low)
                    panel.text(column, row, f"{value:.1f}", ha="center", va="center", color="k" if bright else "w")
            panel.set_xticks(range(len(gamma)), [f"{value:g}" for value in gamma])
            panel.set_yticks(range(len(beta)), [f"{value:g}" for value in beta])
            panel.tick_params(length=0)
            panel.set(xlabel="γ", title=f"r = {r}")
            self.images_.append(image)
        self.axes_[0].set_ylabel("β")
        self.figure_ = self.axes_[0].figure
        self.figure_.colorbar(self.images_[0], ax=list(self.axes_), label="accuracy (%)")
        return self
