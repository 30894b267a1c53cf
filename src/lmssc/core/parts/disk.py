"""Parts that live in files: one is in memory at a time."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lmssc.core.parts.executor import Each, Message, Part, Result, Send, with_own
from lmssc.core.parts.file_store import FileStore, StoredArray
from lmssc.data.file_lock import LockedFolder


class DiskExecutor:
    """Keeps all parts in files of a temporary folder, and reads one part at a time.

    Parameters
    ----------
    bounds : ndarray of int of shape (n_parts + 1,)
        Part p has the samples from `bounds[p]` to before `bounds[p + 1]`.
    folder : str, optional
        Where to make the temporary folder; by default where the system has them.

    Examples
    --------
    >>> import numpy as np
    >>> executor = DiskExecutor(np.array([0, 2, 5]))
    >>> executor.map(len)
    [2, 3]
    >>> executor.close()
    """

    shared: str | None = None

    def __init__(self, bounds: NDArray, folder: str | None = None) -> None:
        self.bounds = bounds
        self._folder = LockedFolder("lmssc-parts-", folder)
        self.folder = Path(self._folder.path)
        self._mail = self.folder / "mail"
        self._mail.mkdir()
        self._stores = [FileStore(self.folder / str(p)) for p in range(len(bounds) - 1)]
        self.parts = [Part(p, int(first), int(end), self._stores[p]) for p, (first, end) in enumerate(pairwise(bounds))]

    def map(self, function: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`function(part, *shared)` of all parts."""
        return [self._run(function, part, arguments) for part, arguments in with_own(self.parts, shared, each)]

    def _run(self, function: Callable[..., Result], part: Part, arguments: Sequence[Any]) -> Result:
        try:
            return function(part, *arguments)
        finally:
            self._stores[part.number].forget()

    def exchange(self, send: Send, receive: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`receive(part, messages, *shared)` of all parts, after `send(part, *shared)` of all parts."""
        sent: list[dict[int, list[StoredArray]]] = []
        try:
            for part, arguments in with_own(self.parts, shared, each):
                messages = self._run(send, part, arguments)
                sent.append({target: self._post(part.number, target, message) for target, message in messages.items()})
            return [
                self._run(receive, part, (_received(sent, part.number), *arguments))
                for part, arguments in with_own(self.parts, shared, each)
            ]
        finally:
            for path in self._mail.iterdir():
                path.unlink()

    def _post(self, source: int, target: int, message: Message) -> list[StoredArray]:
        """Write a message to files, if it is large."""
        return [StoredArray.of(array, str(self._mail / f"{source}-{target}-{i}")) for i, array in enumerate(message)]

    def save(self, folder: str) -> None:
        """Write all arrays of all parts to a folder that does not exist yet."""
        for part in self.parts:
            self._stores[part.number].save(Path(folder) / str(part.number))

    def restore(self, folder: str) -> None:
        """Replace all arrays of all parts by those that `save` wrote."""
        for store, part in zip(self._stores, self.parts, strict=True):
            store.restore(Path(folder) / str(part.number))

    def mark(self) -> None:
        """Remember the arrays of all parts as they are now: files are written once, and never changed."""
        for store in self._stores:
            store.mark()

    def rollback(self) -> None:
        """Go back to the last `mark`."""
        for store in self._stores:
            store.rollback()

    def close(self) -> None:
        """Delete the temporary folder."""
        self._folder.close()


def _received(sent: Sequence[Mapping[int, Sequence[StoredArray]]], number: int) -> dict[int, Message]:
    """The messages to a part, read into memory."""
    return {
        source: [array.read() for array in messages[number]]
        for source, messages in enumerate(sent)
        if number in messages
    }
