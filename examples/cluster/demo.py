"""Fits on four workers of 1.5 GB what one of them cannot hold: `make cluster-demo`.

    python examples/cluster/demo.py [--samples 2000000] [--features 200] [--kill 1]

The views are dask arrays, which the workers make and write to files. `--kill N` ends a
worker with SIGKILL in each of the first N iterations, to show that the fit goes on.
`--compare` fits the same on disk, in this process, and compares the answers. `--json`
names a file for the numbers.
"""

import argparse
import json
import logging
import os
import signal
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from lmssc import LMSSC

N_CLASSES = 10


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


def fit(args, client, views, y):
    """Fit on the cluster; the model, and numbers."""
    messages, killed = Messages(), []
    logger = logging.getLogger("lmssc.cluster")
    logger.setLevel(logging.INFO)
    logger.addHandler(messages)

    def follow(progress):
        print(f"iteration {progress.iteration}, {progress.seconds:.0f} s", flush=True)
        if len(killed) < args.kill:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[-1], signal.SIGKILL)
            print(f"killed worker process {killed[-1]}", flush=True)

    began = time.perf_counter()
    clf = LMSSC(
        max_iter=args.max_iter,
        tol=0.0,
        n_components=N_CLASSES,
        callback=follow,
    ).fit(views, y)
    seconds = time.perf_counter() - began
    found = {"seconds": seconds, "killed": len(killed), "iterations": []}
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
                "cut": record.cut,
                "halo": record.halo,
                **{f"bytes {name}": size for name, size in record.bytes.items()},
                **{f"calls {name}": count for name, count in record.calls.items()},
            }
        )
        print(f"sent {sent:,} bytes, by the formula {formula:,}", flush=True)
    return clf, found


def memory_of_workers(client):
    """Largest resident memory of any worker process so far, in bytes."""

    def peak():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if "VmHWM" in line)

    return max(client.run(peak).values())


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
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    target = np.arange(args.samples) % N_CLASSES
    y = np.where(np.random.default_rng(0).random(args.samples) < 0.01, target, -1)
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
        half = args.features // 2
        widths = (half, args.features - half)
        views = [
            make_view(args.samples, width, seed) for seed, width in enumerate(widths)
        ]
        print(f"views: {sum(view.nbytes for view in views) / 1e9:.2f} GB", flush=True)
        clf, found = fit(args, client, views, y)
        labels = clf.transduction_.compute()
        found["accuracy"] = float((labels == target)[y < 0].mean())
        found["largest_worker_gb"] = memory_of_workers(client) / 1e9
        print(
            f"{found['seconds']:.0f} s; accuracy {found['accuracy']:.3f}; "
            f"largest worker {found['largest_worker_gb']:.2f} GB",
            flush=True,
        )
        if args.compare:
            here = [view.compute() for view in views]
            options = {"max_iter": args.max_iter, "tol": 0.0}
            again = LMSSC(n_components=N_CLASSES, memory_limit=args.memory, **options)
            again.fit(here, y)
            difference = np.abs(
                clf.label_distributions_.compute() - again.label_distributions_
            )
            found["difference"] = float(difference.max())
            found["same_labels"] = float((labels == again.transduction_).mean())
            print(
                f"on disk: largest difference {found['difference']:.1e}, "
                f"{found['same_labels']:.4%} of the labels are the same"
            )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
