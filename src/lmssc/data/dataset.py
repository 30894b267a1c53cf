"""Views and labels of all samples, validated and hashed once; fits that differ in their labels or views share them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc.data.canonical_order import CanonicalOrder, order_by_keys, row_keys
from lmssc.data.folds import DEFAULT_FOLDS, draw_folds, without_labels
from lmssc.data.frames import frame_columns, is_frame
from lmssc.data.graph_view import GraphView
from lmssc.data.labels import Labels, encode_labels
from lmssc.data.layout import Layout, read_layout
from lmssc.data.link_order import order_with_links
from lmssc.data.link_reading import hint_at_links, match_index, read_graphs, split_graphs
from lmssc.data.missing_views import CheckedView, check_views, refuse_gaps
from lmssc.data.row_index import common_index
from lmssc.data.soft_labels import is_soft, read_soft_labels, read_trust
from lmssc.data.storage import smaller
from lmssc.data.validation import (
    Masks,
    ViewSpec,
    check_rows,
    is_view_collection,
    name_parts,
    read_block,
    read_collection,
)
from lmssc.data.view import RawView
from lmssc.data.view_dict import ViewDict
from lmssc.numerics.parallel import threaded_map

MIN_SAMPLES = 2


@dataclass(frozen=True)
class Dataset:
    """Validated views and labels.

    Attributes
    ----------
    views : list of RawView
        Views in the order of the input.
    classes : ndarray of shape (c,)
        Classes that have a label, sorted.
    codes : ndarray of int of shape (n,)
        Index in `classes` of the label of each sample, −1 without a label.
    layout : Layout
        Columns of each view in one 2-D X.
    gap_rows : list of ndarray of bool of shape (n,), or None
        For each view, the rows in which single values are missing; None if there are none.
    column_names : dict of str to list of str
        Column names of the views that came as data frames, or from files.
    feature_names : ndarray of str, or None
        Column names of one 2-D X that came as a data frame.
    graphs : list of GraphView
        Links between the samples, in the order of the input.
    shares : ndarray of shape (n, c), or None
        Distribution of each labelled sample over the classes; None if each has one class.
    trust : ndarray of shape (n,), or None
        Probability that each label is right; None if all are certain.

    Examples
    --------
    >>> data = validate({"a": np.eye(4), "b": np.ones((4, 1))}, ["x", "y", None, "x"])
    >>> data.n_samples, data.classes.tolist(), data.codes
    (4, ['x', 'y'], array([ 0,  1, -1,  0]))
    >>> data.without_labels(np.array([0])).codes, data.without_view("b").names
    (array([-1,  1, -1,  0]), ['a'])
    """

    views: list[RawView]
    classes: NDArray
    codes: NDArray
    layout: Layout
    gap_rows: list[NDArray | None]
    column_names: dict[str, list[str]] = field(default_factory=dict)
    feature_names: NDArray | None = None
    graphs: list[GraphView] = field(default_factory=list)
    shares: NDArray | None = None
    trust: NDArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.codes)

    @property
    def names(self) -> list[str]:
        """Names of the views of features."""
        return self.layout.names

    @property
    def graph_names(self) -> list[str]:
        """Names of the graphs."""
        return [graph.name for graph in self.graphs]

    @cached_property
    def keys_by_view(self) -> list[NDArray]:
        """Hashes of the rows of each view, computed once for all datasets that are derived from this one."""
        return threaded_map(row_keys, self.views)

    @cached_property
    def order(self) -> CanonicalOrder:
        """Canonical order of samples and views."""
        widths = [view.data.shape[1] for view in self.views]
        if self.graphs:
            return order_with_links(self.keys_by_view, self.codes, widths, self.graphs)
        return order_by_keys(self.keys_by_view, self.codes, widths)

    def folds(self, seed: int, n_folds: int = DEFAULT_FOLDS) -> list[NDArray]:
        """Rows whose labels are held out together; see `lmssc.data.folds.labelled_folds`."""
        return draw_folds(self.order, self.codes, seed, n_folds)

    def refuse_gaps(self) -> None:
        """Raise an error if single values are missing."""
        refuse_gaps([CheckedView(*pair) for pair in zip(self.views, self.gap_rows, strict=True)])

    def without_labels(self, rows: NDArray) -> "Dataset":
        """The same samples without the labels of some rows; classes without a label are dropped."""
        return self._derive(list, **self._with_codes(without_labels(self.codes, rows)))

    def with_labels(self, classes: NDArray, codes: NDArray) -> "Dataset":
        """The same samples with other labels: the sorted classes, and the code of each sample, −1 without a label."""
        return self._derive(list, classes=classes, codes=codes)

    def take(self, rows: NDArray) -> "Dataset":
        """Some of the samples, in the order of `rows`; classes without a label are dropped."""
        gap_rows = [None if gaps is None or not gaps[rows].any() else gaps[rows] for gaps in self.gap_rows]
        return self._derive(
            lambda keys: [one[rows] for one in keys],
            views=[_take(view, rows, gaps is not None) for view, gaps in zip(self.views, gap_rows, strict=True)],
            gap_rows=gap_rows,
            graphs=[graph.take(rows) for graph in self.graphs],
            **self._with_codes(self.codes[rows], rows),
        )

    def _with_codes(self, codes: NDArray, rows: NDArray | slice = slice(None)) -> dict[str, Any]:
        """Fields with other codes, of some rows; classes without a label are dropped."""
        left = np.unique(codes[codes >= 0])
        changes = _drop_empty_classes(self.classes, codes)
        if self.shares is not None:
            shares = self.shares[rows][:, left]
            total = shares.sum(axis=1, keepdims=True)
            changes["shares"] = shares / np.where(total > 0, total, 1)
        if self.trust is not None:
            changes["trust"] = self.trust[rows]
        return changes

    def without_view(self, name: str) -> "Dataset":
        """All views and graphs but one."""
        if name in self.graph_names:
            return self._derive(list, graphs=[graph for graph in self.graphs if graph.name != name])
        left = [v for v, other in enumerate(self.names) if other != name]
        views = [self.views[v] for v in left]
        return self._derive(
            lambda keys: [keys[v] for v in left],
            views=views,
            gap_rows=[self.gap_rows[v] for v in left],
            layout=Layout.from_widths([view.name for view in views], [view.data.shape[1] for view in views]),
            column_names={other: columns for other, columns in self.column_names.items() if other != name},
            feature_names=None,
        )

    def with_filled_gaps(self, views: Sequence[RawView]) -> "Dataset":
        """The same samples with views whose gaps are filled in; only the views that changed are hashed again."""
        changed = [new is not old for new, old in zip(views, self.views, strict=True)]
        return self._derive(
            lambda keys: [row_keys(view) if c else one for view, one, c in zip(views, keys, changed, strict=True)],
            views=list(views),
            gap_rows=[None] * len(views),
        )

    def _derive(self, derive_keys: Callable[[list[NDArray]], list[NDArray]], **changes: Any) -> "Dataset":
        """A copy with changes; hashes that are known are taken over."""
        derived = replace(self, **changes)
        if "keys_by_view" in vars(self):
            vars(derived)["keys_by_view"] = derive_keys(self.keys_by_view)  # where `cached_property` looks for it
        return derived


def _take(view: RawView, rows: NDArray, has_gaps: bool) -> RawView:
    part = view.take(rows)
    complete = part.present is None or part.present.all()
    return RawView(part.name, smaller(part.data, has_gaps=has_gaps), None if complete else part.present)


def _drop_empty_classes(classes: NDArray, codes: NDArray) -> dict[str, NDArray]:
    left = np.unique(codes[codes >= 0])
    if len(left) == len(classes):
        return {"classes": classes, "codes": codes}
    return {"classes": classes[left], "codes": np.where(codes >= 0, np.searchsorted(left, codes), -1)}


def validate(
    X: Any,
    y: ArrayLike,
    *,
    views: ViewSpec = None,
    present: Masks = None,
    sample_weight: ArrayLike | None = None,
) -> Dataset:
    """Check views and labels, and find out which samples lack which view.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, Σ d_v), or a list or dict of views
        Samples.
    y : array-like of shape (n,) or (n, c)
        Labels; −1 (integers), None or NaN (anything else) is unlabelled. Or distributions over the classes.
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X are divided into views.
    present : list or dict of boolean arrays, optional
        For each view, which samples have it.
    sample_weight : array-like of shape (n,), optional
        Probability that each label is right.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> validate(np.eye(3), [0, 1, -1], views=[2, 1]).names
    ['view0', 'view1']
    """
    if hasattr(views, "get_params"):
        raise TypeError(f"views must divide the columns of X, got {type(views).__name__}; pass it as estimator=")
    check_rows(X, y, present, sample_weight)
    column_names: dict[str, list[str]] = {}
    graphs: list[GraphView] = []
    if is_view_collection(X):
        features, links = split_graphs(X)
        blocks = read_collection(features, MIN_SAMPLES)
        graphs = read_graphs(links, next(iter(blocks.values())).shape[0])
        match_index(graphs, common_index(features.values()))
        hint_at_links(blocks)
        if views is not None:
            raise ValueError(
                "views divides the columns of one 2-D X into views, but X is a collection of views: leave views out"
            )
        layout = Layout.from_widths(list(blocks), [block.shape[1] for block in blocks.values()])
        named = X.columns if isinstance(X, ViewDict) else {}
        widths = dict(zip(layout.names, layout.widths, strict=True))
        column_names = {name: columns for name, columns in named.items() if widths.get(name) == len(columns)}
        column_names |= frame_columns_by_view(features)
    else:
        block = read_block(X, "X", MIN_SAMPLES)
        layout = read_layout(views, block.shape[1], frame_columns(X) if is_frame(X) else None)
        blocks = layout.split(block)
    checked = check_views(blocks, present)
    n_samples = checked[0].raw.data.shape[0]
    soft = read_soft_labels(y, n_samples) if is_soft(y) else None
    labels = encode_labels(y, n_samples) if soft is None else Labels(soft.classes, soft.codes)
    codes, trust = read_trust(sample_weight, labels)
    dataset = make_dataset(checked, labels.classes, codes, layout, column_names, graphs)
    return replace(dataset, shares=None if soft is None else soft.shares, trust=trust)


def make_dataset(
    checked: Sequence[CheckedView],
    classes: NDArray,
    codes: NDArray,
    layout: Layout | None = None,
    column_names: dict[str, list[str]] | None = None,
    graphs: Sequence[GraphView] = (),
) -> Dataset:
    """Dataset of views and labels that have been checked.

    Examples
    --------
    >>> view = CheckedView(RawView("a", np.eye(3), None), None)
    >>> make_dataset([view], np.array([5, 7]), np.array([0, 1, -1])).layout.names
    ['a']
    """
    raws = [view.raw for view in checked]
    if layout is None:
        layout = Layout.from_widths([raw.name for raw in raws], [raw.data.shape[1] for raw in raws])
    gap_rows = [view.gap_rows for view in checked]
    return Dataset(raws, classes, codes, layout, gap_rows, column_names or {}, graphs=list(graphs))


def frame_columns_by_view(X: Any) -> dict[str, list[str]]:
    """Column names of the data frames in a collection of views.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_columns_by_view({"a": pd.DataFrame({"x": [1]}), "b": np.ones((1, 2))})
    {'a': ['x']}
    """
    return {name: frame_columns(part) for name, part in name_parts(X).items() if is_frame(part)}
