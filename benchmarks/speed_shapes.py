"""A fit to data of many shapes beside work of the same size, as ratios in one run; part of `make bench`.

    python benchmarks/speed_shapes.py                       # all shapes, three turns, into results/speed: 10 minutes
    python benchmarks/speed_shapes.py --shapes Cora ACM     # some of them
    python benchmarks/speed_shapes.py --label before --source ../old/src --turns 1    # another version of lmssc
    python benchmarks/speed_shapes.py --page                # only write page and figure again

Each measurement is a process of its own. Seconds are those of the processor, which other programs on the machine do not
lengthen much. Needs Linux; Cora and ACM are left out if their files are not in $LMSSC_DATA.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent.parent / "results" / "speed"
TABLE = "shape_ratios.csv"
FIELDS = ("shape", "version", "lmssc", "next", "peer", "ratio", "memory", "peak", "accuracy", "parts")
# Functions whose seconds are shown, and the part of a fit that they are.
PARTS = {
    "scaling": [("lmssc.estimators.view_scaling", "fit_scalings"), ("lmssc.estimators.view_scaling", "scale_views")],
    "SVD": [("lmssc.core.initialization", "latent_start")],
    "held-out labels": [("lmssc.core.begin", "hold_out"), ("lmssc.core.begin", "calibrate_start")],
    "neighbours": [("lmssc.core.objective", "learn_graph")],
    "propagation": [("lmssc.core.warm_start", "propagate"), ("lmssc.core.objective", "propagate")],
}


def synthetic(samples, n_views, features, classes=10):
    """Classes that overlap, 5 % labelled, at least five of each."""
    from lmssc.datasets import make_multiview

    widths = [len(range(v, features, n_views)) for v in range(n_views)]
    labelled = max(0.05, 5 * classes / samples)
    data = make_multiview(samples, n_views, widths, n_classes=classes, labelled=labelled, random_state=0)
    return list(data.views), data.target, data.y


def from_file(name):
    """Dense views of a file of $LMSSC_DATA, rows shuffled, a tenth of them labelled."""
    from scipy.io import loadmat

    content = loadmat(Path(os.environ["LMSSC_DATA"]) / f"{name}.mat")
    target = content["y"].ravel().astype(int)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(target))
    views = [np.ascontiguousarray(view[rows], dtype=np.float64) for view in content["X"].ravel()]
    return views, target[rows], np.where(rng.random(len(rows)) < 0.1, target[rows], -1)


def few_kinds():
    """20,000 rows of 18 kinds, such as a table of categories."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 18, 20_000)
    target = kind % 3
    return [rng.normal(size=(18, 10))[kind]], target, np.where(rng.random(len(kind)) < 0.05, target, -1)


def many_classes(samples=4000, classes=1000):
    """Classes of four samples each, two of them labelled, in five directions more than half of the features."""
    rng = np.random.default_rng(0)
    target = rng.permutation(np.arange(samples) % classes)
    X = rng.normal(size=(classes, 15))[target] @ rng.normal(size=(15, 60)) + 0.3 * rng.normal(size=(samples, 60))
    seen = np.zeros(classes, dtype=int)
    y = np.full(samples, -1)
    for row, code in enumerate(target):
        if seen[code] < 2:
            y[row] = code
            seen[code] += 1
    return [X[:, :30], X[:, 30:]], target, y


def mostly_single_labels(samples=22_000, classes=20_000):
    """Classes of one labelled sample each; of 500 another one and one to find, and of 1,000 one to find."""
    rng = np.random.default_rng(0)
    extra = np.concatenate([np.repeat(np.arange(500), 2), np.arange(500, 1500)])
    target = np.concatenate([np.arange(classes), extra[: samples - classes]])
    hidden = np.arange(samples) >= classes
    hidden[classes : classes + 1000 : 2] = False
    order = rng.permutation(samples)
    target, hidden = target[order], hidden[order]
    X = rng.normal(size=(classes, 15))[target] @ rng.normal(size=(15, 60)) + 0.3 * rng.normal(size=(samples, 60))
    return [X[:, :30], X[:, 30:]], target, np.where(hidden, -1, target)


def on_a_line():
    """100,000 samples with one feature that has a heavy tail."""
    rng = np.random.default_rng(0)
    x = rng.exponential(size=100_000) ** 3
    target = (x > np.median(x)).astype(int)
    return [x[:, None]], target, np.where(rng.random(len(x)) < 0.01, target, -1)


def label_spreading(views, y):
    """Label spreading on the views side by side."""
    from sklearn.semi_supervised import LabelSpreading

    LabelSpreading(kernel="knn").fit(np.hstack(views), y)


def label_spreading_jittered(views, y):
    """Label spreading on rows that a little noise makes distinct."""
    label_spreading([view + 1e-3 * np.random.default_rng(0).normal(size=view.shape) for view in views], y)


def dense_svd(views, y):
    """A randomised SVD of 80 components."""
    from sklearn.utils.extmath import randomized_svd

    randomized_svd(np.hstack(views), 80, random_state=0)


def sparse_svd(views, y):
    """A randomised SVD of 150 components of the CSR."""
    from scipy import sparse
    from sklearn.utils.extmath import randomized_svd

    randomized_svd(sparse.hstack([sparse.csr_array(view) for view in views], format="csr"), 150, random_state=0)


# Data, work of the same size, and the largest ratio that is promised (None: seconds, not a ratio).
SHAPES = {
    "300 × 600": (lambda: synthetic(300, 6, 600), label_spreading, 5),
    "1,000 × 600": (lambda: synthetic(1000, 6, 600), label_spreading, 5),
    "20,000 × 600": (lambda: synthetic(20_000, 6, 600), label_spreading, 0.25),
    "10,000 × 2,400": (lambda: synthetic(10_000, 6, 2400), dense_svd, 2),
    "5,000 × 3,000": (lambda: synthetic(5000, 6, 3000), dense_svd, 2),
    "Cora": (lambda: from_file("Cora"), sparse_svd, 5),
    "ACM": (lambda: from_file("ACM"), sparse_svd, 2),
    "20,000 rows of 18 kinds": (few_kinds, label_spreading_jittered, 10),
    "4,000 rows, 1,000 classes": (many_classes, label_spreading, 10),
    "22,000 rows, 20,000 classes": (mostly_single_labels, None, None),
    "100,000 × 1": (on_a_line, None, None),
}


class PartTimes:
    """Processor seconds within some functions; nested ones count for the inner."""

    def __init__(self, parts):
        self.parts, self.spent, self._within = parts, dict.fromkeys(parts, 0.0), [0.0]

    def watch(self):
        """Count from now on; a version of lmssc without one of the functions counts it as "rest"."""
        from importlib import import_module

        for part, places in self.parts.items():
            for module, name in places:
                try:
                    owner = import_module(module)
                    setattr(owner, name, self._timed(part, getattr(owner, name)))
                except (ImportError, AttributeError):
                    pass

    def _timed(self, part, function):
        def wrapper(*args, **options):
            self._within.append(0.0)
            began = time.process_time()
            try:
                return function(*args, **options)
            finally:
                seconds = time.process_time() - began
                self.spent[part] += seconds - self._within.pop()
                self._within[-1] += seconds

        return wrapper


def peak():
    """Peak memory of this process in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def measure(shape):
    """First and next seconds of a fit, those of the other work, memory beside the input, accuracy, and the parts."""
    warnings.simplefilter("ignore")
    make, peer, _ = SHAPES[shape]
    views, target, y = make()
    from lmssc import LMSSC

    began, before = time.process_time(), peak()
    clf = LMSSC().fit(views, y)
    first = time.process_time() - began
    highest = peak()
    memory = (highest - before) / sum(view.nbytes for view in views)
    times = PartTimes(PARTS)
    times.watch()
    began = time.process_time()
    LMSSC().fit(views, y)
    again = time.process_time() - began
    other = None
    if peer is not None:
        if len(y) <= 1000:
            peer(views, y)  # the first call imports, which counts only beside milliseconds
        began = time.process_time()
        peer(views, y)
        other = time.process_time() - began
    accuracy = 100 * float((clf.transduction_ == target)[y == -1].mean())
    parts = {**times.spent, "rest": again - sum(times.spent.values())}
    found = {"lmssc": first, "next": again, "peer": other, "memory": memory, "peak": highest / 1e9}
    return {**found, "accuracy": accuracy, "parts": parts}


def measured(shape, source):
    """`measure` in a process of its own, with the lmssc of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", shape]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode:
        print(f"  {shape}: {result.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(result.stdout)


def median_of(found):
    """Medians of several measurements of one shape; ratios are taken within each."""
    row = {
        name: statistics.median(one[name] for one in found) for name in ("lmssc", "next", "memory", "peak", "accuracy")
    }
    if found[0]["peer"] is not None:
        row["peer"] = statistics.median(one["peer"] for one in found)
        row["ratio"] = statistics.median(one["next"] / one["peer"] for one in found)
    row["parts"] = {part: statistics.median(one["parts"][part] for one in found) for part in found[0]["parts"]}
    return row


def read_rows(folder):
    """The table, by shape and version."""
    if not (folder / TABLE).exists():
        return {}
    with (folder / TABLE).open(newline="") as file:
        return {(row["shape"], row["version"]): row for row in csv.DictReader(file)}


def write_rows(rows, folder):
    """Write the table, shapes in their order."""
    order = sorted(rows, key=lambda key: (list(SHAPES).index(key[0]), key[1] != "before"))
    with (folder / TABLE).open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows[key] for key in order)


def as_row(shape, version, found):
    """A row of the table."""
    numbers = {name: f"{found[name]:.4g}" for name in FIELDS if isinstance(found.get(name), float)}
    parts = json.dumps({part: float(f"{value:.3g}") for part, value in found["parts"].items()})
    return {"shape": shape, "version": version, **numbers, "parts": parts}


def version_parser(description, shapes):
    """The options of a benchmark that compares versions of lmssc; `--one` measures one shape in this process."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", choices=shapes, help=argparse.SUPPRESS)
    parser.add_argument("--label", default="now", help="name of the version that is measured")
    parser.add_argument("--source", type=Path, default=Path(__file__).parent.parent / "src")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", action="store_true")
    return parser


def main():
    """Measure and write."""
    parser = version_parser(__doc__, SHAPES)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one)))
        return
    rows = read_rows(args.out)
    if not args.page:
        found = {shape: [] for shape in args.shapes}
        for _ in range(args.turns):
            for shape, results in found.items():
                one = measured(shape, args.source.resolve())
                if one is not None:
                    results.append(one)
                    rows[shape, args.label] = as_row(shape, args.label, median_of(results))
                    write_rows(rows, args.out)
                    print({name: value for name, value in rows[shape, args.label].items() if name != "parts"})
    from speed_shapes_page import write_shapes

    write_shapes(rows, {shape: goal for shape, (_, _, goal) in SHAPES.items()}, args.out)


if __name__ == "__main__":
    main()
