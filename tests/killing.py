"""Kills `lmssc classify` at random moments, and a replacement of files at each step; prints what is left as JSON.

    python tests/killing.py runs FOLDER COUNT SEED [brief]
    python tests/killing.py steps FOLDER

A program of its own: everything is imported once, and each run is a fork of it.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import lmssc
import lmssc.cli.classify_run
import lmssc.report
from lmssc.cli import main
from lmssc.io.staging import staged_folder
from lmssc.persistence.signals import Stopped, stop_by_signals
from small_files import label_text, make_problem, write_csv

SIGNALS = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM, "INT": signal.SIGINT}
RESULTS = ["model.lmssc", "predictions.csv", "report.html", "to_label.csv"]
# Exit code of a replacement that has fewer steps.
BEYOND = 71
# Names in `os` through which files are made, moved and removed.
STEPS = ("mkdir", "link", "symlink", "replace", "rename", "unlink", "rmdir")


def forked(work):
    """Start `work` in another process."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        code = work()
    except KeyboardInterrupt:  # after the command has ended and no longer handles signals: so does Python end then
        code = 128 + signal.SIGINT
    except BaseException as error:  # nothing of this process may go on in the child
        print(f"killing: {type(error).__name__}", file=sys.stderr)
    finally:
        os._exit(code)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def leftover_names(folder):
    return [name for name in names_in(folder) if name.startswith(".")]


def classify(which, *options):
    """The call with one of two files of labels, which have different results."""
    return main(["classify", "a.csv", "b.csv", "--labels", f"{which}.csv", "--out", "out", "-q", *options])


def whole_result(folder):
    """What tells a result from any other, from all four files; None if there is none, a text if it is not whole."""
    there = [name for name in RESULTS if (folder / name).exists()]
    if not there:
        return None
    if there != RESULTS:
        return f"only {there}"
    try:
        model = lmssc.load(folder / "model.lmssc")
    except ValueError as error:
        return f"a broken model: {error}"
    return (
        (folder / "predictions.csv").read_bytes(),
        (folder / "to_label.csv").read_bytes(),
        (folder / "report.html").read_bytes(),
        model.label_distributions_.tobytes(),
    )


def prepare():
    """Two results, and how long it takes to make one."""
    views, ids, labels = make_problem(24)
    for name, view in views.items():
        write_csv(Path(), name, view, ids)
    Path("one.csv").write_text(label_text(ids, labels))
    other = {"u": "w", "w": "u"}
    Path("two.csv").write_text(label_text(ids, [other.get(label, label) for label in labels]))
    results = {}
    for which in ("one", "two"):
        began = time.perf_counter()
        # Always by force, because the report tells the call.
        assert classify(which, "--force") == 0
        seconds = time.perf_counter() - began
        results[which] = whole_result(Path("out"))
    Path("out/mine.txt").write_text("mine")
    return results, seconds


def exit_code_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_once(which, name, delay, *, at_the_end):
    """Kill a run a while after it began, or after it began to put its files into their places; how it ended."""
    reading, writing = os.pipe()

    def run():
        os.close(reading)
        name_of = lmssc.cli.classify_run.free_name

        def told(*args):
            os.close(writing)
            return name_of(*args)

        lmssc.cli.classify_run.free_name = told
        return classify(which, "--force")

    child = forked(run)
    os.close(writing)
    if at_the_end:
        os.read(reading, 1)  # until the other end is closed
    time.sleep(delay)
    os.kill(child, SIGNALS[name])
    os.close(reading)
    return exit_code_of(child)


def all_leftovers():
    return set(leftover_names(Path()) + leftover_names(Path("out")))


def fault_of(allowed, name, inputs, left_before):
    """What is wrong with the folder after a signal; nothing if all is well."""
    found = whole_result(Path("out"))
    if found not in allowed:
        return found if isinstance(found, str) else "neither the old result nor the new one"
    if name != "KILL" and not all_leftovers() <= left_before:
        return f"left: {all_leftovers() - left_before}"
    visible = [entry for entry in names_in(Path()) if not entry.startswith(".")]
    if visible not in (inputs, sorted([*inputs, "out"])):
        return f"beside the inputs: {visible}"
    return ""


def kill_runs(count, seed):
    """Kill as many runs: half of them write a new folder, half of them replace one result by the other."""
    results, seconds = prepare()
    shutil.copytree("out", "../kept")
    inputs = [name for name in names_in(Path()) if name != "out"]
    rng = random.Random(seed)
    trials = []
    for number in range(count):
        name = rng.choice(sorted(SIGNALS))
        into = "new" if number < count / 2 else "old"
        # A third of the signals come about when the results appear, which takes milliseconds.
        at_the_end = rng.random() < 1 / 3
        delay = rng.uniform(0, 0.01) if at_the_end else rng.uniform(0, seconds)
        if into == "new":
            shutil.rmtree("out", ignore_errors=True)
        elif not Path("out").exists():
            shutil.copytree("../kept", "out")
        if into == "old":
            Path("out/mine.txt").write_text("mine")
        before, left_before = whole_result(Path("out")), all_leftovers()
        which = "one" if before == results["two"] else "two"
        code = kill_once(which, name, delay, at_the_end=at_the_end)
        fault = fault_of([before, results[which]], name, inputs, left_before)
        if into == "old" and Path("out/mine.txt").read_text() != "mine":
            fault = "a file of somebody else is lost"
        if code not in (0, -SIGNALS[name], 128 + SIGNALS[name]):
            fault = fault or f"exit code {code}"
        has = "new" if whole_result(Path("out")) == results[which] else "old"
        trials.append({"signal": name, "into": into, "code": code, "has": has, "fault": fault})
    # A later run removes what the killed ones have left.
    assert classify("one", "--force") == 0
    whole = whole_result(Path("out")) == results["one"]
    return {"seconds": seconds, "trials": trials, "left": sorted(all_leftovers()), "whole": whole}


def write_version(version, step=0, name="KILL"):
    """Replace two files and add one; a signal comes before one of the steps, counted from 1."""
    done = 0

    def counting(original):
        def step_of(*args, **kwargs):
            nonlocal done
            done += 1
            if done == step:
                os.kill(os.getpid(), SIGNALS[name])
            return original(*args, **kwargs)

        return step_of

    try:
        with stop_by_signals(), staged_folder(Path("out"), force=True) as stage:
            for file in ("a.txt", "b.txt") if version == "old" else ("a.txt", "b.txt", "c.txt"):
                (stage / file).write_text(version)
            for function in STEPS if step else ():
                setattr(os, function, counting(getattr(os, function)))
    except Stopped as stopped:
        return stopped.exit_code
    return BEYOND if done < step else 0


def kill_steps():
    """Kill a replacement before each of its steps."""
    trials = []
    for name in SIGNALS:
        for step in range(1, 1000):
            shutil.rmtree("out", ignore_errors=True)
            Path("out").mkdir()
            Path("out/mine.txt").write_text("mine")
            write_version("old")
            code = exit_code_of(forked(lambda step=step, name=name: write_version("new", step, name)))
            if code == BEYOND:
                break
            found = {path.name: path.read_text() for path in Path("out").iterdir() if path.is_file()}
            left = leftover_names(Path("out"))
            # The next run makes good what was left.
            assert exit_code_of(forked(lambda: write_version("next"))) == 0
            later = {path.name: path.read_text() for path in Path("out").iterdir()}
            trials.append({"signal": name, "code": code, "found": found, "left": left, "later": later})
    return trials


if __name__ == "__main__":
    os.chdir(sys.argv[2])
    if sys.argv[5:] == ["brief"]:  # a report takes longer than all else, and has tests of its own
        lmssc.report.write_report = lambda path, *args, **kwargs: path.write_text("report")
    if sys.argv[1] == "runs":
        print(json.dumps(kill_runs(int(sys.argv[3]), int(sys.argv[4]))))
    else:
        print(json.dumps(kill_steps()))
