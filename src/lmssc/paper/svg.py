"""Embed SVG files in one HTML page: unique ids, no scripts, no external content."""

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
# Elements that describe or style the whole file, or could run code or embed foreign content.
_DROPPED = {f"{{{_SVG}}}{name}" for name in ("metadata", "style", "script", "foreignObject", "title", "desc")}
_URL = re.compile(r"url\(\s*['\"]?([^'\")]*)['\"]?\s*\)")


def inline_svg(text: str, prefix: str, label: str) -> str:
    """Convert an SVG file to an element of an HTML page.

    Parameters
    ----------
    text : str
        Content of the file.
    prefix : str
        Prefix of every id, so that the ids of two pictures on a page never clash.
    label : str
        Text alternative for readers who cannot see the picture.

    Returns
    -------
    str
        The element, with a `viewBox` but no width and height. Scripts, event handlers and external links are removed.

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
        # HTML has no namespaces: its parser would not recognise "svg:g".
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
