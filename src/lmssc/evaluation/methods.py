"""Methods that can be compared: by name, or any scikit-learn classifier."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from lmssc.data.scaling import fit_scalings, scale_views
from lmssc.data.views import RawView
from lmssc.estimators.amgl import AMGL
from lmssc.estimators.base import MultiViewClassifier
from lmssc.estimators.gfhf import GFHF
from lmssc.estimators.lmssc import LMSSC, paper_settings
from lmssc.estimators.mlan import MLAN

# "GFHF (view v)" stands for one method a view.
EACH_VIEW = "GFHF (view v)"
NAMES = (
    "LMSSC",
    "LMSSC (paper settings)",
    EACH_VIEW,
    "GFHF (concatenated)",
    "AMGL",
    "MLAN",
    "LabelSpreading",
    "LogisticRegression",
    "SVC (RBF)",
    "SVC (linear)",
    "1-NN",
)
SEMI_SUPERVISED = (LabelPropagation, LabelSpreading, SelfTrainingClassifier)


def _built_in(seed: int) -> dict[str, Any]:
    return {
        "LMSSC": LMSSC(),
        "LMSSC (paper settings)": LMSSC(**paper_settings(), random_state=seed),
        "GFHF (concatenated)": GFHF(),
        "AMGL": AMGL(),
        "MLAN": MLAN(),
        "LabelSpreading": LabelSpreading(kernel="knn"),
        "LogisticRegression": LogisticRegression(max_iter=2000),
        "SVC (RBF)": SVC(),
        "SVC (linear)": SVC(kernel="linear"),
        "1-NN": KNeighborsClassifier(n_neighbors=1),
    }


def resolve_methods(
    methods: Sequence[str] | Mapping[str, Any] | None, view_names: Sequence[str], seed: int
) -> dict[str, Any]:
    """Name → estimator, from names (all if None) or a dict that has estimators or None for a built-in name.

    Examples
    --------
    >>> list(resolve_methods(["1-NN", "GFHF (view v)"], ["image", "text"], 0))
    ['1-NN', 'GFHF (view image)', 'GFHF (view text)']
    """
    wanted: dict[str, Any] = {}
    if methods is None:
        methods = NAMES
    given = (
        methods if isinstance(methods, Mapping) else dict.fromkeys([methods] if isinstance(methods, str) else methods)
    )
    known = {**_built_in(seed), **{f"GFHF (view {name})": GFHF(view=name) for name in view_names}}
    for name, estimator in given.items():
        if estimator is not None:
            if not hasattr(estimator, "fit"):
                raise TypeError(f"methods: {name!r} must be a scikit-learn classifier, got {estimator!r}")
            wanted[str(name)] = estimator
        elif name == EACH_VIEW:
            wanted.update({f"GFHF (view {view})": known[f"GFHF (view {view})"] for view in view_names})
        elif name in known:
            wanted[name] = known[name]
        else:
            raise ValueError(f"methods: unknown method {name!r}; the names are {', '.join(map(repr, NAMES))}")
    if not wanted:
        raise ValueError("methods is empty: name at least one method")
    return wanted


def scaled_concatenation(raws: list[RawView]) -> Any:
    """All views, scaled by `"auto"` and side by side; what single-view methods get.

    The views have equal energy, and together as much as they have before that (one a feature where they are
    standardised, one a view of words), because the penalties of linear models and the like are made for such units.
    """
    scalings = fit_scalings(raws, ["auto"] * len(raws))
    energy = sum(1 / (len(raws) * scaling.factor**2) for scaling in scalings)
    return scale_views(raws, scalings).points() * np.sqrt(energy)


def fit_and_answer(estimator: Any, raws: list[RawView], labels: NDArray, joined: Any) -> tuple[NDArray, NDArray]:
    """Distributions over the classes and answers for the rows without a label.

    Multi-view methods see all views of all rows; semi-supervised ones of scikit-learn all rows of the scaled
    concatenation; supervised ones its labelled rows.
    """
    hidden = labels < 0
    estimator = clone(estimator)
    if isinstance(estimator, MultiViewClassifier):
        views = {raw.name: raw.data for raw in raws}
        estimator.fit(views, labels, present={raw.name: raw.present for raw in raws})
        return estimator.label_distributions_[hidden], estimator.transduction_[hidden]
    if isinstance(estimator, SEMI_SUPERVISED):
        estimator.fit(joined, labels)
        if hasattr(estimator, "label_distributions_"):
            proba = np.nan_to_num(estimator.label_distributions_[hidden])
            return _normalise(proba), estimator.transduction_[hidden]
    else:
        estimator.fit(joined[~hidden], labels[~hidden])
    return _probabilities(estimator, joined[hidden]), estimator.predict(joined[hidden])


def _normalise(proba: NDArray) -> NDArray:
    """Rows that sum to 1; uniform where a method says nothing."""
    sums = proba.sum(axis=1, keepdims=True)
    return np.where(sums > 0, proba / np.where(sums > 0, sums, 1), 1 / proba.shape[1])


def _probabilities(estimator: Any, rows: Any) -> NDArray:
    """`predict_proba`, or for a method without it the softmax of its decision function."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(rows)
    decision = estimator.decision_function(rows)
    if decision.ndim == 1:
        positive = expit(decision)
        return np.column_stack([1 - positive, positive])
    return softmax(decision, axis=1)
