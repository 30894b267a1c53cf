"""results/speed/shapes.md and shape_ratios.svg: each shape beside work of the same size, before and now."""

import json

from matplotlib import rc_context
from matplotlib.figure import Figure

from lmssc.paper.markdown import markdown_table
from lmssc.plotting.style import COLOURS

INTRODUCTION = """\
# Shapes

Written by `make bench` (`benchmarks/speed_shapes.py`) from `shape_ratios.csv`. Each fit is compared, in the same
process, with work of the same size: `LabelSpreading` with a kNN kernel, or scikit-learn's `randomized_svd` (80
components of wide dense data, 150 of the CSR of Cora and ACM, which LMSSC gets as dense arrays). Seconds are those of
the processor on one thread. "first" is the first fit of a process, "next" another one of the same data; the ratio is
that of the next fit. Memory is what the first fit adds to the peak of the process, as a multiple of the bytes of the
input; the peak is that of the whole process. "before" is the version before the work on shapes.
"""


def write_shapes(rows, goals, folder):
    """The page and the figure."""
    versions = sorted({version for _, version in rows}, key=lambda version: version != "before")
    lines = []
    for shape, goal in goals.items():
        for version in versions:
            row = rows.get((shape, version))
            if row is not None:
                numbers = [row.get(name) or "" for name in ("lmssc", "next", "peer", "ratio")]
                aim = "" if goal is None else f"≤ {goal}"
                sizes = [row["memory"], row.get("peak") or ""]
                lines.append([shape, version, *numbers, aim, *sizes, f"{float(row['accuracy']):.1f}"])
    head = [
        "shape",
        "version",
        "first, s",
        "next, s",
        "other work, s",
        "ratio",
        "goal",
        "memory ×",
        "peak, GB",
        "accuracy %",
    ]
    sections = [
        INTRODUCTION,
        markdown_table(head, lines),
        "![Ratio of each shape, before and now](shape_ratios.svg)",
        "## Where the time goes",
        "Seconds of the processor in the next fit.",
        markdown_table(*parts_table(rows, goals, versions)),
    ]
    (folder / "shapes.md").write_text("\n\n".join(section.strip() for section in sections) + "\n")
    with rc_context({"svg.hashsalt": "lmssc", "font.size": 9}):
        draw(rows, goals, versions).savefig(folder / "shape_ratios.svg", metadata={"Date": None})


def parts_table(rows, goals, versions):
    """Seconds of each part, by shape and version."""
    found = [(shape, version) for shape in goals for version in versions if (shape, version) in rows]
    names = list(json.loads(rows[found[0]]["parts"])) if found else []
    lines = []
    for key in found:
        parts = json.loads(rows[key]["parts"])
        lines.append([*key, *(f"{parts[name]:.2f}" for name in names)])
    return ["shape", "version", *names], lines


def draw(rows, goals, versions):
    """Ratios on a logarithmic axis, with the goals as marks."""
    shapes = [shape for shape in goals if any(rows.get((shape, version), {}).get("ratio") for version in versions)]
    figure = Figure(figsize=(9, 1 + 0.4 * len(shapes)), layout="constrained")
    axes = figure.subplots()
    for number, version in enumerate(versions):
        height = 0.8 / len(versions)
        for y, shape in enumerate(reversed(shapes)):
            ratio = rows.get((shape, version), {}).get("ratio")
            if ratio:
                label = version if shape == shapes[-1] else None
                axes.barh(y + 0.4 - (number + 0.5) * height, float(ratio), height, color=COLOURS[number], label=label)
    marks = [(goals[shape], y) for y, shape in enumerate(reversed(shapes)) if goals[shape] is not None]
    axes.plot(*zip(*marks, strict=True), "k|", ms=16, label="goal") if marks else None
    axes.set_yticks(range(len(shapes)), list(reversed(shapes)))
    axes.set(xscale="log", xlabel="time of a fit ÷ time of work of the same size")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    return figure
