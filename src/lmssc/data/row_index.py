"""Check of pandas indexes: rows are joined by position, which is wrong if the indexes disagree."""

from collections.abc import Iterable, Mapping
from typing import Any


def index_of(data: Any) -> Any:
    """The index of a pandas frame or series; None for anything else.

    Examples
    --------
    >>> import pandas as pd
    >>> index_of(pd.Series([1, 2], index=["a", "b"])).tolist(), index_of([1, 2])
    (['a', 'b'], None)
    """
    index = getattr(data, "index", None)
    # Lists have a method `index`.
    return index if hasattr(index, "equals") and hasattr(data, "iloc") else None


def is_default(index: Any) -> bool:
    """Whether an index is the default of pandas, 0, 1, …, which names nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> is_default(pd.RangeIndex(3)), is_default(pd.RangeIndex(1, 4)), is_default(pd.Index(["a"]))
    (True, False, False)
    """
    return getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1


def common_index(parts: Iterable[Any]) -> Any:
    """The index of the samples of several frames: the first that names them, else the first; None without any.

    Examples
    --------
    >>> import pandas as pd
    >>> common_index([pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [2]}, index=["p"])]).tolist()
    ['p']
    """
    indexes = [index for index in map(index_of, parts) if index is not None]
    return min(indexes, key=is_default, default=None)


def check_indexes(parts: Mapping[str, Any]) -> None:
    """Refuse frames and series whose indexes say that their rows are not the same samples in the same order.

    An index that counts the rows from 0 stands for positions and fits any other, unless the other has the same
    numbers, perhaps as text, in another order. Any other two must be equal.

    Parameters
    ----------
    parts : mapping of str to any
        What has a row for each sample, by the name that messages use.

    Examples
    --------
    >>> import pandas as pd
    >>> view, y = pd.DataFrame({"a": [1, 2]}, index=["p", "q"]), pd.Series([0, 1], index=["q", "p"])
    >>> check_indexes({"X": view, "y": y})
    Traceback (most recent call last):
        ...
    ValueError: X and y have the same index in another order. Rows are joined by position: bring them into one order \
first, for example with reindex, or pass arrays (.to_numpy()) if the rows do belong together
    """
    indexes = {name: index_of(part) for name, part in parts.items()}
    indexes = {name: index for name, index in indexes.items() if index is not None}
    if not indexes:
        return
    # The others are compared with the first that names samples.
    first = min(indexes, key=lambda name: is_default(indexes[name]))
    reference = indexes[first]
    for name, index in indexes.items():
        if not index.equals(reference):
            _refuse_if_other(first, reference, name, index)


def _refuse_if_other(first: str, reference: Any, name: str, index: Any) -> None:
    ids, others = set(reference), set(index)
    same = len(reference) == len(index) and ids == others
    if same or (is_default(index) and _are_shuffled_numbers(reference, len(index))):
        # A default index is in `name` only if it was given first.
        pair = f"{name} and {first}" if is_default(index) else f"{first} and {name}"
        raise ValueError(
            f"{pair} have the same index in another order. Rows are joined by position: bring them into one order "
            "first, for example with reindex, or pass arrays (.to_numpy()) if the rows do belong together"
        )
    if is_default(index):
        return
    lone = next((value for value in [*reference, *index] if (value in ids) != (value in others)), None)
    example = "some are there several times" if lone is None else f"{lone!r} is not"
    raise ValueError(
        f"{first} and {name} have different indexes: {len(ids & others)} of {len(ids | others)} ids are in both "
        f"({example}{_types(first, ids, name, others)}). Rows are joined by position: keep the same ids in the same "
        "order, for example with loc or reindex, or pass arrays (.to_numpy()) if the rows do belong together"
    )


def _are_shuffled_numbers(ids: Any, count: int) -> bool:
    """Whether ids are the texts of 0, ..., count - 1 in another order, as an index read from a file may be."""
    if len(ids) != count or not all(isinstance(value, str) and value.isascii() and value.isdigit() for value in ids):
        return False
    numbers = [int(value) for value in ids]
    return numbers != list(range(count)) and sorted(numbers) == list(range(count))


def _types(first: str, ids: set, name: str, others: set) -> str:
    """Part of the message if the ids have different types."""
    one, other = ("/".join(sorted({type(value).__name__ for value in values})) for values in (ids, others))
    return "" if one == other else f"; ids are {one} in {first}, {other} in {name}"
