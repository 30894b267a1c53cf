"""Progress of a fit and of many runs: bars on a terminal and in a notebook, a line now and then elsewhere."""

import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from lmssc._optional import import_optional

SECONDS_BETWEEN_LINES = 30.0
"""Interval between two lines of `ProgressMeter` where there is no terminal."""

# Called with the number of steps done, the total, and optionally a text to show beside the bar.
Advance = Callable[..., None]


@dataclass(frozen=True)
class IterationProgress:
    """Passed to the callback of an estimator after each iteration.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1.
    max_iter : int
        Largest number of iterations.
    objective : float
        J.
    change : float
        Relative change of the class scores F.
    seconds : float
        Time since the first iteration began.
    seconds_left : float
        Estimated time until convergence, extrapolated from how fast `change` has fallen so far; NaN after one
        iteration.
    """

    iteration: int
    max_iter: int
    objective: float
    change: float
    seconds: float
    seconds_left: float = float("nan")


class TimeLeft:
    """Estimate of the remaining time of many runs, from the mean time of finished runs of the same kind.

    Parameters
    ----------
    kinds : iterable of hashable
        Kind of each run that is left.
    workers : int
        Number of runs at the same time.

    Examples
    --------
    >>> left = TimeLeft(["slow", "slow", "fast", "fast"], workers=2)
    >>> left.seconds() is None
    True
    >>> left.done("slow", 60.0)
    >>> left.done("fast", 2.0)
    >>> left.seconds()
    31.0
    """

    def __init__(self, kinds: Iterable[Hashable], workers: int) -> None:
        self._left = Counter(kinds)
        self._workers = workers
        self._seen: dict[Hashable, list[float]] = defaultdict(list)

    def learn(self, kind: Hashable, seconds: float) -> None:
        """Record the time of a run that was finished earlier and is not among those left."""
        if seconds == seconds:  # a failed run has no time: NaN
            self._seen[kind].append(seconds)

    def done(self, kind: Hashable, seconds: float) -> None:
        """Record the time of a run that has just finished."""
        self._left[kind] -= 1
        self.learn(kind, seconds)

    def seconds(self) -> float | None:
        """Remaining seconds, or None before the first run; an unseen kind counts as the mean of the others."""
        means = {kind: sum(seen) / len(seen) for kind, seen in self._seen.items()}
        if not means:
            return None
        usual = sum(means.values()) / len(means)
        return sum(count * means.get(kind, usual) for kind, count in self._left.items()) / self._workers


def duration(seconds: float) -> str:
    """A duration in words, rounded to what an estimate can tell.

    Examples
    --------
    >>> duration(20), duration(400), duration(9000)
    ('less than a minute', 'about 7 min', 'about 2.5 h')
    """
    if seconds < 45:
        return "less than a minute"
    return f"about {max(seconds / 60, 1):.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def in_notebook() -> bool:
    """Whether this runs in a notebook, where HTML can be shown.

    Examples
    --------
    >>> in_notebook()
    False
    """
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


class _NotebookBar:
    """A bar below the cell of a notebook, with the methods of tqdm that are used here."""

    def __init__(self, total: int, initial: int) -> None:
        self.total, self.n, self._text = total, initial, ""
        self._shown = sys.modules["IPython"].display.display(self._bundle(), raw=True, display_id=True)

    def set_postfix_str(self, text: str, *, refresh: bool = True) -> None:
        self._text = f", {text}" if text else ""

    def update(self) -> None:
        self.n += 1
        self._shown.update(self._bundle(), raw=True)

    def close(self) -> None:
        self._text = ""
        self._shown.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        text = f"{self.n} of {self.total} runs{self._text}"
        return {"text/plain": text, "text/html": f"<progress value='{self.n}' max='{self.total}'></progress> {text}"}


class ProgressMeter:
    """Context that shows how many of `total` runs are done: a bar on a terminal or in a notebook, else lines on stderr.

    Parameters
    ----------
    total, done : int
        Number of runs, and how many of them were finished before.
    left : TimeLeft
        Estimates the remaining time.
    show : bool
        Whether to show anything.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self, total: int, done: int, left: TimeLeft, *, show: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total, self.n_done, self.left = total, done, left
        self._show, self._clock = show, clock
        self._last = clock()
        self._bar = _bar_of_runs(total, done) if show else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, kind: Hashable, seconds: float) -> None:
        """Record that one more run is done."""
        self.n_done += 1
        self.left.done(kind, seconds)
        if self._bar is not None:
            self._bar.set_postfix_str(self._rest(), refresh=False)
            self._bar.update()
        elif self._show and self._clock() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = self._clock()
            print(f"{self.n_done} of {self.total} runs, {self._rest()}", file=sys.stderr, flush=True)

    def _rest(self) -> str:
        seconds = self.left.seconds()
        return "" if seconds is None else f"{duration(seconds)} left"


def _bar_of_runs(total: int, done: int) -> Any:
    """A bar where one can be shown, else None."""
    if in_notebook():
        return _NotebookBar(total, done)
    tqdm = _import_tqdm() if sys.stderr.isatty() else None
    layout = "{l_bar}{bar}| {n_fmt}/{total_fmt} runs{postfix}"
    return tqdm and tqdm(total=total, initial=done, bar_format=layout, dynamic_ncols=True)


@contextmanager
def progress_bar(description: str, *, show: bool, unit: str | None = None) -> Iterator[Advance | None]:
    """Context that yields a function that moves a bar on the terminal, or None where no bar can be shown.

    Parameters
    ----------
    description : str
        Text before the bar.
    show : bool
        Whether a bar is wanted.
    unit : str, optional
        Name of the steps; with it the bar begins with a count, such as "4 of 12 fits".

    Yields
    ------
    callable or None
    """
    tqdm = _import_tqdm() if show and sys.stderr.isatty() else None
    if tqdm is None:
        yield None
        return
    form = None if unit is None else f"{{desc}}: {{n}} of {{total}} {unit} |{{bar}}| {{elapsed}}"
    with tqdm(desc=description, leave=False, bar_format="{desc}: {elapsed}") as bar, _ticking(bar):

        def advance(done: int, total: int, text: str = "") -> None:
            bar.bar_format, bar.total, bar.n = form, total, done
            bar.set_postfix_str(text)

        yield advance


@contextmanager
def _ticking(bar: Any) -> Iterator[None]:
    """Context that shows the time anew each second, also while no step ends."""
    stopped = threading.Event()

    def tick() -> None:
        while not stopped.wait(1.0):
            bar.refresh()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def iterations(advance: Advance) -> Callable[[IterationProgress], None]:
    """A callback for the estimators that moves a bar.

    Parameters
    ----------
    advance : callable
        The function that `progress_bar` yields.

    Returns
    -------
    callable

    Examples
    --------
    >>> iterations(lambda done, total, text: print(done, total, text))(IterationProgress(2, 30, 0.5, 0.01, 1.0))
    2 30 J 0.5, change 1.0e-02
    """

    def callback(record: IterationProgress) -> None:
        advance(record.iteration, record.max_iter, f"J {record.objective:.5g}, change {record.change:.1e}")

    return callback


def _import_tqdm() -> Any:
    """The class `tqdm`, or None if it is not installed."""
    try:
        return import_optional("tqdm", purpose="progress bars", extra="progress").tqdm
    except ImportError:
        return None
