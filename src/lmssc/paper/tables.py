"""Tables of the reproduction: from runs to one CSV, and from that CSV to Markdown.

Examples
--------
>>> run = dict.fromkeys(RUN_COLUMNS, 0.5) | {"dataset": "sonar", "column": "fixed", "method": "LMSSC", "error": ""}
>>> rows = summarise([run | {"rate": 0.1, "repeat": 0}], {("sonar", "LMSSC"): "LMSSC"})
>>> print(tables_markdown(rows).splitlines()[-1])
| LMSSC | LMSSC | 69.8 ± 5.5 | **50.0** |
>>> tables_markdown(rows).endswith(dataset_markdown(rows, "sonar"))
True
>>> print(lmssc_markdown(rows).splitlines()[-1])
| Sonar | 10 % | 69.8 ± 5.5 | 50.0 (1 split) | – | – | – | – |
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lmssc.metrics import METRICS, mean_interval, paired_p_value
from lmssc.paper.markdown import markdown_table
from lmssc.paper.printed_tables import DATASETS, paper_cell

COLUMNS = {"fixed": "fixed", "cv": "cv", "best-by-test": "best_by_test"}
"""The three ways to set parameters, by their names on the command line and in the columns of the CSV."""
RUN_COLUMNS = ("dataset", "column", "method", "rate", "repeat", *METRICS, "fit_seconds", "setting", "error")
"""Columns of runs.csv."""
CONSTANT = "constant answer"
UNBALANCED = ("bbc",)
"""Data sets with unbalanced classes, on which accuracy alone says little."""
_STATISTICS = ("mean", "std", "n", "ci_low", "ci_high")
_MORE = ("balanced_accuracy", "macro_f1")
_WORDS = ("dataset", "method", "paper_name")
TABLE_COLUMNS = (
    "dataset",
    "rate",
    "method",
    "paper_name",
    "paper_mean",
    "paper_std",
    *(f"fixed_{name}" for name in _STATISTICS),
    *(f"fixed_{metric}_{name}" for metric in _MORE for name in ("mean", "std")),
    "fixed_p_value",
    *(f"{column}_{name}" for column in ("cv", "best_by_test") for name in _STATISTICS),
)
"""Columns of tables.csv; scores are in percent."""


def summarise(records: Sequence[Mapping[str, Any]], paper_names: Mapping[tuple[str, str], str]) -> list[dict[str, Any]]:
    """Average the runs over splits, and add the paper's results.

    Parameters
    ----------
    records : sequence of dict
        The runs, with `RUN_COLUMNS`.
    paper_names : dict of (data set, method) → str
        The paper's names of the methods that are in its tables.

    Returns
    -------
    list of dict
        One row for each data set, rate and method, in the order of the records, with `TABLE_COLUMNS`. Intervals are
        95 % confidence intervals of the mean over splits. The p-value is that of a paired t-test between LMSSC and the
        method on the same splits. Failed runs are left out; `n` is the number of the others.

    Examples
    --------
    >>> run = dict.fromkeys(RUN_COLUMNS, 0.5) | {"dataset": "sonar", "column": "fixed", "method": "LMSSC", "error": ""}
    >>> runs = [run | {"rate": 0.1, "repeat": repeat, "accuracy": 0.7 + repeat / 50} for repeat in range(3)]
    >>> (row,) = summarise(runs, {("sonar", "LMSSC"): "LMSSC"})
    >>> row["paper_mean"], round(row["fixed_mean"], 6), row["fixed_n"], row["cv_n"]
    (69.84, 72.0, 3, 0)
    """
    values: dict[tuple[str, float, str], dict[tuple[str, str], dict[int, float]]] = {}
    for record in records:
        cell = values.setdefault((record["dataset"], record["rate"], record["method"]), {})
        if not record["error"]:
            for metric in ("accuracy", *_MORE):
                scores = cell.setdefault((record["column"], metric), {})
                scores[record["repeat"]] = 100 * record[metric]
    rows = []
    for (dataset, rate, method), cell in values.items():
        theirs = paper_names.get((dataset, method), "")
        row: dict[str, Any] = dict.fromkeys(TABLE_COLUMNS, math.nan)
        row |= {"dataset": dataset, "rate": rate, "method": method, "paper_name": theirs}
        printed = paper_cell(dataset, theirs, rate)
        if printed is not None:
            row |= {"paper_mean": printed.mean, "paper_std": printed.std}
        for column, prefix in COLUMNS.items():
            row |= _statistics(list(cell.get((column, "accuracy"), {}).values()), prefix)
        for metric in _MORE:
            more = _statistics(list(cell.get(("fixed", metric), {}).values()), f"fixed_{metric}")
            row |= {name: value for name, value in more.items() if name in row}
        ours = values.get((dataset, rate, "LMSSC"), {}).get(("fixed", "accuracy"), {})
        if method != "LMSSC":
            row["fixed_p_value"] = paired_p_value(ours, cell.get(("fixed", "accuracy"), {}))
        rows.append(row)
    return rows


def _statistics(scores: Sequence[float], prefix: str) -> dict[str, Any]:
    # Of two splits an interval says next to nothing, and no mean of accuracies is beyond 0 and 100.
    low, high = np.clip(mean_interval(scores), 0, 100).tolist() if len(scores) > 2 else (math.nan, math.nan)
    return {
        f"{prefix}_mean": float(np.mean(scores)) if scores else math.nan,
        f"{prefix}_std": float(np.std(scores, ddof=1)) if len(scores) > 1 else math.nan,
        f"{prefix}_n": len(scores),
        f"{prefix}_ci_low": low,
        f"{prefix}_ci_high": high,
    }


def read_tables(path: str | Path) -> list[dict[str, Any]]:
    """Rows of a ``tables.csv``, numbers as numbers, what is not there as NaN.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    list of dict
        With `TABLE_COLUMNS`.
    """
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [column for column in TABLE_COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path} is not a table of the reproduction: it has no column {missing[0]!r}")
        return [{column: _parse(column, row[column]) for column in TABLE_COLUMNS} for row in reader]


def read_runs(path: str | Path) -> list[dict[str, Any]]:
    """Rows of a ``runs.csv`` with `RUN_COLUMNS`: numbers as numbers, empty cells as NaN."""
    words = ("dataset", "column", "method", "setting", "error")
    with open(path, newline="", encoding="utf-8") as file:
        return [
            {
                name: text if name in words else int(text) if name == "repeat" else float(text or "nan")
                for name, text in row.items()
            }
            for row in csv.DictReader(file)
        ]


def _parse(column: str, text: str) -> Any:
    if column in _WORDS:
        return text
    return int(text) if column.endswith("_n") else float(text) if text else math.nan


def tables_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """All data sets as Markdown, one section each, from the rows of `summarise` or `read_tables`."""
    sections = (f"## {DATASETS[dataset]}\n\n{dataset_markdown(rows, dataset)}" for dataset in _unique(rows, "dataset"))
    return "\n\n".join(sections)


def dataset_markdown(rows: Sequence[Mapping[str, Any]], dataset: str) -> str:
    """Tables of one data set as Markdown: fixed defaults beside the paper's means, then chosen parameters."""
    mine = [row for row in rows if row["dataset"] == dataset]
    parts = []
    if any(row["fixed_n"] for row in mine):
        parts += [
            f"Fixed defaults, rows shuffled, {_splits(mine, 'fixed')}: accuracy %, mean ± standard deviation. "
            "**Bold**: best mean here at that rate. ~: a paired t-test does not tell it from LMSSC (p ≥ 0.05).",
            _grid(mine, {"paper": _paper_text, "here": _fixed_text}, paper_names=True),
        ]
        parts += _exceptions(mine)
    if dataset in UNBALANCED and any(row["fixed_n"] for row in mine):
        parts += [
            "The classes are unbalanced, so that a constant answer has a high accuracy; balanced accuracy and macro-F1 "
            "of the same runs, in %:",
            _grid(
                mine,
                {
                    "balanced": lambda row: _spread(row, "fixed_balanced_accuracy"),
                    "macro-F1": lambda row: _spread(row, "fixed_macro_f1"),
                },
            ),
        ]
    tuned = [row for row in mine if row["cv_n"] or row["best_by_test_n"]]
    if tuned:
        parts += [
            f"Parameters chosen, {_splits(tuned, 'cv', 'best_by_test')}: by cross-validation on the labelled rows "
            "only, and, as an **oracle** that no user has, the best of the grid by test accuracy, split by split.",
            _grid(
                tuned,
                {
                    "cross-validated": lambda row: _spread(row, "cv"),
                    "best by test (oracle)": lambda row: _spread(row, "best_by_test"),
                },
            ),
        ]
    return "\n\n".join(parts)


def lmssc_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """LMSSC on all data sets as one Markdown table: the paper's accuracy, and ours in three ways."""
    lines = []
    for row in rows:
        if row["method"] != "LMSSC":
            continue
        same = [other for other in rows if (other["dataset"], other["rate"]) == (row["dataset"], row["rate"])]
        others = [
            other
            for other in same
            if other["fixed_n"] and other["method"] not in ("LMSSC", "LMSSC (paper settings)", CONSTANT)
        ]
        best = max(others, key=lambda other: other["fixed_mean"], default=None)
        constant = next((other for other in same if other["method"] == CONSTANT), None)
        lines.append(
            [
                DATASETS[row["dataset"]],
                f"{100 * row['rate']:g} %",
                _paper_text(row),
                _interval(row, "fixed"),
                _interval(row, "cv"),
                _interval(row, "best_by_test"),
                "–" if best is None else f"{best['fixed_mean']:.1f} {best['method']}",
                "–" if constant is None or not constant["fixed_n"] else f"{constant['fixed_mean']:.1f}",
            ]
        )
    return markdown_table(
        [
            "data set",
            "labels",
            "paper",
            "LMSSC here, fixed defaults",
            "cross-validated",
            "best by test (oracle)",
            "best other method here",
            "constant answer",
        ],
        lines,
    )


def _grid(rows: Sequence[Mapping[str, Any]], parts: Mapping[str, Any], *, paper_names: bool = False) -> str:
    """Table with a row per method and, for each rate, a column for each of `parts` (heading → text of a cell)."""
    rates = _unique(rows, "rate")
    head = ["method", *(["in the paper"] if paper_names else [])]
    head += [f"{100 * rate:g} %: {part}" for rate in rates for part in parts]
    best = {
        rate: max((row["fixed_mean"] for row in rows if row["rate"] == rate and row["fixed_n"]), default=None)
        for rate in rates
    }
    lines = []
    for method in _unique(rows, "method"):
        cells = {row["rate"]: row for row in rows if row["method"] == method}
        name = [method]
        if paper_names:
            name.append(next(iter(cells.values()))["paper_name"] or "–")
        texts = [
            text({**cells[rate], "best": cells[rate]["fixed_mean"] == best[rate]}) if rate in cells else "–"
            for rate in rates
            for text in parts.values()
        ]
        lines.append([*name, *texts])
    return markdown_table(head, lines)


def _spread(row: Mapping[str, Any], prefix: str) -> str:
    """Mean ± deviation, or a dash."""
    mean, std = row[f"{prefix}_mean"], row[f"{prefix}_std"]
    if math.isnan(mean):
        return "–"
    return f"{mean:.1f}" if math.isnan(std) else f"{mean:.1f} ± {std:.1f}"


def _paper_text(row: Mapping[str, Any]) -> str:
    return _spread(row, "paper")


def _fixed_text(row: Mapping[str, Any]) -> str:
    text = _spread(row, "fixed")
    if row["best"]:
        text = f"**{text}**"
    return f"{text} ~" if row["fixed_p_value"] >= 0.05 else text


def _interval(row: Mapping[str, Any], prefix: str) -> str:
    """Mean and the 95 % interval around it, or a dash."""
    mean, low, high, n = (row[f"{prefix}_{name}"] for name in ("mean", "ci_low", "ci_high", "n"))
    if math.isnan(mean):
        return "–"
    few = f"{mean:.1f} ({n} split{'s' if n > 1 else ''})"
    return few if math.isnan(low) else f"{mean:.1f} ({low:.1f} to {high:.1f})"


def _splits(rows: Sequence[Mapping[str, Any]], *prefixes: str) -> str:
    most = max(row[f"{prefix}_n"] for row in rows for prefix in prefixes)
    return "1 split" if most == 1 else f"{most} splits"


def _exceptions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence on methods with fewer splits than the others, if there are any."""
    most = max(row["fixed_n"] for row in rows)
    fewer = {
        f"{row['method']} at {100 * row['rate']:g} % ({row['fixed_n']})" for row in rows if 0 < row["fixed_n"] < most
    }
    return [f"Fewer splits: {', '.join(sorted(fewer))}."] if fewer else []


def _unique(rows: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))
