"""`fit` of the classifiers that can be told how far to trust each label."""

from typing import Any, Self

from numpy.typing import ArrayLike

from lmssc.core.fit_config import FitContext
from lmssc.data.validation import Masks


class WeightedFitMixin:
    """`fit` with `sample_weight`, for `LMSSC` and the search for its parameters."""

    def fit(self, X: Any, y: ArrayLike, present: Masks = None, sample_weight: ArrayLike | None = None) -> Self:
        """Label every sample.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, Σ d_v), or a list or dict of views
            The parameter `views` divides one 2-D X into views. If a sample lacks a view, all its values there are NaN.
            Pass links between the samples as a `lmssc.Graph` in a list or dict.
        y : array-like of shape (n,) or (n, c)
            Labels; −1 (integers), None or NaN (anything else) is unlabelled. Or a distribution over the classes for
            each sample (soft labels); a row of NaN or of zeros is unlabelled. The columns of a data frame are the
            classes, otherwise they are 0, 1, ...
        present : list or dict of boolean arrays, optional
            For each view, which samples have it; None for all. An alternative to rows of NaN, meant for sparse views.
            It may also be an array of shape (n, v) or a data frame with a column for each view, which GridSearchCV
            splits together with the samples if metadata routing is enabled.
        sample_weight : array-like of shape (n,), optional
            Trust in each label: the probability that it is right, from 0 (no label) to 1 or more (certain). A label
            below 1 can be overruled by its neighbours (`overruled_`).

        Returns
        -------
        self
        """
        with self._fitting(), self._on_disk(X) as views:  # type: ignore[attr-defined]
            self._fit(self._validate(views, y, present, sample_weight), FitContext())  # type: ignore[attr-defined]
            self._set_origin(X)  # type: ignore[attr-defined]
        return self
