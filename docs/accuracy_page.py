"""Charts and tables of docs/accuracy.md: LMSSC against the best other method, calibration, what its parts are worth."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jinja2 import Environment
from numpy.typing import NDArray
from scipy.stats import rankdata

from lmssc.metrics import paired_p_value
from lmssc.paper.markdown import markdown_table

REPRODUCTION = "results/reproduction/runs.csv"
OTHERS = ("msrc", "bbcsport", "leaves")
# Data that come with scikit-learn.
FRESH = ("cancer", "wine")
FOLDER = "results/accuracy"
# More of it, with fewer methods and splits; what is summed up.
FRESH_SETS = f"{FOLDER}/fresh.csv"
# Further methods on the same splits of these and other sets.
PEERS = f"{FOLDER}/peers.csv"
SUMMARY = ("accuracy", "balanced_accuracy", "calibration_error", "log_loss")
# What has its parameters chosen by the labels.
CHOSEN = "LMSSCCV"
# Points that count as level.
LEVEL = 0.25
# Not a method of its own: the same model, or none.
NOT_PEERS = ("LMSSC", "LMSSC (paper settings)", "constant answer")

# The chart: a filled dot for LMSSC, a hollow one for the best other method, and the difference in points.
CHART = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {{ height }}" width="720" height="{{ height }}" role="img" aria-label="{{ title }}; the tables have the numbers">
<style>
text { font: 13px system-ui, sans-serif; fill: #222; } .title { font-size: 15px; font-weight: 600; } .soft { fill: #555; }
.ground { fill: #fff; } .grid { stroke: #ddd; } .gap { stroke: #888; stroke-width: 2; } .ours { fill: #0072b2; } .other { fill: #fff; stroke: #b34a00; stroke-width: 2; }
.behind { fill: #b34a00; }
@media (prefers-color-scheme: dark) {
text { fill: #eee; } .soft { fill: #bbb; } .ground { fill: #1b1e22; } .grid { stroke: #3a3f45; } .gap { stroke: #999; } .ours { fill: #56b4e9; } .other { fill: #1b1e22; stroke: #f0a35e; } .behind { fill: #f0a35e; }
}
</style>
<rect class="ground" width="720" height="{{ height }}" rx="6"/>
<text class="title" x="16" y="26">{{ title }}</text>
<circle class="ours" cx="156" cy="48" r="6"/><text x="168" y="52">LMSSC, default parameters</text><circle class="other" cx="366" cy="48" r="5"/><text x="378" y="52">best other method, picked afterwards</text>
{% for value, x in ticks %}<path class="grid" d="M{{ x }} 66V{{ height - 32 }}"/><text class="soft" x="{{ x }}" y="{{ height - 14 }}" text-anchor="middle">{{ value }} %</text>
{% endfor %}{% for row in rows %}<text x="140" y="{{ row.y + 4 }}" text-anchor="end">{{ row.name }}</text><path class="gap" d="M{{ row.other }} {{ row.y }}H{{ row.ours }}"/><circle class="other" cx="{{ row.other }}" cy="{{ row.y }}" r="5"/><circle class="ours" cx="{{ row.ours }}" cy="{{ row.y }}" r="6"/><text{% if not row.ahead %} class="behind"{% endif %} x="700" y="{{ row.y + 4 }}" text-anchor="end">{{ row.gain }}</text>
{% endfor %}</svg>"""  # noqa: E501

# Data set → rate → method → split → value.
Values = dict[str, dict[float, dict[str, dict[int, float]]]]


def read_runs(root: Path, metric: str) -> Values:
    """One metric of all runs with default parameters, on the paper's data sets and the others."""
    return {**read_csv(root / REPRODUCTION, metric), **comparisons(root, OTHERS, metric)}


def comparisons(root: Path, names: Sequence[str], metric: str) -> Values:
    """One metric of all runs of `lmssc compare` on some data sets, which have a CSV each."""
    return {name: read_csv(root / FOLDER / f"{name}.csv", metric, name)[name] for name in names}


def read_csv(path: Path, metric: str, name: str | None = None) -> Values:
    """One metric of the runs in a CSV with fixed defaults; `name` is the data set where it has no such column."""
    values: Values = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    with open(path, encoding="utf-8", newline="") as file:
        for run in csv.DictReader(file):
            if run.get("column", "fixed") == "fixed" and not run.get("error"):
                cell = values[name or run["dataset"]][float(run["rate"])]
                cell[run["method"]][int(run["repeat"])] = float(run[metric])
    return values


def leaders_markdown(values: Values) -> str:
    r"""LMSSC and how far it is ahead of the best other method, in percent: data sets by shares of labels.

    Parameters
    ----------
    values : dict
        The runs of all methods.

    Returns
    -------
    str
        Mean ± standard deviation of LMSSC, then the difference to the best other method; bold if the paired test gives
        p < 0.05.

    Examples
    --------
    >>> values = {"a": {0.1: {"LMSSC": {0: 0.9, 1: 0.8}, "1-NN": {0: 0.7, 1: 0.7}, "SVC": {0: 0.6, 1: 0.7}}}}
    >>> print(leaders_markdown(values).replace("\xa0", " "))
    | data | 10 % |
    | --- | --- |
    | a | 85.0 ± 7.1 <br>+15.0 1-NN |
    >>> values["a"][0.1]["1-NN"] = {0: 0.7, 1: 0.601}
    >>> "<br>**+20.0** 1-NN" in leaders_markdown(values)
    True
    """
    shares = sorted({rate for rates in values.values() for rate in rates})
    lines = [
        (name, *(_lead(rates[rate]) if rate in rates else "" for rate in shares)) for name, rates in values.items()
    ]
    return markdown_table(("data", *map(_percent, shares)), lines)


def _lead(methods: Mapping[str, Mapping[int, float]]) -> str:
    """A cell of `leaders_markdown`."""
    ours = methods["LMSSC"]
    best, best_mean = best_peer(methods)
    numbers = 100 * np.array(list(ours.values()))
    gain = numbers.mean() - 100 * best_mean
    shown = f"{gain:+.1f}"
    if abs(gain) > 1e-9 and paired_p_value(ours, methods[best]) < 0.05:
        shown = f"**{shown}**"
    return f"{numbers.mean():.1f} ± {numbers.std(ddof=1):.1f} <br>{shown} {shortened(best)}"


def shortened(method: str) -> str:
    """Name of a method without its library, and without what holds of all methods that take one table.

    Examples
    --------
    >>> shortened("GFHF (concatenated)"), shortened("Poisson (graphlearning)"), shortened("SVC (RBF)")
    ('GFHF', 'Poisson', 'SVC (RBF)')
    """
    for ending in (" (concatenated)", " (graphlearning)", " (scikit-network)"):
        method = method.removesuffix(ending)
    return method


def _percent(rate: float) -> str:
    return f"{rate:.0%}".replace("%", " %")


def best_peer(methods: Mapping[str, Mapping[int, float]]) -> tuple[str, float]:
    """Name and mean of the method with the highest mean, of those that are not LMSSC.

    Examples
    --------
    >>> best_peer({"LMSSC": {0: 0.9}, "1-NN": {0: 0.7, 1: 0.8}, "SVC": {0: 0.7}})
    ('1-NN', 0.75)
    """
    means = {name: float(np.mean(list(v.values()))) for name, v in methods.items() if name not in NOT_PEERS}
    best = max(means, key=means.__getitem__)
    return best, means[best]


def summary_markdown(metrics: Mapping[str, Values]) -> str:
    """Each method over all cells, a cell being a data set with a share of labels.

    Parameters
    ----------
    metrics : dict of dict
        The runs of all methods, by metric; all of `SUMMARY`.

    Returns
    -------
    str
        The means of the metrics, the mean rank by accuracy (1 is the best; equals share theirs), and in how many cells
        no other method is more accurate; the most accurate first.

    Examples
    --------
    >>> cells = {0.1: {"LMSSC": {0: 0.9, 1: 0.8}, "1-NN": {0: 0.7, 1: 0.7}}, 0.3: {"LMSSC": {0: 0.9}, "1-NN": {0: 0.9}}}
    >>> print(summary_markdown(dict.fromkeys(SUMMARY, {"a": cells})).splitlines()[2])
    | LMSSC | 87.5 | 87.5 | 0.875 | 0.88 | 1.25 | 2 of 2 |
    """
    methods = list(dict.fromkeys(m for rates in metrics["accuracy"].values() for cell in rates.values() for m in cell))
    means = {metric: _cell_means(values, methods) for metric, values in metrics.items()}
    # Rounded, so that methods with the same answers are equal whatever the order of the sum.
    accuracies = means["accuracy"].round(9)
    ranks = rankdata(-accuracies, axis=1).mean(axis=0)
    best = (accuracies == accuracies.max(axis=1, keepdims=True)).sum(axis=0)
    overall = {metric: cells.mean(axis=0) for metric, cells in means.items()}
    lines = [
        (
            methods[i],
            f"{100 * overall['accuracy'][i]:.1f}",
            f"{100 * overall['balanced_accuracy'][i]:.1f}",
            f"{overall['calibration_error'][i]:.3f}",
            f"{overall['log_loss'][i]:.2f}",
            f"{ranks[i]:.2f}",
            f"{best[i]} of {len(accuracies)}",
        )
        for i in np.argsort(-overall["accuracy"], kind="stable")
    ]
    head = ("", *(metric.replace("_", " ") for metric in SUMMARY), "mean rank", "best in")
    return markdown_table(head, lines)


def joined(one: Values, other: Values) -> Values:
    """The runs of `one`, with those of further methods on its data sets.

    Examples
    --------
    >>> joined({"a": {0.1: {"LMSSC": {0: 0.9}}}}, {"a": {0.1: {"Ridge": {0: 0.8}}}, "b": {}})
    {'a': {0.1: {'LMSSC': {0: 0.9}, 'Ridge': {0: 0.8}}}}
    """
    return {
        name: {rate: {**cell, **other.get(name, {}).get(rate, {})} for rate, cell in rates.items()}
        for name, rates in one.items()
    }


def _cell_means(values: Values, methods: Sequence[str]) -> NDArray:
    """Means over the splits, cells by methods."""
    cells = [rates[rate] for rates in values.values() for rate in sorted(rates)]
    return np.array([[np.mean(list(cell[method].values())) for method in methods] for cell in cells])


def calibration_markdown(values: Values, methods: Sequence[str]) -> str:
    """Expected calibration error of some methods, the mean over the rates of each data set and over its splits.

    Examples
    --------
    >>> values = {"a": {0.1: {"LMSSC": {0: 0.02}, "SVC": {0: 0.2}}, 0.2: {"LMSSC": {0: 0.04}, "SVC": {0: 0.4}}}}
    >>> print(calibration_markdown(values, ["LMSSC", "SVC"]).splitlines()[2])
    | a | 0.030 | 0.300 |
    """
    lines = []
    for name, rates in values.items():
        means = [np.mean([np.mean(list(rates[rate][method].values())) for rate in rates]) for method in methods]
        lines.append((name, *(f"{mean:.3f}" for mean in means)))
    return markdown_table(("data", *methods), lines)


def parts_markdown(path: Path) -> str:
    """Methods by data sets and rates, from a CSV of means, with the mean over all."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    cells = list(dict.fromkeys((row["dataset"], float(row["rate"])) for row in rows))
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        means = {(r["dataset"], float(r["rate"])): 100 * float(r["mean"]) for r in rows if r["method"] == method}
        numbers = [means[cell] for cell in cells]
        lines.append((method, *(f"{number:.1f}" for number in numbers), f"{np.mean(numbers):.2f}"))
    return markdown_table(("", *(f"{name} {_percent(rate)}" for name, rate in cells), "mean"), lines)


def gains_markdown(path: Path) -> str:
    """By how many points the first method of a CSV of means is ahead of the second: data sets by shares of labels."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first, second = dict.fromkeys(row["method"] for row in rows)
    means = {(row["dataset"], float(row["rate"]), row["method"]): 100 * float(row["mean"]) for row in rows}
    gains = {(name, rate): means[name, rate, first] - means[name, rate, second] for name, rate, _ in means}
    shares = sorted({rate for _, rate in gains})
    lines = [
        (name, *(f"{gains[name, rate]:+.1f}" if (name, rate) in gains else "" for rate in shares))
        for name in dict.fromkeys(name for name, _ in gains)
    ]
    lines.append((f"mean of all {len(gains)}: {np.mean(list(gains.values())):+.1f}", *("" for _ in shares)))
    return markdown_table(("data", *map(_percent, shares)), lines)


def scaling_markdown(path: Path) -> str:
    """What each rule of scaling is worth: gains in points by share of labels, from the CSV of benchmarks/scaling.py.

    A rule is named in the first of its lines. Sets that it does not touch, and whose gain is zero whatever its
    threshold, are in one line.
    """
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = []
    for rule in dict.fromkeys(row["rule"] for row in rows):
        label, untouched = rule, []
        for name in dict.fromkeys(row["dataset"] for row in rows if row["rule"] == rule):
            cells = [row for row in rows if (row["rule"], row["dataset"]) == (rule, name)]
            gain, without = ([float(row[column]) for row in cells] for column in ("gain", "gain_without"))
            if not any([*gain, *without]):
                untouched.append(name)
                continue
            errors = [float(row["error"] or "nan") for row in cells]
            found = ", ".join(
                f"{one:+.1f}" if np.isnan(error) else f"{one:+.1f} ± {error:.1f}"
                for one, error in zip(gain, errors, strict=True)
            )
            other = ", ".join(f"{one:+.1f}" for one in without)
            same = other == ", ".join(f"{one:+.1f}" for one in gain)
            lines.append((label, name, cells[0]["n"], found, "same" if same else other))
            label = ""
        if untouched:
            lines.append((label, f"not touched: {', '.join(untouched)}", "", "0", ""))
    head = ("rule", "data", "splits", "gain with 5, 10, 30 % labels", "with a threshold chosen without this set")
    return markdown_table(head, lines)


def opinion_markdown(path: Path) -> str:
    """Gains of a rule on sets that had no part in choosing its costs, from second_opinion.py or view_graph.py.

    Sets that hardly change are counted in one line.
    """
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    shares = [column for column in rows[0] if column.startswith("at ")]
    gains = np.array([[float(row[column]) for column in shares] for row in rows])
    touched = (np.abs(gains) > LEVEL).any(axis=1)
    lines = [
        (row["dataset"], *(f"{gain:+.1f}" for gain in one))
        for row, one, changes in zip(rows, gains, touched, strict=True)
        if changes
    ]
    lines.append((f"{int((~touched).sum())} sets within ±{LEVEL}", *("" for _ in shares)))
    lines.append((f"mean of all {len(rows)}", *(f"{mean:+.2f}" for mean in gains.mean(axis=0))))
    return markdown_table(("data", *(f"{column.removeprefix('at ')} labels" for column in shares)), lines)


def floor_markdown(path: Path, names: Iterable[str]) -> str:
    """Calibration error and its floor by share of labels, over all sets of benchmarks/calibration_floor.py and `names`.

    Sets count equally, however many splits they have.
    """
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ("calibration_error", "floor", "accuracy", "confidence")
    groups = (set(names), {row["dataset"] for row in rows})
    lines = []
    for rate in sorted({row["rate"] for row in rows}, key=float):
        for group in groups:
            cells = [[row for row in rows if (row["dataset"], row["rate"]) == (name, rate)] for name in sorted(group)]
            means = np.array([[np.mean([float(row[key]) for row in cell]) for key in columns] for cell in cells])
            error, floor, right, sure = means.mean(axis=0)
            chance = sum(float(row["calibration_error"]) <= float(row["floor_95"]) for cell in cells for row in cell)
            total = sum(map(len, cells))
            numbers = (f"{error:.3f}", f"{floor:.3f}", f"{sure - right:+.3f}", f"{chance} of {total}")
            lines.append((_percent(float(rate)), str(len(group)), *numbers))
    head = ("labels", "sets", "measured", "floor", "confidence − accuracy", "fits within chance")
    return markdown_table(head, lines)


def accuracy_chart(values: Values, title: str) -> str:
    """LMSSC and the best other method on each data set as an SVG with a row for each.

    Parameters
    ----------
    values : dict
        Accuracies of all methods. Of each data set the mean over its shares of labels is drawn; the best other method
        is picked for each share.
    title : str
        What the chart shows.

    Returns
    -------
    str
        An SVG file. It has a background of its own, so it can be read on a light and on a dark page.

    Examples
    --------
    >>> values = {"a & b": {0.1: {"LMSSC": {0: 0.9}, "1-NN": {0: 0.7}}}}
    >>> chart = accuracy_chart(values, "Made up")
    >>> "a &amp; b" in chart, "+20.0" in chart
    (True, True)
    """
    means = {}
    for name, rates in values.items():
        ours = np.mean([np.mean(list(methods["LMSSC"].values())) for methods in rates.values()])
        means[name] = 100 * ours, 100 * np.mean([best_peer(methods)[1] for methods in rates.values()])
    low = min(50, 10 * np.floor(min(map(min, means.values())) / 10))
    return (
        Environment(autoescape=True)
        .from_string(CHART)
        .render(
            title=title,
            height=110 + 24 * len(means),
            ticks=[(f"{value:g}", f"{_across(value, low):.1f}") for value in np.arange(low, 101, 10)],
            rows=[
                {
                    "name": name,
                    "y": 84 + 24 * i,
                    "ours": f"{_across(means[name][0], low):.1f}",
                    "other": f"{_across(means[name][1], low):.1f}",
                    "gain": f"{means[name][0] - means[name][1]:+.1f}".replace("-", "−"),
                    "ahead": means[name][0] >= means[name][1],
                }
                for i, name in enumerate(sorted(means, key=lambda name: means[name][1] - means[name][0]))
            ],
        )
        + "\n"
    )


def _across(value: float, low: float) -> float:
    """Position of an accuracy in percent along the axis of a chart that begins at `low`."""
    return 150 + 480 * (value - low) / (100 - low)


def accuracy_charts(root: Path) -> dict[str, str]:
    """Charts of the page as SVG, by the path of their file below `root`."""
    fresh = joined(read_csv(root / FRESH_SETS, "accuracy"), read_csv(root / PEERS, "accuracy"))
    return {
        "docs/charts/accuracy-fresh.svg": accuracy_chart(fresh, f"Accuracy on {len(fresh)} other data sets"),
        "docs/charts/accuracy-paper.svg": accuracy_chart(
            read_runs(root, "accuracy"), "Accuracy on the data sets of the paper and three more"
        ),
    }


def accuracy_blocks(root: Path) -> dict[str, str]:
    """Blocks of the page in Markdown by name, from the CSV files that exist."""
    compared = ("LMSSC", "LabelSpreading", "SVC (RBF)", "SVC (linear)", "LogisticRegression", "GFHF (concatenated)")
    fresh = {metric: read_csv(root / FRESH_SETS, metric) for metric in SUMMARY}
    peers = read_csv(root / PEERS, "accuracy")
    blocks = {
        "leaders": leaders_markdown(read_runs(root, "accuracy")),
        "leaders in balanced accuracy": leaders_markdown(_only(read_runs(root, "balanced_accuracy"), ["bbc"])),
        "fresh data": leaders_markdown(comparisons(root, FRESH, "accuracy")),
        "fresh summary": summary_markdown(fresh),
        "fresh cells": leaders_markdown(joined(fresh["accuracy"], peers)),
        "calibration": calibration_markdown(read_runs(root, "calibration_error"), compared),
    }
    blocks["calibration floor"] = floor_markdown(root / FOLDER / "calibration_floor.csv", fresh["accuracy"])
    blocks["scaling"] = scaling_markdown(root / FOLDER / "scaling.csv")
    blocks["second opinion"] = opinion_markdown(root / FOLDER / "second_opinion_loso.csv")
    blocks["view graph"] = opinion_markdown(root / FOLDER / "view_graph_loso.csv")
    blocks["view forms"] = opinion_markdown(root / FOLDER / "view_forms_loso.csv")
    blocks["alternation"] = gains_markdown(root / FOLDER / "alternation.csv")
    blocks["ablation"] = parts_markdown(root / FOLDER / "ablation.csv")
    return blocks


def _only(values: Values, names: Iterable[str]) -> Values:
    return {name: values[name] for name in names}
