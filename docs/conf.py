"""How Sphinx builds the documentation (make docs). Nothing in it needs a network, neither the build nor the pages."""

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

extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc", "myst_parser", "mathml", "gallery"]
exclude_patterns = ["_build", "_gallery"]
nitpicky = True
highlight_language = "none"  # of blocks that do not say what they are
default_role = "code"  # of `names` in docstrings

html_theme = "furo"
html_title = f"lmssc {release}"
html_math_renderer = "mathml"
html_copy_source = False

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# The docstrings say the types; in the signatures they would be unreadable.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False

# What the pages of the repository say of folders outside docs: nothing that a page on its own could link to.
FOLDER_LINK = re.compile(r"\[(`?)([^]`]+)`?\]\(\.\./((?:[\w-]+/)*[\w-]+)\)")


def name_folders(app: Any, page: str, source: list[str]) -> None:
    """Links to folders of the repository become their names."""
    source[0] = FOLDER_LINK.sub(lambda found: f"{found[1]}{found[2]}{found[1]}", source[0])


def skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """What classifiers inherit from scikit-learn is described there."""
    return None if (getattr(member, "__module__", None) or "lmssc").startswith("lmssc") else True


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("source-read", name_folders)
