"""What the package index and the repository say of the project: addresses, versions, extras, what is distributed."""

import re
import tomllib

import pytest

from page_code import ROOT


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def project():
    return pyproject()["project"]


def test_addresses_are_of_one_repository():
    urls = project()["urls"]
    assert urls["Repository"] == "https://github.com/lmssc/lmssc"
    assert all(url.startswith(urls["Repository"]) for url in urls.values())
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "CITATION.cff"]
    found = {
        address
        for page in pages
        for address in re.findall(r"https://github\.com/\w[\w.-]*/lmssc\b", page.read_text(encoding="utf-8"))
    }
    assert found == {urls["Repository"]}


def test_versions_of_python_are_those_that_are_tested():
    workflow = ROOT / ".github" / "workflows" / "tests.yml"
    if not workflow.exists():
        pytest.skip("the source distribution has no workflows")
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    (matrix,) = re.findall(r"python: \[(.+)\]", workflow.read_text(encoding="utf-8"))
    assert re.findall(r"3\.\d+", matrix) == named
    assert project()["requires-python"] == f">={named[0]}"


def test_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {project()['version']}\n" in citation
    assert f"\nlicense: {project()['license']}\n" in citation


def test_extras_have_all_of_them():
    extras = project()["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.search(r"\[(.+)\]", everything)[1].split(",")) == set(extras) - {
        "all",
        "peers",
    }  # other libraries to compare with


def test_patterns_of_the_source_distribution_start_at_the_root():
    include = pyproject()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all(pattern.startswith("/") for pattern in include)
    assert all((ROOT / pattern.strip("/")).exists() for pattern in include)
