"""What `LMSSC.partial_update` is worth: its time, and how far its answers are from those of a fit to all samples.

    python benchmarks/updates.py batch digits handwritten synthetic:50000    one update of 1 % new samples
    python benchmarks/updates.py stream digits synthetic:5000                100 updates in a row
    python benchmarks/updates.py drift                                       when the rule asks for a refit
    python benchmarks/updates.py floor reuters synthetic:20000               how far fits are from each other
    python benchmarks/updates.py noise synthetic:20000                       the same, of fits to the same samples

Rows are added to results/scale/updates.csv. CPU seconds of one thread. "agreement" is that of the updated labels with
those of a fit to all samples, "agreement_of_fits" that of the fit before with it: where a fit changes so much with a
few more samples, no update can agree better. "floor" measures that alone: fits that each leave out another 1 % of the
samples, drawn at random, compared with each other ("agreement") and with the fit to all ("agreement_of_fits"), both
means. "noise" leaves out none: it adds noise of a millionth of the standard deviation of each view. `--recall 1`
searches neighbours exactly.
"""

import argparse
import csv
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np

from lmssc import LMSSC
from lmssc.datasets import load_digits_views, load_handwritten, load_reuters, make_multiview
from lmssc.evaluation.splits import stratified_split

RESULTS = Path(__file__).parents[1] / "results" / "scale" / "updates.csv"
COLUMNS = (
    "kind", "data", "samples", "new", "updates", "label_rate", "fit_seconds", "update_seconds", "time_share",
    "agreement", "agreement_of_new", "agreement_of_fits", "accuracy_update", "accuracy_refit", "refits", "recall",
    "wanted_recall",
)  # fmt: skip
LOADERS = {"digits": load_digits_views, "handwritten": load_handwritten, "reuters": load_reuters}
N_UPDATES, N_FLOOR = 100, 4
NOISE = 1e-6


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


def load_split(name, label_rate):
    """Views, true classes and labels, the samples in random order."""
    views, target = load(name)
    order, given = stratified_split(target, label_rate, 0)
    views, target = take(views, order), target[order]
    return views, target, np.where(given, target, -1)


def measure(name, label_rate, n_updates, share, kind, recall):
    """Fit the first samples, let the others join in some updates, and compare with a fit to all."""
    views, target, y = load_split(name, label_rate)
    n_samples, options = len(y), {"n_jobs": 1, "neighbor_recall": recall}
    n_new = max(n_updates, int(share * n_samples))
    n_old = n_samples - n_new
    clf, _ = timed(LMSSC(**options).fit, take(views, slice(n_old)), y[:n_old])
    first_labels = clf.transduction_
    seconds, n_refits = 0.0, 0
    for rows in np.array_split(np.arange(n_old, n_samples), n_updates):
        first, end = int(rows[0]), int(rows[-1]) + 1
        before = clf._memory.n_samples
        earlier = take(views, slice(first))
        _, spent = timed(clf.partial_update, take(views, slice(first, end)), y[first:end], X=earlier)
        seconds += spent
        n_refits += clf._memory.n_samples != before
    again, fit_seconds = timed(LMSSC(**options).fit, views, y)
    same, hidden = clf.transduction_ == again.transduction_, y < 0
    return {
        "kind": kind, "data": name, "samples": n_samples, "new": n_new, "updates": n_updates, "label_rate": label_rate,
        "fit_seconds": f"{fit_seconds:.2f}", "update_seconds": f"{seconds / n_updates:.3f}",
        "time_share": f"{seconds / n_updates / fit_seconds:.3f}", "agreement": f"{same.mean():.4f}",
        "agreement_of_new": f"{same[n_old:].mean():.4f}",
        "agreement_of_fits": f"{(first_labels == again.transduction_[:n_old]).mean():.4f}",
        "accuracy_update": f"{(clf.transduction_ == target)[hidden].mean():.4f}",
        "accuracy_refit": f"{(again.transduction_ == target)[hidden].mean():.4f}",
        "refits": n_refits, "recall": f"{clf.neighbor_recall_:.3f}", "wanted_recall": recall,
    }  # fmt: skip


def floor(name, label_rate, recall, kind, n_fits, share=0.01):
    """Fits that each leave out other samples, or see other noise, compared with each other and with a fit to all."""
    views, target, y = load_split(name, label_rate)
    n_samples, options = len(y), {"n_jobs": 1, "neighbor_recall": recall}
    n_left_out = int(share * n_samples) if kind == "floor" else 0
    whole, seconds = timed(LMSSC(**options).fit, views, y)
    found = []
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.permutation(n_samples)[n_left_out:])
        some = take(views, rows) if kind == "floor" else [add_noise(view, rng) for view in views]
        clf, _ = timed(LMSSC(**options).fit, some, y[rows])
        labels = np.full(n_samples, -1, dtype=whole.transduction_.dtype)
        labels[rows] = clf.transduction_
        found.append(labels)
    pairs = [(one == other)[(one >= 0) & (other >= 0)].mean() for one, other in combinations(found, 2)]
    with_whole = [(one == whole.transduction_)[one >= 0].mean() for one in found]
    accuracy = [(one == target)[(one >= 0) & (y < 0)].mean() for one in found]
    return {
        "kind": kind, "data": name, "samples": n_samples, "new": n_left_out, "label_rate": label_rate,
        "fit_seconds": f"{seconds:.2f}", "agreement": f"{np.mean(pairs):.4f}",
        "agreement_of_fits": f"{np.mean(with_whole):.4f}", "accuracy_update": f"{np.mean(accuracy):.4f}",
        "accuracy_refit": f"{(whole.transduction_ == target)[y < 0].mean():.4f}",
        "recall": f"{whole.neighbor_recall_:.3f}", "wanted_recall": recall,
    }  # fmt: skip


def add_noise(view, rng):
    """A dense view with very little noise, of the same type."""
    return view + (NOISE * view.std() * rng.standard_normal(view.shape)).astype(view.dtype)


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
    parser.add_argument("kind", choices=["batch", "stream", "drift", "floor", "noise"])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--label-rate", type=float, default=0.1)
    parser.add_argument("--recall", type=float, default=0.95, help="neighbor_recall of LMSSC")
    parser.add_argument("--fits", type=int, default=N_FLOOR, help="fits that floor and noise compare")
    args = parser.parse_args()
    if args.kind == "drift":
        write(drift())
    for name in args.data:
        if args.kind in ("floor", "noise"):
            write(floor(name, args.label_rate, args.recall, args.kind, args.fits))
        else:
            n_updates, share = (N_UPDATES, 0.5) if args.kind == "stream" else (1, 0.01)
            write(measure(name, args.label_rate, n_updates, share, args.kind, args.recall))


if __name__ == "__main__":
    main()
