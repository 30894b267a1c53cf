"""The figures of results/speed: growth over samples, growth over all else, and where the time goes."""

import json

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator
from speed_cases import PARTS
from speed_data import USUAL
from speed_table import COMPARED, seconds

from lmssc.plotting.style import COLOURS, MARKERS

AXES = {"features": "features D", "views": "views V", "classes": "classes c", "components": "dimensions r"}
MEASURES = {"wall": "seconds", "megabytes": "MB"}


def draw_figures(rows, folder):
    """All figures, as SVG."""
    with rc_context({"svg.hashsalt": "lmssc", "font.size": 9}):
        for name, draw in (("samples", over_samples), ("shapes", over_shapes), ("parts", parts)):
            draw([row for row in rows if row["wall"]]).savefig(folder / f"{name}.svg", metadata={"Date": None})


def varied(rows, name):
    """Rows of LMSSC in which only one number of the shape differs from the default, by that number."""
    others = [other for other in AXES if other != name]
    chosen = [
        row
        for row in rows
        if row["data"] == "growth"
        and row["wall"]
        and row[name] != "auto"
        and all(row[other] == str(USUAL[other]) for other in others)
    ]
    return sorted(chosen, key=lambda row: int(row[name]))


def by_samples(rows, **wanted):
    """Rows by the number of samples."""
    chosen = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return sorted(chosen, key=lambda row: int(row["samples"]))


def over_samples(rows):
    """Seconds and memory of LMSSC and its peers over the number of samples, on logarithmic axes."""
    figure = Figure(figsize=(11, 5.5), layout="constrained")
    panels = figure.subplots(1, 2)
    lines = {}
    for number, case in enumerate(COMPARED):
        for dtype, style in (("float64", "-"), ("float32", "--")):
            chosen = by_samples(rows, case=case, data="synthetic", dtype=dtype, threads="1")
            look = {"ls": style, "color": COLOURS[number], "marker": MARKERS[number % len(MARKERS)], "ms": 4}
            lines[case if style == "-" else f"_{case}"] = chosen, look  # what begins with _ is not in the legend
    chosen = by_samples(rows, case="LMSSC", data="million", threads="2")
    lines["LMSSC, 3 views, 100 features, float32, 2 threads"] = chosen, {"color": "black", "lw": 2.5, "marker": "o"}
    for axes, (measure, label) in zip(panels, MEASURES.items(), strict=True):
        for name, (line, look) in lines.items():
            if line:
                x, y = zip(*((int(row["samples"]), float(row[measure])) for row in line), strict=True)
                axes.plot(x, y, label=name, **look)
        if chosen and measure == "wall":
            last = chosen[-1]
            ends = [1000, int(last["samples"])]
            axes.plot(
                ends, [seconds(last) * n / ends[1] for n in ends], color="grey", ls=":", label="in proportion to N"
            )
        axes.set(xscale="log", yscale="log", xlabel="samples N", ylabel=label)
        axes.grid(alpha=0.3)
    figure.suptitle("Where nothing else is said 6 views, 600 features, 1 thread, float64 (dashed: float32)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    return figure


def over_shapes(rows):
    """Seconds and memory of LMSSC over features, views, classes and dimensions."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    panels = figure.subplots(2, len(AXES), sharex="col", sharey="row", squeeze=False)
    for column, (name, label) in zip(panels.T, AXES.items(), strict=True):
        chosen = varied(rows, name)
        x = [int(row[name]) for row in chosen]
        for axes, measure in zip(column, MEASURES, strict=True):
            axes.plot(x, [float(row[measure]) for row in chosen], "o-", color=COLOURS[0])
            axes.set_xscale("log")
            axes.set_xticks(x, [f"{value:,}" for value in x])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.grid(alpha=0.3)
        column[-1].set_xlabel(label)
    for axes, label in zip(panels[:, 0], MEASURES.values(), strict=True):
        axes.set(ylabel=label, ylim=(0, None))
    figure.suptitle("LMSSC on 10,000 samples; where they do not vary: 6 views, 600 features, 10 classes, r by default")
    return figure


def fits_in_parts(rows):
    """Whole fits with known times of their parts, and their names, by the number of samples."""
    named = [
        *(
            ("6 views, 600 features, 1 thread", row)
            for row in by_samples(rows, case="LMSSC", data="synthetic", threads="1")
        ),
        *(
            ("3 views, 100 features, 2 threads", row)
            for row in by_samples(rows, case="LMSSC", data="million", threads="2")
        ),
    ]
    return [(f"{int(row['samples']):,}, {row['dtype']}", shape, row) for shape, row in named if row["wall"]]


def shares(row):
    """Percentage of the time of each part of a fit."""
    spent = json.loads(row["detail"])["parts"]
    return {part: 100 * spent[part] / sum(spent.values()) for part in PARTS}


def parts(rows):
    """Where the time of a fit goes: shares of the updates, and the seconds at the end of each bar."""
    fits = fits_in_parts(rows)[::-1]
    figure = Figure(figsize=(11, 1.6 + 0.35 * len(fits)), layout="constrained")
    axes = figure.subplots()
    for y, (_, _, row) in enumerate(fits):
        left = 0.0
        for part, share in shares(row).items():
            axes.barh(y, share, left=left, color=COLOURS[PARTS.index(part)])
            left += share
        axes.text(101, y, f"{seconds(row):.3g} s", va="center")
    axes.set_yticks(range(len(fits)), [f"{name}\n{shape}" for name, shape, _ in fits], fontsize=7)
    axes.set(
        xlim=(0, 110), xticks=range(0, 101, 20), xlabel="% of the time of a whole fit", title="Where the time goes"
    )
    handles = [Patch(color=COLOURS[number], label=part) for number, part in enumerate(PARTS)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(PARTS), fontsize=7)
    return figure
