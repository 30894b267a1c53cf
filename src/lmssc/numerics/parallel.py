"""Threads: the linear algebra library has one, and what takes long is cut into pieces that run at the same time.

Most of what a fit multiplies is small, and there a library that shares it out takes two or three times as long as on
one thread. Pieces that do not depend on how many threads there are also give the same digits on any number of them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property
from typing import TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

Result = TypeVar("Result")


class _Team:
    """So many threads, which wait for work once there was some."""

    def __init__(self, size: int) -> None:
        self.size = size

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        # What a thread does is not shared out again.
        return ThreadPoolExecutor(self.size, initializer=lambda: _team.set(_Team(1)))

    def dismiss(self) -> None:
        """End the threads, if there are any."""
        if "pool" in vars(self):
            self.pool.shutdown()


_team: ContextVar[_Team | None] = ContextVar("_team", default=None)


def count_threads() -> int:
    """How many threads there may be: as many as the numerical libraries may have, `OMP_NUM_THREADS` for example.

    Examples
    --------
    >>> with threads(n_jobs=2):
    ...     count_threads()
    2
    """
    team = _team.get()
    if team is not None:
        return team.size
    return max((int(library["num_threads"]) for library in threadpool_info()), default=1)


@contextmanager
def threads(n_jobs: int | None = None) -> Iterator[None]:
    """Within, `threaded_map` uses `n_jobs` threads (`count_threads()` if None), and each call of linear algebra one."""
    if n_jobs is None and _team.get() is not None:
        yield
        return
    with nullcontext() if n_jobs is None else threadpool_limits(limits=n_jobs):
        team = _Team(count_threads() if n_jobs is None else n_jobs)
        token = _team.set(team)
        try:
            with threadpool_limits(limits=1, user_api="blas"):
                yield
        finally:
            _team.reset(token)
            team.dismiss()


def threaded_map(function: Callable[..., Result], *items: Iterable) -> list[Result]:
    """The function of each item, or of each tuple if there are several iterables, on as many threads as there may be.

    Examples
    --------
    >>> threaded_map(pow, [2, 3], [3, 2])
    [8, 9]
    """
    lists = [list(part) for part in items]
    if len(lists[0]) < 2 or count_threads() == 1:
        return list(map(function, *lists))
    results: dict[int, Result] = {}
    # Each thread takes the next item when it is done with one: a task for each would cost more than many of them take.
    numbers = deque(range(len(lists[0])))

    def work() -> None:
        while numbers:
            try:
                number = numbers.popleft()
            except IndexError:  # another thread has taken the last one
                return
            results[number] = function(*(part[number] for part in lists))

    with threads():
        team = _team.get()
        tasks = [team.pool.submit(work) for _ in range(team.size)]  # type: ignore[union-attr]
        try:
            # After an error, or Ctrl-C, the other threads end with what they have begun.
            for task in as_completed(tasks):
                task.result()
        finally:
            numbers.clear()
    return [results[number] for number in range(len(lists[0]))]


def slices_of(length: int, size: int) -> list[slice]:
    """Slices of so many rows each, that no one's answer may depend on.

    Examples
    --------
    >>> slices_of(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + size, length)) for first in range(0, length, size)]
