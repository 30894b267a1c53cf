"""Messages that name a view also name its file."""

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

VIEW = re.compile(r"\bview '([^']+)'")


def add_files(message: str, files: Mapping[str, str]) -> str:
    """A message in which each view is followed by its file, unless the message has the file already.

    Parameters
    ----------
    message : str
        A warning or an error.
    files : mapping of str to str
        The file of each view.

    Examples
    --------
    >>> add_files("view 'lab', column 'age': infinite", {"lab": "in/lab.csv"})
    "view 'lab' (in/lab.csv), column 'age': infinite"
    """

    def with_file(found: re.Match[str]) -> str:
        file = files.get(found[1])
        return found[0] if file is None or file in message else f"{found[0]} ({file})"

    return VIEW.sub(with_file, message)


@contextmanager
def naming_files(files: Mapping[str, str]) -> Iterator[list[str]]:
    """Context in which warnings and errors that name a view also name its file; a list of the warnings so far."""
    show = warnings.showwarning
    told: list[str] = []

    def show_with_files(message: Warning | str, *where: Any, **more: Any) -> None:
        told.append(add_files(str(message), files))
        show(told[-1], *where, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show_with_files
        try:
            yield told
        except ValueError as error:
            raise ValueError(add_files(str(error), files)) from error
