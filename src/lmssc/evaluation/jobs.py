"""Run many jobs in parallel; each result is on disk as soon as it is there, so a second start resumes."""

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
    """A job whose result is a record with `fit_seconds`."""

    @property
    def key(self) -> str:
        """Unique key; a job whose record is on disk under this key is not run again."""

    @property
    def kind(self) -> Hashable:
        """Group of jobs that take about as long, to estimate the remaining time."""


AnyJob = TypeVar("AnyJob", bound=Job)


def do_missing(
    jobs: Iterable[AnyJob],
    do: Callable[[AnyJob], dict[str, Any]],
    store: Store,
    n_jobs: int | None = None,
    *,
    progress: bool = False,
) -> None:
    """Run all jobs that `store` does not have yet, and store each result at once.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs in the order to run them; duplicates run once. A job that failed in an earlier start is run again.
    do : callable
        Maps a job to its record. It runs without warnings, with one thread for the numerical libraries.
    store : Store
        The records.
    n_jobs : int, optional
        Number of parallel jobs, through joblib.
    progress : bool
        Show a progress bar.
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
            delayed(_run_job)(job, do, store, os.getpid()) for job in missing.values()
        ):
            store.remember(key, record)
            meter.advance(by_key[key].kind, record["fit_seconds"])


def _run_job(
    job: AnyJob, do: Callable[[AnyJob], dict[str, Any]], store: Store, main: int
) -> tuple[str, dict[str, Any]]:
    """Run a job and write its record. `main` is the id of the process that started the run."""
    end_with(main)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        record = do(job)
    store.write(job.key, record)
    return job.key, record
