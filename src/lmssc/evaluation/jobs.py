"""Many jobs done once and for all: in parallel, each on disk as soon as it is done, with progress."""

import os
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from lmssc.core.progress import ProgressMeter, TimeLeft
from lmssc.data.n_jobs import worker_count
from lmssc.evaluation.store import Store
from lmssc.numerics.processes import end_with


class Job(Protocol):
    """Something whose result is a record with `fit_seconds`."""

    @property
    def key(self) -> str:
        """What tells it from any other; a job that is on disk under it need not be done again."""

    @property
    def kind(self) -> Hashable:
        """What it has in common with jobs that take as long."""


AnyJob = TypeVar("AnyJob", bound=Job)


def do_missing(
    jobs: Iterable[AnyJob],
    do: Callable[[AnyJob], dict[str, Any]],
    store: Store,
    n_jobs: int | None = None,
    *,
    progress: bool = False,
) -> None:
    """Do all jobs that `store` does not have yet; each is in it, and on disk, as soon as it is done.

    Parameters
    ----------
    jobs : iterable of Job
        In the order in which they are to be done; one that is there twice is done once. One that failed in an earlier
        start is tried again.
    do : callable
        Job ↦ its record. Warnings are not shown, and numerical libraries have one thread.
    store : Store
        Where the records are and go.
    n_jobs : int, optional
        Jobs at the same time, through joblib.
    progress : bool
        Show how far it is.
    """
    n_jobs = worker_count(n_jobs)
    by_key = {job.key: job for job in jobs}
    missing = {key: job for key, job in by_key.items() if (store.read(key) or {"error": "missing"}).get("error")}
    left = TimeLeft((job.kind for job in missing.values()), effective_n_jobs(n_jobs))
    for key, job in by_key.items():
        if key not in missing and (record := store.read(key)) is not None:
            left.learn(job.kind, record["fit_seconds"])
    with ProgressMeter(len(by_key), len(by_key) - len(missing), left, show=progress) as meter:
        for key, record in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(_do)(job, do, store, os.getpid()) for job in missing.values()
        ):
            store.remember(key, record)
            meter.advance(by_key[key].kind, record["fit_seconds"])


def _do(job: AnyJob, do: Callable[[AnyJob], dict[str, Any]], store: Store, main: int) -> tuple[str, dict[str, Any]]:
    """One job, on disk before it is returned. `main` is the process that asked for it."""
    end_with(main)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        record = do(job)
    store.write(job.key, record)
    return job.key, record
