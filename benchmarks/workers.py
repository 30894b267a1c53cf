"""How much faster two workers of a Dask cluster are than one, into results/scale/workers.json.

    python benchmarks/workers.py [--samples 300000] [--features 200] [--workers 1 2] [--turns 3]

Fits the data of examples/cluster/demo.py with each number of workers by turns, one thread each, on a new cluster each
time. Needs as many idle cores as workers. The driver and the scheduler are one more process; its CPU seconds are what
more workers do not share. Seconds are those of the fit alone, without the start of the cluster.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from lmssc import LMSSC
from lmssc.persistence.provenance import describe_machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "cluster"))
from demo import N_CLASSES, make_views  # noqa: E402

OUT = ROOT / "results" / "scale" / "workers.json"


def cpu_seconds():
    """CPU seconds of a process, in which it is called."""
    return time.process_time()


def run(args, n_workers):
    """Seconds of a fit on a new cluster, and CPU seconds of the driver and of each worker."""
    y = np.arange(args.samples) % N_CLASSES
    y[np.random.default_rng(0).random(args.samples) >= 0.01] = -1
    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, memory_limit=args.memory, host="127.0.0.1"
    )
    with cluster, Client(cluster) as client:
        views = make_views(args)
        before = client.run(cpu_seconds)
        began, began_cpu = time.perf_counter(), time.process_time()
        LMSSC(max_iter=args.max_iter, tol=0.0, n_components=N_CLASSES, n_jobs=1).fit(views, y)
        found = {"seconds": time.perf_counter() - began, "driver_cpu": time.process_time() - began_cpu}
        found["workers_cpu"] = [after - before[name] for name, after in client.run(cpu_seconds).items()]
    return found


def main():
    """Fit by turns, and write how much faster the larger clusters are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=300_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--memory", default="6GB")
    parser.add_argument("--max-iter", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    runs = {n_workers: [] for n_workers in args.workers}
    for turn in range(args.turns):
        for n_workers in args.workers:
            runs[n_workers].append(run(args, n_workers))
            print(f"turn {turn}, {n_workers} workers: {json.dumps(runs[n_workers][-1])}", flush=True)
    medians = {n_workers: statistics.median(one["seconds"] for one in found) for n_workers, found in runs.items()}
    found = {
        "samples": args.samples,
        "features": args.features,
        "iterations": args.max_iter,
        "median_seconds": medians,
        "speedup": {n_workers: medians[args.workers[0]] / seconds for n_workers, seconds in medians.items()},
        "runs": runs,
        "load_at_the_end": os.getloadavg()[0],
        "machine": describe_machine(),
    }
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({"median_seconds": medians, "speedup": found["speedup"]}), flush=True)


if __name__ == "__main__":
    main()
