"""Views side by side in one 2-D X, and samples of a view below others."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from lmssc.data.link_reading import split_graphs
from lmssc.data.missing_views import make_raw_views
from lmssc.data.validation import Masks, check_rows, is_view_collection, read_collection
from lmssc.data.view import RawView
from lmssc.numerics.matrices import Matrix, stored_like


def stack_views(
    views: Sequence[Any] | Mapping[str, Any], present: Masks = None
) -> tuple[Matrix, list[int] | dict[str, slice]]:
    """Turn a list or dict of views into one 2-D X and the matching `views` parameter.

    scikit-learn's `cross_val_score`, `GridSearchCV` and `Pipeline` select rows of one X, not of a collection.

    Parameters
    ----------
    views : sequence or mapping of 2-D arrays, data frames or sparse matrices
        All with one row per sample, in the same order.
    present : sequence or mapping of boolean arrays, optional
        For each view, which samples have it; None for all. A sample that lacks a view gets NaN there (in
        sparse views one stored NaN, which marks the whole row). Single missing values stay NaN, for the parameter
        `impute`.

    Returns
    -------
    X : ndarray or csr_array of shape (n, Σ d_v)
        CSR if any view is sparse: no sparse view is made dense.
    views : list of int, or dict of slices
        Widths for a sequence, name → columns for a mapping.

    Examples
    --------
    >>> X, views = stack_views({"image": np.ones((4, 3)), "text": np.zeros((4, 2))})
    >>> X.shape, views
    ((4, 5), {'image': slice(0, 3, None), 'text': slice(3, 5, None)})
    """
    if not is_view_collection(views):
        raise TypeError("stack_views takes a list or dict of 2-D views")
    features, graphs = split_graphs(views)
    if graphs:
        raise TypeError(
            f"stack_views: {', '.join(map(repr, graphs))} is a Graph, which has no features; only views of features "
            "can become columns of one X"
        )
    blocks = read_collection(features)
    check_rows(views, present=present)
    raws = make_raw_views(blocks, present, gaps=True)  # `fit` fills gaps in, or refuses them
    parts = [_with_nan_rows(raw) for raw in raws]
    ends = np.cumsum([part.shape[1] for part in parts]).tolist()
    if any(sparse.issparse(part) for part in parts):
        X: Any = sparse.hstack([_as_csr(part) for part in parts], format="csr")
    else:
        X = np.hstack(parts)
    if not isinstance(views, Mapping):
        return X, [part.shape[1] for part in parts]
    return X, {name: slice(first, end) for name, first, end in zip(blocks, [0, *ends], ends, strict=False)}


def _with_nan_rows(raw: RawView) -> Matrix:
    if raw.present is None:
        return raw.data
    missing = np.flatnonzero(~raw.present)
    if not sparse.issparse(raw.data):
        data = raw.data.copy()
        data[missing] = np.nan
        return data
    marks = (np.full(len(missing), np.nan, raw.data.dtype), (missing, np.zeros_like(missing)))
    kept = sparse.diags_array(raw.present.astype(raw.data.dtype)) @ _without_nan(raw.data)
    kept.eliminate_zeros()
    return (kept + sparse.coo_array(marks, shape=raw.data.shape)).tocsr()


def _as_csr(part: Matrix) -> sparse.csr_array:
    """CSR that stores the zeros of rows with gaps: a row that stores nothing but NaN would count as missing."""
    if sparse.issparse(part):
        return part
    stored = (part != 0) | np.isnan(part).any(axis=1)[:, None]
    return sparse.csr_array((part[stored], np.nonzero(stored)), shape=part.shape)


def _without_nan(data: sparse.csr_array) -> sparse.csr_array:
    data = data.copy()
    data.data[np.isnan(data.data)] = 0
    return data


def stack_rows_of(first: RawView, second: RawView) -> RawView:
    """The samples of one view, and below them those of another; stored like the first.

    Examples
    --------
    >>> one, other = RawView("a", np.eye(2), None), RawView("a", np.ones((1, 2)), np.array([False]))
    >>> both = stack_rows_of(one, other)
    >>> both.data.shape, both.present
    ((3, 2), array([ True,  True, False]))
    """
    below = stored_like(first.data[:0], second.data)
    data = (
        sparse.vstack([first.data, below], format="csr") if sparse.issparse(below) else np.vstack([first.data, below])
    )
    if first.present is None and second.present is None:
        return RawView(first.name, data, None)
    present = [np.ones(one.data.shape[0], bool) if one.present is None else one.present for one in (first, second)]
    return RawView(first.name, data, np.concatenate(present))
