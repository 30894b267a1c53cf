"""In a worker of a Dask cluster: the parts of a fit that it holds, and the messages that come from other workers.

The parts are an actor: the driver calls its methods, and no task passes through the scheduler's queues. That takes a
quarter of the time that a task takes, and a fit has hundreds of rounds.
"""

import asyncio
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmssc._optional import import_optional
from lmssc.core.parts.executor import Message, Part
from lmssc.core.parts.file_store import FileStore, Value
from lmssc.numerics.parallel import threads

# Seconds between looks at whether a fit goes on, while its worker waits for messages.
POLL_SECONDS = 1.0
# The parts of each fit in this worker.
_HERE: dict[str, "WorkerParts"] = {}


class WorkerLostError(RuntimeError):
    """A worker died, and parts of the fit with it."""


def distributed() -> Any:
    """The module `distributed`."""
    return import_optional("distributed", purpose="clusters", extra="dask")


def parts_here() -> list[int]:
    """In a worker: the numbers of the parts that it holds.

    Examples
    --------
    >>> parts_here()
    []
    """
    return sorted(number for parts in _HERE.values() for number in parts.parts)


def end_fit(name: str) -> None:
    """In a worker: forget the parts of a fit, and do not wait for messages to them any more."""
    if name in _HERE:
        _HERE.pop(name).end()


@dataclass(frozen=True)
class Peer:
    """The parts of a fit in a worker, as other workers see them.

    Attributes
    ----------
    address : str
        Address of the worker.
    key : str
        Name of its actor.
    numbers : tuple of int
        Its parts.
    """

    address: str
    key: str
    numbers: tuple[int, ...]


class WorkerParts:
    """The parts of a fit in a worker: a Dask actor, of which one method runs at a time.

    Parameters
    ----------
    name : str
        Name of the fit.
    ends : mapping of int to (int, int)
        First sample of each part, and the one after the last, by the number of the part.
    in_files : bool
        Whether the arrays of the parts are in files of the worker's own folder, those of one part in memory at a time.
    """

    def __init__(self, name: str, ends: Mapping[int, tuple[int, int]], in_files: bool) -> None:
        self._worker = distributed().get_worker()
        self.parts: dict[int, Part] = {}
        for number, (start, stop) in sorted(ends.items()):
            store: MutableMapping[str, Value] = {}
            if in_files:
                store = FileStore(f"{self._worker.local_directory}/lmssc-{name}-{number}")
            self.parts[number] = Part(number, start, stop, store)
        self._marked: dict[int, dict[str, Value]] = {}
        self._came = threading.Condition()
        self._mail: dict[int, dict[str, Any]] = defaultdict(dict)
        self._ended = False
        _HERE[name] = self

    def run(self, function: Callable[..., Any], shared: Sequence[Any], each: Sequence[Any] | None) -> list[Any]:
        """`function(part, *shared)` of each part, on as many threads as the worker has; `each` is one more argument."""
        return [self._run(function, number, own) for number, own in self._arguments(shared, each)]

    def _arguments(self, shared: Sequence[Any], each: Sequence[Any] | None) -> list[tuple[int, Sequence[Any]]]:
        if self._ended:
            raise WorkerLostError("the parts of the fit are gone")
        return [(number, (*shared, *([] if each is None else [each[i]]))) for i, number in enumerate(self.parts)]

    def _run(self, function: Callable[..., Any], number: int, arguments: Sequence[Any]) -> Any:
        part = self.parts[number]
        with threads(self._worker.state.nthreads):
            try:
                return function(part, *arguments)
            finally:
                if isinstance(part.store, FileStore):
                    part.store.forget()

    def exchange(
        self,
        count: int,
        peers: Sequence[Peer],
        send: Callable[..., Mapping[int, Message]],
        receive: Callable[..., Any],
        shared: Sequence[Any],
        each: Sequence[Any] | None,
    ) -> list[tuple[Any, int]]:
        """What `receive` returns of each part, after `send` of all; and the bytes that came from other parts.

        Parameters
        ----------
        count : int
            Number of this exchange: a worker may be in the next already.
        peers : sequence of Peer
            All workers of the fit.
        send, receive, shared, each
            As for `Executor.exchange`, for the parts of this worker.
        """
        peers = [peer for peer in peers if peer.address != self._worker.address]
        arguments = self._arguments(shared, each)
        sent = {number: dict(self._run(send, number, own)) for number, own in arguments}
        if peers:
            self._deliver(count, peers, sent)
            for messages in self._wait(count, len(peers)).values():
                sent.update(messages)
        found = []
        for number, own in arguments:
            came = {source: sent[source][number] for source in sorted(sent) if number in sent[source]}
            size = sum(array.nbytes for source in came if source != number for array in came[source])
            found.append((self._run(receive, number, (came, *own)), size))
        return found

    def _deliver(self, count: int, peers: Sequence[Peer], sent: Mapping[int, Mapping[int, Message]]) -> None:
        """Give each other worker the messages to its parts, or tell it that there are none."""
        wrap = distributed().protocol.to_serialize

        async def deliver() -> None:
            calls = []
            for peer in peers:
                own = {
                    source: {number: messages[number] for number in peer.numbers if number in messages}
                    for source, messages in sent.items()
                }
                arguments = [wrap(count), wrap(self._worker.address), wrap(own)]
                execute = self._worker.rpc(peer.address).actor_execute
                calls.append(execute(function="take_mail", actor=peer.key, args=arguments, kwargs={}))
            for answer in await asyncio.gather(*calls):
                if answer["status"] != "OK":
                    raise answer["exception"]

        try:
            asyncio.run_coroutine_threadsafe(deliver(), self._worker.loop.asyncio_loop).result()
        except (OSError, KeyError) as error:  # the worker is gone, or a new one has its address
            raise WorkerLostError("a worker died while others sent messages to it") from error

    async def take_mail(self, count: int, source: str, messages: Mapping[int, Mapping[int, Message]]) -> None:
        """Take the messages of another worker; this never waits for what the worker computes."""
        with self._came:
            self._mail[count][source] = messages
            self._came.notify_all()

    def _wait(self, count: int, n_others: int) -> dict[str, Any]:
        """The messages of all other workers; an error if the fit ends before they are there."""
        with self._came:
            while len(self._mail[count]) < n_others:
                if self._ended or self not in self._worker.state.actors.values():
                    raise WorkerLostError("the fit ended while its worker waited for messages")
                self._came.wait(POLL_SECONDS)
            return self._mail.pop(count)

    def mark(self) -> list[tuple[int, int, int, int]]:
        """Remember the arrays of all parts; of each the halo rows, edges to others, all edges, halo rows of lists."""
        return [self._mark(part) for part in self.parts.values()]

    def _mark(self, part: Part) -> tuple[int, int, int, int]:
        if isinstance(part.store, FileStore):
            part.store.mark()
        else:
            self._marked[part.number] = dict(part.store)
        graph, listed = part["graph"], part.get("list_halo")
        cut = int(((graph.indices < part.start) | (graph.indices >= part.stop)).sum())
        found = len(part["edge_halo"]), cut, graph.nnz, 0 if listed is None else len(listed)
        if isinstance(part.store, FileStore):
            part.store.forget()
        return found

    def rollback(self) -> list[None]:
        """Go back to the last `mark`."""
        for number, part in self.parts.items():
            if isinstance(part.store, FileStore):
                part.store.rollback()
            else:
                part.store = dict(self._marked[number])
        return [None] * len(self.parts)

    def end(self) -> None:
        """Forget all parts."""
        with self._came:
            self._ended = True
            self._came.notify_all()
        for part in self.parts.values():
            if isinstance(part.store, FileStore):
                shutil.rmtree(part.store.folder, ignore_errors=True)
        self.parts, self._marked = {}, {}
