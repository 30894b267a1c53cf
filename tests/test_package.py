"""The package as an import: what it offers, and what it does not load."""

import subprocess
import sys

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
