"""Write Markdown tables, and convert the Markdown that lmssc writes to HTML."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from lmssc.report.rendering import environment

# Code, bold, or a character after a backslash, whichever comes first.
_INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\\([\\*_|`])")


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    r"""Format a table in Markdown. Non-breaking spaces keep "99.4 ± 0.5" on one line.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    >>> markdown_table(["a"], [["1 ± 2"]])[-9:]
    '| 1\xa0±\xa02 |'
    """
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace(" ± ", "\xa0±\xa0") for cell in row) + " |" for row in rows)


def markdown_to_html(text: str, prefix: str) -> Markup:
    r"""Convert Markdown with headings, paragraphs and tables to HTML.

    Parameters
    ----------
    text : str
        Markdown. Empty lines separate the blocks; headings become `h3`.
    prefix : str
        Prefix of the ids of tables.

    Returns
    -------
    Markup
        HTML with all text escaped. Tables are in boxes that scroll, labelled by the heading above.

    Examples
    --------
    >>> print(markdown_to_html("## A & B\n\nSee `x<y`, **not** \\*.", "p"))
    <h3>A &amp; B</h3>
    <p>See <code>x&lt;y</code>, <strong>not</strong> *.</p>
    """
    blocks: list[dict[str, Any]] = []
    caption = Markup()
    for number, block in enumerate(re.split(r"\n\s*\n", text.strip())):
        if block.startswith("#"):
            caption = _inline(block.lstrip("#").strip())
            blocks.append({"kind": "heading", "text": caption})
        elif block.startswith("|"):
            head, _, *body = ([_inline(cell) for cell in _cells(line)] for line in block.splitlines())
            name = f"{prefix}-{number}"
            blocks.append({"kind": "table", "name": name, "caption": caption, "head": head, "rows": body})
        else:
            blocks.append({"kind": "paragraph", "text": _inline(" ".join(block.splitlines()))})
    return Markup(environment("lmssc.paper").get_template("markdown.html").render(blocks=blocks).strip())


def _cells(line: str) -> list[str]:
    """Split a row of a table at its bars, except at escaped ones."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _inline(text: str) -> Markup:
    return Markup(_INLINE.sub(_mark_up, str(escape(text))))


def _mark_up(match: re.Match[str]) -> str:
    code, bold, plain = match.groups()
    return f"<code>{code}</code>" if code else f"<strong>{bold}</strong>" if bold else plain
