"""Number of threads or processes for `n_jobs`, by the convention of joblib, capped at the number of cores."""

import joblib
import numpy as np

from lmssc.data.parameters import Rule

JOBS_OR_NONE = Rule(
    lambda v: v is None or (isinstance(v, int | np.integer) and not isinstance(v, bool | np.bool_) and v != 0),
    "a number of jobs, -1 for one per core, -2 for all cores but one, or None",
)


def thread_count(n_jobs: int | None) -> int | None:
    """Threads: `n_jobs`, at most one per core; −1 for all cores, −2 for all but one; None stays None.

    Examples
    --------
    >>> thread_count(1), thread_count(10**9) == thread_count(-1), thread_count(None)
    (1, True, None)
    """
    return _cap(n_jobs, joblib.cpu_count())


def worker_count(n_jobs: int | None) -> int | None:
    """Processes for `joblib.Parallel`, capped at the cores of its backend, which may be a cluster.

    Examples
    --------
    >>> worker_count(1), worker_count(10**9) == worker_count(-1), worker_count(None)
    (1, True, None)
    >>> worker_count(0)
    Traceback (most recent call last):
        ...
    ValueError: n_jobs must be a number of jobs, -1 for one per core, -2 for all cores but one, or None, got 0
    """
    return _cap(n_jobs, joblib.effective_n_jobs(-1))


def _cap(n_jobs: int | None, n_cores: int) -> int | None:
    if not JOBS_OR_NONE.accepts(n_jobs):
        raise ValueError(f"n_jobs must be {JOBS_OR_NONE.wanted}, got {n_jobs!r}")
    if n_jobs is None:
        return None
    return min(int(n_jobs), n_cores) if n_jobs > 0 else max(1, n_cores + 1 + int(n_jobs))
