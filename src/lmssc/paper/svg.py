"""SVG files made fit to stand in one HTML page: no clash of ids, nothing that runs or is fetched."""

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
# What describes or styles the file as a whole, and what could run or bring foreign content.
_DROPPED = {f"{{{_SVG}}}{name}" for name in ("metadata", "style", "script", "foreignObject", "title", "desc")}
_URL = re.compile(r"url\(\s*['\"]?([^'\")]*)['\"]?\s*\)")


def inline_svg(text: str, prefix: str, label: str) -> str:
    """An SVG file as an element of an HTML page.

    Parameters
    ----------
    text : str
        Content of the file.
    prefix : str
        Put before every id, so that no two pictures on a page share one.
    label : str
        What the picture shows, for those who cannot see it.

    Returns
    -------
    str
        The element. It has no width and height of its own, but a `viewBox`. Scripts, event handlers and links to
        anything outside are gone.

    Raises
    ------
    ValueError
        If `text` is not SVG.

    Examples
    --------
    >>> inline_svg('<svg xmlns="http://www.w3.org/2000/svg" width="9" viewBox="0 0 9 9"><g id="a"/></svg>', "f-", "g")
    '<svg viewBox="0 0 9 9" role="img" aria-label="g"><g id="f-a" /></svg>'
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"not an SVG file: {error}") from error
    if root.tag != f"{{{_SVG}}}svg":
        raise ValueError(f"not an SVG file: its root is {root.tag!r}")
    _clean(root, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", label)
    for element in root.iter():
        # HTML needs no namespaces, and its parser would take "svg:g" for an unknown element.
        element.tag = element.tag.rpartition("}")[2]
        if _HREF in element.attrib:
            element.set("href", element.attrib.pop(_HREF))
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, prefix: str) -> None:
    for child in list(element):
        if not isinstance(child.tag, str) or child.tag in _DROPPED:
            element.remove(child)
        else:
            _clean(child, prefix)
    for name, value in list(element.attrib.items()):
        if name.rpartition("}")[2].lower().startswith("on"):
            del element.attrib[name]
        elif name == "id":
            element.set(name, prefix + value)
        elif name in (_HREF, "href"):
            if value.startswith("#"):
                element.set(name, f"#{prefix}{value[1:]}")
            elif not value.startswith("data:image/"):
                del element.attrib[name]
        elif "url(" in value:
            element.set(name, _URL.sub(lambda match: _local(match[1], prefix), value))


def _local(target: str, prefix: str) -> str:
    return f"url(#{prefix}{target[1:]})" if target.startswith("#") else "none"
