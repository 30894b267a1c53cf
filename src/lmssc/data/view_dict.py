"""Views that know the names of their samples and how they were made."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class ViewDict(dict):
    """Views by name, which remember where they come from: a classifier that is fitted to them does, too.

    Parameters
    ----------
    views : mapping of str to array
        The views.
    ids : sequence of str, optional
        Names of the samples.
    recipes : mapping of str to dict, optional
        For each view, how to make it from new data.
    columns : mapping of str to list of str, optional
        Names of the columns of some views, for messages.

    Examples
    --------
    >>> views = ViewDict({"a": np.eye(2)}, ids=["p", "q"])
    >>> list(views), views.ids
    (['a'], array(['p', 'q'], dtype=object))
    """

    def __init__(
        self,
        views: Mapping[str, Any],
        *,
        ids: Sequence[str] | None = None,
        recipes: Mapping[str, dict[str, Any]] | None = None,
        columns: Mapping[str, list[str]] | None = None,
    ) -> None:
        super().__init__(views)
        self.ids = None if ids is None else np.array(list(ids), dtype=object)
        self.recipes = recipes
        self.columns = {} if columns is None else dict(columns)
