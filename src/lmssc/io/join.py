"""Align the rows of views: by id where files have ids, else by position."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.graph_view import Graph
from lmssc.io.errors import InputFileError
from lmssc.io.file_views import FileView
from lmssc.io.place_rows import place_rows
from lmssc.io.table import some
from lmssc.io.transposed import suggest_transpose

LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
WHOLE = re.compile(r"^(\d+)\.0+$")


@dataclass(frozen=True)
class Joined:
    """Views with the same samples in the same rows.

    Attributes
    ----------
    ids : ndarray of str
        Ids of the samples; "1", "2", ... if the files have no ids.
    id_columns : list of str
        Names of the id columns; empty without ids.
    one_order : bool
        Whether all files have the same samples in the same order, so that a file without ids can be joined to them.
    views : dict of str to ndarray, CSR array or Graph
        A sample that lacks a dense view has a row of NaN.
    present : dict of str to ndarray of bool
        Which samples have which view.
    left_out : ndarray of str
        Ids of the samples of containers that have none of the views.
    columns : dict of str to list of str
        Names of the columns of the views that have some.
    """

    ids: NDArray
    id_columns: list[str]
    one_order: bool
    views: dict[str, Any]
    present: dict[str, NDArray]
    left_out: NDArray = field(default_factory=lambda: np.empty(0, dtype=object))
    columns: dict[str, list[str]] = field(default_factory=dict)

    @property
    def by_id(self) -> bool:
        """Whether the files have ids."""
        return bool(self.id_columns)

    @property
    def id_column(self) -> str | None:
        """Name of the id column in the first file that has one."""
        return next(iter(self.id_columns), None)

    @property
    def sparse_masks(self) -> dict[str, NDArray] | None:
        """Masks of sparse views that some samples lack, the `present` of `fit`; None if there are none."""
        masks = {
            name: mask for name, mask in self.present.items() if sparse.issparse(self.views[name]) and not mask.all()
        }
        return masks or None


def join(views: Sequence[FileView]) -> Joined:
    """Align the rows of views.

    The samples are those of all files, in the order of the first file, then of the next.

    Parameters
    ----------
    views : sequence of FileView
        Views of single files.

    Returns
    -------
    Joined

    Raises
    ------
    InputFileError
        If files without ids differ in their number of rows, if ids do not match, or if a sample has no view at all.

    Examples
    --------
    >>> from lmssc.io.table import Rows
    >>> def view(name, ids):
    ...     count, ids = len(ids), np.array(ids, dtype=object)
    ...     return FileView(name, np.eye(count, 1, -1), np.ones(count, bool), Rows(name, count), ids, "id", {})
    >>> joined = join([view("a", ["p", "q"]), view("b", ["r", "p"])])
    >>> joined.ids, joined.views["b"].ravel()
    (array(['p', 'q', 'r'], dtype=object), array([ 1., nan,  0.]))
    """
    with_ids = [view for view in views if view.ids is not None]
    without = [view for view in views if view.ids is None]
    if not with_ids:
        _check_heights(views)
        count = views[0].rows.count
        ids = np.array([str(number) for number in range(1, count + 1)], dtype=object)
        return _joined(views, ids, [np.arange(count)] * len(views), one_order=True)
    first = with_ids[0]
    one_order = all(np.array_equal(view.ids, first.ids) for view in with_ids)  # type: ignore[arg-type]
    if without and not one_order:
        raise InputFileError(
            f"{without[0].rows.path} has no ids, and {some(view.rows.path for view in with_ids)} are not in the same "
            "order, so its rows cannot be assigned to samples; add a column of ids"
        )
    if one_order:
        _check_heights([first, *without])
        places = [np.arange(first.rows.count)] * len(views)
        return _joined(views, np.asarray(first.ids), places, one_order=True)
    numbers: dict[str, int] = {}
    for view in with_ids:
        known = bool(numbers)
        before = len(numbers)
        for value in view.ids:  # type: ignore[union-attr]
            numbers.setdefault(value, len(numbers))
        if known and len(numbers) - before == view.rows.count:
            example, other = view.ids[0], first.ids[0]  # type: ignore[index]
            raise InputFileError(
                f"{view.rows.path} has no id in common with {first.rows.path}: its first id is {example!r}, that of "
                f"the other {other!r}; ids must be written in the same way{_advice(view, first)}"
            )
    if any(view.rows.count < len(numbers) for view in with_ids):
        _check_spelling(with_ids)
    ids = np.array(list(numbers), dtype=object)
    places = [np.array([numbers[value] for value in view.ids]) for view in with_ids]  # type: ignore[union-attr]
    return _joined(with_ids, ids, places, one_order=False)


def _check_spelling(views: Sequence[FileView]) -> None:
    """Refuse ids that two files write differently, such as "007" and "7", which would become two samples.

    Spellings that differ in one and the same file are different ids there, and so everywhere.
    """
    written: dict[str, tuple[str, FileView]] = {}
    twins: dict[str, tuple[str, FileView, str, FileView]] = {}
    for view in views:
        here: dict[str, str] = {}
        for value in view.ids:  # type: ignore[union-attr]
            key = _plain_id(value)
            if here.setdefault(key, value) != value:
                return
            other, owner = written.setdefault(key, (value, view))
            if other != value:
                twins.setdefault(key, (other, owner, value, view))
    if twins:
        other, owner, value, view = next(iter(twins.values()))
        raise InputFileError(
            f"{owner.rows.path} has the id {other!r}, {view.rows.path} {value!r} ({len(twins)} such ids in all): they "
            "seem to be the same sample; write ids in the same way in all files"
        )


def _plain_id(value: str) -> str:
    """An id without what people write differently: case, leading zeros, ".0", forms of accents."""
    plain = unicodedata.normalize("NFC", value).casefold()
    return LEADING_ZEROS.sub("", WHOLE.sub(r"\1", plain))


def _advice(view: FileView, first: FileView) -> str:
    """Advice if the columns of one of two files are the samples of the other."""
    for one, two in ((view, first), (first, view)):
        ids = () if two.ids is None else two.ids
        if advice := suggest_transpose(one.name, one.recipe["columns"] or (), ids):
            return advice
    return ""


def _check_heights(views: Sequence[FileView]) -> None:
    first = views[0]
    for view in views[1:]:
        if view.rows.count != first.rows.count:
            hint = ""
            if view.data.shape[1] == first.rows.count:
                hint = f" It has {first.rows.count} columns; if those are the samples: --transpose {view.name}."
            elif first.data.shape[1] == view.rows.count:
                hint = f" The first has {view.rows.count} columns; if those are the samples: --transpose {first.name}."
            raise InputFileError(
                f"{view.rows.path} (view {view.name!r}) has {view.rows.count} rows, but {first.rows.path} (view "
                f"{first.name!r}) has {first.rows.count}: rows are joined by position where a file has no column of "
                f"ids.{hint}"
            )


def _joined(views: Sequence[FileView], ids: NDArray, places: Sequence[NDArray], *, one_order: bool) -> Joined:
    """Align views; `places` has, for each view, the sample number of each row."""
    blocks, masks = {}, {}
    for view, place in zip(views, places, strict=True):
        present = np.zeros(len(ids), dtype=bool)
        present[place] = view.present
        data = place_rows(view.data, place, len(ids))
        # The columns of links are samples, too.
        blocks[view.name] = place_rows(data.T.tocsr(), place, len(ids)).T.tocsr() if view.links else data
        masks[view.name] = present
    nowhere = np.flatnonzero(~np.any(list(masks.values()), axis=0))
    left_out = ids[nowhere] if all(view.skippable for view in views) and len(nowhere) < len(ids) else ids[:0]
    if len(left_out):
        kept = np.setdiff1d(np.arange(len(ids)), nowhere)
        links = {view.name for view in views if view.links}
        blocks = {name: data[kept][:, kept] if name in links else data[kept] for name, data in blocks.items()}
        ids, masks = ids[kept], {name: mask[kept] for name, mask in masks.items()}
    elif len(nowhere):
        where = next(
            view.rows.place(int(np.flatnonzero(place == nowhere[0])[0]))
            for view, place in zip(views, places, strict=True)
            if (place == nowhere[0]).any()
        )
        raise InputFileError(
            f"{where}: the sample {ids[nowhere[0]]!r} has no data (in every view its row is blank, or its text has no "
            f"known word); remove it{f', and {len(nowhere) - 1} more' if len(nowhere) > 1 else ''}"
        )
    columns = [view.id_column for view in views if view.id_column is not None]
    made = {view.name: Graph(blocks[view.name]) if view.links else blocks[view.name] for view in views}
    names = {view.name: list(view.columns) for view in views if view.columns is not None}
    return Joined(ids, list(dict.fromkeys(columns)), one_order, made, masks, left_out, names)
