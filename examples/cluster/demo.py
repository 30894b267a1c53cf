"""Fits on four workers of 1.5 GB what one of them cannot hold: `make cluster-demo`.

    python examples/cluster/demo.py [--samples 2000000] [--features 200] [--kill 1]

The views are dask arrays, which the workers make and write to files. `--kill N` ends a
worker that holds parts with SIGKILL, N times, each at a random moment of an iteration.
`--save` writes the answers to a file, and `--compare-with` compares with those of
another run; `--on-disk` fits without a cluster, in this process, with the memory of one
worker. `--json` names a file for the numbers.
"""

import argparse
import json
import logging
import os
import random
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from lmssc import LMSSC, open_view
from lmssc.cluster.dask_worker import parts_here

N_CLASSES = 10
# On a busy machine, a worker that was killed takes longer to start again than the 15
# seconds after which a LocalCluster gives it up.
LOST_WORKER_TIMEOUT = "10 minutes"


def make_block(numbers, width, seed):
    """Samples around the centre of their class, which follows from their number."""
    rng = np.random.default_rng([seed, int(numbers[0])])
    centres = np.random.default_rng(seed).normal(size=(N_CLASSES, 20))
    mix = np.random.default_rng(seed + 1).normal(size=(20, width)) / 4
    latent = centres[numbers % N_CLASSES] + 0.7 * rng.normal(size=(len(numbers), 20))
    return (latent @ mix + rng.normal(size=(len(numbers), width))).astype(np.float32)


def make_view(n_samples, width, seed, block=100_000):
    """A dask array of samples that the workers make."""
    numbers = da.arange(n_samples, chunks=block)
    return numbers.map_blocks(
        make_block,
        width,
        seed,
        dtype=np.float32,
        chunks=(numbers.chunks[0], (width,)),
        new_axis=1,
    )


class Messages(logging.Handler):
    """Keeps and prints what the fit says about its messages, once an iteration."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        """Keep and print a line."""
        print(record.getMessage(), flush=True)
        self.records.append(record)


def expected_bytes(record, r, c, b=4):
    """Bytes of an iteration by the formula of docs/scale.md."""
    h, steps = record.halo, record.calls["_send_direction"]
    starts = record.calls["_send_guess"]  # one solve for H, and then one for F
    if r != c:
        raise ValueError("the steps of H and of F can only be told apart by their sum")
    solves = (steps + starts) * h * r * b
    rows = (r + 2 * c) * b + c * b + 5 + record.calls["_send_reached"] + 1 + 4
    lists = record.calls["send_points"] * record.lists * (r + 2 * c) * b
    return solves + h * rows + lists + 12 * record.cut


class Killer:
    """Ends workers that hold parts, one in an iteration, at a random moment."""

    def __init__(self, client, n_kills):
        self.killed, self._client, self._n_kills = [], client, n_kills
        self._random, self._timer = random.Random(0), None

    def __call__(self, progress):
        """After an iteration: say so, and choose when in the next a worker dies."""
        print(f"iteration {progress.iteration}, {progress.seconds:.0f} s", flush=True)
        waiting = self._timer is not None and self._timer.is_alive()
        if len(self.killed) < self._n_kills and not waiting:
            delay = self._random.uniform(0, progress.seconds / progress.iteration)
            self._timer = threading.Timer(delay, self.kill)
            self._timer.start()

    def kill(self):
        """End a worker that holds parts."""
        found = self._client.run(lambda: (os.getpid(), parts_here()))
        holders = sorted(one for one in found.values() if one[1])
        if holders:
            process, parts = self._random.choice(holders)
            os.kill(process, signal.SIGKILL)
            self.killed.append(parts)
            print(f"killed worker process {process} with parts {parts}", flush=True)

    def stop(self):
        """Kill nothing any more."""
        if self._timer is not None:
            self._timer.cancel()


def fit(args, client, views, y):
    """Fit on the cluster; the model, and numbers."""
    messages, follow = Messages(), Killer(client, args.kill)
    logger = logging.getLogger("lmssc.cluster")
    logger.setLevel(logging.INFO)
    logger.addHandler(messages)
    began, began_cpu = time.perf_counter(), time.process_time()
    clf = LMSSC(
        max_iter=args.max_iter,
        tol=0.0,
        n_components=N_CLASSES,
        callback=follow,
    ).fit(views, y)
    follow.stop()
    found = {
        "samples": args.samples,
        "features": args.features,
        "workers": args.workers,
        "memory": args.memory,
        "seconds": time.perf_counter() - began,
        "driver_cpu_seconds": time.process_time() - began_cpu,
        "parts_of_killed_workers": follow.killed,
        "iterations": [],
    }
    for record in messages.records[1:]:  # the first is that of the warm start
        if "_send_guess" not in record.calls:
            continue
        sent, formula = (
            sum(record.bytes.values()),
            expected_bytes(record, N_CLASSES, N_CLASSES),
        )
        found["iterations"].append(
            {
                "bytes": sent,
                "formula": formula,
                "ratio": sent / formula,
                "parts": record.parts,
                "edges": record.edges,
                "cut": record.cut,
                "halo": record.halo,
                "lists": record.lists,
                **{f"bytes {name}": size for name, size in record.bytes.items()},
                **{f"calls {name}": count for name, count in record.calls.items()},
            }
        )
        print(f"sent {sent:,} bytes, by the formula {formula:,}", flush=True)
    return clf, found


def peak_memory():
    """Largest resident memory of this process so far, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if "VmHWM" in line)


def fit_on_disk(args, views, y):
    """Fit the same on disk, in this process; the distributions, and numbers."""
    with TemporaryDirectory() as folder:
        here = []
        for v, view in enumerate(views):
            path = f"{folder}/{v}.npy"
            file = np.lib.format.open_memmap(path, "w+", view.dtype, view.shape)
            bounds = np.cumsum([0, *view.chunks[0]])
            for block, (first, end) in enumerate(pairwise(bounds)):
                file[first:end] = view.blocks[block].compute()
            here.append(open_view(path))
        del file
        options = {"max_iter": args.max_iter, "tol": 0.0}
        clf = LMSSC(n_components=N_CLASSES, memory_limit=args.memory, **options)
        began, began_cpu = time.perf_counter(), time.process_time()
        clf.fit(here, y)
        found = {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - began_cpu,
            "process_gb": peak_memory() / 1e9,
        }
        return np.array(clf.label_distributions_), found


def compare(distributions, path):
    """Differences of the answers from those that another run saved."""
    others = np.load(path)
    difference = np.abs(distributions - others)
    same = distributions.argmax(axis=1) == others.argmax(axis=1)
    found = {
        "compared_with": Path(path).stem,
        "difference": float(difference.max()),
        "same_labels": float(same.mean()),
    }
    print(
        f"largest difference {found['difference']:.1e}, "
        f"{found['same_labels']:.4%} of the labels are the same"
    )
    return found


def make_views(args):
    """Two views, as dask arrays."""
    half = args.features // 2
    widths = (half, args.features - half)
    return [make_view(args.samples, width, seed) for seed, width in enumerate(widths)]


def main():
    """Start the cluster, fit, and say how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--memory", default="1.5GB")
    parser.add_argument("--max-iter", type=int, default=2)
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--on-disk", action="store_true")
    parser.add_argument("--save")
    parser.add_argument("--compare-with")
    parser.add_argument("--json")
    args = parser.parse_args()
    target = np.arange(args.samples) % N_CLASSES
    y = np.where(np.random.default_rng(0).random(args.samples) < 0.01, target, -1)
    if args.on_disk:
        distributions, found = fit_on_disk(args, make_views(args), y)
    else:
        distributions, found = fit_on_cluster(args, y)
    found["accuracy"] = float((distributions.argmax(axis=1) == target)[y < 0].mean())
    print(json.dumps({k: v for k, v in found.items() if k != "iterations"}), flush=True)
    if args.save:
        np.save(args.save, distributions)
    if args.compare_with:
        found |= compare(distributions, args.compare_with)
    write(args, found)


def fit_on_cluster(args, y):
    """Start the cluster and fit; the distributions, and numbers."""
    dask.config.set({"distributed.deploy.lost-worker-timeout": LOST_WORKER_TIMEOUT})
    cluster = LocalCluster(
        n_workers=args.workers,
        threads_per_worker=1,
        processes=True,
        memory_limit=args.memory,
        host="127.0.0.1",
    )
    with cluster, Client(cluster) as client:
        print(f"{args.workers} workers of {args.memory} each", flush=True)
        print(f"dashboard: {client.dashboard_link}", flush=True)
        views = make_views(args)
        print(f"views: {sum(view.nbytes for view in views) / 1e9:.2f} GB", flush=True)
        clf, found = fit(args, client, views, y)
        found["largest_worker_gb"] = max(client.run(peak_memory).values()) / 1e9
        return clf.label_distributions_.compute(), found


def write(args, found):
    """Add the numbers to those of other runs in a file, if one is named."""
    if args.json is None:
        return
    path = Path(args.json)
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    where = "on disk" if args.on_disk else f"{args.workers} workers, {args.kill} killed"
    runs[f"{args.samples} samples, {where}"] = found
    path.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
