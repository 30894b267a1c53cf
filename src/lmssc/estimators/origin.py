"""Where the samples of a fit come from: their names, and how columns of a frame become views."""

from typing import Any

import numpy as np

from lmssc.data.frames import is_frame
from lmssc.data.validation import Masks
from lmssc.data.view_dict import ViewDict


class OriginMixin:
    """A classifier that remembers what a `ViewDict` says of its views."""

    def _set_origin(self, X: Any) -> None:
        """Store the names of the samples (`ids_`) and the recipes of the views (`files_`), if X has them."""
        clfs: list[Any] = [self, getattr(self, "best_estimator_", self)]
        for clf in clfs:
            for name in ("ids_", "files_"):
                vars(clf).pop(name, None)
            if isinstance(X, ViewDict) and X.ids is not None:
                clf.ids_ = np.array([str(name) for name in X.ids])
            if isinstance(X, ViewDict) and X.recipes is not None:
                clf.files_ = {"views": dict(X.recipes)}

    def _from_frame(self, X: Any, present: Masks) -> tuple[Any, Masks]:
        """Make the views of a frame that has the columns of the one that the views of `fit` were made of."""
        if not (is_frame(X) and getattr(self, "files_", {}).get("views")):
            return X, present
        if present is not None:
            raise ValueError(
                "present cannot be combined with a data frame, whose blank cells say which views a sample lacks"
            )
        from lmssc.io.frame_views import match_frame

        return match_frame(X, self)
