"""Memory of a fit to views that stay on disk, in units of what H, F and S need, into results/speed/on_disk.md.

    python benchmarks/on_disk.py

The fit runs in a separate process; its memory is the peak minus that after all imports. Needs Linux and
lmssc[all,large].
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from lmssc import LMSSC, open_view
from lmssc.datasets import make_multiview
from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.provenance import describe_machine

OUT = Path(__file__).parent.parent / "results" / "speed" / "on_disk.md"
SAMPLES, FEATURES, CLASSES = 40_000, (1000, 1000), 10
MEGABYTE = 1 << 20


def peak():
    """Peak memory of this process in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def fit(folder):
    """Fit to the files in a folder; print one line of JSON."""
    small = make_multiview(200, labelled=0.1, random_state=0)
    LMSSC().fit(small.views, small.y)  # what is imported late
    views = [open_view(path) for path in sorted(folder.glob("view*.npy"))]
    before = peak()
    clf = LMSSC().fit(views, np.load(folder / "y.npy"))
    parts = (clf.latent_, clf.label_distributions_, clf.graph_.data, clf.graph_.indices, clf.graph_.indptr)
    print(
        json.dumps(
            {
                "views": sum(view.nbytes for view in views),
                "needed": sum(part.nbytes for part in parts),
                "taken": peak() - before,
                "r": clf.latent_.shape[1],
                "k": round(clf.graph_.nnz / SAMPLES),
            }
        )
    )


def main():
    """Write the views, fit, print and save the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = make_multiview(
            SAMPLES, len(FEATURES), FEATURES, n_classes=CLASSES, labelled=0.05, dtype=np.float32, random_state=0
        )
        np.save(folder / "y.npy", data.y)
        for number, view in enumerate(data.views):
            np.save(folder / f"view{number}.npy", view)
        result = subprocess.run([sys.executable, __file__, folder], capture_output=True, text=True, check=True)
    found = json.loads(result.stdout.splitlines()[-1])
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    text = f"""# Views on disk

Written by `make bench-disk` (`benchmarks/on_disk.py`): a whole fit to {len(FEATURES)} views of {SAMPLES:,} samples and
{sum(FEATURES):,} float32 features in npy files, r = {found["r"]}, {CLASSES} classes, {found["k"]} neighbours a sample.

| | MB |
|---|--:|
| the views, on disk | {found["views"] / MEGABYTE:.0f} |
| H, F and S | {found["needed"] / MEGABYTE:.1f} |
| memory of the fit beyond the program | {found["taken"] / MEGABYTE:.0f} |
| … in units of H, F and S | {found["taken"] / found["needed"]:.1f} |

{machine}.
"""
    print(text)
    with open_atomically(OUT) as file:
        file.write(text.encode())


if __name__ == "__main__":
    fit(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
