"""LMSSC alone on the splits of the tables, against what it had there, into results/accuracy/again.csv.

The tables with all methods take hours; this tells in minutes what a change of the model does to them: to the paper's
four data sets and three more, and to the 22 of fresh.py. The runs on the first seven go into again_runs.csv, for the
count over all development sets. Finished runs are kept; a second call resumes.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import pooch
from fresh import KEPT, read_rows
from wheel_data import DATASETS

from lmssc import compare
from lmssc.datasets import load
from lmssc.persistence.atomic import write_csv

FROM_THE_PAPER = ("bbc", "sonar", "handwritten", "reuters")
OTHERS = ("msrc", "bbcsport", "leaves")
COLUMNS = ("dataset", "rate", "splits", "before", "now", "change", "error", "calibration_before", "calibration_now")


def read_before(root, name):
    """Rate → the runs of LMSSC in the tables, by split."""
    path = root / ("reproduction/runs.csv" if name in FROM_THE_PAPER else f"accuracy/{name}.csv")
    if name in DATASETS:
        path = root / "accuracy" / "fresh.csv"
    runs = {}
    for row in csv.DictReader(path.read_text("utf-8").splitlines()):
        if row["method"] == "LMSSC" and row.get("dataset", name) == name and row.get("column", "fixed") == "fixed":
            runs.setdefault(float(row["rate"]), {})[int(row["repeat"])] = row
    return runs


def load_views(name, wheels):
    """Views and classes of a data set."""
    if name in DATASETS:
        return DATASETS[name](wheels)
    data = load(name)
    return dict(zip(data.view_names, data.views, strict=True)), data.target


def run_again(before, name, repeats, out, wheels):
    """The runs of LMSSC now."""
    views, target = load_views(name, wheels)
    folder = out / "runs" / (name if name in DATASETS else f"again-{name}")
    repeats = min(repeats, max(max(runs) for runs in before.values()) + 1)
    return compare(views, target, ["LMSSC"], sorted(before), repeats, out=folder, progress=True).records


def compare_with(before, name, records):
    """One row for each rate: accuracy before and now on the same splits, in percent."""
    for rate, runs in sorted(before.items()):
        now = {record["repeat"]: record for record in records if record["rate"] == rate}
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
    names = [*FROM_THE_PAPER, *OTHERS, *DATASETS]
    parser.add_argument("--datasets", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--wheels", type=Path, default=pooch.os_cache("lmssc") / "wheels", help="folder of the wheels")
    parser.add_argument("--results", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    path = arguments.results / "accuracy" / "again.csv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.exists() else []
    for name in arguments.datasets:
        print(name, file=sys.stderr)
        before = read_before(arguments.results, name)
        records = run_again(before, name, arguments.repeats, path.parent, arguments.wheels)
        rows = [row for row in rows if row["dataset"] != name] + list(compare_with(before, name, records))
        write_csv(path, COLUMNS, sorted(rows, key=lambda row: names.index(row["dataset"])))
        if name not in DATASETS:
            runs = path.with_name("again_runs.csv")
            kept = [row for row in read_rows(runs) if row["dataset"] != name]
            kept += [{"dataset": name, **record} for record in records]
            write_csv(runs, KEPT, sorted(kept, key=lambda row: names.index(row["dataset"])))


if __name__ == "__main__":
    main()
