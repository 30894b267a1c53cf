"""Where the parts of a fit live, and how they talk: the interface, and an executor that keeps all parts in memory.

The algorithm knows no more about parts than this. It calls `map` for work that each part does alone, adds up the small
results (`total`), and calls `exchange` where parts need rows of each other: halos, neighbour candidates, edges. What a
part computes stays with it, by name. So an executor may keep parts in memory, on disk or on other machines.

Rules that make this possible:

- Functions are at the top level of a module, so that they can be sent elsewhere, and so are their arguments: numbers,
  arrays, and small frozen objects.
- A function reads `part["name"]` and assigns `part["name"] = array`. It never changes a stored array in place: an
  executor that keeps parts on disk would lose the change.
- What functions return goes to the caller of `map`, so it is small: sums over samples, or a few rows.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.parts.file_store import FileStore, Value

Result = TypeVar("Result")
Message = Sequence[NDArray]
"""What one part sends to another: some arrays."""
Send = Callable[..., Mapping[int, Message]]
"""A function that makes the messages of a part to others, by their numbers."""
Each = Sequence[Any] | None
"""An argument for each part alone, if there is one."""


@dataclass
class Part:
    """Consecutive samples of a fit, in its order, and everything that is known about them.

    Attributes
    ----------
    number : int
        Number of the part.
    start, stop : int
        First sample, and the one after the last.
    store : mutable mapping of str to ndarray or csr_array
        Arrays by name; rows are the samples of the part.

    Examples
    --------
    >>> part = Part(0, 10, 12)
    >>> part["latent"] = np.ones((2, 3))
    >>> "latent" in part, len(part)
    (True, 2)
    """

    number: int
    start: int
    stop: int
    store: MutableMapping[str, Value] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, name: str) -> Any:
        return self.store[name]

    def get(self, name: str) -> Any:
        """The array of this name; None if there is none."""
        return self.store.get(name)

    def __setitem__(self, name: str, value: Value) -> None:
        self.store[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self.store

    def __delitem__(self, name: str) -> None:
        del self.store[name]


class Executor(Protocol):
    """Runs functions on all parts, and carries messages between them.

    Attributes
    ----------
    bounds : ndarray of int of shape (n_parts + 1,)
        Part p has the samples from `bounds[p]` to before `bounds[p + 1]`.
    shared : str or None
        Folder in which the parts leave results with a row for each sample; None if these come to the caller.
    """

    bounds: NDArray
    shared: str | None

    def map(self, function: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`function(part, *shared)` of all parts, in their order; with `each`, `function(part, *shared, each[p])`."""

    def exchange(self, send: Send, receive: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`receive(part, messages, *shared)` of all parts, after `send(part, *shared)` of all parts.

        `send` returns the message for each other part, by its number, and `receive` is given those that were sent to
        the part, by the number of the sender, in ascending order. With `each`, both get `each[p]` as the last argument.
        """

    def save(self, folder: str) -> None:
        """Write all arrays of all parts to a folder that does not exist yet."""

    def restore(self, folder: str) -> None:
        """Replace all arrays of all parts by those that `save` wrote."""

    def mark(self) -> None:
        """Remember the arrays of all parts as they are now."""

    def rollback(self) -> None:
        """Go back to the last `mark`."""

    def close(self) -> None:
        """Forget all parts."""


class InMemoryExecutor:
    """Keeps all parts in memory and runs them one after another.

    Parameters
    ----------
    bounds : ndarray of int of shape (n_parts + 1,)
        Part p has the samples from `bounds[p]` to before `bounds[p + 1]`.

    Examples
    --------
    >>> executor = InMemoryExecutor(np.array([0, 2, 5]))
    >>> executor.map(len), total(executor.map(len))
    ([2, 3], 5)
    """

    shared: str | None = None

    def __init__(self, bounds: NDArray) -> None:
        self.bounds = bounds
        self.parts = [Part(p, int(first), int(end)) for p, (first, end) in enumerate(pairwise(bounds))]
        self._marked: list[dict[str, Value]] = []

    def map(self, function: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`function(part, *shared)` of all parts."""
        return [function(part, *arguments) for part, arguments in with_own(self.parts, shared, each)]

    def exchange(self, send: Send, receive: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`receive(part, messages, *shared)` of all parts, after `send(part, *shared)` of all parts."""
        sent = self.map(send, *shared, each=each)
        return [
            receive(part, {q: sent[q][part.number] for q in range(len(sent)) if part.number in sent[q]}, *arguments)
            for part, arguments in with_own(self.parts, shared, each)
        ]

    def save(self, folder: str) -> None:
        """Write all arrays of all parts to a folder that does not exist yet."""
        for part in self.parts:
            with TemporaryDirectory() as temporary:
                store = FileStore(temporary)
                store.update(part.store)
                store.save(f"{folder}/{part.number}")

    def restore(self, folder: str) -> None:
        """Replace all arrays of all parts by those that `save` wrote."""
        for part in self.parts:
            with TemporaryDirectory() as temporary:
                store = FileStore(temporary)
                store.restore(f"{folder}/{part.number}")
                part.store = dict(store.items())

    def mark(self) -> None:
        """Remember the arrays of all parts as they are now: functions never change an array in place."""
        self._marked = [dict(part.store) for part in self.parts]

    def rollback(self) -> None:
        """Go back to the last `mark`."""
        for part, store in zip(self.parts, self._marked, strict=True):
            part.store = dict(store)

    def close(self) -> None:
        """Forget all parts."""
        self.parts, self._marked = [], []


def with_own(parts: Sequence[Part], shared: Sequence[Any], each: Each) -> Iterable[tuple[Part, Sequence[Any]]]:
    """Each part, and the arguments of a function that is called with it."""
    return ((part, shared if each is None else (*shared, each[part.number])) for part in parts)


def total(results: Sequence[Any]) -> Any:
    """Sum over the parts of numbers, arrays, or tuples of these.

    Examples
    --------
    >>> total([(1, np.ones(2)), (2, np.ones(2))])
    (3, array([2., 2.]))
    """
    if isinstance(results[0], tuple | list):
        return tuple(total(column) for column in zip(*results, strict=True))
    return reduce(np.add, results) if isinstance(results[0], np.ndarray) else sum(results)


def gather(executor: Executor, name: str, rows: NDArray) -> Any:
    """Some rows of an array that the parts share, in the order of `rows`.

    Examples
    --------
    >>> executor = InMemoryExecutor(np.array([0, 2, 5]))
    >>> for part in executor.parts:
    ...     part["number"] = np.arange(part.start, part.stop)
    >>> gather(executor, "number", np.array([4, 0, 3]))
    array([4, 0, 3])
    """
    return collect(executor, take_rows, rows, name)


def collect(executor: Executor, function: Callable[..., Any], rows: NDArray, *shared: Any) -> Any:
    """Rows that `function(part, *shared, local_rows)` makes of some samples of each part, in the order of `rows`."""
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], executor.bounds)
    each = [
        rows[order[first:end]] - start for (first, end), start in zip(pairwise(ends), executor.bounds[:-1], strict=True)
    ]
    found = executor.map(function, *shared, each=each)
    back = np.argsort(order, kind="stable")
    if sparse.issparse(found[0]):
        return sparse.vstack(found, format="csr")[back]
    return np.concatenate(found)[back]


def take_rows(part: Part, name: str, rows: NDArray) -> Any:
    """Some rows of an array of a part."""
    return part[name][rows]


def forget(part: Part, names: Iterable[str]) -> None:
    """Drop some arrays of a part, as far as it has them."""
    for name in names:
        if name in part:
            del part[name]
