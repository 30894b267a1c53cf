"""Is it worth going on? What more labels would bring, from how the expected accuracy has grown so far."""

from collections.abc import Mapping
from typing import Any

import numpy as np

# The estimate is for so many more labels, and from so many of the last points of the curve.
MORE, MAX_POINTS = 20, 40
# Fewer points, or labels, say nothing.
MIN_POINTS = 5
# A gain below this is hardly worth the labels.
MIN_GAIN = 0.002


def worth_going_on(curve: Mapping[int, float]) -> dict[str, Any] | None:
    """Estimate the gain in accuracy of more labels: errors fall about as a power of the number of labels.

    Parameters
    ----------
    curve : mapping of int to float
        Expected accuracy of the answers by number of labels.

    Returns
    -------
    dict or None
        `more` labels would bring about `gain`, the accuracy would be about `then`; `worth` is whether that is more
        than next to nothing. None if there are too few points to tell.

    Examples
    --------
    >>> worth_going_on({n: 1 - 2 / n for n in range(10, 41)})
    {'more': 20, 'gain': 0.0167, 'then': 0.9667, 'worth': True}
    >>> worth_going_on({n: 0.99 for n in range(10, 31)})
    {'more': 20, 'gain': 0.0, 'then': 0.99, 'worth': False}
    """
    numbers = sorted(n for n in curve if n > 1)[-MAX_POINTS:]
    if len(numbers) < MIN_POINTS:
        return None
    errors = np.maximum([1 - curve[n] for n in numbers], 1e-6)
    slope, offset = np.polyfit(np.log(numbers), np.log(errors), 1)
    last = numbers[-1]
    now, then = (float(np.exp(offset + slope * np.log(n))) for n in (last, last + MORE))
    # From where the curve is now, by the ratio that the fit expects.
    gain = float(errors[-1]) * (1 - min(then / now, 1.0))
    return {
        "more": MORE,
        "gain": round(gain, 4) + 0.0,
        "then": round(float(curve[last]) + gain, 4),
        "worth": bool(gain >= MIN_GAIN),
    }
