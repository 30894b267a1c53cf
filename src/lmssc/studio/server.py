"""Start the studio: a server on this machine that prints its address and opens the browser."""

import os
import socket
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lmssc._optional import import_optional
from lmssc.estimators.lmssc import LMSSC
from lmssc.io.errors import CommandError, InputFileError
from lmssc.io.files_to_label import FilesToLabel
from lmssc.io.media import SampleViewer, Show
from lmssc.io.outputs import labels_table
from lmssc.persistence.atomic import open_atomically
from lmssc.studio.answer_store import AnswerStore, StoreError
from lmssc.studio.engine import Engine
from lmssc.studio.label_exchange import CSV, FORMATS, read_answers
from lmssc.studio.names import check_label
from lmssc.studio.security import Access, is_loopback
from lmssc.studio.session import Session

if TYPE_CHECKING:
    from lmssc.studio.security import Guard

IMPORTED = "imported"
_OPENER = """<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><title>lmssc label</title><a href="{address}">Open the studio</a>
"""


@dataclass(frozen=True)
class StudioOptions:
    """How to run the studio.

    Attributes
    ----------
    out : Path
        Folder of the answers.
    shows : sequence of str
        ``--show`` options.
    classes : sequence of str
        Classes known beforehand.
    annotators : sequence of str
        Who may answer; anyone if there are none.
    imports : sequence of Path
        Files of answers from elsewhere.
    host, port : str, int
        Where to listen; port 0 takes any that is free.
    token : str, optional
        The token; a new one by default.
    impute : str or None
        How blank cells are filled in.
    """

    out: Path
    shows: Sequence[str] = ()
    classes: Sequence[str] = ()
    annotators: Sequence[str] = ()
    imports: Sequence[Path] = ()
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    impute: str | None = "median"


@dataclass
class Studio:
    """A session with its web application, ready to be served.

    Attributes
    ----------
    session : Session
        The session.
    access : Access
        Who may use it.
    app : ASGI application
        Serves it.
    """

    session: Session
    access: Access
    app: "Guard"
    data: FilesToLabel = field(repr=False)

    def export(self) -> bytes:
        """The labels so far as labels.csv."""
        joined = self.data.joined
        return labels_table(self.session.labels(), self.session.ids, by_id=joined.by_id, id_column=joined.id_column)

    def close(self) -> bool:
        """Stop fitting, write labels.csv into the folder, and close the file of answers.

        Returns
        -------
        bool
            Whether the fits in the background have ended.
        """
        ended = self.session.engine.close()
        with open_atomically(self.session.store.path.with_name(FORMATS[CSV])) as file:
            file.write(self.export())
        self.session.store.close()
        return ended


def open_studio(data: FilesToLabel, options: StudioOptions, *, background: bool = True) -> Studio:
    """Prepare a session: read what is there already, and make the first graph.

    Parameters
    ----------
    data : FilesToLabel
        The samples.
    options : StudioOptions
        How to run it.
    background : bool
        Whether a thread fits while the user labels.

    Returns
    -------
    Studio
    """
    import_optional("starlette", purpose="the studio", extra="studio")
    from lmssc.studio.api import make_app

    ids = [_storable(key) for key in data.joined.ids.tolist()]
    shows = [Show.parse(text, data.cells) for text in options.shows]
    given = {key: str(label) for key, label in zip(ids, data.labels.tolist(), strict=True) if label is not None}
    try:
        store = AnswerStore(options.out)
    except StoreError as error:
        raise CommandError(error) from error
    try:
        store.add_classes(check_label(name) for name in options.classes)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        for path in options.imports:
            store.add_imported(read_answers(path, dict.fromkeys(ids), IMPORTED, now))
        engine = Engine(
            data.views,
            data.joined.sparse_masks,
            estimator=LMSSC(scaling=data.scaling, impute=options.impute),
            background=background,
        )
        session = Session(ids, engine, store, SampleViewer(data.cells, ids, shows), given, options.annotators)
    except BaseException:
        store.close()
        raise
    access = Access(host=options.host, port=options.port, **({} if options.token is None else {"token": options.token}))
    app = make_app(session, access, by_id=data.joined.by_id, id_column=data.joined.id_column)
    return Studio(session, access, app, data)


def _storable(key: str) -> str:
    """An id, or an error if it has no encoding and so cannot be stored."""
    try:
        key.encode()
    except UnicodeError as error:
        raise InputFileError(f"the id {key!r} has a character that cannot be stored") from error
    return key


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; raises `CommandError` if the port is taken or the address is not of this machine."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise CommandError(f"cannot listen on {host}, port {port}: {error.strerror}; choose another --port") from error


def check_host(host: str, *, allowed: bool) -> None:
    """Refuse to listen where others can reach the server, unless that was allowed."""
    if not is_loopback(host) and not allowed:
        raise CommandError(
            f"--host {host} lets other machines reach the studio: add --i-know-it-is-public if that is wanted (they "
            "still need the token)"
        )


def serve(studio: Studio, listening: socket.socket) -> None:
    """Serve until the process is told to stop.

    Parameters
    ----------
    studio : Studio
        What to serve.
    listening : socket
        Where, from `listen`.
    """
    uvicorn = import_optional("uvicorn", purpose="the studio", extra="studio")
    from lmssc.studio.connection import PromptConnection

    config = uvicorn.Config(
        studio.app,
        http=PromptConnection,
        ws="none",
        log_level="error",  # requests that are refused are no news
        access_log=False,  # it would print the token
        server_header=False,
        date_header=False,
        limit_concurrency=100,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=65_536,
    )
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def opened_browser(access: Access, folder: Path, *, wanted: bool) -> Iterator[None]:
    """Open the page in the browser.

    The browser is given a file that only its owner can read, which leads to the page: every user of the machine could
    see an address on a command line.
    """
    if not wanted:
        yield
        return
    path = folder / f"open-{os.getpid()}.html"
    try:
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_OPENER.format(address=access.address))
        webbrowser.open(path.resolve().as_uri())
        yield
    finally:
        path.unlink(missing_ok=True)
