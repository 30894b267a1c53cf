"""The documentation builds without a warning, covers all that is public, and its examples run as they stand."""

import importlib
import os
import re
import subprocess
import sys
import zlib

import pytest

from page_code import (
    ROOT,
    assert_same_percentages,
    bad_links,
    blocks,
    commands,
    marked_block,
    run_block,
    run_command,
    run_commands,
    run_python,
)

DOCS = ROOT / "docs"
if not DOCS.is_dir():
    pytest.skip("the source distribution has no docs", allow_module_level=True)

FILES = DOCS / "guide" / "files.md"
# Their commands work on the files that their Python writes.
WITH_FILES = [FILES, DOCS / "guide" / "cells.md", DOCS / "guide" / "embeddings.md"]
COMPARE = DOCS / "guide" / "compare.md"
QUICKSTART = DOCS / "quickstart.md"
# The commands on these pages take hours.
HOURS = ("reproduction.md", "accuracy.md")
PAGES = sorted(page for page in DOCS.rglob("*.md") if not page.relative_to(DOCS).parts[0].startswith("_"))
ROLE = re.compile(r"\{(?:func|class|meth|exc|attr|mod|data)\}`(?:[^`<]*<)?~?([\w.]+)>?`|auto\w+:: (lmssc\.[\w.]+)")


def read(page):
    return page.read_text(encoding="utf-8")


def has_python(page):
    return bool(blocks(read(page), "python", "pycon"))


# ---- code


@pytest.mark.parametrize(
    "page", [p for p in PAGES if has_python(p) and p not in WITH_FILES], ids=lambda page: page.stem
)
def test_python_of_the_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python(read(page))


@pytest.mark.parametrize("page", WITH_FILES, ids=lambda page: page.stem)
def test_page_about_files_runs_as_typed(page, tmp_path, capsys, monkeypatch):
    # The report has tests of its own, and fits many times.
    monkeypatch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, code in blocks(read(page), "python", "pycon", "console"):
        if language == "console":
            run_commands(code, capsys)
        else:
            run_block(language, code, names)
    if page == FILES:
        assert {path.name for path in (tmp_path / "result").iterdir()} == {
            "predictions.csv",
            "to_label.csv",
            "model.lmssc",
            "report.html",
            "check_labels.csv",
        }


def test_table_of_compare_is_what_the_command_prints(tmp_path, capsys, monkeypatch):
    """That of the demo: test_cli.py."""
    monkeypatch.chdir(tmp_path)
    ((command, shown),) = commands(marked_block(read(COMPARE), "compare"))
    assert_same_percentages(shown, run_command(command, capsys))


def test_every_command_in_the_pages_is_run_by_some_test():
    def typed(text):
        return {command for _, code in blocks(text, "console") for command, _ in commands(code)}

    assert len(typed(read(FILES))) == 4
    marked = [(QUICKSTART, "demo"), (COMPARE, "compare"), (ROOT / "README.md", "classify")]
    run = {command for page, name in marked for command, _ in commands(marked_block(read(page), name))}
    for page in [*PAGES, ROOT / "README.md"]:
        if page.name not in HOURS:
            assert typed(read(page)) <= run | {line for one in WITH_FILES for line in typed(read(one))}, page


def test_a_wrong_session_is_found():
    with pytest.raises(AssertionError, match="Expected"):
        run_python("```pycon\n>>> 1 + 1\n3\n```\n")


# ---- names, links, files


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_lead_somewhere(page):
    assert bad_links(read(page), page.parent) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_names_exist(page):
    assert [name for found in ROLE.findall(read(page)) for name in found if name and not exists(name)] == []


MEMBERS = re.compile(r"autoclass:: (lmssc[\w.]+)\n\s+:members: ([\w, ]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_listed_members_exist(page):
    assert missing_members(read(page)) == []


def missing_members(text):
    names = [f"{owner}.{name}" for owner, listed in MEMBERS.findall(text) for name in re.findall(r"\w+", listed)]
    return [name for name in names if not exists(name)]


def exists(name):
    """Whether a dotted name can be imported."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


def test_wrong_names_are_found():
    page = "{func}`~lmssc.core.graph.learn_graph` {func}`f <lmssc.core.graph.gone>` .. automodule:: lmssc.gone"
    names = [name for found in ROLE.findall(page) for name in found if name]
    assert [exists(name) for name in names] == [True, False, False]
    members = ".. autoclass:: lmssc.core.objective.Objective\n   :members: step, gone\n"
    assert missing_members(members) == ["lmssc.core.objective.Objective.gone"]


def test_options_in_the_pages_exist(capsys):
    from lmssc.cli import COMMANDS, main

    for module in COMMANDS:
        with pytest.raises(SystemExit):
            main([module.__name__.rpartition(".")[2].removesuffix("_command"), "--help"])
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    known = set(option.findall(capsys.readouterr().out))
    for page in [*PAGES, ROOT / "README.md"]:
        assert set(option.findall(read(page))) <= known, page


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in PAGES:
        for toctree in re.findall(r"```\{toctree\}\n(.*?)```", read(page), flags=re.DOTALL):
            entries = [line for line in toctree.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{entry}.md").resolve() for entry in entries}
    assert {page for page in PAGES if page.resolve() not in listed} == {DOCS / "index.md"}


def test_model_format_lists_all_parts():
    from lmssc.estimators.serialization import MODEL_TYPES

    text = read(DOCS / "model-format.md")
    parts, classifiers = re.search(r"Parts: (.*?)\. Classifiers: (.*?)\. ", text, flags=re.DOTALL).groups()
    assert re.findall(r"`(\w+)`", parts) == sorted(MODEL_TYPES.parts)
    assert re.findall(r"`(\w+)`", classifiers) == sorted(MODEL_TYPES.estimators)


def test_examples_are_in_the_gallery():
    gallery = read(DOCS / "gallery.md")
    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert len(scripts) >= 6
    for script in scripts:
        assert f"../examples/{script.name}\n" in gallery
        assert f"_gallery/{script.stem}.txt\n" in gallery
        assert (f"_gallery/{script.stem}.png\n" in gallery) == ("savefig" in read(script))


def test_checklist_names_what_is_there():
    files = re.findall(r"`((?:tests|\.github)/[\w/.]*)`", read(DOCS / "checklist.md"))
    assert len(files) >= 4
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_numbers_in_tables_do_not_wrap(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    conf = importlib.import_module("conf")
    source = ["Text 1 ± 2.\n| a b | 99.4 ± 0.5 | 99.4 (99.1 to 99.6) | +1.0 (-1.9 to +1.8) | 10 % of |"]
    conf.join_numbers(None, "page", source)
    blank = "\N{NO-BREAK SPACE}"
    assert source[0].replace(blank, "_") == (
        "Text 1 ± 2.\n| a b | 99.4_±_0.5 | 99.4_(99.1_to_99.6) | +1.0_(-1.9_to_+1.8) | 10_% of |"
    )


# ---- numbers in sentences


def test_sentences_about_accuracy_are_those_of_the_csv():
    import measured
    import numpy as np

    text = " ".join(read(DOCS / "accuracy.md").split())
    cells = {**measured.cell_accuracies(ROOT, measured.PEERS), **measured.cell_accuracies(ROOT)}
    ours = cells.pop("LMSSC")
    best = {cell: max(other.get(cell, 0) for other in cells.values()) for cell in ours}
    gains = 100 * np.array([ours[cell] - best[cell] for cell in ours])
    ahead, behind = (gains >= 1).sum(), (gains <= -1).sum()
    assert f"ahead by a point or more in {ahead} cells and behind by a point or more in {behind}:" in text
    assert f"picked after the fact, in {(gains < -1e-9).sum()} of {len(gains)} cells, most clearly" in text
    worst = min(ours, key=lambda cell: ours[cell] - best[cell])
    assert f"{worst[0]} by {-gains.min():.1f} points, the most" in text
    near = (gains >= -0.25).sum()
    assert f"In {near} of the {len(gains)} cells LMSSC is the best or within 0.25 points of it" in text

    chosen = measured.cell_accuracies(ROOT, measured.CHOSEN)
    changes = [100 * (chosen["LMSSCCV"][cell] - chosen["LMSSC"][cell]) for cell in chosen["LMSSC"]]
    equal = sum(abs(change) < 0.05 for change in changes)
    assert f"equals them in {equal} of {len(changes)} cells and is {-np.mean(changes):.1f} points lower" in text


def test_sentences_about_the_audit_are_those_of_its_tables():
    text = read(DOCS / "reproduction.md").replace("\N{NO-BREAK SPACE}", " ")
    short, tables = text.split("## How it was measured")
    gains = re.findall(
        r"\| Sonar (\d+) % .*\+(\d\.\d) ± \d\.\d \(\+(\d+\.\d) to \+(\d+\.\d)\) \|$", tables, re.MULTILINE
    )
    by_rate = {rate: numbers for rate, *numbers in gains}
    (first, low, high), (second, low2, high2) = by_rate["20"], by_rate["50"]
    assert f"on Sonar by {first} points at 20 % and by {second} at 50 %" in short
    assert f"intervals {low} to {high} and {low2} to {high2}" in short
    within, cells = map(int, re.search(r"of 92\.4 %: (\d+) of (\d+) cells", tables).groups())
    assert f"in {cells - within} of {cells} cells by more than one standard deviation" in short


# ---- the build


def test_builds_without_warnings_and_has_all_that_is_public(tmp_path):
    for module in ("sphinx", "myst_parser", "furo", "numpydoc"):
        pytest.importorskip(module, reason=f"{module} is not installed (pip install --group docs)")
    # As `make docs` does it, but for the examples, which test_examples.py runs, the pages of highlighted source, and
    # the theme, which takes a sixth of the time.
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-D", "gallery_run=0"]
    command += ["-D", "html_theme=basic"]
    command += ["-D", "extensions=sphinx.ext.autodoc,numpydoc,myst_parser,mathml,gallery,one_template"]
    built = subprocess.run(
        [*command, "-d", tmp_path / "trees", DOCS, tmp_path / "html"],
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
    assert "pages.css" in method
    reproduction = read(tmp_path / "html" / "reproduction.html")
    assert "99.8\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.5" in reproduction
    assert not re.search(r"<td><p>\d+\.\d ±", reproduction)
    assert '<img alt="Left, 1,797 digits' in read(tmp_path / "html" / "index.html")


def names_described(inventory):
    """Names of the Python objects in Sphinx's inventory: four lines of text, then zlib."""
    packed = inventory.read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(packed).decode().splitlines()
    return {line.split()[0] for line in lines if line.split()[1].startswith("py:")}
