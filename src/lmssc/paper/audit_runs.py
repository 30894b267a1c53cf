"""Runs of the audit: the published program on one draw of labels, with one row order and one setting."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from lmssc.datasets import load
from lmssc.estimators.lmssc import LMSSC
from lmssc.paper.published import GRID, draw_labelled, published_program

ARMS = {
    "sorted": "class order",
    "shuffled": "shuffled",
    "mended": "shuffled, mended",
    "mended-sorted": "class order, mended",
    "held-out": "shuffled, mended, scored on held-out labels",
    "lmssc": "shuffled, lmssc.LMSSC()",
}
"""The arms of the audit, which run on each draw, and their names in the tables."""
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")
COLUMNS = ("dataset", "rate", "repeat", "arm", "n_components", "beta", "gamma", *SCORES, "n_rounds", "fit_seconds")
FOLDS = 3


@dataclass(frozen=True)
class AuditRun:
    """One arm on one draw with one setting; the arm `lmssc` only has its defaults."""

    dataset: str
    rate: float
    repeat: int
    arm: str
    n_components: int | None = None
    beta: float | None = None
    gamma: float | None = None

    @property
    def key(self) -> str:
        """Name of its record."""
        setting = [] if self.n_components is None else [self.n_components, f"{self.beta:g}", f"{self.gamma:g}"]
        return "-".join(map(str, [self.dataset, f"{self.rate:g}", self.repeat, self.arm, *setting]))

    @property
    def kind(self) -> tuple[Any, ...]:
        """Key shared by runs that take about as long, to estimate the remaining time."""
        return self.dataset, self.arm, self.n_components


def plan(datasets: Sequence[str], rates: Sequence[float], repeats: int) -> list[AuditRun]:
    """List all runs of an audit: first the arms that show the effect of row order, draw by draw.

    Examples
    --------
    >>> runs = plan(["sonar"], [0.2], repeats=2)
    >>> len(runs), runs[0].key
    (182, 'sonar-0.2-0-sorted-20-0.01-0.1')
    """
    return [
        AuditRun(dataset, float(rate), repeat, arm, *setting)
        for stage in (("sorted", "shuffled", "mended", "lmssc"), ("mended-sorted",), ("held-out",))
        for dataset in datasets
        for rate in rates
        for repeat in range(repeats)
        for arm in stage
        for setting in settings(arm)
    ]


def settings(arm: str) -> list[tuple[int, float, float]] | list[tuple[()]]:
    """Settings (r, β, γ) of an arm."""
    return [()] if arm == "lmssc" else GRID


def do_audit_run(run: AuditRun) -> dict[str, Any]:
    """The record of one run, with `COLUMNS`."""
    began = time.perf_counter()
    record: dict[str, Any] = {column: getattr(run, column) for column in COLUMNS[:7]} | run_arm(run)
    return record | {"fit_seconds": time.perf_counter() - began}


@dataclass(frozen=True)
class Draw:
    """Data in the row order of a run. Labelled samples and initial positions are the same in every order."""

    views: list[Any]
    codes: NDArray
    labelled: NDArray
    start: NDArray


def make_draw(dataset: str, rate: float, repeat: int, n_components: int, *, shuffled: bool) -> Draw:
    """Draw labels and an initial H for the rows in the order of the file, then shuffle the rows if asked.

    The list of labelled rows stays in the order of the draw.

    Parameters
    ----------
    dataset : str
        Name, as for `lmssc.datasets.load`.
    rate : float
        Share of labelled rows.
    repeat : int
        Number of the draw: the seed of labels, shuffle and initial H.
    n_components : int
        Number of columns of the initial H.
    shuffled : bool
        Whether to shuffle the rows.

    Returns
    -------
    Draw
    """
    views, codes = _data(dataset)
    n = len(codes)
    labelled = draw_labelled(n, int(codes.max()) + 1, rate, repeat)
    start = np.random.default_rng([repeat, 1]).random((n, n_components))
    if not shuffled:
        return Draw(views, codes, labelled, start)
    order = np.random.default_rng([repeat, 2]).permutation(n)
    return Draw([view[order] for view in views], codes[order], np.argsort(order)[labelled], start[order])


@cache
def _data(dataset: str) -> tuple[list[Any], NDArray]:
    """Views and classes in the order of the file. The program uses only the first view of BBC."""
    data = load(dataset)
    return list(data.views[:1] if dataset == "bbc" else data.views), np.asarray(data.target)


def run_arm(run: AuditRun) -> dict[str, Any]:
    """Do a run and return its `SCORES` and `n_rounds`, which is None for LMSSC and for several fits.

    The scores are of the unlabelled rows; for the arm "held-out" they are of the held-out labels.
    """
    shuffled = run.arm not in ("sorted", "mended-sorted")
    draw = make_draw(run.dataset, run.rate, run.repeat, run.n_components or 1, shuffled=shuffled)
    if run.arm == "lmssc":
        held_out = np.setdiff1d(np.arange(len(draw.codes)), draw.labelled)
        labels = draw.codes.copy()
        labels[held_out] = -1
        fitted = LMSSC().fit(draw.views, labels)
        return _scores(draw.codes[held_out], fitted.transduction_[held_out]) | {"n_rounds": None}
    if run.arm == "held-out":
        return _held_out(run, draw) | {"n_rounds": None}
    answer = _answer(run, draw, draw.labelled)
    return _scores(draw.codes[answer.unlabelled], answer.predicted) | {"n_rounds": answer.n_rounds}


def _answer(run: AuditRun, draw: Draw, labelled: NDArray) -> Any:
    mended = run.arm not in ("sorted", "shuffled")
    assert run.beta is not None
    assert run.gamma is not None
    return published_program(
        draw.views, draw.codes, labelled, draw.start, beta=run.beta, gamma=run.gamma, mended=mended
    )


def _held_out(run: AuditRun, draw: Draw) -> dict[str, float]:
    """Cross-validated scores on the labelled rows, by which to choose a setting without test labels."""
    blocks = draw.labelled.reshape(int(draw.codes.max()) + 1, -1)
    truth, predicted = [], []
    for fold in range(FOLDS):
        held_out = blocks[:, fold::FOLDS].ravel()
        answer = _answer(run, draw, np.setdiff1d(draw.labelled, held_out, assume_unique=True))
        held = np.isin(answer.unlabelled, held_out)
        truth.append(draw.codes[answer.unlabelled[held]])
        predicted.append(answer.predicted[held])
    return _scores(np.concatenate(truth), np.concatenate(predicted))


def _scores(truth: NDArray, predicted: NDArray) -> dict[str, float]:
    return {
        "accuracy": float(accuracy_score(truth, predicted)),
        "balanced_accuracy": float(balanced_accuracy_score(truth, predicted)),
        "macro_f1": float(f1_score(truth, predicted, average="macro", zero_division=0)),
    }
