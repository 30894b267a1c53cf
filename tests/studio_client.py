"""Requests to the studio without a network: an ASGI client, small data, and a browser that may reach this machine."""

import asyncio
import json
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np

from lmssc.datasets import make_multiview
from lmssc.io.files_to_label import read_files_to_label
from lmssc.io.options import Options
from lmssc.studio.server import StudioOptions, open_studio
from small_files import table_text

TOKEN, PORT = "the-token", 8765
HOST = f"127.0.0.1:{PORT}"


def write_samples(folder, n_samples=60, *, text=True):
    """A file of samples with two views' columns and a text; their true classes by id."""
    data = make_multiview(n_samples, n_views=2, n_features=[6, 5], random_state=3)
    truth = {f"s{i:03d}": "uvw"[code] for i, code in enumerate(data.target)}
    header = ["id", *(f"a{i}" for i in range(6)), *(f"b{i}" for i in range(5)), *(["body"] if text else [])]
    rows = [
        [key, *np.hstack([data.views[0][i], data.views[1][i]]).round(4), *([f"note on {key}"] if text else [])]
        for i, key in enumerate(truth)
    ]
    (folder / "samples.csv").write_text(table_text(header, rows))
    return folder / "samples.csv", truth


def make_studio(path, out, *, labels=(), background=False, **options):
    """A studio of the files in `path`, with a known token."""
    reading = Options(drop=["body"] if "body" in path.read_text().splitlines()[0] else [])
    data = read_files_to_label([str(path)], [str(one) for one in labels], reading)
    return open_studio(data, StudioOptions(out=out, port=PORT, token=TOKEN, **options), background=background)


def request(app, method, path, *, query=None, body=None, headers=None, token=TOKEN, chunks=None, pause=0):
    """Send one request; return its status, headers, content, and how much of the body was taken."""
    given = {"host": HOST} | ({"authorization": f"Bearer {token}"} if token else {})
    if body is not None or chunks is not None:
        given["content-type"] = "application/json"
    given |= headers or {}
    if chunks is None:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        given.setdefault("content-length", str(len(content)))
        chunks = iter([content])
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": (query if isinstance(query, str) else urlencode(query or {})).encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value is not None],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", PORT),
    }
    sent, taken, ended = [], 0, False

    async def receive():
        nonlocal taken, ended
        if ended:
            await asyncio.sleep(3600)  # the client waits for the answer
        await asyncio.sleep(pause)
        chunk = next(chunks, None)
        if chunk is None:
            ended = True
            return {"type": "http.request", "body": b"", "more_body": False}
        taken += len(chunk)
        return {"type": "http.request", "body": chunk, "more_body": True}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start = sent[0]
    content = b"".join(message.get("body", b"") for message in sent[1:])
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return SimpleNamespace(status=start["status"], headers=headers, content=content, taken=taken)


def get(app, path, **query):
    """JSON of a GET request that must succeed."""
    found = request(app, "GET", path, query=query)
    assert found.status == 200, found.content
    return json.loads(found.content)


def post(app, path, body):
    """JSON of a POST request that must succeed."""
    found = request(app, "POST", path, body=body)
    assert found.status in (200, 201), found.content
    return json.loads(found.content)
