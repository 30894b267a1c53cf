"""A real Label Studio with `lmssc label` as its machine-learning backend: suggestions, ten annotations, the order.

    python -m venv /tmp/ls && /tmp/ls/bin/pip install label-studio
    python benchmarks/label_studio.py --label-studio /tmp/ls/bin/label-studio

Starts both on the loopback address, makes a project of digits whose tasks have the ids of the samples, connects the
backend, and asks for predictions. Then it annotates the first task in Label Studio's own list, sorted by score, ten
times, and checks that each annotation arrives here as an answer, and that the order follows. Label Studio refuses
addresses of its own machine by default, so it is started with SSRF_PROTECTION_ENABLED=false and
USE_DEFAULT_BANNED_SUBNETS=false. Writes results/studio/label_studio.md.
"""

import argparse
import http.cookiejar
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from studio_browser import served, write_digits

from lmssc.persistence.atomic import open_atomically

EMAIL, PASSWORD = "annotator@example.com", "a-long-passphrase"
CONFIG = (
    '<View><Text name="sample" value="$id"/><Choices name="label" toName="sample">'
    + "".join(f'<Choice value="{digit}"/>' for digit in range(10))
    + "</Choices></View>"
)
N_TASKS, N_ANNOTATIONS = 200, 10
SAMPLING = "Uncertainty sampling"
# Digits that lmssc has, and labels of each class to begin with.
N_SAMPLES, N_GIVEN = 400, 2


class LabelStudio:
    """Label Studio as a process of its own, used through its API as its page does."""

    def __init__(self, program, folder, port):
        self.base = f"http://127.0.0.1:{port}"
        environment = os.environ | {
            "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
            "SSRF_PROTECTION_ENABLED": "false",
            "USE_DEFAULT_BANNED_SUBNETS": "false",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
        }
        environment.pop("PYTHONPATH", None)
        words = ["start", "--port", str(port), "--username", EMAIL, "--password", PASSWORD, "--no-browser"]
        self._log = open(folder / "log", "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
        self._process = subprocess.Popen([program, *words], stdout=self._log, stderr=self._log, env=environment)
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        self._wait()
        self._log_in()

    def _wait(self):
        for _ in range(1200):
            try:
                self._opener.open(f"{self.base}/health")
                return
            except (urllib.error.URLError, ConnectionError):
                if self._process.poll() is not None:
                    raise SystemExit("Label Studio did not start; see its log") from None
                time.sleep(0.5)
        raise SystemExit("Label Studio did not start in ten minutes")

    def _token(self):
        return next((one.value for one in self._cookies if one.name == "csrftoken"), "")

    def _log_in(self):
        page = self._opener.open(f"{self.base}/user/login/").read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
        form = {"csrfmiddlewaretoken": token, "email": EMAIL, "password": PASSWORD}
        request = urllib.request.Request(f"{self.base}/user/login/", urllib.parse.urlencode(form).encode())
        request.add_header("Referer", f"{self.base}/user/login/")
        self._opener.open(request)

    def ask(self, path, body=None, method=None):
        """JSON of a request."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}{path}", content, method=method)
        request.add_header("Content-Type", "application/json")
        request.add_header("X-CSRFToken", self._token())
        request.add_header("Referer", self.base)
        try:
            with self._opener.open(request) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path}: {error.code} {error.read()[:500]!r}") from error
        return json.loads(text) if text else None

    def tasks(self, project):
        """Tasks in the order of Label Studio's data manager, sorted by prediction score."""
        order = json.dumps({"ordering": ["tasks:predictions_score"]})
        words = {"project": project, "page_size": N_TASKS, "fields": "all", "query": order}
        return self.ask(f"/api/tasks?{urllib.parse.urlencode(words)}")["tasks"]

    def next_task(self, project):
        """The task that its labelling page shows next."""
        return self.ask(f"/api/projects/{project}/next")

    def renew_predictions(self, project):
        """The actions "delete predictions" and "retrieve predictions" of the data manager, for all tasks.

        Label Studio sorts by the mean score over all predictions of a task, so old ones would keep the old order.
        """
        body = {
            "selectedItems": {"all": True, "excluded": []},
            "ordering": [],
            "filters": None,
            "project": str(project),
        }
        for action in ("delete_tasks_predictions", "retrieve_tasks_predictions"):
            self.ask(f"/api/dm/actions?id={action}&project={project}", body)

    def close(self):
        """Stop as with Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._log.close()


def main():
    """Run both, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label-studio", required=True, metavar="PROGRAM")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="of Label Studio, which takes minutes to make one")
    parser.add_argument("--port", type=int, default=8899)
    parser.add_argument("--out", type=Path, default=Path("results/studio"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        views, truth = write_digits(folder)
        data = args.data or folder / "label-studio"
        data.mkdir(exist_ok=True)
        pixels = next(Path(view) for view in views if view.endswith("pixels.csv"))
        truth = cut(pixels, truth, folder / "labels.csv")
        with served(folder, str(pixels), "--labels", str(folder / "labels.csv")) as studio:
            label_studio = LabelStudio(args.label_studio, data, args.port)
            try:
                lines = work(label_studio, studio, truth)
            finally:
                label_studio.close()
    text = "\n".join([*lines, ""])
    print(text)
    args.out.mkdir(parents=True, exist_ok=True)
    with open_atomically(args.out / "label_studio.md") as file:
        file.write(text.encode())


def cut(pixels, truth, labels):
    """Keep the first digits only, and write the labels to begin with; their true labels."""
    lines = pixels.read_text(encoding="utf-8").splitlines(keepends=True)[: N_SAMPLES + 1]
    pixels.write_text("".join(lines), encoding="utf-8")
    place = lines[0].strip().split(",").index("id")
    kept = {key: truth[key] for key in (line.strip().split(",")[place] for line in lines[1:])}
    given = [key for name in sorted(set(kept.values())) for key in [key for key in kept if kept[key] == name][:N_GIVEN]]
    labels.write_text("id,label\n" + "".join(f"{key},{kept[key]}\n" for key in given), encoding="utf-8")
    return kept


def annotate(label_studio, task, label):
    """Give a task its label."""
    result = [{"from_name": "label", "to_name": "sample", "type": "choices", "value": {"choices": [label]}}]
    label_studio.ask(f"/api/tasks/{task['id']}/annotations", {"result": result})


def work(label_studio, studio, truth):
    """Connect, annotate, compare; what happened, as lines."""
    project = label_studio.ask("/api/projects", {"title": "digits", "label_config": CONFIG, "sampling": SAMPLING})["id"]
    studio.settle()
    next_ones = [one["id"] for one in studio.ask("/api/list", list="informative")["samples"]]
    others = [key for key in truth if key not in next_ones]
    ids = [*next_ones, *others][:N_TASKS]
    label_studio.ask(f"/api/projects/{project}/import", [{"data": {"id": key}} for key in sorted(ids)])
    base, token = studio.address.split("/?token=")
    label_studio.ask("/api/ml", {"project": project, "url": f"{base}/t/{token}", "title": "lmssc"})
    label_studio.renew_predictions(project)
    before = studio.ask("/api/state")
    version = label_studio.ask("/api/version")["release"]
    lines = [f"Label Studio {version} with `lmssc label` as its machine-learning backend:", ""]
    followed, sampled, answers = 0, 0, {}
    for turn in range(N_ANNOTATIONS):
        tasks = label_studio.tasks(project)
        if not turn:
            suggested = [task for task in tasks if task["predictions"]]
            lines.append(f"- {len(tasks)} tasks imported, {len(suggested)} have a prediction.")
        asked = [one["id"] for one in studio.ask("/api/list", list="informative")["samples"]]
        left = [task for task in tasks if not task["total_annotations"]]
        task = left[0]
        wanted = next(key for key in asked if key in ids)
        followed += task["data"]["id"] == wanted
        shown = label_studio.next_task(project)["data"]["id"]
        sampled += shown == wanted
        print(
            f"turn {turn + 1}: first in its list {task['data']['id']}, its next task {shown}, lmssc asks for {wanted}",
            flush=True,
        )
        answers[task["data"]["id"]] = truth[task["data"]["id"]]
        annotate(label_studio, task, truth[task["data"]["id"]])
        studio.settle()
        label_studio.renew_predictions(project)
    after = studio.ask("/api/state")
    exported = {task["data"]["id"]: task for task in studio.ask("/api/export", format="label-studio")}
    arrived = {
        key: exported[key]["annotations"][0]["result"][0]["value"]["choices"][0] for key in answers if key in exported
    }
    lines += [
        f"- {len(answers)} annotations made there; {len(arrived)} arrived here, "
        f"{'all' if arrived == answers else 'NOT all'} as they were given: {before['labelled']} labels, then "
        f"{after['labelled']}.",
        f"- Sorted by prediction score in Label Studio, the first task without an annotation was the sample that lmssc "
        f"asks for next in {followed} of {N_ANNOTATIONS} turns, and with uncertainty sampling its next task was that "
        f"sample in {sampled}. (Before each turn its predictions were deleted and "
        "retrieved again: it sorts by the mean score over all predictions of a task, old ones too.)",
    ]
    return lines


if __name__ == "__main__":
    main()
