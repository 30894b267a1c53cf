"""Checks of the shape, kind and range of fitted attributes, from which the tables of `fitted_state` are built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Numbers up to the largest float to this power can be squared twice and summed.
MAX_EXPONENT = 0.3


@dataclass(frozen=True)
class Sizes:
    """Sizes that the attributes of one model have in common.

    Attributes
    ----------
    n, m, c, v, p : int
        Samples, distinct samples, classes, views, features of all views.
    r, q : int
        Components, and columns of the points that the graph is built on; 0 for methods without a latent space.
    i : int
        Iterations.
    names : list of str
        Names of the views.
    widths, content_widths : list of int
        Features of each view in the order of the input, and in canonical order.
    used_widths : list of int
        The same of the views that are used, in canonical order.
    graph_names : list of str
        Names of the graphs.
    n_smoothed : int
        Number of views smoothed over links.
    """

    n: int
    m: int
    c: int
    v: int
    p: int
    r: int
    q: int
    i: int
    names: list[str]
    widths: list[int]
    content_widths: list[int]
    used_widths: list[int]
    graph_names: list[str] = field(default_factory=list)
    n_smoothed: int = 0


class Check(NamedTuple):
    """A test of an attribute, and what it expects, for the error message."""

    accepts: Callable[[Any, Sizes], bool]
    wanted: str


Table = Mapping[str, Check]
Size = int | str | None


def array(*shape: Size, kinds: str = "f", least: float = -np.inf, most: float = np.inf) -> Check:
    """An array of finite numbers; a size is a number, the name of one of `Sizes`, or None for any.

    Examples
    --------
    >>> sizes = Sizes(3, 3, 2, 1, p=4, r=0, q=0, i=1, names=["a"], widths=[4], content_widths=[4], used_widths=[4])
    >>> check = array("n", "c", least=0)
    >>> check.accepts(np.ones((3, 2)), sizes), check.accepts(np.ones((2, 2)), sizes), check.accepts("x", sizes)
    (True, False, False)
    >>> check.wanted
    'an array of shape (n, c), finite, at least 0'
    """

    def accepts(value: Any, sizes: Sizes) -> bool:
        return type(value) is np.ndarray and _fits(value.shape, shape, sizes) and _in_range(value, kinds, least, most)

    names = ", ".join("any" if size is None else str(size) for size in shape)
    limits = (f", at least {least:g}" if least > -np.inf else "") + (f", at most {most:g}" if most < np.inf else "")
    return Check(accepts, f"an array of shape ({names}), finite{limits}")


def csr(*shape: Size, least: float = -np.inf) -> Check:
    """A CSR array of finite numbers in canonical format, which products rely on."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, sparse.csr_array) or not _fits(value.shape, shape, sizes):
            return False
        whole = len(value.data) == len(value.indices) == value.indptr[-1] and value.has_canonical_format
        return bool(whole) and _in_range(value.data, "f", least, np.inf)

    return Check(accepts, array(*shape, least=least).wanted.replace("an array", "a sparse array"))


def points(*shape: Size) -> Check:
    """An array of numbers whose fourth power is finite."""
    plain = array(*shape)
    return Check(lambda value, sizes: plain.accepts(value, sizes) and _is_moderate(value), plain.wanted)


def matrix(*shape: Size) -> Check:
    """As `points`, or a CSR array of such numbers."""
    plain = csr(*shape)
    packed = Check(lambda value, sizes: plain.accepts(value, sizes) and _is_moderate(value.data), plain.wanted)
    return either(points(*shape), packed)


def _is_moderate(values: NDArray) -> bool:
    return not values.size or bool(np.abs(values).max() <= np.finfo(values.dtype).max ** MAX_EXPONENT)


def _fits(found: tuple[int, ...], shape: tuple[Size, ...], sizes: Sizes) -> bool:
    wanted = [getattr(sizes, size) if isinstance(size, str) else size for size in shape]
    return len(found) == len(wanted) and all(size in (None, length) for size, length in zip(wanted, found, strict=True))


def _in_range(values: NDArray, kinds: str, least: float, most: float) -> bool:
    if values.dtype.kind not in kinds or (values.dtype.kind == "f" and values.dtype.itemsize < 4):
        return False
    return not values.size or bool(np.isfinite(values).all() and values.min() >= least and values.max() <= most)


def number(least: float = -np.inf, most: float = np.inf) -> Check:
    """A finite number."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        return isinstance(value, float | np.floating) and bool(np.isfinite(value) and least <= value <= most)

    return Check(accepts, f"a finite number from {least:g} to {most:g}")


def optional(check: Check) -> Check:
    """None, or what the check accepts."""
    return Check(lambda value, sizes: value is None or check.accepts(value, sizes), f"None or {check.wanted}")


def either(one: Check, other: Check) -> Check:
    """What one of two checks accepts."""
    return Check(
        lambda value, sizes: one.accepts(value, sizes) or other.accepts(value, sizes),
        f"{one.wanted}, or {other.wanted}",
    )


def rows_below(size: str) -> Check:
    """Distinct row indices in ascending order."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        within = array(None, kinds="i", least=0, most=getattr(sizes, size) - 1).accepts(value, sizes)
        return within and bool((np.diff(value) > 0).all())

    return Check(accepts, f"different numbers from 0 to {size} - 1, sorted")


def order_of(size: str, kind: type = np.ndarray) -> Check:
    """A permutation of 0, …, size − 1, as an array or a list."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        return type(value) is kind and is_permutation(value, getattr(sizes, size))

    return Check(accepts, f"the numbers from 0 to {size} - 1 in some order")


def is_permutation(value: Any, length: int) -> bool:
    """Whether an array or a list is a permutation of 0, …, length − 1."""
    if type(value) is list and not all(type(item) is int for item in value):
        return False
    numbers = np.asarray(value)
    return (
        numbers.shape == (length,) and numbers.dtype.kind == "i" and bool((np.sort(numbers) == np.arange(length)).all())
    )


def by_view(widths: str, check: Callable[[Any, int, Sizes], bool], wanted: str) -> Check:
    """A list with one item per view; `check` tests the item, given the number of features."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        features = getattr(sizes, widths)
        return (
            type(value) is list
            and len(value) == len(features)
            and all(check(one, width, sizes) for one, width in zip(value, features, strict=True))
        )

    return Check(accepts, f"a list with {wanted} for each view")


def is_integer(value: Any) -> bool:
    """Whether a value is an integer, and not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def are_texts(value: Any, length: int | None = None) -> bool:
    """Whether a value is a list of strings, of a given length if there is one."""
    return type(value) is list and length in (None, len(value)) and all(type(item) is str for item in value)
