"""Fits on four workers of 1.5 GB what one of them cannot hold: `make cluster-demo`.

    python examples/cluster/demo.py [--samples 2000000] [--features 200] [--kill]

The views are dask arrays, which the workers make and write to files. `--kill` ends a
worker with SIGKILL in the first iteration, to show that the fit goes on.
"""

import argparse
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
    parser.add_argument("--kill", action="store_true")
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
        views = [
            make_view(args.samples, width, seed)
            for seed, width in enumerate((half, args.features - half))
        ]
        print(f"views: {sum(view.nbytes for view in views) / 1e9:.2f} GB", flush=True)
        killed = []

        def follow(progress):
            print(
                f"iteration {progress.iteration}, {progress.seconds:.0f} s", flush=True
            )
            if args.kill and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)
                print(f"killed worker process {killed[0]}", flush=True)

        began = time.perf_counter()
        clf = LMSSC(max_iter=args.max_iter, callback=follow).fit(views, y)
        accuracy = (clf.transduction_ == target)[y < 0].mean()
        print(f"{time.perf_counter() - began:.0f} s; accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
