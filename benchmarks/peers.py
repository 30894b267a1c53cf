"""MLAN, AMGL and GFHF on the paper's data, beside the paper's own rows.

    python benchmarks/peers.py --splits 20 --data HW Sonar Reuters

Data are read from $LMSSC_DATA or ../shared/data, the paper's tables from ../paper/tables.csv beside them if there.
Rows are shuffled, and the same share of each class is labelled at random; split s is drawn with seed s.
"""

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from lmssc import AMGL, GFHF, MLAN

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILES = {"HW": "Handwritten.mat", "Reuters": "Reuters-1200.mat", "Sonar": "sonar.csv"}
METHODS = {
    "MLAN": lambda: MLAN(),
    "MLAN λ=10": lambda: MLAN(label_weight=10.0),
    "AMGL": lambda: AMGL(),
    "AMGL scaled": lambda: AMGL(scaling="auto"),
    "GFHF (concatenated)": lambda: GFHF(),
    "GFHF (Gaussian)": lambda: GFHF(graph="gaussian"),
}


def load(name, folder):
    """Views and class codes of a data set."""
    path = folder / FILES[name]
    if path.suffix == ".csv":
        rows = np.loadtxt(path, delimiter=",", dtype=str)
        numbers = rows[:, :60].astype(float)
        return [numbers[:, :20], numbers[:, 20:40], numbers[:, 40:]], np.unique(rows[:, 60], return_inverse=True)[1]
    content = loadmat(path)
    views = [np.asarray(view, dtype=float) for view in content["X"].ravel()]
    return views, np.unique(content["y"].ravel(), return_inverse=True)[1]


def split(views, target, rate, seed):
    """Rows shuffled, and labels for the same share of each class; −1 elsewhere."""
    rng = np.random.default_rng(seed)
    shuffle = rng.permutation(len(target))
    target = target[shuffle]
    labels = np.full(len(target), -1)
    for c in np.unique(target):
        members = np.flatnonzero(target == c)
        labels[rng.choice(members, max(1, round(rate * len(members))), replace=False)] = c
    return [view[shuffle] for view in views], target, labels


def papers_rows(path):
    """(data set, method, rate) ↦ the accuracy in the paper; empty without its tables."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["dataset"], row["method"], float(row["label_rate"])): float(row["accuracy_mean"])
            for row in csv.DictReader(file)
        }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description="MLAN, AMGL and GFHF beside the paper's rows.")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--data", nargs="+", choices=list(FILES), default=["HW", "Sonar", "Reuters"])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.1, 0.2, 0.3, 0.5])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=["MLAN", "AMGL", "GFHF (concatenated)"])
    options = parser.parse_args()
    folder = Path(os.environ.get("LMSSC_DATA", DATA))
    paper = papers_rows(folder.parent / "paper" / "tables.csv")
    warnings.filterwarnings("ignore", message=".*without a label")
    print(f"{'data':8} {'rate':>4} {'method':20} {'accuracy %':>14} {'paper':>6} {'difference':>10} {'s a fit':>8}")
    for name in options.data:
        views, target = load(name, folder)
        for rate in options.rates:
            for method in options.methods:
                accuracies, began = [], time.perf_counter()
                for seed in range(options.splits):
                    shuffled, truth, labels = split(views, target, rate, seed)
                    clf = METHODS[method]().fit(shuffled, labels)
                    accuracies.append(100 * np.mean((clf.transduction_ == truth)[labels < 0]))
                seconds = (time.perf_counter() - began) / options.splits
                mean, known = np.mean(accuracies), paper.get((name, method.split()[0], rate))
                beside = "" if known is None else f"{known:6.2f} {mean - known:+10.2f}"
                result = f"{mean:.2f} ({np.std(accuracies):.2f})"
                print(f"{name:8} {rate:4.1f} {method:20} {result:>14} {beside:17} {seconds:8.2f}", flush=True)


if __name__ == "__main__":
    main()
