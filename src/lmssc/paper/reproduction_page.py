"""The reproduction as one HTML page that needs nothing but a browser."""

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lmssc.paper.findings import (
    Row,
    best_other,
    dataset_title,
    difference,
    find,
    findings,
    known,
    percent,
    unique,
)
from lmssc.paper.markdown import markdown_to_html
from lmssc.paper.printed_tables import DATASETS
from lmssc.paper.svg import inline_svg
from lmssc.paper.tables import CONSTANT, read_tables
from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.provenance import version
from lmssc.report.rendering import environment

TITLE = "LMSSC: the paper's results, run again"
# The order of the figures, by the start of their names; what is not here comes last.
FIGURE_ORDER = ("fig1", "fig2", "convergence", "graph", "latent-map", "calibration")
AUDIT_CAPTIONS = {
    "row-order": {
        "title": "The published program on rows in class order and on shuffled rows",
        "text": "Best of its grid by test accuracy, as the program chooses; the tables below have the numbers.",
        "alt": "Accuracies in the paper, on rows in class order and on shuffled rows; the tables below have them.",
    }
}


def write_report(out: Path) -> Path:
    """Write ``report.html`` from the tables and figures of a reproduction.

    Parameters
    ----------
    out : Path
        Folder of the reproduction, with ``tables.csv`` and ``runs.csv``, and with ``figures/`` and ``figure-data/`` if
        figures were drawn. If there is a folder ``audit`` beside it, its ``audit.md`` and SVG files are shown too.

    Returns
    -------
    Path
        The page, which needs no other file and no network.

    Raises
    ------
    FileNotFoundError
        If a table is not there.
    ValueError
        If a file is not what it should be.
    """
    out = Path(out)
    for name in ("tables.csv", "runs.csv"):
        if not (out / name).is_file():
            raise FileNotFoundError(f"{out / name} is not there; `lmssc reproduce --out {out}` writes it")
    rows = read_tables(out / "tables.csv")
    datasets = unique(rows, "dataset")
    page = (
        environment("lmssc.paper")
        .get_template("reproduction.html")
        .render(
            title=TITLE,
            version=version("lmssc"),
            scope=_scope(rows, datasets),
            findings=findings(rows),
            overview=_overview(rows),
            runs=_runs(_read_csv(out / "runs.csv")),
            columns=[
                {"title": group, "heads": [column[1] for column in _COLUMNS if column[0] == group]} for group in _GROUPS
            ],
            datasets=[_dataset(rows, dataset) for dataset in datasets],
            figures=_figures(out / "figures", out / "figure-data"),
            audit=_audit(out.parent / "audit"),
        )
    )
    path = out / "report.html"
    with open_atomically(path) as file:
        file.write(page.encode())
    return path


def _scope(rows: Sequence[Row], datasets: Sequence[str]) -> str:
    names = ", ".join(dataset_title(dataset) for dataset in datasets)
    rates = ", ".join(percent(rate) for rate in unique(rows, "rate"))
    return f"Data sets: {names}. Labels given: {rates}. Methods: {len(unique(rows, 'method'))}."


def _overview(rows: Sequence[Row]) -> list[list[str]]:
    """LMSSC on all data sets, a row for each data set and rate."""
    lines: list[list[str]] = []
    for row in rows:
        if row["method"] != "LMSSC":
            continue
        best = best_other(rows, row)
        constant = find(rows, row, CONSTANT)
        lines.append(
            [
                dataset_title(row["dataset"]),
                percent(row["rate"]),
                _spread(row, "paper"),
                _interval(row, "fixed"),
                difference(row),
                _interval(row, "cv"),
                _interval(row, "best_by_test"),
                "–" if best is None else f"{best['fixed_mean']:.1f} {best['method']}",
                "–" if constant is None else _spread(constant, "fixed"),
            ]
        )
    return lines


# Heading of the group, heading of the column, and its text.
_COLUMNS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    ("paper", "name there", lambda row: row["paper_name"] or "–"),
    ("paper", "mean ± std", lambda row: _spread(row, "paper")),
    ("ours, fixed defaults", "mean ± std", lambda row: ("★ " if row["best"] else "") + _spread(row, "fixed")),
    ("ours, fixed defaults", "95 % interval", lambda row: _ends(row, "fixed")),
    ("ours, fixed defaults", "splits", lambda row: str(row["fixed_n"])),
    ("ours, fixed defaults", "difference to the paper", difference),
    ("ours, fixed defaults", "balanced accuracy", lambda row: _spread(row, "fixed_balanced_accuracy")),
    ("ours, fixed defaults", "macro-F1", lambda row: _spread(row, "fixed_macro_f1")),
    ("ours, fixed defaults", "p against LMSSC", lambda row: _p_value(row["fixed_p_value"])),
    ("ours, parameters chosen", "by cross-validation", lambda row: _spread(row, "cv")),
    ("ours, parameters chosen", "oracle: by test labels", lambda row: _spread(row, "best_by_test")),
)
_GROUPS = tuple(dict.fromkeys(column[0] for column in _COLUMNS))


def _dataset(rows: Sequence[Row], dataset: str) -> dict[str, Any]:
    """All methods on one data set, by rate; the cells of a row in the groups of the columns."""
    mine = [row for row in rows if row["dataset"] == dataset]
    rates = []
    for rate in unique(mine, "rate"):
        here = [row for row in mine if row["rate"] == rate]
        top = max((row["fixed_mean"] for row in here if known(row, "fixed_mean")), default=math.nan)
        lines = []
        for row in here:
            marked = {**row, "best": row["fixed_mean"] == top}
            groups = [[column[2](marked) for column in _COLUMNS if column[0] == group] for group in _GROUPS]
            lines.append({"method": row["method"], "groups": groups})
        rates.append({"title": percent(rate), "rows": lines})
    return {"name": dataset, "title": dataset_title(dataset), "rates": rates, "n_columns": len(_COLUMNS)}


def _runs(runs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """How many runs there were, how long they took, and which failed first."""
    seconds = sum(float(run["fit_seconds"] or 0) for run in runs)
    failed = [run for run in runs if run["error"]]
    first = None
    if failed:
        run = failed[0]
        where = f"{run['method']} on {run['dataset']} at {percent(float(run['rate']))}"
        first = {"where": where, "error": run["error"]}
    return {
        "n": len(runs),
        "spent": f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes",
        "n_failed": len(failed),
        "first": first,
    }


def _figures(figures: Path, data: Path) -> dict[str, list[dict[str, Any]]]:
    """Figures of each kind, by its heading."""
    sections: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(figures.glob("*.svg"), key=_figure_rank):
        about = data / f"{path.stem}.json"
        try:
            caption = json.loads(about.read_text(encoding="utf-8")) if about.is_file() else {}
        except ValueError as error:
            raise ValueError(f"{about} is not JSON: {error}") from error
        sections.setdefault(caption.get("section", "Other figures"), []).append(_figure(path, caption))
    return sections


def _figure_rank(path: Path) -> tuple[int, int, str]:
    kind = next((i for i, start in enumerate(FIGURE_ORDER) if path.stem.startswith(start)), len(FIGURE_ORDER))
    dataset = next((i for i, name in enumerate(DATASETS) if path.stem.endswith(f"-{name}")), len(DATASETS))
    return kind, dataset, path.stem


def _figure(path: Path, caption: Mapping[str, str]) -> dict[str, Any]:
    title = caption.get("title", path.stem)
    try:
        svg = inline_svg(path.read_text(encoding="utf-8"), f"{path.stem}-", caption.get("alt", title))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return {"name": path.stem, "title": title, "text": caption.get("text", ""), "svg": Markup(svg)}


def _audit(folder: Path) -> dict[str, Any]:
    """The audit's page and figures; empty if there is no audit."""
    if not (folder / "audit_summary.csv").is_file() or not (folder / "audit.md").is_file():
        return {}
    return {
        "figures": [
            _figure(path, AUDIT_CAPTIONS.get(path.stem, {})) for path in [folder / "row-order.svg"] if path.is_file()
        ],
        "text": markdown_to_html((folder / "audit.md").read_text(encoding="utf-8"), "audit"),
    }


def _read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _spread(row: Row, prefix: str) -> str:
    mean, std = row[f"{prefix}_mean"], row[f"{prefix}_std"]
    return "–" if math.isnan(mean) else f"{mean:.1f}" if math.isnan(std) else f"{mean:.1f} ± {std:.1f}"


def _ends(row: Row, prefix: str) -> str:
    low, high = row[f"{prefix}_ci_low"], row[f"{prefix}_ci_high"]
    return "–" if math.isnan(low) else f"{low:.1f} to {high:.1f}"


def _interval(row: Row, prefix: str) -> str:
    mean = row[f"{prefix}_mean"]
    return (
        "–"
        if math.isnan(mean)
        else f"{mean:.1f} ({_ends(row, prefix)})"
        if known(row, f"{prefix}_ci_low")
        else f"{mean:.1f}"
    )


def _p_value(p: float) -> str:
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
