"""Semi-supervised classification of samples with several views.

Public names are imported when they are first used, so that the command line starts quickly.
"""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from lmssc import audit as audit
    from lmssc import datasets as datasets
    from lmssc import model_selection as model_selection
    from lmssc import plotting as plotting
    from lmssc import report as report
    from lmssc.data.graph_view import Graph
    from lmssc.data.stacking import stack_views
    from lmssc.estimators.amgl import AMGL
    from lmssc.estimators.gfhf import GFHF
    from lmssc.estimators.lmssc import LMSSC
    from lmssc.estimators.lmssc_cv import LMSSCCV
    from lmssc.estimators.lmssc_parameters import paper_settings
    from lmssc.estimators.mlan import MLAN
    from lmssc.estimators.serialization import load
    from lmssc.evaluation.comparison import compare
    from lmssc.io.frame_views import views_from_frame
    from lmssc.io.open_view import open_view
    from lmssc.io.read_anndata import annotate, read_anndata

    __version__: str

_MODULE_OF_NAME = {
    "AMGL": "lmssc.estimators.amgl",
    "GFHF": "lmssc.estimators.gfhf",
    "Graph": "lmssc.data.graph_view",
    "LMSSC": "lmssc.estimators.lmssc",
    "LMSSCCV": "lmssc.estimators.lmssc_cv",
    "MLAN": "lmssc.estimators.mlan",
    "annotate": "lmssc.io.read_anndata",
    "compare": "lmssc.evaluation.comparison",
    "load": "lmssc.estimators.serialization",
    "open_view": "lmssc.io.open_view",
    "paper_settings": "lmssc.estimators.lmssc_parameters",
    "read_anndata": "lmssc.io.read_anndata",
    "stack_views": "lmssc.data.stacking",
    "views_from_frame": "lmssc.io.frame_views",
}
_SUBMODULES = ("audit", "datasets", "model_selection", "plotting", "report")

__all__ = [
    "AMGL",
    "GFHF",
    "LMSSC",
    "LMSSCCV",
    "MLAN",
    "Graph",
    "annotate",
    "compare",
    "load",
    "open_view",
    "paper_settings",
    "read_anndata",
    "stack_views",
    "views_from_frame",
]

# A type checker that saw `__getattr__` would accept any name.
if not _typing.TYPE_CHECKING:

    def __getattr__(name):
        if name in _MODULE_OF_NAME:
            return getattr(_import_module(_MODULE_OF_NAME[name]), name)
        if name == "__version__":
            return _import_module("importlib.metadata").version("lmssc")
        if name in _SUBMODULES:
            return _import_module(f"lmssc.{name}")
        raise AttributeError(f"module 'lmssc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
