"""Scaling of the views, learned in `fit` and applied to new samples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc.data.batch_units import columns_far_larger, columns_near_zero, is_far_larger, is_near_zero, relative_size
from lmssc.data.canonical_order import CanonicalOrder
from lmssc.data.column_limits import Reach
from lmssc.data.column_names import name_columns
from lmssc.data.kept_deviations import KeptDeviations
from lmssc.data.layout import Layout
from lmssc.data.memmap import release, slices, stored_bytes
from lmssc.data.missing_views import has_any_view
from lmssc.data.present_rows import has_values
from lmssc.data.scaling import WORDS, ViewScaling, fit_scalings, scale_views, scaling_by_view
from lmssc.data.tiny_values import find_tiny_columns
from lmssc.data.view import RawView
from lmssc.data.views import Views
from lmssc.data.warn_caller import warn_caller
from lmssc.data.whitening import Whitening
from lmssc.estimators.problem import Problem
from lmssc.numerics.matrices import Matrix, stored_like

# New samples that reach so many times as far as those of `fit` have hardly any confidence left; a warning names their
# columns if they are a larger share of the new samples than this.
FAR = 3.0
MAX_FAR_SHARE = 0.02
# A view is named if new samples that are far away are more than so many times as large in it as those of `fit`.
LARGE = 1.5


class ViewScalingMixin:
    """Scales views as the parameter `scaling` says."""

    scaling: str | Sequence[str | None] | Mapping[str, str | None] | None
    view_names_: list[str]
    scalings_: dict[str, str]
    scaling_reasons_: dict[str, str]
    whitening_: float
    feature_names_in_: NDArray
    _order: CanonicalOrder
    _layout: Layout
    _scalings: list[ViewScaling]
    _storage: list[Matrix]

    def _fit_scalings(self, problem: Problem, *, used: Sequence[int] | None = None, equalise: bool = True) -> Views:
        """Learn the scalings and apply them.

        `used` are the indices, in canonical order, of the views that `problem` has, if not all.
        """
        wanted = scaling_by_view(self.scaling, self.view_names_)
        numbers = [self._order.views[v] for v in (range(len(wanted)) if used is None else used)]
        self._scalings = fit_scalings(problem.views, [wanted[v] for v in numbers], equalise=equalise)
        kinds = {self.view_names_[v]: scaling.kind for v, scaling in zip(numbers, self._scalings, strict=True)}
        self.scalings_ = {name: kinds[name] for name in self.view_names_ if name in kinds}
        reasons = {self.view_names_[v]: scaling.reason for v, scaling in zip(numbers, self._scalings, strict=True)}
        self.scaling_reasons_ = {name: reasons[name] for name in self.scalings_}
        for v, scaling in zip(numbers, self._scalings, strict=True):
            if scaling.outliers is not None:
                warn_caller(
                    f"view {self.view_names_[v]!r} has {scaling.outliers.describe(self._column_names(v))}, far from "
                    "all others there. They do not affect the scale: rare codes for unknown values, such as -999, are "
                    "replaced by the mean, other outliers by the nearest ordinary value. To keep them, scale the view "
                    "yourself and pass scaling=None for it",
                )
        for v, raw, scaling in zip(numbers, problem.views, self._scalings, strict=True):
            tiny = find_tiny_columns(raw, scaling)
            if len(tiny):
                warn_caller(
                    f"view {self.view_names_[v]!r}, {self._list_columns(v, tiny)}: values too small to be told from "
                    "zero, which say nothing now; use another unit",
                )
        self._storage = [raw.data[:0].copy() for raw in problem.views]
        # The views of a problem are copies, which nothing else uses.
        return scale_views(problem.views, self._scalings, in_place=True)

    def _deviations(self) -> dict[int, NDArray]:
        """Standard deviations of the columns of the views, in canonical order, that "auto" takes for measurements."""
        wanted, found = scaling_by_view(self.scaling, self.view_names_), {}
        for i, (v, scaling) in enumerate(zip(self._order.views, self._scalings, strict=True)):
            if wanted[v] == "auto" and scaling.kind == "zscore" and scaling.column_scale is not None:
                scale = scaling.column_scale.astype(np.float64)
                found[i] = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        return found

    def _set_form(self, changes: Sequence[Whitening | KeptDeviations | None]) -> None:
        """Keep how the form of the scaled views, in canonical order, was changed."""
        self.whitening_ = max((one.strength for one in changes if isinstance(one, Whitening)), default=0.0)
        if not any(changes):
            return
        self._scalings = [scaling.changed(one) for scaling, one in zip(self._scalings, changes, strict=True)]
        for v, scaling in zip(self._order.views, self._scalings, strict=True):
            self.scalings_[self.view_names_[v]] = scaling.kind
            self.scaling_reasons_[self.view_names_[v]] = scaling.reason

    def _column_names(self, v: int) -> list[str] | None:
        """Column names of view `v` of the input, if it came as a data frame."""
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_[self._layout.columns[v]]]
        names = getattr(self, "_view_columns", {}).get(self.view_names_[v])
        return None if names is None else [str(name) for name in names]

    def _lack_words(self, raws: Sequence[RawView]) -> NDArray:
        """Which samples have only zeros in the views that they have, all of them text: they say nothing."""
        kinds = getattr(self, "scalings_", {})  # models of early versions have none
        used = [raw for raw in raws if raw.name in kinds]
        texts = [raw for raw in used if kinds[raw.name] in WORDS]
        if not texts:
            return np.zeros(raws[0].data.shape[0], dtype=bool)
        others = [raw for raw in used if kinds[raw.name] not in WORDS]
        says = np.any([has_values(raw) for raw in texts], axis=0)
        return ~(says | has_any_view(others)) if others else ~says

    def _check_values(self, raws: Sequence[RawView]) -> tuple[NDArray, bool]:
        """How far the values of new samples, views in canonical order, are beyond those of `fit`; warns of many.

        Also returned is whether a warning says that a view may be in another unit.
        """
        n_samples, told = raws[0].data.shape[0], False
        reach, complaints, strange = np.zeros(n_samples), [], np.zeros(n_samples, dtype=bool)
        for v, raw, scaling in zip(self._order.views, raws, self._scalings, strict=True):
            found = _reach_in_batches(raw, scaling)
            np.maximum(reach, found.ratios, out=reach)
            far = found.ratios > FAR
            if far.any():
                strange |= far
                complaints.append(f"view {self.view_names_[v]!r}, {self._list_columns(v, found.columns[far])}")
            else:
                told |= self._warn_of_units(v, raw, scaling)
        if strange.sum() > MAX_FAR_SHARE * n_samples:
            warn_caller(
                f"{int(strange.sum())} of {n_samples} new samples have values far from all those of fit in "
                f"{'; '.join(complaints)}. Perhaps they are in another unit, or stand for unknown ones. The confidence "
                "of these samples is lowered towards the class frequencies",
            )
        return reach, told

    def _warn_of_distance(self, raws: Sequence[RawView], far: NDArray) -> None:
        """Warn of new samples, views in canonical order, that lie far from those of `fit`."""
        if not far.any():
            return
        rows, n_views = np.flatnonzero(far), len(self.view_names_)
        sizes = [relative_size(raw, scaling, n_views, rows) for raw, scaling in zip(raws, self._scalings, strict=True)]
        most = int(np.argmax(sizes))
        where = f", most of all in view {self.view_names_[self._order.views[most]]!r}" if sizes[most] > LARGE else ""
        warn_caller(
            f"{len(rows)} of {len(far)} new samples lie farther from the samples of fit than these from each other"
            f"{where}. Perhaps a view is in another unit, or they are of another kind: do not rely on their answers. "
            "Far away, their confidence is lowered towards the class frequencies",
        )

    def _warn_of_units(self, v: int, raw: RawView, scaling: ViewScaling) -> bool:
        """Warn if new samples are near zero, or far away from it, in view `v` of the input, and those of `fit` not."""
        name, n_views = repr(self.view_names_[v]), len(self.view_names_)
        columns = columns_near_zero(raw, scaling)
        what = None
        if len(columns):
            what = f"all new samples have values nearer to zero in view {name}, {self._list_columns(v, columns)},"
        elif is_near_zero(raw, scaling, n_views):
            what = f"all new samples have values nearer to zero in view {name}"
        elif is_far_larger(raw, scaling, n_views):
            larger = columns_far_larger(raw, scaling)
            which = f", {self._list_columns(v, larger)}," if len(larger) else ""
            what = f"most new samples have far larger values in view {name}{which}"
        if what is not None:
            warn_caller(
                f"{what} than those of fit. If they are in another unit, the answers are wrong: convert them to the "
                "unit of fit",
            )
        return what is not None

    def _list_columns(self, v: int, columns: NDArray) -> str:
        """The columns of a view that are most often the strangest, for messages."""
        different, counts = np.unique(columns, return_counts=True)
        most = different[np.argsort(-counts, kind="stable")]
        single = most[most < self._layout.widths[v]]
        parts = ["all columns together"] if len(single) < len(most) else []
        return " and ".join(([name_columns(single, self._column_names(v))] if len(single) else []) + parts)

    def _scale_new(self, raws: Sequence[RawView]) -> Views:
        """Scale new samples, stored like those of `fit`, so that their `points` have the same offset."""
        alike = [
            replace(raw, data=stored_like(example, raw.data)) for raw, example in zip(raws, self._storage, strict=True)
        ]
        return scale_views(alike, self._scalings)


def describe_scalings(clf: Any) -> dict[str, str]:
    """Scaling of each view of a fitted classifier, by name; whitened ones say so."""
    scalings = dict(getattr(clf, "scalings_", {}))
    if getattr(clf, "whitening_", 0.0):
        for v, scaling in zip(clf._order.views, clf._scalings, strict=True):
            if scaling.whitening is not None:
                scalings[clf.view_names_[v]] += ", whitened"
    return scalings


def _reach_in_batches(raw: RawView, scaling: ViewScaling) -> Reach:
    """How far new samples reach, read in batches if they are on disk."""
    n_samples = raw.data.shape[0]
    if scaling.limits is None:
        return scaling.reach(raw)
    parts = []
    for rows in slices(n_samples, stored_bytes(raw.data) / max(n_samples, 1)):
        parts.append(scaling.reach(raw.take(rows)))
        release(raw.data)
    return Reach(*(np.concatenate(part) for part in zip(*parts, strict=True)))
