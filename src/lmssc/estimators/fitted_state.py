"""What a fitted classifier holds, as tables: attribute → shape, kind and range; checked when a model file is read.

A file with a right checksum may still be made up. All that `predict`, `transform`, `most_informative`, `lmssc info` and
the report rely on is in these tables; a new fitted attribute gets a line in the table of its class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.calibration import Calibration
from lmssc.core.new_samples import NewSampleProbe, Trust
from lmssc.data.canonical_order import CanonicalOrder
from lmssc.data.outliers import Outliers
from lmssc.data.parameters import NOT_NEGATIVE, check_parameters
from lmssc.data.scaling import CENTRED, SCALINGS, ViewScaling, scaling_by_view
from lmssc.data.validation import Layout
from lmssc.data.views import View
from lmssc.persistence.codec import DamagedTreeError

# Rules of parameters that were wider once, for the files of that time.
FORMER_RULES = {"balance": NOT_NEGATIVE}
# Probabilities of a row sum to 1 but for rounding, which single precision has much of.
ROUNDING = 1e-3
# What single precision can be divided by.
# Numbers up to this power of the largest can be squared and squared again, and summed.
MODERATE = 0.3
TINY = float(np.finfo(np.float32).tiny)
OUTPUTS = (None, "default", "pandas", "polars")


@dataclass(frozen=True)
class Sizes:
    """Sizes that the attributes of one model have in common.

    Attributes
    ----------
    n, m, c, v, p : int
        Samples, distinct samples, classes, views, features in all.
    r, q : int
        Latent dimensions, and those that the graph sees; 0 for methods without.
    i : int
        Iterations.
    names : list of str
        Of the views.
    widths, content_widths : list of int
        NystroemFeatures of each view in the order of the input, and by content.
    used_widths : list of int
        Of those of the views by content that are used.
    """

    n: int
    m: int
    c: int
    v: int
    p: int
    r: int
    q: int
    i: int
    names: list[str]
    widths: list[int]
    content_widths: list[int]
    used_widths: list[int]


class Check(NamedTuple):
    """Which values of an attribute are right, and how to say so."""

    accepts: Callable[[Any, Sizes], bool]
    wanted: str


Table = Mapping[str, Check]
Size = int | str | None


def array(*shape: Size, kinds: str = "f", least: float = -np.inf, most: float = np.inf) -> Check:
    """An array of finite numbers; a size is a number, the name of one of `Sizes`, or None for any.

    Examples
    --------
    >>> sizes = Sizes(3, 3, 2, 1, p=4, r=0, q=0, i=1, names=["a"], widths=[4], content_widths=[4], used_widths=[4])
    >>> check = array("n", "c", least=0)
    >>> check.accepts(np.ones((3, 2)), sizes), check.accepts(np.ones((2, 2)), sizes), check.accepts("x", sizes)
    (True, False, False)
    >>> check.wanted
    'an array of shape (n, c), finite, at least 0'
    """

    def accepts(value: Any, sizes: Sizes) -> bool:
        return type(value) is np.ndarray and _fits(value.shape, shape, sizes) and _in_range(value, kinds, least, most)

    names = ", ".join("any" if size is None else str(size) for size in shape)
    limits = (f", at least {least:g}" if least > -np.inf else "") + (f", at most {most:g}" if most < np.inf else "")
    return Check(accepts, f"an array of shape ({names}), finite{limits}")


def csr(*shape: Size, least: float = -np.inf) -> Check:
    """A CSR array of finite numbers, in canonical form, which products rely on."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, sparse.csr_array) or not _fits(value.shape, shape, sizes):
            return False
        whole = len(value.data) == len(value.indices) == value.indptr[-1] and value.has_canonical_format
        return bool(whole) and _in_range(value.data, "f", least, np.inf)

    return Check(accepts, array(*shape, least=least).wanted.replace("an array", "a sparse array"))


def points(*shape: Size) -> Check:
    """An array of numbers that can be squared and squared again."""
    plain = array(*shape)
    return Check(lambda value, sizes: plain.accepts(value, sizes) and _is_moderate(value), plain.wanted)


def matrix(*shape: Size) -> Check:
    """As `points`, or a CSR array of such numbers."""
    plain = csr(*shape)
    packed = Check(lambda value, sizes: plain.accepts(value, sizes) and _is_moderate(value.data), plain.wanted)
    return either(points(*shape), packed)


def _is_moderate(values: NDArray) -> bool:
    return not values.size or bool(np.abs(values).max() <= np.finfo(values.dtype).max ** MODERATE)


def _fits(found: tuple[int, ...], shape: tuple[Size, ...], sizes: Sizes) -> bool:
    wanted = [getattr(sizes, size) if isinstance(size, str) else size for size in shape]
    return len(found) == len(wanted) and all(size in (None, length) for size, length in zip(wanted, found, strict=True))


def _in_range(values: NDArray, kinds: str, least: float, most: float) -> bool:
    if values.dtype.kind not in kinds or (values.dtype.kind == "f" and values.dtype.itemsize < 4):
        return False
    return not values.size or bool(np.isfinite(values).all() and values.min() >= least and values.max() <= most)


def number(least: float = -np.inf, most: float = np.inf) -> Check:
    """A finite number."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        return isinstance(value, float | np.floating) and bool(np.isfinite(value) and least <= value <= most)

    return Check(accepts, f"a finite number from {least:g} to {most:g}")


def optional(check: Check) -> Check:
    """None, or what the check asks for."""
    return Check(lambda value, sizes: value is None or check.accepts(value, sizes), f"None or {check.wanted}")


def either(one: Check, other: Check) -> Check:
    """What one of two checks asks for."""
    return Check(
        lambda value, sizes: one.accepts(value, sizes) or other.accepts(value, sizes),
        f"{one.wanted}, or {other.wanted}",
    )


def rows_below(size: str) -> Check:
    """Row numbers, each once and in order."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        within = array(None, kinds="i", least=0, most=getattr(sizes, size) - 1).accepts(value, sizes)
        return within and bool((np.diff(value) > 0).all())

    return Check(accepts, f"different numbers from 0 to {size} - 1, sorted")


def order_of(size: str, kind: type = np.ndarray) -> Check:
    """The numbers from 0 to size − 1 in some order, as an array or a list."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        return type(value) is kind and _is_order(value, getattr(sizes, size))

    return Check(accepts, f"the numbers from 0 to {size} - 1 in some order")


def _is_order(value: Any, length: int) -> bool:
    if type(value) is list and not all(type(item) is int for item in value):
        return False
    numbers = np.asarray(value)
    return (
        numbers.shape == (length,) and numbers.dtype.kind == "i" and bool((np.sort(numbers) == np.arange(length)).all())
    )


def by_view(widths: str, check: Callable[[Any, int, Sizes], bool], wanted: str) -> Check:
    """A list with something for each view, that a check of it and the number of features accepts."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        features = getattr(sizes, widths)
        return (
            type(value) is list
            and len(value) == len(features)
            and all(check(one, width, sizes) for one, width in zip(value, features, strict=True))
        )

    return Check(accepts, f"a list with {wanted} for each view")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _are_texts(value: Any, length: int | None = None) -> bool:
    return type(value) is list and length in (None, len(value)) and all(type(item) is str for item in value)


# --- what is more than an array --------------------------------------------------------------------------------------


def _is_scaling(value: Any, width: int, sizes: Sizes) -> bool:
    if not isinstance(value, ViewScaling) or value.kind not in SCALINGS:
        return False
    if value.outliers is not None and not _are_outliers(value.outliers, width, sizes):
        return False
    needed = {**dict.fromkeys(CENTRED, ("column_scale", "mean")), "tfidf": ("column_scale",)}.get(value.kind, ())
    by_column = array(width)
    return number(least=0).accepts(value.factor, sizes) and all(
        (name not in needed if part is None else by_column.accepts(part, sizes))
        for name, part in (("column_scale", value.column_scale), ("mean", value.mean))
    )


def _are_outliers(value: Any, width: int, sizes: Sizes) -> bool:
    if not isinstance(value, Outliers) or not array(None, kinds="i", least=0, most=width - 1).accepts(
        value.columns, sizes
    ):
        return False
    size = len(value.columns)
    numbers = (value.low, value.high, value.mean, value.first, value.last)
    return (
        0 < size == len(np.unique(value.columns))
        and all(points(size).accepts(part, sizes) for part in numbers)
        and array(size, kinds="b").accepts(value.has_codes, sizes)
        and array(size, kinds="i", least=1).accepts(value.counts, sizes)
    )


def _are_fills(value: Any, sizes: Sizes) -> bool:
    if type(value) is not dict or list(value) not in ([], sizes.names):
        return False
    return all(array(width).accepts(fills, sizes) for width, fills in zip(sizes.widths, value.values(), strict=False))


def _are_counts(value: Any, sizes: Sizes) -> bool:
    return type(value) is dict and all(
        name in sizes.names and array(None, kinds="i", least=0).accepts(counts, sizes) for name, counts in value.items()
    )


def _is_scaled_view(value: Any, width: int, sizes: Sizes) -> bool:
    if not isinstance(value, View) or not matrix("m", width).accepts(value.data, sizes):
        return False
    if not optional(array("m", kinds="b")).accepts(value.present, sizes):
        return False
    nobody = value.present is not None and not value.present.any()
    return not nobody and optional(points(width)).accepts(value.offset, sizes)


def _is_content_order(value: Any, sizes: Sizes) -> bool:
    return (
        isinstance(value, CanonicalOrder)
        and array("m", kinds="i", least=0, most=sizes.n - 1).accepts(value.samples, sizes)
        and len(np.unique(value.samples)) == sizes.m
        and order_of("v", list).accepts(value.views, sizes)
        and type(value.keys) is np.ndarray
        and value.keys.dtype == np.uint64
        and value.keys.shape == (sizes.m,)
        and bool((value.keys[1:] >= value.keys[:-1]).all())
    )


def _are_nodes(value: Any, sizes: Sizes) -> bool:
    return array("n", kinds="i", least=0, most=sizes.m - 1).accepts(value, sizes) and len(np.unique(value)) == sizes.m


def _are_groups(value: Any, sizes: Sizes) -> bool:
    return array("v", kinds="i", least=0, most=sizes.v - 1).accepts(value, sizes)


def _is_geometry(value: Any, sizes: Sizes) -> bool:
    parts = (value.stretch, value.radius, value.norms)
    if all(part is None for part in parts):
        return True
    checks = (array("r", least=0), number(least=0), array("m", least=0))
    return all(check.accepts(part, sizes) for check, part in zip(checks, parts, strict=True))


def _is_expectation(value: Any, sizes: Sizes) -> bool:
    features = value.features
    n_landmarks, n_radial = features.whitening.shape
    return (
        points("r").accepts(features.centre, sizes)
        and number(least=TINY).accepts(features.energy, sizes)
        and points(n_landmarks, "r").accepts(features.landmarks, sizes)
        and points(None, None).accepts(features.whitening, sizes)
        and points(sizes.r + n_radial, "c").accepts(value.coefficients, sizes)
    )


def _are_newcomers(value: Any, sizes: Sizes) -> bool:
    count = len(value.samples)
    return (
        isinstance(value, NewSampleProbe)
        and rows_below("m").accepts(value.samples, sizes)
        and points("v", count, "r").accepts(value.products, sizes)
        and array("v", count, least=0).accepts(value.energies, sizes)
        and array("v", count, kinds="b").accepts(value.present, sizes)
        and array("r", "r").accepts(value.ridge, sizes)
    )


def _is_trust(value: Any, sizes: Sizes) -> bool:
    calibration = value.calibration
    return (
        isinstance(value, Trust)
        and isinstance(calibration, Calibration)
        and number(least=TINY).accepts(calibration.temperature, sizes)
        and number(least=0, most=1 + ROUNDING).accepts(calibration.doubt, sizes)
        and number().accepts(calibration.rarity, sizes)
        and number(least=0).accepts(value.distance, sizes)
        and number(least=0).accepts(value.leftover, sizes)
    )


def _are_distributions(value: Any, sizes: Sizes) -> bool:
    right = array("n", "c", least=0, most=1 + ROUNDING).accepts(value, sizes)
    return right and bool((np.abs(value.sum(axis=1) - 1) <= ROUNDING).all())


def _are_terms(value: Any, sizes: Sizes) -> bool:
    each = array("i")
    return type(value) is dict and all(type(name) is str and each.accepts(part, sizes) for name, part in value.items())


def _are_recipes(value: Any, sizes: Sizes) -> bool:
    """How `lmssc classify` made the views from columns."""
    views = value.get("views", {})
    return (
        type(value) is dict
        and all(value.get(name) is None or type(value[name]) is str for name in ("id_column", "label_column"))
        and _are_texts(value.get("id_names", []))
        and (value.get("decimal") is None or _is_one_of(value["decimal"], (".", ",")))
        and type(views) is dict
        and (not views or set(views) == set(sizes.names))
        and all(_is_recipe(recipe) for recipe in views.values())
    )


def _is_recipe(value: Any) -> bool:
    return (
        type(value) is dict
        and type(value.get("kind")) is str
        and "columns" in value
        and (value["columns"] is None or _are_texts(value["columns"]))
        and (value["kind"] != "text" or (_are_texts(value.get("words")) and bool(value["columns"])))
        and (value["kind"] != "numbered" or type(value.get("first")) is int)
        and type(value.get("kinds", {})) is dict
        and all(_is_kind(kind) for kind in value.get("kinds", {}).values())
        and type(value.get("ranges", {})) is dict
        and all(_is_range(one) for one in value.get("ranges", {}).values())
    )


def _is_range(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(type(end) is float for end in value)


def _is_kind(value: Any) -> bool:
    """What a column of numbers was understood as."""
    return (
        type(value) is dict
        and _is_one_of(value.get("role"), ("number", "yes/no", "category"))
        and _are_texts(value.get("levels", []))
        and type(value.get("unit", "")) is str
        and _is_one_of(value.get("decimal", "."), (".", ","))
        and type(value.get("blank", False)) is bool
    )


def _is_one_of(value: Any, words: tuple[str, ...]) -> bool:
    return type(value) is str and value in words


# --- the tables ------------------------------------------------------------------------------------------------------

ALL: Table = {
    "label_distributions_": Check(_are_distributions, "an array of shape (n, c), rows that sum to 1"),
    "_order": Check(_is_content_order, "orders of the distinct samples and the views, and sorted keys"),
    "_nodes": Check(_are_nodes, "for each of the n samples the distinct one that it is a copy of"),
    "_fills": Check(_are_fills, "a number to fill in for each column of each view"),
    "imputed_": Check(_are_counts, "the number of values filled in for each column of views"),
    "_linked": array("v", kinds="b"),
    "_view_groups": Check(_are_groups, "a group of each view"),
    "_class_order": order_of("c"),
    "_labelled": Check(
        lambda value, sizes: array("n", kinds="b").accepts(value, sizes) and bool(value.any()), "n booleans, some true"
    ),
    "unreached_": rows_below("n"),
    "graph_": csr("n", "n", least=0),
    "objective_": array("i"),
}
SCALED: Table = {
    "_scalings": by_view("used_widths", _is_scaling, "a scaling"),
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
        lambda value, sizes: _is_whole(value) and 1 <= value < max(sizes.m, 2), "a number of neighbours below m"
    ),
}
LMSSC: Table = {
    **NEIGHBORS,
    "n_components_": Check(lambda value, sizes: _is_whole(value) and value == sizes.r, "the width of latent_"),
    "latent_": points("n", "r"),
    "_embedded": points("n", "q"),
    "loadings_": by_view("widths", lambda one, width, sizes: points(width, "r").accepts(one, sizes), "loadings"),
    "_groups": optional(array("n", kinds="i", least=0)),
    "_embedding": Check(_is_geometry, "a geometry of m samples and r dimensions"),
    "_label_regressor": optional(Check(_is_expectation, "a regression of c scores on r dimensions")),
    "alpha_": either(array("n", least=0), number(least=TINY)),
    "temperature_": number(least=0),
    "doubt_": number(least=0, most=1 + ROUNDING),
    "_probe": optional(Check(_are_newcomers, "samples of fit, with r products and an energy for each view")),
    "objective_terms_": Check(_are_terms, "named arrays of one number an iteration"),
    "converged_": Check(lambda value, _: isinstance(value, bool | np.bool_), "True or False"),
    "neighbor_recall_": number(least=0, most=1),
}
POINTS: Table = {
    "_points": Check(
        lambda value, sizes: matrix("m", sum(sizes.used_widths)).accepts(value, sizes), "a point for each of m samples"
    ),
}
AMGL: Table = {**NEIGHBORS, "_scaled": by_view("content_widths", _is_scaled_view, "the scaled view")}
MLAN: Table = {**NEIGHBORS, "alpha_": number(), "objective_terms_": LMSSC["objective_terms_"]}
USED: Table = {"_used": Check(lambda value, _: type(value) is list, "the numbers of the views that are used")}
GFHF: Table = {"_frequencies": array("c", least=0, most=1)}
GAUSSIAN: Table = {"width_": number(least=TINY)}
SEARCH: Table = {
    "best_params_": Check(lambda value, _: type(value) is dict and _are_texts(list(value)), "a setting"),
    "best_score_": Check(lambda value, _: isinstance(value, float), "a number"),
    "best_index_": Check(lambda value, _: _is_whole(value) and value >= 0, "the number of a setting"),
    "n_splits_": Check(lambda value, _: _is_whole(value) and value >= 0, "a number of folds"),
    "cv_results_": Check(lambda value, _: type(value) is dict and _are_texts(list(value)), "named columns"),
}
# What a model may have, whatever its class.
OPTIONAL: Table = {
    "scalings_": Check(
        lambda value, _: (
            type(value) is dict and _are_texts(list(value)) and all(kind in SCALINGS for kind in value.values())
        ),
        "the scaling of each view by its name",
    ),
    "feature_names_in_": Check(
        lambda value, sizes: type(value) is np.ndarray and value.ndim == 1 and _are_texts(value.tolist(), sizes.p),
        "p names",
    ),
    "_view_columns": Check(
        lambda value, _: type(value) is dict and _are_texts(list(value)) and all(map(_are_texts, value.values())),
        "the names of the columns of views",
    ),
    "files_": Check(_are_recipes, "how files become the views"),
    "_sklearn_output_config": Check(
        lambda value, _: type(value) is dict and list(value) == ["transform"] and value["transform"] in OUTPUTS,
        "the kind of frame that transform gives",
    ),
    "_trust": optional(Check(_is_trust, "a calibration, and distances that are not unusual")),
    "_starts": Check(lambda value, _: value is None, "None"),
}


def tables_of(model: Any) -> dict[str, tuple[Table, bool]]:
    """Tables of the model's class, and whether its parameters make it need what is in them."""
    name = type(model).__name__
    if name == "LMSSCCV":
        return {**tables_of(model.best_estimator_), "search": (SEARCH, True)}
    own: dict[str, dict[str, tuple[Table, bool]]] = {
        "LMSSC": {"scaled": (SCALED, True), "own": (LMSSC, True)},
        "AMGL": {"scaled": (SCALED, True), "weights": (WEIGHTED, True), "own": (AMGL, True)},
        "MLAN": {"scaled": (SCALED, True), "weights": (WEIGHTED, True), "points": (POINTS, True), "own": (MLAN, True)},
        "GFHF": {
            "own": (GFHF, True),
            "scaled": ({**SCALED, **POINTS, **USED, **NEIGHBORS}, getattr(model, "graph", None) != "precomputed"),
            "gaussian": (GAUSSIAN, getattr(model, "graph", None) == "gaussian"),
        },
    }
    return {"all": (ALL, True), **own[name]}


def table_of(model: Any) -> Table:
    """The attributes that a model of this class and with these parameters has.

    Examples
    --------
    >>> from lmssc import GFHF
    >>> [name for name in table_of(GFHF(graph="gaussian")) if name not in ALL]
    ['_frequencies', '_scalings', '_storage', '_points', '_used', 'n_neighbors_', 'width_']
    """
    return {name: check for table, needed in tables_of(model).values() if needed for name, check in table.items()}


# Attributes that code asks for by `hasattr`: one that is not of the model's class would be taken for what it says.
NAMES = {*ALL, *SCALED, *WEIGHTED, *LMSSC, *POINTS, *USED, *AMGL, *MLAN, *GFHF, *GAUSSIAN, *SEARCH}


def check_fitted(model: Any) -> None:
    """Raise a `DamagedTreeError` unless all that a classifier needs to answer is there and fits together.

    Parameters
    ----------
    model : classifier of lmssc
        As it was read from a file.

    Examples
    --------
    >>> from lmssc import GFHF
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.2, random_state=0)
    >>> clf = GFHF().fit(data.views, data.y)
    >>> check_fitted(clf)
    >>> clf._points = clf._points[1:]
    >>> check_fitted(clf)
    Traceback (most recent call last):
        ...
    lmssc.persistence.codec.DamagedTreeError: its _points is not a point for each of m samples (n = 60, m = 60, c = 3)
    """
    try:
        sizes = _read_sizes(model)
        _check_parameters(model, sizes)
        table = table_of(model)
        present = {name: check for name, check in OPTIONAL.items() if name in vars(model)}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DamagedTreeError(
            str(error) if isinstance(error, DamagedTreeError) else f"it does not fit together: {error}"
        ) from error
    for name, check in {**table, **present}.items():
        if name not in vars(model):
            raise DamagedTreeError(f"its model has no {name}")
        if not _accepts(check, getattr(model, name), sizes):
            raise DamagedTreeError(f"its {name} is not {check.wanted} (n = {sizes.n}, m = {sizes.m}, c = {sizes.c})")
    # What an earlier fit with other parameters left is of no use, but does no harm.
    known = {name for part, _ in tables_of(model).values() for name in part}
    strange = sorted((NAMES - known) & set(vars(model)))
    if strange:
        raise DamagedTreeError(f"{type(model).__name__} has no {strange[0]}")
    _check_links(model)
    if getattr(model, "_probe", None) is not None and "_trust" not in vars(model):
        raise DamagedTreeError("its model has no _trust")
    if "best_estimator_" in vars(model):
        _check_best(model)


def _accepts(check: Check, value: Any, sizes: Sizes) -> bool:
    try:
        return bool(check.accepts(value, sizes))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return False  # of another type altogether


def _check_links(model: Any) -> None:
    """Samples in each group of linked views, and samples that are not linked to a label where views are not."""
    groups = vars(model).get("_groups")
    if groups is not None and not np.array_equal(np.unique(groups), np.unique(model._view_groups)):
        raise DamagedTreeError("its _groups are not those of its views")
    if not model._linked.all() and not len(model.unreached_):
        raise DamagedTreeError("its _linked does not go with its unreached_")


def _check_best(model: Any) -> None:
    """What a search found is a model by itself, and of the same samples, views and classes."""
    best = model.best_estimator_
    if type(best).__name__ not in ("LMSSC", "GFHF", "AMGL", "MLAN"):
        raise DamagedTreeError("its best_estimator_ is not a classifier of lmssc")
    check_fitted(best)
    if best.view_names_ != model.view_names_ or best.classes_.tolist() != model.classes_.tolist():
        raise DamagedTreeError("its best_estimator_ has other views or classes")
    if best.label_distributions_.shape != model.label_distributions_.shape:
        raise DamagedTreeError("its best_estimator_ has other samples")


def _read_sizes(model: Any) -> Sizes:
    """Sizes by the attributes that all others go by, which are checked here."""
    own = vars(model)
    for name in ("classes_", "label_distributions_", "transduction_", "view_names_", "n_iter_", "_layout", "_order"):
        if name not in own:
            raise DamagedTreeError(f"its model has no {name}")
    _check_classes(model)
    widths = _check_layout(model)
    if not (_is_whole(model.n_iter_) and model.n_iter_ >= 0):
        raise DamagedTreeError("its n_iter_ is not a number of iterations")
    n_samples = len(model.transduction_)
    if not n_samples:
        raise DamagedTreeError("it has no samples")
    content_widths = [widths[v] for v in model._order.views]
    used = list(range(len(widths)))
    if "_used" in table_of(model):
        used = own.get("_used")
        numbers = type(used) is list and bool(used) and all(type(v) is int and 0 <= v < len(widths) for v in used)
        if not numbers or len(set(used)) < len(used):
            raise DamagedTreeError("its _used are not the views that are used")
    r = model.latent_.shape[1] if "latent_" in own else 0
    return Sizes(
        n=n_samples,
        m=len(model._order.samples),
        c=len(model.classes_),
        v=len(widths),
        p=sum(widths),
        r=r,
        q=r + (len(model.classes_) if own.get("_label_regressor") is not None else 0),
        i=int(model.n_iter_),
        names=model.view_names_,
        widths=widths,
        content_widths=content_widths,
        used_widths=[content_widths[v] for v in used],
    )


def _check_classes(model: Any) -> None:
    classes, labels = model.classes_, model.transduction_
    plain = type(classes) is np.ndarray and classes.ndim == 1 and len(classes) > 1 and classes.dtype.kind in "biufUSO"
    names = classes.tolist() if plain else []
    if not plain or not all(isinstance(name, str | bytes | bool | int | float) for name in names):
        raise DamagedTreeError("its classes_ are not two or more names or numbers")
    if not all(one < other for one, other in pairwise(names)):
        raise DamagedTreeError("its classes_ are not sorted")
    alike = type(labels) is np.ndarray and labels.ndim == 1 and labels.dtype == classes.dtype
    if not alike or not set(labels.tolist()) <= set(names):
        raise DamagedTreeError("its transduction_ has labels that are not among its classes_")


def _check_layout(model: Any) -> list[int]:
    """Number of features of each view."""
    layout, names = model._layout, model.view_names_
    if not isinstance(layout, Layout) or not _are_texts(names) or not names or len(set(names)) < len(names):
        raise DamagedTreeError("its view_names_ are not the different names of its views")
    columns = layout.columns
    if layout.names != names or type(columns) is not list or len(columns) != len(names):
        raise DamagedTreeError("its _layout does not have the views of view_names_")
    if not all(
        type(part) is np.ndarray and part.ndim == 1 and len(part) and part.dtype.kind == "i" for part in columns
    ):
        raise DamagedTreeError("its _layout does not have columns for each view")
    n_features = sum(len(part) for part in columns)
    if not _is_order(np.concatenate(columns), n_features) or vars(model).get("n_features_in_") != n_features:
        raise DamagedTreeError("its _layout does not share out the n_features_in_ columns")
    return [len(part) for part in columns]


def _check_parameters(model: Any, sizes: Sizes) -> None:
    parameters = model.get_params(deep=False)
    former = {name: rule for name, rule in FORMER_RULES.items() if name in parameters}
    check_parameters(model, {**type(model)._rules, **former})
    if "scaling" in parameters:
        scaling_by_view(model.scaling, model.view_names_)
    state = parameters.get("random_state")
    if state is not None and not (_is_whole(state) and 0 <= state < 2**32):
        raise DamagedTreeError(f"its random_state is {state!r}")
    k = parameters.get("n_neighbors")
    if _is_whole(k) and k >= sizes.n:
        raise DamagedTreeError(f"its n_neighbors={k} is not less than the number of samples, {sizes.n}")
    if parameters.get("graph") == "precomputed" and (sizes.v != 1 or sizes.p != sizes.n or model.view is not None):
        raise DamagedTreeError("it has a precomputed graph of another size than its samples")
