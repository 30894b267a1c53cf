"""One connection to the studio: whoever opens it and then sends no request is not waited for."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""Seconds for a connection to send the head of its next request."""


class PromptConnection(H11Protocol):
    """A connection that is closed if the head of a request does not arrive in time.

    The server takes a limited number of connections. Without this, someone without the token could hold all of them
    with half a request each.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once a request has begun."""
        cycle = self.cycle
        super().data_received(data)
        if self.cycle is not cycle:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there already."""
        cycle = self.cycle
        super().on_response_complete()
        if self.cycle is cycle:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
