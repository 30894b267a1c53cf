"""Where tests and doctests find the paper's data: in $LMSSC_DATA, or in ../shared/data."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parent.parent / "shared" / "data"
if _BESIDE.is_dir():
    os.environ.setdefault("LMSSC_DATA", str(_BESIDE))


def pytest_collection_modifyitems(items):
    """Skip the examples of the loaders where they could not run without a network."""
    from lmssc.datasets.fetch import find
    from lmssc.datasets.registry import FILES

    if all(find(file) for file in FILES.values()) and find_spec("h5py"):
        return
    for item in items:
        if item.path.name == "loaders.py":
            item.add_marker(pytest.mark.skip(reason="needs the data files (LMSSC_DATA) and h5py"))
