"""Configuration of Sphinx (make docs). Neither the build nor the pages need a network."""

import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "lmssc"
author = "The lmssc developers"
copyright = author  # noqa: A001
release = metadata.version("lmssc")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "mathml",
    "gallery",
    "one_template",
]
exclude_patterns = ["_build", "_gallery"]
nitpicky = True
highlight_language = "none"  # for blocks without a language
default_role = "code"  # for `names` in docstrings

html_theme = "furo"
html_title = f"lmssc {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# Docstrings state the types; in the signatures they would be unreadable.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False

# Links to folders of the repository; a page of the web site has nothing to link to.
FOLDER_LINK = re.compile(r"\[(`?)([^]`]+)`?\]\(\.\./((?:[\w-]+/)*[\w-]+)\)")
# Blanks inside a number with its unit, deviation or interval.
NUMBER_BLANK = re.compile(r"(?<=\d) (?=[±%×(])|(?<=±) (?=\d)|(?<=\d) (?=to [+-]?\d)|(?<=\d to) (?=[+-]?\d)")


def name_folders(app: Any, page: str, source: list[str]) -> None:
    """Replace links to folders of the repository by their names."""
    source[0] = FOLDER_LINK.sub(lambda found: f"{found[1]}{found[2]}{found[1]}", source[0])


def join_numbers(app: Any, page: str, source: list[str]) -> None:
    """Keep "99.4 ± 0.5" and "99.4 (99.1 to 99.6)" on one line of a table cell."""
    source[0] = "\n".join(
        NUMBER_BLANK.sub("\N{NO-BREAK SPACE}", line) if line.startswith("|") else line for line in source[0].split("\n")
    )


def skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classifiers inherit from scikit-learn, which documents it."""
    return None if (getattr(member, "__module__", None) or "lmssc").startswith("lmssc") else True


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("source-read", name_folders)
    app.connect("source-read", join_numbers)
