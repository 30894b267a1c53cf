"""Charts and the map as SVG, written by hand so that a report needs no drawing library."""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.model_selection.intervals import wilson
from lmssc.plotting.style import COLOURS

WIDTH = 1000
MARGIN = 30
# Shapes of the dots of a class, in turn, told apart without colours; with ten of these they make twenty pairs.
SHAPES = ("disc", "square", "ring", "frame")


def calibration_chart(bins: Sequence[dict[str, Any]]) -> str:
    """Accuracy over confidence: a dot a bin, the larger the more answers it has, with the 95 % interval of accuracy.

    Parameters
    ----------
    bins : sequence of dict
        What `lmssc.plotting.reliability.reliability` gives.

    Returns
    -------
    str
        An SVG element; a table beside it has to have the numbers.

    Examples
    --------
    >>> drawn = calibration_chart([{"bin": 9, "n": 40, "confidence": 0.95, "accuracy": 0.9}])
    >>> '<circle cx="342" cy="70"' in drawn
    True
    """
    most = max(one["n"] for one in bins)
    ticks = "".join(
        f'<path d="M{57 + 3 * t} 340v5M57 {340 - 3 * t}h-5" class="axis"/>'
        f'<text x="{57 + 3 * t}" y="360" text-anchor="middle">{t}</text>'
        f'<text x="48" y="{344 - 3 * t}" text-anchor="end">{t}</text>'
        for t in range(0, 101, 20)
    )
    marks = ""
    for one in bins:
        x = f"{57 + 300 * one['confidence']:.4g}"
        low, high = (340 - 300 * bound for bound in wilson(one["accuracy"], one["n"]))
        radius = 4 + 8 * (one["n"] / most) ** 0.5
        marks += (
            f'<path d="M{x} {low:.4g}V{high:.4g}" class="interval"/>'
            f'<circle cx="{x}" cy="{340 - 300 * one["accuracy"]:.4g}" r="{radius:.3g}" class="mark"/>'
        )
    return (
        '<svg viewBox="0 0 380 400" role="img" class="chart" aria-label="Share of right answers over confidence; '
        'the table has the numbers"><path d="M57 340L357 40" class="guide"/><path d="M57 40V340H357" class="axis"/>'
        f'{ticks}{marks}<text x="207" y="385" text-anchor="middle">confidence (%)</text>'
        '<text x="-190" y="14" text-anchor="middle" transform="rotate(-90)">right (%)</text></svg>'
    )


def place(coordinates: NDArray) -> tuple[NDArray, int]:
    """Positions in a picture `WIDTH` wide, with the proportions kept unless it would be a strip or a tower.

    Parameters
    ----------
    coordinates : ndarray of shape (n, 2)
        Positions, the second coordinate upwards.

    Returns
    -------
    positions : ndarray of shape (n, 2)
        The second coordinate downwards.
    height : int
        Of the picture.

    Examples
    --------
    >>> positions, height = place(np.array([[0.0, 0.0], [2.0, 1.0]]))
    >>> positions.tolist(), height
    ([[30.0, 500.0], [970.0, 30.0]], 530)
    """
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    span = np.maximum(high - low, np.finfo(float).tiny)
    inner = WIDTH - 2 * MARGIN
    height = float(np.clip(inner * (span[1] / span[0]), 0.4 * inner, 0.7 * inner))
    unit = (coordinates - low) / span
    positions = np.column_stack([MARGIN + inner * unit[:, 0], MARGIN + height * (1 - unit[:, 1])])
    return positions.round(1), round(height) + 2 * MARGIN


def map_svg(positions: NDArray, height: int, codes: NDArray, given: NDArray, first: Sequence[int], label: str) -> str:
    """The samples as dots of constant size; those of `first` can be reached by the tab key.

    Parameters
    ----------
    positions : ndarray of shape (n, 2)
        From `place`.
    height : int
        Of the picture.
    codes : ndarray of int of shape (n,)
        Class of each sample, for its colour and shape.
    given : ndarray of bool of shape (n,)
        Samples whose label was given; they get a black rim.
    first : sequence of int
        Samples that get a stop of the tab key, in this order.
    label : str
        What the map shows.

    Returns
    -------
    str
        An SVG element.

    Examples
    --------
    >>> drawn = map_svg(np.array([[5.0, 7.5]]), 100, np.array([0]), np.array([True]), [0], "a map")
    >>> '<path class="rim" d="M5 7.5h.01"/>' in drawn
    True
    """
    dots = [f"M{x:g} {y:g}h.01" for x, y in positions.tolist()]
    layers = []
    # Unlabelled samples first: the few labelled ones stay visible on top.
    for rim in (False, True):
        for code in np.unique(codes):
            here = np.flatnonzero((codes == code) & (given == rim))
            if len(here):
                path = "".join(dots[i] for i in here)
                if rim:
                    layers.append(f'<path class="rim" d="{path}"/>')
                layers.append(_dots(int(code), path))
    stops = "".join(f'<path class="stop" tabindex="0" role="img" data-i="{i}" d="{dots[i]}"/>' for i in first)
    return (
        f'<svg id="map-svg" viewBox="0 0 {WIDTH} {height}" tabindex="0" role="group" aria-label="{escape(label)}" '
        f'aria-describedby="map-help">{"".join(layers)}{stops}<path id="map-cursor" d=""/></svg>'
    )


def _dots(code: int, path: str) -> str:
    """All dots of a class; a line of no length is as round or square as its ends, however far the map is zoomed."""
    ends = " square" if shape(code) in ("square", "frame") else ""
    drawn = f'<path class="dots{ends}" data-class="{code}" stroke="{colour(code)}" d="{path}"/>'
    if shape(code) in ("ring", "frame"):
        drawn += f'<path class="hole{ends}" data-class="{code}" d="{path}"/>'
    return drawn


def mark(code: int) -> str:
    """The dot of a class for a legend, ten wide and high.

    Examples
    --------
    >>> mark(0)
    '<circle cx="5" cy="5" r="5" fill="#332288"/>'
    """
    if shape(code) in ("disc", "ring"):
        drawn = f'<circle cx="5" cy="5" r="5" fill="{colour(code)}"/>'
        return drawn + ('<circle cx="5" cy="5" r="2.2" fill="#fff"/>' if shape(code) == "ring" else "")
    drawn = f'<rect width="10" height="10" fill="{colour(code)}"/>'
    return drawn + ('<rect x="3" y="3" width="4" height="4" fill="#fff"/>' if shape(code) == "frame" else "")


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


def as_data(value: Any) -> str:
    r"""JSON that can stand in a script element: nothing in it ends the element.

    Examples
    --------
    >>> as_data(["</script>"])
    '["\\u003c/script>"]'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
