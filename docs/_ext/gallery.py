"""Run the scripts of examples/; the gallery page shows what they print and draw, from docs/_gallery."""

import os
import runpy
import shutil
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Columns of code that fit on the page; examples/ruff.toml formats the scripts to it.
MAX_COLUMNS = 88


def run_example(script: Path, folder: Path) -> str:
    """Run a script as ``python script`` would, in `folder`, and return what it prints.

    It runs in this process: importing everything again would take longer than the script.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MPLBACKEND", "agg")
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        runpy.run_path(str(script), run_name="__main__")
    return printed.getvalue()


def wide_lines(text: str) -> list[str]:
    """Lines that would not fit on the page.

    Examples
    --------
    >>> wide_lines("x = 1" + chr(10) + "y" * 100) == ["y" * 100]
    True
    """
    return [line for line in text.splitlines() if len(line) > MAX_COLUMNS]


def run_all(app: Any) -> None:
    """Run every example before the pages are read. One that fails, or is too wide, ends the build."""
    made = Path(app.srcdir) / "_gallery"
    shutil.rmtree(made, ignore_errors=True)
    if not app.config.gallery_run:
        made.mkdir()
        for script in EXAMPLES:
            (made / f"{script.stem}.txt").write_text("not run\n", encoding="utf-8")
            (made / f"{script.stem}.png").touch()
        return
    for script in EXAMPLES:
        try:
            printed = run_example(script, made)
        except Exception as error:
            raise RuntimeError(f"{script.name} does not run: {error!r}") from error
        if wide := wide_lines(script.read_text(encoding="utf-8") + printed):
            raise RuntimeError(f"{script.name}: wider than {MAX_COLUMNS} columns: {wide[0]}")
        (made / f"{script.stem}.txt").write_text(printed, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Run the examples when the build begins; with ``-D gallery_run=0`` the pages have placeholders instead."""
    app.add_config_value("gallery_run", True, "env", bool)
    app.connect("builder-inited", run_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
