"""Data frames from `transform`, if scikit-learn is asked for them by `set_output`."""

from functools import wraps
from typing import Any, TypeVar

from lmssc.data.row_index import common_index, index_of
from lmssc.data.validation import Masks, is_view_collection, name_parts

Class = TypeVar("Class", bound=type)


def keep_index(cls: Class) -> Class:
    """Class decorator: data frames that `transform` returns get the index of the views, if they have one.

    scikit-learn copies the index of a single data frame, but not of several in a list or dict.
    """
    plain = cls.transform  # type: ignore[attr-defined]

    @wraps(plain)
    def transform(self: Any, X: Any, present: Masks = None) -> Any:
        result = plain(self, X, present)
        if is_view_collection(X) and index_of(result) is not None:
            index = common_index(name_parts(X).values())
            if index is not None:
                result.index = index
        return result

    cls.transform = transform  # type: ignore[attr-defined]
    return cls
