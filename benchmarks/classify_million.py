"""A million rows of three views in a Parquet file, through `lmssc classify`: time and memory, into results/speed.

    python benchmarks/classify_million.py                   # a million rows
    python benchmarks/classify_million.py --rows 100000     # fewer, nothing written to results

The command runs in a separate process, which is monitored from outside: its stage by the files written so far, its
memory by /proc. Needs Linux and lmssc[all,large].
"""

import argparse
import csv
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from lmssc import load
from lmssc.datasets import make_multiview
from lmssc.persistence.atomic import open_atomically
from lmssc.persistence.provenance import describe_machine, version

OUT = Path(__file__).parent.parent / "results" / "speed" / "classify.md"
FEATURES = (40, 30, 30)
CLASSES = 10
LABELLED = 0.01
# What the command does, and the file that is there once it has begun the next thing.
STAGES = ("read and join", "fit", "predictions.csv", "to_label.csv", "model.lmssc", "report.html")
ROW_GROUP = 1 << 16
MEGABYTE = 1 << 20


def write_table(path, n_rows):
    """Write ids, three views as columns v<view>_<feature>, and a label that is mostly blank; return the truth."""
    import pyarrow
    import pyarrow.parquet

    data = make_multiview(
        n_rows, len(FEATURES), FEATURES, n_classes=CLASSES, labelled=LABELLED, dtype=np.float32, random_state=0
    )
    names = np.array([f"class{code}" for code in range(CLASSES)])
    columns = {"id": pyarrow.array([f"s{row:07d}" for row in range(n_rows)])}
    for v, view in enumerate(data.views):
        columns |= {f"v{v}_{j}": pyarrow.array(np.ascontiguousarray(view[:, j])) for j in range(view.shape[1])}
    columns["label"] = pyarrow.array(names[data.y], mask=data.y < 0)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=ROW_GROUP)
    return names[data.target]


def processor(pid):
    """CPU seconds of a process."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:  # it has just ended
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Current and peak memory of a process in bytes; the resource module would include its parent's."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {name: text.split() for name, _, text in (line.partition(":") for line in lines)}
    # A process that has just ended has no memory.
    return [1024 * int(values[name][0]) if name in values else 0 for name in ("VmRSS", "VmHWM")]


def watch(command, out):
    """Run `lmssc classify`; for each stage its wall and CPU seconds and its peak memory, and the overall peak."""
    stages, peak, used = {name: [0.0, 0.0, 0] for name in STAGES}, 0, 0.0
    log = out.parent / "said.txt"
    with open(log, "w", encoding="utf-8") as said:
        last = time.monotonic()
        process = subprocess.Popen(command, stdout=said)
        while process.poll() is None:
            time.sleep(0.05)
            now = time.monotonic()
            stage = stages[_stage(log, out)]
            held, most = memory(process.pid)
            spent = max(processor(process.pid), used)
            stage[0] += now - last
            stage[1] += spent - used
            stage[2] = max(stage[2], held)
            peak, last, used = max(peak, most), now, spent
    if process.returncode:
        sys.exit(f"{shlex.join(command)} ended with code {process.returncode}")
    return stages, peak


def _stage(log, out):
    """Current stage: files are written in this order, in a hidden folder, under a temporary name until complete."""
    if not log.stat().st_size:
        return "read and join"
    begun = {path.name for path in out.parent.glob(f".{out.name}.lmssc-*.tmp/*")}
    if not begun:
        return "fit"
    if "predictions.csv" not in begun:
        return "predictions.csv"
    return next((name for name in STAGES[3:] if name not in begun), STAGES[-1])


def accuracy(path, truth):
    """Share of the unlabelled rows with the right label."""
    right = found = 0
    with open(path, encoding="utf-8", newline="") as file:
        for row, name in zip(csv.DictReader(file), truth, strict=True):
            if row["given"] == "no":
                found += 1
                right += row["label"] == name
    return right / found


def page(n_rows, size, command, stages, peak, share, model):
    """The result as Markdown."""
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    whole = [sum(stage[part] for stage in stages.values()) for part in (0, 1)]
    rows = "\n".join(
        f"| {name} | {spent:,.1f} | {used:,.1f} | {most / MEGABYTE:,.0f} |"
        for name, (spent, used, most) in {**stages, "all": [*whole, peak]}.items()
    )
    return f"""# A Parquet file through `lmssc classify`

Written by `make bench-classify` (`benchmarks/classify_million.py`). {n_rows:,} rows with an id, {len(FEATURES)} views
of {" + ".join(map(str, FEATURES))} float32 features, and a label for {100 * LABELLED:g} %; {CLASSES} synthetic classes
that overlap. The file has {size / MEGABYTE:,.0f} MB. One process:

    {command}

| | |
|---|--:|
| seconds of the processor | {whole[1]:,.0f} |
| peak of memory, MB | {peak / MEGABYTE:,.0f} |
| accuracy on the rows without a label, % | {100 * share:.2f} |
| iterations | {model.n_iter_}{"" if model.converged_ else ", not converged"} |
| recall of the neighbours, % | {100 * model.neighbor_recall_:.1f} |

| stage | seconds by the clock | of the processor | most memory in it, MB |
|---|--:|--:|--:|
{rows}

{machine}; pyarrow {version("pyarrow")}; OMP_NUM_THREADS={threads}.
"""


def main():
    """Write the file, run the command, print and save the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "rows.parquet", Path(folder) / "out"
        truth = write_table(source, args.rows)
        options = ["--prefix-sep", "_", "--out", str(out)]
        command = [sys.executable, "-m", "lmssc", "classify", str(source), *options]
        stages, peak = watch(command, out)
        shown = "lmssc classify rows.parquet --prefix-sep _ --out out"
        text = page(
            args.rows,
            source.stat().st_size,
            shown,
            stages,
            peak,
            accuracy(out / "predictions.csv", truth),
            load(out / "model.lmssc"),
        )
    print(text)
    if args.rows == parser.get_default("rows"):
        with open_atomically(OUT) as file:
            file.write(text.encode())


if __name__ == "__main__":
    main()
