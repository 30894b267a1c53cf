"""The documentation builds without a warning, has all that is public, and its examples run as they stand."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from page_code import blocks, commands, run_block, run_commands, run_python

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if not DOCS.is_dir():
    pytest.skip("the source distribution has no docs", allow_module_level=True)

FILES = DOCS / "guide" / "files.md"
# What these pages tell to type takes hours.
HOURS = ("reproduction.md", "accuracy.md")
PAGES = sorted(page for page in DOCS.rglob("*.md") if not page.relative_to(DOCS).parts[0].startswith("_"))


def read(page):
    return page.read_text(encoding="utf-8")


def has_python(page):
    return bool(blocks(read(page), "python", "pycon"))


@pytest.mark.parametrize("page", [p for p in PAGES if has_python(p) and p != FILES], ids=lambda page: page.stem)
def test_python_of_the_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python(read(page))


def test_page_about_files_runs_as_typed(tmp_path, capsys, monkeypatch):
    # The report has tests of its own, and fits many times.
    monkeypatch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, code in blocks(read(FILES), "python", "pycon", "console"):
        if language == "console":
            run_commands(code, capsys)
        else:
            run_block(language, code, names)
    assert {path.name for path in (tmp_path / "result").iterdir()} == {
        "predictions.csv",
        "to_label.csv",
        "model.lmssc",
        "report.html",
    }


def test_every_command_in_the_pages_is_run_by_some_test():
    def typed(text):
        return {command for _, code in blocks(text, "console") for command, _ in commands(code)}

    run = typed(read(FILES)) | typed(read(ROOT / "README.md"))
    assert len(typed(read(FILES))) == 4
    for page in PAGES:
        if page.name not in HOURS:
            assert typed(read(page)) <= run, page


def test_a_wrong_session_is_found():
    with pytest.raises(AssertionError, match="Expected"):
        run_python("```pycon\n>>> 1 + 1\n3\n```\n")


def test_examples_are_in_the_gallery():
    gallery = read(DOCS / "gallery.md")
    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert len(scripts) >= 6
    for script in scripts:
        assert f"../examples/{script.name}\n" in gallery
        assert f"_gallery/{script.stem}.txt\n" in gallery
        assert (f"_gallery/{script.stem}.png\n" in gallery) == ("savefig" in read(script))


def test_builds_without_warnings_and_has_all_that_is_public(tmp_path):
    for module in ("sphinx", "myst_parser", "furo", "numpydoc"):
        pytest.importorskip(module, reason=f"{module} is not installed (pip install --group docs)")
    # As `make docs` does it.
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-d", tmp_path / "trees"]
    built = subprocess.run(
        [*command, DOCS, tmp_path / "html"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])},
    )
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")

    import lmssc
    import lmssc.report

    described = names_described(tmp_path / "html" / "objects.inv")
    for module in (lmssc, lmssc.datasets, lmssc.plotting):
        assert {f"{module.__name__}.{name}" for name in module.__all__} <= described
    assert {
        "lmssc.model_selection.LabelledKFold",
        "lmssc.audit.order_sensitivity",
        "lmssc.audit.OrderSensitivity",
        "lmssc.report.write_report",
        "lmssc.LMSSC.fit",
        "lmssc.LMSSC.most_informative",
        "lmssc.LMSSCCV.predict_proba",
    } <= described
    assert "lmssc.LMSSC.set_params" not in described  # scikit-learn's
    method = read(tmp_path / "html" / "method.html")
    assert method.count("<math") > 50
    assert 'src="http' not in method  # nothing from the network


def names_described(inventory):
    """Names of the Python objects in Sphinx's inventory: four lines of text, then zlib."""
    packed = inventory.read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(packed).decode().splitlines()
    return {line.split()[0] for line in lines if line.split()[1].startswith("py:")}
