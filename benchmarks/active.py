"""How many labels `most_informative` saves against labels at random, on handwritten digits.

    python benchmarks/active.py

A fifth of the rows is set aside as new samples. Of the others, 2 per class get a label; then batches of labels are
added, chosen at random or by the classifier, and it is fitted again. Two accuracies are measured: on the rows without a
label so far (hard rows leave this set when they are labelled), and on the new samples.

Writes to results/active: `active.csv`, one row per fit, and `active.md`, the means over the seeds and the number of
labels that each strategy needs to reach the accuracy of random labels.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from lmssc import LMSSC
from lmssc.datasets import load
from lmssc.persistence.atomic import open_atomically, write_csv

START = 2
STEPS = {
    "random": [20, 30, 40, 50, 60, 70, 80, 90, 100, 150, 200],
    "most_informative": [20, 30, 40, 50, 60, 70, 80, 90, 100],
    "most_uncertain": [20, 30, 40, 50, 60, 70, 80, 90, 100],
}
COLUMNS = ("dataset", "seed", "choice", "labels", "unlabelled", "new", "fit_seconds", "query_seconds")
MEASURES = {"unlabelled": "rows without a label", "new": "new samples"}


def label_step_by_step(dataset, seed, choice, max_iter):
    """Records of one seed: accuracies as labels are added."""
    data = load(dataset)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.target))
    new, pool = np.split(order, [len(order) // 5])
    views, new_views = ([view[rows] for view in data.views] for rows in (pool, new))
    truth, y = data.target[pool], np.full(len(pool), -1)
    for code in np.unique(truth):
        rows = np.flatnonzero(truth == code)[:START]
        y[rows] = code
    clf, query_seconds = None, 0.0
    for total in STEPS[choice]:
        n = total - int((y >= 0).sum())
        if n > 0:
            began = time.perf_counter()
            rows = (
                rng.choice(np.flatnonzero(y < 0), n, replace=False) if choice == "random" else getattr(clf, choice)(n)
            )
            query_seconds = time.perf_counter() - began
            y[rows] = truth[rows]
        began = time.perf_counter()
        clf = LMSSC(max_iter=max_iter).fit(views, y)
        fit_seconds = time.perf_counter() - began
        hidden = y < 0
        yield {
            "dataset": dataset,
            "seed": seed,
            "choice": choice,
            "labels": total,
            "unlabelled": float((clf.transduction_ == truth)[hidden].mean()),
            "new": float((clf.predict(new_views) == data.target[new]).mean()),
            "fit_seconds": fit_seconds,
            "query_seconds": query_seconds,
        }


def mean_curve(records, dataset, choice, measure):
    """Mean accuracy over the seeds at each number of labels."""
    chosen = [r for r in records if r["dataset"] == dataset and r["choice"] == choice]
    return np.array([np.mean([r[measure] for r in chosen if r["labels"] == total]) for total in STEPS[choice]])


def labels_needed(curve, steps, level):
    """Number of labels at which a mean curve first reaches a level, interpolated linearly; NaN if it never does."""
    above = np.flatnonzero(curve >= level)
    if not len(above):
        return float("nan")
    first = above[0]
    if first == 0:
        return float(steps[0])
    return float(np.interp(level, curve[first - 1 : first + 1], steps[first - 1 : first + 1]))


def as_markdown(records, max_iter):
    """The tables of `active.md`."""
    choices = [choice for choice in STEPS if any(r["choice"] == choice for r in records)]
    lines = [
        f"Means over seeds, from {START} labels a class in batches of 10, at most {max_iter} iterations a fit.",
        "",
    ]
    for dataset in dict.fromkeys(r["dataset"] for r in records):
        seeds = len({r["seed"] for r in records if r["dataset"] == dataset})
        for measure, words in MEASURES.items():
            curves = {choice: mean_curve(records, dataset, choice, measure) for choice in choices}
            lines += [f"### {dataset}, {seeds} seeds, accuracy % on {words}", ""]
            header = ["labels", *map(str, STEPS["random"])]
            lines += ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
            for choice in choices:
                cells = [f"{100 * value:.1f}" for value in curves[choice]]
                cells += ["–"] * (len(header) - 1 - len(cells))
                lines.append("| " + " | ".join([choice, *cells]) + " |")
            for choice in choices[1:]:
                cells = []
                for total, level in zip(STEPS["random"], curves["random"], strict=True):
                    need = labels_needed(curves[choice], STEPS[choice], level)
                    cells.append("–" if np.isnan(need) else f"{need:.0f} ({100 * need / total:.0f} %)")
                lines.append("| " + " | ".join([f"labels that {choice} needs for random's accuracy", *cells]) + " |")
            lines.append("")
    return "\n".join(lines)


def main():
    """Measure, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["digits", "handwritten"])
    parser.add_argument("--choices", nargs="+", default=["random", "most_informative"], choices=STEPS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--max-iter", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/active"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    args.out.mkdir(parents=True, exist_ok=True)
    records = []
    for dataset in args.datasets:
        for seed in range(args.seeds):
            for choice in args.choices:
                records += label_step_by_step(dataset, seed, choice, args.max_iter)
            print(f"{dataset}, seed {seed}: {100 * records[-1]['unlabelled']:.1f} %", flush=True)
            write_csv(args.out / "active.csv", COLUMNS, records)
    with open_atomically(args.out / "active.md") as file:
        file.write(as_markdown(records, args.max_iter).encode())


if __name__ == "__main__":
    main()
