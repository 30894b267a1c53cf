"""Rewrite the tables and charts of README.md and docs from the CSV files under results/ (make pages)."""

from pathlib import Path

from measured import filled_guides
from pages import filled_pages

from lmssc.persistence.atomic import open_atomically

ROOT = Path(__file__).resolve().parents[1]

for page, text in {**filled_pages(ROOT), **filled_guides(ROOT)}.items():
    page.parent.mkdir(exist_ok=True)
    with open_atomically(page) as file:
        file.write(text.encode())
    print(page)
