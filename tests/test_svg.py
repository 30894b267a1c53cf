"""SVG in a page: ids that do not clash, nothing that runs or is fetched."""

import io
import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from lmssc.paper.svg import inline_svg

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'


def drawn():
    figure = Figure()
    ax = figure.subplots()
    ax.plot([1, 2], marker="o")
    ax.imshow([[1, 2]])
    ax.set_title("text")
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def test_every_reference_lands_on_an_id_with_the_prefix():
    root = ElementTree.fromstring(inline_svg(drawn(), "one-", "a line"))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    text = ElementTree.tostring(root, encoding="unicode")
    references = re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', text)
    assert len(references) > 3
    assert len(ids) == len(set(ids))
    assert all(name.startswith("one-") for name in ids)
    assert {first or second for first, second in references} <= set(ids)


def test_pictures_keep_their_shape_and_get_a_label():
    root = ElementTree.fromstring(inline_svg(drawn(), "a-", 'what "it" shows & more'))
    assert root.tag == "svg"
    assert root.get("viewBox")
    assert root.get("width") is None
    assert (root.get("role"), root.get("aria-label")) == ("img", 'what "it" shows & more')
    kept = {element.tag for element in root.iter()}
    assert {"path", "image"} <= kept
    assert not kept & {"metadata", "style"}


@pytest.mark.parametrize(
    ("evil", "trace"),
    [
        ("<script>fetch('http://x.example')</script>", "fetch"),
        ('<g onclick="run()" ONLOAD="run()"/>', "run"),
        ('<image xlink:href="http://x.example/a.png"/>', "x.example"),
        ('<a href="javascript:run()"/>', "run"),
        ('<g style="fill: url(http://x.example/a.svg#b)"/>', "x.example"),
        ("<style>@import 'http://x.example'</style>", "x.example"),
        ("<foreignObject><iframe src='http://x.example'/></foreignObject>", "x.example"),
    ],
)
def test_nothing_runs_and_nothing_is_fetched(evil, trace):
    assert trace in evil
    assert trace not in inline_svg(f"{HEAD}{evil}</svg>", "a-", "b")


@pytest.mark.parametrize("text", ["", "<svg", "<html/>", "plain text"])
def test_what_is_no_svg_is_refused(text):
    with pytest.raises(ValueError, match="not an SVG file"):
        inline_svg(text, "a-", "b")
