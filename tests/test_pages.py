"""Pages filled from the CSVs, and the committed ones are."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from accuracy_page import SUMMARY as FRESH_SUMMARY
from accuracy_page import accuracy_chart, summary_markdown
from all_cells import closest, closest_of_all, read_all, single_peers
from pages import AUDIT, TABLES, fill_blocks, filled_pages, results_blocks

from lmssc.paper.published_audit import SUMMARY

ROOT = Path(__file__).parents[1]
BLOCK = "<!-- results: {} -->\n{}\n<!-- end -->\n"


def test_only_what_is_between_the_markers_changes():
    page = "# Page\n" + BLOCK.format("a", "old\n\nlines") + "Text.\n" + BLOCK.format("b", "") + BLOCK.format("a", "old")
    filled = fill_blocks(page, {"a": "A\\1", "b": "| b |", "c": "unused"})
    assert filled == (
        "# Page\n" + BLOCK.format("a", "A\\1") + "Text.\n" + BLOCK.format("b", "| b |") + BLOCK.format("a", "A\\1")
    )
    assert fill_blocks(filled, {"a": "A\\1", "b": "| b |"}) == filled


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (BLOCK.format("x", ""), "nothing to put into the block 'x'; there are a, b"),
        ("<!-- results: a -->\n" + BLOCK.format("b", ""), "the block 'a' has no <!-- end -->"),
        (BLOCK.format("b", "") + "<!-- results: a -->\n", "has no <!-- end -->"),
    ],
)
def test_bad_markers(page, message):
    with pytest.raises(ValueError, match=message):
        fill_blocks(page, {"a": "A", "b": "B"})


def test_pages_come_from_the_csvs(tmp_path):
    from lmssc.paper.tables import TABLE_COLUMNS
    from lmssc.persistence.atomic import write_csv

    for path in (TABLES, AUDIT):
        (tmp_path / path).parent.mkdir(parents=True)
    row = dict.fromkeys(TABLE_COLUMNS, float("nan")) | {"dataset": "sonar", "rate": 0.1, "method": "LMSSC"}
    row |= {"paper_name": "LMSSC", "fixed_mean": 71.5, "fixed_n": 1, "cv_n": 0, "best_by_test_n": 0}
    write_csv(tmp_path / TABLES, TABLE_COLUMNS, [row])
    line = {"part": "row order", "dataset": "sonar", "rate": 0.2, "what": "shuffled", "n": 1, "mean": 64.25}
    paper = {
        "part": "constant, paper",
        "dataset": "bbc",
        "rate": 0.1,
        "what": "LMSSC",
        "n": 20,
        "mean": 0.5,
        "std": 1.0,
    }
    paper |= {"std": 1.0, "low": -1.0, "high": 2.0, "paper_mean": 92.9, "paper_std": 1.0}
    write_csv(tmp_path / AUDIT, SUMMARY, [dict.fromkeys(SUMMARY) | line, dict.fromkeys(SUMMARY) | paper])
    (tmp_path / "README.md").write_text(BLOCK.format("lmssc", "") + BLOCK.format("audit", ""))
    (text,) = (page.replace("\xa0", " ") for page in filled_pages(tmp_path).values())
    assert "| Sonar | 10 % | – | 71.5 (1 split) |" in text
    assert "| Sonar 20 % | 1 |" in text
    assert "64.2" in text


def test_summary_of_methods_over_cells():
    # Means of the splits: x 0.6, 0.5, 0.9; y 0.6, 0.8, 0.7; z 0.2, 0.7, 0.6.
    accuracy = {
        "a": {
            0.1: {"x": {0: 0.5, 1: 0.7}, "y": {0: 0.6, 1: 0.6}, "z": {0: 0.1, 1: 0.3}},
            0.3: {"x": {0: 0.5}, "y": {0: 0.8}, "z": {0: 0.7}},
        },
        "b": {0.1: {"x": {0: 0.9}, "y": {0: 0.7}, "z": {0: 0.6}}},
    }
    halves = {
        name: {rate: {m: {0: 0.5} for m in cell} for rate, cell in rates.items()} for name, rates in accuracy.items()
    }
    table = summary_markdown(dict.fromkeys(FRESH_SUMMARY, halves) | {"accuracy": accuracy})
    assert table.splitlines()[2:] == [
        "| y | 70.0 | 50.0 | 0.500 | 0.50 | 1.50 | 2 of 3 |",  # ranks 1.5, 1, 2
        "| x | 66.7 | 50.0 | 0.500 | 0.50 | 1.83 | 2 of 3 |",  # 1.5, 3, 1
        "| z | 50.0 | 50.0 | 0.500 | 0.50 | 2.67 | 0 of 3 |",  # 3, 2, 3
    ]


def test_a_chart_has_a_row_for_each_data_set_in_order_of_the_difference():
    values = {
        "even": {0.1: {"LMSSC": {0: 0.8}, "1-NN": {0: 0.8}}},
        "<ahead>": {0.1: {"LMSSC": {0: 0.9}, "1-NN": {0: 0.5}}, 0.3: {"LMSSC": {0: 1.0}, "1-NN": {0: 0.8}}},
        "behind": {0.1: {"LMSSC": {0: 0.6}, "1-NN": {0: 0.7}, "constant answer": {0: 0.99}}},
    }
    root = ElementTree.fromstring(accuracy_chart(values, "A chart"))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-6:] == ["<ahead>", "+30.0", "even", "+0.0", "behind", "−10.0"]
    circles = [(c.get("class"), float(c.get("cx"))) for c in root.iter("{http://www.w3.org/2000/svg}circle")][2:]
    # From 50 % at 150 to 100 % at 630.
    assert circles[:2] == [("other", pytest.approx(150 + 480 * 0.3)), ("ours", pytest.approx(150 + 480 * 0.9))]


def test_numbers_with_a_deviation_do_not_wrap():
    blocks = results_blocks(ROOT)
    assert any("\xa0±\xa0" in block for block in blocks.values())
    assert not [line for block in blocks.values() for line in block.splitlines() if line[:1] == "|" and " ± " in line]


def test_committed_pages_are_what_the_csvs_give():
    if not (ROOT / TABLES).exists():
        pytest.skip(f"{TABLES} is not there")
    for page, text in filled_pages(ROOT).items():
        assert page.read_text(encoding="utf-8") == text, f"{page.name} is not up to date: run make pages"


def test_a_cell_is_far_behind_only_beyond_two_standard_errors():
    ours = dict.fromkeys(range(4), 0.8)
    surely = closest("a", 0.1, {"LMSSC": ours, "SVC": {0: 0.82, 1: 0.83, 2: 0.82, 3: 0.83}})
    hardly = closest("a", 0.1, {"LMSSC": ours, "SVC": {0: 0.92, 1: 0.75, 2: 0.9, 3: 0.73}})
    level = closest("a", 0.1, {"LMSSC": ours, "SVC": {0: 0.8025}, "constant answer": {0: 0.99}})
    assert [cell.gain for cell in (surely, hardly, level)] == pytest.approx([-2.5, -2.5, -0.25])
    assert [cell.is_far_behind for cell in (surely, hardly, level)] == [True, False, False]
    assert [cell.is_level for cell in (surely, hardly, level)] == [False, False, True]


def test_methods_are_compared_on_the_splits_that_both_ran_on():
    cell = {"LMSSC": {0: 0.9, 1: 0.5}, "SVC": {1: 0.5, 2: 0.1}, "1-NN": {0: 0.8}}
    found = closest("a", 0.1, cell)
    assert (found.peer, found.gain, found.ours) == ("SVC", 0.0, pytest.approx(70))
    assert {name: peer.cells for name, peer in single_peers({"a": {0.1: cell}}).items()} == {"SVC": 1, "1-NN": 1}


def test_the_page_says_how_many_cells_are_level():
    cells = closest_of_all(read_all(ROOT))
    share = 100 * sum(cell.is_level for cell in cells) / len(cells)
    page = " ".join((ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8").split())
    assert f"in 90 % of the cells, and reaches {share:.1f} %" in page
