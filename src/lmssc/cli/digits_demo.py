"""The work of ``lmssc demo``: digits in several views, few labels, four methods, figures."""

import csv
import io
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay, accuracy_score, balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from threadpoolctl import threadpool_limits

from lmssc import LMSSC
from lmssc._optional import import_optional
from lmssc.core.progress import iterations, progress_bar
from lmssc.datasets import load_digits_views
from lmssc.persistence.atomic import open_atomically
from lmssc.plotting import CalibrationDisplay, LatentMapDisplay

UNLABELLED = -1


@dataclass(frozen=True)
class Task:
    """Samples in random order with most labels held out.

    Attributes
    ----------
    views : list of ndarray
        The views.
    y : ndarray of int
        The given labels, -1 for held-out ones.
    target : ndarray of int
        All true labels, for scoring only.
    rows : ndarray of int
        Row of each sample in the data set.
    """

    views: list[NDArray[np.floating]]
    y: NDArray[np.integer]
    target: NDArray[np.integer]
    rows: NDArray[np.integer]

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Samples whose label is held out, which are scored."""
        return self.y == UNLABELLED


@dataclass(frozen=True)
class Score:
    """Scores of one method on the held-out labels."""

    method: str
    accuracy: float
    balanced_accuracy: float
    seconds: float


def make_task(rate: float, seed: int) -> Task:
    """Shuffle the digits and keep the labels of a share of each class.

    Parameters
    ----------
    rate : float
        Share of each class whose labels are given.
    seed : int
        Decides the order, and with it which labels are given.

    Returns
    -------
    Task
        The samples, with the labels that are given.

    Raises
    ------
    ValueError
        If `rate` is not between 0 and 1, or leaves a class without a given or without a held-out label.
    """
    if not 0 < rate < 1:
        raise ValueError(f"--rate must be between 0 and 1, such as 0.05 for 5 %; got {rate:g}")
    if seed < 0:
        raise ValueError(f"--seed must not be negative; got {seed}")
    data = load_digits_views()
    rows = np.random.default_rng(seed).permutation(len(data.target))
    target = data.target[rows]
    return Task([view[rows] for view in data.views], hold_out_labels(target, rate), target, rows)


def hold_out_labels(target: NDArray[np.integer], rate: float) -> NDArray[np.integer]:
    """Keep the first labels of each class and replace the others with -1.

    Parameters
    ----------
    target : ndarray of int
        True labels of samples in random order.
    rate : float
        Share of each class to keep, rounded to whole samples.

    Returns
    -------
    ndarray of int
        The labels that are left.

    Raises
    ------
    ValueError
        If that keeps none of the labels of a class, or all of them.

    Examples
    --------
    >>> hold_out_labels(np.array([0, 1, 1, 0, 0, 1, 1, 0]), 0.25)
    array([ 0,  1, -1, -1, -1, -1, -1, -1])
    """
    y = np.full_like(target, UNLABELLED)
    for label in np.unique(target):
        members = np.flatnonzero(target == label)
        n_given = round(rate * len(members))
        if not 0 < n_given < len(members):
            raise ValueError(
                f"--rate {rate:g} keeps {n_given} of the {len(members)} labels of class {label}; "
                "each class needs at least one given and one held-out label"
            )
        y[members[:n_given]] = label
    return y


def run(task: Task, folder: Path, *, figures: bool, quiet: bool) -> None:
    """Run all methods, print the table, write the files.

    Parameters
    ----------
    task : Task
        The samples to label.
    folder : Path
        Folder for the files; it exists.
    figures : bool
        Whether to draw figures.
    quiet : bool
        Whether to print nothing.
    """

    def say(text: str) -> None:
        if not quiet:
            print(text, flush=True)

    say(_describe(task))
    with progress_bar("LMSSC", show=not quiet) as advance:
        model = LMSSC(callback=None if advance is None else iterations(advance))
        scores = score_methods(task, model)
    say(format_scores(scores))
    written = [_write_scores(scores, folder), _write_predictions(task, model, folder)]
    if figures:
        try:
            written += _write_figures(task, model, folder)
        except ImportError as error:
            print(f"lmssc: no figures: {error}", file=sys.stderr)
    say(f"\nWritten to {folder}:")
    say(textwrap.indent(textwrap.fill(", ".join(path.name for path in written), 90), "  "))
    say("Next, try fewer labels with --rate 0.01, other labels with --seed 1, or lmssc demo --help.")


def score_methods(task: Task, model: LMSSC) -> list[Score]:
    """Let `model` and the simple methods predict the held-out labels, and score them.

    All run on one thread: the data are small, and on a busy machine, waiting threads would dominate the time
    measured.

    Parameters
    ----------
    task : Task
        The samples to label.
    model : LMSSC
        Fitted here.

    Returns
    -------
    list of Score
        One for each method, LMSSC first.
    """
    joined = StandardScaler().fit_transform(np.hstack(task.views))
    given = ~task.held_out

    def supervised(classifier: Any) -> NDArray[np.integer]:
        return classifier.fit(joined[given], task.y[given]).predict(joined)

    methods: dict[str, Callable[[], NDArray[np.integer]]] = {
        "LMSSC": lambda: model.fit(task.views, task.y).transduction_,
        "label spreading (kNN graph)": lambda: LabelSpreading(kernel="knn").fit(joined, task.y).transduction_,
        "logistic regression": lambda: supervised(LogisticRegression(max_iter=1000)),
        "1-nearest neighbour": lambda: supervised(KNeighborsClassifier(n_neighbors=1)),
    }
    with threadpool_limits(limits=1):
        return [_score(name, guess, task) for name, guess in methods.items()]


def _score(method: str, guess: Callable[[], NDArray[np.integer]], task: Task) -> Score:
    start = time.perf_counter()
    predicted = guess()
    seconds = time.perf_counter() - start
    truth, guessed = task.target[task.held_out], predicted[task.held_out]
    return Score(method, accuracy_score(truth, guessed), balanced_accuracy_score(truth, guessed), seconds)


def format_scores(scores: list[Score]) -> str:
    """Format the scores as a table; a star marks the best accuracy.

    Parameters
    ----------
    scores : list of Score
        One for each row.

    Returns
    -------
    str
        The table.

    Examples
    --------
    >>> print(format_scores([Score("this", 0.875, 0.8, 1.5), Score("that one", 0.5, 0.5, 0.25)]))
      method    accuracy  balanced accuracy  seconds
    * this        87.5 %             80.0 %     1.50
      that one    50.0 %             50.0 %     0.25
    * best accuracy on the held-out labels; seconds on one thread
    """
    width = max(len(score.method) for score in scores)
    best = max(score.accuracy for score in scores)
    lines = [f"  {'method':{width}}  accuracy  balanced accuracy  seconds"]
    for score in scores:
        star = "*" if score.accuracy == best else " "
        lines.append(
            f"{star} {score.method:{width}}  {100 * score.accuracy:6.1f} %"
            f"  {100 * score.balanced_accuracy:15.1f} %  {score.seconds:7.2f}"
        )
    return "\n".join([*lines, "* best accuracy on the held-out labels; seconds on one thread"])


def _describe(task: Task) -> str:
    n_given, n_held_out = np.sum(~task.held_out), np.sum(task.held_out)
    widths = " + ".join(str(view.shape[1]) for view in task.views)
    return (
        f"{len(task.y)} handwritten digits in {len(task.views)} views ({widths} features): "
        f"{n_given} labels given, {n_held_out} held out.\n"
    )


def _write_scores(scores: list[Score], folder: Path) -> Path:
    rows = [(s.method, f"{s.accuracy:.6f}", f"{s.balanced_accuracy:.6f}", f"{s.seconds:.3f}") for s in scores]
    return _write_csv(folder / "scores.csv", ("method", "accuracy", "balanced_accuracy", "seconds"), rows)


def _write_predictions(task: Task, model: LMSSC, folder: Path) -> Path:
    confidence = model.label_distributions_.max(axis=1)
    rows = [
        (task.rows[i], model.transduction_[i], f"{confidence[i]:.6f}", "no" if task.held_out[i] else "yes")
        for i in np.argsort(task.rows)
    ]
    return _write_csv(folder / "predictions.csv", ("row", "label", "confidence", "given"), rows)


def _write_csv(path: Path, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Path:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    with open_atomically(path) as file:
        file.write(text.getvalue().encode())
    return path


def _write_figures(task: Task, model: LMSSC, folder: Path) -> list[Path]:
    figure_module = import_optional("matplotlib.figure", purpose="figures", extra="plot")
    held_out = task.held_out

    def latent_map(figure: Any) -> None:
        LatentMapDisplay.from_estimator(model, y=task.y, y_true=task.target, ax=figure.subplots())

    def reliability(figure: Any) -> None:
        axes = figure.subplots(2, sharex=True, height_ratios=(3, 1))
        CalibrationDisplay.from_estimator(model, task.target, y=task.y, ax=axes)

    def confusion_matrix(figure: Any) -> None:
        ax = figure.subplots()
        ConfusionMatrixDisplay.from_predictions(
            task.target[held_out], model.transduction_[held_out], ax=ax, colorbar=False, cmap="Blues"
        )
        ax.set_title("LMSSC on the held-out labels")

    written = []
    for draw, size in ((latent_map, (9, 6.5)), (reliability, (6, 6.5)), (confusion_matrix, (6, 6))):
        figure = figure_module.Figure(figsize=size, layout="constrained")
        draw(figure)
        for suffix in ("png", "svg"):
            path = folder / f"{draw.__name__}.{suffix}"
            with open_atomically(path) as file:
                figure.savefig(file, format=suffix, dpi=150)
            written.append(path)
    return written
