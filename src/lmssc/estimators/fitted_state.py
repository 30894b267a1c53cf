"""What a fitted classifier holds, as tables: attribute → shape, kind and range. `load` checks model files by them.

A forged file can have a right checksum. All that `predict`, `transform`, `most_informative`, `lmssc info` and the
report rely on is in these tables; a new fitted attribute gets a line in the table of its class.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from lmssc.data.layout import Layout
from lmssc.data.parameters import NOT_NEGATIVE, check_parameters
from lmssc.data.scaling import SCALINGS, scaling_by_view
from lmssc.estimators.state_checks import (
    Check,
    Sizes,
    Table,
    are_texts,
    array,
    by_view,
    csr,
    either,
    is_integer,
    is_permutation,
    matrix,
    number,
    optional,
    order_of,
    points,
    rows_below,
)
from lmssc.estimators.state_parts import (
    ROUNDING,
    TINY,
    are_counts,
    are_distributions,
    are_fills,
    are_groups,
    are_link_columns,
    are_link_keys,
    are_link_weights,
    are_nodes,
    are_recipes,
    are_targets,
    are_terms,
    are_weighted_links,
    is_canonical_order,
    is_embedding,
    is_label_regressor,
    is_link_memory,
    is_opinion,
    is_probe,
    is_scaled_view,
    is_scaling,
    is_second_opinion,
    is_trust,
    is_update_memory,
)
from lmssc.persistence.container import DamagedFileError

# Rules of parameters that were wider once, for files of that time.
FORMER_RULES = {"balance": NOT_NEGATIVE}
# Values of scikit-learn's `set_output`.
OUTPUTS = (None, "default", "pandas", "polars")

ALL: Table = {
    "label_distributions_": Check(are_distributions, "an array of shape (n, c), rows that sum to 1"),
    "_order": Check(is_canonical_order, "orders of the distinct samples and the views, and sorted keys"),
    "_nodes": Check(are_nodes, "for each of the n samples the distinct one that it is a copy of"),
    "_fills": Check(are_fills, "a number to fill in for each column of each view"),
    "imputed_": Check(are_counts, "the number of values filled in for each column of views"),
    "_linked": array("v", kinds="b"),
    "_view_groups": Check(are_groups, "a group of each view"),
    "_class_order": order_of("c"),
    "_labelled": Check(
        lambda value, sizes: array("n", kinds="b").accepts(value, sizes) and bool(value.any()), "n booleans, some true"
    ),
    "graph_names_": Check(lambda value, _: are_texts(value) and len(set(value)) == len(value), "names of the graphs"),
    "_graph_order": Check(
        lambda value, sizes: type(value) is list and sorted(value) == list(range(len(sizes.graph_names))),
        "an order of the graphs",
    ),
    "_link_keys": Check(are_link_keys, "a key of each of the m distinct samples, if there are graphs"),
    "_link_columns": Check(are_link_columns, "names of the n samples, for graphs"),
    "unreached_": rows_below("n"),
    "graph_": csr("n", "n", least=0),
    "objective_": array("i"),
}
SCALED: Table = {
    "_scalings": by_view("used_widths", is_scaling, "a scaling"),
    "_storage": by_view(
        "used_widths", lambda one, width, sizes: matrix(0, width).accepts(one, sizes), "an empty matrix"
    ),
}
WEIGHTED: Table = {
    "view_weights_": Check(
        lambda value, sizes: array("v", least=0).accepts(value, sizes) and bool(value.sum() > 0),
        "a weight for each view, not all 0",
    ),
}
NEIGHBORS: Table = {
    "n_neighbors_": Check(
        lambda value, sizes: is_integer(value) and 1 <= value < max(sizes.m, 2), "a number of neighbours below m"
    ),
}
LMSSC: Table = {
    **NEIGHBORS,
    "n_components_": Check(lambda value, sizes: is_integer(value) and value == sizes.r, "the width of latent_"),
    "latent_": points("n", "r"),
    "_embedded": points("n", "q"),
    "loadings_": by_view("widths", lambda one, width, sizes: points(width, "r").accepts(one, sizes), "loadings"),
    "_groups": optional(array("n", kinds="i", least=0)),
    "_embedding": Check(is_embedding, "an embedding of m samples and r components"),
    "_label_regressor": optional(Check(is_label_regressor, "a regressor of c scores on r components")),
    "alpha_": either(array("n", least=0), number(least=TINY)),
    "temperature_": number(least=0),
    "doubt_": number(least=0, most=1 + ROUNDING),
    "second_opinion_": number(least=0, most=1),
    "view_graph_weight_": number(least=0),
    "whitening_": number(least=0, most=1),
    "_opinion": optional(Check(is_opinion, "scores of shape (n, c) and a positive weight")),
    "_second_opinion": optional(Check(is_second_opinion, "landmarks of each view, with c coefficients each")),
    "_ridge": optional(array("r", "r")),
    "_link_laplacian": optional(csr("m", "m")),
    "_targets": Check(are_targets, "labels of m samples, and the trust in each"),
    "_probe": optional(Check(is_probe, "samples of fit, with r products and an energy per view")),
    "objective_terms_": Check(are_terms, "named arrays with one number per iteration"),
    "link_weights_": Check(are_link_weights, "a weight of each graph"),
    "weighted_links_": Check(are_weighted_links, "True or False for each graph"),
    "_links": optional(Check(is_link_memory, "weights of the graphs, and what smoothing new samples needs")),
    "converged_": Check(lambda value, _: isinstance(value, bool | np.bool_), "True or False"),
    "neighbor_recall_": number(least=0, most=1),
}
POINTS: Table = {
    "_points": Check(
        lambda value, sizes: matrix("m", sum(sizes.used_widths)).accepts(value, sizes), "a point for each of m samples"
    ),
}
AMGL: Table = {
    **NEIGHBORS,
    "link_weights_": LMSSC["link_weights_"],
    "_scaled": by_view("content_widths", is_scaled_view, "the scaled view"),
}
MLAN: Table = {**NEIGHBORS, "alpha_": number(), "objective_terms_": LMSSC["objective_terms_"]}
USED: Table = {"_used": Check(lambda value, _: type(value) is list, "the numbers of the views that are used")}
GFHF: Table = {"_frequencies": array("c", least=0, most=1)}
GAUSSIAN: Table = {"width_": number(least=TINY)}
SEARCH: Table = {
    "best_params_": Check(lambda value, _: type(value) is dict and are_texts(list(value)), "a setting"),
    "best_score_": Check(lambda value, _: isinstance(value, float), "a number"),
    "best_index_": Check(lambda value, _: is_integer(value) and value >= 0, "the number of a setting"),
    "n_splits_": Check(lambda value, _: is_integer(value) and value >= 0, "a number of folds"),
    "cv_results_": Check(lambda value, _: type(value) is dict and are_texts(list(value)), "named columns"),
}
# Attributes that a model of any class may have.
OPTIONAL: Table = {
    "scalings_": Check(
        lambda value, _: (
            type(value) is dict and are_texts(list(value)) and all(kind in SCALINGS for kind in value.values())
        ),
        "the scaling of each view by its name",
    ),
    "scaling_reasons_": Check(
        lambda value, _: type(value) is dict and are_texts([*value, *value.values()]),
        "the reason for the scaling of each view by its name",
    ),
    "feature_names_in_": Check(
        lambda value, sizes: type(value) is np.ndarray and value.ndim == 1 and are_texts(value.tolist(), sizes.p),
        "p names",
    ),
    "_view_columns": Check(
        lambda value, _: type(value) is dict and are_texts(list(value)) and all(map(are_texts, value.values())),
        "the names of the columns of views",
    ),
    "files_": Check(are_recipes, "how files become the views"),
    "ids_": Check(
        lambda value, sizes: type(value) is np.ndarray and value.ndim == 1 and are_texts(value.tolist(), sizes.n),
        "n names",
    ),
    "_given": Check(
        lambda value, sizes: array("n", kinds="i", least=-1).accepts(value, sizes) and bool(value.max() < sizes.c),
        "a class of each of the n samples, or −1",
    ),
    "_novelty": array("n", least=0, most=1),
    "_candidates": Check(
        lambda value, sizes: (
            type(value) is np.ndarray
            and value.ndim == 2
            and value.dtype == np.int32
            and value.shape[0] == sizes.m
            and bool(value.size and value.min() >= 0 and value.max() < sizes.m)
        ),
        "samples near to each of the m samples",
    ),
    "_soft": Check(lambda value, _: isinstance(value, bool), "True or False"),
    "_sklearn_output_config": Check(
        lambda value, _: type(value) is dict and list(value) == ["transform"] and value["transform"] in OUTPUTS,
        "the kind of frame that transform gives",
    ),
    "_memory": Check(is_update_memory, "γ, a calibration and counts of the last fit"),
    "_trust": optional(Check(is_trust, "a calibration, and distances that are not unusual")),
    "_starts": Check(lambda value, _: value is None, "None"),
}


def tables_of(model: Any) -> dict[str, tuple[Table, bool]]:
    """Tables of the model's class, and whether its parameters require what is in them."""
    name = type(model).__name__
    if name == "LMSSCCV":
        return {**tables_of(model.best_estimator_), "search": (SEARCH, True)}
    return {"all": (ALL, True), **TABLES_BY_CLASS[name](model)}


# Class → a function of the model that returns its tables, and whether its parameters require them.
TABLES_BY_CLASS: dict[str, Callable[[Any], dict[str, tuple[Table, bool]]]] = {
    "LMSSC": lambda _: {"scaled": (SCALED, True), "own": (LMSSC, True)},
    "AMGL": lambda _: {"scaled": (SCALED, True), "weights": (WEIGHTED, True), "own": (AMGL, True)},
    "MLAN": lambda _: {
        "scaled": (SCALED, True),
        "weights": (WEIGHTED, True),
        "points": (POINTS, True),
        "own": (MLAN, True),
    },
    "GFHF": lambda model: {
        "own": (GFHF, True),
        "scaled": ({**SCALED, **POINTS, **USED, **NEIGHBORS}, getattr(model, "graph", None) != "precomputed"),
        "gaussian": (GAUSSIAN, getattr(model, "graph", None) == "gaussian"),
    },
}


def table_of(model: Any) -> Table:
    """Attributes that a model of this class with these parameters has.

    Examples
    --------
    >>> from lmssc import GFHF
    >>> [name for name in table_of(GFHF(graph="gaussian")) if name not in ALL]
    ['_frequencies', '_scalings', '_storage', '_points', '_used', 'n_neighbors_', 'width_']
    """
    return {name: check for table, needed in tables_of(model).values() if needed for name, check in table.items()}


# Attributes that code looks for with `hasattr`: a model must not have one that belongs to another class.
ATTRIBUTE_NAMES = {*ALL, *SCALED, *WEIGHTED, *LMSSC, *POINTS, *USED, *AMGL, *MLAN, *GFHF, *GAUSSIAN, *SEARCH}


def check_fitted(model: Any) -> None:
    """Raise a `DamagedFileError` unless a classifier has all attributes that it needs, and they are consistent.

    Parameters
    ----------
    model : classifier of lmssc
        Read from a file.

    Examples
    --------
    >>> from lmssc import GFHF
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.2, random_state=0)
    >>> clf = GFHF().fit(data.views, data.y)
    >>> check_fitted(clf)
    >>> clf._points = clf._points[1:]
    >>> try:
    ...     check_fitted(clf)
    ... except DamagedFileError as error:
    ...     print(error)
    its _points is not a point for each of m samples (n = 60, m = 60, c = 3)
    """
    try:
        sizes = _read_sizes(model)
        _check_parameters(model, sizes)
        table = table_of(model)
        present = {name: check for name, check in OPTIONAL.items() if name in vars(model)}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DamagedFileError(
            str(error) if isinstance(error, DamagedFileError) else f"it does not fit together: {error}"
        ) from error
    for name, check in {**table, **present}.items():
        if name not in vars(model):
            raise DamagedFileError(f"its model has no {name}")
        if not _accepts(check, getattr(model, name), sizes):
            raise DamagedFileError(f"its {name} is not {check.wanted} (n = {sizes.n}, m = {sizes.m}, c = {sizes.c})")
    # Attributes that an earlier fit with other parameters left are unused and do no harm.
    known = {name for part, _ in tables_of(model).values() for name in part}
    strange = sorted((ATTRIBUTE_NAMES - known) & set(vars(model)))
    if strange:
        raise DamagedFileError(f"{type(model).__name__} has no {strange[0]}")
    _check_links(model)
    if getattr(model, "_probe", None) is not None and "_trust" not in vars(model):
        raise DamagedFileError("its model has no _trust")
    if "best_estimator_" in vars(model):
        _check_best(model)


def _accepts(check: Check, value: Any, sizes: Sizes) -> bool:
    try:
        return bool(check.accepts(value, sizes))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return False  # of a type that the check does not expect


def _check_links(model: Any) -> None:
    """Groups of connected views occur among the samples, and views without a link imply samples without a label."""
    groups = vars(model).get("_groups")
    if groups is not None and not np.array_equal(np.unique(groups), np.unique(model._view_groups)):
        raise DamagedFileError("its _groups are not those of its views")
    if not model._linked.all() and not len(model.unreached_):
        raise DamagedFileError("its _linked does not go with its unreached_")


def _check_best(model: Any) -> None:
    """The best estimator of a search is a valid model of the same samples, views and classes."""
    best = model.best_estimator_
    if type(best).__name__ not in TABLES_BY_CLASS:
        raise DamagedFileError("its best_estimator_ is not a classifier of lmssc")
    check_fitted(best)
    if best.view_names_ != model.view_names_ or best.classes_.tolist() != model.classes_.tolist():
        raise DamagedFileError("its best_estimator_ has other views or classes")
    if best.label_distributions_.shape != model.label_distributions_.shape:
        raise DamagedFileError("its best_estimator_ has other samples")


def _read_sizes(model: Any) -> Sizes:
    """Sizes, from the attributes that define them, which are checked here."""
    own = vars(model)
    for name in ("classes_", "label_distributions_", "transduction_", "view_names_", "n_iter_", "_layout", "_order"):
        if name not in own:
            raise DamagedFileError(f"its model has no {name}")
    _check_classes(model)
    widths = _check_layout(model)
    if not (is_integer(model.n_iter_) and model.n_iter_ >= 0):
        raise DamagedFileError("its n_iter_ is not a number of iterations")
    n_samples = len(model.transduction_)
    if not n_samples:
        raise DamagedFileError("it has no samples")
    content_widths = [widths[v] for v in model._order.views]
    used = list(range(len(widths)))
    if "_used" in table_of(model):
        used = own.get("_used")
        numbers = type(used) is list and bool(used) and all(type(v) is int and 0 <= v < len(widths) for v in used)
        if not numbers or len(set(used)) < len(used):
            raise DamagedFileError("its _used are not the views that are used")
    r = model.latent_.shape[1] if "latent_" in own else 0
    return Sizes(
        n=n_samples,
        m=len(model._order.samples),
        c=len(model.classes_),
        v=len(widths),
        p=sum(widths),
        r=r,
        q=r + _n_expected(own.get("_label_regressor"), len(model.classes_)),
        i=int(model.n_iter_),
        names=model.view_names_,
        widths=widths,
        content_widths=content_widths,
        used_widths=[content_widths[v] for v in used],
        graph_names=own.get("graph_names_", []),
        n_smoothed=len(own["_links"].loadings) if own.get("_links") is not None else 0,
    )


def _n_expected(regressor: Any, n_classes: int) -> int:
    """Number of scores that a label regressor predicts: one for each class, or fewer with the same distances."""
    if regressor is None:
        return 0
    shape = np.shape(getattr(regressor, "coefficients", ()))
    return shape[1] if len(shape) == 2 else n_classes


def _check_classes(model: Any) -> None:
    classes, labels = model.classes_, model.transduction_
    plain = type(classes) is np.ndarray and classes.ndim == 1 and len(classes) > 1 and classes.dtype.kind in "biufUSO"
    names = classes.tolist() if plain else []
    if not plain or not all(isinstance(name, str | bytes | bool | int | float) for name in names):
        raise DamagedFileError("its classes_ are not two or more names or numbers")
    if not all(one < other for one, other in pairwise(names)):
        raise DamagedFileError("its classes_ are not sorted")
    alike = type(labels) is np.ndarray and labels.ndim == 1 and labels.dtype == classes.dtype
    if not alike or not set(labels.tolist()) <= set(names):
        raise DamagedFileError("its transduction_ has labels that are not among its classes_")


def _check_layout(model: Any) -> list[int]:
    """Number of features of each view."""
    layout, names = model._layout, model.view_names_
    if not isinstance(layout, Layout) or not are_texts(names) or not names or len(set(names)) < len(names):
        raise DamagedFileError("its view_names_ are not the different names of its views")
    columns = layout.columns
    if layout.names != names or type(columns) is not list or len(columns) != len(names):
        raise DamagedFileError("its _layout does not have the views of view_names_")
    if not all(
        type(part) is np.ndarray and part.ndim == 1 and len(part) and part.dtype.kind == "i" for part in columns
    ):
        raise DamagedFileError("its _layout does not have columns for each view")
    n_features = sum(len(part) for part in columns)
    if not is_permutation(np.concatenate(columns), n_features) or vars(model).get("n_features_in_") != n_features:
        raise DamagedFileError("its _layout does not share out the n_features_in_ columns")
    return [len(part) for part in columns]


def _check_parameters(model: Any, sizes: Sizes) -> None:
    parameters = model.get_params(deep=False)
    former = {name: rule for name, rule in FORMER_RULES.items() if name in parameters}
    check_parameters(model, {**type(model)._rules, **former})
    if "scaling" in parameters:
        scaling_by_view(model.scaling, model.view_names_)
    state = parameters.get("random_state")
    if state is not None and not (is_integer(state) and 0 <= state < 2**32):
        raise DamagedFileError(f"its random_state is {state!r}")
    k = parameters.get("n_neighbors")
    if is_integer(k) and k >= sizes.n:
        raise DamagedFileError(f"its n_neighbors={k} is not less than the number of samples, {sizes.n}")
    if parameters.get("graph") == "precomputed" and (sizes.v != 1 or sizes.p != sizes.n or model.view is not None):
        raise DamagedFileError("it has a precomputed graph of another size than its samples")
