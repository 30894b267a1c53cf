"""The report: what it says is checked against the numbers it is made from."""

import re

import pytest

from lmssc.paper.findings import findings
from lmssc.paper.reproduction_page import write_report
from lmssc.paper.tables import read_tables
from made_up import write_results
from parsing import Page

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><defs><g id="a"/></defs><g id="b"/></svg>'


@pytest.fixture
def results(tmp_path):
    write_results(tmp_path / "reproduce")
    return tmp_path / "reproduce"


def read(results):
    text = " ".join(write_report(results).read_text(encoding="utf-8").split())
    return text, Page(text)


def test_the_page_is_whole_and_its_links_land(results):
    text, page = read(results)
    assert text.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert page.links
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert "{{" not in text
    assert "{%" not in text


def test_nothing_is_fetched_from_elsewhere(results):
    text, page = read(results)
    assert not re.search(r"https?://", text)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}


def test_the_papers_value_stands_beside_ours(results):
    _, page = read(results)
    overview = next(row for row in page.rows if row[:2] == ["Sonar", "20 %"])
    assert overview[2:] == ["80.2 ± 4.7", "75.0 (74.0 to 76.0)", "▼ −5.2", "74.0", "79.0", "76.0 SVC <RBF> & more", "–"]
    full = [row for row in page.rows if row[0] == "AMGL"]
    assert len(full) == 1
    assert full[0][1:7] == ["AMGL", "71.8 ± 3.4", "72.0 ± 3.0", "70.5 to 73.5", "20", "≈ +0.2"]
    assert full[0][9] == "< 0.001"


def test_the_best_of_a_rate_has_a_star(results):
    _, page = read(results)
    starred = [row[0] for row in page.rows if any(cell.startswith("★") for cell in row)]
    assert starred == ["SVC <RBF> & more", "LMSSC", "LMSSC"]


def test_the_oracle_is_called_one_wherever_it_stands(results):
    _, page = read(results)
    headings = [cell for row in page.rows for cell in row if "oracle" in cell]
    assert len(headings) == 4  # the overview and one table for each of three data sets
    assert all("test labels" in heading for heading in headings)


def test_text_from_files_is_escaped(results):
    text, page = read(results)
    assert "<script>" not in text
    assert "ValueError: &lt;script&gt;" in text
    assert any(row[0] == "SVC <RBF> & more" for row in page.rows)


def test_runs_are_counted(results):
    text, _ = read(results)
    assert (
        "4 runs of a method on a split, 1.5 hours of fitting; 1 failed, the first of them AMGL on sonar at 20 %" in text
    )


def test_findings_say_what_the_numbers_say(results):
    said = findings(read_tables(results / "tables.csv"))
    assert said[0].startswith("In 1 of 3 cells")
    assert "inside our 95 % interval" in said[0]
    assert "HW (handwritten digits) 10 % (−0.1)" in said[0]
    assert "higher than the paper's: BBC 10 % (+4.1)" in said[1]
    assert "lower than the paper's: Sonar 20 % (−5.2)" in said[2]
    assert "In 1 of 2 cells LMSSC has the best mean" in said[3]
    assert "it is first in 2 of them" in said[3]
    assert "by +1.0 to +5.0 points, on average by +3.0" in said[4]
    assert "On BBC, always answering the largest class is right 92.4 % of the time" in said[5]
    assert len(said) == 6


def test_figures_stand_in_order_with_captions(results):
    (results / "figures").mkdir()
    (results / "figure-data").mkdir()
    for name in ("graph-sonar", "fig1-sensitivity", "graph-bbc", "odd"):
        (results / "figures" / f"{name}.svg").write_text(SVG)
    caption = '{"section": "Graphs", "title": "A <b>", "text": "Text & more", "alt": "two squares"}'
    (results / "figure-data" / "graph-bbc.json").write_text(caption)
    text, page = read(results)
    drawn = [attrs["id"] for tag, attrs in page.tags if tag == "figure"]
    assert drawn == ["figure-fig1-sensitivity", "figure-graph-sonar", "figure-odd", "figure-graph-bbc"]
    assert "<strong>A &lt;b&gt;.</strong> Text &amp; more" in text
    assert 'aria-label="two squares"' in text
    assert {"graph-bbc-a", "graph-sonar-a"} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_the_audit_is_shown_if_there_is_one(results):
    assert 'id="audit"' not in read(results)[0]
    (results.parent / "audit").mkdir()
    (results.parent / "audit" / "audit_summary.csv").write_text("part\n")
    (results.parent / "audit" / "audit.md").write_text(
        "## Row order\n\n| data | rows |\n| --- | --- |\n| sonar | <sorted> |"
    )
    (results.parent / "audit" / "row-order.svg").write_text(SVG)
    text, page = read(results)
    assert ["data", "rows"] in page.rows
    assert ["sonar", "<sorted>"] in page.rows
    assert "#audit" in page.links
    assert 'id="figure-row-order"' in text


def test_without_tables_it_says_what_writes_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"tables\.csv is not there; `lmssc reproduce --out"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("figures/a.svg", "<html/>", r"a\.svg: not an SVG file"), ("figure-data/a.json", "{", r"a\.json is not JSON")],
)
def test_a_damaged_file_is_named_and_nothing_is_written(results, name, content, message):
    for folder in ("figures", "figure-data"):
        (results / folder).mkdir()
    (results / "figures" / "a.svg").write_text(SVG)
    (results / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        write_report(results)
    assert not (results / "report.html").exists()
