"""Five walks through the labelling studio, as a person makes them: `lmssc label` as it is installed, in Chromium.

    python benchmarks/studio_walks.py [--pictures FOLDER]

First label; wrong label undone; pause and resume; second annotator; export and classify. Each walk notes what the page
said on the way and checks what must hold. Writes results/studio/walks.md: the words of the page, for the eyes of
those who change it. docs/guide/studio_walks.md says what was confusing and has been mended.

Needs chromium and chromedriver; takes two to four minutes.
"""

import argparse
import base64
import csv
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from studio_browser import Page, Studio, write_digits

from lmssc.persistence.atomic import open_atomically

N_LABELS = 25


class Walk:
    """One walk: what was done, and what the page said."""

    def __init__(self, title, pictures):
        self.lines = ["", f"## {title}", ""]
        self._pictures, self._name, self._count = pictures, title.split(":")[0].lower().replace(" ", "-"), 0

    def note(self, text):
        """Write down a step."""
        print(text, flush=True)
        self.lines.append(f"- {text}")

    def picture(self, page):
        """Keep what the screen shows, if pictures are wanted."""
        self._count += 1
        if self._pictures is not None:
            taken = page.driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
            (self._pictures / f"{self._name}-{self._count}.png").write_bytes(base64.b64decode(taken))


def said(page, name):
    """Text of a part of the page."""
    return " ".join(page.driver.execute_script("return document.getElementById(arguments[0]).innerText", name).split())


def check(held, what):
    """Stop if something does not hold."""
    if not held:
        raise AssertionError(what)


def first_label(walk, studio, page, truth):
    """Open the page, and label from nothing."""
    walk.note(f"The page opens with {said(page, 'sample-title')}: “{said(page, 'why-asked')}”.")
    focus = page.driver.execute_script("return document.activeElement.id")
    check(focus == "new-name", focus)
    walk.note(f"The cursor is in the field under “{said(page, 'new-label')}”.")
    walk.note(f"What the model thinks: “{said(page, 'model-note')}”")
    walk.picture(page)
    sample = page.sample
    page.press(truth[sample], page._keys.ENTER)
    walk.note(f"The name of the class and Enter: the next sample is {page.sample}; “{said(page, 'summary')}”.")
    check(studio.ask("/api/state")["labelled"] == 1, "one label")
    while studio.ask("/api/state")["labelled"] < N_LABELS:
        page.give(truth[page.sample])
    studio.settle()
    time.sleep(2.5)  # the page asks every two seconds
    walk.note(f"After {N_LABELS} labels by keys: “{said(page, 'facts')}”. “{said(page, 'going-on')}”")
    walk.picture(page)


def wrong_label(walk, studio, page, truth):
    """Take a wrong label back at once, and correct one that was noticed later."""
    sample, right = page.sample, truth[page.sample]
    before = answers(studio)
    wrong = next(key for name, key in page.keys.items() if name != right)
    page.press(wrong)
    page.press("u")
    check(page.sample == sample, "the sample is back")
    check(answers(studio) == before, "all answers are as before")
    walk.note(f"A wrong key, then u: {sample} is back, and all answers are what they were.")
    page.press(wrong)
    for _ in range(3):
        page.give(truth[page.sample])
    walk.note(f"The wrong key again, and three more samples. To find {sample} again, type its id beside the map.")
    page.driver.find_element("id", "find-id").click()
    page.press(sample, page._keys.ENTER)
    check(page.sample == sample, "found by its id")
    walk.note(f"“{said(page, 'why-asked')}”. “{said(page, 'model-note')}”")
    walk.picture(page)
    page.give(right)
    labels = {row["id"]: row["label"] for row in exported(studio)}
    check(labels[sample] == right, "corrected")
    walk.note(f"The right key replaces the wrong one: the export has {sample} once, with {right}.")


def answers(studio):
    """The answer about each sample and its confidence, once the model knows all labels."""
    studio.settle()
    drawn = studio.ask("/api/map")
    return [drawn[part] for part in ("ids", "label", "given", "sure")]


def exported(studio):
    """Rows of labels.csv, as the link of the page gives it."""
    from urllib.request import urlopen

    base, token = studio.address.split("/?")
    with urlopen(f"{base}/api/export?format=csv&{token}") as answer:
        return list(csv.DictReader(answer.read().decode("utf-8-sig").splitlines()))


def pause(walk, folder, words, studio, page):
    """Stop in the middle, look at the page, and start again."""
    before = exported(studio)
    studio.process.send_signal(signal.SIGINT)
    last = studio.process.stdout.read().strip().splitlines()
    studio.process.wait()
    ended = last[-2].replace(f"{folder}/", "")
    walk.note(f"Ctrl-C in the terminal: “{ended}”")
    page.wait("return !document.getElementById('alarm').hidden", 30)
    walk.note(f"The page that is still open says: “{said(page, 'alarm')}”")
    walk.picture(page)
    again = Studio(folder, *words)
    page.driver.get(again.address)
    page.wait("return document.body.dataset.ready === 'yes'")
    check(exported(again) == before, "all labels are there")
    walk.note(f"Started again with the same command: “{said(page, 'summary')}”, and the same keys.")
    return again, last[-1]


def second_annotator(walk, folder, words, truth):
    """Two people at one session."""
    studio = Studio(folder, *words, "--annotators", "ann,bob")
    pages = {}
    try:
        pages["ann"] = Page(studio.address, folder / "ann", ready=False)
        pages["ann"].wait("return document.getElementById('who-dialog').open")
        walk.note(f"Ann opens the address: “{said(pages['ann'], 'who-dialog')}”")
        walk.picture(pages["ann"])
        pages["ann"].driver.find_element("css selector", "#who-buttons button").click()
        pages["ann"].wait("return document.body.dataset.ready === 'yes'")
        pages["bob"] = Page(studio.address, folder / "bob", "bob")
        walk.note("Bob opens the address “as bob”, and is not asked.")
        for turn in range(20):
            for name, page in pages.items():
                right = truth[page.sample]
                page.give(str((int(right) + 1) % 10) if name == "bob" and turn % 5 == 4 else right)
        state = studio.ask("/api/state")
        check(state["disagreements"] > 0, "some samples have different answers")
        time.sleep(2.5)
        walk.note(f"After 20 answers each: “{said(pages['ann'], 'facts')}”")
        pages["ann"].driver.execute_script(
            "const box = document.getElementById('list'); box.value = 'disagreements'; "
            "box.dispatchEvent(new Event('change'))"
        )
        time.sleep(1)
        walk.note(f"Ann goes through the disagreements: {said(pages['ann'], 'sample-title')}. "
                  f"“{said(pages['ann'], 'why-asked')}”. “{said(pages['ann'], 'model-note')}”")  # fmt: skip
        walk.picture(pages["ann"])
        sample = pages["ann"].sample
        pages["bob"].driver.find_element("id", "find-id").click()
        pages["bob"].press(sample, pages["bob"]._keys.ENTER)
        pages["bob"].give(truth[sample])
        after = studio.ask("/api/state")["disagreements"]
        check(after == state["disagreements"] - 1, "one is settled")
        walk.note(f"Bob finds the sample and agrees: {state['disagreements']} was open, now {after}.")
    finally:
        for page in pages.values():
            page.driver.quit()
        studio.close()


def export(walk, studio, page, command, truth):
    """Take the labels out, and label all samples."""
    page.driver.find_element("css selector", "details.menu summary").click()
    link = page.driver.find_element("css selector", "a[data-format=csv]")
    walk.note(f"Under Export the first line is “{link.text}”; it has {len(exported(studio))} labels.")
    walk.picture(page)
    shown = command.replace(f"{Path(studio.folder)}/", "")
    walk.note(f"The terminal printed the command: `{shown}`")
    folder = tempfile.mkdtemp()
    words = command.removeprefix("Use them: ")
    run = f"cd {folder} && {sys.executable} -m {words}"
    ended = subprocess.run(run, shell=True, capture_output=True, text=True, check=False)
    check(ended.returncode == 0, ended.stderr)
    with open(Path(folder) / "result" / "predictions.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    right = sum(row["label"] == truth[row["id"]] for row in rows) / len(rows)
    report = (Path(folder) / "result" / "report.html").read_text(encoding="utf-8")
    check("data:image/png" in report, "pictures in the report")
    walk.note(f"It runs as it is: {100 * right:.1f} % of {len(rows):,} digits are right, and a click on the map of "
              "report.html shows the picture.")  # fmt: skip


def main():
    """Walk, and write down what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="keep screenshots here")
    parser.add_argument("--out", type=Path, default=Path("results/studio"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        views, truth = write_digits(folder)
        words = [*views, "--show", f"image={folder}/digits/images/{{id}}.png"]
        titles = ["First label", "Wrong label undone", "Pause and resume", "Second annotator", "Export and classify"]
        walks = [Walk(f"{number}. {title}", args.pictures) for number, title in enumerate(titles, 1)]
        studio = Studio(folder, *words)
        page = Page(studio.address, folder / "profile")
        try:
            first_label(walks[0], studio, page, truth)
            wrong_label(walks[1], studio, page, truth)
            studio, command = pause(walks[2], folder, words, studio, page)
            export(walks[4], studio, page, command, truth)
        finally:
            page.driver.quit()
            studio.close()
        (folder / "two").mkdir()
        second_annotator(walks[3], folder / "two", words, truth)
    lines = ["What the studio says on five walks; `benchmarks/studio_walks.py` makes them in Chromium and writes this."]
    text = "\n".join([*lines, *(line for walk in walks for line in walk.lines), ""])
    with open_atomically(args.out / "walks.md") as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
