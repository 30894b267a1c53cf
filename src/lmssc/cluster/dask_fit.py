"""A fit on a Dask cluster: where its parts are, and how it goes on when a worker dies."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.cluster.dask_executor import DaskExecutor, WorkerLostError, alive_workers, distributed
from lmssc.core.fit import FitResult
from lmssc.core.fit_config import FitConfig, FitContext, FitHooks
from lmssc.core.parts.executor import Executor
from lmssc.core.parts.parted_fit import fit_in_parts
from lmssc.core.parts.partition import part_bounds
from lmssc.core.targets import Targets
from lmssc.data.file_lock import LockedFolder
from lmssc.data.views import Views

# A fit starts over or resumes at most so many times: then the cluster is the problem.
MAX_LOSSES = 20
# Smaller parts are almost nothing but halo.
MIN_PART = 1000
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
        """New parts, in the workers that are there now."""
        return DaskExecutor(bounds, self.client, self.shared)

    def maker(self, views: Views, config: FitConfig, n_classes: int) -> Callable[[int], Executor]:
        """What makes the parts: a power of two of them, at least one for each worker."""

        def make(n_components: int) -> Executor:
            most = max(1, views.n_samples // MIN_PART)
            wanted = min(len(alive_workers(self.client)), most)
            return self.executor(part_bounds(views.n_samples, 2 ** int(np.ceil(np.log2(max(wanted, 1))))))

        return make


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
        for _ in range(MAX_LOSSES):
            try:
                return fit_in_parts(views, targets, config, ClusterPlan(opened, shared), hooks, context)
            except WorkerLostError as error:
                warnings.warn(f"{error}: the fit goes on from its last checkpoint", UserWarning, stacklevel=2)
        raise WorkerLostError(f"workers died {MAX_LOSSES} times: the fit needs more memory, or another cluster")
