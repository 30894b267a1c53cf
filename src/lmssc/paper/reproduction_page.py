"""The reproduction as one HTML page that needs nothing but a browser."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from lmssc.paper.markdown import markdown_to_html
from lmssc.paper.printed_tables import DATASETS, PaperCell, paper_tables
from lmssc.paper.svg import inline_svg
from lmssc.paper.tables import CONSTANT, read_tables
from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.provenance import version
from lmssc.report.html import box, style_sheet

TITLE = "LMSSC: the paper's results, run again"
NAMES = {**DATASETS, "handwritten": "HW (handwritten digits)"}
# The order of the figures, by the start of their names; what is not here comes last.
FIGURE_ORDER = ("fig1", "fig2", "convergence", "graph", "latent-map", "calibration")
AUDIT_CAPTIONS = {
    "row-order": {
        "title": "The published program on rows in class order and on shuffled rows",
        "text": "Best of its grid by test accuracy, as the program chooses; the tables below have the numbers.",
        "alt": "Accuracies in the paper, on rows in class order and on shuffled rows; the tables below have them.",
    }
}
# Accuracy of a constant answer, in percent, from which accuracy alone says little.
UNTELLING = 80

Row = Mapping[str, Any]


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
    figures = _figure_sections(out / "figures", out / "figure-data")
    audit = _audit(out.parent / "audit")
    datasets = _unique(rows, "dataset")
    page = Template(files("lmssc.paper").joinpath("reproduction_page.html").read_text(encoding="utf-8")).substitute(
        title=escape(TITLE),
        style=style_sheet(),
        version=escape(version("lmssc")),
        scope=escape(_scope(rows, datasets)),
        contents=_contents(datasets, list(figures), bool(audit)),
        findings=_list(findings(rows)),
        overview=_overview(rows),
        runs=_runs(_read_csv(out / "runs.csv")),
        tables="\n".join(_dataset(rows, dataset) for dataset in datasets),
        figures="\n".join(figures.values()) or "<p>No figures were drawn.</p>",
        audit=audit,
    )
    path = out / "report.html"
    with open_atomically(path) as file:
        file.write(page.encode())
    return path


def findings(rows: Sequence[Row]) -> list[str]:
    """What holds and what does not, in sentences, each from the tables alone.

    Parameters
    ----------
    rows : sequence of dict
        What `lmssc.paper.tables.read_tables` gives.

    Returns
    -------
    list of str
    """
    both = [row for row in rows if row["method"] == "LMSSC" and _known(row, "paper_mean", "fixed_mean")]
    sentences = []
    for sign, words in (("≈", "agrees with the paper's (its mean is inside our 95 % interval)"),
                        ("▲", "is higher than the paper's"),
                        ("▼", "is lower than the paper's")):  # fmt: skip
        cells = [row for row in both if _sign(row) == sign]
        if cells:
            sentences.append(
                f"In {len(cells)} of {len(both)} cells of the tables, LMSSC's accuracy with fixed defaults on shuffled "
                f"rows {words}: {'; '.join(_by_dataset(cells))}."
            )
    ranked = [row for row in both if _best_other(rows, row) is not None]
    ahead = [row for row in ranked if row["fixed_mean"] >= _best_other(rows, row)["fixed_mean"]]  # type: ignore[index]
    if ranked:
        sentences.append(
            f"In {len(ahead)} of {len(ranked)} cells LMSSC has the best mean of all methods that were run here with "
            f"fixed defaults; in the paper's tables, among fewer methods, it is first in {_first_in_paper(ranked)} of "
            "them. LMSSC's defaults were picked in view of these data sets among others; most others' were not."
        )
    gains = [
        row["best_by_test_mean"] - row["cv_mean"]
        for row in rows
        if row["method"] == "LMSSC" and _known(row, "best_by_test_mean", "cv_mean")
    ]
    if gains:
        sentences.append(
            f"Choosing LMSSC's parameters by the test labels instead of by cross-validation changes its accuracy by "
            f"{_signed(min(gains))} to {_signed(max(gains))} points, on average by {_signed(sum(gains) / len(gains))}: "
            "that much of such a result is not the method's."
        )
    for dataset in _unique(rows, "dataset"):
        constant = [row["fixed_mean"] for row in rows if (row["dataset"], row["method"]) == (dataset, CONSTANT)]
        if constant and max(constant) > UNTELLING:
            sentences.append(
                f"On {_title(dataset)}, always answering the largest class is right {max(constant):.1f} % "
                "of the time: an accuracy near that says nothing. Balanced accuracy and macro-F1 tell more there."
            )
    return sentences


def _scope(rows: Sequence[Row], datasets: Sequence[str]) -> str:
    names = ", ".join(_title(dataset) for dataset in datasets)
    rates = ", ".join(_percent(rate) for rate in _unique(rows, "rate"))
    return f"Data sets: {names}. Labels given: {rates}. Methods: {len(_unique(rows, 'method'))}."


def _contents(datasets: Sequence[str], figures: Sequence[str], audit: bool) -> str:
    def item(target: str, text: str, inner: str = "") -> str:
        return f'<li><a href="#{escape(target)}">{escape(text)}</a>{inner}</li>'

    tables = "".join(item(f"table-{dataset}", _title(dataset)) for dataset in datasets)
    drawn = "".join(item(f"figures-{number}", section) for number, section in enumerate(figures, 1))
    return (
        "<ul>"
        + item("short", "In short")
        + item("how", "What was run, and how")
        + item("tables", "The paper's tables, next to ours", f"<ul>{tables}</ul>")
        + item("figures", "Figures", f"<ul>{drawn}</ul>" if drawn else "")
        + (item("audit", "The audit") if audit else "")
        + "</ul>"
    )


def _overview(rows: Sequence[Row]) -> str:
    """LMSSC on all data sets."""
    lines: list[list[str]] = []
    for row in rows:
        if row["method"] != "LMSSC":
            continue
        best = _best_other(rows, row)
        constant = _find(rows, row, CONSTANT)
        lines.append(
            [
                _title(row["dataset"]),
                _percent(row["rate"]),
                _spread(row, "paper"),
                _interval(row, "fixed"),
                _difference(row),
                _interval(row, "cv"),
                _interval(row, "best_by_test"),
                "–" if best is None else f"{best['fixed_mean']:.1f} {best['method']}",
                "–" if constant is None else _spread(constant, "fixed"),
            ]
        )
    head = [
        "data set",
        "labels",
        "paper: mean ± std",
        "ours, fixed defaults",
        "difference",
        "ours, cross-validated",
        "ours, oracle: chosen by test labels",
        "best other method here, fixed defaults",
        "constant answer",
    ]
    table = "<thead><tr>" + "".join(f'<th scope="col">{escape(text)}</th>' for text in head) + "</tr></thead><tbody>"
    for line in lines:
        cells = "".join(f"<td>{escape(text)}</td>" for text in line[1:])
        table += f'<tr><th scope="row">{escape(line[0])}</th>{cells}</tr>'
    caption = "<strong>LMSSC on all data sets</strong>, accuracy in %, with 95 % confidence intervals of our means"
    return box("overview", caption, table + "</tbody>")


# Heading of the group, heading of the column, and its text.
_COLUMNS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    ("paper", "name there", lambda row: row["paper_name"] or "–"),
    ("paper", "mean ± std", lambda row: _spread(row, "paper")),
    ("ours, fixed defaults", "mean ± std", lambda row: ("★ " if row["best"] else "") + _spread(row, "fixed")),
    ("ours, fixed defaults", "95 % interval", lambda row: _ends(row, "fixed")),
    ("ours, fixed defaults", "splits", lambda row: str(row["fixed_n"])),
    ("ours, fixed defaults", "difference to the paper", lambda row: _difference(row)),
    ("ours, fixed defaults", "balanced accuracy", lambda row: _spread(row, "fixed_balanced_accuracy")),
    ("ours, fixed defaults", "macro-F1", lambda row: _spread(row, "fixed_macro_f1")),
    ("ours, fixed defaults", "p against LMSSC", lambda row: _p_value(row["fixed_p_value"])),
    ("ours, parameters chosen", "by cross-validation", lambda row: _spread(row, "cv")),
    ("ours, parameters chosen", "oracle: by test labels", lambda row: _spread(row, "best_by_test")),
)


def _dataset(rows: Sequence[Row], dataset: str) -> str:
    """All methods on one data set."""
    groups = list(dict.fromkeys(group for group, _, _ in _COLUMNS))
    starts = {next(i for i, column in enumerate(_COLUMNS) if column[0] == group) for group in groups}
    edge = [' class="first"' if i in starts else "" for i in range(len(_COLUMNS))]
    table = '<thead><tr><th scope="col" rowspan="2">method</th>'
    for group in groups:
        span = sum(column[0] == group for column in _COLUMNS)
        table += f'<th scope="colgroup" colspan="{span}">{escape(group)}</th>'
    heads = (f'<th scope="col"{edge[i]}>{escape(column[1])}</th>' for i, column in enumerate(_COLUMNS))
    table += "</tr><tr>" + "".join(heads) + "</tr></thead>"
    for rate in _unique([row for row in rows if row["dataset"] == dataset], "rate"):
        mine = [row for row in rows if (row["dataset"], row["rate"]) == (dataset, rate)]
        top = max((row["fixed_mean"] for row in mine if _known(row, "fixed_mean")), default=math.nan)
        heading = f'<span class="stay">{_percent(rate)} of the labels given</span>'
        table += f'<tbody><tr><th scope="rowgroup" colspan="{len(_COLUMNS) + 1}">{heading}</th></tr>'
        for row in mine:
            cells = (
                f"<td{edge[i]}>{escape(column[2]({**row, 'best': row['fixed_mean'] == top}))}</td>"
                for i, column in enumerate(_COLUMNS)
            )
            table += f'<tr><th scope="row">{escape(row["method"])}</th>{"".join(cells)}</tr>'
        table += "</tbody>"
    name = _title(dataset)
    caption = f"<strong>{escape(name)}</strong>, accuracy in %. ★: best mean with fixed defaults at that rate"
    heading = f'<h3 id="table-{escape(dataset)}">{escape(name)}</h3>'
    return heading + box(f"full-{dataset}", caption, table)


def _runs(runs: Sequence[Mapping[str, str]]) -> str:
    """How many runs there were, how long they took, and which failed."""
    seconds = sum(float(run["fit_seconds"] or 0) for run in runs)
    failed = [run for run in runs if run["error"]]
    spent = f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
    text = f"<p>{len(runs)} runs of a method on a split, {spent} of fitting; {len(failed)} failed"
    if not failed:
        return text + ".</p>"
    first = failed[0]
    where = f"{first['method']} on {first['dataset']} at {_percent(float(first['rate']))}"
    return text + f", the first of them {escape(where)}: <code>{escape(first['error'])}</code>.</p>"


def _figure_sections(figures: Path, data: Path) -> dict[str, str]:
    """HTML of each kind of figure, by its heading."""
    sections: dict[str, list[str]] = {}
    for path in sorted(figures.glob("*.svg"), key=_figure_rank):
        about = data / f"{path.stem}.json"
        try:
            caption = json.loads(about.read_text(encoding="utf-8")) if about.is_file() else {}
        except ValueError as error:
            raise ValueError(f"{about} is not JSON: {error}") from error
        sections.setdefault(caption.get("section", "Other figures"), []).append(_figure(path, caption))
    return {
        section: f'<h3 id="figures-{number}">{escape(section)}</h3>' + "\n".join(drawn)
        for number, (section, drawn) in enumerate(sections.items(), 1)
    }


def _figure_rank(path: Path) -> tuple[int, int, str]:
    kind = next((i for i, start in enumerate(FIGURE_ORDER) if path.stem.startswith(start)), len(FIGURE_ORDER))
    dataset = next((i for i, name in enumerate(DATASETS) if path.stem.endswith(f"-{name}")), len(DATASETS))
    return kind, dataset, path.stem


def _figure(path: Path, caption: Mapping[str, str]) -> str:
    title = caption.get("title", path.stem)
    try:
        picture = inline_svg(path.read_text(encoding="utf-8"), f"{path.stem}-", caption.get("alt", title))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return (
        f'<figure id="figure-{escape(path.stem)}">'
        f'<div class="card" role="group" aria-label="{escape(title)}" tabindex="0">{picture}</div>'
        f"<figcaption><strong>{escape(title)}.</strong> {escape(caption.get('text', ''))}</figcaption></figure>"
    )


def _audit(folder: Path) -> str:
    """The audit's page and figures, or nothing if there is no audit."""
    if not (folder / "audit_summary.csv").is_file() or not (folder / "audit.md").is_file():
        return ""
    parts = [_figure(path, AUDIT_CAPTIONS.get(path.stem, {})) for path in [folder / "row-order.svg"] if path.is_file()]
    parts.append(markdown_to_html((folder / "audit.md").read_text(encoding="utf-8"), "audit"))
    return (
        '<section id="audit" aria-labelledby="audit-title"><h2 id="audit-title">The audit</h2>'
        "<p>What the order of the rows and the choice of parameters by test labels do to the results of the published "
        f"program; <code>lmssc audit</code> measures it.</p>{''.join(parts)}</section>"
    )


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def _read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _find(rows: Sequence[Row], like: Row, method: str) -> Row | None:
    """The row of another method in the same cell."""
    wanted = (like["dataset"], like["rate"], method)
    return next((row for row in rows if (row["dataset"], row["rate"], row["method"]) == wanted), None)


def _best_other(rows: Sequence[Row], like: Row) -> Row | None:
    """The best method with fixed defaults in the same cell that is no LMSSC and no constant answer."""
    others = [
        row
        for row in rows
        if (row["dataset"], row["rate"]) == (like["dataset"], like["rate"])
        and not row["method"].startswith("LMSSC")
        and row["method"] != CONSTANT
        and _known(row, "fixed_mean")
    ]
    return max(others, key=lambda row: row["fixed_mean"], default=None)


def _first_in_paper(cells: Sequence[Row]) -> int:
    """In how many cells the paper has LMSSC first."""
    best: dict[tuple[str, float], PaperCell] = {}
    for cell in paper_tables():
        key = (cell.dataset, cell.rate)
        best[key] = max(best.get(key, cell), cell, key=lambda each: each.mean)
    return sum(best[row["dataset"], row["rate"]].method == "LMSSC" for row in cells)


def _by_dataset(cells: Sequence[Row]) -> list[str]:
    """Cells as "Sonar 10 % (+2.3), 20 % (−1.0)", one text a data set."""
    texts = []
    for dataset in _unique(cells, "dataset"):
        parts = (
            f"{_percent(row['rate'])} ({_signed(row['fixed_mean'] - row['paper_mean'])})"
            for row in cells
            if row["dataset"] == dataset
        )
        texts.append(f"{_title(dataset)} {', '.join(parts)}")
    return texts


def _title(dataset: str) -> str:
    return NAMES.get(dataset, dataset)


def _known(row: Row, *names: str) -> bool:
    return not any(math.isnan(row[name]) for name in names)


def _sign(row: Row) -> str:
    """How ours compares with the paper's: by our interval, or by the means alone if there is none."""
    low, high = (row["fixed_mean"] if math.isnan(row[end]) else row[end] for end in ("fixed_ci_low", "fixed_ci_high"))
    return "▼" if row["paper_mean"] > high else "▲" if row["paper_mean"] < low else "≈"


def _difference(row: Row) -> str:
    if not _known(row, "paper_mean", "fixed_mean"):
        return "–"
    return f"{_sign(row)} {_signed(row['fixed_mean'] - row['paper_mean'])}"


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


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
        if _known(row, f"{prefix}_ci_low")
        else f"{mean:.1f}"
    )


def _p_value(p: float) -> str:
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _unique(rows: Iterable[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))
