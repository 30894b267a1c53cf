"""Embeddings in a Parquet column of lists beside the same numbers in an .npy file: answers and peak memory.

    python benchmarks/embeddings.py [--samples 1000000] [--width 512] [--out results/embeddings]

Each run is a process of its own: `open_view`, a fit, and the largest resident memory that the system saw. The answers
must be the same to the bit.
"""

import argparse
import csv
import hashlib
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import lmssc

CLASSES, LABELLED, BATCH = 5, 0.01, 20_000


def write(folder: Path, samples: int, width: int) -> None:
    """Write the same embeddings as .npy and as Parquet, batch by batch, and the labels."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=samples)
    centres = rng.normal(size=(CLASSES, width)).astype(np.float32)
    array = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (samples, width))
    schema = pa.schema([("embedding", pa.list_(pa.float32(), width))])
    with pyarrow.parquet.ParquetWriter(folder / "x.parquet", schema) as writer:
        for start in range(0, samples, BATCH):
            rows = slice(start, min(start + BATCH, samples))
            array[rows] = centres[y[rows]] + 4 * rng.standard_normal((rows.stop - start, width), dtype=np.float32)
            lists = pa.FixedSizeListArray.from_arrays(pa.array(array[rows].ravel()), width)
            writer.write_table(pa.table({"embedding": lists}, schema=schema))
    array.flush()
    np.save(folder / "y.npy", np.where(rng.random(samples) < LABELLED, y, -1))


def fit(path: Path) -> dict:
    """Fit to one file; memory, time and a hash of the answers."""
    start = time.process_time()
    view = lmssc.open_view(path)
    clf = lmssc.LMSSC(max_iter=3).fit([view], np.load(path.with_name("y.npy")))
    return {
        "file": path.suffix,
        "samples": view.shape[0],
        "width": view.shape[1],
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "cpu_seconds": round(time.process_time() - start, 1),
        "answers": hashlib.sha256(clf.label_distributions_.tobytes()).hexdigest()[:16],
    }


def main() -> None:
    """Write the files, fit to each in a process of its own, and write memory.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--out", type=Path, default=Path("results/embeddings"))
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit is not None:
        print(json.dumps(fit(args.fit)))
        return
    rows = []
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", _WRITE, folder, str(args.samples), str(args.width)], check=True)
        for name in ("x.npy", "x.parquet"):
            call = [sys.executable, __file__, "--fit", str(Path(folder) / name)]
            rows.append(json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout))
            print(rows[-1])
    same = rows[0]["answers"] == rows[1]["answers"]
    print(f"the same answers: {same}; peak memory {rows[1]['peak_mib'] / rows[0]['peak_mib']:.2f} times that of .npy")
    args.out.mkdir(parents=True, exist_ok=True)
    with open(args.out / "memory.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


_WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, "benchmarks")
import embeddings
embeddings.write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""

if __name__ == "__main__":
    main()
