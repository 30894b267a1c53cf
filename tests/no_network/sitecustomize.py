"""No network in the tests: whoever imports this module cannot reach beyond this machine.

The root conftest.py imports it, and puts its folder on PYTHONPATH: every Python that a test starts imports a module of
this name first of all, so that it has no network either.
"""

import sys
from typing import Any

# Audit events of the socket module, and which of their arguments is the address or the name of a host.
EVENTS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise an error if the event, as Python's audit hooks get it, is about another machine."""
    if event not in EVENTS:
        return
    address = arguments[EVENTS[event]]
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        if not isinstance(address, tuple):  # a path, of AF_UNIX; None where the socket is connected already
            return
        address = address[0]
    host = address.decode() if isinstance(address, bytes) else address
    if host in (None, "", "localhost", "::1") or host.startswith("127."):
        return
    # No OSError: code that is made for a bad network must not take it for one.
    raise RuntimeError(
        f"tests run without a network, but this one asks for {host!r}: make up its data, serve them from 127.0.0.1, or "
        "take a file of the paper's data from the fixture paper_file"
    )


sys.addaudithook(refuse)
