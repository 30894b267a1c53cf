"""Rewrite the tables of README.md and docs/reproduction.md from the CSVs under results/ (make pages)."""

from pathlib import Path

from pages import filled_pages

from lmssc.persistence.atomic import open_atomically

for page, text in filled_pages(Path(__file__).resolve().parents[1]).items():
    with open_atomically(page) as file:
        file.write(text.encode())
    print(page)
