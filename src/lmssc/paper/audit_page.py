"""The audit as a Markdown page and a figure."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lmssc._optional import import_optional
from lmssc.paper.audit_runs import ARMS
from lmssc.paper.markdown import markdown_table
from lmssc.paper.printed_tables import DATASETS, interval_half_width
from lmssc.persistence.atomic import open_atomically

Record = dict[str, Any]
STYLE = {"svg.hashsalt": "lmssc", "font.size": 9}
# The arms differ in marker and lightness as well as in colour.
LOOKS = {
    "paper": {"marker": "D", "color": "#000000", "mfc": "white"},
    "sorted": {"marker": "o", "color": "#D55E00"},
    "shuffled": {"marker": "s", "color": "#0072B2"},
    "mended": {"marker": "^", "color": "#009E73"},
    "lmssc": {"marker": "v", "color": "#000000"},
}


def write_page(rows: Sequence[Record], out: Path, *, figures: bool = True) -> list[Path]:
    """Write ``audit.md`` and the figure ``row-order`` as SVG and PNG.

    Parameters
    ----------
    rows : sequence of dict
        The summary.
    out : Path
        Output folder.
    figures : bool
        Whether to draw the figure.

    Returns
    -------
    list of Path
        The files written.
    """
    written = [out / "audit.md"]
    with open_atomically(written[0]) as file:
        file.write(make_page(rows).encode())
    if figures and any(row["part"] == "row order" for row in rows):
        figure = draw_row_order(rows)
        for suffix, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            written.append(out / f"row-order.{suffix}")
            picture = io.BytesIO()
            with import_optional("matplotlib", purpose="figures", extra="plot").rc_context(STYLE):
                figure.savefig(picture, format=suffix, dpi=200, metadata=metadata)
            with open_atomically(written[-1]) as file:
                file.write(picture.getvalue())
    return written


def make_page(rows: Sequence[Record]) -> str:
    """The tables of the audit in Markdown."""
    return "\n\n".join([_row_order(rows), _choice(rows), _constant(rows), _sensitivity(rows)]) + "\n"


def _row_order(rows: Sequence[Record]) -> str:
    text = [
        "## Row order",
        "The published program on rows in the file's order, which is class order, and on shuffled rows: the same data, "
        "labelled samples, start and grid, and for each draw the best test accuracy of the grid, as the program does. "
        '"Mended" puts the rows of its class scores into the order of the data. Accuracy in percent: mean ± deviation '
        "over draws, and the 95 % confidence interval of the mean. LMSSC() has its defaults and no choice.",
    ]
    body, head = [], ["data, labels", "draws", "paper", *(ARMS[arm] for arm in ARMS if arm != "held-out")]
    for dataset, rate in _sets(rows, "row order"):
        here = {
            row["what"]: row
            for row in rows
            if (row["part"], row["dataset"], row["rate"]) == ("row order", dataset, rate)
        }
        first = next(iter(here.values()))
        paper = "" if first["paper_mean"] is None else f"{first['paper_mean']:.1f} ± {first['paper_std']:.1f}"
        counts = sorted({row["n"] for row in here.values()})
        draws = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
        body.append([_set(dataset, rate), draws, paper, *(_mean(here.get(name)) for name in head[3:])])
    text.append(markdown_table(head, body))
    text.append(_differences(rows, "row order, difference"))
    return "\n\n".join(text)


def _choice(rows: Sequence[Record]) -> str:
    text = [
        "## Choice of the setting",
        "The best of 18 settings by test accuracy, draw by draw, against choices made without that draw's. "
        '"Best on the other draws" is the setting with the best mean on all other draws (which score some of the same '
        'samples, so it is not blind to their labels, but it cannot follow the chance of a draw); "best on held-out '
        'labels" holds out a third of the labelled rows in turn and chooses by them alone.',
    ]
    start = "choice of the setting, "
    parts = dict.fromkeys(row["part"] for row in rows if row["part"].startswith(start))
    whats = list(
        dict.fromkeys(row["what"] for row in rows if row["part"] in parts and not row["part"].endswith("difference"))
    )
    body = []
    for part in (part for part in parts if not part.endswith("difference")):
        for dataset, rate in _sets(rows, part):
            here = {
                row["what"]: row for row in rows if (row["part"], row["dataset"], row["rate"]) == (part, dataset, rate)
            }
            body.append([_set(dataset, rate), part.removeprefix(start), *(_mean(here.get(what)) for what in whats)])
    text.append(markdown_table(["data, labels", "rows", *whats], sorted(body)))
    text.append(_differences(rows, f"{start}{ARMS['mended']}, difference"))
    return "\n\n".join(text)


def _constant(rows: Sequence[Record]) -> str:
    constant = [row for row in rows if row["part"] == "constant"]
    cells = [row for row in rows if row["part"] == "constant, paper"]
    rates = sorted({row["rate"] for row in constant})
    body = []
    for what in dict.fromkeys(row["what"] for row in constant):
        values = [next(row for row in constant if (row["what"], row["rate"]) == (what, rate)) for rate in rates]
        body.append(
            [f"constant: {what.replace('_', ' ')}", *(f"{row['mean']:.1f} ± {row['std']:.1f}" for row in values)]
        )
    for method in dict.fromkeys(row["what"] for row in cells):
        values = [next(row for row in cells if (row["what"], row["rate"]) == (method, rate)) for rate in rates]
        body.append(
            [f"paper: {method}", *(f"{row['paper_mean']:.1f} ± {row['paper_std']:.1f}{_mark(row)}" for row in values)]
        )
    by_deviation = sum(abs(row["mean"]) <= row["std"] for row in cells)
    by_interval = sum(row["low"] <= 0 <= row["high"] for row in cells)
    share = next(iter(cells))["paper_mean"] - next(iter(cells))["mean"]
    return "\n\n".join(
        [
            "## BBC and a constant answer",
            f"134 of BBC's 145 samples are of one class: always answering it is right for {share:.1f} % of "
            "them. Its scores on the rows without a label, over 20 draws by the program's rule, next to the paper's "
            "accuracies. Percent, mean ± deviation.",
            markdown_table(["", *(f"{100 * rate:g} % labels" for rate in rates)], body),
            f"\\* within one standard deviation of {share:.1f} %: {by_deviation} of {len(cells)} cells; "
            f"† the 95 % confidence interval of the cell's mean (20 draws) contains it: {by_interval} of {len(cells)}.",
        ]
    )


def _mark(row: Record) -> str:
    return ("\\*" if abs(row["mean"]) <= row["std"] else "") + ("†" if row["low"] <= 0 <= row["high"] else "")


def _sensitivity(rows: Sequence[Record]) -> str:
    found = [row for row in rows if row["part"] == "order"]
    text = ["## Any estimator under a permutation of rows"]
    if not found:
        return "\n\n".join([*text, "Not run yet."])
    text.append(
        f"`lmssc.audit.order_sensitivity` on {_set(found[0]['dataset'], found[0]['rate'])}, rows in class order and "
        f"{found[0]['n']} permutations of them. Labels of unlabelled samples that change, in percent; where a method "
        "has a random start, how many change by other starts alone."
    )
    head = [
        "method",
        "change, mean",
        "at most",
        "probabilities, at most",
        "by other starts",
        "accuracy, class order",
        "permuted",
    ]
    body = [
        [
            row["what"],
            f"{row['mean']:.1f}",
            f"{row['largest_change']:.1f}",
            f"{row['largest_probability_change']:.2g}",
            "–" if row["changed_by_seed"] is None else f"{row['changed_by_seed']:.1f}",
            f"{row['accuracy_given']:.1f}",
            f"{row['accuracy_permuted']:.1f}",
        ]
        for row in found
    ]
    return "\n\n".join([*text, markdown_table(head, body)])


def _differences(rows: Sequence[Record], part: str) -> str:
    found = [row for row in rows if row["part"] == part]
    whats = list(dict.fromkeys(row["what"] for row in found))
    body = []
    for dataset, rate in _sets(rows, part):
        here = {row["what"]: row for row in found if (row["dataset"], row["rate"]) == (dataset, rate)}
        body.append([_set(dataset, rate), *(_mean(here.get(what), "+.1f") for what in whats)])
    if not body:
        return "Differences on the same draws: not run yet."
    return "Differences on the same draws, in points:\n\n" + markdown_table(["data, labels", *whats], body)


def _sets(rows: Iterable[Record], part: str) -> list[tuple[str, float]]:
    return list(dict.fromkeys((row["dataset"], row["rate"]) for row in rows if row["part"] == part))


def _set(dataset: str, rate: float) -> str:
    return f"{DATASETS[dataset]} {100 * rate:g} %"


def _mean(row: Record | None, form: str = ".1f") -> str:
    if row is None:
        return "–"
    if row["n"] < 3:  # too few for an interval
        return f"{row['mean']:{form}} ({row['n']} draw{'s' if row['n'] > 1 else ''})"
    return f"{row['mean']:{form}} ± {row['std']:.1f} ({row['low']:{form}} to {row['high']:{form}})"


def draw_row_order(rows: Sequence[Record]) -> Any:
    """Draw the accuracy for each row order with its 95 % confidence interval, next to the paper's."""
    matplotlib = import_optional("matplotlib", purpose="figures", extra="plot")
    figures = import_optional("matplotlib.figure", purpose="figures", extra="plot")
    sets = _sets(rows, "row order")
    with matplotlib.rc_context(STYLE):
        figure = figures.Figure(figsize=(7, 1.2 + 0.9 * len(sets)), layout="constrained")
        ax = figure.subplots()
        named = {arm: _label(arm) for arm in LOOKS}  # each arm is in the legend once
        for place, (dataset, rate) in enumerate(sets):
            here = {
                row["what"]: row
                for row in rows
                if (row["part"], row["dataset"], row["rate"]) == ("row order", dataset, rate)
            }
            for number, (arm, look) in enumerate(LOOKS.items()):
                row = next(iter(here.values())) if arm == "paper" else here.get(ARMS[arm])
                if row is None or (arm == "paper" and row["paper_mean"] is None):
                    continue
                mean, half = row["mean"], row["high"] - row["mean"]
                if arm == "paper":
                    mean, half = row["paper_mean"], interval_half_width(row["paper_std"])
                ax.errorbar(
                    mean, place + 0.15 * (number - 2), xerr=half, ls="", capsize=3, ms=5.5, lw=1.2, **look,
                    label=named.pop(arm, None),
                )  # fmt: skip
        ax.set_yticks(range(len(sets)), [f"{_set(*one)} labels" for one in sets])
        ax.set_ylim(len(sets) - 0.5, -0.5)
        for line in range(1, len(sets)):
            ax.axhline(line - 0.5, color="0.85", lw=0.8)
        ax.grid(axis="x", color="0.9")
        ax.set_axisbelow(True)
        ax.set_xlabel("accuracy % (mean over draws, 95 % confidence interval)")
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def _label(arm: str) -> str:
    names = {"paper": "paper, LMSSC", "lmssc": "LMSSC() here, shuffled rows, defaults"}
    return names.get(arm, f"program, {ARMS.get(arm)}")
