"""The other methods of `lmssc compare` on all development sets, into results/accuracy/peers.csv.

Splits and shares of labels are those of fresh.py, so that LMSSC can be compared with them split by split; the methods
of fresh.csv do not run again on its sets. Each run is kept as soon as it has finished, and the CSV is written after
each set; a second call resumes. A run that failed has a row with its error.
"""

import argparse
import sys
from pathlib import Path

from development import NAMES, WHEELS, load_views
from fresh import KEPT, METHODS, rates_of, read_rows
from wheel_data import DATASETS

from lmssc import compare
from lmssc.evaluation.methods import METHOD_NAMES
from lmssc.persistence.atomic import write_csv

# Methods that need minutes for a fit or have one fit for each view, and LMSSC itself.
NOT_RUN = ("LMSSC", "LMSSC (paper settings)", "GFHF (view v)", "AMGL", "MLAN")
# Takes up to four minutes for a fit to 1,500 samples.
FOR_SMALL_DATA, MAX_SMALL = "Poisson (graphlearning)", 1000


def methods_of(name, n_samples):
    """Methods to run on a data set."""
    left_out = (*NOT_RUN, *(METHODS if name in DATASETS else ()), *((FOR_SMALL_DATA,) if n_samples > MAX_SMALL else ()))
    return tuple(method for method in METHOD_NAMES if method not in left_out)


def run(datasets, repeats, out, runs, wheels):
    """Run the methods on the sets; after each, its rows in the table are replaced."""
    for name in datasets:
        print(name, file=sys.stderr, flush=True)
        views, target = load_views(name, wheels)
        result = compare(views, target, methods_of(name, len(target)), rates_of(target), repeats, out=runs / name)
        records = [row for row in read_rows(out) if row["dataset"] != name]
        records += [{"dataset": name, **record} for record in result.records]
        records.sort(key=lambda row: NAMES.index(row["dataset"]))
        write_csv(out, (*KEPT, "error"), records)


def main():
    """Run the requested data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy/peers.csv"))
    parser.add_argument("--runs", type=Path, default=Path("results/accuracy/runs/peers"), help="finished runs")
    arguments = parser.parse_args()
    run(**vars(arguments))


if __name__ == "__main__":
    main()
