"""Printing that works in any locale, and after the reader of a pipe has gone."""

import contextlib
import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from lmssc.persistence.atomic import readable


class Outlet:
    r"""A text stream that never raises.

    Characters that its encoding lacks are escaped. Once the reader has gone, output is dropped.

    Parameters
    ----------
    stream : text stream
        Destination.

    Attributes
    ----------
    error : OSError or None
        Why writing failed; None if it did not, or if the reader has gone.

    Examples
    --------
    >>> import io
    >>> ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    >>> print("Größe 5", file=Outlet(ascii_only), flush=True)
    >>> ascii_only.buffer.getvalue()
    b'Gr\\xf6\\xdfe 5\n'
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._closed = False
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text."""
        if not self._closed:
            encoding = getattr(self._stream, "encoding", None) or "utf-8"
            try:
                self._stream.write(readable(text).encode(encoding, "backslashreplace").decode(encoding))
            except OSError as error:
                self._close(error)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        if not self._closed:
            try:
                self._stream.flush()
            except OSError as error:
                self._close(error)

    def _close(self, error: OSError) -> None:
        self._closed = True
        self.error = None if error.errno == errno.EPIPE else error
        # Buffered text goes to /dev/null, or it would fail again at the end of the process.
        with contextlib.suppress(OSError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def safe_streams() -> Iterator[Outlet | None]:
    """Wrap stdout and stderr in `Outlet`; a stream that is closed from the start stays closed.

    Yields
    ------
    Outlet or None
        The new stdout.
    """
    out, err = (stream if stream is None else Outlet(stream) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            yield out
        finally:
            if out is not None:
                out.flush()


def print_json(data: Any) -> None:
    """Print data as JSON; characters beyond ASCII are escaped unless stdout is UTF-8.

    Parameters
    ----------
    data : object
        Anything that `json.dumps` accepts.

    Examples
    --------
    >>> print_json({"n": 1})
    {
      "n": 1
    }
    """
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    print(json.dumps(data, ensure_ascii=encoding != "utf8", indent=2))
