"""What several test files use."""

import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(scope="session")
def digits():
    """The digits in views."""
    from lmssc.datasets import load_digits_views

    return load_digits_views()
