"""Formulas as MathML, which browsers draw without a script, a font or a network."""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

log = logging.getLogger(__name__)


def visit_math(translator: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    translator.body.append(to_mathml(node))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.math_block) -> None:
    """Write a display formula."""
    translator.body.append(f'<div class="math">{to_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def to_mathml(node: nodes.Element, *, as_block: bool = False) -> str:
    """The formula of a node as MathML; a warning if docutils cannot translate it."""
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        log.warning("%s in the formula %s", error, node.astext(), location=node)
        return ""


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_math, None), block_renderers=(visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
