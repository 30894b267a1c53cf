"""The labelling studio in Chromium, by keys alone: `lmssc label` as it is installed, and a scripted annotator.

    python benchmarks/studio_browser.py            # digits: labels needed, two browsers, undo
    python benchmarks/studio_browser.py --speed 100000

- **One browser**: 100 digits are labelled by keys, from zero labels on, one a second or as fast as the page takes them
  (`--think`); nobody waits for the fits in the background. The answers about all other digits, as the page has them at
  that moment and as `lmssc classify` would give them with the labels so far, are compared with those of `LMSSC` with
  200 labels at random.
- **Undo**: what the server says of all samples is the same before a label and after it was undone.
- **Two browsers**: 200 answers at the same time, one in seven of them wrong. Every answer that the page took must be in
  the file, and the list of disagreements must be that of the answers.
- **--speed**: time from the key until the next sample is on the page, with all answers updated; and how far they are
  from solving again at the fixed graph.

Needs chromium and chromedriver. Writes results/studio/browser.md, or browser_speed.md with --speed.
"""

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lmssc import LMSSC
from lmssc.cli import main as main_command
from lmssc.datasets import make_multiview
from lmssc.io.files_to_label import read_files_to_label
from lmssc.io.options import Options
from lmssc.persistence.atomic import open_atomically
from lmssc.studio.live_answers import LiveAnswers
from lmssc.studio.server import Studio as StudioServer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsing import set_screen, start_browser

MARKS = (10, 20, 30, 40, 50, 60, 80, 100)
N_RANDOM, N_SEEDS = 200, 5
WRONG_EVERY = 7
# As the first word it makes this script the server: `lmssc label`, which says at the end how exact its answers are.
SERVER = "--server"


class Page:
    """One browser at the page of a studio."""

    def __init__(self, address, profile, annotator=None, *, ready=True):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        self._chains, self._keys = ActionChains, Keys
        self.driver = start_browser(profile, offline=False)
        set_screen(self.driver, 1200)
        self.driver.get(address + ("" if annotator is None else f"&annotator={annotator}"))
        if ready:
            self.wait("return document.body.dataset.ready === 'yes'")

    def wait(self, script, seconds=600):
        """Wait until a script says yes."""
        end = time.monotonic() + seconds
        while not self.driver.execute_script(script):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.01)

    @property
    def sample(self):
        """Id of the sample in front."""
        return self.driver.execute_script("return document.getElementById('sample-title').textContent")

    @property
    def keys(self):
        """The key of each class, as its button says."""
        script = (
            "return Object.fromEntries([...document.querySelectorAll('#classes button')].map((one) => "
            "[one.querySelector('span').textContent, one.querySelector('kbd').textContent]))"
        )
        return self.driver.execute_script(script)

    def press(self, *keys):
        """Press keys, and wait for the next sample; milliseconds from the last key until it is on the page."""
        self.driver.execute_script(
            "window.took = null; const before = document.getElementById('said').textContent; let began = 0;"
            "const down = () => { began = performance.now(); };"
            "document.addEventListener('keydown', down, true);"
            "const title = document.getElementById('sample-title');"
            "const seen = new MutationObserver(() => { window.took = performance.now() - began; seen.disconnect(); "
            "document.removeEventListener('keydown', down, true); });"
            "seen.observe(title, { childList: true, characterData: true, subtree: true });"
        )
        self._chains(self.driver, duration=0).send_keys(*keys).perform()
        self.wait("return window.took !== null && !document.body.classList.contains('busy')")
        return self.driver.execute_script("return window.took")

    def give(self, label):
        """Give the sample in front a label by keys alone."""
        keys = self.keys
        if label in keys:
            return self.press(keys[label])
        self.driver.execute_script("document.activeElement.blur()")
        self._chains(self.driver, duration=0).send_keys("+").perform()
        return self.press(label, self._keys.ENTER)


class Studio:
    """`lmssc label` as a process of its own."""

    def __init__(self, folder, *words, compared=False):
        program = [__file__, SERVER] if compared else ["-m", "lmssc", "label"]
        command = [sys.executable, *program, *words, "--no-browser", "--out", str(folder / "out")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.folder = folder
        self.address = next(
            match[1] for line in self.process.stdout if (match := re.match(r"Label here: +(\S+)", line))
        )

    def ask(self, path, **query):
        """JSON of a request to the API."""
        base, token = self.address.split("/?")
        words = "&".join([token, *(f"{name}={value}" for name, value in query.items())])
        with urllib.request.urlopen(f"{base}{path}?{words}") as answer:
            return json.load(answer)

    def settle(self):
        """Wait until the model knows all labels."""
        while True:
            model = self.ask("/api/state")["model"]
            if model["up_to_date"] and model["status"] != "fitting":
                return
            time.sleep(0.2)

    def accuracy(self, truth):
        """Share of right answers about the samples without a label."""
        names = [one["name"] for one in self.ask("/api/state")["classes"]]
        drawn = self.ask("/api/map")
        dots = zip(drawn["ids"], drawn["label"], drawn["given"], strict=True)
        return float(np.mean([names[label] == truth[key] for key, label, given in dots if not given]))

    def close(self):
        """Stop as with Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate()
        found = re.search(r"^exactness (.*)$", said, re.MULTILINE)
        self.exactness = None if found is None else json.loads(found[1])


def run_server(words):
    """`lmssc label`; at the end it compares its answers with those of solving again at the same graph."""
    close = StudioServer.close

    def compare_and_close(studio):
        engine = studio.session.engine
        with engine._lock:
            live = engine._live
            again = LiveAnswers(live.graph, live.classes, live.labels)
            found = {"difference": float(np.abs(again.scores - live.scores).max()), "updates": live._updater._n_changes}
        print("exactness", json.dumps(found), flush=True)
        return close(studio)

    StudioServer.close = compare_and_close
    return main_command(["label", *words])


@contextmanager
def served(folder, *words, **options):
    """A studio that is closed at the end."""
    studio = Studio(folder, *words, **options)
    try:
        yield studio
    finally:
        studio.close()


def write_digits(folder):
    """Files of the digits; their true labels by id."""
    subprocess.run([sys.executable, "-m", "lmssc", "demo", "--files", str(folder / "digits")], check=True)
    with open(folder / "digits" / "truth.csv", encoding="utf-8") as file:
        truth = {row["id"]: row["label"] for row in csv.DictReader(file)}
    return [str(path) for path in sorted((folder / "digits" / "views").iterdir())], truth


class Digits:
    """The digits as `lmssc classify` has them, to fit them with any labels."""

    def __init__(self, views, truth):
        self.joined = read_files_to_label(views, [], Options()).joined
        self.target = np.array([truth[key] for key in self.joined.ids], dtype=object)

    def accuracy(self, given):
        """Share of right answers of LMSSC about the samples without a label, given the rows with one."""
        y = np.full(len(self.target), None, dtype=object)
        y[given] = self.target[given]
        right = LMSSC().fit(self.joined.views, y, self.joined.sparse_masks).transduction_ == self.target
        return float(np.delete(right, given).mean())

    def at_random(self):
        """Accuracy with labels at random, for each seed."""
        draws = [np.random.default_rng(seed).permutation(len(self.target))[:N_RANDOM] for seed in range(N_SEEDS)]
        return [self.accuracy(given) for given in draws]

    def with_ids(self, ids):
        """Accuracy with the labels of these samples."""
        return self.accuracy([self.joined.ids.tolist().index(key) for key in ids])


def one_browser(folder, views, truth, think):
    """Samples in the order in which they were labelled, accuracy on the page at some of them, times of the keys, and
    whether undo restored everything.
    """
    with served(folder, *views) as studio:
        page = Page(studio.address, folder / "profile")
        found, times, asked = {}, [], []
        while len(found) < len(MARKS):
            time.sleep(think)
            asked.append(page.sample)
            times.append(page.give(truth[page.sample]))
            if len(times) in MARKS:
                found[len(times)] = studio.accuracy(truth)
                print(len(times), found[len(times)], studio.ask("/api/state")["model"]["labels_in_fit"], flush=True)
        studio.settle()
        sample, before = page.sample, studio.ask("/api/map")
        following = studio.ask("/api/next")
        page.press(next(iter(page.keys.values())))
        page.press("u")
        same = studio.ask("/api/map") == before and studio.ask("/api/next") == following and page.sample == sample
        page.driver.quit()
    return asked, found, times, same


def two_browsers(folder, views, truth, total):
    """Answers of two people at once: how many were given and stored, and whether the disagreements are right."""
    with served(folder, *views, "--annotators", "ann,bob") as studio:
        said = {"ann": {}, "bob": {}}

        def work(name):
            page = Page(studio.address, folder / f"profile-{name}", name)
            for turn in range(total // 2):
                sample = page.sample
                label = truth[sample] if turn % WRONG_EVERY else str((int(truth[sample]) + 1) % 10)
                page.give(label)
                said[name][sample] = label
            page.driver.quit()

        people = [threading.Thread(target=work, args=(name,)) for name in said]
        for person in people:
            person.start()
        for person in people:
            person.join()
        listed = {one["id"] for one in studio.ask("/api/list", list="disagreements", annotator="ann")["samples"]}
        state = studio.ask("/api/state")
        exported = studio.ask("/api/export", format="label-studio")
    stored = {name: {} for name in said}
    for task in exported:
        for one in task["annotations"]:
            stored[one["created_username"]][task["data"]["id"]] = one["result"][0]["value"]["choices"][0]
    differ = {key for key in said["ann"] if key in said["bob"] and said["ann"][key] != said["bob"][key]}
    both = len(said["ann"].keys() & said["bob"].keys())
    n_said = sum(map(len, said.values()))
    return {"said": n_said, "stored": stored == said, "both": both, "differ": len(differ), "listed": listed == differ,
            "kappa": state["kappa"]["kappa"]}  # fmt: skip


def measure_speed(folder, n_samples, n_keys, think):
    """Milliseconds of each key on large data."""
    data = make_multiview(n_samples, n_views=2, n_features=[20, 20], n_classes=10, separation=3.0, random_state=0)
    ids = np.array([f"s{row}" for row in range(n_samples)])
    truth = dict(zip(ids.tolist(), data.target.astype(str).tolist(), strict=True))
    np.savez(folder / "big.npz", id=ids, a=data.views[0].astype(np.float32), b=data.views[1].astype(np.float32))
    first = np.random.default_rng(0).permutation(n_samples)[:60]
    lines = "".join(f"{ids[row]},{data.target[row]}\n" for row in first)
    (folder / "labels.csv").write_text("id,label\n" + lines, encoding="utf-8")
    with served(folder, str(folder / "big.npz"), "--labels", str(folder / "labels.csv"), compared=True) as studio:
        page = Page(studio.address, folder / "profile")
        times = []
        for _ in range(n_keys):
            time.sleep(think)
            times.append(page.give(truth[page.sample]))
            print(f"{times[-1]:.0f} ms", flush=True)
        fits = studio.ask("/api/state")["model"]["fits"]
        page.driver.quit()
    return times, fits, studio.exactness


def digits_report(folder, total, think):
    """The lines about digits."""
    views, truth = write_digits(folder)
    (folder / "one").mkdir()
    asked, found, times, same = one_browser(folder / "one", views, truth, think)
    (folder / "two").mkdir()
    pair = two_browsers(folder / "two", views, truth, total)
    print(pair, flush=True)
    digits = Digits(views, truth)
    random = digits.at_random()
    goal = float(np.mean(random))
    fitted = {n: digits.with_ids(asked[:n]) for n in MARKS}
    reached = next((n for n in MARKS if fitted[n] >= goal), None)
    pace = f"{think:g} s between two keys" if think else "as fast as the page takes the keys"
    return [
        f"1,797 digits in four views, labelled in Chromium by keys alone, from zero labels on, {pace};",
        "nobody waits for the fits in the background. Accuracy on the digits without a label: as the page has it at",
        "that moment, and with a fit of the labels so far, as `lmssc classify` makes it.",
        "",
        "| labels | " + " | ".join(map(str, MARKS)) + " |",
        "| --- |" + " --- |" * len(MARKS),
        "| on the page % | " + " | ".join(f"{100 * found[n]:.1f}" for n in MARKS) + " |",
        "| after a fit % | " + " | ".join(f"{100 * fitted[n]:.1f}" for n in MARKS) + " |",
        "",
        f"{N_RANDOM} labels at random: {100 * goal:.1f} % (mean of {N_SEEDS} draws, {100 * min(random):.1f} to "
        f"{100 * max(random):.1f}). The studio reaches that with {reached or 'more than 100'} labels.",
        "",
        f"A key takes {np.median(times):.0f} ms (median of {len(times)}) until the next sample is on the page; load of "
        f"the machine {os.getloadavg()[0]:.1f}.",
        "After a label and its undo, all that the server says of all samples is "
        f"{'the same' if same else 'NOT the same'}.",
        "",
        f"Two browsers at once: {pair['said']} answers were given, {'all' if pair['stored'] else 'NOT all'} are stored "
        f"as they were given. {pair['both']} samples have answers of both; {pair['differ']} of them differ, and "
        f"the list of disagreements has {'exactly these' if pair['listed'] else 'OTHERS'}; κ = {pair['kappa']:.2f}.",
        "",
    ]


def main():
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", type=int, metavar="SAMPLES", help="measure keys on large data instead")
    parser.add_argument("--keys", type=int, default=50)
    parser.add_argument("--think", type=float, default=1.0, help="seconds between two keys")
    parser.add_argument("--answers", type=int, default=200, help="answers of two browsers")
    parser.add_argument("--out", type=Path, default=Path("results/studio"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if args.speed:
            times, fits, exact = measure_speed(Path(folder), args.speed, args.keys, args.think)
            lines = [
                f"{args.speed:,} samples in Chromium, {args.keys} keys with {args.think} s between them, {fits} fits "
                f"finished in the background: {np.median(times):.0f} ms (median), {np.quantile(times, 0.9):.0f} ms "
                f"(90 %) from the key until the next sample is on the page; load {os.getloadavg()[0]:.1f}. The scores "
                f"differ by at most {exact['difference']:.1e} from solving again at the fixed graph, after "
                f"{exact['updates']} updates of it.",
                "",
            ]
        else:
            lines = digits_report(Path(folder), args.answers, args.think)
    text = "\n".join(lines)
    print(text)
    with open_atomically(args.out / ("browser_speed.md" if args.speed else "browser.md")) as file:
        file.write(text.encode())


if __name__ == "__main__":
    if sys.argv[1:2] == [SERVER]:
        sys.exit(run_server(sys.argv[2:]))
    main()
