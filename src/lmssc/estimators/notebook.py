"""What a notebook shows of a fitted classifier beside scikit-learn's diagram: its views and links."""

from typing import Any

from markupsafe import Markup

from lmssc.estimators.view_scaling import describe_scalings

_CELL = Markup("<td style='text-align: {}; padding: 0 1em 0 0'>{}</td>")


class ViewsInNotebookMixin:
    """Adds the views and links of a fitted classifier to scikit-learn's HTML representation."""

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + views_as_html(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += views_as_html(self)
        return bundle


def views_as_html(clf: Any) -> str:
    """A table of the views and links of a classifier, "" before `fit`.

    Parameters
    ----------
    clf : classifier of lmssc
        Fitted or not.

    Returns
    -------
    str

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.2, random_state=0)
    >>> clf = LMSSC()
    >>> views_as_html(clf)
    ''
    >>> "<td style='text-align: left; padding: 0 1em 0 0'>pixels</td>" in views_as_html(
    ...     clf.fit(dict(zip(["pixels", "words", "sizes"], data.views)), data.y)
    ... )
    True
    """
    if not hasattr(clf, "view_names_"):
        return ""
    scalings = describe_scalings(clf)
    rows = [
        (name, f"{width:,}", scalings.get(name) or "")
        for name, width in zip(clf.view_names_, clf._layout.widths, strict=True)
    ]
    rows += [(name, "links", _note_on_links(clf, name)) for name in clf.graph_names_]
    head = Markup("").join(
        Markup("<th style='text-align: {}; padding: 0 1em 0 0'>{}</th>").format(side, text)
        for side, text in (("left", "view"), ("right", "features"), ("left", "scaling"))
    )
    body = Markup("").join(
        Markup("<tr>{}{}{}</tr>").format(
            _CELL.format("left", name), _CELL.format("right", size), _CELL.format("left", note)
        )
        for name, size, note in rows
    )
    return str(Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body))


def _note_on_links(clf: Any, name: str) -> str:
    """The weight of a graph, and what became of the weights of its links."""
    weight, weighted = getattr(clf, "link_weights_", {}).get(name), getattr(clf, "weighted_links_", {}).get(name, True)
    if weight is None:
        return ""
    return f"weight {weight:.3g}" + ("" if weighted else ", links without their weights")
