"""Data frames from `transform`, if scikit-learn is asked for them by `set_output`."""

from functools import wraps
from typing import Any, TypeVar

from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

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


class LatentTransformerMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A transformer whose `transform` takes the views that each sample has, and gives latent positions."""

    def fit_transform(self, X: Any, y: ArrayLike | None = None, present: Masks = None) -> NDArray:
        """Fit, then `transform` the same samples.

        Parameters
        ----------
        X : as in `fit`
            Samples.
        y : array-like of shape (n,)
            Labels, as in `fit`.
        present : as in `fit`, optional
            Which samples have which view.

        Returns
        -------
        ndarray of shape (n, r)
        """
        return self.fit(X, y, present).transform(X, present)
