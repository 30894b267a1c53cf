"""Encoding of y as class codes, −1 for unlabelled samples."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmssc.data.warn_caller import warn_caller

# Text that stands for a missing value: what pandas reads as missing, and missing values converted to text.
MISSING_WORDS = frozenset(
    ["", "#N/A", "-1", "-1.0", "<NA>", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan", "null"]
)
MISSING_BYTES = frozenset(word.encode() for word in MISSING_WORDS)
# Text that may stand for a missing value, but is taken as a class, with a warning.
DOUBTFUL_WORDS = frozenset(
    ["?", "??", "-", "--", ".", "unknown", "unlabelled", "unlabeled", "not labelled", "not labeled", "missing", "tbd"]
)
LABEL_TYPES = "Labels are whole numbers, text or booleans, and None or NaN for unlabelled"
NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?")


class ClassName(str):
    """A label that is always a class, even if it is "NA".

    Examples
    --------
    >>> known_labels([ClassName("NA"), "cat", None])[1]
    array([ True,  True, False])
    """

    __slots__ = ()


class Labels(NamedTuple):
    """Sorted classes, and the code of each sample (−1: no label)."""

    classes: NDArray
    codes: NDArray


def is_missing(value: Any) -> bool:
    """Whether a label is None, NaN, pandas' NA or masked.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def is_missing_word(label: Any) -> bool:
    """Whether a label is text that stands for a missing value; a `ClassName` never does.

    Examples
    --------
    >>> [is_missing_word(label) for label in ("NA", " ", "cat", ClassName("NA"), None, b"")]
    [True, True, False, False, False, True]
    """
    if isinstance(label, bytes):
        return label.strip() in MISSING_BYTES
    return isinstance(label, str) and not isinstance(label, ClassName) and label.strip() in MISSING_WORDS


def is_doubtful(label: Any) -> bool:
    """Whether a class may stand for a missing label, as "unknown" and "?" do; a `ClassName` never does.

    Examples
    --------
    >>> [is_doubtful(label) for label in ("Unknown", "?", "cat", ClassName("?"), 3)]
    [True, True, False, False, False]
    """
    return isinstance(label, str) and not isinstance(label, ClassName) and label.strip().lower() in DOUBTFUL_WORDS


def case_twins(labels: Iterable[Any]) -> list[list[str]]:
    """Classes that differ in case only; a `ClassName` is meant as it is written.

    Examples
    --------
    >>> case_twins(["Cat", "dog", "cat"])
    [['Cat', 'cat']]
    """
    spellings: dict[str, list[str]] = {}
    for label in sorted({label for label in labels if isinstance(label, str) and not isinstance(label, ClassName)}):
        spellings.setdefault(label.casefold(), []).append(str(label))
    return [same for same in spellings.values() if len(same) > 1]


def number_twins(labels: Iterable[Any]) -> list[list[str]]:
    """Classes that are the same number, written in two ways; a `ClassName` is meant as it is written.

    Examples
    --------
    >>> number_twins(["1", "2", "1.0", "02"])
    [['02', '2'], ['1', '1.0']]
    """
    spellings: dict[float, list[str]] = {}
    for label in sorted({label for label in labels if isinstance(label, str) and not isinstance(label, ClassName)}):
        if NUMBER.fullmatch(label):
            spellings.setdefault(float(label), []).append(str(label))
    return [same for same in spellings.values() if len(same) > 1]


def check_twins(labels: Iterable[Any]) -> None:
    """Refuse labels that look alike: that differ only in whitespace, or in how an accent is encoded.

    Examples
    --------
    >>> check_twins(["cat", "dog", "cat "])
    Traceback (most recent call last):
        ...
    ValueError: the labels 'cat' and 'cat ' differ only in blanks; write them the same way
    """
    seen: dict[str, str] = {}
    for label in sorted({label for label in labels if isinstance(label, str)}):
        composed = unicodedata.normalize("NFC", label)
        twin = seen.setdefault(" ".join(composed.split()), label)
        if twin != label:
            how = "in how accents are encoded" if composed == unicodedata.normalize("NFC", twin) else "in blanks"
            raise ValueError(f"the labels {str(twin)!r} and {str(label)!r} differ only {how}; write them the same way")


def _as_column(y: ArrayLike) -> NDArray:
    """`y` as a 1-D array in which missing labels are still recognisable."""
    if isinstance(y, np.ma.MaskedArray):
        masked, y = np.ma.getmaskarray(y), np.array(y.data, dtype=object)
        y[masked] = None
    if hasattr(y, "null_count") and hasattr(y, "to_list"):  # polars and pyarrow: to_numpy makes integers floats
        y = y.to_list()
    elif hasattr(y, "dtype") and not isinstance(y, np.ndarray) and hasattr(y, "to_numpy"):
        y = y.to_numpy() if isinstance(y.dtype, np.dtype) else y.to_numpy(dtype=object)
    if isinstance(y, list | tuple) and any(is_missing(label) for label in y):
        column = np.empty(len(y), dtype=object)
        column[:] = y
    else:
        column = np.asarray(y)
        if column.dtype.kind in "US" and not isinstance(y, np.ndarray):
            column = np.asarray(y, dtype=object)
    from sklearn.utils.validation import column_or_1d  # slow to import; files can be read without it

    return column_or_1d(column, warn=True)


def known_labels(y: ArrayLike) -> tuple[NDArray, NDArray]:
    """Split `y` into an array of labels and a mask of those that are known.

    Unknown are −1 among integers, None and NaN among other labels, and masked values. Text that stands for a missing
    value, such as "NA" or "-1", and −1.0 count as unknown, with a warning.

    Examples
    --------
    >>> known_labels([0, -1, 1])[1]
    array([ True, False,  True])
    >>> known_labels(["cat", None, "dog"])[1]
    array([ True, False,  True])
    """
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    column = _as_column(y)
    if column.dtype.kind == "c":
        raise ValueError("y has complex numbers. Complex data not supported: labels are integers, strings or booleans")
    if column.dtype.kind in "mM":
        raise ValueError(f"Unknown label type: {column.dtype.name}. {LABEL_TYPES}")
    if column.dtype.kind in "iu":
        return column, column != -1
    if column.dtype.kind == "f":
        known = ~np.isnan(column)
        if np.isinf(column[known]).any():
            raise ValueError("Input y contains infinity or a value too large: labels must be finite")
        if (column == -1).any():
            _warn_unlabelled("-1.0", int((column == -1).sum()))
        return column, known & (column != -1)
    if column.dtype.kind == "O":
        known = np.array([not is_missing(label) for label in column], dtype=bool)
        return _plain(*_without_words(column, known))
    known = np.ones(len(column), dtype=bool)
    return _without_words(column, known) if column.dtype.kind in "US" else (column, known)


def _without_words(column: NDArray, known: NDArray) -> tuple[NDArray, NDArray]:
    """Mark labels that are text for a missing value as unknown."""
    found = np.array([is_missing_word(label) for label in column.tolist()], dtype=bool)
    if found.any():
        _warn_unlabelled(" or ".join(map(repr, sorted(set(column[found].tolist())))), int(found.sum()))
    return column, known & ~found


def _warn_unlabelled(what: str, count: int) -> None:
    warn_caller(
        f"y has {count} labels {what}, taken as unlabelled. If that is right, put None or NaN there (-1 if all "
        "are integers) to silence this warning; if it is a class, give it another name",
    )


def _plain(column: NDArray, known: NDArray) -> tuple[NDArray, NDArray]:
    """Convert object labels to a numeric or boolean array if all known ones are numbers or booleans."""
    kinds = {_kind(label) for label in column[known]}
    if len(kinds) > 1:
        raise TypeError(
            f"y mixes labels of the types {', '.join(sorted(kinds))}; use one type, and None or NaN for unlabelled"
        )
    if kinds == {"float"}:
        return known_labels(np.array([label if has else np.nan for label, has in zip(column, known, strict=True)]))
    if kinds == {"bool"}:
        return np.where(known, column, False).astype(bool), known
    if kinds == {"int"}:
        integers = np.full(len(column), -1, dtype=np.int64)
        integers[known] = column[known].astype(np.int64)
        return integers, integers != -1
    return column, known


def _kind(label: Any) -> str:
    if isinstance(label, bool | np.bool_):
        return "bool"
    if isinstance(label, int | np.integer):
        return "int"
    if isinstance(label, float | np.floating):
        return "float"
    return "str" if isinstance(label, str) else type(label).__name__


def _check_discrete(labels: NDArray) -> None:
    """Labels are whole numbers, text or booleans.

    scikit-learn's own check takes many classes with few labels each for a regression, and refuses True beside
    None.
    """
    if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
        broken = labels[labels != np.rint(labels)][0]
        raise ValueError(
            f"Unknown label type: continuous. y has the label {broken}; labels are whole numbers, text or booleans"
        )
    if labels.dtype.kind == "O" and _kind(labels[0]) != "str":
        raise ValueError(f"Unknown label type: {_kind(labels[0])}. {LABEL_TYPES}")


def _odd_negative(classes: list) -> float | None:
    """A class such as -99, which may stand for a missing label, or -2 beside 0, between which -1 may be a class."""
    nines = (name for name in classes if name < 0 and set(f"{-name:g}") == {"9"})
    return next(nines, -2 if {-2, 0} <= set(classes) else None)


def _warn_of_classes(classes: NDArray) -> None:
    """Warn of classes that may be none: "unknown", "a" beside "A", "1" beside "1.0", -999 or 255 beside 0, 1 and 2."""
    names = classes.tolist()
    complaints = []
    doubtful = [str(name) for name in names if is_doubtful(name)]
    if doubtful:
        complaints.append(
            f"y has the class {' and the class '.join(map(repr, doubtful))}. If that means unlabelled, put None there"
        )
    twins = case_twins(names)
    if twins:
        same = "; ".join(" and ".join(map(repr, spellings)) for spellings in twins)
        complaints.append(
            f"y has classes that differ in case only: {same}. If they are one class, write them the same way"
        )
    twins = number_twins(names)
    if twins:
        same = "; ".join(" and ".join(map(repr, spellings)) for spellings in twins)
        complaints.append(
            f"y has classes that are the same number: {same}. If they are one class, write them the same way"
        )
    if classes.dtype.kind in "if" and (odd := _odd_negative(names)) is not None:
        complaints.append(
            f"y has the class {odd:g}, and -1 means unlabelled. If {odd:g} means unlabelled too, put -1 there; if -1 "
            "is a class, number the classes from 0 or name them"
        )
    if classes.dtype.kind == "u" and len(names) > 1:
        largest = np.iinfo(classes.dtype).max
        if names[-1] == largest and names[-2] < largest // 2:
            complaints.append(
                f"y is {classes.dtype} and has the class {largest}, which is what -1 becomes in it. If that means "
                "unlabelled, make y a signed array and put -1 there"
            )
    for complaint in complaints:
        warn_caller(complaint)


def encode_labels(y: ArrayLike, n_samples: int | None = None) -> Labels:
    """Classes and codes of the labels `y` of `n_samples` samples, or of as many as there are labels.

    Examples
    --------
    >>> encode_labels(["b", None, "a"], 3)
    Labels(classes=array(['a', 'b'], dtype=object), codes=array([ 1, -1,  0]))
    """
    labels, known = known_labels(y)
    if n_samples is not None and len(labels) != n_samples:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: the views have {n_samples} rows, "
            f"y has {len(labels)} labels"
        )
    if not known.any():
        raise ValueError(
            "y has no labelled sample. At least one label in each of two classes is needed "
            "(unlabelled is -1 for integers, None or NaN for anything else)"
        )
    _check_discrete(labels[known])
    classes, known_codes = np.unique(labels[known], return_inverse=True)
    check_twins(classes.tolist())
    _warn_of_classes(classes)
    if classes.dtype == object:
        classes[:] = [str(name) for name in classes]  # plain text, also of a `ClassName`
    if len(classes) < 2:
        hint = "; -1 means unlabelled: if it is a class, give it another number" if (labels == -1).any() else ""
        raise ValueError(
            f"y has one class only ({str(classes[0])!r} in all {known.sum()} labelled samples); "
            f"classification needs at least 2 classes{hint}"
        )
    codes = np.full(len(labels), -1)
    codes[known] = known_codes
    return Labels(classes, codes)
