"""Labels for every sample from several views and a few labels.

The estimators are imported when they are first asked for, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmssc.data.validation import stack_views
    from lmssc.estimators.amgl import AMGL
    from lmssc.estimators.gfhf import GFHF
    from lmssc.estimators.lmssc import LMSSC, paper_settings
    from lmssc.estimators.lmssc_cv import LMSSCCV
    from lmssc.estimators.mlan import MLAN
    from lmssc.estimators.serialization import load
    from lmssc.evaluation.comparison import compare
    from lmssc.io.open_view import open_view

_HOMES = {
    "AMGL": "lmssc.estimators.amgl",
    "GFHF": "lmssc.estimators.gfhf",
    "LMSSC": "lmssc.estimators.lmssc",
    "LMSSCCV": "lmssc.estimators.lmssc_cv",
    "MLAN": "lmssc.estimators.mlan",
    "compare": "lmssc.evaluation.comparison",
    "load": "lmssc.estimators.serialization",
    "open_view": "lmssc.io.open_view",
    "paper_settings": "lmssc.estimators.lmssc",
    "stack_views": "lmssc.data.validation",
}
_MODULES = ("audit", "datasets", "model_selection", "plotting", "report")

__all__ = ["AMGL", "GFHF", "LMSSC", "LMSSCCV", "MLAN", "compare", "load", "open_view", "paper_settings", "stack_views"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("lmssc")
    if name in _MODULES:
        return import_module(f"lmssc.{name}")
    raise AttributeError(f"module 'lmssc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES])
