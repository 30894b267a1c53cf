"""Where the time of a small fit goes, part by part, into results/speed/small_fits.md; part of `make bench`.

    python benchmarks/speed_small.py                                                # a minute
    python benchmarks/speed_small.py --label before --source ../old/src             # another version of lmssc
    python benchmarks/speed_small.py --page                                         # only write the page again

Each shape is a process of its own: a first fit, then several in which the parts are timed, then the other work.
"""

import csv
import json
import os
import subprocess
import sys
import time
import warnings

from speed_shapes import SHAPES, PartTimes, version_parser

SMALL = ("300 × 600", "1,000 × 600")
TABLE, PAGE = "small_fits.csv", "small_fits.md"
N_FITS = 5
OTHER_WORK = "LabelSpreading"
# Functions by the part of a fit that they are; a part within another counts for the inner one.
PARTS = {
    "scaling": [("lmssc.estimators.view_scaling", "fit_scalings"), ("lmssc.estimators.view_scaling", "scale_views")],
    "SVD": [("lmssc.core.initialization", "latent_start")],
    "neighbours": [("lmssc.core.objective", "learn_graph"), ("lmssc.core.view_graph", "learn_graph")],
    "Laplacians": [("lmssc.core.objective", "laplacian"), ("lmssc.core.view_graph", "laplacian")],
    "propagation": [
        ("lmssc.core.warm_start", "propagate"),
        ("lmssc.core.objective", "propagate"),
        ("lmssc.core.view_graph", "propagate"),
        ("lmssc.core.opinion_trust", "propagate"),
        ("lmssc.core.begin", "propagate"),
        ("lmssc.core.held_out", "propagate_without"),
    ],
    "label regression": [("lmssc.core.warm_start", "Regression"), ("lmssc.core.begin", "NystroemRows")],
    "first graph and warm start, the rest": [("lmssc.core.begin", "_first_graph"), ("lmssc.core.begin", "_warm_start")],
    "warm starts with hidden labels, the rest": [("lmssc.core.begin", "hold_out")],
    "the views' own graphs, the rest": [("lmssc.core.begin", "judge_view_graph")],
    "calibration": [("lmssc.core.held_out", "fit_calibration"), ("lmssc.core.calibration", "fit_calibration")],
    "second opinion, the rest": [("lmssc.core.begin", "judge_opinion")],
    "iterations, the rest": [("lmssc.core.fit", "iterate")],
    "new samples, the rest": [("lmssc.core.fit", "make_result")],
}
INTRODUCTION = f"""\
# Small fits, part by part

Written by `make bench` (`benchmarks/speed_small.py`). Milliseconds of the processor on one thread in a fit after the
first one, mean of {N_FITS} fits; a part within another one counts for the inner one only. {OTHER_WORK} with a kNN
kernel runs in the same process; the ratio is that of a whole fit, with nothing timed inside it.
"""


def measure(shape):
    """Milliseconds of each part, of a whole fit and of the other work."""
    warnings.simplefilter("ignore")
    make, peer, _ = SHAPES[shape]
    views, _, y = make()
    from lmssc import LMSSC

    def mean_of(work):
        work()
        began = time.process_time()
        for _ in range(N_FITS):
            work()
        return 1e3 * (time.process_time() - began) / N_FITS

    whole, other = mean_of(lambda: LMSSC().fit(views, y)), mean_of(lambda: peer(views, y))
    times = PartTimes(PARTS)
    times.watch()
    began = time.process_time()
    for _ in range(N_FITS):
        LMSSC().fit(views, y)
    all_parts = 1e3 * (time.process_time() - began) / N_FITS
    parts = {part: 1e3 * seconds / N_FITS for part, seconds in times.spent.items()}
    parts["everything else"] = all_parts - sum(parts.values())
    return {**parts, "all": whole, OTHER_WORK: other, "ratio": whole / other}


def measured(shape, source):
    """`measure` in a process of its own, with the lmssc of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", shape]
    return json.loads(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)


def read_rows(folder):
    """Milliseconds by shape, version and part."""
    if not (folder / TABLE).exists():
        return {}
    with (folder / TABLE).open(newline="") as file:
        return {(row["shape"], row["version"], row["part"]): row["milliseconds"] for row in csv.DictReader(file)}


def write_rows(rows, folder):
    """Write the table."""
    with (folder / TABLE).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["shape", "version", "part", "milliseconds"])
        writer.writerows([*key, value] for key, value in sorted(rows.items()))


def write_page(rows, folder):
    """A table with a row for each part."""
    from lmssc.paper.markdown import markdown_table

    versions = sorted({version for _, version, _ in rows}, key=lambda version: version != "before")
    columns = [(shape, version) for shape in SMALL for version in versions]
    lines = [
        [part, *(rows.get((*column, part), "") for column in columns)]
        for part in ("all", *PARTS, "everything else", OTHER_WORK, "ratio")
    ]
    table = markdown_table(["part", *(f"{shape}, {version}" for shape, version in columns)], lines)
    (folder / PAGE).write_text(f"{INTRODUCTION}\n{table.strip()}\n")


def main():
    """Measure and write."""
    args = version_parser(__doc__, SMALL).parse_args()
    if args.one:
        print(json.dumps(measure(args.one)))
        return
    rows = read_rows(args.out)
    for shape in () if args.page else SMALL:
        for part, value in measured(shape, args.source.resolve()).items():
            rows[shape, args.label, part] = f"{value:.3g}"
        write_rows(rows, args.out)
    write_page(rows, args.out)


if __name__ == "__main__":
    main()
