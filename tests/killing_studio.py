"""Kill the studio while someone labels, again and again: ``python killing_studio.py FOLDER KILLS``.

A client labels and undoes as fast as it can. Another process kills the server with SIGKILL at a random moment. After
each kill the file of answers must hold every answer that was confirmed, once, and at most the one that was not; the
client then repeats that one with a new server, as the page does.
"""

import http.client
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from lmssc.studio.answer_store import AnswerStore
from lmssc.studio.server import listen, serve
from studio_client import TOKEN, make_studio, write_samples

N_SAMPLES = 400


def start_server(path, out, listening):
    """A child process that serves the studio."""
    child = os.fork()
    if child:
        return child
    studio = make_studio(path, out)
    serve(studio, listening)
    os._exit(0)


def send(port, route, body):
    """A confirmed answer, or None if the server died first."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Host": "127.0.0.1:8765"}
    try:
        connection.request("POST", route, json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return json.loads(content)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def wait_until_ready(port):
    for _ in range(2000):
        if send(port, "/api/undo", {"annotator": "nobody"}) is not None:
            return
        time.sleep(0.005)
    raise AssertionError("the server did not start")


def kill_later(child, seconds):
    killer = os.fork()
    if killer == 0:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os._exit(0)
    return killer


class Client:
    """Labels and undoes, and knows what must be in the file."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.expected = {}  # by sample: the label of the answer that stands
        self.open = None  # the request that was not confirmed
        self.n_confirmed = 0
        self.numbers = []

    def step(self, port):
        """One request; False if the server is dead."""
        if self.open is None:
            if self.numbers and self.random.random() < 0.2:
                self.open = ("/api/undo", {"number": self.numbers[-1][0]}, self.numbers[-1][1], None)
            else:
                sample, label = f"s{self.random.randrange(N_SAMPLES):03d}", self.random.choice("uvw")
                self.open = ("/api/label", {"id": sample, "label": label}, sample, label)
        route, body, sample, label = self.open
        found = send(port, route, body)
        if found is None:
            return False
        if label is None:
            self.numbers = [one for one in self.numbers if one[1] != sample]
            self.expected.pop(sample, None)
        else:
            self.numbers = [one for one in self.numbers if one[1] != sample] + [(found["number"], sample)]
            self.expected[sample] = label
        self.open = None
        self.n_confirmed += 1
        return True


def check(out, client):
    """Faults in the file after a kill."""
    store = AnswerStore(out)
    found = [(one.sample, one.label) for one in store.standing()]
    store.close()
    if len(dict(found)) != len(found):
        return "an answer is there twice"
    allowed = [client.expected]
    if client.open is not None:
        _, _, sample, label = client.open
        after = {key: value for key, value in client.expected.items() if key != sample}
        allowed.append(after if label is None else after | {sample: label})
    return "" if dict(found) in allowed else "an answer is lost, or there that was never given"


def main(folder, kills):
    folder.mkdir(exist_ok=True)
    path, _ = write_samples(folder, N_SAMPLES, text=False)
    out, client, faults, confirmed = folder / "out", Client(0), [], []
    moments = np.random.default_rng(0)
    for _ in range(kills):
        with listen("127.0.0.1", 0) as listening:
            port = listening.getsockname()[1]
            child = start_server(path, out, listening)
            listening.close()
            wait_until_ready(port)
            before = client.n_confirmed
            killer = kill_later(child, moments.uniform(0, 0.15))
            while client.step(port):
                pass
            os.waitpid(child, 0)
            os.waitpid(killer, 0)
            confirmed.append(client.n_confirmed - before)
            faults.append(check(out, client))
    print(
        json.dumps({"faults": [one for one in faults if one], "confirmed": confirmed, "open": client.open is not None})
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
