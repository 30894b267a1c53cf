"""Threads: BLAS gets one, and long computations are cut into batches that run in parallel.

Most matrix products of a fit are small, and a threaded BLAS takes two or three times as long for them as on one thread.
The batches do not depend on the number of threads, so the result is the same to the last digit on any number of them.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")


class _Team:
    """A pool of `size` threads, started when it is first used."""

    def __init__(self, size: int) -> None:
        self.size = size

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        # Nested calls of `threaded_map` run on the thread that they are called from.
        return ThreadPoolExecutor(self.size, initializer=lambda: _team.set(_Team(1)))

    def dismiss(self) -> None:
        """Stop the threads, if they were started."""
        if "pool" in vars(self):
            self.pool.shutdown()


_team: ContextVar[_Team | None] = ContextVar("_team", default=None)


def _libraries() -> ThreadpoolController:
    """The numerical libraries of this process."""
    return _find_libraries(len(sys.modules))


@lru_cache(maxsize=1)
def _find_libraries(n_modules: int) -> ThreadpoolController:
    """Look for libraries, again only after imports: that takes 10 ms, a tenth of a small fit."""
    return ThreadpoolController()


def count_threads() -> int:
    """Number of threads to use: as many as the numerical libraries may use, such as `OMP_NUM_THREADS`.

    Examples
    --------
    >>> with threads(n_jobs=2):
    ...     count_threads()
    2
    """
    team = _team.get()
    if team is not None:
        return team.size
    return max((int(library["num_threads"]) for library in _libraries().info()), default=1)


@contextmanager
def threads(n_jobs: int | None = None) -> Iterator[None]:
    """Within this context `threaded_map` uses `n_jobs` threads (`count_threads()` if None), and BLAS one.

    Examples
    --------
    >>> with threads(n_jobs=2):
    ...     threaded_map(abs, [-1, 2])
    [1, 2]
    """
    if n_jobs is None and _team.get() is not None:
        yield
        return
    with nullcontext() if n_jobs is None else _libraries().limit(limits=n_jobs):
        team = _Team(count_threads() if n_jobs is None else n_jobs)
        token = _team.set(team)
        try:
            with _libraries().limit(limits=1, user_api="blas"):
                yield
        finally:
            _team.reset(token)
            team.dismiss()


def threaded_map(function: Callable[..., Result], *items: Iterable) -> list[Result]:
    """List of `function(*args)` for the `args` zipped from the iterables, computed on `count_threads()` threads.

    Examples
    --------
    >>> threaded_map(pow, [2, 3], [3, 2])
    [8, 9]
    """
    lists = [list(part) for part in items]
    if len(lists[0]) < 2 or count_threads() == 1:
        return list(map(function, *lists))
    results: dict[int, Result] = {}
    # Threads take the next item from a queue: one task per item would cost more than many of the items.
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
            # After an error or Ctrl-C the other threads finish the item that they are working on.
            for task in as_completed(tasks):
                task.result()
        finally:
            numbers.clear()
    return [results[number] for number in range(len(lists[0]))]
