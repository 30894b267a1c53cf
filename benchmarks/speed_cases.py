"""One measurement of `make bench`, in this process; prints a line of JSON: seconds, memory, accuracy, details.

    python benchmarks/speed_cases.py LMSSC --samples 1000 --features 60

benchmarks/speed.py runs this for each measurement, so that its peak memory is its own.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
import warnings

from speed_data import KINDS, USUAL, make_data
from speed_dense import dense_formulas
from speed_peers import PEERS
from stopwatch import Stopwatch

# The parts of a fit, in the order of a figure.
PARTS = ("scaling", "SVD", "calibration", "rest of start", "W", "H", "S", "F", "rest")
IMPORTS = ("import lmssc", "from lmssc import LMSSC", "import sklearn.semi_supervised")
IMPORT_REPEATS = 15


class PartTimes:
    """Wall seconds of the parts of a fit; the time of a nested part is counted for that part only."""

    def __init__(self):
        self.spent = dict.fromkeys(PARTS, 0.0)
        self._within = [0.0]

    def watch(self, owner, name, part):
        """Count the time of a function of a class or module for a part."""
        function = getattr(owner, name)

        def wrapper(*args, **kwargs):
            if threading.current_thread() is not threading.main_thread():
                return function(*args, **kwargs)
            self._within.append(0.0)
            began = time.perf_counter()
            result = function(*args, **kwargs)
            seconds = time.perf_counter() - began
            self.spent[part] += seconds - self._within.pop()
            self._within[-1] += seconds
            return result

        setattr(owner, name, wrapper)

    def shared_out(self, seconds):
        """Split a number of seconds over the parts; the remainder is the part "rest"."""
        self.spent["rest"] = seconds - sum(self.spent.values())
        return {part: float(f"{value:.3g}") for part, value in self.spent.items()}


def whole_fit(args, data):
    """A whole fit with the defaults, and the time of each part."""
    from lmssc import LMSSC
    from lmssc.core import begin, fit, initialization, objective

    times = PartTimes()
    times.watch(LMSSC, "_fit_scalings", "scaling")
    times.watch(fit, "begin_with_links", "rest of start")
    times.watch(initialization, "latent_start", "SVD")
    for name in ("judge_opinion", "_with_opinion", "calibrate_start"):
        times.watch(begin, name, "calibration")
    times.watch(objective.Objective, "update_loadings", "W")
    times.watch(objective, "update_latent", "H")
    times.watch(objective.Objective, "update_graph", "S")
    times.watch(objective.Objective, "propagate", "F")
    n_components = args.components if args.components == "auto" else int(args.components)
    watch = Stopwatch(len(data.y))
    clf = LMSSC(n_components=n_components).fit(data.views, data.y)
    seconds = watch.read()
    detail = {"r": clf.latent_.shape[1], "iterations": clf.n_iter_, "recall": round(clf.neighbor_recall_, 3)}
    return seconds, clf.transduction_, {**detail, "parts": times.shared_out(seconds[0])}


def exact_fit(args, data):
    """A whole fit whose neighbour search uses no index."""
    from lmssc import LMSSC

    watch = Stopwatch(len(data.y))
    clf = LMSSC(neighbor_recall=1.0).fit(data.views, data.y)
    return watch.read(), clf.transduction_, {"iterations": clf.n_iter_, "recall": clf.neighbor_recall_}


def predict(args, data):
    """Predict as many new samples as were fitted."""
    from lmssc import LMSSC

    clf = LMSSC(max_iter=1).fit([view[: args.samples] for view in data.views], data.y[: args.samples])
    new = [view[args.samples :] for view in data.views]
    watch = Stopwatch(args.samples)
    clf.predict(new)
    seconds = watch.read()
    return seconds, None, {"new samples a second": round(args.samples / seconds[0])}


def imports(args, data):
    """Import times in fresh interpreters, in turn; the median of each."""
    seconds = {statement: [] for statement in IMPORTS}
    for _ in range(IMPORT_REPEATS):
        for statement, taken in seconds.items():
            code = f"import time; b = time.perf_counter()\n{statement}\nprint(time.perf_counter() - b)"
            result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            taken.append(float(result.stdout))
    medians = {statement: statistics.median(taken) for statement, taken in seconds.items()}
    detail = {statement: float(f"{value:.3g}") for statement, value in medians.items()}
    ratio = {
        f"{statement} × scikit-learn": float(f"{medians[statement] / medians[IMPORTS[2]]:.3g}")
        for statement in IMPORTS[:2]
    }
    return (medians[IMPORTS[0]], None), None, {**detail, **ratio}


CASES = {
    "LMSSC": whole_fit,
    **PEERS,
    "LMSSC, exact": exact_fit,
    "predict": predict,
    "dense formulas": dense_formulas,
    "imports": imports,
}
# These bring what they need.
WITHOUT_DATA = ("dense formulas", "imports")


def peak():
    """Peak memory of this process in MB; the resource module would include its parent's."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 / 1e6 for line in file if line.startswith("VmHWM"))


def measure(args):
    """Wall and CPU seconds, peak memory in MB, accuracy in %, and details."""
    data = None if args.case in WITHOUT_DATA else make_data(args)
    seconds, answer, detail = CASES[args.case](args, data)
    accuracy = None if answer is None else 100 * float((answer == data.target)[data.y == -1].mean())
    return {"wall": seconds[0], "cpu": seconds[1], "megabytes": peak(), "accuracy": accuracy, "detail": detail}


def main():
    """Measure one case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--data", choices=KINDS, default="synthetic")
    parser.add_argument("--samples", type=int, default=1000)
    for name in ("views", "features", "classes"):
        parser.add_argument(f"--{name}", type=int, default=USUAL[name])
    parser.add_argument("--components", default="auto", help="dimensions r of H, or auto")
    parser.add_argument("--dtype", default="float64")
    warnings.simplefilter("ignore")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
