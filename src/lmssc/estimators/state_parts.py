"""Checks of fitted attributes that are more than an array: scalings, orders, calibrations and the like."""

from typing import Any

import numpy as np

from lmssc.core.calibration import Calibration
from lmssc.core.new_samples import NewSampleProbe, Trust
from lmssc.data.canonical_order import CanonicalOrder
from lmssc.data.outliers import Outliers
from lmssc.data.scaling import CENTRED, SCALINGS, ViewScaling
from lmssc.data.views import View
from lmssc.estimators.state_checks import (
    Sizes,
    are_texts,
    array,
    matrix,
    number,
    optional,
    order_of,
    points,
    rows_below,
)

# Probabilities sum to 1 up to rounding in single precision.
ROUNDING = 1e-3
# Smallest divisor in single precision.
TINY = float(np.finfo(np.float32).tiny)


def is_scaling(value: Any, width: int, sizes: Sizes) -> bool:
    """Scaling of a view."""
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


def are_fills(value: Any, sizes: Sizes) -> bool:
    """A number for each column of each view."""
    if type(value) is not dict or list(value) not in ([], sizes.names):
        return False
    return all(array(width).accepts(fills, sizes) for width, fills in zip(sizes.widths, value.values(), strict=False))


def are_counts(value: Any, sizes: Sizes) -> bool:
    """Numbers of filled values for each column of views."""
    return type(value) is dict and all(
        name in sizes.names and array(None, kinds="i", least=0).accepts(counts, sizes) for name, counts in value.items()
    )


def is_scaled_view(value: Any, width: int, sizes: Sizes) -> bool:
    """A scaled view that some sample has."""
    if not isinstance(value, View) or not matrix("m", width).accepts(value.data, sizes):
        return False
    if not optional(array("m", kinds="b")).accepts(value.present, sizes):
        return False
    nobody = value.present is not None and not value.present.any()
    return not nobody and optional(points(width)).accepts(value.offset, sizes)


def is_canonical_order(value: Any, sizes: Sizes) -> bool:
    """Order of the distinct samples and the views, and sorted hashes."""
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


def are_nodes(value: Any, sizes: Sizes) -> bool:
    """Distinct sample of each sample; every distinct sample occurs."""
    return array("n", kinds="i", least=0, most=sizes.m - 1).accepts(value, sizes) and len(np.unique(value)) == sizes.m


def are_groups(value: Any, sizes: Sizes) -> bool:
    """Group of linked views of each view."""
    return array("v", kinds="i", least=0, most=sizes.v - 1).accepts(value, sizes)


def is_embedding(value: Any, sizes: Sizes) -> bool:
    """An `Embedding` of m samples and r components, or the plain one."""
    parts = (value.stretch, value.radius, value.norms)
    if all(part is None for part in parts):
        return True
    checks = (array("r", least=0), number(least=0), array("m", least=0))
    return all(check.accepts(part, sizes) for check, part in zip(checks, parts, strict=True))


def is_label_regressor(value: Any, sizes: Sizes) -> bool:
    """A `LabelRegressor` of c scores on r components."""
    features = value.features
    n_landmarks, n_radial = features.whitening.shape
    return (
        points("r").accepts(features.centre, sizes)
        and number(least=TINY).accepts(features.energy, sizes)
        and points(n_landmarks, "r").accepts(features.landmarks, sizes)
        and points(None, None).accepts(features.whitening, sizes)
        and points(sizes.r + n_radial, "c").accepts(value.coefficients, sizes)
    )


def is_probe(value: Any, sizes: Sizes) -> bool:
    """A `NewSampleProbe` of r components for each view."""
    count = len(value.samples)
    return (
        isinstance(value, NewSampleProbe)
        and rows_below("m").accepts(value.samples, sizes)
        and points("v", count, "r").accepts(value.products, sizes)
        and array("v", count, least=0).accepts(value.energies, sizes)
        and array("v", count, kinds="b").accepts(value.present, sizes)
        and array("r", "r").accepts(value.ridge, sizes)
    )


def is_trust(value: Any, sizes: Sizes) -> bool:
    """A `Trust` with a valid calibration."""
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


def are_distributions(value: Any, sizes: Sizes) -> bool:
    """Distributions over the classes; rows sum to 1."""
    right = array("n", "c", least=0, most=1 + ROUNDING).accepts(value, sizes)
    return right and bool((np.abs(value.sum(axis=1) - 1) <= ROUNDING).all())


def are_terms(value: Any, sizes: Sizes) -> bool:
    """Named arrays with a value per iteration."""
    each = array("i")
    return type(value) is dict and all(type(name) is str and each.accepts(part, sizes) for name, part in value.items())


def are_recipes(value: Any, sizes: Sizes) -> bool:
    """How `lmssc classify` made the views from columns."""
    views = value.get("views", {})
    return (
        type(value) is dict
        and all(value.get(name) is None or type(value[name]) is str for name in ("id_column", "label_column"))
        and are_texts(value.get("id_names", []))
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
        and (value["columns"] is None or are_texts(value["columns"]))
        and (value["kind"] != "text" or (are_texts(value.get("words")) and bool(value["columns"])))
        and (value["kind"] != "numbered" or type(value.get("first")) is int)
        and type(value.get("block", "")) is str
        and are_texts(value.get("features", []))
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
        and are_texts(value.get("levels", []))
        and type(value.get("unit", "")) is str
        and _is_one_of(value.get("decimal", "."), (".", ","))
        and type(value.get("blank", False)) is bool
    )


def _is_one_of(value: Any, words: tuple[str, ...]) -> bool:
    return type(value) is str and value in words
