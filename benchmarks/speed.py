"""Time and memory of LMSSC beside label propagation and neighbour graphs of the same size, into results/speed.

    python benchmarks/speed.py                # all that fits into half an hour
    python benchmarks/speed.py --sizes 1000   # one size

Every measurement is a process of its own, one after another, so that the peak of its memory is its own. Times are
seconds of the processor, on as many threads as OMP_NUM_THREADS says: they do not depend on what else the machine does.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

OUT = Path(__file__).parent.parent / "results" / "speed"
COLUMNS = ["case", "samples", "views", "features", "classes", "dtype", "seconds", "megabytes", "accuracy", "detail"]
PEERS = ["LabelSpreading", "LabelPropagation", "scikit-network", "graphlearning", "exact kNN", "approximate kNN"]


def make(samples, views, features, classes, dtype, label_share=0.05):
    """Classes that overlap: about 5 % cannot be told."""
    from lmssc.datasets import make_multiview

    return make_multiview(
        samples, views, features // views, n_classes=classes, labelled=label_share, random_state=0, dtype=dtype
    )


def scaled(data):
    """Views side by side, columns of mean 0 and variance 1."""
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(np.hstack(data.views))


def latent(X, n_components=80):
    """Leading principal components."""
    import numpy as np

    vectors = np.linalg.eigh(X.T @ X)[1][:, ::-1]
    return np.ascontiguousarray(X @ vectors[:, :n_components])


def run_lmssc(data):
    """A whole fit, and the time of each update."""
    import lmssc.estimators.lmssc as module
    from lmssc import LMSSC

    spent = {}

    def timed(owner, name, label):
        function = getattr(owner, name)

        def wrapper(*args, **kwargs):
            began = time.process_time()
            result = function(*args, **kwargs)
            spent[label] = spent.get(label, 0.0) + time.process_time() - began
            return result

        setattr(owner, name, wrapper)

    timed(module.LMSSC, "_start", "start")
    timed(module.LMSSC, "_find_temperature", "of it calibration")
    timed(module.Model, "update_loadings", "W")
    timed(module, "update_latent", "H")
    timed(module.Model, "update_graph", "S")
    timed(module.Model, "propagate", "F")
    began = time.process_time()
    clf = LMSSC().fit(data.views, data.y)
    seconds = time.process_time() - began
    detail = {"iterations": clf.n_iter_, "recall": round(clf.neighbor_recall_, 3)}
    return seconds, clf.transduction_, {**detail, **{name: round(value, 2) for name, value in spent.items()}}


def run_predict(data):
    """New samples a second, after a fit."""
    from lmssc import LMSSC

    half = len(data.y) // 2
    clf = LMSSC(max_iter=1).fit([view[:half] for view in data.views], data.y[:half])
    new = [view[half:] for view in data.views]
    began = time.process_time()
    clf.predict(new)
    seconds = time.process_time() - began
    return seconds, None, {"fitted on": half, "a second": round((len(data.y) - half) / seconds)}


def run_peer(case, data):
    """One of the peers on the scaled concatenation; its own neighbour graph counts."""
    import numpy as np

    X = scaled(data)
    if case.endswith("kNN"):
        X = latent(X)
    began = time.process_time()
    answer, detail = None, {}
    if case in ("LabelSpreading", "LabelPropagation"):
        from sklearn import semi_supervised

        answer = getattr(semi_supervised, case)(kernel="knn").fit(X, data.y).transduction_
    elif case == "scikit-network":
        from sklearn.neighbors import kneighbors_graph
        from sknetwork.classification import Propagation

        graph = kneighbors_graph(X, 10, mode="connectivity")
        labels = {int(i): int(data.y[i]) for i in np.flatnonzero(data.y >= 0)}
        answer = Propagation().fit_predict(graph.maximum(graph.T).tocsr(), labels)
    elif case == "graphlearning":
        import graphlearning

        known = np.flatnonzero(data.y >= 0)
        graph = graphlearning.weightmatrix.knn(X, 10)
        answer = graphlearning.ssl.laplace(graph).fit_predict(known, data.y[known])
    elif case == "exact kNN":
        from sklearn.neighbors import NearestNeighbors

        NearestNeighbors(n_neighbors=12, algorithm="brute").fit(X).kneighbors(X)
    else:
        seconds, detail = approximate(X)
        return seconds, None, detail
    return time.process_time() - began, answer, detail


def approximate(X, needed=11, target=0.95):
    """An inverted file of faiss that finds 95 % of the 11 nearest others; the time to find out how is not counted."""
    import faiss
    import numpy as np

    from lmssc.neighbors import Blocks

    X = X.astype(np.float32)
    rows = np.linspace(0, len(X) - 1, 300, dtype=int)
    truth = Blocks.of(X).nearest(X[rows], needed + 1)[0]
    began = time.process_time()
    n_clusters = int(min(4 * np.sqrt(len(X)), len(X) / 40))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_clusters)
    index.cp.niter = 8
    index.train(np.ascontiguousarray(X[:: max(1, len(X) // (40 * n_clusters))]))
    index.add(X)
    seconds = time.process_time() - began
    while True:
        found = index.search(X[rows], needed + 1)[1]
        recall = np.mean([len(np.intersect1d(a, b)) / (needed + 1) for a, b in zip(truth, found, strict=True)])
        if recall >= target or index.nprobe >= n_clusters:
            break
        index.nprobe = min(n_clusters, max(index.nprobe + 1, int(1.5 * index.nprobe)))
    began = time.process_time()
    index.search(X, needed + 1)
    return seconds + time.process_time() - began, {"recall": round(float(recall), 3), "nprobe": index.nprobe}


def run_dense():
    """One iteration of Algorithm 1 on HW by the formulas of the paper, and by LMSSC from the same state."""
    import numpy as np
    import quadprog
    from scipy.linalg import solve_sylvester
    from scipy.optimize import nnls
    from scipy.spatial.distance import cdist

    from lmssc import LMSSC, datasets, paper_settings
    from lmssc.estimators import lmssc as module

    data = datasets.load("handwritten")
    hidden = np.random.default_rng(0).random(len(data.target)) > 0.1
    y = np.where(hidden, -1, data.target)
    states, original = [], module.Model.step

    def step(model, state):
        states.append((model, state))
        return original(model, state)

    module.Model.step = step
    settings = {**paper_settings(), "scaling": "auto", "random_state": 0, "max_iter": 4}
    LMSSC(**settings).fit(data.views, y)
    model, state = states[-1]
    began = time.process_time()
    new = original(model, state)
    fast = time.process_time() - began

    began = time.process_time()
    X = [view.data for view in model.views]
    W = [np.array([nnls(state.latent, column)[0] for column in view.T]) for view in X]
    A = sum(loading.T @ loading for loading in W)
    B = sum(view @ loading for view, loading in zip(X, W, strict=True))
    H = solve_sylvester(model.beta * state.laplacian.toarray(), A, B)
    distances = model.beta * cdist(H, H, "sqeuclidean") + model.gamma * cdist(state.scores, state.scores, "sqeuclidean")
    before_rows = time.process_time() - began
    alpha = float(new.alpha[0])
    rows, worst = (0, 500), 0.0
    began = time.process_time()
    for i in rows:
        others = np.delete(np.arange(len(H)), i)
        n = len(others)
        constraints = np.hstack([np.ones((n, 1)), np.eye(n)])
        weights = quadprog.solve_qp(
            2 * alpha * model.beta * np.eye(n), -distances[i, others] / 2, constraints, np.r_[1.0, np.zeros(n)], 1
        )[0]
        worst = max(worst, float(np.abs(new.graph[[i]].toarray().ravel()[others] - weights).max()))
    a_row = (time.process_time() - began) / len(rows)
    difference = float(np.abs(new.latent - H).max() / np.abs(H).max())
    detail = {
        "W, H and distances": round(before_rows, 2),
        "a QP": round(a_row, 2),
        "LMSSC, an iteration": round(fast, 3),
        "ratio": round((before_rows + a_row * len(H)) / fast),
        "ratio without the QPs": round(before_rows / fast),
        "largest difference of H": f"{difference:.0e}",
        "of S": f"{worst:.0e}",
    }
    return before_rows + a_row * len(H), None, detail


def measure(args):
    """One case, in this process; prints a line of JSON."""
    warnings.simplefilter("ignore")
    if args.case == "dense formulas":
        seconds, answer, detail = run_dense()
    else:
        data = make(args.samples, args.views, args.features, args.classes, args.dtype)
        if args.case == "LMSSC":
            seconds, answer, detail = run_lmssc(data)
        elif args.case == "predict":
            seconds, answer, detail = run_predict(data)
        else:
            seconds, answer, detail = run_peer(args.case, data)
    accuracy = None
    if answer is not None:
        accuracy = 100 * float((answer == data.target)[data.y == -1].mean())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": peak, "accuracy": accuracy, "detail": detail}))


def measured(case, samples, views=6, features=600, classes=10, dtype="float64", timeout=900):
    """One case, in a process of its own."""
    shape = {"samples": samples, "views": views, "features": features, "classes": classes, "dtype": dtype}
    options = [text for name, value in shape.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, __file__, "--case", case, *options]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        lines = result.stdout.splitlines()
        found = json.loads(lines[-1]) if result.returncode == 0 else {"detail": result.stderr.strip()[-200:]}
    except subprocess.TimeoutExpired:
        found = {"detail": f"stopped after {timeout} s"}
    row = {**dict.fromkeys(COLUMNS), "case": case, **shape, **found}
    row["detail"] = row["detail"] if isinstance(row["detail"], str) else json.dumps(row["detail"])
    shown = {
        name: f"{row[name]:.1f}" if row[name] is not None else "-" for name in ("seconds", "megabytes", "accuracy")
    }
    print(
        f"{case:18}{samples:9,} {dtype:8}{shown['seconds']:>9} s{shown['megabytes']:>9} MB{shown['accuracy']:>7} %  "
        f"{row['detail']}",
        flush=True,
    )
    return row


def keep(rows):
    """Add rows to the table; a case that was measured before is replaced."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "speed.csv"
    key = COLUMNS[:6]
    old = []
    if path.exists():
        with open(path, newline="") as file:
            old = list(csv.DictReader(file))
    new = [
        {
            name: "" if row[name] is None else f"{row[name]:.4g}" if isinstance(row[name], float) else str(row[name])
            for name in COLUMNS
        }
        for row in rows
    ]
    taken = {tuple(row[name] for name in key) for row in new}
    merged = [row for row in old if tuple(row[name] for name in key) not in taken] + new
    numbers = ("samples", "features", "views", "classes")
    merged.sort(key=lambda row: (*(int(row[name]) for name in numbers), row["dtype"], row["case"]))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged)
    describe(merged)
    return merged


def draw(rows):
    """Time over the number of samples, both logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    chosen = [row for row in rows if row["features"] == "600" and row["classes"] == "10" and row["views"] == "6"]
    for case in ["LMSSC", *PEERS]:
        for dtype, style in (("float64", "-"), ("float32", "--")):
            line = sorted(
                (int(r["samples"]), float(r["seconds"]))
                for r in chosen
                if r["case"] == case and r["dtype"] == dtype and r["seconds"]
            )
            if line:
                axes.plot(*zip(*line, strict=True), style, marker="o", label=f"{case}, {dtype}")
    axes.set(xscale="log", yscale="log", xlabel="samples", ylabel="seconds of the processor")
    axes.legend(fontsize=7)
    figure.savefig(OUT / "speed.svg")


def describe(rows):
    """results/speed/README.md: the machine, and every row of the table."""
    from lmssc.machine import describe_machine

    with open("/proc/cpuinfo") as file:
        model = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    lines = [
        "# Speed",
        "",
        "Written by `make bench` (`benchmarks/speed.py`); the numbers are in `speed.csv`, the growth in `speed.svg`.",
        "Every measurement is a process of its own. Seconds are those of the processor, so that other work on the",
        "machine counts little; memory is the peak of the whole process, the data included. Synthetic classes that",
        "overlap, 5 % labelled. Peers get the views scaled and side by side, and make their own neighbour graph; the",
        "two kNN graphs are of 80 principal components. `LMSSC` is a whole fit to convergence, or 30 iterations; the",
        "seconds after its row are those of its parts. `dense formulas` is one iteration of Algorithm 1 on HW, with a",
        "quadratic program of 1,999 unknowns for each row; two of these were solved, the others counted as the same.",
        "",
        f"{machine}; {model[0] if model else 'processor unknown'}; "
        f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}.",
        "",
        "| | samples | views | features | classes | | seconds | MB | accuracy % | |",
        "|---|--:|--:|--:|--:|---|--:|--:|--:|---|",
    ]
    for row in rows:
        detail = row["detail"].strip("{}").replace('"', "").replace("\n", " ").replace("|", " ")
        lines.append("| " + " | ".join([row[name] for name in COLUMNS[:-1]] + [detail]) + " |")
    (OUT / "README.md").write_text("\n".join(lines) + "\n")


def main():
    """Measure, and write table, page and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", help="measure one case in this process")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--views", type=int, default=6)
    parser.add_argument("--features", type=int, default=600)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 20_000, 100_000])
    parser.add_argument("--cases", nargs="+", default=["LMSSC", *PEERS])
    parser.add_argument("--page", action="store_true", help="write page and figure again from the table")
    parser.add_argument("--extra", action="store_true", help="growth over features, views and classes; predict; dense")
    args = parser.parse_args()
    if args.case:
        return measure(args)
    if args.page:
        return draw(keep([]))
    print(f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}")
    for size in args.sizes:
        for case in args.cases:
            draw(keep([measured(case, size, dtype=args.dtype)]))
    if args.extra:
        keep([measured("dense formulas", 2000, features=649)])
        keep([measured("predict", 200_000, dtype="float32")])
        for shape in (
            {"features": 150},
            {"features": 2400},
            {"views": 2},
            {"views": 12},
            {"classes": 2},
            {"classes": 40},
        ):
            keep([measured("LMSSC", 10_000, **shape)])
    return None


if __name__ == "__main__":
    main()
