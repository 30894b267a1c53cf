"""Rules for the values of parameters, and one check for all of them."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Beyond these, parameters swamp all other terms in floating-point arithmetic, or vanish next to them.
MAX_VALUE = 1e12
MIN_VALUE = 1e-12


class Rule(NamedTuple):
    """A test of a parameter, and what it expects, for the error message."""

    accepts: Callable[[Any], bool]
    wanted: str


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(abs(value) <= MAX_VALUE)


COUNT = Rule(_is_count, "an integer of at least 1")
COUNT_OR_AUTO = Rule(lambda v: _is_count(v) or (isinstance(v, str) and v == "auto"), "a positive integer or 'auto'")
PATH_OR_NONE = Rule(lambda v: v is None or isinstance(v, str | os.PathLike), "the name of a file, or None")
POSITIVE = Rule(lambda v: _is_number(v) and v >= MIN_VALUE, f"a positive number, from {MIN_VALUE:g} to {MAX_VALUE:g}")
NOT_NEGATIVE = Rule(lambda v: _is_number(v) and v >= 0, f"a number from 0 to {MAX_VALUE:g}")
FROM_0_TO_1 = Rule(lambda v: _is_number(v) and 0 <= v <= 1, "a number from 0 to 1")
SHARE = Rule(lambda v: _is_number(v) and 0 < v <= 1, "a number above 0, and at most 1")
BOOLEAN = Rule(lambda v: isinstance(v, bool | np.bool_), "True or False")
CALLABLE_OR_NONE = Rule(lambda v: v is None or callable(v), "a callable or None")
VERBOSITY = Rule(lambda v: isinstance(v, int | np.integer) and bool(v >= 0), "an integer of at least 0")


def one_of(*words: str) -> Rule:
    """Rule for a parameter that is one of some words.

    Examples
    --------
    >>> one_of("svd", "random").accepts("svd")
    True
    """
    return Rule(lambda v: isinstance(v, str) and v in words, " or ".join(map(repr, words)))


def check_parameters(estimator: Any, rules: dict[str, Rule]) -> None:
    """Raise a ValueError for the first parameter of `estimator` that breaks its rule.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_parameters(SimpleNamespace(beta=-1.0), {"beta": POSITIVE})
    Traceback (most recent call last):
        ...
    ValueError: beta must be a positive number, from 1e-12 to 1e+12, got -1.0
    """
    for name, rule in rules.items():
        value = getattr(estimator, name)
        if not rule.accepts(value):
            raise ValueError(f"{name} must be {rule.wanted}, got {value!r}")
