"""Nobody else gets in: the token, the Host and Origin of each request, its size, and the headers of each answer.

The studio has no password and no account. Whoever has the token may label. All requests need it, also those for the
page. The Host must be this machine, so that a name that an attacker points here (DNS rebinding) is refused; the Origin,
if a browser sends one, must be the page itself. There is no CORS. Bodies are cut off at a limit of size and time while
they arrive.
"""

import asyncio
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 8 * 1024 * 1024
# Seconds for a body to arrive.
BODY_SECONDS = 30.0
# Programs that can send neither a header nor a query (the webhooks of Label Studio) have the token in the path.
_TOKEN_IN_PATH = re.compile(r"/t/([^/]+)(/.*)")

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MEDIA_POLICY = "default-src 'none'; sandbox"
_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


def make_token() -> str:
    """A token that cannot be guessed: 256 random bits."""
    return secrets.token_urlsafe(32)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.1.4", "example.org")]
    [True, True, True, False, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Access:
    """Who may send requests.

    Attributes
    ----------
    token : str
        What each request has to bring.
    host : str
        Address that the server listens on.
    port : int
        Its port.
    """

    token: str = field(default_factory=make_token, repr=False)
    host: str = "127.0.0.1"
    port: int = 8765

    @property
    def address(self) -> str:
        """Where a browser finds the page, token included."""
        return f"{self.base}/?token={self.token}"

    @property
    def base(self) -> str:
        """Address of the server, without a path."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def allows_host(self, header: str) -> bool:
        """Whether the Host of a request names this machine.

        Beyond the loopback address any literal address and the machine's own name are allowed, but no other name.

        Examples
        --------
        >>> access = Access("secret", port=8765)
        >>> hosts = "127.0.0.1:8765", "localhost:8765", "evil.example:8765", "127.0.0.1"
        >>> [access.allows_host(host) for host in hosts]
        [True, True, False, False]
        """
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]@/]+)(?::([0-9]{1,5}))?", header)
        if match is None or int(match[2] or 80) != self.port:
            return False
        name = match[1].strip("[]").lower()
        if is_loopback(self.host):
            return name in ("127.0.0.1", "localhost", "::1", self.host)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in ("localhost", self.host.lower(), socket.gethostname().lower())
        return True

    def allows_origin(self, header: str, host: str) -> bool:
        """Whether the Origin of a request is the page that this server sent.

        Examples
        --------
        >>> access = Access("secret", port=8765)
        >>> [access.allows_origin(origin, "127.0.0.1:8765") for origin in ("http://127.0.0.1:8765", "null")]
        [True, False]
        """
        return header == f"http://{host}" and self.allows_host(host)

    def allows_token(self, given: str | None) -> bool:
        """Whether this is the token; takes the same time whatever is wrong with it."""
        return given is not None and hmac.compare_digest(given.encode(errors="replace"), self.token.encode())


class Guard:
    """Refuses, before anything else sees it, each request that `Access` does not allow.

    Parameters
    ----------
    app : ASGI application
        Gets the requests that are allowed.
    access : Access
        Who may send them.
    """

    def __init__(self, app: App, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        send = _with_headers(send)
        scope = dict(scope)
        refused = self._refusal(scope)
        if refused is not None:
            await _answer(send, *refused)
            return
        try:
            body = await asyncio.wait_for(_read_body(receive), BODY_SECONDS) if scope["method"] == "POST" else b""
        except TimeoutError:
            await _answer(send, 408, f"the body did not arrive in {BODY_SECONDS:.0f} seconds")
            return
        if body is None:
            await _answer(send, 413, f"the body is larger than {MAX_BODY} bytes")
            return
        await self._app(scope, _replay(body, receive), send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason to refuse a request; None to allow it. A token in the path is taken out of it."""
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in (b"host", b"origin", b"authorization", b"content-length") and name in headers:
                return 400, f"the header {name.decode()} is there twice"
            headers[name] = value
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._access.allows_host(host):
            return 403, "this Host is not this machine"
        origin = headers.get(b"origin")
        if origin is not None and not self._access.allows_origin(origin.decode("latin-1"), host):
            return 403, "requests of other pages are refused"
        if headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site") and scope["method"] != "GET":
            return 403, "requests of other pages are refused"
        if not self._access.allows_token(_token(scope, headers)):
            return 401, "the token is missing or wrong: use the address that 'lmssc label' printed"
        try:
            length = int(headers.get(b"content-length", b"0"))
        except ValueError:
            return 400, "Content-Length is not a number"
        if length > MAX_BODY:
            return 413, f"the body is larger than {MAX_BODY} bytes"
        if scope["method"] == "POST" and not headers.get(b"content-type", b"").startswith(b"application/json"):
            return 415, "the body must be application/json"
        return None


def _token(scope: Scope, headers: dict[bytes, bytes]) -> str | None:
    """The token of a request: in the header, the query or the path."""
    scheme, _, value = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    match = _TOKEN_IN_PATH.fullmatch(scope["path"])
    if match is not None:
        scope["path"], scope["raw_path"] = match[2], match[2].encode()
        return match[1]
    given = [value for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name == "token"]
    return given[0] if len(given) == 1 else None


def _with_headers(send: Send) -> Send:
    """Add to each response the headers that it does not set itself."""

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            there = {name.lower() for name, _ in headers}
            headers += [
                (name.lower().encode(), value.encode())
                for name, value in _HEADERS.items()
                if name.lower().encode() not in there
            ]
            message = {**message, "headers": headers}
        await send(message)

    return sending


async def _answer(send: Send, status: int, text: str) -> None:
    """A refusal: one line of text, after which the connection is closed."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": (text + "\n").encode()})


async def _read_body(receive: Receive) -> bytes | None:
    """The body, which may not say beforehand how long it is; None once it is too large."""
    parts, size = [], 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give the application the body that was read, then whatever comes."""
    given = False

    async def replaying() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replaying
