"""The number of neighbours k: given, or the default of the method."""

from typing import Any


def resolve_neighbors(n_neighbors: int | str, n_distinct: int, default: int, n_samples: int | None = None) -> int:
    """k: the given number or `default`, at most the number of other distinct samples.

    Examples
    --------
    >>> resolve_neighbors("auto", 1000, 10), resolve_neighbors("auto", 6, 10), resolve_neighbors(7, 4, 10, 1000)
    (10, 4, 3)
    """
    if isinstance(n_neighbors, str):
        return max(1, min(default, n_distinct - 2))
    n_samples = n_distinct if n_samples is None else n_samples
    if n_neighbors >= n_samples:
        raise ValueError(f"n_neighbors={n_neighbors} must be less than the number of samples, {n_samples}")
    return min(int(n_neighbors), n_distinct - 1)


def upgrade_neighbors(parameters: dict[str, Any], fitted: dict[str, Any], default: int) -> None:
    """Fill in, in place, `n_neighbors_` of a model that an earlier version of lmssc saved without it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> fitted = {"_order": SimpleNamespace(samples=np.arange(6)), "_nodes": np.arange(6)}
    >>> upgrade_neighbors({"n_neighbors": "auto"}, fitted, default=10)
    >>> fitted["n_neighbors_"]
    4
    """
    if "n_neighbors_" not in fitted and "_order" in fitted:
        k, n_distinct = parameters.get("n_neighbors", "auto"), len(fitted["_order"].samples)
        fitted["n_neighbors_"] = resolve_neighbors(k, n_distinct, default, len(fitted["_nodes"]))
