"""Multi-view data sets: real digits that need no network, and synthetic data of any size."""

from lmssc.datasets.digits import load_digits_views
from lmssc.datasets.synthetic import make_multiview

__all__ = ["load_digits_views", "make_multiview"]
