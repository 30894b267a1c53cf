"""Time and memory of LMSSC beside label propagation and neighbour graphs of the same size, into results/speed.

    python benchmarks/speed.py                # LMSSC and its peers at several sizes
    python benchmarks/speed.py --sizes 1000   # one size
    python benchmarks/speed.py --extra        # and growth over features, views, classes, dimensions; predict; dense
    python benchmarks/speed.py --million      # a million samples, 100,000 of the same, and the exact fit to 50,000

Every measurement is a process of its own, one after another, so that the peak of its memory is its own, on as many
threads as OMP_NUM_THREADS says.
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
SHAPE = ["case", "data", "samples", "views", "features", "classes", "components", "dtype", "threads"]
COLUMNS = [*SHAPE, "wall", "cpu", "megabytes", "accuracy", "detail"]
OF_LATENT, OF_COMPONENTS = "approximate kNN of H", "approximate kNN, 80 components"
PEERS = [
    "LabelSpreading",
    "LabelPropagation",
    "scikit-network",
    "graphlearning",
    "exact kNN, 80 components",
    OF_LATENT,
    OF_COMPONENTS,
]
# The share of labels, and how far apart the classes are, by kind of data.
LABELLED = {"synthetic": 0.05, "million": 0.01, "HW": 0.05}
MILLION = {"data": "million", "views": 3, "features": 100, "dtype": "float32"}
# Samples of the million that are fitted without an index.
SUBSAMPLE = 50_000


def threads():
    """How many threads the numerical libraries may take."""
    return os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count())


class Stopwatch:
    """Seconds since it was made, on the wall and of the processor.

    A virtual machine gives memory that is free for some seconds back to its host, and takes seconds a gigabyte to get
    it again. So that this is in no one's time, as much as `samples` may need is used just before, by another process.
    """

    def __init__(self, samples=0):
        if samples:
            touch = f"import numpy; numpy.empty({max(1 << 30, 4000 * samples)}, dtype='uint8').fill(1)"
            subprocess.run([sys.executable, "-c", touch], check=True)
        self.began = time.perf_counter(), time.process_time()

    def read(self):
        """Both."""
        return time.perf_counter() - self.began[0], time.process_time() - self.began[1]


def make(args):
    """Classes that overlap: some samples cannot be told; or HW, copied with noise until there are enough."""
    from lmssc.datasets import make_multiview

    if args.data == "HW":
        return jittered_handwritten(args.samples, args.dtype)
    widths = [len(range(v, args.features, args.views)) for v in range(args.views)]
    return make_multiview(
        args.samples,
        args.views,
        widths,
        n_classes=args.classes,
        labelled=LABELLED[args.data],
        random_state=0,
        dtype=args.dtype,
    )


def jittered_handwritten(samples, dtype):
    """Rows of HW, each several times, with noise of a third of the deviation of the column."""
    import numpy as np
    from sklearn.utils import Bunch

    from lmssc import datasets

    data = datasets.load("handwritten")
    random = np.random.default_rng(0)
    rows = np.arange(samples) % len(data.target)
    views = [
        (view[rows] + view.std(axis=0) / 3 * random.standard_normal((samples, view.shape[1]))).astype(dtype)
        for view in data.views
    ]
    target = np.asarray(data.target)[rows]
    return Bunch(views=views, target=target, y=np.where(random.random(samples) < LABELLED["HW"], target, -1))


def scaled(data):
    """Views side by side, columns of mean 0 and variance 1."""
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(np.hstack(data.views))


def leading_components(X, n_components=80):
    """Leading principal components."""
    import numpy as np

    vectors = np.linalg.eigh(X.T @ X)[1][:, ::-1]
    return np.ascontiguousarray(X @ vectors[:, :n_components])


def run_lmssc(data, n_components):
    """A whole fit, and the time of each update."""
    import faiss  # noqa: F401  what is imported is in no one's time

    from lmssc import LMSSC, model

    spent = {}

    def timed(owner, name, label):
        function = getattr(owner, name)

        def wrapper(*args, **kwargs):
            began = time.process_time()
            result = function(*args, **kwargs)
            spent[label] = spent.get(label, 0.0) + time.process_time() - began
            return result

        setattr(owner, name, wrapper)

    timed(LMSSC, "_fit_scalings", "scaling")
    timed(LMSSC, "_start", "start")
    timed(LMSSC, "_first_positions", "of it SVD")
    timed(LMSSC, "_find_temperature", "of it calibration")
    timed(model.Model, "update_loadings", "W")
    timed(model, "update_latent", "H")
    timed(model.Model, "update_graph", "S")
    timed(model.Model, "propagate", "F")
    watch = Stopwatch(len(data.y))
    clf = LMSSC(n_components=n_components).fit(data.views, data.y)
    seconds = watch.read()
    detail = {"r": clf.latent_.shape[1], "iterations": clf.n_iter_, "recall": round(clf.neighbor_recall_, 3)}
    spent["rest"] = seconds[1] - sum(value for name, value in spent.items() if not name.startswith("of it"))
    return seconds, clf.transduction_, {**detail, **{name: round(value, 2) for name, value in spent.items()}}


def run_exact(data):
    """A whole fit to some of the samples, without an index."""
    from sklearn.utils import Bunch

    from lmssc import LMSSC, approximate

    approximate.FEWEST_SAMPLES = sys.maxsize
    views = [view[:SUBSAMPLE].copy() for view in data.views]
    data.update(Bunch(views=views, target=data.target[:SUBSAMPLE], y=data.y[:SUBSAMPLE]))
    watch = Stopwatch(len(data.y))
    clf = LMSSC().fit(data.views, data.y)
    return watch.read(), clf.transduction_, {"samples": SUBSAMPLE, "iterations": clf.n_iter_}


def run_predict(data):
    """New samples a second, after a fit to half of the data."""
    from lmssc import LMSSC

    half = len(data.y) // 2
    clf = LMSSC(max_iter=1).fit([view[:half] for view in data.views], data.y[:half])
    new = [view[half:] for view in data.views]
    watch = Stopwatch(half)
    clf.predict(new)
    seconds = watch.read()
    rates = [round((len(data.y) - half) / one) for one in seconds]
    return seconds, None, {"fitted on": half, "a second": rates[0], "a second of the processor": rates[1]}


def run_peer(case, data):
    """One of the peers on the scaled concatenation; its own neighbour graph counts."""
    import numpy as np

    if case == OF_LATENT:
        from lmssc import LMSSC

        clf = LMSSC().fit(data.views, data.y)
        return approximate(clf.latent_, usual_k(data) + 1, min(clf.neighbor_recall_, 0.99))
    X = scaled(data)
    if case.endswith("80 components"):
        X = leading_components(X)
    if case == OF_COMPONENTS:
        return approximate(X, usual_k(data) + 1)
    watch = Stopwatch(len(data.y))
    answer = None
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
    else:
        from sklearn.neighbors import NearestNeighbors

        NearestNeighbors(n_neighbors=12, algorithm="brute").fit(X).kneighbors(X)
    return watch.read(), answer, {}


def usual_k(data):
    """The neighbours of a sample in the graph of LMSSC."""
    from lmssc.graph import usual_neighbors

    return usual_neighbors(len(data.y), int((data.y >= 0).sum()), len(set(data.target)))


def approximate(X, needed, target=0.95):
    """An inverted file of faiss that finds such a share of the nearest others; to find out how is not counted."""
    import faiss
    import numpy as np

    from lmssc.neighbors import Blocks

    X = X.astype(np.float32)
    rows = np.linspace(0, len(X) - 1, 300, dtype=int)
    truth = Blocks.of(X).nearest(X[rows], needed + 1)[0]
    watch = Stopwatch(len(X))
    n_clusters = int(min(4 * np.sqrt(len(X)), len(X) / 40))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_clusters)
    index.cp.niter = 8
    index.train(np.ascontiguousarray(X[:: max(1, len(X) // (40 * n_clusters))]))
    index.add(X)
    building = watch.read()
    while True:
        found = index.search(X[rows], needed + 1)[1]
        # The point itself is among both.
        recall = np.mean([(len(np.intersect1d(a, b)) - 1) / needed for a, b in zip(truth, found, strict=True)])
        if recall >= target or index.nprobe >= n_clusters:
            break
        index.nprobe = min(n_clusters, max(index.nprobe + 1, int(1.1 * index.nprobe)))
    watch = Stopwatch(len(X))
    index.search(X, needed + 1)
    seconds = tuple(map(sum, zip(building, watch.read(), strict=True)))
    detail = {"dimensions": X.shape[1], "neighbours": needed, "recall": round(float(recall), 3), "nprobe": index.nprobe}
    return seconds, None, detail


def run_dense():
    """One iteration of Algorithm 1 on HW by the formulas of the paper, and by LMSSC from the same state."""
    import numpy as np
    import quadprog
    from scipy.linalg import solve_sylvester
    from scipy.optimize import nnls
    from scipy.spatial.distance import cdist

    from lmssc import LMSSC, datasets, paper_settings
    from lmssc.model import Model

    data = datasets.load("handwritten")
    hidden = np.random.default_rng(0).random(len(data.target)) > 0.1
    y = np.where(hidden, -1, data.target)
    states, original = [], Model.step

    def step(model, state):
        states.append((model, state))
        return original(model, state)

    Model.step = step
    settings = {**paper_settings(), "scaling": "auto", "random_state": 0, "max_iter": 4}
    LMSSC(**settings).fit(data.views, y)
    model, state = states[-1]
    watch = Stopwatch(len(data.target))
    new = original(model, state)
    fast = watch.read()[1]

    watch = Stopwatch()
    X = [view.data for view in model.views]
    W = [np.array([nnls(state.latent, column)[0] for column in view.T]) for view in X]
    A = sum(loading.T @ loading for loading in W)
    B = sum(view @ loading for view, loading in zip(X, W, strict=True))
    H = solve_sylvester(model.beta * state.laplacian.toarray(), A, B)
    distances = model.beta * cdist(H, H, "sqeuclidean") + model.gamma * cdist(state.scores, state.scores, "sqeuclidean")
    before_rows = watch.read()[1]
    alpha = float(new.alpha[0])
    rows, worst = (0, 500), 0.0
    watch = Stopwatch()
    for i in rows:
        others = np.delete(np.arange(len(H)), i)
        n = len(others)
        constraints = np.hstack([np.ones((n, 1)), np.eye(n)])
        weights = quadprog.solve_qp(
            2 * alpha * model.beta * np.eye(n), -distances[i, others] / 2, constraints, np.r_[1.0, np.zeros(n)], 1
        )[0]
        worst = max(worst, float(np.abs(new.graph[[i]].toarray().ravel()[others] - weights).max()))
    a_row = watch.read()[1] / len(rows)
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
    return (None, before_rows + a_row * len(H)), None, detail


def measure(args):
    """One case, in this process; prints a line of JSON."""
    warnings.simplefilter("ignore")
    if args.case == "dense formulas":
        seconds, answer, detail = run_dense()
    else:
        data = make(args)
        if args.case == "LMSSC":
            seconds, answer, detail = run_lmssc(data, int(args.components) if args.components != "auto" else "auto")
        elif args.case == "LMSSC, exact":
            seconds, answer, detail = run_exact(data)
        elif args.case == "predict":
            seconds, answer, detail = run_predict(data)
        else:
            seconds, answer, detail = run_peer(args.case, data)
    accuracy = None
    if answer is not None:
        accuracy = 100 * float((answer == data.target)[data.y == -1].mean())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"wall": seconds[0], "cpu": seconds[1], "megabytes": peak, "accuracy": accuracy, "detail": detail}
    print(json.dumps(found))


def measured(case, samples, timeout=1800, **shape):
    """One case, in a process of its own."""
    usual = {"data": "synthetic", "samples": samples, "views": 6, "features": 600, "classes": 10, "components": "auto"}
    shape = {**usual, "dtype": "float64", **shape}
    options = [text for name, value in shape.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, __file__, "--case", case, *options]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        lines = result.stdout.splitlines()
        found = json.loads(lines[-1]) if result.returncode == 0 else {"detail": result.stderr.strip()[-200:]}
    except subprocess.TimeoutExpired:
        found = {"detail": f"stopped after {timeout} s"}
    row = {**dict.fromkeys(COLUMNS), "case": case, **shape, "threads": threads(), **found}
    row["detail"] = row["detail"] if isinstance(row["detail"], str) else json.dumps(row["detail"])
    units = {"wall": "s", "cpu": "s of the processor", "megabytes": "MB", "accuracy": "%"}
    shown = "  ".join(f"{row[name]:.1f} {unit}" for name, unit in units.items() if row[name] is not None)
    print(f"{case}, {shape['data']} {samples:,} {shape['dtype']}: {shown}  {row['detail']}", flush=True)
    return row


def median(rows):
    """The run of a case that took neither longest nor shortest, and how long all took."""
    ordered = sorted((row for row in rows if row["wall"]), key=lambda row: row["wall"])
    if len(ordered) < 2:
        return (ordered or rows)[0]
    middle = ordered[len(ordered) // 2]
    runs = {"all runs": [round(row["wall"], 2) for row in ordered]}
    return {**middle, "detail": json.dumps({**json.loads(middle["detail"]), **runs})}


def keep(rows):
    """Add rows to the table; a case that was measured before is replaced."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "speed.csv"
    key = SHAPE
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
    names = ("components", "dtype", "case")
    merged.sort(key=lambda row: (row["data"], *(int(row[name]) for name in numbers), *(row[name] for name in names)))
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
    usual = {"data": "synthetic", "features": "600", "classes": "10", "views": "6", "components": "auto"}
    chosen = [row for row in rows if all(row[name] == value for name, value in usual.items())]
    for case in ["LMSSC", *PEERS]:
        for dtype, style in (("float64", "-"), ("float32", "--")):
            line = sorted(
                (int(r["samples"]), float(r["cpu"]))
                for r in chosen
                if r["case"] == case and r["dtype"] == dtype and r["cpu"]
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
        "Every measurement is a process of its own; `wall` and `cpu` are seconds, of the clock and of the processor,",
        "and memory is the peak of the whole process, the data included. Synthetic classes that overlap, 5 % labelled,",
        "of the million 1 %; HW is enlarged by copies of its rows with noise of a third of the deviation of a column.",
        "Peers get the views scaled and side by side, and make their own neighbour graph. The approximate graphs are",
        "by an inverted file of faiss, of as many neighbours as LMSSC needs (k + 1): one of its latent positions H,",
        "with the recall that it had, and one of 80 principal components with a recall of 95 %; the time to tune the",
        "index is not counted. The exact graph is of 12 neighbours, itself among them. `LMSSC` is a whole fit with the",
        "defaults, to convergence; after it the processor seconds of its parts. `dense formulas` is an iteration",
        "of Algorithm 1 on HW, with a quadratic program of 1,999 unknowns for each row; two of these were solved, the",
        "others counted as the same.",
        "",
        f"{machine}; {model[0] if model else 'processor unknown'}.",
        "",
        "| | data | samples | views | features | classes | r | | threads | wall | cpu | MB | accuracy % | |",
        "|---|---|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        detail = row["detail"].strip("{}").replace('"', "").replace("\n", " ").replace("|", " ")
        lines.append("| " + " | ".join([row[name] for name in COLUMNS[:-1]] + [detail]) + " |")
    (OUT / "README.md").write_text("\n".join(lines) + "\n")


def main():
    """Measure, and write table, page and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", help="measure one case in this process")
    parser.add_argument("--data", choices=list(LABELLED), default="synthetic")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--views", type=int, default=6)
    parser.add_argument("--features", type=int, default=600)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--components", default="auto")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10_000, 20_000, 100_000])
    parser.add_argument("--cases", nargs="+", default=["LMSSC", *PEERS])
    parser.add_argument("--repeats", type=int, default=1, help="runs of each case, by turns; the median is kept")
    parser.add_argument("--page", action="store_true", help="write page and figure again from the table")
    parser.add_argument("--extra", action="store_true", help="growth over all other sizes, HW enlarged, predict, dense")
    parser.add_argument("--million", action="store_true", help="a million samples; 8 GB, half an hour")
    args = parser.parse_args()
    if args.case:
        return measure(args)
    if args.page:
        return draw(keep([]))
    print(f"{threads()} threads")
    for size in args.sizes:
        rounds = [[measured(case, size, dtype=args.dtype) for case in args.cases] for _ in range(args.repeats)]
        draw(keep([median(rows) for rows in zip(*rounds, strict=True)]))
    if args.extra:
        keep([measured("dense formulas", 2000, data="HW", features=649)])
        keep([measured("predict", 200_000, dtype="float32")])
        for case in ("LMSSC", "LabelSpreading"):
            keep([measured(case, 20_000, data="HW", features=649)])
        for shape in (
            {"features": 150},
            {"features": 2400},
            {"views": 2},
            {"views": 12},
            {"classes": 2},
            {"classes": 40},
            {"components": 20},
            {"components": 40},
            {"components": 80},
        ):
            keep([measured("LMSSC", 10_000, **shape)])
    if args.million:
        keep([measured("LMSSC", 100_000, **MILLION)])
        keep([measured("LMSSC", 1_000_000, **MILLION)])
        keep([measured("LMSSC, exact", 1_000_000, **MILLION)])
    return None


if __name__ == "__main__":
    main()
