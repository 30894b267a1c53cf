"""The best of some choices in order, without trying all."""

from collections.abc import Callable, Sequence


def climb(choices: Sequence[float], value: Callable[[float], float]) -> float:
    """The choice with the largest value, if values first rise and then fall: from the middle, uphill.

    No choice is tried twice.

    Examples
    --------
    >>> climb([1, 2, 3, 4, 5], lambda x: -abs(x - 2))
    2
    """
    place = middle = len(choices) // 2
    best = value(choices[place])
    for step in (-1, 1):
        while 0 <= place + step < len(choices) and (found := value(choices[place + step])) > best:
            place, best = place + step, found
        if place != middle:  # values fall on the other side
            break
    return choices[place]
