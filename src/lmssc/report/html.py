"""Pieces of HTML that all pages of lmssc share."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from lmssc.model_selection.intervals import wilson


def style_sheet() -> str:
    """The style of all pages: light and dark, on screens of any width and on paper.

    Examples
    --------
    >>> "prefers-color-scheme: dark" in style_sheet()
    True
    """
    return files("lmssc.report").joinpath("style.css").read_text(encoding="utf-8")


def box(name: str, caption: str, table: str) -> str:
    """A table that scrolls in a box of its own, which the keyboard reaches.

    Parameters
    ----------
    name : str
        Its id.
    caption, table : str
        HTML: what it shows, and what stands inside the table element.

    Returns
    -------
    str
    """
    label = f"{escape(name)}-caption"
    return (
        f'<div class="scroll" role="region" aria-labelledby="{label}" tabindex="0"><table id="{escape(name)}">'
        f'<caption><span class="stay" id="{label}">{caption}</span></caption>{table}</table></div>'
    )


def table(name: str, caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A `box` with a table whose first column names the rows.

    Parameters
    ----------
    name : str
        Its id.
    caption : str
        What it shows, as text.
    head : sequence of str
        Names of the columns, as text.
    rows : iterable of sequence of str
        Cells as HTML.

    Returns
    -------
    str

    Examples
    --------
    >>> "<td>1 &lt; 2</td>" in table("t", "A & B", ["what", "value"], [["x", "1 &lt; 2"]])
    True
    """
    columns = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return box(name, escape(caption), f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody>")


def bar(share: float) -> str:
    """A bar of that share of its full length, for a cell of a table that also has the number.

    Examples
    --------
    >>> bar(0.25)[-36:]
    '<rect width="25" height="10"/></svg>'
    """
    width = f"{100 * min(max(share, 0.0), 1.0):.4g}"
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width}" height="10"/></svg>'
    )


def percent(share: float) -> str:
    """A share as a percentage with one digit; a dash for NaN.

    Examples
    --------
    >>> percent(0.4567), percent(float("nan"))
    ('45.7 %', '–')
    """
    return "–" if share != share else f"{100 * share:.1f} %"


def between(share: float, n: int) -> str:
    """The 95 % interval of a share that was measured on `n` samples.

    Examples
    --------
    >>> between(0.9, 10)
    '59.6 % to 98.2 %'
    """
    low, high = wilson(share, n)
    return f"{percent(low)} to {percent(high)}"
