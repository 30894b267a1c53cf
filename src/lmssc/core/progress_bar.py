"""A progress bar on a terminal; nothing elsewhere, or without tqdm."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lmssc._optional import import_optional
from lmssc.core.alternation import Progress

# (steps done, steps in all, what to say beside the bar if anything) ↦ None
Advance = Callable[..., None]


@contextmanager
def progress_bar(description: str, *, show: bool, unit: str | None = None) -> Iterator[Advance | None]:
    """Give a function that moves a bar on the terminal, or None if no bar can be shown.

    Parameters
    ----------
    description : str
        What stands before the bar.
    show : bool
        Whether a bar is wanted.
    unit : str, optional
        What the steps are; with it the bar begins with a count, such as "4 of 12 fits".

    Yields
    ------
    callable or None
    """
    try:
        tqdm = import_optional("tqdm", purpose="progress bars", extra="progress").tqdm
    except ImportError:
        show = False
    if not (show and sys.stderr.isatty()):
        yield None
        return
    form = None if unit is None else f"{{desc}}: {{n}} of {{total}} {unit} |{{bar}}| {{elapsed}}"
    with tqdm(desc=description, leave=False, bar_format=form) as bar:

        def advance(done: int, total: int, text: str = "") -> None:
            bar.total, bar.n = total, done
            bar.set_postfix_str(text)

        yield advance


def iterations(advance: Advance) -> Callable[[Progress], None]:
    """A callback for the estimators that moves the bar.

    Parameters
    ----------
    advance : callable
        What `progress_bar` gave.

    Returns
    -------
    callable

    Examples
    --------
    >>> iterations(lambda done, total, text: print(done, total, text))(Progress(2, 30, 0.5, 0.01, 1.0))
    2 30 J 0.5, change 1.0e-02
    """

    def callback(record: Progress) -> None:
        advance(record.iteration, record.max_iter, f"J {record.objective:.5g}, change {record.change:.1e}")

    return callback
