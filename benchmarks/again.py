"""LMSSC alone on the splits of the tables, against what it had there, into results/accuracy/again.csv.

The tables of the seven data sets that the first defaults were made on take hours; this tells in minutes what a change
of the model does to them. Finished runs are kept; a second call resumes.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from lmssc import compare
from lmssc.datasets import load
from lmssc.persistence.atomic import write_csv

FROM_THE_PAPER = ("bbc", "sonar", "handwritten", "reuters")
OTHERS = ("msrc", "bbcsport", "leaves")
COLUMNS = ("dataset", "rate", "splits", "before", "now", "change", "error", "calibration_before", "calibration_now")


def read_before(root, name):
    """Rate → the runs of LMSSC in the tables, by split."""
    path = root / ("reproduction/runs.csv" if name in FROM_THE_PAPER else f"accuracy/{name}.csv")
    runs = {}
    for row in csv.DictReader(path.read_text("utf-8").splitlines()):
        if row["method"] == "LMSSC" and row.get("dataset", name) == name and row.get("column", "fixed") == "fixed":
            runs.setdefault(float(row["rate"]), {})[int(row["repeat"])] = row
    return runs


def compare_with(before, name, repeats, out):
    """One row for each rate: accuracy before and now on the same splits, in percent."""
    data = load(name)
    views = dict(zip(data.view_names, data.views, strict=True))
    folder = out / "runs" / f"again-{name}"
    found = compare(views, data.target, ["LMSSC"], sorted(before), repeats, out=folder, progress=True)
    for rate, runs in sorted(before.items()):
        now = {record["repeat"]: record for record in found.records if record["rate"] == rate}
        splits = sorted(set(now) & set(runs))
        old, new = (np.array([float(part[s]["accuracy"]) * 100 for s in splits]) for part in (runs, now))
        errors = [np.mean([float(part[s]["calibration_error"]) for s in splits]) for part in (runs, now)]
        change = new - old
        error = change.std(ddof=1) / np.sqrt(len(splits)) if len(splits) > 1 else float("nan")
        values = (rate, len(splits), old.mean(), new.mean(), change.mean(), error, *errors)
        yield dict(zip(COLUMNS, (name, *(f"{value:.4g}" for value in values)), strict=True))


def main():
    """Run the requested data sets and write one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*FROM_THE_PAPER, *OTHERS]
    parser.add_argument("--datasets", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--results", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    path = arguments.results / "accuracy" / "again.csv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.exists() else []
    for name in arguments.datasets:
        print(name, file=sys.stderr)
        before = read_before(arguments.results, name)
        new = list(compare_with(before, name, arguments.repeats, path.parent))
        rows = [row for row in rows if row["dataset"] != name] + new
        write_csv(path, COLUMNS, sorted(rows, key=lambda row: names.index(row["dataset"])))


if __name__ == "__main__":
    main()
