"""The Markdown that lmssc itself writes, and the same as HTML: headings, paragraphs, tables, code, bold."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from lmssc.report.html import box

# Code, bold, or a character after a backslash, whichever comes first.
_INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\\([\\*_|`])")


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def markdown_to_html(text: str, prefix: str) -> str:
    r"""Markdown with headings, paragraphs and tables as HTML.

    Parameters
    ----------
    text : str
        Markdown. Blocks are parted by empty lines; ``##`` headings become `h3`.
    prefix : str
        Starts the ids of tables.

    Returns
    -------
    str
        HTML, with all text escaped. Tables stand in boxes that scroll, named by the heading above.

    Examples
    --------
    >>> markdown_to_html("## A & B\n\nSee `x<y`, **not** \\*.", "p")
    '<h3>A &amp; B</h3>\n<p>See <code>x&lt;y</code>, <strong>not</strong> *.</p>'
    """
    parts: list[str] = []
    heading = ""
    for number, block in enumerate(re.split(r"\n\s*\n", text.strip())):
        if block.startswith("#"):
            heading = block.lstrip("#").strip()
            parts.append(f"<h3>{_inline(heading)}</h3>")
        elif block.startswith("|"):
            parts.append(_table(block, f"{prefix}-{number}", heading))
        else:
            parts.append(f"<p>{_inline(' '.join(block.splitlines()))}</p>")
    return "\n".join(parts)


def _table(block: str, name: str, heading: str) -> str:
    head, _, *body = (_cells(line) for line in block.splitlines())
    columns = "".join(f'<th scope="col">{_inline(text)}</th>' for text in head)
    lines = "".join(
        f'<tr><th scope="row">{_inline(line[0])}</th>'
        + "".join(f"<td>{_inline(text)}</td>" for text in line[1:])
        + "</tr>"
        for line in body
    )
    return box(name, _inline(heading), f"<thead><tr>{columns}</tr></thead><tbody>{lines}</tbody>")


def _cells(line: str) -> list[str]:
    """Texts between bars that no backslash stands before."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _inline(text: str) -> str:
    return _INLINE.sub(_mark_up, escape(text, quote=False))


def _mark_up(match: re.Match[str]) -> str:
    code, bold, plain = match.groups()
    return f"<code>{code}</code>" if code else f"<strong>{bold}</strong>" if bold else plain
