"""Findings of a reproduction, as sentences and as cells of its tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmssc.paper.printed_tables import DATASETS, PaperCell, paper_tables
from lmssc.paper.tables import CONSTANT

DISPLAY_NAMES = {**DATASETS, "handwritten": "HW (handwritten digits)"}
# Above this accuracy of a constant answer, in percent, accuracy alone says little about a method.
MAX_CONSTANT_ACCURACY = 80

Row = Mapping[str, Any]


def findings(rows: Sequence[Row]) -> list[str]:
    """Say in sentences what agrees with the paper and what does not, from the rows of `read_tables` alone."""
    both = [row for row in rows if row["method"] == "LMSSC" and known(row, "paper_mean", "fixed_mean")]
    sentences = []
    for symbol, words in (("≈", "agrees with the paper's (its mean is inside our 95 % interval)"),
                        ("▲", "is higher than the paper's"),
                        ("▼", "is lower than the paper's")):  # fmt: skip
        cells = [row for row in both if sign(row) == symbol]
        if cells:
            sentences.append(
                f"In {len(cells)} of {len(both)} cells of the tables, LMSSC's accuracy with fixed defaults on shuffled "
                f"rows {words}: {'; '.join(_by_dataset(cells))}."
            )
    ranked = [row for row in both if best_other(rows, row) is not None]
    ahead = [row for row in ranked if row["fixed_mean"] >= best_other(rows, row)["fixed_mean"]]  # type: ignore[index]
    if ranked:
        sentences.append(
            f"In {len(ahead)} of {len(ranked)} cells LMSSC has the best mean of all methods that were run here with "
            f"fixed defaults; in the paper's tables, among fewer methods, it is first in {_first_in_paper(ranked)} of "
            "them. LMSSC's defaults were picked in view of these data sets among others; most others' were not."
        )
    gains = [
        row["best_by_test_mean"] - row["cv_mean"]
        for row in rows
        if row["method"] == "LMSSC" and known(row, "best_by_test_mean", "cv_mean")
    ]
    if gains:
        sentences.append(
            f"Choosing LMSSC's parameters by the test labels instead of by cross-validation changes its accuracy by "
            f"{signed(min(gains))} to {signed(max(gains))} points, on average by {signed(sum(gains) / len(gains))}: "
            "that much of such a result is not the method's."
        )
    for dataset in unique(rows, "dataset"):
        constant = [row["fixed_mean"] for row in rows if (row["dataset"], row["method"]) == (dataset, CONSTANT)]
        if constant and max(constant) > MAX_CONSTANT_ACCURACY:
            sentences.append(
                f"On {dataset_title(dataset)}, always answering the largest class is right {max(constant):.1f} % "
                "of the time: an accuracy near that says nothing. Balanced accuracy and macro-F1 tell more there."
            )
    return sentences


def find(rows: Sequence[Row], like: Row, method: str) -> Row | None:
    """Find the row of a method for the data set and label rate of the row `like`."""
    wanted = (like["dataset"], like["rate"], method)
    return next((row for row in rows if (row["dataset"], row["rate"], row["method"]) == wanted), None)


def best_other(rows: Sequence[Row], like: Row) -> Row | None:
    """Find the best other method with fixed defaults in the same cell, without the constant answer."""
    others = [
        row
        for row in rows
        if (row["dataset"], row["rate"]) == (like["dataset"], like["rate"])
        and not row["method"].startswith("LMSSC")
        and row["method"] != CONSTANT
        and known(row, "fixed_mean")
    ]
    return max(others, key=lambda row: row["fixed_mean"], default=None)


def _first_in_paper(cells: Sequence[Row]) -> int:
    """Count the cells in which LMSSC has the best mean of the paper."""
    best: dict[tuple[str, float], PaperCell] = {}
    for cell in paper_tables():
        key = (cell.dataset, cell.rate)
        best[key] = max(best.get(key, cell), cell, key=lambda each: each.mean)
    return sum(best[row["dataset"], row["rate"]].method == "LMSSC" for row in cells)


def _by_dataset(cells: Sequence[Row]) -> list[str]:
    """Cells as "Sonar 10 % (+2.3), 20 % (−1.0)", one text per data set."""
    texts = []
    for dataset in unique(cells, "dataset"):
        parts = (
            f"{percent(row['rate'])} ({signed(row['fixed_mean'] - row['paper_mean'])})"
            for row in cells
            if row["dataset"] == dataset
        )
        texts.append(f"{dataset_title(dataset)} {', '.join(parts)}")
    return texts


def dataset_title(dataset: str) -> str:
    """Name of a data set in headings."""
    return DISPLAY_NAMES.get(dataset, dataset)


def known(row: Row, *names: str) -> bool:
    """Whether none of these columns is NaN."""
    return not any(math.isnan(row[name]) for name in names)


def sign(row: Row) -> str:
    """Mark for our interval (or mean, without one) beside the paper's mean: ▲ above it, ▼ below it, ≈ around it."""
    low, high = (row["fixed_mean"] if math.isnan(row[end]) else row[end] for end in ("fixed_ci_low", "fixed_ci_high"))
    return "▼" if row["paper_mean"] > high else "▲" if row["paper_mean"] < low else "≈"


def difference(row: Row) -> str:
    """Our mean minus the paper's, with a sign; a dash if one of them is missing."""
    if not known(row, "paper_mean", "fixed_mean"):
        return "–"
    return f"{sign(row)} {signed(row['fixed_mean'] - row['paper_mean'])}"


def signed(number: float) -> str:
    """Format percentage points with a sign."""
    return f"{number:+.1f}".replace("-", "−")


def percent(share: float) -> str:
    """Format a share as a percentage, without trailing zeros."""
    return f"{100 * share:g} %"


def unique(rows: Iterable[Row], name: str) -> list[Any]:
    """Distinct values of a column, in the order of the rows."""
    return list(dict.fromkeys(row[name] for row in rows))
