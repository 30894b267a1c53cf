"""Calibration: is a method right as often as its confidence says?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc._optional import import_optional
from lmssc.data.labels import known_labels
from lmssc.data.parameters import COUNT
from lmssc.metrics import expected_calibration_error
from lmssc.plotting.style import LINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With fewer answers in a bin, its accuracy is mostly chance.
FEW = 20


class ScoredAnswers(NamedTuple):
    """For each answer of a method: whether it is right, and the method's confidence in it."""

    right: NDArray[np.bool_]
    confidence: NDArray[np.floating]


class CalibrationDisplay:
    """Accuracy over confidence for one or more methods, with a histogram of the confidence below.

    On the diagonal, answers that are given with a confidence of 80 % are right 80 % of the time. Below it a method is
    too sure of itself, above it too modest.

    Parameters
    ----------
    answers : mapping of str to (right, confidence)
        For each method, whether each of its answers is right, and its confidence in that answer.
    n_bins : int, default=10
        Bins of the confidence, of equal width from 0 to 1.

    Attributes
    ----------
    errors_ : dict of str to float
        Expected calibration error of each method, over the same bins.
    lines_ : dict of str to matplotlib Line2D
        The curves.
    axes_, figure_ : pair of matplotlib Axes, and Figure
        The curves and the histogram, and their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> answers = {"sure": (np.array([True, False]), np.array([0.95, 0.95]))}
    >>> display = CalibrationDisplay(answers).plot(ax=Figure().subplots(2))
    >>> round(display.errors_["sure"], 3), display.lines_["sure"].get_ydata().tolist()
    (0.45, [50.0])
    """

    def __init__(self, answers: Mapping[str, tuple[ArrayLike, ArrayLike]], *, n_bins: int = 10) -> None:
        self.answers = answers
        self.n_bins = n_bins

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        y_true: ArrayLike,
        *,
        y: ArrayLike | None = None,
        name: str | None = None,
        n_bins: int = 10,
        by_class: bool = False,
        ax: "tuple[Axes, Axes] | None" = None,
    ) -> Self:
        """Draw the calibration of a fitted model on the samples it was fitted to.

        Parameters
        ----------
        estimator : classifier of lmssc
            Fitted model, with `label_distributions_` and `classes_`.
        y_true : array-like of shape (n_samples,)
            True labels.
        y : array-like of shape (n_samples,), default=None
            Labels as passed to `fit`; samples whose label was given do not count.
        name : str, default=None
            Name in the legend; the class of the estimator if None.
        n_bins : int, default=10
            Bins of the confidence.
        by_class : bool, default=False
            Whether each class has a curve of its own: of the answers that name it.
        ax : pair of matplotlib Axes, default=None
            For the curves and the histogram; a new figure if None.

        Returns
        -------
        CalibrationDisplay
        """
        truth = np.asarray(y_true)
        counted = np.ones(len(truth), dtype=bool) if y is None else ~known_labels(y)[1]
        if by_class:
            return cls(answers_by_class(estimator, truth, counted), n_bins=n_bins).plot(ax=ax)
        return cls.from_distributions(
            {name or type(estimator).__name__: estimator.label_distributions_[counted]},
            truth[counted],
            estimator.classes_,
            n_bins=n_bins,
            ax=ax,
        )

    @classmethod
    def from_distributions(
        cls,
        distributions: Mapping[str, ArrayLike],
        y_true: ArrayLike,
        classes: ArrayLike,
        *,
        n_bins: int = 10,
        ax: "tuple[Axes, Axes] | None" = None,
    ) -> Self:
        """Draw the calibration of distributions over the classes.

        Parameters
        ----------
        distributions : mapping of str to array-like of shape (n_samples, n_classes)
            Distributions of each method; its answer is the most probable class.
        y_true : array-like of shape (n_samples,)
            True labels.
        classes : array-like of shape (n_classes,)
            Label of each column.
        n_bins, ax : int and pair of matplotlib Axes, optional
            As for the class and for `plot`.

        Returns
        -------
        CalibrationDisplay

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> display = CalibrationDisplay.from_distributions(
        ...     {"coin": [[0.5, 0.5], [0.5, 0.5]]}, ["a", "b"], ["a", "b"], ax=Figure().subplots(2)
        ... )
        >>> display.errors_
        {'coin': 0.0}
        """
        truth, names = np.asarray(y_true), np.asarray(classes)
        answers: dict[str, tuple[ArrayLike, ArrayLike]] = {}
        for method, distribution in distributions.items():
            proba = np.asarray(distribution, dtype=float)
            if proba.shape != (len(truth), len(names)):
                raise ValueError(
                    f"distributions[{method!r}] must have the shape ({len(truth)}, {len(names)}) of samples and "
                    f"classes, got {proba.shape}"
                )
            answers[method] = ScoredAnswers(names[proba.argmax(axis=1)] == truth, proba.max(axis=1))
        return cls(answers, n_bins=n_bins).plot(ax=ax)

    def plot(self, ax: "tuple[Axes, Axes] | None" = None) -> Self:
        """Draw the curves and the histogram.

        Parameters
        ----------
        ax : pair of matplotlib Axes, default=None
            For the curves and the histogram; a new figure if None.

        Returns
        -------
        CalibrationDisplay
        """
        if not COUNT.accepts(self.n_bins):
            raise ValueError(f"n_bins must be {COUNT.wanted}, got {self.n_bins!r}")
        transforms = import_optional("matplotlib.transforms", purpose="figures", extra="plot")
        if ax is None:
            pyplot = import_optional("matplotlib.pyplot", purpose="figures", extra="plot")
            ax = pyplot.subplots(2, sharex=True, figsize=(6, 6.5), height_ratios=(3, 1), layout="constrained")[1]
        curve, histogram = ax
        (diagonal,) = curve.plot([0, 100], [0, 100], color="0.6", lw=1, label="right as often as sure")
        edges = np.linspace(0, 100, self.n_bins + 1)
        self.errors_, self.lines_ = {}, {}
        for index, (name, answer) in enumerate(self.answers.items()):
            right, confidence = _checked(name, *answer)
            style = LINES[index % len(LINES)]
            table = reliability(right, confidence, self.n_bins)
            x, y = ([100 * row[value] for row in table] for value in ("confidence", "accuracy"))
            self.errors_[name] = expected_calibration_error(right, confidence, self.n_bins)
            label = f"{name}: error {100 * self.errors_[name]:.1f} %"
            (self.lines_[name],) = curve.plot(x, y, ms=4.5, lw=1.4, label=label, clip_on=False, zorder=3, **style)
            few = np.array([row["n"] < FEW for row in table])
            if few.any():  # an empty line would upset the layout
                hollow = {"marker": style["marker"], "color": style["color"], "mfc": "white", "ls": "none"}
                curve.plot(np.array(x)[few], np.array(y)[few], ms=4.5, clip_on=False, zorder=4, **hollow)
            shares = np.zeros(self.n_bins)
            shares[[row["bin"] for row in table]] = [100 * row["n"] / len(right) for row in table]
            histogram.stairs(shares, edges, color=style["color"], ls=style["ls"], lw=1.4)
        curve.set(xlim=(0, 100), ylim=(0, 100), ylabel="accuracy (%)", title="Right as often as it is sure?")
        histogram.set(xlim=(0, 100), xlabel="confidence of the answer (%)", ylabel="answers (%)")
        histogram.set_ylim(bottom=0)
        histogram.legend(
            handles=[*self.lines_.values(), diagonal],
            title=f"hollow: fewer than {FEW} answers",
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            # Below the axis label, whatever the height of the axes.
            bbox_transform=transforms.offset_copy(histogram.transAxes, histogram.figure, y=-34, units="points"),
            borderaxespad=0.0,
            frameon=False,
        )
        for each in (curve, histogram):
            each.grid(alpha=0.3)
        self.axes_, self.figure_ = (curve, histogram), curve.figure
        return self


def answers_by_class(estimator: Any, truth: NDArray, counted: NDArray) -> dict[str, tuple[ArrayLike, ArrayLike]]:
    """Answers of a fitted model by the class that they name: whether each is right, and its confidence.

    Parameters
    ----------
    estimator : classifier of lmssc
        Fitted model.
    truth : ndarray of shape (n,)
        True labels of the samples of fit.
    counted : ndarray of bool of shape (n,)
        Samples that count.

    Returns
    -------
    dict of str to (right, confidence)
        Classes that no answer names are left out.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> clf = SimpleNamespace(
    ...     classes_=np.array(["a", "b"]), transduction_=np.array(["a", "a"]), label_distributions_=np.full((2, 2), 0.5)
    ... )
    >>> answers_by_class(clf, np.array(["a", "b"]), np.ones(2, dtype=bool))
    {'a': (array([ True, False]), array([0.5, 0.5]))}
    """
    found = {}
    for name in estimator.classes_:
        rows = counted & (estimator.transduction_ == name)
        if rows.any():
            found[str(name)] = (truth[rows] == name, estimator.label_distributions_[rows].max(axis=1))
    return found


def _checked(name: str, right: ArrayLike, confidence: ArrayLike) -> ScoredAnswers:
    """Answers as arrays; raises if they are not valid."""
    answers = ScoredAnswers(np.asarray(right, dtype=bool), np.asarray(confidence, dtype=float))
    if answers.right.shape != answers.confidence.shape or answers.right.ndim != 1 or not answers.right.size:
        raise ValueError(
            f"answers[{name!r}] must have as many confidences as answers, and at least one; got the shapes "
            f"{answers.confidence.shape} and {answers.right.shape}"
        )
    outside = ~((answers.confidence >= 0) & (answers.confidence <= 1 + 1e-6))  # sums of float32 may be above 1
    if outside.any():
        raise ValueError(
            f"answers[{name!r}] must have confidences from 0 to 1, got {answers.confidence[outside][0]:g}; "
            "a percentage has to be divided by 100"
        )
    return answers


def reliability(right: NDArray[np.bool_], confidence: NDArray[np.floating], n_bins: int) -> list[dict[str, Any]]:
    """Accuracy and mean confidence of the answers in each bin of the confidence that has any.

    Parameters
    ----------
    right : ndarray of bool
        Whether each answer is right.
    confidence : ndarray
        Its probability, from 0 to 1.
    n_bins : int
        Bins of equal width.

    Returns
    -------
    list of dict
        bin, n, confidence, accuracy.

    Examples
    --------
    >>> reliability(np.array([True, False, True]), np.array([0.5, 0.5, 1.0]), 4)
    [{'bin': 2, 'n': 2, 'confidence': 0.5, 'accuracy': 0.5}, {'bin': 3, 'n': 1, 'confidence': 1.0, 'accuracy': 1.0}]
    """
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    rows = []
    for number in np.unique(bins):
        inside = bins == number
        rows.append(
            {
                "bin": int(number),
                "n": int(inside.sum()),
                "confidence": float(confidence[inside].mean()),
                "accuracy": float(right[inside].mean()),
            }
        )
    return rows
