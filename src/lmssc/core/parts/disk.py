"""Parts that live in files: one is in memory at a time."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.core.parts.executor import Message, Part, Result, with_own
from lmssc.core.parts.store import FileStore


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
    >>> executor = DiskExecutor(np.array([0, 2, 5]))
    >>> executor.map(len)
    [2, 3]
    >>> executor.close()
    """

    def __init__(self, bounds: NDArray, folder: str | None = None) -> None:
        self.bounds = bounds
        self.folder = Path(tempfile.mkdtemp(prefix="lmssc-parts-", dir=folder))
        self.parts = [
            Part(p, int(first), int(end), FileStore(self.folder / str(p)))
            for p, (first, end) in enumerate(pairwise(bounds))
        ]

    def map(self, function: Callable[..., Result], *shared: Any, each: Sequence[Any] | None = None) -> list[Result]:
        """`function(part, *shared)` of all parts."""
        return [self._run(function, part, arguments) for part, arguments in with_own(self.parts, shared, each)]

    def _run(self, function: Callable[..., Result], part: Part, arguments: Sequence[Any]) -> Result:
        try:
            return function(part, *arguments)
        finally:
            part.store.forget()  # type: ignore[attr-defined]

    def exchange(
        self,
        send: Callable[..., Mapping[int, Message]],
        receive: Callable[..., Result],
        *shared: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Result]:
        """`receive(part, messages, *shared)` of all parts, after `send(part, *shared)` of all parts."""
        mail = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            for part, arguments in with_own(self.parts, shared, each):
                for target, message in self._run(send, part, arguments).items():
                    with open(mail / f"{part.number}-{target}", "wb") as file:
                        for array in message:
                            np.save(file, array, allow_pickle=False)
            return [
                self._run(receive, part, (self._received(mail, part.number), *arguments))
                for part, arguments in with_own(self.parts, shared, each)
            ]
        finally:
            shutil.rmtree(mail, ignore_errors=True)

    def _received(self, mail: Path, number: int) -> dict[int, Message]:
        """The messages to a part, each of them read at once."""
        found: dict[int, Message] = {}
        for source in range(len(self.parts)):
            path = mail / f"{source}-{number}"
            if path.exists():
                found[source] = _read_arrays(path)
        return found

    def save(self, folder: str) -> None:
        """Write all arrays of all parts to a folder that does not exist yet."""
        for part in self.parts:
            part.store.snapshot(Path(folder) / str(part.number))  # type: ignore[attr-defined]

    def restore(self, folder: str) -> None:
        """Replace all arrays of all parts by those that `save` wrote."""
        for part in self.parts:
            shutil.rmtree(part.store.folder)  # type: ignore[attr-defined]
            FileStore(Path(folder) / str(part.number)).snapshot(part.store.folder)  # type: ignore[attr-defined]

    def mark(self) -> None:
        """Remember the arrays of all parts as they are now: files are replaced, and never changed."""
        new, old = self.folder / "mark.new", self.folder / "mark"
        shutil.rmtree(new, ignore_errors=True)
        self.save(str(new))
        shutil.rmtree(old, ignore_errors=True)
        new.rename(old)

    def rollback(self) -> None:
        """Go back to the last `mark`."""
        self.restore(str(self.folder / "mark"))

    def close(self) -> None:
        """Delete the temporary folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _read_arrays(path: Path) -> list[NDArray]:
    """All arrays of a file, which `numpy.save` wrote one after another."""
    arrays, size = [], path.stat().st_size
    with open(path, "rb") as file:
        while file.tell() < size:
            arrays.append(np.load(file))
    return arrays
