"""The settings that a search chooses among."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from lmssc.data.view import RawView
from lmssc.estimators.base import MultiViewClassifier
from lmssc.persistence.codec import RUNTIME_PARAMS

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None

# The defaults, and settings that differ from them in one parameter.
DEFAULT_GRID: list[dict[str, list[Any]]] = [
    {},
    {"n_neighbors": [5, 20]},
    {"n_components": [20]},
    {"label_weight": [0.5, 4.0]},
]


def read_grid(param_grid: Any, estimator: MultiViewClassifier) -> list[dict[str, Any]]:
    """Settings of a grid in the order of scikit-learn's `ParameterGrid`, without repetition.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> read_grid([{}, {"beta": [0.1, 0.2], "n_neighbors": [5]}], LMSSC())
    [{}, {'beta': 0.1, 'n_neighbors': 5}, {'beta': 0.2, 'n_neighbors': 5}]
    >>> read_grid({"beta": []}, LMSSC())
    Traceback (most recent call last):
        ...
    ValueError: param_grid has no values for 'beta'; give at least one, or leave it out
    """
    wanted = "param_grid must be a dict of parameter name → list of values, or a list of such dicts"
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    if not isinstance(grids, Sequence) or isinstance(grids, str) or not all(isinstance(g, Mapping) for g in grids):
        raise TypeError(f"{wanted}, got {param_grid!r}")
    if not grids:
        raise ValueError(f"{wanted}; it is empty")
    names = [name for name in type(estimator)._get_param_names() if name not in ("views", *RUNTIME_PARAMS)]
    for grid in grids:
        for name, values in grid.items():
            if name not in names:
                raise ValueError(
                    f"param_grid has {name!r}, which is not a parameter of {type(estimator).__name__} to choose; these "
                    f"are: {', '.join(names)}"
                )
            if isinstance(values, str | Mapping) or not isinstance(values, Sequence | np.ndarray):
                raise TypeError(f"{wanted}; {name!r} has {values!r}, which is not a list: put [ ] around it")
            if len(values) == 0:
                raise ValueError(f"param_grid has no values for {name!r}; give at least one, or leave it out")
    settings: list[dict[str, Any]] = []
    for setting in ParameterGrid([dict(grid) for grid in grids]):
        if setting not in settings:
            settings.append(setting)
    return settings


def default_settings(estimator: MultiViewClassifier, raws: Sequence[RawView]) -> list[dict[str, Any]]:
    """Settings of `DEFAULT_GRID` that the estimator has, with values that the data allow.

    Examples
    --------
    >>> from lmssc import LMSSC
    >>> view = RawView("a", np.zeros((12, 20)), None)
    >>> default_settings(LMSSC(), [view])
    [{}, {'n_neighbors': 5}, {'label_weight': 0.5}, {'label_weight': 4.0}]
    """
    n_samples = raws[0].data.shape[0]
    limits = {
        "n_neighbors": n_samples - 2,
        "n_components": min(n_samples, sum(raw.data.shape[1] for raw in raws)) - 1,
        "label_weight": np.inf,
    }
    return [
        setting
        for setting in ParameterGrid(DEFAULT_GRID)
        if all(hasattr(estimator, name) and value <= limits[name] for name, value in setting.items())
    ]
