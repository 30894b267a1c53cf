"""How many runs are done and how long the rest will take: a bar on a terminal, now and then a line elsewhere."""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Self

from lmssc._optional import import_optional

# Seconds between two lines where there is no terminal.
LINE_EVERY = 30.0


class TimeLeft:
    """Time that runs of known kinds will take, judged by those of the same kind that are done.

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
        """A run of this kind took so long at an earlier start."""
        if seconds == seconds:  # a failed run has no time
            self._seen[kind].append(seconds)

    def done(self, kind: Hashable, seconds: float) -> None:
        """A run of this kind has ended."""
        self._left[kind] -= 1
        self.learn(kind, seconds)

    def seconds(self) -> float | None:
        """Seconds left; a kind never seen counts as the mean of those seen, and None is not to be known yet."""
        means = {kind: sum(seen) / len(seen) for kind, seen in self._seen.items()}
        if not means:
            return None
        usual = sum(means.values()) / len(means)
        return sum(count * means.get(kind, usual) for kind, count in self._left.items()) / self._workers


def duration(seconds: float) -> str:
    """A time in words, no more exact than it can be known.

    Examples
    --------
    >>> duration(20), duration(400), duration(9000)
    ('less than a minute', 'about 7 min', 'about 2.5 h')
    """
    if seconds < 45:
        return "less than a minute"
    return f"about {max(seconds / 60, 1):.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


class Progress:
    """Context that shows on stderr how far `total` runs are.

    Parameters
    ----------
    total, done : int
        Runs in all, and those that are on disk already.
    left : TimeLeft
        Judges the rest.
    show : bool
        Show anything at all.
    clock : callable
        Gives the seconds that decide when a line is due.
    """

    def __init__(
        self, total: int, done: int, left: TimeLeft, *, show: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total, self.n_done, self.left = total, done, left
        self._show, self._clock = show, clock
        self._last = clock()
        self._bar = _make_bar(total, done) if show and sys.stderr.isatty() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, kind: Hashable, seconds: float) -> None:
        """One more run is done."""
        self.n_done += 1
        self.left.done(kind, seconds)
        if self._bar is not None:
            self._bar.set_postfix_str(self._rest(), refresh=False)
            self._bar.update()
        elif self._show and self._clock() - self._last >= LINE_EVERY:
            self._last = self._clock()
            print(f"{self.n_done} of {self.total} runs, {self._rest()}", file=sys.stderr, flush=True)

    def _rest(self) -> str:
        seconds = self.left.seconds()
        return "" if seconds is None else f"{duration(seconds)} left"


def _make_bar(total: int, done: int) -> Any:
    """A bar, or None without tqdm."""
    try:
        tqdm = import_optional("tqdm", purpose="progress bars", extra="progress").tqdm
    except ImportError:
        return None
    return tqdm(
        total=total, initial=done, bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} runs{postfix}", dynamic_ncols=True
    )
