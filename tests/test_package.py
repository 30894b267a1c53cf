"""The package as an import: what it offers, and what it does not load."""

import subprocess
import sys
from pathlib import Path

import pytest

import lmssc
from lmssc.estimators.documentation import DOCUMENTATION_URL

SUBMODULES = ["audit", "datasets", "model_selection", "plotting", "report"]


def test_everything_promised_is_there():
    for name in [*lmssc.__all__, *SUBMODULES]:
        assert getattr(lmssc, name).__name__.endswith(name)
        assert name in dir(lmssc)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="LMSCC"):
        lmssc.LMSCC  # noqa: B018


# Each statement, in a process that has run those before it, and what must not be loaded after it.
STEPS = [
    ("import lmssc", ["numpy"]),
    ("import lmssc.cli", ["sklearn"]),
    ("import lmssc.io.labelled_files", ["sklearn", "pandas"]),
    ("from lmssc import LMSSC", ["matplotlib", "tqdm", "lmssc.report"]),
    ("from lmssc.plotting import LatentMapDisplay", ["matplotlib"]),
    ("lmssc.report.write_report", []),  # without an import of its own
]


def test_nothing_heavy_or_optional_is_loaded():
    program = "import sys\n" + "".join(
        f"{statement}\nprint([name for name in {absent} if name in sys.modules])\n" for statement, absent in STEPS
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n" * len(STEPS)


def test_dir_shows_public_names_only():
    assert dir(lmssc) == sorted([*lmssc.__all__, *SUBMODULES, "__version__"])


def test_a_type_checker_knows_the_public_names_and_no_others(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    names = ", ".join([*lmssc.__all__, *SUBMODULES, "__version__"])
    right.write_text(f"from lmssc import {names}\n")
    wrong.write_text("from lmssc import LMSSSC\n")
    options = ["--config-file=", "--follow-imports=skip", f"--cache-dir={tmp_path}"]
    package = str(Path(lmssc.__file__))
    assert mypy.run([*options, package, str(right)])[2] == 0
    report, _, code = mypy.run([*options, package, str(wrong)])
    assert code == 1
    assert 'has no attribute "LMSSSC"' in report


def test_the_html_representation_links_to_the_documentation():
    html = lmssc.LMSSCCV(estimator=lmssc.GFHF())._repr_html_()
    assert f'href="{DOCUMENTATION_URL}/api/estimators.md"' in html
