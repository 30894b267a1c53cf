"""The chart of a report as SVG, and where the map has its dots and names; no drawing library."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from lmssc.model_selection.intervals import wilson
from lmssc.plotting.latent_map import densest_point
from lmssc.plotting.style import COLOURS
from lmssc.report.rendering import render_macro

WIDTH = 1000
MARGIN = 30
MAX_HEIGHT = 660
# Shapes of the dots of a class, in turn, so that classes differ without colours too.
SHAPES = ("disc", "square", "ring", "frame")
# Size of a class name on the map, and the length from which it is cut.
NAME_SIZE = 24
MAX_NAME_LENGTH = 24


def calibration_chart(bins: Sequence[dict[str, Any]]) -> Markup:
    """Accuracy over confidence: a dot for each bin, larger with more answers, with the 95 % interval of the accuracy.

    Parameters
    ----------
    bins : sequence of dict
        From `lmssc.plotting.reliability.reliability`.

    Returns
    -------
    Markup
        An SVG element; the page needs a table with the numbers beside it.

    Examples
    --------
    >>> drawn = calibration_chart([{"bin": 9, "n": 40, "confidence": 0.95, "accuracy": 0.9}])
    >>> '<circle cx="342" cy="70"' in drawn
    True
    """
    most = max(one["n"] for one in bins)
    marks = []
    for one in bins:
        low, high = wilson(one["accuracy"], one["n"])
        marks.append(
            {
                "x": f"{57 + 300 * one['confidence']:.4g}",
                "y": f"{340 - 300 * one['accuracy']:.4g}",
                "low": f"{340 - 300 * low:.4g}",
                "high": f"{340 - 300 * high:.4g}",
                "radius": f"{4 + 8 * (one['n'] / most) ** 0.5:.3g}",
            }
        )
    return render_macro("charts.html", "calibration", marks)


def place(coordinates: NDArray) -> tuple[NDArray, int]:
    """Scale positions to a picture `WIDTH` wide and at most `MAX_HEIGHT` high inside its margins.

    Parameters
    ----------
    coordinates : ndarray of shape (n, 2)
        Positions, the second coordinate upwards.

    Returns
    -------
    positions : ndarray of shape (n, 2)
        The second coordinate downwards; the proportions are kept.
    height : int
        Height of the picture.

    Examples
    --------
    >>> positions, height = place(np.array([[0.0, 0.0], [2.0, 1.0]]))
    >>> positions.tolist(), height
    ([[30.0, 500.0], [970.0, 30.0]], 530)
    """
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    inner = np.array([WIDTH - 2 * MARGIN, MAX_HEIGHT])
    scale = float(np.min(inner / np.maximum(high - low, np.finfo(float).tiny ** 0.5)))
    size = np.array([inner[0], max(scale * (high - low)[1], 0.4 * inner[0])])
    centred = (coordinates - (low + high) / 2) * scale * [1, -1]
    return (MARGIN + size / 2 + centred).round(1), round(size[1]) + 2 * MARGIN


def place_names(positions: NDArray, codes: NDArray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Class names at the densest part of each class, largest class first; a name that would cover another is left out.

    Examples
    --------
    >>> spots = np.array([[100.0, 100.0], [100.0, 100.0], [110.0, 100.0], [400.0, 100.0]])
    >>> [name["text"] for name in place_names(spots, np.array([0, 0, 1, 2]), ["ant", "bee", "cow"])]
    ['ant', 'cow']
    """
    counts = np.bincount(codes, minlength=len(names))
    placed: list[dict[str, Any]] = []
    for code in np.argsort(-counts[: len(names)], kind="stable").tolist():
        if not counts[code]:
            continue
        text = names[code] if len(names[code]) <= MAX_NAME_LENGTH else names[code][: MAX_NAME_LENGTH - 1] + "…"
        x, y = densest_point(positions, codes == code)
        half = 0.3 * NAME_SIZE * len(text)
        if all(abs(x - one["x"]) > half + one["half"] or abs(y - one["y"]) > NAME_SIZE for one in placed):
            placed.append({"x": round(x, 1), "y": round(y, 1), "half": half, "code": code, "text": text})
    return [{**one, "x": f"{one['x']:g}", "y": f"{one['y']:g}"} for one in placed]


def mark(code: int) -> Markup:
    """The dot of a class for a legend.

    Examples
    --------
    >>> "color: #332288" in mark(0)
    True
    """
    return render_macro("charts.html", "mark", shape(code), colour(code))


def shape(code: int) -> str:
    """Shape of the dots of a class.

    Examples
    --------
    >>> shape(1), shape(6)
    ('square', 'ring')
    """
    return SHAPES[code % len(SHAPES)]


def colour(code: int) -> str:
    """Colour of a class.

    Examples
    --------
    >>> colour(0) == colour(len(COLOURS))
    True
    """
    return COLOURS[code % len(COLOURS)]


def as_data(value: Any) -> Markup:
    r"""JSON that can stand in a script element: nothing in it ends the element.

    Examples
    --------
    >>> print(as_data(["</script>"]))
    ["\u003c/script>"]
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
