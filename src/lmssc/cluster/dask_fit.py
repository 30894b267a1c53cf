"""A fit on a Dask cluster: where its parts are, and how it goes on when a worker dies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.cluster.dask_executor import (
    NO_WORKER,
    NO_WORKER_SECONDS,
    DaskExecutor,
    WorkerLostError,
    alive_workers,
    distributed,
)
from lmssc.core.fit_config import FitConfig, FitContext, FitHooks
from lmssc.core.fit_result import FitResult
from lmssc.core.parts.executor import Executor
from lmssc.core.parts.parted_fit import fit_in_parts
from lmssc.core.parts.partition import part_bounds
from lmssc.core.parts.plan import MODEL
from lmssc.core.targets import Targets
from lmssc.data.file_lock import LockedFolder
from lmssc.data.memmap import stored_bytes
from lmssc.data.views import Views
from lmssc.data.warn_caller import warn_caller

# A fit starts over or resumes at most so many times: then the cluster is the problem.
MAX_LOSSES = 20
# Share of the limit of a worker that is planned with: Dask pauses workers at 80 %.
MEMORY_SHARE = 0.7
# Bytes of a worker without samples, and what a part in memory takes all in all, relative to its largest step.
WORKER_BASE, RESIDENT_FACTOR = 250_000_000, 2.0
# How long a worker that died may take to be started again, until the fit goes on without it.
RESTART_SECONDS = 30
# How long a scheduler at an address may take to answer.
CONNECT_TIMEOUT = "10s"


@dataclass(frozen=True)
class ClusterPlan:
    """Parts of a fit in the workers of a cluster.

    Attributes
    ----------
    client : distributed.Client
        Client of the cluster.
    shared : str or None
        Folder that all workers share, in which they leave the results; None if these come here.
    """

    client: Any
    shared: str | None = None

    def executor(self, bounds: NDArray) -> Executor:
        """New parts, in the workers that are there now; several for each worker are in files."""
        return DaskExecutor(
            bounds, self.client, self.shared, in_files=len(bounds) - 1 > self._n_wanted(int(bounds[-1]))
        )

    def _n_wanted(self, n_samples: int) -> int:
        """Number of parts in memory: a power of two, at least one for each worker."""
        wanted = min(len(alive_workers(self.client)), max(1, n_samples // MODEL.min_part))
        return 2 ** int(np.ceil(np.log2(max(wanted, 1))))

    def maker(self, views: Views, config: FitConfig, n_classes: int) -> Callable[[int], Executor]:
        """What makes the parts: one for each worker if that fits into its memory, otherwise several, in files."""

        def make(n_components: int) -> Executor:
            n_samples, n_parts = views.n_samples, self._n_wanted(views.n_samples)
            row_bytes = sum(stored_bytes(view.data) for view in views) / n_samples
            per_row = MODEL.per_row(row_bytes, views.dtype.itemsize, n_components, n_classes, config.n_neighbors)
            left = MEMORY_SHARE * worker_memory(self.client) - WORKER_BASE
            if n_samples / n_parts * RESIDENT_FACTOR * per_row > left:
                while n_samples / n_parts * per_row > left and n_samples / n_parts > 2 * MODEL.min_part:
                    n_parts *= 2
                n_parts = max(n_parts, 2 * self._n_wanted(n_samples))
            return self.executor(part_bounds(n_samples, n_parts))

        return make


def worker_memory(client: Any) -> float:
    """Bytes that each worker may take: the least of their limits; infinite without any."""
    workers = client.scheduler_info()["workers"].values()
    return min((float(one["memory_limit"]) for one in workers if one.get("memory_limit")), default=np.inf)


def find_client(client: Any) -> Any:
    """The given client or address, or the current client of this process.

    Examples
    --------
    >>> find_client("tcp://127.0.0.1:8786")
    'tcp://127.0.0.1:8786'
    """
    if client is not None:
        return client
    try:
        return distributed().default_client()
    except ValueError as error:
        raise ValueError(
            "X has dask arrays, but there is no cluster to fit them on: start one with distributed.Client(), pass "
            "client=..., or call compute() if they fit into memory"
        ) from error


@contextmanager
def open_client(client: Any) -> Iterator[Any]:
    """A client of the cluster at an address, which is closed at the end; or the given one."""
    if not isinstance(client, str):
        yield client
        return
    try:
        opened = distributed().Client(client, timeout=CONNECT_TIMEOUT)
    except (OSError, TimeoutError) as error:
        raise ValueError(f"no Dask scheduler answers at {client!r}") from error
    try:
        yield opened
    finally:
        opened.close()


def fit_on_cluster(
    views: Views,
    targets: Targets,
    config: FitConfig,
    client: Any,
    hooks: FitHooks,
    context: FitContext,
    make_checkpoint: Callable[[str], Any],
    shared: str | None = None,
) -> FitResult:
    """`fit_in_parts` with the parts in the workers of a cluster; continued from the last checkpoint if one dies.

    Parameters
    ----------
    views, targets, config, hooks, context
        As for `fit_in_parts`.
    client : distributed.Client or str
        Client of the cluster, or the address of its scheduler.
    make_checkpoint : callable
        Makes a checkpoint, given the name of its file; used if the hooks have none.
    shared : str, optional
        Folder that all workers share, in which they leave results with a row for each sample.

    Returns
    -------
    FitResult
    """
    with open_client(client) as opened, LockedFolder("lmssc-cluster-") as folder:
        if hooks.checkpoint is None:
            hooks = replace(hooks, checkpoint=make_checkpoint(str(Path(folder.path) / "fit.ckpt")))
        n_workers = len(alive_workers(opened))
        for _ in range(MAX_LOSSES):
            try:
                return fit_in_parts(views, targets, config, ClusterPlan(opened, shared), hooks, context)
            except WorkerLostError as error:
                warn_caller(f"{error}: the fit continues from its last checkpoint")
                _wait_for_workers(opened, n_workers)
        raise WorkerLostError(f"workers died {MAX_LOSSES} times: the fit needs more memory, or another cluster")


def _wait_for_workers(client: Any, n_workers: int) -> None:
    """Wait a while for so many workers, and longer for one; an error if none comes."""
    with suppress(TimeoutError):
        client.wait_for_workers(max(1, n_workers), timeout=RESTART_SECONDS)
    if alive_workers(client):
        return
    try:
        client.wait_for_workers(1, timeout=NO_WORKER_SECONDS)
    except TimeoutError as error:
        raise WorkerLostError(NO_WORKER) from error
