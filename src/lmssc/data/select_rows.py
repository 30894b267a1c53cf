"""Some rows of whatever a user passes as X."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.graph_view import Graph
from lmssc.data.validation import is_view_collection


def take_rows(X: Any, rows: NDArray) -> Any:
    """Rows of an array, a frame, a sparse matrix, or of each view of a list or dict.

    Parameters
    ----------
    X : array, data frame, sparse matrix, or list or dict of these
        Samples.
    rows : ndarray of int
        Numbers of the rows.

    Examples
    --------
    >>> take_rows({"a": np.arange(6).reshape(3, 2), "b": None}, np.array([2]))
    {'a': array([[4, 5]]), 'b': None}
    """
    if X is None:
        return None
    if is_view_collection(X):
        if isinstance(X, Mapping):
            return {name: take_rows(part, rows) for name, part in X.items()}
        return [take_rows(part, rows) for part in X]
    if isinstance(X, Graph):  # links of these rows to all samples
        return Graph(take_rows(X.affinity, rows), X.ids)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):  # pyarrow, which has columns at [ ]
        return X.take(rows)
    if sparse.issparse(X):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]
