"""Markdown as HTML: the subset that lmssc writes."""

import pytest

from lmssc.paper.markdown import markdown_to_html


def test_a_table_keeps_every_cell_where_it_is():
    html = markdown_to_html("## Title\n\n| a | b & c |\n| --- | --- |\n| **x** | 1 |\n|  | \\| 2\\* |", "t")
    assert '<th scope="col">a</th><th scope="col">b &amp; c</th>' in html
    assert '<tr><th scope="row"><strong>x</strong></th><td>1</td></tr>' in html
    assert '<tr><th scope="row"></th><td>| 2*</td></tr>' in html
    assert '<span class="stay" id="t-1-caption">Title</span>' in html


def test_tables_have_ids_of_their_own():
    table = "| a |\n| --- |\n| 1 |"
    html = markdown_to_html(f"{table}\n\n{table}", "t")
    assert 'id="t-0"' in html
    assert 'id="t-1"' in html


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", "`<b>`", "**<i>**", "| <u> |\n| --- |\n| <s> |"])
def test_markup_in_the_text_is_escaped(evil):
    html = markdown_to_html(evil, "t")
    assert not any(tag in html for tag in ("<script>", "<b>", "<i>", "<u>", "<s>"))


def test_lines_of_a_paragraph_are_joined():
    assert markdown_to_html("one\ntwo\n\n\nthree\n", "t") == "<p>one two</p>\n<p>three</p>"
