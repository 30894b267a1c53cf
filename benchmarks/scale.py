"""Bytes that parts send each other in an iteration, counted, beside the formula of docs/scale.md.

    python benchmarks/scale.py 20000 4 16        samples, and numbers of parts

The parts are in memory: what they exchange does not depend on where they are. Rows go to results/scale/messages.csv.
"""

import csv
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmssc import LMSSC
from lmssc.core.parts.executor import InMemoryExecutor
from lmssc.core.parts.partition import part_bounds
from lmssc.datasets import make_multiview

RESULTS = Path(__file__).parents[1] / "results" / "scale" / "messages.csv"
WIDTHS = [34, 33, 33]


class CountingExecutor(InMemoryExecutor):
    """Counts messages: calls, rows and bytes of each kind."""

    def __init__(self, bounds):
        super().__init__(bounds)
        self.calls, self.bytes = Counter(), Counter()

    def exchange(self, send, receive, *shared, each=None):
        """As it is, and counted."""

        def counted(part, *arguments):
            sent = send(part, *arguments)
            self.bytes[send.__name__] += sum(a.nbytes for q, m in sent.items() if q != part.number for a in m)
            return sent

        self.calls[send.__name__] += 1
        return super().exchange(counted, receive, *shared, each=each)


@dataclass
class CountingPlan:
    """Parts in memory, counted."""

    n_parts: int
    made: list

    def executor(self, bounds):
        """New parts."""
        self.made.append(CountingExecutor(bounds))
        return self.made[-1]

    def maker(self, views, config, n_classes):
        """What makes the parts."""
        return lambda n_components: self.executor(part_bounds(views.n_samples, self.n_parts))


def measure(n_samples, n_parts):
    """Fit in parts, and count what one iteration sends."""
    import lmssc.estimators.lmssc as module

    data = make_multiview(n_samples, 3, WIDTHS, n_classes=10, labelled=0.05, dtype="float32", random_state=0)
    plan, marks, halos = CountingPlan(n_parts, []), [], []
    module.choose_plan = lambda *_: plan

    def follow(progress):
        executor = plan.made[-1]
        marks.append((Counter(executor.calls), Counter(executor.bytes), time.process_time()))
        halos.append(sum(len(part["edge_halo"]) for part in executor.parts))
        graphs = [part["graph"] for part in executor.parts]
        bounds = executor.bounds
        inside = sum(
            np.count_nonzero((g.indices >= bounds[p]) & (g.indices < bounds[p + 1])) for p, g in enumerate(graphs)
        )
        halos[-1] = halos[-1], 1 - inside / sum(g.nnz for g in graphs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = LMSSC(max_iter=3, tol=0.0, callback=follow, n_jobs=1).fit(data.views, data.y)
    (calls0, bytes0, time0), (calls1, bytes1, time1) = marks[-2:]
    calls, size = calls1 - calls0, bytes1 - bytes0
    halo, cut = halos[-1]
    row = {
        "samples": n_samples, "parts": n_parts, "r": clf.n_components_, "c": len(clf.classes_), "k": clf.n_neighbors_,
        "edge_halo_rows": halo, "halo_share": f"{halo / n_samples:.3f}", "cut_edges": f"{cut:.3f}",
        "bytes_an_iteration": sum(size.values()), "steps": calls["_send_direction"],
        "bytes_of_steps": size["_send_direction"], "other_bytes": sum(size.values()) - size["_send_direction"],
        "cpu_seconds": f"{time1 - time0:.2f}",
    }  # fmt: skip
    print(row, dict(calls), dict(size), flush=True)
    return row


def main():
    """Measure one number of samples, in several numbers of parts."""
    n_samples, *parts = (int(word) for word in sys.argv[1:])
    rows = [measure(n_samples, n_parts) for n_parts in parts]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
