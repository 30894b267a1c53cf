"""What `LMSSC.partial_update` is worth: its time, and how far its answers are from those of a fit to all samples.

    python benchmarks/updates.py batch digits handwritten synthetic:50000    one update of 1 % new samples
    python benchmarks/updates.py stream digits synthetic:5000                100 updates in a row
    python benchmarks/updates.py drift                                       when the rule asks for a refit

Rows are added to results/scale/updates.csv. CPU seconds of one thread. "agreement" is that of the updated labels with
those of a fit to all samples, "agreement_of_fits" that of the fit before with it: where a fit changes so much with a
few more samples, no update can agree better.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np

from lmssc import LMSSC
from lmssc.datasets import load_digits_views, load_handwritten, load_reuters, make_multiview
from lmssc.evaluation.splits import stratified_split

RESULTS = Path(__file__).parents[1] / "results" / "scale" / "updates.csv"
COLUMNS = (
    "kind", "data", "samples", "new", "updates", "label_rate", "fit_seconds", "update_seconds", "time_share",
    "agreement", "agreement_of_new", "agreement_of_fits", "accuracy_update", "accuracy_refit", "refits", "recall",
)  # fmt: skip
LOADERS = {"digits": load_digits_views, "handwritten": load_handwritten, "reuters": load_reuters}
N_UPDATES = 100


def load(name):
    """Views and true classes; "synthetic:5000" has six views of 100 features and ten overlapping classes."""
    kind, _, size = name.partition(":")
    if kind == "synthetic":
        data = make_multiview(int(size), 6, [100] * 6, n_classes=10, dtype="float32", random_state=0)
        return list(data.views), data.target
    data = LOADERS[kind]()
    views = data.views.values() if isinstance(data.views, dict) else data.views
    return list(views), np.asarray(data.target)


def take(views, rows):
    """Some rows of all views."""
    return [view[rows] for view in views]


def timed(function, *args, **options):
    """Result and CPU seconds of a call, without its warnings."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(*args, **options)
    return result, time.process_time() - began


def measure(name, label_rate, n_updates, share, kind, refit="auto"):
    """Fit the first samples, let the others join in some updates, and compare with a fit to all."""
    views, target = load(name)
    order, given = stratified_split(target, label_rate, 0)
    views, target = take(views, order), target[order]
    y = np.where(given, target, -1)
    n_samples = len(y)
    n_new = max(n_updates, int(share * n_samples))
    n_old = n_samples - n_new
    clf, _ = timed(LMSSC(n_jobs=1).fit, take(views, slice(n_old)), y[:n_old])
    first_labels = clf.transduction_
    seconds, n_refits = 0.0, 0
    for rows in np.array_split(np.arange(n_old, n_samples), n_updates):
        first, end = int(rows[0]), int(rows[-1]) + 1
        before = clf._memory.n_samples
        earlier = take(views, slice(first))
        _, spent = timed(clf.partial_update, take(views, slice(first, end)), y[first:end], refit=refit, X=earlier)
        seconds += spent
        n_refits += clf._memory.n_samples != before
    again, fit_seconds = timed(LMSSC(n_jobs=1).fit, views, y)
    same, hidden = clf.transduction_ == again.transduction_, y < 0
    return {
        "kind": kind, "data": name, "samples": n_samples, "new": n_new, "updates": n_updates, "label_rate": label_rate,
        "fit_seconds": f"{fit_seconds:.2f}", "update_seconds": f"{seconds / n_updates:.3f}",
        "time_share": f"{seconds / n_updates / fit_seconds:.3f}", "agreement": f"{same.mean():.4f}",
        "agreement_of_new": f"{same[n_old:].mean():.4f}",
        "agreement_of_fits": f"{(first_labels == again.transduction_[:n_old]).mean():.4f}",
        "accuracy_update": f"{(clf.transduction_ == target)[hidden].mean():.4f}",
        "accuracy_refit": f"{(again.transduction_ == target)[hidden].mean():.4f}",
        "refits": n_refits, "recall": f"{clf.neighbor_recall_:.3f}",
    }  # fmt: skip


def drift():
    """A stream whose new samples move away from those of the fit: how soon the rule asks for a refit."""
    data = make_multiview(3000, 2, [30, 20], n_classes=4, labelled=0.1, random_state=0)
    clf, fit_seconds = timed(LMSSC(n_jobs=1).fit, take(data.views, slice(2000)), data.y[:2000])
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=view.shape[1]) * view.std(axis=0) for view in data.views]
    for step in range(20):
        rows = slice(2000 + 50 * step, 2050 + 50 * step)
        moved = [view[rows] + 0.25 * step * way for view, way in zip(data.views, directions, strict=True)]
        try:
            _, seconds = timed(clf.partial_update, moved, data.y[rows])
        except ValueError as error:
            print(f"step {step}, moved by {0.25 * step:g} standard deviations: {error}")
            return {"kind": "drift", "data": "synthetic", "samples": 2000 + 50 * step, "new": 50, "updates": step,
                    "fit_seconds": f"{fit_seconds:.2f}", "update_seconds": f"{seconds:.3f}"}  # fmt: skip
    raise RuntimeError("the rule never asked for a refit")


def write(row):
    """Print a row, and add it to the results."""
    print({name: value for name, value in row.items() if value != ""}, flush=True)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def main():
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["batch", "stream", "drift"])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--label-rate", type=float, default=0.1)
    args = parser.parse_args()
    if args.kind == "drift":
        write(drift())
    for name in args.data:
        many = args.kind == "stream"
        write(measure(name, args.label_rate, N_UPDATES if many else 1, 0.5 if many else 0.01, args.kind))


if __name__ == "__main__":
    main()
