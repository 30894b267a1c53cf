"""Rewrite the tables and charts of README.md and docs/ from the CSVs under results/ (make pages)."""

from pathlib import Path

from pages import filled_pages

from lmssc.persistence.atomic import open_atomically

for page, text in filled_pages(Path(__file__).resolve().parents[1]).items():
    page.parent.mkdir(exist_ok=True)
    with open_atomically(page) as file:
        file.write(text.encode())
    print(page)
