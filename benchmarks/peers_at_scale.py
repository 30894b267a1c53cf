"""Time and memory of a fit of each method on 20,000 samples, as a ratio to one exact kNN graph of the concatenation.

    python benchmarks/peers_at_scale.py

All on one thread, each in the same process one after another.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from lmssc import AMGL, GFHF, LMSSC, MLAN
from lmssc.datasets import make_multiview
from lmssc.metrics import PeakMemory

METHODS = {"GFHF": GFHF, "AMGL": AMGL, "MLAN": MLAN, "LMSSC": LMSSC}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--views", type=int, default=3)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    data = make_multiview(args.samples, args.views, args.features, n_classes=5, labelled=0.05, random_state=0)
    hidden = data.y == -1
    joined = StandardScaler().fit_transform(np.hstack(data.views))
    with threadpool_limits(limits=1):
        began = time.perf_counter()
        NearestNeighbors(n_neighbors=11, algorithm="brute").fit(joined).kneighbors(joined)
        unit = time.perf_counter() - began
        print(f"{args.samples} samples, {args.views} views of {args.features} features, 5 % labels, one thread")
        print(f"{'':10}{'seconds':>9}{'ratio':>8}{'MB':>8}{'iterations':>12}{'accuracy %':>12}")
        print(f"{'kNN graph':10}{unit:9.1f}{1:8.1f}", flush=True)
        for name in args.methods:
            began = time.perf_counter()
            with PeakMemory() as memory:
                clf = METHODS[name]().fit(data.views, data.y)
            seconds = time.perf_counter() - began
            accuracy = 100 * (clf.transduction_ == data.target)[hidden].mean()
            line = f"{name:10}{seconds:9.1f}{seconds / unit:8.1f}{memory.megabytes:8.0f}"
            print(f"{line}{clf.n_iter_:12d}{accuracy:12.1f}", flush=True)


if __name__ == "__main__":
    main()
