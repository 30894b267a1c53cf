"""Multi-view data sets: the paper's and others as files, digits that need no network, synthetic data of any size.

Loaders are imported on first use, so that ``lmssc datasets`` starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmssc.datasets.digits import load_digits_views
    from lmssc.datasets.fetch import DataFileError
    from lmssc.datasets.loaders import (
        load,
        load_3sources,
        load_acm,
        load_bbc,
        load_bbcsport,
        load_cora,
        load_handwritten,
        load_leaves,
        load_movies,
        load_msrc,
        load_reuters,
        load_sonar,
    )
    from lmssc.datasets.synthetic import make_multiview

_HOMES = {
    "DataFileError": "fetch",
    "load": "loaders",
    "load_3sources": "loaders",
    "load_acm": "loaders",
    "load_bbc": "loaders",
    "load_bbcsport": "loaders",
    "load_cora": "loaders",
    "load_digits_views": "digits",
    "load_handwritten": "loaders",
    "load_leaves": "loaders",
    "load_movies": "loaders",
    "load_msrc": "loaders",
    "load_reuters": "loaders",
    "load_sonar": "loaders",
    "make_multiview": "synthetic",
}

__all__ = [
    "DataFileError",
    "load",
    "load_3sources",
    "load_acm",
    "load_bbc",
    "load_bbcsport",
    "load_cora",
    "load_digits_views",
    "load_handwritten",
    "load_leaves",
    "load_movies",
    "load_msrc",
    "load_reuters",
    "load_sonar",
    "make_multiview",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"lmssc.datasets.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lmssc.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
