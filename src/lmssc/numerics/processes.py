"""Worker processes that do not outlive the process that started them."""

import os
import threading
import time
from functools import cache


def end_with(parent: int) -> None:
    """End this process soon after `parent`, if it is a child of that one.

    A parent may be killed while a worker waits for the rest of a message from it, and the worker would wait for ever.

    Parameters
    ----------
    parent : int
        Number of the process that this one works for.

    Examples
    --------
    >>> end_with(os.getpid())  # not a worker: nothing happens
    """
    if os.getppid() == parent:  # a worker on another machine has a parent of its own
        _watch(parent)


@cache
def _watch(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
