"""Checks of fitted attributes that are more than an array: scalings, orders, calibrations and the like."""

from typing import Any

import numpy as np
from scipy import sparse

from lmssc.core.calibration import Calibration, GroupedCalibration
from lmssc.core.class_codes import N_DIMENSIONS
from lmssc.core.incremental import UpdateMemory
from lmssc.core.linked_samples import LinkMemory
from lmssc.core.links import LinkWeights
from lmssc.core.mean_kernel import MeanKernel
from lmssc.core.new_samples import NewSampleProbe, Trust
from lmssc.core.second_opinion import MAX_TRUST, Opinion, SecondOpinion
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import CanonicalOrder
from lmssc.data.column_limits import ColumnLimits
from lmssc.data.outliers import Outliers
from lmssc.data.scaling import CENTRED, SCALINGS, WITH_IDF, ViewScaling
from lmssc.data.view import View
from lmssc.data.whitening import Whitening
from lmssc.estimators.state_checks import (
    Sizes,
    are_texts,
    array,
    csr,
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
# Smallest divisor in double precision, and energy of features that are the same for all samples.
TINY_DOUBLE = float(np.finfo(np.float64).tiny)


def is_scaling(value: Any, width: int, sizes: Sizes) -> bool:
    """Scaling of a view."""
    if not isinstance(value, ViewScaling) or value.kind not in SCALINGS or not isinstance(value.reason, str):
        return False
    if value.outliers is not None and not _are_outliers(value.outliers, width, sizes):
        return False
    if value.limits is not None and not _are_limits(value.limits, width, sizes):
        return False
    if value.whitening is not None and not _is_whitening(value.whitening, width, sizes):
        return False
    needed = {**dict.fromkeys(CENTRED, ("column_scale", "mean")), **dict.fromkeys(WITH_IDF, ("column_scale",))}.get(
        value.kind, ()
    )
    by_column = array(width)
    return number(least=0).accepts(value.factor, sizes) and all(
        (name not in needed if part is None else by_column.accepts(part, sizes))
        for name, part in (
            ("column_scale", value.column_scale),
            ("mean", value.mean),
            ("standard_scale", value.standard_scale),
        )
    )


def _is_whitening(value: Any, width: int, sizes: Sizes) -> bool:
    if not isinstance(value, Whitening) or not isinstance(value.directions, np.ndarray) or value.directions.ndim != 2:
        return False
    n_directions = value.directions.shape[1]
    return (
        array(width, n_directions).accepts(value.directions, sizes)
        and array(n_directions, least=0).accepts(value.factors, sizes)
        and number(least=0).accepts(value.rest, sizes)
        and number(least=0, most=1).accepts(value.strength, sizes)
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


def _are_limits(value: Any, width: int, sizes: Sizes) -> bool:
    if not isinstance(value, ColumnLimits) or not array(None, kinds="i", least=0, most=width).accepts(
        value.columns, sizes
    ):
        return False
    size = len(value.columns)
    return (
        size > 0
        and array(size, least=-1, most=1).accepts(value.signs, sizes)
        and array(size).accepts(value.centres, sizes)
        and array(size, least=TINY_DOUBLE).accepts(value.lengths, sizes)
        and array(width).accepts(value.scale, sizes)
    )


def are_targets(value: Any, sizes: Sizes) -> bool:
    """Labels of the distinct samples."""
    if not isinstance(value, Targets) or value.n_classes != sizes.c or type(value.counts) is not tuple:
        return False
    node, code, numbers = value.counts
    by_label = array(len(node), kinds="i", least=0)
    return (
        array("m", kinds="i", least=-1, most=sizes.c - 1).accepts(value.codes, sizes)
        and bool(value.labelled.any())
        and rows_below("m").accepts(value.mixed, sizes)
        and array(len(value.mixed), "c", least=0, most=1 + ROUNDING).accepts(value.shares, sizes)
        and all(by_label.accepts(part, sizes) for part in (node, code, numbers))
        and bool((node < sizes.m).all() and (code < sizes.c).all() and (numbers > 0).all())
        and (value.trust is None or _is_trust_in_labels(value.trust, sizes))
    )


def _is_trust_in_labels(value: Any, sizes: Sizes) -> bool:
    fits = type(value) is np.ndarray and value.shape == (sizes.m,) and value.dtype.kind == "f"
    return fits and bool((value >= 0).all())  # ∞ is allowed, NaN is not


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
    nobody = value.present is not None and not value.present.any()
    return _is_view(value, "m", width, sizes) and not nobody


def _is_view(value: Any, n_rows: int | str, width: int, sizes: Sizes) -> bool:
    """A scaled view with so many rows."""
    return (
        isinstance(value, View)
        and matrix(n_rows, width).accepts(value.data, sizes)
        and optional(array(n_rows, kinds="b")).accepts(value.present, sizes)
        and optional(points(width)).accepts(value.offset, sizes)
    )


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
    """Group of connected views of each view."""
    return array("v", kinds="i", least=0, most=sizes.v - 1).accepts(value, sizes)


def is_embedding(value: Any, sizes: Sizes) -> bool:
    """An `Embedding` of m samples and r components, or the plain one."""
    parts = (value.stretch, value.radius, value.norms)
    if all(part is None for part in parts):
        return True
    checks = (array("r", least=0), number(least=0), array("m", least=0))
    return all(check.accepts(part, sizes) for check, part in zip(checks, parts, strict=True))


def is_label_regressor(value: Any, sizes: Sizes) -> bool:
    """A `LabelRegressor` of c scores, or fewer with the same distances, or codes of classes, on r components."""
    features = value.features
    n_landmarks, n_radial = features.whitening.shape
    return (
        points("r").accepts(features.centre, sizes)
        and number(least=TINY_DOUBLE).accepts(features.energy, sizes)
        and points(n_landmarks, "r").accepts(features.landmarks, sizes)
        and points(None, None).accepts(features.whitening, sizes)
        and sizes.q - sizes.r <= max(sizes.c, N_DIMENSIONS)
        and points(sizes.r + n_radial, sizes.q - sizes.r).accepts(value.coefficients, sizes)
    )


def is_probe(value: Any, sizes: Sizes) -> bool:
    """A `NewSampleProbe` of r components for each view."""
    count, n_views = len(value.samples), sizes.v + sizes.n_smoothed
    return (
        isinstance(value, NewSampleProbe)
        and rows_below("m").accepts(value.samples, sizes)
        and points(n_views, count, "r").accepts(value.products, sizes)
        and array(n_views, count, least=0).accepts(value.energies, sizes)
        and array(n_views, count, kinds="b").accepts(value.present, sizes)
        and array("r", "r").accepts(value.ridge, sizes)
        and optional(points(None, n_views, count, "c")).accepts(value.opinions, sizes)
        and optional(points(count, "c")).accepts(value.corrections, sizes)
        and optional(array(count, least=0, most=1)).accepts(value.leverages, sizes)
        and optional(array(count, "c", least=0)).accepts(value.held_out, sizes)
    )


def is_opinion(value: Any, sizes: Sizes) -> bool:
    """An `Opinion` on all samples."""
    return (
        isinstance(value, Opinion)
        and array("n", "c", least=0, most=1 + ROUNDING).accepts(value.scores, sizes)
        and number(least=TINY).accepts(value.weight, sizes)
    )


def is_second_opinion(value: Any, sizes: Sizes) -> bool:
    """A `SecondOpinion` of c scores on all views in canonical order."""
    if not isinstance(value, SecondOpinion) or type(value.kernels) is not list or not value.kernels:
        return False
    n_models, n_landmarks = len(value.kernels), value.coefficients.shape[1]
    return (
        all(_is_kernel(kernel, n_landmarks, sizes) for kernel in value.kernels)
        and points(n_models, n_landmarks, "c").accepts(value.coefficients, sizes)
        and array(n_models, least=TINY).accepts(value.temperatures, sizes)
        and array(n_models, least=0, most=1 + ROUNDING).accepts(value.shares, sizes)
        and number(least=0, most=MAX_TRUST).accepts(value.trust, sizes)
    )


def _is_kernel(kernel: Any, n_landmarks: int, sizes: Sizes) -> bool:
    """A `MeanKernel` with the landmarks of all views."""
    n_copies = 1 + sizes.n_smoothed // sizes.v
    return (
        isinstance(kernel, MeanKernel)
        and type(kernel.linear) is bool
        and number(least=0, most=1).accepts(kernel.laplacian, sizes)
        and (kernel.laplacian > 0) == (kernel.widths is not None)
        and optional(array(n_copies * sizes.v, least=TINY)).accepts(kernel.widths, sizes)
        and optional(array(n_copies * sizes.v, least=TINY)).accepts(kernel.weights, sizes)
        and array(n_copies * sizes.v, least=TINY).accepts(kernel.spreads, sizes)
        and type(kernel.landmarks) is list
        and len(kernel.landmarks) == n_copies * sizes.v
        and all(
            _is_view(view, n_landmarks, width, sizes)
            for view, width in zip(kernel.landmarks, n_copies * sizes.content_widths, strict=True)
        )
    )


def is_link_memory(value: Any, sizes: Sizes) -> bool:
    """A `LinkMemory` of the graphs, with the smoothed views if there are any."""
    if not isinstance(value, LinkMemory) or not isinstance(value.weights, LinkWeights):
        return False
    weights, n_graphs, n_views = value.weights, len(sizes.graph_names), sizes.n_smoothed
    lists = (value.loadings, value.views, value.once)
    return (
        n_views in (0, sizes.v)
        and array(n_graphs, least=0, most=1 + ROUNDING).accepts(weights.shares, sizes)
        and abs(weights.shares.sum() - 1) <= ROUNDING
        and array(n_graphs, least=TINY).accepts(weights.units, sizes)
        and number(least=0).accepts(weights.weight, sizes)
        and optional(array(n_graphs, kinds="b")).accepts(weights.weighted, sizes)
        and array(n_views, least=0).accepts(value.factors, sizes)
        and all(type(one) is list and len(one) == n_views for one in lists)
        and all(
            points(w, "r").accepts(one, sizes) for one, w in zip(value.loadings, sizes.content_widths, strict=False)
        )
        and all(is_scaled_view(one, w, sizes) for one, w in zip(value.views, sizes.content_widths, strict=False))
        and all(is_scaled_view(one, w, sizes) for one, w in zip(value.once, sizes.content_widths, strict=False))
        and (value.probe is None or is_probe(value.probe, sizes))
        and (value.trust is None or is_trust(value.trust, sizes))
    )


def are_link_weights(value: Any, sizes: Sizes) -> bool:
    """A weight for each graph."""
    return (
        type(value) is dict
        and list(value) == sizes.graph_names
        and all(number(least=0).accepts(weight, sizes) for weight in value.values())
    )


def are_weighted_links(value: Any, sizes: Sizes) -> bool:
    """Whether the weights of links count, for each graph."""
    return (
        type(value) is dict
        and list(value) == sizes.graph_names
        and all(isinstance(weighted, bool) for weighted in value.values())
    )


def are_link_keys(value: Any, sizes: Sizes) -> bool:
    """A hash of each distinct sample, if there are graphs."""
    if not sizes.graph_names:
        return value is None
    return type(value) is np.ndarray and value.dtype == np.uint64 and value.shape == (sizes.m,)


def are_link_columns(value: Any, sizes: Sizes) -> bool:
    """Names of the samples in graphs that came as data frames."""
    return type(value) is dict and all(
        name in sizes.graph_names and are_texts(columns, sizes.n) for name, columns in value.items()
    )


def _is_calibration(value: Any, sizes: Sizes) -> bool:
    return (
        isinstance(value, Calibration)
        and number(least=TINY).accepts(value.temperature, sizes)
        and number(least=0, most=1 + ROUNDING).accepts(value.doubt, sizes)
        and number().accepts(value.rarity, sizes)
        and optional(array("c", least=0, most=1)).accepts(value.class_doubt, sizes)
    )


def is_update_memory(value: Any, sizes: Sizes) -> bool:
    """An `UpdateMemory` of m samples."""
    if not isinstance(value, UpdateMemory) or not isinstance(value.calibration, GroupedCalibration):
        return False
    groups = value.calibration.groups
    return (
        number(least=0).accepts(value.gamma, sizes)
        and _is_calibration(value.calibration.overall, sizes)
        and type(groups) is dict
        and all(type(n) is int and _is_calibration(one, sizes) for n, one in groups.items())
        and optional(array("m", kinds="i", least=0)).accepts(value.n_missing, sizes)
        and all(type(n) is int and n >= 0 for n in (value.n_samples, value.n_labels, value.n_relabelled))
    )


def is_trust(value: Any, sizes: Sizes) -> bool:
    """A `Trust` with a valid calibration."""
    return (
        isinstance(value, Trust)
        and _is_calibration(value.calibration, sizes)
        and number(least=0).accepts(value.distance, sizes)
        and number(least=0).accepts(value.leftover, sizes)
    )


def are_distributions(value: Any, sizes: Sizes) -> bool:
    """Distributions over the classes; rows sum to 1."""
    if sparse.issparse(value):  # what a row lacks of 1 belongs to classes that it does not list
        right = csr("n", "c", least=0).accepts(value, sizes) and bool((np.diff(value.indptr) > 0).all())
        return right and bool((value.sum(axis=1) <= 1 + ROUNDING).all())
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
