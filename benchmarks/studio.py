"""The labelling studio from zero labels, against labels at random; and how long a key takes on large data.

    python benchmarks/studio.py
    python benchmarks/studio.py --speed 100000

A scripted annotator answers what the studio asks, from the first sample on. After every five labels the model is fitted
again, as it is in the background while someone labels. Random labels get the same fits. The accuracy is that of the
answers about all samples without a label.

Writes to results/studio: `studio.csv` and `studio.md`, the means over the seeds; `speed.md` with --speed.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from lmssc import LMSSC
from lmssc.datasets import load, make_multiview
from lmssc.io.media import SampleViewer
from lmssc.io.sample_cells import SampleCells
from lmssc.persistence.atomic import open_atomically, write_csv
from lmssc.studio.answer_store import AnswerStore
from lmssc.studio.engine import Engine
from lmssc.studio.live_answers import LiveAnswers
from lmssc.studio.session import Session

# Labels in the studio, and numbers of labels at random.
DATASETS = {
    "digits": (60, (10, 20, 30, 40, 60, 100, 200)),
    "msrc": (60, (10, 20, 30, 40, 60, 100)),
    "bbcsport": (60, (10, 20, 30, 40, 60, 100)),
}
EVERY = 5
COLUMNS = ("dataset", "seed", "choice", "labels", "classes", "accuracy")


def record(data, seed, choice, name, labels, answers):
    """Accuracy of the answers about samples without a label."""
    hidden = np.setdiff1d(np.arange(len(data.target)), list(labels))
    right = np.asarray(answers)[hidden] == data.target.astype(str)[hidden]
    n_classes = len(set(labels.values()))
    row = {"dataset": name, "seed": seed, "choice": choice, "labels": len(labels)}
    return row | {"classes": n_classes, "accuracy": float(right.mean())}


def label_in_studio(data, name, seed, total):
    """Records of a scripted annotator who labels what the studio asks for."""
    order = np.random.default_rng(seed).permutation(len(data.target))  # the studio must not depend on it
    views = {f"view {v}": view[order] for v, view in enumerate(data.views)}
    truth = data.target[order].astype(str)
    engine = Engine(views, background=False)
    engine.start([], {})
    names, labels = [], {}
    while len(labels) < total:
        row = engine.queue()[0]
        names += [] if truth[row] in names else [truth[row]]
        labels[row] = truth[row]
        engine.set_label(row, truth[row], names)
        if len(labels) % EVERY == 0:
            while engine._work_ahead(idle=False) or (engine._can_fit() and engine._fitted_version != engine._version):
                if engine._fitted_version != engine._version:
                    engine._fit()
            shares, classes = engine.predictions(range(len(truth)))
            found = np.array(classes)[shares.argmax(axis=1)]
            shuffled = argparse.Namespace(target=truth)
            yield record(shuffled, seed, "studio", name, labels, found)


def label_at_random(data, name, seed, steps):
    """The same with labels at random."""
    truth = data.target.astype(str)
    rows = np.random.default_rng(seed).permutation(len(truth))
    for n in steps:
        labels = {int(row): truth[row] for row in rows[:n]}
        if len(set(labels.values())) < 2:
            continue
        y = np.array([labels.get(row) for row in range(len(truth))], dtype=object)
        answers = LMSSC().fit(data.views, y).transduction_
        yield record(data, seed, "random", name, labels, answers)


def as_markdown(records):
    """A table for each data set: accuracy by number of labels."""
    lines = ["Accuracy % on the samples without a label, from zero labels on.", ""]
    for name in dict.fromkeys(one["dataset"] for one in records):
        mine = [one for one in records if one["dataset"] == name]
        steps = sorted({one["labels"] for one in mine})
        shown = [n for n in steps if n % 10 == 0]
        seeds = len({one["seed"] for one in mine})
        lines += [f"### {name}; random: mean of {seeds} draws", "", "| labels | " + " | ".join(map(str, shown)) + " |"]
        lines.append("| --- |" + " --- |" * len(shown))
        for choice in ("studio", "random"):
            cells = []
            for n in shown:
                values = [one["accuracy"] for one in mine if one["choice"] == choice and one["labels"] == n]
                cells.append(f"{100 * np.mean(values):.1f}" if values else "–")
            lines.append(f"| {choice} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def draw(records, path):
    """Accuracy over the number of labels, a panel for each data set."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(one["dataset"] for one in records))
    figure = Figure(figsize=(3.2 * len(names), 2.8), layout="constrained")
    for place, name in enumerate(names, 1):
        axes = figure.add_subplot(1, len(names), place)
        for choice, colour, style in (("studio", "#332288", "-"), ("random", "#CC6677", "--")):
            mine = [one for one in records if (one["dataset"], one["choice"]) == (name, choice)]
            steps = sorted({one["labels"] for one in mine})
            means = [100 * np.mean([one["accuracy"] for one in mine if one["labels"] == n]) for n in steps]
            axes.plot(steps, means, style, color=colour, label=choice)
        axes.set(title=name, xlabel="labels", ylim=(40, 101))
        if place == 1:
            axes.set_ylabel("accuracy %")
            axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def measure_keys(n_samples, n_keys, think, out):
    """How long a key takes, with fits in the background: until the answer is on disk, all answers are updated, and the
    next sample is known with what the model thinks of it. Seconds of the clock and of the processor, for each key.
    """
    sizes = {"n_views": 2, "n_features": [20, 20], "n_classes": 10, "separation": 3.0, "dtype": np.float32}
    data = make_multiview(n_samples, random_state=0, **sizes)
    truth = data.target.astype(str)
    ids = np.array([f"s{row}" for row in range(n_samples)], dtype=object)
    first = np.random.default_rng(0).permutation(n_samples)[:60]
    engine = Engine(dict(zip("ab", data.views, strict=True)))
    viewer = SampleViewer(SampleCells([], ids), ids)
    session = Session(ids, engine, AnswerStore(out), viewer, {ids[row]: truth[row] for row in first})
    asked = session.next("me")
    time.sleep(5)
    times = []
    for _ in range(n_keys):
        time.sleep(think)
        began, worked = time.perf_counter(), time.thread_time()
        session.label(asked["id"], truth[session.rows[asked["id"]]], "me")
        asked = session.next("me")
        session.state()
        times.append((time.perf_counter() - began, time.thread_time() - worked))
    with engine._lock:
        live = engine._live
        again = LiveAnswers(live.graph, live.classes, live.labels)
        error = float(np.abs(again.scores - live.scores).max())
    engine.close()
    session.store.close()
    return np.array(times), error, engine.facts()["fits"]


def main():
    """Measure, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--speed", type=int, metavar="SAMPLES", help="measure keys instead")
    parser.add_argument("--keys", type=int, default=50)
    parser.add_argument("--think", type=float, default=1.5, help="seconds between two keys")
    parser.add_argument("--figure", type=Path, default=Path("docs/charts/studio.svg"))
    parser.add_argument("--out", type=Path, default=Path("results/studio"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.speed:
        with tempfile.TemporaryDirectory() as folder:
            times, error, fits = measure_keys(args.speed, args.keys, args.think, Path(folder) / "out")
        wall, cpu = 1000 * times.T
        text = (
            f"{args.speed:,} samples, {args.keys} keys with {args.think} s between them, {fits} fits finished in the "
            f"background: a key takes {np.median(wall):.0f} ms (median), {np.quantile(wall, 0.9):.0f} ms (90 %), of "
            f"which the processor works {np.median(cpu):.0f} ms; load of the machine {os.getloadavg()[0]:.1f}. "
            f"The scores differ by at most {error:.1e} from solving again at the fixed graph.\n"
        )
        print(text)
        with open_atomically(args.out / "speed.md") as file:
            file.write(text.encode())
        return
    records = []
    for name in args.datasets:
        data = load(name)
        for seed in range(args.seeds):
            total, steps = DATASETS[name]
            if not seed:  # the order of the rows changes nothing
                records += label_in_studio(data, name, seed, total)
                print(name, seed, records[-1], flush=True)
            records += label_at_random(data, name, seed, steps)
            print(name, seed, records[-1], flush=True)
            write_csv(args.out / "studio.csv", COLUMNS, records)
    with open_atomically(args.out / "studio.md") as file:
        file.write(as_markdown(records).encode())
    draw(records, args.figure)


if __name__ == "__main__":
    main()
