"""Files of a shared folder that the workers of a Dask cluster read and write."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lmssc.cluster.dask_executor import alive_workers, gather_or_fail

# Tasks at a time, for each worker: their results are small, but not all of them at once.
TASKS_PER_WORKER = 4


class DaskReaders:
    """The workers of a cluster, as `lmssc.data.shared_files` sees them.

    Tasks have no state, so the scheduler repeats those of a worker that dies.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    folder : str
        Folder that all workers share with this process.
    """

    def __init__(self, client: Any, folder: str) -> None:
        self.client, self.folder = client, folder

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """`function(*task)` of all tasks, in their order."""
        at_once = max(1, TASKS_PER_WORKER * len(alive_workers(self.client)))
        for first in range(0, len(tasks), at_once):
            some = tasks[first : first + at_once]
            futures = [self.client.submit(function, *task, pure=False) for task in some]
            yield from gather_or_fail(self.client, futures, ())
