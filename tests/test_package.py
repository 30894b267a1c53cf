"""The package as an import: what it offers, and what it does not load."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lmssc


def test_everything_promised_is_there():
    for name in [*lmssc.__all__, "audit", "datasets", "model_selection", "plotting", "report"]:
        assert getattr(lmssc, name).__name__.endswith(name)
        assert name in dir(lmssc)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="LMSCC"):
        lmssc.LMSCC  # noqa: B018


def test_the_report_is_there_without_an_import_of_its_own():
    program = "import lmssc; lmssc.report.write_report"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import lmssc.cli", "sklearn"),
        ("from lmssc import LMSSC", "matplotlib"),
        ("from lmssc import LMSSC", "tqdm"),
        ("import lmssc", "numpy"),
        ("from lmssc import LMSSC", "lmssc.report"),
        ("from lmssc.plotting import LatentMapDisplay", "matplotlib"),
    ],
)
def test_nothing_heavy_or_optional_is_loaded(statement, absent):
    program = f"import sys; {statement}; sys.exit({absent!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# ---- what the package index shows


def project():
    root = Path(__file__).parents[1]
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_addresses_are_of_one_repository():
    urls = project()["urls"]
    assert urls["Repository"] == "https://github.com/lmssc/lmssc"
    assert all(url.startswith(urls["Repository"]) for url in urls.values())
    root = Path(__file__).parents[1]
    pages = [page for page in root.glob("*.md") if page.name != "PKG-INFO"] + [root / "CITATION.cff"]
    found = {
        address
        for page in pages
        for address in re.findall(r"https://github\.com/\w[\w.-]*/lmssc\b", page.read_text(encoding="utf-8"))
    }
    assert found == {urls["Repository"]}


def test_versions_of_python_are_those_that_are_tested():
    root = Path(__file__).parents[1]
    workflow = root / ".github" / "workflows" / "tests.yml"
    if not workflow.exists():
        pytest.skip("the source distribution has no workflows")
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    (matrix,) = re.findall(r"python: \[(.+)\]", workflow.read_text(encoding="utf-8"))
    assert re.findall(r"3\.\d+", matrix) == named
    assert project()["requires-python"] == f">={named[0]}"


def test_citation_has_the_version():
    root = Path(__file__).parents[1]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {project()['version']}\n" in citation
    assert f"\nlicense: {project()['license']}\n" in citation


def test_extras_have_all_of_them():
    extras = project()["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.search(r"\[(.+)\]", everything)[1].split(",")) == set(extras) - {"all"}


def test_patterns_of_the_source_distribution_start_at_the_root():
    root = Path(__file__).parents[1]
    tool = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    include = tool["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all(pattern.startswith("/") for pattern in include)
    assert all((root / pattern.strip("/")).exists() for pattern in include)
