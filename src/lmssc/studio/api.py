"""The JSON API of the studio, on which its page is built, and the routes of everything that it serves."""

import json
import sqlite3
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from lmssc.io.media import MEDIA_TEXT_TYPES
from lmssc.io.outputs import labels_table
from lmssc.report.rendering import source
from lmssc.studio import label_studio
from lmssc.studio.label_exchange import ARGILLA, CSV, FORMATS, LABEL_STUDIO, export_argilla, export_label_studio
from lmssc.studio.names import RequestError
from lmssc.studio.security import MEDIA_POLICY, Access, Guard
from lmssc.studio.session import INFORMATIVE, Session

DEFAULT_ANNOTATOR = "me"
PAGE_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_EXPORT_TYPES = {CSV: "text/csv", LABEL_STUDIO: "application/json", ARGILLA: "application/x-ndjson"}


def make_app(session: Session, access: Access, *, by_id: bool = True, id_column: str | None = None) -> Guard:
    """The web application of a session; every request passes the guard first.

    Parameters
    ----------
    session : Session
        What it is about.
    access : Access
        Who may use it.
    by_id : bool
        Whether the files have ids, for the export.
    id_column : str, optional
        Name of the id column in the files.

    Returns
    -------
    ASGI application
    """
    api = _Api(session, access, by_id, id_column)
    routes = [
        Route("/", api.page),
        Route("/page/{name}", api.asset),
        Route("/media/{number:int}", api.media),
        Route("/api/state", _answering(api.state)),
        Route("/api/next", _answering(api.next)),
        Route("/api/list", _answering(api.list)),
        Route("/api/map", _answering(api.map)),
        Route("/api/label", _taking(api.label), methods=["POST"]),
        Route("/api/undo", _taking(api.undo), methods=["POST"]),
        Route("/api/export", api.export),
        Route("/health", _answering(lambda query: label_studio.health())),
        Route("/setup", _taking(lambda body: label_studio.setup(session)), methods=["POST"]),
        Route("/predict", _taking(api.predict), methods=["POST"]),
        Route("/webhook", _taking(partial(label_studio.webhook, session), 201), methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes), access)


class _Api:
    def __init__(self, session: Session, access: Access, by_id: bool, id_column: str | None) -> None:
        self._session, self._access = session, access
        self._by_id, self._id_column = by_id, id_column
        self._pages = {
            file.name: file.read_bytes() for file in resources.files("lmssc.studio").joinpath("page").iterdir()
        }
        self._pages["sample_map.js"] = source("sample_map.js").encode()  # the map of the report

    # ---- the page

    async def page(self, request: Request) -> Response:
        html = self._pages["studio.html"].replace(b"{{ token }}", self._access.token.encode())
        return Response(html, media_type="text/html")

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        media_type = PAGE_TYPES.get("." + name.rpartition(".")[2])
        if name not in self._pages or media_type is None or name.endswith(".html"):
            return JSONResponse({"error": "there is no such file"}, 404)
        return Response(self._pages[name], media_type=media_type)

    async def media(self, request: Request) -> Response:
        row = self._session.rows.get(request.query_params.get("id", ""))
        number = request.path_params["number"]
        found = None if row is None else await run_in_threadpool(self._session.viewer.find, number, row)
        if found is None or found.media_type in MEDIA_TEXT_TYPES:
            return JSONResponse({"error": "there is no such file"}, 404)
        headers = {"Content-Security-Policy": MEDIA_POLICY, "Content-Disposition": "inline"}
        return FileResponse(found.path, media_type=found.media_type, headers=headers)

    # ---- the API

    def state(self, query: dict[str, str]) -> dict[str, Any]:
        return self._session.state()

    def next(self, query: dict[str, str]) -> dict[str, Any]:
        return self._session.next(_annotator(query), query.get("list", INFORMATIVE), query.get("id"))

    def list(self, query: dict[str, str]) -> dict[str, Any]:
        which = query.get("list", INFORMATIVE)
        return {"list": which, "samples": self._session.listed(which, _annotator(query))}

    def map(self, query: dict[str, str]) -> dict[str, Any]:
        since = query.get("since", "0")
        if not since.isdecimal() or len(since) > 9:
            raise RequestError("since must be a number")
        return self._session.map(int(since))

    def label(self, body: dict[str, Any]) -> dict[str, Any]:
        _only(body, {"id", "label", "annotator", "kind"})
        sample, kind = _text(body, "id"), body.get("kind", "label")
        if kind == "label":
            return self._session.label(sample, _text(body, "label"), _annotator(body))
        if kind not in ("skip", "none"):
            raise RequestError(f"kind must be label, skip or none, got {kind!r}")
        take = self._session.skip if kind == "skip" else self._session.none_of_these
        return take(sample, _annotator(body))

    def undo(self, body: dict[str, Any]) -> dict[str, Any]:
        _only(body, {"annotator", "number"})
        number = body.get("number")
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or abs(number) > 2**62):
            raise RequestError("number must be that of an answer")
        return self._session.undo(_annotator(body), number)

    def predict(self, body: dict[str, Any]) -> dict[str, Any]:
        tasks, config = body.get("tasks", []), body.get("label_config") or ""
        if (
            not isinstance(tasks, list)
            or not all(isinstance(task, dict) for task in tasks)
            or not isinstance(config, str)
        ):
            raise RequestError("tasks must be a list of tasks, and label_config text")
        return label_studio.predict(self._session, tasks, config)

    async def export(self, request: Request) -> Response:
        which = request.query_params.get("format", CSV)
        if which not in FORMATS:
            return JSONResponse({"error": f"format must be one of {', '.join(FORMATS)}, got {which!r}"}, 400)
        content = await run_in_threadpool(self._export, which)
        headers = {"Content-Disposition": f'attachment; filename="{FORMATS[which]}"'}
        return Response(content, media_type=_EXPORT_TYPES[which], headers=headers)

    def _export(self, which: str) -> bytes:
        session = self._session
        if which == CSV:
            return labels_table(session.labels(), session.ids, by_id=self._by_id, id_column=self._id_column)
        answers = session.store.standing()
        texts = {answer.sample: session.viewer.texts(session.rows[answer.sample]) for answer in answers}
        return (export_label_studio if which == LABEL_STUDIO else export_argilla)(answers, texts)


def _answering(find: Callable[[dict[str, str]], dict[str, Any]]) -> Callable[[Request], Any]:
    """A route that answers a query with JSON."""

    async def route(request: Request) -> Response:
        return await _json(find, dict(request.query_params))

    return route


def _taking(take: Callable[[dict[str, Any]], dict[str, Any]], status: int = 200) -> Callable[[Request], Any]:
    """A route that takes a JSON object and answers with another."""

    async def route(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError):
            return JSONResponse({"error": "the body is not JSON"}, 400)
        if not isinstance(body, dict):
            return JSONResponse({"error": "the body must be a JSON object"}, 400)
        return await _json(take, body, status)

    return route


async def _json(work: Callable[[Any], dict[str, Any]], given: Any, status: int = 200) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(work, given), status)
    except RequestError as error:
        return JSONResponse({"error": str(error)}, 400)
    except (AttributeError, TypeError, UnicodeError):  # parts of the body that are not what they should be
        return JSONResponse({"error": "a part of the request has the wrong type"}, 400)
    except sqlite3.Error as error:
        return JSONResponse({"error": f"the answer could not be saved: {error}"}, 507)


def _annotator(given: dict[str, Any]) -> str:
    return _text(given, "annotator") if given.get("annotator") is not None else DEFAULT_ANNOTATOR


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise RequestError(f"{name} must be text")
    return value


def _only(body: dict[str, Any], names: set[str]) -> None:
    """Refuse what is not understood: a misspelt name would otherwise be lost in silence."""
    unknown = sorted(set(body) - names)
    if unknown:
        raise RequestError(f"unknown: {', '.join(map(repr, unknown))}; known are {', '.join(sorted(names))}")
