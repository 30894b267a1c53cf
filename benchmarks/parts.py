"""The fit in parts: agreement with the fit in memory, memory and time at scale, into results/scale.

    python benchmarks/parts.py agreement            # 200,000 samples; 2, 8 and 32 parts against memory
    python benchmarks/parts.py dense 1000000 1.5GB  # 100 float32 features on disk, with a limit
    python benchmarks/parts.py dense 10000000 6GB
    python benchmarks/parts.py sparse 2000000 8GB   # 5,000 words, 0.2 % of them in each text

Each fit to files runs in a process of its own; its memory is the peak of the whole process. Needs Linux.
`--folder` names where the files are made, and `--keep` leaves them there for the next run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from lmssc import LMSSC, open_view
from lmssc.core.fit import fit
from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import usual_neighbors
from lmssc.core.parts.disk import DiskExecutor
from lmssc.core.parts.parted_fit import fit_in_parts
from lmssc.core.parts.partition import part_bounds
from lmssc.core.targets import Targets
from lmssc.data.views import Views
from lmssc.datasets import make_multiview
from lmssc.persistence.provenance import describe_machine

OUT = Path(__file__).parent.parent / "results" / "scale"
CLASSES, LATENT, CLUSTERS, ROWS = 5, 10, 3, 250_000
WIDTHS = (34, 33, 33)
WORDS, WORDS_PER_TEXT, TOPIC_WORDS = 5000, 10, 150


def peak():
    """Peak memory of this process in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


class Places:
    """So many parts, in files."""

    def __init__(self, n_parts):
        self.n_parts = n_parts

    def executor(self, bounds):
        """Parts in files."""
        return DiskExecutor(bounds)

    def maker(self, views, config, n_classes):
        """What makes them."""
        return lambda n_components: self.executor(part_bounds(views.n_samples, self.n_parts))


def agreement(n_samples=200_000, counts=(2, 8, 32)):
    """Answers in parts against those in memory, and against each other."""
    data = make_multiview(n_samples, n_classes=CLASSES, labelled=0.01, dtype=np.float32, random_state=1)
    order = np.random.default_rng(0).permutation(n_samples)
    factor = np.sqrt(sum(view.shape[1] for view in data.views))
    views = Views.from_arrays([((view - view.mean(0)) / view.std(0) / factor)[order] for view in data.views])
    targets = Targets.from_codes(data.y[order], CLASSES)
    config = FitConfig(usual_neighbors(n_samples, targets.n_labelled, CLASSES))
    began = time.process_time()
    whole = fit(views, targets, config)
    found = {"samples": n_samples, "memory": {"cpu_seconds": time.process_time() - began}}
    for count in counts:
        began = time.process_time()
        parted = fit_in_parts(views, targets, config, Places(count))
        seconds = time.process_time() - began
        difference = np.abs(parted.scores - whole.scores)
        same = parted.scores.argmax(axis=1) == whole.scores.argmax(axis=1)
        found[f"{count} parts"] = {
            "labels_that_agree": float(same.mean()),
            "largest_difference_of_F": float(difference.max()),
            "relative_difference_of_F": float(np.linalg.norm(difference) / np.linalg.norm(whole.scores)),
            "cpu_seconds": seconds,
        }
        print(json.dumps({count: found[f"{count} parts"]}), flush=True)
    return found


def write_dense(folder, n_samples):
    """Views like those of `make_multiview`, some rows at a time."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=1.8, size=(CLASSES * CLUSTERS, LATENT)).astype(np.float32)
    maps = [rng.normal(size=(LATENT // 2, width)).astype(np.float32) / 2 for width in WIDTHS]
    files = [
        np.lib.format.open_memmap(folder / f"view{v}.npy", "w+", np.float32, (n_samples, width))
        for v, width in enumerate(WIDTHS)
    ]
    target = np.empty(n_samples, dtype=np.int64)
    for first in range(0, n_samples, ROWS):
        rows = slice(first, min(first + ROWS, n_samples))
        cluster = rng.integers(len(centres), size=rows.stop - rows.start)
        target[rows] = cluster % CLASSES
        latent = centres[cluster] + rng.standard_normal((len(cluster), LATENT), dtype=np.float32)
        for v, (view, mixing) in enumerate(zip(files, maps, strict=True)):
            window = (v * LATENT // len(WIDTHS) + np.arange(LATENT // 2)) % LATENT
            view[rows] = 2 * np.tanh(latent[:, window] @ mixing)
            view[rows] += rng.standard_normal(view[rows].shape, dtype=np.float32)
    write_labels(folder, target, rng)


def write_sparse(folder, n_samples):
    """One view of word counts: each text has words of its topic, and others."""
    rng = np.random.default_rng(0)
    topics = np.array([rng.permutation(WORDS)[:TOPIC_WORDS] for _ in range(CLASSES * CLUSTERS)])
    common = 1 / np.arange(10, WORDS + 10)
    topic = rng.integers(len(topics), size=n_samples).astype(np.int16)
    parts = []
    for first in range(0, n_samples, ROWS):
        own = topic[first : first + ROWS]
        words = rng.choice(WORDS, size=(len(own), WORDS_PER_TEXT), p=common / common.sum()).astype(np.int32)
        of_topic = topics[own[:, None], rng.integers(TOPIC_WORDS, size=words.shape)]
        words = np.where(rng.random(words.shape) < 0.6, of_topic, words).astype(np.int32)
        shape = (len(own), WORDS)
        indptr = np.arange(0, words.size + 1, WORDS_PER_TEXT)
        part = sparse.csr_array((np.ones(words.size, np.float32), words.ravel(), indptr), shape=shape)
        part.sum_duplicates()
        parts.append(part)
    sparse.save_npz(folder / "view0.npz", sparse.vstack(parts, format="csr"), compressed=False)
    write_labels(folder, topic.astype(np.int64) % CLASSES, rng)


def write_labels(folder, target, rng):
    """The classes, and a hundredth of them as labels."""
    np.save(folder / "target.npy", target)
    np.save(folder / "y.npy", np.where(rng.random(len(target)) < 0.01, target, -1))


def fit_files(folder, limit):
    """Fit to the files in a folder with a limit; print one line of JSON."""
    views = [open_view(path) for path in sorted(folder.glob("view*.np[yz]"))]
    y, target = np.load(folder / "y.npy"), np.load(folder / "target.npy")
    began, cpu = time.perf_counter(), time.process_time()

    def progress(record):
        print(
            f"iteration {record.iteration}, {record.seconds:.0f} s, {peak() / 1e9:.2f} GB", file=sys.stderr, flush=True
        )

    clf = LMSSC(memory_limit=None if limit == "none" else limit, callback=progress, n_jobs=1).fit(views, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    unlabelled = y < 0
    print(
        json.dumps(
            {
                "samples": len(y),
                "features": sum(view.shape[1] for view in views),
                "memory_limit": limit,
                "peak_gb": peak() / 1e9,
                "seconds": seconds,
                "cpu_seconds": cpu,
                "accuracy": float((clf.transduction_ == target)[unlabelled].mean()),
                "components": clf.n_components_,
                "iterations": clf.n_iter_,
                "neighbor_recall": clf.neighbor_recall_,
            }
        )
    )


def main():
    """Run what the command line asks for, and add the result to the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["agreement", "dense", "sparse", "fit"])
    parser.add_argument("samples", nargs="?", default="200000")
    parser.add_argument("limit", nargs="?", default="none")
    parser.add_argument("--folder")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    if args.what == "fit":
        fit_files(Path(args.samples), args.limit)
        return
    if args.what == "agreement":
        name, found = "agreement", agreement(int(args.samples))
    else:
        name = f"{args.what} {args.samples} {args.limit}"
        folder = Path(args.folder or tempfile.mkdtemp(prefix="lmssc-bench-"))
        folder.mkdir(exist_ok=True)
        if not (folder / "y.npy").exists():
            {"dense": write_dense, "sparse": write_sparse}[args.what](folder, int(args.samples))
        command = [sys.executable, __file__, "fit", str(folder), args.limit]
        found = json.loads(
            subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
        )
        if not args.keep:
            for path in folder.glob("*.np[yz]"):
                path.unlink()
            folder.rmdir()
    OUT.mkdir(exist_ok=True)
    path = OUT / "parts.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results[name] = {**found, "machine": describe_machine()}
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
