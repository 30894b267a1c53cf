"""One connection to the studio: whoever opens it and then sends no request is not waited for."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""Seconds for a connection to send the head of its next request."""


class PromptConnection(H11Protocol):
    """A connection that is closed if the head of a request does not arrive in time.

    The server takes a limited number of connections. Without this, someone without the token could hold all of them
    with half a request each. uvicorn documents neither `cycle`, the request under way, nor `on_response_complete`; with
    a release that lacks one of them, connections have no time limit.
    """

    _deadline: asyncio.TimerHandle | None = None
    _has_limit = False

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._has_limit = hasattr(self, "cycle") and hasattr(H11Protocol, "on_response_complete")
        self._wait(transport)

    def data_received(self, data: bytes) -> None:
        """Stop waiting once a request has begun."""
        before = self._request()
        super().data_received(data)
        if self._request() is not before:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there already."""
        before = self._request()
        super().on_response_complete()
        if self._request() is before:
            self._wait(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _request(self) -> Any:
        return getattr(self, "cycle", None)

    def _wait(self, transport: Any) -> None:
        self._stop_waiting()
        if self._has_limit and not transport.is_closing():
            self._deadline = asyncio.get_running_loop().call_later(REQUEST_SECONDS, transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
