"""Input after `fit`: the views of other samples, which must match those of `fit`."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from lmssc.data.column_names import name_columns
from lmssc.data.dataset import frame_columns_by_view
from lmssc.data.imputation import fill_gaps
from lmssc.data.layout import Layout
from lmssc.data.link_reading import split_graphs
from lmssc.data.missing_views import make_raw_views
from lmssc.data.validation import Masks, check_rows, is_view_collection, read_block, read_known
from lmssc.data.view import RawView
from lmssc.data.warn_caller import warn_caller
from lmssc.estimators.origin import OriginMixin
from lmssc.numerics.matrices import Matrix


class NewInputMixin(OriginMixin):
    """Reads views as `fit` read its own, and fills single missing values as it did."""

    graph_names_: list[str]
    _layout: Layout
    _fills: dict[str, NDArray]

    def _read_views(self, X: Any, *, present: Masks) -> list[RawView]:
        """Views given after `fit`, with single missing values filled in; in the order of the user."""
        return self._fill(self._read_unfilled(X, present=present))

    def _fill(self, raws: list[RawView]) -> list[RawView]:
        """The views with single missing values filled in as in `fit`."""
        return [fill_gaps(raw, self._fills[raw.name])[0] for raw in raws] if self._fills else raws

    def _read_unfilled(self, X: Any, *, present: Masks) -> list[RawView]:
        """Views given after `fit`, which must match those of `fit`; in the order of the user."""
        X, present = self._from_frame(X, present)
        check_rows(X, present=present)
        if is_view_collection(X):
            features, graphs = split_graphs(X)
            unknown = [name for name in graphs if name not in self.graph_names_]
            if unknown:
                raise ValueError(f"X has the graphs {unknown}, but the model was fitted with {self.graph_names_}")
            for name in features if isinstance(X, Mapping) else []:
                if name in self.graph_names_:
                    raise ValueError(f"{name!r} was a graph in fit, but is a matrix of features here; pass lmssc.Graph")
            blocks = self._read_known(features if graphs or isinstance(X, Mapping) else X)
            self._match_columns(features)
        else:
            block = read_block(X, "X")
            validate_data(self, X=X if hasattr(X, "shape") else block, reset=False, skip_check_array=True)
            blocks = self._layout.split(block)
        return make_raw_views(blocks, present, gaps=bool(self._fills))

    def _read_known(self, X: Any) -> dict[str, Matrix]:
        """Views of a collection in the order of `fit`; a warning names those that are missing."""
        blocks, absent = read_known(X, self._layout.names, self._layout.widths)
        if absent:
            there = [name for name in blocks if name not in absent]
            warn_caller(
                f"X does not have the view{'s' * (len(absent) > 1)} {', '.join(map(repr, absent))}: missing for all "
                f"samples, so the predictions come from {', '.join(map(repr, there))} alone",
            )
        return blocks

    def _match_columns(self, X: Any) -> None:
        """Data frames must have the columns of `fit`, in the same order."""
        for name, columns in frame_columns_by_view(X).items():
            fitted = getattr(self, "_view_columns", {}).get(name, columns)
            one_hot = len(set(fitted)) < len(fitted)  # several features of one column of a file
            if columns != fitted and not one_hot:
                raise ValueError(f"view {name!r} {_how_columns_differ(columns, fitted)}")


def _how_columns_differ(columns: Sequence[str], fitted: Sequence[str]) -> str:
    """What is wrong with columns that are not those of fit, for a message.

    Examples
    --------
    >>> _how_columns_differ(["b", "a"], ["a", "b"])
    "has the columns of fit in another order: the first is 'b', but fit had 'a' there. Put them in the order of fit"
    >>> _how_columns_differ(["age", "size"], ["mass", "age"])
    "does not have the columns of fit: it lacks column 'mass', and fit did not have column 'size'"
    """
    here, there = set(columns), set(fitted)
    lacking = [i for i, column in enumerate(fitted) if column not in here]
    new = [i for i, column in enumerate(columns) if column not in there]
    if not lacking and not new:
        place = next(i for i, pair in enumerate(zip(columns, fitted, strict=True)) if pair[0] != pair[1])
        which = f"column {place} (counted from 0)" if place else "the first"
        return (
            f"has the columns of fit in another order: {which} is {columns[place]!r}, but fit had {fitted[place]!r} "
            "there. Put them in the order of fit"
        )
    parts = [f"it lacks {name_columns(lacking, fitted)}"] if lacking else []
    parts += [f"fit did not have {name_columns(new, columns)}"] if new else []
    return f"does not have the columns of fit: {', and '.join(parts)}"
