"""Parameters of LMSSC: their ranges, what the method makes of them, and the paper's settings."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import usual_neighbors
from lmssc.core.parts.plan import parse_bytes
from lmssc.core.second_opinion import MAX_TRUST
from lmssc.core.targets import Targets
from lmssc.data.imputation import IMPUTE
from lmssc.data.n_jobs import JOBS_OR_NONE
from lmssc.data.parameters import (
    BOOLEAN,
    CALLABLE_OR_NONE,
    COUNT,
    COUNT_OR_AUTO,
    FROM_0_TO_1,
    NOT_NEGATIVE,
    PATH_OR_NONE,
    POSITIVE,
    SHARE,
    VERBOSITY,
    Rule,
    one_of,
)
from lmssc.data.views import Views
from lmssc.estimators.neighbor_count import resolve_neighbors

TRUST = Rule(
    lambda v: v == "auto" if isinstance(v, str) else NOT_NEGATIVE.accepts(v) and v <= MAX_TRUST,
    f'"auto" or a number from 0 to {MAX_TRUST}',
)
# Beyond these limits single precision cannot tell samples apart, or the graph has no edges.
SMOOTHNESS = Rule(lambda v: POSITIVE.accepts(v) and 1e-6 <= v <= 1e6, "a positive number, from 1e-06 to 1e+06")

NOISE = Rule(
    lambda v: v == "auto" if isinstance(v, str) else FROM_0_TO_1.accepts(v) and v < 1, "from 0 to below 1, or 'auto'"
)


def _is_memory(value: Any) -> bool:
    if value is None or not isinstance(value, str):
        return value is None or POSITIVE.accepts(value) or (COUNT.accepts(value) and value < 1 << 60)
    try:
        return parse_bytes(value) > 0
    except ValueError:
        return False


MEMORY = Rule(_is_memory, "an amount of memory such as '8GB' or '500MB', a number of bytes, or None")

LMSSC_RULES: dict[str, Rule] = {
    "impute": IMPUTE,
    "n_components": COUNT_OR_AUTO,
    "n_neighbors": COUNT_OR_AUTO,
    "beta": SMOOTHNESS,
    "gamma": POSITIVE,
    "label_weight": NOT_NEGATIVE,
    "compare_by": one_of("auto", "position", "direction"),
    "balance": FROM_0_TO_1,
    "calibrate": BOOLEAN,
    "label_noise": NOISE,
    "second_opinion": TRUST,
    "loadings": one_of("orthonormal", "nonnegative"),
    "init": one_of("svd", "random"),
    "alpha": one_of("row", "mean"),
    "freeze_alpha": BOOLEAN,
    "neighbor_recall": SHARE,
    "max_iter": COUNT,
    "tol": NOT_NEGATIVE,
    "callback": CALLABLE_OR_NONE,
    "verbose": VERBOSITY,
    "checkpoint": PATH_OR_NONE,
    "memory_limit": MEMORY,
    "client": Rule(
        lambda v: v is None or isinstance(v, str) or hasattr(v, "submit"),
        "None, the address of a Dask scheduler, or a distributed.Client",
    ),
    "n_jobs": JOBS_OR_NONE,
}


def make_config(
    parameters: Mapping[str, Any], views: Views, targets: Targets, n_samples: int, *, text: bool
) -> FitConfig:
    """Parameters as the method needs them, with "auto" resolved as far as it can be without a fit.

    Parameters
    ----------
    parameters : mapping of str to object
        Those of an `LMSSC`, checked.
    views : Views
        Scaled views of the distinct samples.
    targets : Targets
        Their labels.
    n_samples : int
        Number of samples, identical ones included.
    text : bool
        Whether all views are text.

    Returns
    -------
    FitConfig

    Examples
    --------
    >>> import numpy as np
    >>> from lmssc import LMSSC
    >>> views, targets = Views.from_arrays([np.eye(6)]), Targets.from_codes(np.arange(6) % 2, 2)
    >>> make_config(LMSSC(n_components=2).get_params(), views, targets, 6, text=False).n_components
    2
    """
    given = SimpleNamespace(**parameters)
    default = usual_neighbors(views.n_samples, targets.n_labelled, targets.n_classes)
    return FitConfig(
        n_neighbors=resolve_neighbors(given.n_neighbors, views.n_samples, default, n_samples),
        n_components=_resolve_components(given, views, n_samples),
        beta=given.beta,
        gamma=float(given.gamma),
        label_weight=given.label_weight,
        text=text,
        by_direction=text if given.compare_by == "auto" else given.compare_by == "direction",
        balance=given.balance,
        calibrate=given.calibrate,
        label_noise=_resolve_noise(given),
        second_opinion=None if isinstance(given.second_opinion, str) else float(given.second_opinion),
        nonnegative=given.loadings == "nonnegative",
        random_start=given.init == "random",
        random_state=given.random_state,
        shared_alpha=given.alpha == "mean",
        freeze_alpha=given.freeze_alpha,
        neighbor_recall=given.neighbor_recall,
        max_iter=given.max_iter,
        tol=given.tol,
    )


def _resolve_noise(given: Any) -> float | None:
    """Share of wrong labels, or None for "auto"."""
    if given.label_noise != 0 and given.init == "random":
        raise ValueError(f"label_noise={given.label_noise!r} needs init='svd': a random start has nothing to judge by")
    return None if given.label_noise == "auto" else float(given.label_noise)


def _resolve_components(given: Any, views: Views, n_samples: int) -> int | None:
    """Number of components as it was given, or None for "auto"."""
    if isinstance(given.n_components, str):
        return None
    if given.init == "random" and given.loadings == "nonnegative":
        return int(given.n_components)
    if given.n_components > min(n_samples, views.n_features):
        raise ValueError(
            f"n_components={given.n_components} must be at most {min(n_samples, views.n_features)}, the smaller of the "
            f"number of samples ({n_samples}) and of features ({views.n_features})"
        )
    return min(int(given.n_components), views.n_samples)


def paper_settings() -> dict[str, Any]:
    """Parameters of `LMSSC` for Algorithm 1 of the paper, to the letter.

    Random H and S (k random neighbours of each sample), F = 0 for unlabelled samples, k = 15, the mean α in each
    iteration, W ≥ 0, views that are not scaled, at most 100 iterations, stop at a relative change of F of 1e-5. The
    paper gives no single r, β and γ; these are from the middle of the grid of its program. The scores are F itself:
    neither balanced nor calibrated, nor lowered where all labels of a component are of one class.

    Returns
    -------
    dict

    Examples
    --------
    >>> from lmssc import LMSSC, paper_settings
    >>> clf = LMSSC(**paper_settings())
    >>> clf.n_neighbors, clf.max_iter, clf.tol
    (15, 100, 1e-05)
    """
    return {
        "n_components": 20,
        "n_neighbors": 15,
        "beta": 0.1,
        "gamma": 1.0,
        "label_weight": 0.0,
        "compare_by": "position",
        "balance": 0.0,
        "calibrate": False,
        "second_opinion": 0.0,
        "scaling": None,
        "loadings": "nonnegative",
        "init": "random",
        "alpha": "mean",
        "freeze_alpha": False,
        "max_iter": 100,
        "tol": 1e-5,
    }
