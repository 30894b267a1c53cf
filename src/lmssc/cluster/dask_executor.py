"""Parts of a fit that live in the workers of a Dask cluster.

The parts of a worker are an actor in its memory, so that no task graph grows with the iterations. A call of `map` or
`exchange` is one call of each worker; what comes back is small. In `exchange`, messages go from worker to worker. If a
worker dies, its parts are gone: the executor raises a `WorkerLostError`, and `dask_fit` goes on from the last
checkpoint with the workers that are left.
"""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager
from itertools import count, pairwise
from tempfile import TemporaryDirectory
from typing import Any

from numpy.typing import NDArray

from lmssc.cluster.dask_worker import Peer, WorkerLostError, WorkerParts, distributed, end_fit
from lmssc.core.parts.executor import Each, Part, Result, Send
from lmssc.core.parts.file_store import FileStore

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


class SchedulerLostError(RuntimeError):
    """The scheduler does not answer any more."""


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
        n_parts = len(bounds) - 1
        self.workers = [alive[p * len(alive) // n_parts] for p in range(n_parts)]
        self._used = sorted(set(self.workers), key=self.workers.index)
        self._numbers = [[p for p in range(n_parts) if self.workers[p] == worker] for worker in self._used]
        self.calls: Counter[str] = Counter()
        self.bytes_sent: Counter[str] = Counter()
        self._count = count()
        ends = [(int(first), int(end)) for first, end in pairwise(bounds)]
        self._futures = [
            client.submit(
                WorkerParts,
                self._name,
                {p: ends[p] for p in numbers},
                in_files,
                actor=True,
                workers=[worker],
                allow_other_workers=False,
                pure=False,
            )
            for worker, numbers in zip(self._used, self._numbers, strict=True)
        ]
        gather_or_fail(client, self._futures, self._used)
        self._peers = [
            Peer(worker, future.key, tuple(numbers))
            for worker, future, numbers in zip(self._used, self._futures, self._numbers, strict=True)
        ]

    def _call(self, method: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        """What a method of the parts of each worker returns for each part, in the order of the parts.

        An error as soon as a worker or the scheduler is gone.
        """

        async def together() -> list[Any]:
            return await asyncio.gather(*map(self._execute, self._peers, [method] * len(arguments), arguments))

        running = asyncio.run_coroutine_threadsafe(together(), self._client.loop.asyncio_loop)
        while not wait_for(running, POLL_SECONDS):
            if set(self._used) - alive_workers(self._client):
                running.cancel()
                raise WorkerLostError("a worker died")
        try:
            answers = running.result()
        except WorkerLostError:
            alive_workers(self._client)  # an error of its own if it is the scheduler that is gone
            raise
        found: list[Any] = [None] * len(self.workers)
        for numbers, results in zip(self._numbers, answers, strict=True):
            for number, result in zip(numbers, results, strict=True):
                found[number] = result
        return found

    async def _execute(self, peer: Peer, method: str, arguments: Sequence[Any]) -> list[Any]:
        """Call a method of the parts of a worker, as a proxy of an actor does, but with this client."""
        wrapped = [distributed().protocol.to_serialize(one) for one in arguments]
        message = {"function": method, "actor": peer.key, "args": wrapped, "kwargs": {}}
        try:
            if self._client.direct_to_workers:
                answer = await self._client.rpc(peer.address).actor_execute(**message)
            else:
                message["op"] = "actor_execute"
                answer = await self._client.scheduler.proxy(worker=peer.address, msg=message)
        except (AttributeError, KeyError, OSError, RuntimeError) as error:  # no worker, or a new one at the address
            raise WorkerLostError("a worker died") from error
        if answer["status"] != "OK":
            raise answer["exception"]
        return answer["result"]

    def _each(self, each: Each) -> list[list[Any] | None]:
        return [None if each is None else [each[p] for p in numbers] for numbers in self._numbers]

    def map(self, function: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`function(part, *shared)` of all parts."""
        return self._call("run", [(function, shared, own) for own in self._each(each)])

    def exchange(self, send: Send, receive: Callable[..., Result], *shared: Any, each: Each = None) -> list[Result]:
        """`receive(part, messages, *shared)` of all parts, after `send(part, *shared)` of all parts."""
        number = next(self._count)
        own = self._each(each)
        found = self._call("exchange", [(number, self._peers, send, receive, shared, some) for some in own])
        self.calls[send.__name__] += 1
        self.bytes_sent[send.__name__] += sum(size for _, size in found)
        return [result for result, _ in found]

    def save(self, folder: str) -> None:
        """Write all arrays of all parts to a folder that all workers share and that does not exist yet."""
        self.map(_save, folder)

    def restore(self, folder: str) -> None:
        """Replace all arrays of all parts by those that `save` wrote."""
        self.map(_restore, folder)

    def mark(self) -> None:
        """Remember the arrays of all parts as they are now."""
        counts = self._call("mark", [()] * len(self._used))
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
        self._call("rollback", [()] * len(self._used))

    def close(self) -> None:
        """Forget all parts, in the workers that are left."""
        try:
            left = [worker for worker in self._used if worker in alive_workers(self._client)]
            self._client.run(end_fit, self._name, workers=left) if left else None
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


def wait_for(running: Future, seconds: float) -> bool:
    """Whether something is done, at the latest after some seconds."""
    return bool(wait_for_futures([running], seconds).done)


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
