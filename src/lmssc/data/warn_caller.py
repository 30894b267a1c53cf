"""Warnings that name the line of the user's code, however deep inside of lmssc they arise."""

import inspect
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parents[1])


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line that called lmssc.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("check the units")
    >>> caught[0].category.__name__, caught[0].filename.startswith(PACKAGE)
    ('UserWarning', False)
    """
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
