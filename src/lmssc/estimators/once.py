"""What a fitted model was asked already: the files and the report of `lmssc classify` ask the same twice."""

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Result = TypeVar("Result")

# What an answer depends on: if one of these is another object, the model was fitted or updated since.
_DEPENDS_ON = ("graph_", "label_distributions_", "_targets")
_ANSWERS: WeakKeyDictionary[Any, tuple[list[Any], dict[str, Any]]] = WeakKeyDictionary()


def once(model: Any, name: str, compute: Callable[[], Result]) -> Result:
    """The result of `compute`, or that of the last time for the same fit.

    Examples
    --------
    >>> class Model:
    ...     graph_ = label_distributions_ = _targets = None
    >>> model = Model()
    >>> once(model, "answer", lambda: 1), once(model, "answer", lambda: 2)
    (1, 1)
    >>> model.graph_ = [1]
    >>> once(model, "answer", lambda: 3)
    3
    """
    parts = [getattr(model, part) for part in _DEPENDS_ON]
    kept = _ANSWERS.get(model)
    if kept is None or any(before is not now for before, now in zip(kept[0], parts, strict=True)):
        kept = _ANSWERS[model] = (parts, {})
    if name not in kept[1]:
        kept[1][name] = compute()
    return kept[1][name]
