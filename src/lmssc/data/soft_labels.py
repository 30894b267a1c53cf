"""Labels that are not certain: rows of y as distributions over the classes, and a trust in each label."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc.data.frames import frame_columns, is_frame
from lmssc.data.labels import Labels

# Rows of a distribution sum to 1 up to this.
ROUNDING = 1e-3


class SoftLabels(NamedTuple):
    """Classes, the likeliest class of each sample (−1: no label), and the distribution of each over the classes."""

    classes: NDArray
    codes: NDArray
    shares: NDArray


def is_soft(y: Any) -> bool:
    """Whether y has a row of numbers for each sample, one for each class.

    Examples
    --------
    >>> is_soft([[0.5, 0.5], [1.0, 0.0]]), is_soft([0, 1]), is_soft([[0], [1]])
    (True, False, False)
    """
    if isinstance(y, list | tuple):
        rows = list | tuple | np.ndarray
        rows_of_one_length = (
            isinstance(row, rows) and row is not np.ma.masked and len(row) == len(y[0]) > 1 for row in y
        )
        return bool(y) and all(rows_of_one_length)
    return len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1


def read_soft_labels(y: Any, n_samples: int) -> SoftLabels:
    """Distributions over the classes; a row of NaN or of zeros is a sample without a label.

    Parameters
    ----------
    y : array-like or data frame of shape (n, c)
        Shares of the classes. The columns of a data frame are the classes, otherwise they are 0, 1, ...
    n_samples : int
        Number of samples.

    Returns
    -------
    SoftLabels

    Examples
    --------
    >>> read_soft_labels([[0.8, 0.2], [0.0, 1.0], [0.0, 0.0]], 3).codes
    array([ 0,  1, -1])
    """
    names = np.array(frame_columns(y)) if is_frame(y) else None
    shares = np.asarray(y, dtype=np.float64)
    if len(shares) != n_samples:
        raise ValueError(f"X has {n_samples} rows, y has {len(shares)}")
    unknown = np.isnan(shares).all(axis=1) | (shares == 0).all(axis=1)
    shares = np.where(unknown[:, None], 0.0, shares)
    good = (shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) <= ROUNDING)
    bad = np.flatnonzero(~(good | unknown))
    if len(bad):
        raise ValueError(
            f"row {bad[0]} of y is not a distribution over the {shares.shape[1]} classes: {shares[bad[0]].tolist()}; "
            "shares must be at least 0 and sum to 1, or all be 0 or NaN for a sample without a label"
        )
    classes = np.arange(shares.shape[1]) if names is None else names
    order = np.argsort(classes, kind="stable")
    classes, shares = classes[order], shares[:, order]
    codes = np.where(unknown, -1, shares.argmax(axis=1))
    absent = np.setdiff1d(np.arange(len(classes)), codes)
    if len(absent):
        raise ValueError(
            f"class {classes.tolist()[absent[0]]!r} is not the most likely class in any row of y: leave its column out"
        )
    return SoftLabels(classes, codes, shares)


def read_trust(sample_weight: ArrayLike | None, labels: Labels) -> tuple[NDArray, NDArray | None]:
    """Codes without the labels that do not count at all, and the trust in the others; None if all are certain.

    Parameters
    ----------
    sample_weight : array-like of shape (n,), optional
        Probability that each label is right: 1 or more is certain, 0 is no label. Those of unlabelled samples do not
        count.
    labels : Labels
        Classes and codes.

    Returns
    -------
    codes : ndarray of int of shape (n,)
    trust : ndarray of shape (n,), or None

    Examples
    --------
    >>> read_trust([1.0, 0.5, 0.0], Labels(np.array([0, 1]), np.array([0, 1, 0])))
    (array([ 0,  1, -1]), array([1. , 0.5, 0. ]))
    """
    codes = labels.codes
    if sample_weight is None:
        return codes, None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one for each sample: the trust in its label") from None
    if weights.shape != codes.shape:
        raise ValueError(f"sample_weight has the shape {weights.shape}, but there are {len(codes)} samples")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number: sample_weight is all zeros")
    weights = np.minimum(np.where(codes >= 0, weights, 1.0), 1.0)
    bad = np.flatnonzero(~(weights >= 0))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]:g}: the trust in a label is from 0 (no label) to 1 (certain)"
        )
    kept = np.where(weights > 0, codes, -1)
    lost = np.setdiff1d(codes[codes >= 0], kept)
    if len(lost):
        raise ValueError(f"sample_weight is 0 for all labels of class {labels.classes[lost[0]]!r}")
    return kept, None if (weights[kept >= 0] == 1).all() else weights
