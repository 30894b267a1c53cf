"""Reading of what a user passes as X: one 2-D array or a collection of views."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from lmssc.data.frames import frame_to_array, is_frame, is_lazy_frame
from lmssc.data.graph_view import Graph
from lmssc.data.list_columns import is_list_column, list_column_to_array
from lmssc.data.row_index import check_indexes
from lmssc.numerics.matrices import Matrix

Columns = int | slice | Sequence[int] | Sequence[str]
ViewSpec = Sequence[int] | Sequence[slice] | Mapping[str, Columns] | None
Masks = Sequence[ArrayLike | None] | Mapping[str, ArrayLike | None] | None


def is_view_collection(X: Any) -> bool:
    """Whether X is a list, tuple or dict of views, and not one 2-D array.

    Examples
    --------
    >>> is_view_collection([np.ones((3, 2))]), is_view_collection([[1.0, 2.0], [3.0, 4.0]])
    (True, False)
    """
    if isinstance(X, Mapping):
        return not sparse.issparse(X)  # a DOK matrix of scipy is a dict
    if not isinstance(X, list | tuple):
        return False
    return any(_dimensions(part) >= 2 or is_lazy_frame(part) for part in X) or _is_all_none(X)


def _is_all_none(X: Sequence[Any]) -> bool:
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


def read_block(data: Any, name: str, min_samples: int = 1) -> Matrix:
    """Read one view as a 2-D float array or CSR array. Errors name the view; NaN and infinity are checked later."""
    if is_list_column(data):
        data = list_column_to_array(data, name)
    _refuse_unsupported(data, name)
    from sklearn.utils.validation import check_array  # slow to import; files can be read without it

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


def _refuse_unsupported(data: Any, name: str) -> None:
    """Refuse input that `check_array` accepts silently, or reports with the whole data in the message."""
    if data is None:
        raise TypeError(f"{name} is None; pass a 2-D array, data frame or sparse matrix")
    if isinstance(data, Graph):
        raise TypeError(
            f"{name} is a Graph alone; pass a dict with at least one view of features beside it, such as "
            '{"text": X, "cites": Graph(A)}'
        )
    if is_lazy_frame(data):
        raise TypeError(f"{name} is a lazy frame; collect() it first")
    if is_dask(data):
        raise TypeError(
            f"{name} is a dask array, which would be gathered here; call compute() if it fits into memory. LMSSC fits "
            "dask arrays on a cluster"
        )
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and its mask would be lost; pass filled(np.nan) instead")
    if isinstance(data, list | tuple):
        _refuse_list(data, name)
    if hasattr(data, "dtype") and np.iscomplexobj(data):
        raise ValueError(f"{name}: Complex data not supported; pass real numbers")
    if len(getattr(data, "shape", (0, 0))) == 1:
        raise ValueError(
            f"{name}: Expected 2D array, got 1D array instead, of shape {data.shape}. A view has one row per "
            "sample and one column per feature. Reshape your data: reshape(-1, 1) gives one feature, reshape(1, -1) "
            "one sample"
        )


def _refuse_list(data: Sequence[Any], name: str) -> None:
    """Refuse an empty list, and rows of different lengths, which are often single samples of several views."""
    if not len(data):
        raise ValueError(f"{name}: Expected 2D array or views, got an empty list: at least one view is needed")
    shapes = {np.shape(part) for part in data if hasattr(part, "shape")}
    if len(shapes) > 1 and all(len(shape) == 1 for shape in shapes):
        raise ValueError(
            f"{name} is a list of 1D arrays of different lengths. If these are the views of one sample, pass each as "
            "an array with one row: reshape(1, -1)"
        )


def default_names(n_views: int) -> list[str]:
    """Names for unnamed views: view0, view1, …"""
    return [f"view{v}" for v in range(n_views)]


def unique_names(names: Iterable[Any], argument: str) -> list[str]:
    """Names of views as text; names that become equal as text are refused."""
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{argument} has two views of the same name: {texts}")
    return texts


def list_some(items: Iterable[Any], max_listed: int = 5) -> str:
    """The first few of some items, for messages.

    Examples
    --------
    >>> list_some(range(8))
    '0, 1, 2, 3, 4 and 3 more'
    """
    texts = [str(item) for item in items]
    rest = f" and {len(texts) - max_listed} more" if len(texts) > max_listed else ""
    return ", ".join(texts[:max_listed]) + rest


def read_collection(X: Any, min_samples: int = 1) -> dict[str, Matrix]:
    """Read a list, tuple or dict of views as name → block, all of the same length.

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
            f"views of different length: {lengths}. Every view has one row per sample, in the same order; "
            "a sample that lacks a view has a row of NaN there"
        )
    return blocks


def read_known(X: Any, names: Sequence[str], widths: Sequence[int]) -> tuple[dict[str, Matrix], list[str]]:
    """Read views given after `fit`.

    A view that is None, or that a dict lacks, is missing for all samples. If `fit` had names, they are required: lists
    may be in different orders.

    Parameters
    ----------
    X : list, tuple or dict of views
        Views of new samples.
    names : sequence of str
        Names of the views of `fit`.
    widths : sequence of int
        Their numbers of features.

    Returns
    -------
    blocks : dict of str to array
        The views by name, in the order of `fit`.
    absent : list of str
        Names of the views that X lacks.

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
                f"X has {len(X)} views, but the model was fitted with {len(names)}; put None in the place of a "
                "missing view"
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
    """A view that all samples of `example` lack: one stored NaN marks a missing row."""
    n_samples = example.shape[0]
    marks = np.full(n_samples, np.nan, dtype=example.dtype)
    return sparse.csr_array((marks, np.zeros(n_samples, dtype=np.int32), np.arange(n_samples + 1)), (n_samples, width))


def is_dask(data: Any) -> bool:
    """Whether some data are a dask array or a dask data frame.

    Examples
    --------
    >>> is_dask(np.eye(2))
    False
    """
    return type(data).__module__.partition(".")[0] == "dask"


def has_dask(X: Any) -> bool:
    """Whether X, or a view of it, is a dask array.

    Examples
    --------
    >>> has_dask({"a": np.eye(2)})
    False
    """
    return is_dask(X) or (is_view_collection(X) and any(map(is_dask, name_parts(X).values())))


def name_parts(X: Any) -> dict[str, Any]:
    """The views of a list, tuple or dict by name.

    Examples
    --------
    >>> name_parts(["first", "second"])
    {'view0': 'first', 'view1': 'second'}
    """
    if isinstance(X, Mapping):
        return dict(zip(unique_names(X, "X"), X.values(), strict=True))
    return dict(zip(default_names(len(X)), X, strict=True))


def check_rows(X: Any, y: Any = None, present: Masks = None, sample_weight: Any = None) -> None:
    """Refuse views, labels, masks and weights whose pandas indexes belong to different samples.

    Examples
    --------
    >>> import pandas as pd
    >>> check_rows([pd.DataFrame({"a": [1, 2]}, index=["p", "q"])], pd.Series([0, 1], index=["p", "q"]))
    """
    collection = is_view_collection(X)
    parts = {f"view {name!r}": part for name, part in name_parts(X).items()} if collection else {"X": X}
    # The rows of a graph are named by the frame that it was made of.
    parts = {name: part.affinity if isinstance(part, Graph) else part for name, part in parts.items()}
    parts |= {"y": y, "sample_weight": sample_weight}
    if isinstance(present, Mapping):
        parts |= {f"present[{name!r}]": mask for name, mask in present.items()}
    elif isinstance(present, list | tuple):
        parts |= {f"present[{v}]": mask for v, mask in enumerate(present)}
    else:
        parts["present"] = present
    check_indexes(parts)
