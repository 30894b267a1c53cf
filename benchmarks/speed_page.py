"""results/speed/README.md: promises, every row beside LMSSC, growth, where the time goes, and the machine."""

import json

from speed_bars import all_bars
from speed_cases import PARTS
from speed_figures import AXES, by_samples, draw_figures, fits_in_parts, shares, varied
from speed_table import SHAPE, aligned, beside_lmssc, growth, number, read_rows

from lmssc.paper.markdown import markdown_table

INTRODUCTION = """\
# Speed

Written by `make bench` and `make bench-million` (`benchmarks/speed.py`) from `speed.csv`, and from nothing else.

Every measurement has a process of its own. Seconds are wall-clock time: the median of several runs, which take turns.
Memory is the peak of the whole process, data included. Ratios compare rows with the same data, data type and number of
threads from the same run; without such a row of LMSSC, the ratio is left empty.
"""
BESIDE = """\
`LMSSC` is a complete fit with the default parameters, until it converges. The data:

- `synthetic`: classes that overlap, 5 % labelled;
- `growth`: the same, with more features, views, classes or components instead of samples;
- `million`: 1 % labelled, or 5 labels per class; `subsample`: its first 50,000 samples;
- `HW`: copies of its rows, with noise of a third of each column's standard deviation.

Other methods get the scaled views, concatenated, and build their own neighbour graph. Neighbour graphs alone have k + 1
neighbours, as many as LMSSC needs. The approximate ones are inverted-file indexes of faiss: one on the latent positions
H, with at least the recall that LMSSC had, and one on 80 principal components, with a recall of 95 %. The time to tune
the index does not count. `predict` labels as many new samples as the fit had. `imports` are medians of 15 processes.
"""
DENSE = """\
`dense formulas` is one iteration of Algorithm 1 on random rows of HW: non-negative least squares for W, a Sylvester
equation for H, N² distances, a quadratic program with N − 1 unknowns for each row of S, and a dense system for F. Two
of the quadratic programs were solved; the others count as much as these. LMSSC does the same iteration from the same
state: the last of four with the paper's settings, except for scaled views and γ = 10⁻⁴, so that labels spread.
"""


def write_page(folder):
    """The page and its figures, from the table; prints the promises."""
    rows = read_rows(folder)
    draw_figures(rows, folder)
    sections = [
        INTRODUCTION,
        machines(rows),
        "## Promises",
        markdown_table(["promise", "measured", "kept"], all_bars(rows)),
        "## Growth",
        "![Seconds and memory over the number of samples](samples.svg)",
        "![Seconds and memory over features, views, classes and dimensions](shapes.svg)",
        *(f"LMSSC, {title}:\n\n{markdown_table(head, lines)}" for title, head, lines in growth_tables(rows)),
        "## Where the time goes",
        "![Share of each update](parts.svg)",
        "Percent of the time of a whole fit. The warm start (first graph and labels) is in 'rest of start'.",
        markdown_table(*parts_table(rows)),
        "## The formulas of the paper",
        DENSE,
        markdown_table(*dense_table(rows)),
        "## Compared with others",
        BESIDE,
        markdown_table(
            [*SHAPE, "seconds", "× LMSSC", "seconds of the processor", "MB", "accuracy %", ""],
            [full_line(row, rows) for row in rows],
        ),
    ]
    (folder / "README.md").write_text("\n\n".join(section.strip() for section in sections) + "\n")


def summary(rows):
    """Growth, parts and promises as text."""
    texts = [f"LMSSC, {title}\n{aligned(head, lines)}" for title, head, lines in growth_tables(rows) if lines]
    texts.append(f"Where the time of LMSSC goes, in %\n{aligned(*parts_table(rows))}")
    texts.append(f"An iteration by the formulas of the paper\n{aligned(*dense_table(rows))}")
    bars = [f"{bar.kept + ':':14}{bar.promised}\n{'':14}{bar.measured}".rstrip() for bar in all_bars(rows)]
    return "\n\n".join([*texts, "Promises\n" + "\n".join(bars)])


def machines(rows):
    """What the rows were measured on, and when."""
    runs = {}
    for row in rows:
        runs.setdefault(row["machine"], set()).add(row["run"])
    return "\n".join(f"Measured on {machine}: runs of {', '.join(sorted(of))}." for machine, of in runs.items())


def growth_tables(rows):
    """Title, head and lines of a table for each number that grows."""
    fits = by_samples(rows, case="LMSSC", data="million", threads="2")
    head = ["seconds", "× line above", "MB"]
    yield "3 views, 100 features, float32, two threads", ["samples N", *head], growth(fits, "samples")
    for name, label in AXES.items():
        yield f"10,000 samples, {label} of several sizes", [label, *head], growth(varied(rows, name), name)


def dense_table(rows):
    """Head and lines: an iteration by the formulas of the paper."""
    lines = []
    for row in by_samples(rows, case="dense formulas"):
        if row["wall"]:
            of = json.loads(row["detail"])
            values = row["wall"], of["LMSSC, an iteration"], of["× LMSSC"], of["× LMSSC without the QPs"]
            lines.append([f"{int(row['samples']):,}", *map(number, values), number(row["megabytes"])])
    return ["samples N", "seconds", "LMSSC, seconds", "× LMSSC", "× LMSSC without the QPs", "MB"], lines


def parts_table(rows):
    """Head and lines: percent of the time of whole fits by part."""
    lines = [
        [name, shape, number(row["wall"]), *(f"{share:.0f}" for share in shares(row).values())]
        for name, shape, row in fits_in_parts(rows)
    ]
    return ["samples", "", "seconds", *PARTS], lines


def full_line(row, rows):
    """A row with its ratio and all details but the parts."""
    detail = json.loads(row["detail"])
    if isinstance(detail, dict):
        detail = ", ".join(f"{name}: {value}" for name, value in detail.items() if name != "parts")
    numbers = [number(value) for value in (row["wall"], beside_lmssc(row, rows), row["cpu"], row["megabytes"])]
    return [*(row[name] for name in SHAPE), *numbers, number(row["accuracy"]), detail.replace("|", " ")]
