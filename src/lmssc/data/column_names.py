"""How messages name columns: by their names where they have any."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

MAX_LISTED = 5


def name_columns(columns: ArrayLike, names: Sequence[str] | None) -> str:
    """Columns of a view for a message: the first few, by name, or by number if they have no names.

    Parameters
    ----------
    columns : array-like of int
        Numbers of the columns.
    names : sequence of str, or None
        Names of all columns. Features made from one column have the same name, which is listed once.

    Examples
    --------
    >>> name_columns(0, ["age", "size"]), name_columns([1, 0], ["age", "size"])
    ("column 'age'", "columns 'size', 'age'")
    >>> name_columns(range(3, 10), None)
    'columns 3, 4, 5, 6, 7 and 2 more (counted from 0)'
    """
    numbers = [int(column) for column in np.asarray(columns).ravel()]
    shown = list(dict.fromkeys(str(number) if names is None else repr(names[number]) for number in numbers))
    rest = f" and {len(shown) - MAX_LISTED} more" if len(shown) > MAX_LISTED else ""
    listed = f"column{'s' * (len(shown) > 1)} {', '.join(shown[:MAX_LISTED])}{rest}"
    return listed if names is not None else f"{listed} (counted from 0)"
