"""Worker processes that end when the process that started them ends."""

import os
import threading
import time
from functools import cache


def end_with(parent: int) -> None:
    """End this process soon after `parent` has ended, if it is a child of `parent`.

    Otherwise a worker whose parent is killed in the middle of a message would wait for the rest of it forever.

    Parameters
    ----------
    parent : int
        Process id of the parent.

    Examples
    --------
    >>> end_with(os.getpid())  # this process is not its own child: nothing happens
    """
    if os.getppid() == parent:  # a worker on another machine has another parent
        _watch(parent)


@cache
def _watch(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
