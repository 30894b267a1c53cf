"""Every other method of `lmssc compare` on all development sets, into results/accuracy/peers.csv.

Splits and seeds are those of fresh.py, so that LMSSC can be compared with them split by split. Each run is kept as soon
as it has finished, and the CSV is written after each set; a second call resumes. A run that failed has a row with its
error.
"""

import argparse
import sys
from pathlib import Path

from development import NAMES, WHEELS, load_views
from fresh import KEPT

from lmssc import compare
from lmssc.evaluation.methods import METHOD_NAMES
from lmssc.persistence.atomic import write_csv

RATES = (0.05, 0.1, 0.3)
# LMSSC itself, and methods that need minutes for a fit or have one fit for each view.
NOT_RUN = ("LMSSC", "LMSSC (paper settings)", "GFHF (view v)", "AMGL", "MLAN")
METHODS = tuple(name for name in METHOD_NAMES if name not in NOT_RUN)


def run(datasets, methods, repeats, out, runs, wheels):
    """Run the methods on the sets and write all records so far after each."""
    records = []
    for name in datasets:
        print(name, file=sys.stderr, flush=True)
        views, target = load_views(name, wheels)
        result = compare(views, target, methods, RATES, repeats, out=runs / name)
        records += [{"dataset": name, **record} for record in result.records]
        write_csv(out, (*KEPT, "error"), records)


def main():
    """Run the requested data sets and methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="NAME", help=", ".join(METHODS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy/peers.csv"))
    parser.add_argument("--runs", type=Path, default=Path("results/accuracy/runs"), help="folder of finished runs")
    arguments = parser.parse_args()
    run(**vars(arguments))


if __name__ == "__main__":
    main()
