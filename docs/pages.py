"""Pages whose tables and charts come from the CSVs under ``results/``, so that no number is typed by hand."""

import re
from collections.abc import Mapping
from pathlib import Path

from accuracy_page import FOLDER, accuracy_blocks, accuracy_charts
from all_cells import all_cells_blocks

from lmssc.paper.audit_page import make_page
from lmssc.paper.printed_tables import DATASETS
from lmssc.paper.published_audit import read_summary
from lmssc.paper.tables import dataset_markdown, lmssc_markdown, read_tables

PAGES = ("README.md", "docs/reproduction.md", "docs/accuracy.md")
TABLES = "results/reproduction/tables.csv"
AUDIT = "results/audit/audit_summary.csv"
_BLOCK = re.compile(r"(<!-- results: (?P<name>[^\n]+?) -->\n)(?P<old>.*?)(<!-- end -->)", re.DOTALL)


def fill_blocks(text: str, blocks: Mapping[str, str]) -> str:
    r"""Put new content between the markers ``<!-- results: NAME -->`` and ``<!-- end -->``.

    Parameters
    ----------
    text : str
        A page.
    blocks : dict of str
        Content of each block that may be in it.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If a block has no end, or a name that is not in `blocks`.

    Examples
    --------
    >>> print(fill_blocks("Before.\n<!-- results: a -->\nold\n<!-- end -->\nAfter.", {"a": "new"}))
    Before.
    <!-- results: a -->
    new
    <!-- end -->
    After.
    """

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        if "<!-- results:" in found["old"]:
            raise ValueError(f"the block {name!r} has no <!-- end -->")
        if name not in blocks:
            raise ValueError(f"there is nothing to put into the block {name!r}; there are {', '.join(sorted(blocks))}")
        return f"{found[1]}{blocks[name]}\n{found[4]}"

    filled, count = _BLOCK.subn(fill, text)
    if count != text.count("<!-- results:"):
        raise ValueError("a block <!-- results: NAME --> has no <!-- end -->, or more on its line than the marker")
    return filled


def results_blocks(root: Path) -> dict[str, str]:
    """Blocks in Markdown by name, from the CSV files below `root`.

    They are ``lmssc`` (LMSSC on all data sets), one for each data set, ``audit`` if there is one, and those of the
    accuracy page.
    """
    rows = read_tables(root / TABLES)
    blocks = {"lmssc": lmssc_markdown(rows), **{name: dataset_markdown(rows, name) for name in DATASETS}}
    if (root / AUDIT).exists():
        blocks["audit"] = make_page(read_summary(root / AUDIT)).strip()
    if (root / FOLDER).exists():
        blocks |= accuracy_blocks(root) | all_cells_blocks(root)
    return blocks


def filled_pages(root: Path) -> dict[Path, str]:
    """Text of each page that exists and of each chart, by path, filled from the CSV files."""
    blocks = results_blocks(root)
    pages = [root / page for page in PAGES if (root / page).exists()]
    charts = accuracy_charts(root) if (root / FOLDER).exists() else {}
    return {page: fill_blocks(page.read_text(encoding="utf-8"), blocks) for page in pages} | {
        root / name: chart for name, chart in charts.items()
    }
