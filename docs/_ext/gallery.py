"""The examples, run: what they print and the pictures they save go into docs/_gallery, which the gallery page shows."""

import os
import runpy
import shutil
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run_example(script: Path, folder: Path) -> str:
    """Run a script as ``python script`` would, in `folder`; what it prints.

    In this process: to import everything anew would take longer than the example itself.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MPLBACKEND", "agg")
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        runpy.run_path(str(script), run_name="__main__")
    return printed.getvalue()


def run_all(app: Any) -> None:
    """Run every example before the pages are read; one that fails ends the build."""
    made = Path(app.srcdir) / "_gallery"
    shutil.rmtree(made, ignore_errors=True)
    for script in EXAMPLES:
        try:
            printed = run_example(script, made)
        except Exception as error:
            raise RuntimeError(f"{script.name} does not run: {error!r}") from error
        (made / f"{script.stem}.txt").write_text(printed, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Run the examples when the build begins."""
    app.connect("builder-inited", run_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
