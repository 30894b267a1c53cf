"""Audit the published results: the effect of row order, of choice by test labels, and of a constant answer."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.semi_supervised import LabelSpreading

from lmssc.audit import order_sensitivity
from lmssc.datasets import load
from lmssc.estimators.amgl import AMGL
from lmssc.estimators.gfhf import GFHF
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.mlan import MLAN
from lmssc.evaluation.jobs import do_missing
from lmssc.evaluation.store import Store
from lmssc.metrics import mean_interval
from lmssc.paper.audit_runs import ARMS, COLUMNS, SCORES, do_audit_run, make_draw, plan
from lmssc.paper.printed_tables import DRAWS, interval_half_width, paper_cell, paper_tables
from lmssc.paper.published import GRID, PublishedProgram, draw_labelled
from lmssc.persistence.atomic import write_csv

_WORDS = ("part", "dataset", "what")
# Columns that only rows of part (d) fill.
_SENSITIVITY = (
    "largest_change",
    "largest_probability_change",
    "changed_by_seed",
    "accuracy_given",
    "accuracy_permuted",
)
SUMMARY = (
    *("part", "dataset", "rate", "what", "n", "mean", "std", "low", "high", "paper_mean", "paper_std"),
    *_SENSITIVITY,
)
PERMUTATIONS = 10

Record = dict[str, Any]


def audit(
    datasets: Sequence[str],
    rates: Sequence[float],
    repeats: int,
    out: Path,
    *,
    n_jobs: int = 1,
    progress: bool = False,
) -> list[Record]:
    """Do the runs that are not in the folder yet, and write ``audit.csv`` and ``audit_summary.csv``.

    Parameters
    ----------
    datasets : sequence of str
        Names of the paper's data sets.
    rates : sequence of float
        Shares of labelled rows.
    repeats : int
        Number of draws of labels.
    out : Path
        Output folder. The tables also include the runs of earlier calls.
    n_jobs : int
        Number of parallel runs.
    progress : bool
        Show a progress bar.

    Returns
    -------
    list of dict
        The summary, with the columns `SUMMARY`; accuracies in percent.
    """
    store = Store(out)
    do_missing(plan(datasets, rates, repeats), do_audit_run, store, n_jobs, progress=progress)
    for name in sensitivity_estimators():
        if store.read(f"order-{name}") is None:
            store.write(f"order-{name}", sensitivity(name))
    return write_tables(out)


def write_tables(out: Path) -> list[Record]:
    """Write ``audit.csv`` and ``audit_summary.csv`` from the runs in the folder, complete or not."""
    store = Store(out)
    found = (store.read(path.stem) for path in sorted((out / "runs").glob("*.json")))
    records = [record for record in found if record is not None]
    runs = [record for record in records if "arm" in record]
    runs.sort(key=lambda run: [(value is not None, value or 0) for value in (run[column] for column in COLUMNS[:7])])
    rows = summarise(runs) + constant_answer() + [record for record in records if record.get("part") == "order"]
    write_csv(out / "audit.csv", COLUMNS, runs)
    write_csv(out / "audit_summary.csv", SUMMARY, [dict.fromkeys(SUMMARY) | row for row in rows])
    return read_summary(out / "audit_summary.csv")


def read_summary(path: Path) -> list[Record]:
    """Read ``audit_summary.csv`` as dicts with the columns `SUMMARY`; empty cells are None."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        {
            name: text if name in _WORDS else None if not text else int(text) if name == "n" else float(text)
            for name, text in row.items()
        }
        for row in rows
    ]


def summarise(runs: Iterable[Record]) -> list[Record]:
    """Summarise all runs in parts (a), row order, and (b), choice by test labels.

    Draws for which a setting of the grid has not run are left out.
    """
    tables: dict[tuple[str, float], dict[str, dict[int, NDArray]]] = {}
    for run in runs:
        setting = (run["n_components"], run["beta"], run["gamma"])
        place = 0 if run["arm"] == "lmssc" else GRID.index(setting)
        draws = tables.setdefault((run["dataset"], run["rate"]), {}).setdefault(run["arm"], {})
        size = 1 if run["arm"] == "lmssc" else len(GRID)
        draws.setdefault(run["repeat"], np.full(size, np.nan))[place] = 100 * run["accuracy"]
    rows = []
    for (dataset, rate), arms in tables.items():
        whole = {arm: _whole(draws) for arm, draws in arms.items()}
        for part, what, values in [*_by_order(whole), *_by_choice(whole)]:
            rows.append(_row(part, dataset, rate, what, values, paper="LMSSC" if part == "row order" else None))
    return rows


Line = tuple[str, str, NDArray]


def _by_order(arms: dict[str, dict[int, NDArray]]) -> list[Line]:
    """Best test accuracy of the grid for each row order, as the program reports it, and paired differences."""
    best = {arm: {draw: grid.max() for draw, grid in draws.items()} for arm, draws in arms.items() if arm != "held-out"}
    lines = [("row order", ARMS[arm], _values(best[arm])) for arm in ARMS if best.get(arm)]
    for one, other in (
        ("sorted", "shuffled"),
        ("sorted", "mended"),
        ("mended", "shuffled"),
        ("mended-sorted", "mended"),
    ):
        values = _differences(best.get(one, {}), best.get(other, {}))
        if len(values):
            lines.append(("row order, difference", f"{ARMS[one]} − {ARMS[other]}", values))
    return lines


def _by_choice(arms: dict[str, dict[int, NDArray]]) -> list[Line]:
    """The best setting by test labels, and choices that do not use the test labels of the draw."""
    lines: list[Line] = []
    for arm in ("sorted", "shuffled", "mended"):
        draws = arms.get(arm, {})
        if len(draws) < 2:
            continue
        part = f"choice of the setting, {ARMS[arm]}"
        best = {draw: grid.max() for draw, grid in draws.items()}
        others = {
            draw: grid[np.mean([draws[other] for other in draws if other != draw], axis=0).argmax()]
            for draw, grid in draws.items()
        }
        choices = {
            "mean over the grid": {draw: grid.mean() for draw, grid in draws.items()},
            "best on the other draws": others,
        }
        held = arms.get("held-out", {}) if arm == "mended" else {}
        if held:
            # Settings that are equally good on the held-out labels are equally likely to be chosen.
            choices["best on held-out labels"] = {
                draw: draws[draw][held[draw] == held[draw].max()].mean() for draw in held if draw in draws
            }
        lines.append((part, "best by test labels", _values(best)))
        for what, chosen in choices.items():
            lines.append((part, what, _values(chosen)))
            lines.append((f"{part}, difference", f"best by test labels − {what}", _differences(best, chosen)))
    return lines


def _whole(draws: dict[int, NDArray]) -> dict[int, NDArray]:
    return {draw: grid for draw, grid in sorted(draws.items()) if not np.isnan(grid).any()}


def _values(by_draw: dict[int, float]) -> NDArray:
    return np.array(list(by_draw.values()))


def _differences(one: dict[int, float], other: dict[int, float]) -> NDArray:
    """Paired differences, on the draws that both have."""
    return np.array([one[draw] - other[draw] for draw in one if draw in other])


def _row(part: str, dataset: str, rate: float, what: str, values: NDArray, paper: str | None = None) -> Record:
    low, high = mean_interval(values.tolist())
    cell = paper_cell(dataset, paper, rate) if paper else None
    return {
        "part": part,
        "dataset": dataset,
        "rate": rate,
        "what": what,
        "n": len(values),
        "mean": float(values.mean()),
        "std": float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
        "low": low,
        "high": high,
        "paper_mean": cell.mean if cell else None,
        "paper_std": cell.std if cell else None,
    }


def constant_answer() -> list[Record]:
    """Part (c): always answering the larger class of BBC, compared with the paper's BBC cells.

    Returns
    -------
    list of dict
        Rows with the columns `SUMMARY`. Rows "constant" have the scores of the constant answer on the unlabelled rows,
        over 20 draws by the program's rule. Rows "constant, paper" have one cell of the paper each: `mean` is its
        difference from the constant's accuracy on all rows (92.4 %), `low` and `high` its 95 % confidence interval.
    """
    codes = np.asarray(load("bbc").target)
    larger = np.bincount(codes).argmax()
    rows = []
    rates = sorted({cell.rate for cell in paper_tables()})
    for rate in rates:
        scores: dict[str, list[float]] = {name: [] for name in SCORES}
        for seed in range(DRAWS):
            truth = np.delete(codes, draw_labelled(len(codes), 2, rate, seed))
            recall = np.mean(truth == larger)
            scores["accuracy"].append(100 * recall)
            scores["balanced_accuracy"].append(50.0 if 0 < recall < 1 else 100.0)
            scores["macro_f1"].append(100 * recall / (1 + recall) * (1 if 0 < recall < 1 else 2))
        rows += [_row("constant", "bbc", rate, name, np.array(values)) for name, values in scores.items()]
    constant = 100 * float(np.mean(codes == larger))
    for cell in paper_tables():
        if cell.dataset == "bbc":
            row = _row("constant, paper", "bbc", cell.rate, cell.method, np.zeros(1))
            off, half = cell.mean - constant, interval_half_width(cell.std)
            row |= {"n": DRAWS, "mean": off, "std": cell.std, "low": off - half, "high": off + half}
            rows.append(row | {"paper_mean": cell.mean, "paper_std": cell.std})
    return rows


def sensitivity_estimators() -> dict[str, Any]:
    """Part (d): the estimators to pass to `lmssc.audit.order_sensitivity`, by name."""
    return {
        "LMSSC": LMSSC(),
        "GFHF": GFHF(),
        "AMGL": AMGL(),
        "MLAN": MLAN(),
        "LabelSpreading (scikit-learn)": LabelSpreading(kernel="knn"),
        "published program": PublishedProgram(),
        "published program, mended": PublishedProgram(mended=True),
    }


def sensitivity(name: str, dataset: str = "sonar", rate: float = 0.2) -> Record:
    """One row of part (d): percentage of the labels that change under permutation.

    Parameters
    ----------
    name : str
        One of `sensitivity_estimators`.
    dataset : str
        Name of the data set; its rows are in class order.
    rate : float
        Share of labelled rows.

    Returns
    -------
    dict
        A row with the columns `SUMMARY`.
    """
    estimator = sensitivity_estimators()[name]
    draw = make_draw(dataset, rate, 0, 1, shuffled=False)
    labels = np.full_like(draw.codes, -1)
    labels[draw.labelled] = draw.codes[draw.labelled]
    single = isinstance(estimator, LabelSpreading)
    X = np.hstack(draw.views) if single else draw.views
    found = order_sensitivity(estimator, X, labels, y_true=draw.codes, n_permutations=PERMUTATIONS)
    row = _row("order", dataset, rate, name, 100 * found.changed)
    accuracies = found.accuracies if found.accuracies is not None else np.array([np.nan])
    return row | {
        "largest_change": 100 * found.max_changed,
        "largest_probability_change": found.largest_probability_change,
        "changed_by_seed": None if found.changed_by_seed is None else 100 * float(found.changed_by_seed.mean()),
        "accuracy_given": 100 * float(accuracies[0]),
        "accuracy_permuted": 100 * float(accuracies[1:].mean()),
    }
