"""Numbers of the README and the guide, read from the CSV files under ``results/``.

`make pages` writes the tables; the tests compare the sentences and the picture with what is returned here.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from pages import fill_blocks
from scale_page import PAGE as SCALE_PAGE
from scale_page import scale_blocks
from trust_page import trust_markdown

from lmssc.paper.markdown import markdown_table

FRESH = "results/accuracy/fresh.csv"
PEERS = "results/accuracy/peers.csv"
CHOSEN = "results/accuracy/chosen.csv"
SPEED = "results/speed/speed.csv"
ACTIVE = "results/active/active.csv"
CELLS = "results/cells/summary.csv"
LARGE_PAGE = "docs/guide/large.md"
CELLS_PAGE = "docs/guide/cells.md"
LABELLING_PAGE = "docs/guide/labelling.md"
TRUST_PAGE = "docs/guide/trust.md"

# Rows of the speed table: the case in the CSV, and what the page calls it.
SPEED_CASES = {
    "LMSSC": "`LMSSC`",
    "LabelSpreading": 'scikit-learn, `LabelSpreading(kernel="knn")`',
    "scikit-network": "scikit-network, `Propagation` on an exact kNN graph",
    "graphlearning": "graphlearning, `laplace`",
}
# Its columns: data, samples, dtype and threads in the CSV.
SPEED_SHAPES = {
    "20,000, float64": ("synthetic", "20000", "float64", "1"),
    "20,000, float32": ("synthetic", "20000", "float32", "1"),
    "100,000, float32": ("synthetic", "100000", "float32", "1"),
    "1,000,000, float32": ("million", "1000000", "float32", "2"),
}
ACTIVE_LABELS = (20, 40, 60, 100, 200)


def cell_accuracies(root: Path, file: str = FRESH) -> dict[str, dict[tuple[str, str], float]]:
    """Accuracy of each method in each cell (data set, share of labels), the mean over the splits.

    Parameters
    ----------
    root : Path
        Folder of the project.
    file : str
        One of the CSV files of accuracies, `FRESH`, `PEERS` or `CHOSEN`.

    Returns
    -------
    dict of dict
        Method → cell → accuracy between 0 and 1.
    """
    runs: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in _rows(root / file):
        if not row.get("error"):
            runs[row["method"]][row["dataset"], row["rate"]].append(float(row["accuracy"]))
    return {method: {cell: float(np.mean(values)) for cell, values in cells.items()} for method, cells in runs.items()}


def mean_accuracies(root: Path) -> dict[str, float]:
    """Mean accuracy of each method over the cells of ``fresh.csv`` in percent, best first."""
    cells = cell_accuracies(root)
    means = {method: round(100 * float(np.mean(list(values.values()))), 1) for method, values in cells.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def speed(root: Path, case: str, shape: str) -> dict[str, str] | None:
    """The row of ``speed.csv`` for a case and a column of the table, or None if it was not measured."""
    for row in _rows(root / SPEED):
        key = (row["data"], row["samples"], row["dtype"], row["threads"])
        if row["case"] == case and key == SPEED_SHAPES[shape]:
            return row
    return None


def speed_markdown(root: Path) -> str:
    """Seconds, multiples of LMSSC and accuracy of each method, one column for each size."""
    lines = []
    for case, title in SPEED_CASES.items():
        found = {shape: speed(root, case, shape) for shape in SPEED_SHAPES}
        ours = {shape: speed(root, "LMSSC", shape) for shape in SPEED_SHAPES}
        lines.append((f"{title}, seconds", *(_seconds(found[shape], ours[shape]) for shape in SPEED_SHAPES)))
        lines.append(("accuracy", *(_percent(found[shape]) for shape in SPEED_SHAPES)))
    return markdown_table(("", *SPEED_SHAPES), lines)


def _seconds(row: dict[str, str] | None, ours: dict[str, str] | None) -> str:
    if row is None or ours is None:
        return ""
    seconds, reference = float(row["wall"]), float(ours["wall"])
    return f"{seconds:.1f}" if row is ours or row == ours else f"{seconds:.1f} ({seconds / reference:.1f}×)"


def _percent(row: dict[str, str] | None) -> str:
    return "" if row is None else f"{float(row['accuracy']):.1f} %"


def active_markdown(root: Path) -> str:
    """Accuracy on the digits with labels drawn at random and with those that `most_informative` asks for."""
    runs: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for row in _rows(root / ACTIVE):
        if row["dataset"] == "digits":
            for where in ("unlabelled", "new"):
                runs[where, row["choice"], int(row["labels"])].append(float(row[where]))

    def cell(where: str, choice: str, labels: int) -> str:
        values = runs.get((where, choice, labels))
        return "" if values is None else f"{100 * np.mean(values):.1f}"

    names = {"unlabelled": "the other rows", "new": "new samples"}
    lines = [
        (f"{title}, {names[where]}", *(cell(where, choice, labels) for labels in ACTIVE_LABELS))
        for where in names
        for choice, title in (("random", "at random"), ("most_informative", "`most_informative`"))
    ]
    return markdown_table(("labels", *map(str, ACTIVE_LABELS)), lines)


def cells_markdown(root: Path) -> str:
    """Accuracy and calibration of each method on each file of cells, the most accurate first."""
    lines = [
        [
            row["data"],
            f"{row['method']} on {row['views']}",
            *(f"{100 * float(row[metric]):.1f}" for metric in ("accuracy", "balanced_accuracy", "calibration_error")),
        ]
        for row in sorted(_rows(root / CELLS), key=lambda row: (row["data"], -float(row["accuracy"])))
    ]
    return markdown_table(["data", "method", "accuracy %", "balanced %", "calibration error %"], lines)


def filled_guides(root: Path) -> dict[Path, str]:
    """The pages of the guide with their tables made from the CSV files, as `pages.filled_pages` does for the others."""
    blocks = {
        LARGE_PAGE: {"speed": speed_markdown(root)},
        LABELLING_PAGE: {"active": active_markdown(root)},
        CELLS_PAGE: {"cells": cells_markdown(root)},
        TRUST_PAGE: {"trust": trust_markdown(root)},
        SCALE_PAGE: scale_blocks(root),
    }
    return {
        root / page: fill_blocks((root / page).read_text(encoding="utf-8"), found) for page, found in blocks.items()
    }


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
