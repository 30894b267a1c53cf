"""Parts of a fit that live in the workers of a Dask cluster.

Each part is in the memory of one worker, by name, so that no task graph grows with the iterations. A call of `map` is
one task for each part, sent to its worker; what the tasks return is small. In `exchange`, messages go from worker to
worker. If a worker dies, its parts are gone: the executor raises a `WorkerLostError`, and `dask_fit` goes on from the
last checkpoint with the workers that are left.
"""

import asyncio
import logging
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.core.parts.executor import Each, Message, Part, Result, Send
from lmssc.core.parts.file_store import FileStore, Value
from lmssc.numerics.parallel import threads

LOGGER = logging.getLogger("lmssc.cluster")
# Seconds between looks at the workers while tasks run.
POLL_SECONDS = 1.0
# How long a fit waits for a worker if none is left.
NO_WORKER_SECONDS = 300
NO_WORKER = (
    "the cluster has no worker left. Start some and fit again: with checkpoint=..., the fit continues from its last "
    "checkpoint. A LocalCluster gives up on workers that take longer to start again than dask's setting "
    "distributed.deploy.lost-worker-timeout, 15 seconds by default"
)
# In a worker: its parts, their arrays at the last `mark`, and what they sent to themselves, by fit and number.
_PARTS: dict[tuple[str, int], Part] = {}
_MARKED: dict[tuple[str, int], dict[str, Value]] = {}
_KEPT: dict[tuple[str, int], Mapping[int, Message]] = {}


class WorkerLostError(RuntimeError):
    """A worker died, and parts of the fit with it."""


class SchedulerLostError(RuntimeError):
    """The scheduler does not answer any more."""


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
    return sorted(number for _, number in _PARTS)


def run_on_part(name: str, number: int, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """In a worker: `function` of one of its parts, on as many threads as the worker has."""
    if (name, number) not in _PARTS:
        raise WorkerLostError(f"part {number} is not in this worker: it was started again")
    part = _PARTS[name, number]
    with threads(distributed().get_worker().state.nthreads):
        try:
            return function(part, *arguments)
        finally:
            if isinstance(part.store, FileStore):
                part.store.forget()


def _create(name: str, number: int, start: int, stop: int, in_files: bool) -> None:
    store: MutableMapping[str, Value] = {}
    if in_files:
        store = FileStore(f"{distributed().get_worker().local_directory}/lmssc-{name}-{number}")
    _PARTS[name, number] = Part(number, start, stop, store)


def _forget(name: str) -> None:
    for key in [key for key in _PARTS if key[0] == name]:
        store = _PARTS.pop(key).store
        _MARKED.pop(key, None)
        _KEPT.pop(key, None)
        if isinstance(store, FileStore):
            shutil.rmtree(store.folder, ignore_errors=True)


def _send(name: str, number: int, function: Callable[..., Any], arguments: Sequence[Any]) -> dict[int, Message]:
    """In a worker: the messages of a part to others; that to itself stays."""
    messages = dict(run_on_part(name, number, function, arguments))
    _KEPT[name, number] = {number: messages.pop(number)} if number in messages else {}
    return messages


def _pick(sent: Mapping[int, Message], target: int) -> dict[int, Message]:
    """The message to one part, so that no other travels with it."""
    return {target: sent[target]} if target in sent else {}


def _receive(
    name: str,
    number: int,
    function: Callable[..., Any],
    sent: Sequence[Mapping[int, Message]],
    arguments: Sequence[Any],
) -> tuple[Any, int]:
    """In a worker: what `function` returns, and the bytes of the messages that came from other parts."""
    found = {source: messages[number] for source, messages in enumerate(sent) if number in messages}
    size = sum(array.nbytes for message in found.values() for array in message)
    if kept := _KEPT.pop((name, number), None):
        found = dict(sorted({**found, number: kept[number]}.items()))
    return run_on_part(name, number, function, (found, *arguments)), size


def _mark(part: Part, name: str) -> tuple[int, int, int, int]:
    """Halo rows, edges to other parts, all edges, and halo rows of the neighbour lists."""
    if isinstance(part.store, FileStore):
        part.store.mark()
    else:
        _MARKED[name, part.number] = dict(part.store)
    graph = part["graph"]
    cut = int(np.count_nonzero((graph.indices < part.start) | (graph.indices >= part.stop)))
    listed = part.get("list_halo")
    return len(part["edge_halo"]), cut, graph.nnz, 0 if listed is None else len(listed)


def _rollback(part: Part, name: str) -> None:
    if isinstance(part.store, FileStore):
        part.store.rollback()
    else:
        part.store = dict(_MARKED[name, part.number])


@contextmanager
def _as_files(part: Part) -> Iterator[FileStore]:
    """The store of a part that is in files; for one in memory, an empty store of temporary files."""
    if isinstance(part.store, FileStore):
        yield part.store
    else:
        with TemporaryDirectory() as temporary:
            yield FileStore(temporary)


def _save(part: Part, folder: str) -> None:
    with _as_files(part) as store:
        if store is not part.store:
            store.update(part.store)
        store.save(f"{folder}/{part.number}")


def _restore(part: Part, folder: str) -> None:
    with _as_files(part) as store:
        store.restore(f"{folder}/{part.number}")
        if store is not part.store:
            part.store = dict(store.items())


class DaskExecutor:
    """Keeps the parts of a fit in the workers of a Dask cluster.

    Parameters
    ----------
    bounds : ndarray of int of shape (n_parts + 1,)
        Part p has the samples from `bounds[p]` to before `bounds[p + 1]`.
    client : distributed.Client
        Client of the cluster.
    shared : str, optional
        Folder that all workers share, for results with a row for each sample.
    in_files : bool
        Whether workers keep the arrays of their parts in files of their own folder, those of one part in memory at a
        time.

    Attributes
    ----------
    workers : list of str
        Address of the worker of each part.
    calls, bytes_sent : Counter
        Rounds of messages since the last `mark`, and their bytes between different parts, by the function that sends.

    Notes
    -----
    The logger "lmssc.cluster" tells at each `mark`, so once an iteration, what was sent, how many rows the halos have,
    and the share of the edges that cross parts.
    """

    def __init__(self, bounds: NDArray, client: Any, shared: str | None = None, *, in_files: bool = False) -> None:
        self.shared = shared
        self.bounds, self._client, self._name = bounds, client, uuid.uuid4().hex
        alive = sorted(alive_workers(client))
        if not alive:
            raise WorkerLostError("the cluster has no worker")
        self.workers = [alive[p * len(alive) // (len(bounds) - 1)] for p in range(len(bounds) - 1)]
        self.calls: Counter[str] = Counter()
        self.bytes_sent: Counter[str] = Counter()
        ends = [(int(first), int(end)) for first, end in pairwise(bounds)]
        self._gather(self._submit(_create, [(self._name, p, *ends[p], in_files) for p in range(len(ends))]))

    def _submit(self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> list[Any]:
        """Futures of a task for each part, in its worker."""
        return [
            self._client.submit(function, *own, workers=[worker], allow_other_workers=False, pure=False, retries=0)
            for worker, own in zip(self.workers, arguments, strict=True)
        ]

    def _gather(self, futures: list[Any]) -> list[Any]:
        """Results of the tasks; an error as soon as a worker or the scheduler is gone."""
        return gather_or_fail(self._client, futures, self.workers)

    def map(self, function: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`function(part, *shared)` of all parts."""
        tasks = [(self._name, p, function, arguments) for p, arguments in self._arguments(shared, each)]
        return self._gather(self._submit(run_on_part, tasks))

    def exchange(self, send: Send, receive: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`receive(part, messages, *shared)` of all parts, after `send(part, *shared)` of all parts."""
        arguments = [own for _, own in self._arguments(shared, each)]
        sent = self._submit(_send, [(self._name, p, send, own) for p, own in enumerate(arguments)])
        tasks = [(self._name, p, receive, self._sent_to(p, sent), own) for p, own in enumerate(arguments)]
        found = self._gather(self._submit(_receive, tasks))
        self.calls[send.__name__] += 1
        self.bytes_sent[send.__name__] += sum(size for _, size in found)
        return [result for result, _ in found]

    def _sent_to(self, target: int, sent: list[Any]) -> list[Any]:
        """The messages of each part, of which those to `target` are all that travels; its own part sends no more."""
        if len(sent) <= 2:  # there is nothing else in them
            return sent
        places = [[worker] for worker in self.workers]
        return [
            one if source == target else self._client.submit(_pick, one, target, workers=places[source], pure=False)
            for source, one in enumerate(sent)
        ]

    def _arguments(self, shared: Sequence[Any], each: Sequence[Any] | None) -> Iterable[tuple[int, Sequence[Any]]]:
        return enumerate(shared if each is None else (*shared, each[p]) for p in range(len(self.workers)))

    def save(self, folder: str) -> None:
        """Write all arrays of all parts to a folder that all workers share and that does not exist yet."""
        self.map(_save, folder)

    def restore(self, folder: str) -> None:
        """Replace all arrays of all parts by those that `save` wrote."""
        self.map(_restore, folder)

    def mark(self) -> None:
        """Remember the arrays of all parts as they are now."""
        counts = self.map(_mark, self._name)
        halo, cut, edges, listed = (sum(column) for column in zip(*counts, strict=True))
        LOGGER.info(
            "%d parts, %d bytes sent, halo rows %d of edges and %d of lists, %.1f %% of the edges cross parts",
            *(len(self.workers), self.bytes_sent.total(), halo, listed, 100 * cut / max(edges, 1)),
            extra={
                "calls": dict(self.calls),
                "bytes": dict(self.bytes_sent),
                "parts": len(self.workers),
                "edges": edges,
                "cut": cut,
                "halo": halo,
                "lists": listed,
            },
        )
        self.calls.clear()
        self.bytes_sent.clear()

    def rollback(self) -> None:
        """Go back to the last `mark`."""
        self.map(_rollback, self._name)

    def close(self) -> None:
        """Forget all parts, in the workers that are left."""
        try:
            left = [worker for worker in set(self.workers) if worker in alive_workers(self._client)]
            self._client.run(_forget, self._name, workers=left) if left else None
        except (OSError, RuntimeError):  # nobody to tell
            pass


def alive_workers(client: Any) -> set[str]:
    """Addresses of the workers that the scheduler knows; an error if it does not answer."""
    cause = None
    # While it tries to connect again, the client has no scheduler; a new one would not know the parts.
    if client.status == "running" and client.scheduler is not None:
        try:
            return set(client.nthreads())
        except (AttributeError, OSError, RuntimeError, TimeoutError) as error:
            cause = error
    raise SchedulerLostError(
        "the Dask scheduler does not answer. Start a cluster and fit again: with checkpoint=..., the fit goes on from "
        "its last checkpoint"
    ) from cause


def gather_or_fail(client: Any, futures: list[Any], workers: Sequence[str]) -> list[Any]:
    """Results of futures, unless a worker that they need, or the scheduler, is gone.

    `client.gather` alone would wait for ever for the result of a worker that died when it had just computed it.
    """
    found = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), client.loop.asyncio_loop)
    alone = 0.0
    while True:
        try:
            return found.result(POLL_SECONDS)
        except TimeoutError:
            if found.done():  # the error of a task
                raise
            alive = alive_workers(client)
            alone = 0.0 if alive else alone + POLL_SECONDS
            if alone > NO_WORKER_SECONDS:
                client.cancel(futures)
                raise WorkerLostError(NO_WORKER) from None
            lost = set(workers) - alive
            if lost:
                client.cancel(futures)  # which ends the other tasks, and `found`
                raise WorkerLostError(f"the worker {sorted(lost)[0]} died") from None
        except (CancelledError, distributed().scheduler.KilledWorker) as error:
            alive_workers(client)
            raise WorkerLostError("a worker died") from error
