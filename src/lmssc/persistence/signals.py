"""Ctrl-C and termination signals: a command cleans up, then ends with the exit code of the signal."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
# Number of uninterrupted sections that are open, and the last signal that has not been raised yet.
_held = 0
_came: int | None = None


class Stopped(BaseException):
    """Raised when a signal asks the command to end.

    It is not a `KeyboardInterrupt`, because a fit stops at that one and returns the model so far.

    Examples
    --------
    >>> Stopped(signal.SIGTERM).exit_code
    143
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


def exit_code(error: BaseException) -> int:
    """Exit code of an interrupted command: 128 plus the number of the signal.

    Examples
    --------
    >>> exit_code(KeyboardInterrupt()), exit_code(Stopped(signal.SIGTERM))
    (130, 143)
    """
    return error.exit_code if isinstance(error, Stopped) else 128 + signal.SIGINT


@contextmanager
def stop_by_signals() -> Iterator[None]:
    """Raise `Stopped` when a signal asks the process to end; signals that are ignored (``nohup``) stay ignored."""
    global _came
    if threading.current_thread() is not threading.main_thread():  # only the main thread can handle signals
        yield
        return
    _came = None
    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    try:
        for number in before:
            signal.signal(number, _handle)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(number: int, frame: Any) -> None:
    global _came
    _came = number
    if not _held:
        raise Stopped(number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals until the end of a short section.

    Examples
    --------
    >>> with stop_by_signals():
    ...     try:
    ...         with uninterrupted():
    ...             signal.raise_signal(signal.SIGTERM)
    ...             print("done")
    ...     except Stopped as stopped:
    ...         print(stopped)
    done
    SIGTERM
    """
    global _held
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if not _held:
            raise_if_stopped()


@contextmanager
def until_stopped() -> Iterator[None]:
    """Let a signal end a section, after which the command goes on: that is how a server is stopped.

    Examples
    --------
    >>> with stop_by_signals():
    ...     with until_stopped():
    ...         signal.raise_signal(signal.SIGTERM)
    ...     with uninterrupted():
    ...         print("clean up")
    clean up
    """
    global _came
    try:
        yield
    except (KeyboardInterrupt, Stopped):
        _came = None


def raise_if_stopped() -> None:
    """Raise `Stopped` if a signal arrived but its exception was lost, for example in a destructor."""
    global _came
    if _came is not None:
        number, _came = _came, None
        raise Stopped(number)
