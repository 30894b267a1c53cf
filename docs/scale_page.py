"""Tables of docs/scale.md, from ``results/scale``."""

import csv
import json
from pathlib import Path
from typing import Any

from lmssc.paper.markdown import markdown_table

UPDATES = "results/scale/updates.csv"
CLUSTER = "results/scale/cluster.json"
PARTS = "results/scale/parts.json"
WORKERS = "results/scale/workers.json"
PAGE = "docs/scale.md"


def scale_blocks(root: Path) -> dict[str, str]:
    """Blocks in Markdown by name."""
    with open(root / UPDATES, encoding="utf-8", newline="") as file:
        updates = list(csv.DictReader(file))
    cluster = json.loads((root / CLUSTER).read_text(encoding="utf-8"))
    parts = json.loads((root / PARTS).read_text(encoding="utf-8"))
    workers = json.loads((root / WORKERS).read_text(encoding="utf-8"))
    return {
        "messages": _messages([run for run in cluster.values() if "iterations" in run]),
        "answers": _answers(cluster),
        "workers": _workers(workers),
        "disk": _disk([run for name, run in parts.items() if name != "agreement"]),
        "updates": _updates([row for row in updates if row["kind"] in ("batch", "stream")]),
        "floor": _floor([row for row in updates if row["kind"] in ("floor", "noise")]),
    }


def _messages(runs: list[dict[str, Any]]) -> str:
    """What the parts of fits on a cluster sent each other, and the memory of their workers."""
    heading = [
        "samples", "workers, memory of each", "killed", "parts", "halo rows a sample", "edges that cross parts",
        "bytes of an iteration", "counted, relative to the formula", "largest worker",
    ]  # fmt: skip
    rows = []
    for run in runs:
        last, ratios = run["iterations"][-1], [one["ratio"] for one in run["iterations"]]
        cut, halo = 100 * last["cut"] / last["edges"], last["halo"] / run["samples"]
        rows.append(
            [
                f"{run['samples']:,}", f"{run['workers']}, {run['memory']}", str(len(run["parts_of_killed_workers"])),
                str(last["parts"]), f"{halo:.2f}", f"{cut:.1f} %",
                f"{last['bytes']:,}", f"{min(ratios):.4f} to {max(ratios):.4f}", f"{run['largest_worker_gb']:.2f} GB",
            ]
        )  # fmt: skip
    return markdown_table(heading, rows)


def _answers(runs: dict[str, dict[str, Any]]) -> str:
    """How far the answers of fits are from each other that should be the same."""
    return markdown_table(
        ["fit", "compared with", "largest difference of a probability", "same labels"],
        [
            [name, run["compared_with"], f"{run['difference']:.1e}", _percent(run["same_labels"])]
            for name, run in runs.items()
            if "compared_with" in run
        ],
    )


def _workers(found: dict[str, Any]) -> str:
    """Seconds of the same fit on more and more workers."""
    rows = []
    for n_workers, runs in found["runs"].items():
        driver = sum(run["driver_cpu"] for run in runs) / len(runs)
        workers = sum(sum(run["workers_cpu"]) for run in runs) / len(runs)
        median, speedup = found["median_seconds"][n_workers], found["speedup"][n_workers]
        rows.append([n_workers, f"{median:.0f}", f"{speedup:.2f}", f"{driver:.0f}", f"{workers:.0f}"])
    heading = ["workers", "seconds, median", "times as fast", "CPU seconds of the driver", "CPU seconds of all workers"]
    return markdown_table(heading, rows)


def _disk(runs: list[dict[str, Any]]) -> str:
    """Fits on disk in one process."""
    heading = ["samples", "features", "memory_limit", "peak", "CPU seconds", "accuracy"]
    return markdown_table(
        heading,
        [
            [
                f"{run['samples']:,}", f"{run['features']:,}", run["memory_limit"], f"{run['peak_gb']:.1f} GB",
                f"{run['cpu_seconds']:,.0f}", _percent(run["accuracy"]),
            ]
            for run in sorted(runs, key=lambda run: run["samples"])
        ],
    )  # fmt: skip


def _name(row: dict[str, str]) -> str:
    exact = ", exact search" if float(row["wanted_recall"] or 0) == 1 else ""
    return row["data"].partition(":")[0] + exact


def _percent(share: str | float) -> str:
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
    """How far fits are from each other that leave out other samples, or see other noise."""
    heading = ["data", "samples", "what differs", "two such fits agree", "such a fit and that to all agree"]
    return markdown_table(
        heading,
        [
            [
                _name(row), f"{int(row['samples']):,}",
                f"{int(row['new']):,} samples left out" if row["kind"] == "floor" else "noise, a millionth",
                _percent(row["agreement"]), _percent(row["agreement_of_fits"]),
            ]
            for row in rows
        ],
    )  # fmt: skip
