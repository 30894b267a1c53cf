"""What a user passes as X becomes a list of checked views."""

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from lmssc._optional import import_optional
from lmssc.data.memmap import release, slices, stored_bytes
from lmssc.data.row_index import check_indexes
from lmssc.data.views import Matrix, RawView, smaller

Columns = int | slice | Sequence[int] | Sequence[str]
ViewSpec = Sequence[int] | Sequence[slice] | Mapping[str, Columns] | None
Masks = Sequence[ArrayLike | None] | Mapping[str, ArrayLike | None] | None

# Values up to this share of the root of the largest number can be squared and summed over all samples.
LARGEST = 1e-3


class Layout(NamedTuple):
    """Names of the views, and which columns of the stacked X are whose."""

    names: list[str]
    columns: list[NDArray]

    @property
    def widths(self) -> list[int]:
        """Number of features of each view."""
        return [len(columns) for columns in self.columns]


def is_view_collection(X: Any) -> bool:
    """Whether X is a list, tuple or dict of views, and not one 2-D array.

    Examples
    --------
    >>> is_view_collection([np.ones((3, 2))]), is_view_collection([[1.0, 2.0], [3.0, 4.0]])
    (True, False)
    """
    if isinstance(X, Mapping):
        return not sparse.issparse(X)  # scipy's dictionary of keys is a dict
    if not isinstance(X, list | tuple):
        return False
    return any(_dimensions(part) >= 2 or _is_lazy(part) for part in X) or _is_nothing(X)


def _is_nothing(X: Sequence[Any]) -> bool:
    return len(X) > 0 and all(part is None for part in X)


def _dimensions(part: Any) -> int:
    shape = getattr(part, "shape", None)
    return len(shape) if shape is not None else _nesting(part)


def _nesting(part: Any) -> int:
    depth = 0
    while isinstance(part, list | tuple):
        depth += 1
        part = part[0] if part else None
    return depth


def is_frame(data: Any) -> bool:
    """Whether `data` is a data frame: it has named columns."""
    return hasattr(data, "shape") and hasattr(data, "columns") and not isinstance(data, np.ndarray)


def _is_lazy(data: Any) -> bool:
    return hasattr(data, "collect_schema") and not hasattr(data, "shape")


def _narwhals() -> ModuleType:
    return import_optional("narwhals", purpose="data frames", extra="frames")


def frame_columns(frame: Any) -> list[str]:
    """Names of the columns of a data frame.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_columns(pd.DataFrame({"a": [1], "b": [2]}))
    ['a', 'b']
    """
    return list(_narwhals().from_native(frame, eager_only=True).columns)


def frame_to_array(frame: Any) -> NDArray:
    """Numbers of a data frame, float32 if all its columns are; null becomes NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_to_array(pd.DataFrame({"a": [1, 2], "b": [0.5, None]}))
    array([[1. , 0.5],
           [2. , nan]])
    """
    nw = _narwhals()
    table = nw.from_native(frame, eager_only=True)
    if not table.columns:
        raise ValueError("the frame has no columns; a view has at least one")
    for name, dtype in table.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            kind = frame[name].dtype if dtype == nw.Unknown else dtype
            raise TypeError(f"column {name!r} is {kind}, not numbers; drop it or encode it as numbers")
    single = all(dtype == nw.Float32 for dtype in table.schema.values())
    return np.asarray(table.select(nw.all().cast(nw.Float32 if single else nw.Float64)).to_numpy())


def read_block(data: Any, name: str, min_samples: int = 1) -> Matrix:
    """One view as a 2-D float array or CSR, with errors that name it; NaN and infinity are left for later."""
    _refuse_unfit(data, name)
    try:
        block = check_array(
            frame_to_array(data) if is_frame(data) else data,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=min_samples,
        )
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from error
    if sparse.issparse(block):
        block = sparse.csr_array(block)
        if not block.has_canonical_format:
            block = block.copy()
            block.sum_duplicates()
    return block


def _refuse_unfit(data: Any, name: str) -> None:
    """Say in a line what scikit-learn would say with the whole data in it, or not at all."""
    if data is None:
        raise TypeError(f"{name} is None; pass a 2-D array, data frame or sparse matrix")
    if _is_lazy(data):
        raise TypeError(f"{name} is a lazy frame; collect() it first")
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and its mask would be lost; pass filled(np.nan) instead")
    if hasattr(data, "dtype") and np.iscomplexobj(data):
        raise ValueError(f"{name}: Complex data not supported; pass real numbers")
    if len(getattr(data, "shape", (0, 0))) == 1:
        raise ValueError(
            f"{name}: Expected 2D array, got 1D array instead, of shape {data.shape}. A view has one row a "
            "sample and one column a feature. Reshape your data: reshape(-1, 1) makes one feature of it, "
            "reshape(1, -1) one sample"
        )


def read_layout(views: ViewSpec, n_columns: int, feature_names: Sequence[str] | None) -> Layout:
    """How the columns of one 2-D X fall into views.

    Examples
    --------
    >>> read_layout([2, 1], 3, None)
    Layout(names=['view0', 'view1'], columns=[array([0, 1]), array([2])])
    >>> read_layout({"text": slice(1, 3), "age": [0]}, 3, None).names
    ['text', 'age']
    """
    everything = np.arange(n_columns)
    if views is None:
        return Layout(["view0"], [everything])
    if isinstance(views, Mapping) and len(views):
        names = _as_text(views, "views")
        columns = [_select_rows(spec, everything, feature_names, name) for name, spec in views.items()]
    elif isinstance(views, Sequence | np.ndarray) and not isinstance(views, str) and len(views):
        specs: list[Any] = list(views)
        names = default_names(len(specs))
        if all(isinstance(spec, slice) for spec in specs):
            columns = [_cut(spec, everything, name) for name, spec in zip(names, specs, strict=True)]
        elif all(isinstance(spec, int | np.integer) and not isinstance(spec, bool) for spec in specs):
            if min(specs) < 1:
                raise ValueError(f"views has a width of {min(specs)}: an empty view; widths are at least 1")
            if sum(specs) != n_columns:
                raise ValueError(f"views has widths that add up to {sum(specs)}, but X has {n_columns} columns")
            columns = np.split(everything, np.cumsum(specs)[:-1])
        else:
            raise TypeError("views must be widths (integers), slices, or a dict of name → columns")
    else:
        raise TypeError("views must be widths (integers), slices, or a dict of name → columns")
    for name, chosen in zip(names, columns, strict=True):
        if not len(chosen):
            raise ValueError(f"views: view {name!r} is empty")
    _check_partition(columns, n_columns)
    return Layout(names, columns)


def _select_rows(spec: Any, everything: NDArray, feature_names: Sequence[str] | None, view: str) -> NDArray:
    """Column numbers that one entry of a `views` dict means."""
    if isinstance(spec, slice):
        return _cut(spec, everything, view)
    single = isinstance(spec, int | np.integer | str) or not isinstance(spec, Iterable)
    wanted: list[Any] = [spec] if single else list(spec)
    if any(isinstance(column, str) for column in wanted):
        if feature_names is None:
            raise ValueError(f"views: view {view!r} names columns, but X has no column names (it is not a frame)")
        known = {name: number for number, name in enumerate(feature_names)}
        absent = [column for column in wanted if column not in known]
        if absent:
            raise ValueError(f"views: view {view!r} names the columns {absent}, which X does not have")
        return np.array([known[column] for column in wanted])
    strange = [c for c in wanted if not isinstance(c, int | np.integer) or isinstance(c, bool)]
    if strange:
        raise TypeError(f"views: view {view!r} must be column numbers, names or a slice, not {strange[0]!r}")
    outside = [column for column in wanted if not 0 <= column < len(everything)]
    if outside:
        raise ValueError(f"views: view {view!r} has the columns {outside}, but X has {len(everything)} columns")
    return np.array(wanted, dtype=int)


def _cut(spec: slice, everything: NDArray, view: str) -> NDArray:
    """Column numbers of a slice; one that reaches beyond the last column is a mistake in `views`."""
    if isinstance(spec.stop, int | np.integer) and spec.stop > len(everything):
        raise ValueError(f"views: view {view!r} ends at column {spec.stop}, but X has {len(everything)} columns")
    return everything[spec]


def _as_text(names: Iterable[Any], argument: str) -> list[str]:
    """Names of views as text; two that become one would lose a view."""
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{argument} has two views of the same name: {texts}")
    return texts


def _check_partition(columns: Sequence[NDArray], n_columns: int) -> None:
    times = np.bincount(np.concatenate(columns), minlength=n_columns)
    for wrong, what in ((times == 0, "in no view"), (times > 1, "in more than one view")):
        if wrong.any():
            raise ValueError(
                f"views do not add up to the {n_columns} columns of X: columns "
                f"{_some(np.flatnonzero(wrong))} are {what}"
            )


def _some(numbers: Iterable[int], most: int = 5) -> str:
    numbers = [int(number) for number in numbers]
    rest = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(map(str, numbers[:most])) + rest


def default_names(n_views: int) -> list[str]:
    """Names of views that have none: view0, view1, …"""
    return [f"view{v}" for v in range(n_views)]


def read_collection(X: Any, min_samples: int = 1) -> dict[str, Matrix]:
    """A list, tuple or dict of views as name → block, all of one length.

    Examples
    --------
    >>> list(read_collection([np.ones((3, 2)), sparse.eye_array(3)]))
    ['view0', 'view1']
    """
    if not len(X):
        raise ValueError("X is an empty collection: at least one view is needed")
    parts = name_parts(X)
    blocks = {name: read_block(part, f"view {name!r}", min_samples) for name, part in parts.items()}
    check_rows(X)
    lengths = {name: block.shape[0] for name, block in blocks.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"views of different length: {lengths}. Every view has one row a sample, in the same order; "
            "a sample that lacks a view has a row of NaN there"
        )
    return blocks


def read_known(X: Any, names: Sequence[str], widths: Sequence[int]) -> tuple[dict[str, Matrix], list[str]]:
    """Views given after fit, by the names of fit and in its order, and the names of those that are not there.

    A view that is None, or that a dict does not have, is missing for all samples. Where fit had names, they are
    needed: two lists may be in different orders.

    Examples
    --------
    >>> blocks, absent = read_known({"b": np.ones((2, 3)), "a": None}, ["a", "b"], [2, 3])
    >>> {name: block.shape for name, block in blocks.items()}, absent
    ({'a': (2, 2), 'b': (2, 3)}, ['a'])
    """
    parts = name_parts(X)
    if not isinstance(X, Mapping):
        if list(names) != default_names(len(names)):
            raise ValueError(
                f"X is a {type(X).__name__} of views, but the model was fitted with names: pass a dict with the names "
                f"{list(names)}"
            )
        if len(X) != len(names):
            raise ValueError(
                f"X has {len(X)} views, but the model was fitted with {len(names)}; put None in the place of a view "
                "that is not there"
            )
    unknown = [name for name in parts if name not in names]
    if unknown:
        raise ValueError(f"X has the views {sorted(parts)}, but the model was fitted with {list(names)}")
    given = {name: parts[name] for name in names if parts.get(name) is not None}
    if not given:
        raise ValueError(f"X has none of the views {list(names)}; at least one is needed")
    blocks = read_collection(given)
    for name, width in zip(names, widths, strict=True):
        if name in blocks and blocks[name].shape[1] != width:
            raise ValueError(
                f"view {name!r} has {blocks[name].shape[1]} features, but the model was fitted with {width}"
            )
    example = next(iter(blocks.values()))
    everything = {
        name: blocks[name] if name in blocks else _missing_view(example, width)
        for name, width in zip(names, widths, strict=True)
    }
    return everything, [name for name in names if name not in blocks]


def _missing_view(example: Matrix, width: int) -> sparse.csr_array:
    """A view that all samples of `example` lack: one stored NaN stands for a row."""
    n_samples = example.shape[0]
    marks = np.full(n_samples, np.nan, dtype=example.dtype)
    return sparse.csr_array((marks, np.zeros(n_samples, dtype=np.int32), np.arange(n_samples + 1)), (n_samples, width))


def name_parts(X: Any) -> dict[str, Any]:
    """The views of a list, tuple or dict by name.

    Examples
    --------
    >>> name_parts(["first", "second"])
    {'view0': 'first', 'view1': 'second'}
    """
    if isinstance(X, Mapping):
        return dict(zip(_as_text(X, "X"), X.values(), strict=True))
    return dict(zip(default_names(len(X)), X, strict=True))


def check_rows(X: Any, y: Any = None, present: Masks = None) -> None:
    """Refuse views, labels and masks whose indexes, if pandas has given them any, are of other samples.

    Examples
    --------
    >>> import pandas as pd
    >>> check_rows([pd.DataFrame({"a": [1, 2]}, index=["p", "q"])], pd.Series([0, 1], index=["p", "q"]))
    """
    collection = is_view_collection(X)
    parts = {f"view {name!r}": part for name, part in name_parts(X).items()} if collection else {"X": X}
    parts["y"] = y
    if isinstance(present, Mapping):
        parts |= {f"present[{name!r}]": mask for name, mask in present.items()}
    elif isinstance(present, list | tuple):
        parts |= {f"present[{v}]": mask for v, mask in enumerate(present)}
    check_indexes(parts)


def make_raw_views(blocks: Mapping[str, Matrix], present: Masks, *, gaps: bool = False) -> list[RawView]:
    """Find the sample-views that are missing, and refuse what is neither whole nor missing, unless `gaps` may be.

    Examples
    --------
    >>> raw = make_raw_views({"a": np.array([[np.nan, np.nan], [1.0, 2.0]]), "b": np.ones((2, 1))}, None)
    >>> raw[0].present, raw[1].present
    (array([False,  True]), None)
    """
    n_samples = next(iter(blocks.values())).shape[0]
    masks = _read_masks(present, list(blocks), n_samples)
    raws = []
    for (name, block), mask in zip(blocks.items(), masks, strict=True):
        has = mask & ~_check_rows(block, name, mask, gaps)
        # `stack_views` makes dense views sparse.
        raws.append(RawView(name, smaller(block), None if has.all() else has))
    nowhere = np.all([np.zeros(n_samples, bool) if r.present is None else ~r.present for r in raws], axis=0)
    if nowhere.any():
        raise ValueError(
            f"samples that are missing (NaN) in every view: rows {_some(np.flatnonzero(nowhere))}. "
            "Nothing is known of them; drop them"
        )
    return raws


def _read_masks(present: Masks, names: Sequence[str], n_samples: int) -> list[NDArray]:
    if present is None:
        given: list[ArrayLike | None] = [None] * len(names)
    elif isinstance(present, Mapping):
        named = dict(zip(_as_text(present, "present"), present.values(), strict=True))
        unknown = sorted(set(named) - set(names))
        if unknown:
            raise ValueError(f"present names the views {unknown}, but the views are {list(names)}")
        given = [named.get(name) for name in names]
    elif isinstance(present, str) or not isinstance(present, Iterable):
        raise TypeError(f"present must be a list or dict with a boolean mask (or None) for each view, got {present!r}")
    else:
        given = list(present)
        if len(given) != len(names):
            raise ValueError(f"present has {len(given)} masks, but there are {len(names)} views")
    masks = []
    for name, mask in zip(names, given, strict=True):
        if isinstance(mask, np.ma.MaskedArray):
            raise TypeError(f"present: the mask of view {name!r} is a masked array, and would lose its own mask")
        try:
            array = np.ones(n_samples, bool) if mask is None else np.asarray(mask)
        except ValueError:
            array = np.asarray(mask, dtype=object)  # ragged lists
        if array.dtype != bool or array.shape != (n_samples,):
            raise ValueError(
                f"present: the mask of view {name!r} must be {n_samples} booleans, True where the sample has "
                f"the view; got {array.dtype} of shape {array.shape}"
            )
        masks.append(array)
    return masks


def _check_rows(block: Matrix, name: str, mask: NDArray, gaps: bool) -> NDArray:
    """Rows that are all NaN; an error for rows (within `mask`) that are infinite or, without `gaps`, partly NaN."""
    missing = np.zeros(block.shape[0], dtype=bool)
    for rows in slices(block.shape[0], stored_bytes(block) / max(block.shape[0], 1)):
        missing[rows] = _check_part(block[rows], name, mask[rows], rows.start, gaps)
        release(block)
    return missing


def _check_part(block: Matrix, name: str, mask: NDArray, first: int, gaps: bool) -> NDArray:
    """The same for some of the rows; the number of the first is told in errors."""
    values = block.data if sparse.issparse(block) else block
    largest = LARGEST * float(np.sqrt(np.finfo(values.dtype).max))
    if not values.size or -largest <= values.min() <= values.max() <= largest:  # False if there is a NaN
        return np.zeros(block.shape[0], dtype=bool)
    nan, stored = _count_by_row(block, np.isnan(values))
    infinite, _ = _count_by_row(block, np.isinf(values))
    bad = np.flatnonzero((infinite > 0) & mask)
    if len(bad):
        raise ValueError(f"view {name!r}, row {first + bad[0]}: contains infinity (inf); values must be finite")
    with np.errstate(invalid="ignore"):
        huge, _ = _count_by_row(block, np.abs(values) > largest)
    bad = np.flatnonzero((huge > 0) & mask)
    if len(bad):
        raise ValueError(
            f"view {name!r}, row {first + bad[0]}: contains a value beyond ±{largest:.1e}, too large to be squared "
            f"in {values.dtype}. If it marks missing values, put NaN there; else use another unit"
        )
    bad = np.flatnonzero((nan > 0) & (nan < stored) & mask)
    if len(bad) and not gaps:
        raise ValueError(
            f"view {name!r}, row {first + bad[0]}: contains NaN in {nan[bad[0]]} of {stored[bad[0]]} values. A "
            "sample that lacks the view has NaN in the whole row; single missing values are filled in with the "
            'median of their column if the estimator has impute="median" (or "mean")'
        )
    return (nan > 0) & (nan == stored)


def _count_by_row(block: Matrix, flags: NDArray) -> tuple[NDArray, NDArray]:
    """Flagged and stored values of each row."""
    if sparse.issparse(block):
        sums = np.concatenate([[0], np.cumsum(flags)])
        return sums[block.indptr[1:]] - sums[block.indptr[:-1]], np.diff(block.indptr)
    return flags.sum(axis=1), np.full(block.shape[0], block.shape[1])


def stack_views(
    views: Sequence[Any] | Mapping[str, Any], present: Masks = None
) -> tuple[Matrix, list[int] | dict[str, slice]]:
    """Turn a list or dict of views into one 2-D X and the matching `views` parameter.

    One X is what `cross_val_score`, `GridSearchCV`, `Pipeline` and the like can cut into rows.

    Parameters
    ----------
    views : sequence or mapping of 2-D arrays, data frames or sparse matrices
        All with one row a sample, in the same order.
    present : sequence or mapping of boolean arrays, optional
        For each view, which samples have it; None for all. A sample that lacks a view gets NaN there (in
        sparse views one stored NaN, which stands for the whole row). Single missing values stay NaN, for the
        parameter `impute`.

    Returns
    -------
    X : ndarray or csr_array of shape (n, Σ d_v)
        CSR if any view is sparse; no sparse view is made dense.
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
    blocks = read_collection(views)
    check_rows(views, present=present)
    raws = make_raw_views(blocks, present, gaps=True)  # fit fills them in, or refuses them
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
    """CSR in which a row that is NaN in part has its zeros stored: one that stores nothing but NaN is missing."""
    if sparse.issparse(part):
        return part
    stored = (part != 0) | np.isnan(part).any(axis=1)[:, None]
    return sparse.csr_array((part[stored], np.nonzero(stored)), shape=part.shape)


def _without_nan(data: sparse.csr_array) -> sparse.csr_array:
    data = data.copy()
    data.data[np.isnan(data.data)] = 0
    return data
