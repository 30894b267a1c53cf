"""Time and memory of LMSSC beside label propagation, neighbour graphs and the paper's formulas, as ratios.

    python benchmarks/speed.py                          # all but the million, as `make bench`: 20 minutes
    python benchmarks/speed.py --sizes 1000 20000       # LMSSC and its peers at some sizes: a minute, 3 minutes
    python benchmarks/speed.py --sizes 100000 --dtype float32 --cases LMSSC 'approximate kNN of H'    # 3 minutes
    python benchmarks/speed.py --extra                  # all that is not a comparison by size: 6 minutes
    python benchmarks/speed.py --extra dense imports    # some of it: 2 minutes, 1 minute
    python benchmarks/speed.py --million                # growth to a million samples: 12 minutes, 8 GB
    python benchmarks/speed.py --million 1000 10000     # some of these sizes: a minute
    python benchmarks/speed.py --page                   # only write page and figures again

The times above are for a machine with two cores. Every measurement runs in a separate process (speed_cases.py), one
after another, so that its peak memory is its own; OMP_NUM_THREADS sets the number of threads. A new measurement
replaces its row of speed.csv. LMSSC is always measured together with its peers, so that ratios are within one run. The
page is about one thread, and two threads for the million. HW is downloaded or read from $LMSSC_DATA. Needs Linux.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from speed_data import KINDS, MILLION, SUBSAMPLE
from speed_page import summary, write_page
from speed_peers import OF_LATENT, PEERS
from speed_table import COMPARED, as_text, keep, median, read_rows, shape_of, side_by_side

OUT = Path(__file__).parent.parent / "results" / "speed"
LONGEST = 1800
# A bar is about these, so they are run several times.
REPEATED = ("LMSSC", "LabelSpreading", OF_LATENT)
# The others take many minutes for 100,000 samples.
FAST = ("LMSSC", "graphlearning", "approximate kNN, 80 components", OF_LATENT)
GROWTH = {
    "features": (150, 300, 1200, 2400),
    "views": (2, 3, 12, 24),
    "classes": (2, 5, 20, 40),
    "components": (10, 20, 40, 80),
}


class Run:
    """Measurements of one call of this program."""

    def __init__(self, folder, repeats):
        self.folder, self.repeats = folder, repeats
        self.about = {
            "run": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "machine": machine(),
            "threads": os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count()),
        }

    def measured(self, case, data, samples, **shape):
        """Measure one case in a separate process."""
        shape = {"data": data, "samples": samples, **KINDS[data][0], **shape}
        options = [text for name, value in shape.items() for text in (f"--{name}", str(value))]
        command = [sys.executable, Path(__file__).with_name("speed_cases.py"), case, *options]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
            last = (result.stderr if result.returncode else result.stdout).strip().splitlines()[-1:]
            found = {"detail": " ".join(last)[:200]} if result.returncode else json.loads(last[0])
        except subprocess.TimeoutExpired:
            found = {"detail": f"stopped after {LONGEST} s"}
        row = as_text({"case": case, **shape, **self.about, **found})
        print(f"  {case}, {data}, {samples:,}: {row['wall'] or row['detail']}", file=sys.stderr, flush=True)
        return row

    def compare(self, cases, data, samples, **shape):
        """Measure LMSSC and peers on the same data; some of them several times, in turn."""
        rows = {case: [] for case in ("LMSSC", *cases)}
        for turn in range(self.repeats):
            for case, found in rows.items():
                if turn == 0 or case in REPEATED:
                    found.append(self.measured(case, data, samples, **shape))
        rows = [median(found) for found in rows.values()]
        keep(rows, self.folder)
        print(f"\n{shape_of(rows[0])}\n{side_by_side(rows)}\n", flush=True)

    def alone(self, *args, **shape):
        """Measure a case without peers."""
        keep([self.measured(*args, **shape)], self.folder)

    def million(self, sizes):
        """Measure growth over samples, several times in turn, and the exact fit to a part of the million."""
        turns = [[self.measured("LMSSC", "million", size) for size in sizes] for _ in range(self.repeats)]
        keep([median(found) for found in zip(*turns, strict=True)], self.folder)
        if MILLION in sizes:
            self.alone("LMSSC, exact", "subsample", SUBSAMPLE)


def growth(run):
    """Shapes in which everything but the number of samples grows."""
    run.alone("LMSSC", "growth", 10_000)
    for name, values in GROWTH.items():
        for value in values:
            run.alone("LMSSC", "growth", 10_000, **{name: value})


def dense(run):
    """The dense formulas of the paper, at sizes that they can handle."""
    for samples in (500, 1000, 2000):
        run.alone("dense formulas", "HW", samples)


EXTRA = {
    "growth": growth,
    "dense": dense,
    "predict": lambda run: run.alone("predict", "synthetic", 100_000, dtype="float32"),
    "HW": lambda run: run.compare(["LabelSpreading"], "HW", 20_000),
    "imports": lambda run: run.alone("imports", "none", 0),
}


def machine():
    """Versions, processor and memory of the machine."""
    from lmssc.persistence.provenance import describe_machine

    parts = [f"{name} {value}" for name, value in describe_machine().items() if name != "date"]
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return ", ".join([*parts, *processor[:1], f"{memory / 1e9:.0f} GB"])


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[], help="numbers of samples of the synthetic data")
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=COMPARED,
        default=PEERS,
        metavar="CASE",
        help=f"what to measure at these sizes beside LMSSC: {', '.join(map(repr, PEERS))} (all)",
    )
    parser.add_argument(
        "--dtype", choices=["float64", "float32"], default="float64", help="type of the data of --sizes"
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help=f"runs by turns of {', '.join(REPEATED)} and the million; the median is kept (3). Others run once",
    )
    parser.add_argument("--extra", nargs="*", choices=EXTRA, help="some of this, or without a name all")
    parser.add_argument(
        "--million", nargs="*", type=int, metavar="SIZE", help="1000 to 1000000, or some of these sizes"
    )
    parser.add_argument("--page", action="store_true", help="measure nothing, write page and figures from speed.csv")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of speed.csv, page and figures (results/speed)")
    return parser.parse_args()


def main():
    """Measure what was requested, save and print it, and write the page."""
    args = parse()
    run = Run(args.out, args.repeats)
    everything = not (args.sizes or args.page) and args.extra is None and args.million is None
    for size in [1000, 10_000, 20_000] if everything else args.sizes:
        run.compare(args.cases, "synthetic", size, dtype=args.dtype)
    if everything:
        run.compare(["LabelSpreading", OF_LATENT], "synthetic", 20_000, dtype="float32")
        run.compare(FAST, "synthetic", 100_000, dtype="float32")
    if everything or args.extra is not None:
        for name in args.extra or EXTRA:
            EXTRA[name](run)
    if args.million is not None:
        run.million(args.million or [1000, 10_000, 100_000, MILLION])
    write_page(args.out)
    print(summary(read_rows(args.out)))


if __name__ == "__main__":
    main()
