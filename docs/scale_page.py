"""Tables of docs/scale.md, from ``results/scale/updates.csv``."""

import csv
from pathlib import Path

from lmssc.paper.markdown import markdown_table

UPDATES = "results/scale/updates.csv"
PAGE = "docs/scale.md"


def scale_blocks(root: Path) -> dict[str, str]:
    """Blocks in Markdown by name."""
    with open(root / UPDATES, encoding="utf-8", newline="") as file:
        updates = list(csv.DictReader(file))
    return {
        "updates": _updates([row for row in updates if row["kind"] in ("batch", "stream")]),
        "floor": _floor([row for row in updates if row["kind"] == "floor"]),
    }


def _name(row: dict[str, str]) -> str:
    exact = ", exact search" if float(row["wanted_recall"] or 0) == 1 else ""
    return row["data"].partition(":")[0] + exact


def _percent(share: str) -> str:
    return f"{100 * float(share):.2f} %"


def _updates(rows: list[dict[str, str]]) -> str:
    """Time of updates, and how far their answers are from those of a fit to all."""
    heading = [
        "data", "samples, of them new", "updates", "time of an update, share of a fit", "labels like the refit",
        "fit before like the refit", "accuracy: update, refit",
    ]  # fmt: skip
    return markdown_table(
        heading,
        [
            [
                _name(row), f"{int(row['samples']):,}, {int(row['new']):,}", row["updates"],
                f"{100 * float(row['time_share']):.1f} %", _percent(row["agreement"]),
                _percent(row["agreement_of_fits"]),
                f"{_percent(row['accuracy_update'])}, {_percent(row['accuracy_refit'])}",
            ]
            for row in rows
        ],
    )  # fmt: skip


def _floor(rows: list[dict[str, str]]) -> str:
    """How far fits are from each other that leave out other samples."""
    heading = ["data", "samples, left out", "two such fits agree", "such a fit and that to all agree"]
    return markdown_table(
        heading,
        [
            [
                _name(row), f"{int(row['samples']):,}, {int(row['new']):,}", _percent(row["agreement"]),
                _percent(row["agreement_of_fits"]),
            ]
            for row in rows
        ],
    )  # fmt: skip
