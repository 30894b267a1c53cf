"""Methods that can be compared: by name, or any scikit-learn classifier."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from lmssc.data.graph_view import Graph, LinkRows
from lmssc.data.scaling import fit_scalings, scale_views
from lmssc.data.view import RawView
from lmssc.estimators.amgl import AMGL
from lmssc.estimators.base import MultiViewClassifier
from lmssc.estimators.gfhf import GFHF
from lmssc.estimators.lmssc import LMSSC
from lmssc.estimators.lmssc_parameters import paper_settings
from lmssc.estimators.mlan import MLAN
from lmssc.evaluation.peers import (
    Diffusion,
    LateFusion,
    MeanKernelSVC,
    NeighborGraphClassifier,
    PerViewClassifier,
    Poisson,
    RidgeWithProbabilities,
    missing_package,
)

# Stands for one method per view.
EACH_VIEW = "GFHF (view v)"
# Penalties that the ridge chooses from.
RIDGE_PENALTIES = tuple(10.0**power for power in range(-3, 6))
# Name → a function of the seed that returns the estimator. `EACH_VIEW` needs the names of the views: `resolve_methods`
# replaces it.
BUILT_IN: dict[str, Callable[[int], Any]] = {
    "LMSSC": lambda _: LMSSC(),
    "LMSSC (paper settings)": lambda seed: LMSSC(**paper_settings(), random_state=seed),
    EACH_VIEW: lambda _: GFHF(),
    "GFHF (concatenated)": lambda _: GFHF(),
    "AMGL": lambda _: AMGL(),
    "MLAN": lambda _: MLAN(),
    "LabelSpreading": lambda _: LabelSpreading(kernel="knn"),
    "LogisticRegression": lambda _: LogisticRegression(max_iter=2000),
    "SVC (RBF)": lambda _: SVC(),
    "SVC (linear)": lambda _: SVC(kernel="linear"),
    "SVC (mean kernel)": lambda _: MeanKernelSVC(),
    "LogisticRegression (late fusion)": lambda _: LateFusion(),
    "Ridge": lambda _: RidgeWithProbabilities(alphas=RIDGE_PENALTIES),
    "RandomForest": lambda seed: RandomForestClassifier(random_state=seed),
    "SelfTraining": lambda _: SelfTrainingClassifier(LogisticRegression(max_iter=2000)),
    "Diffusion (scikit-network)": lambda _: Diffusion(),
    "Poisson (graphlearning)": lambda _: Poisson(),
    "1-NN": lambda _: KNeighborsClassifier(n_neighbors=1),
}
METHOD_NAMES = tuple(BUILT_IN)
# Classifiers of the concatenated views that are fitted to all rows, with −1 for the held-out labels.
SEMI_SUPERVISED = (
    LabelPropagation,
    LabelSpreading,
    SelfTrainingClassifier,
    MultiViewClassifier,
    NeighborGraphClassifier,
)


def resolve_methods(
    methods: Sequence[str] | Mapping[str, Any] | None, view_names: Sequence[str], seed: int
) -> dict[str, Any]:
    """Name → estimator, from names or a dict that has estimators or None for a built-in name.

    None stands for all names whose packages are installed.

    Examples
    --------
    >>> list(resolve_methods(["1-NN", "GFHF (view v)"], ["image", "text"], 0))
    ['1-NN', 'GFHF (view image)', 'GFHF (view text)']
    """
    wanted: dict[str, Any] = {}
    if methods is None:
        methods = [name for name in METHOD_NAMES if not missing_package(name)]
    given = (
        methods if isinstance(methods, Mapping) else dict.fromkeys([methods] if isinstance(methods, str) else methods)
    )
    of_view = {f"GFHF (view {name})": GFHF(view=name) for name in view_names}
    for name, estimator in given.items():
        if estimator is not None:
            if not hasattr(estimator, "fit"):
                raise TypeError(f"methods: {name!r} must be a scikit-learn classifier, got {estimator!r}")
            wanted[str(name)] = estimator
        elif name == EACH_VIEW:
            wanted.update(of_view)
        elif name in of_view:
            wanted[name] = of_view[name]
        elif name in BUILT_IN:
            if package := missing_package(name):
                raise ImportError(f"methods: {name!r} needs {package}: pip install 'lmssc[peers]'")
            wanted[name] = BUILT_IN[name](seed)
        else:
            raise ValueError(f"methods: unknown method {name!r}; the names are {', '.join(map(repr, METHOD_NAMES))}")
    if not wanted:
        raise ValueError("methods is empty: name at least one method")
    return wanted


def scaled_concatenation(views: list[RawView]) -> Any:
    """All views, scaled by `"auto"` and side by side: the input of single-view methods.

    The views have equal energy. Their total energy is the same as before the views were made equal (one per
    standardised feature, one per view of words), because the penalties of linear models assume such units.
    """
    views = _as_features(views)
    scalings = fit_scalings(views, ["auto"] * len(views))
    energy = sum(1 / (len(views) * scaling.factor**2) for scaling in scalings)
    return scale_views(views, scalings).points() * np.sqrt(energy)


def scaled_one_by_one(views: list[RawView]) -> list[Any]:
    """The views, scaled by `"auto"`: the input of a `PerViewClassifier`."""
    views = _as_features(views)
    scalings = fit_scalings(views, ["auto"] * len(views), equalise=False)
    return [view.points() for view in scale_views(views, scalings)]


def _as_features(views: list[RawView]) -> list[RawView]:
    """The views, with links as features."""
    return [view.as_features() if isinstance(view, LinkRows) else view for view in views]


def fit_and_answer(estimator: Any, views: list[RawView], labels: NDArray, concatenated: Any) -> tuple[NDArray, NDArray]:
    """Fit a clone of an estimator and predict the rows without a label.

    Parameters
    ----------
    estimator : classifier
        A `MultiViewClassifier` sees all views of all rows, a `PerViewClassifier` the labelled rows of each scaled view.
        A subclass of LabelPropagation, LabelSpreading, SelfTrainingClassifier or NeighborGraphClassifier, or a
        pipeline that ends in one, sees all rows of the scaled, concatenated views. Any other classifier sees only the
        labelled rows of these; it needs `predict_proba`, or a `decision_function` with one column per class.
    views : list of RawView
        The views.
    labels : ndarray of int
        Class of each row, −1 where it is held out.
    concatenated : array or CSR array
        The views from `scaled_concatenation`; not used by a `MultiViewClassifier`.

    Returns
    -------
    proba : ndarray of shape (n_held_out, n_classes)
        Distributions over the classes.
    predicted : ndarray of shape (n_held_out,)
        Classes.

    Raises
    ------
    ValueError
        If the estimator does not return one column per class.
    """
    held_out = labels < 0
    estimator = clone(estimator)
    proba, predicted = _predict_hidden(estimator, views, labels, concatenated)
    n_classes = len(np.unique(labels[~held_out]))
    if np.ndim(proba) != 2 or proba.shape[1] != n_classes:
        raise ValueError(
            f"{type(estimator).__name__} returns scores of shape {np.shape(proba)} for {int(held_out.sum())} rows and "
            f"{n_classes} classes; predict_proba or decision_function must return one column per class "
            "(SVC: decision_function_shape='ovr')"
        )
    return proba, predicted


def _predict_hidden(
    estimator: Any, views: list[RawView], labels: NDArray, concatenated: Any
) -> tuple[NDArray, NDArray]:
    held_out = labels < 0
    if isinstance(estimator, MultiViewClassifier):
        graphs = {view.name for view in views if isinstance(view, LinkRows) and estimator._takes_graphs}
        named = {view.name: Graph(view.data) if view.name in graphs else view.data for view in views}
        estimator.fit(named, labels, present={view.name: view.present for view in views if view.name not in graphs})
        return estimator.label_distributions_[held_out], estimator.transduction_[held_out]
    if isinstance(estimator, PerViewClassifier):
        scaled = scaled_one_by_one(views)
        estimator.fit([view[~held_out] for view in scaled], labels[~held_out])
        proba = estimator.predict_proba([view[held_out] for view in scaled])
        return proba, estimator.classes_[proba.argmax(axis=1)]
    last = _last_step(estimator)
    if isinstance(last, SEMI_SUPERVISED):
        estimator.fit(concatenated, labels)
        if hasattr(last, "label_distributions_"):
            return _normalise(np.nan_to_num(last.label_distributions_[held_out])), last.transduction_[held_out]
    else:
        estimator.fit(concatenated[~held_out], labels[~held_out])
    return _probabilities(estimator, concatenated[held_out]), estimator.predict(concatenated[held_out])


def _last_step(estimator: Any) -> Any:
    """The classifier at the end of a pipeline, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def _normalise(proba: NDArray) -> NDArray:
    """Rows that sum to 1; uniform where a row is all zeros."""
    sums = proba.sum(axis=1, keepdims=True)
    return np.where(sums > 0, proba / np.where(sums > 0, sums, 1), 1 / proba.shape[1])


def _probabilities(estimator: Any, rows: Any) -> NDArray:
    """`predict_proba`, or for a method without it the softmax of its decision function."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(rows)
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"{type(estimator).__name__} has neither predict_proba nor decision_function")
    decision = estimator.decision_function(rows)
    if decision.ndim == 1:
        positive = expit(decision)
        return np.column_stack([1 - positive, positive])
    return softmax(decision, axis=1)
