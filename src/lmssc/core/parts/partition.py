"""How samples are divided into parts, and how their scaled rows get there.

The order of a large fit splits the samples in half along their first principal direction, and each half again
(`spatial_order`). Parts are the first of these halves. So the order does not depend on the number of parts, most
neighbours of a sample are in its own part, and the blocks of the two-level preconditioner are within parts.
"""

import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.parts.executor import Executor, Part
from lmssc.data.memmap import MappedRows, file_of, open_file, release, slices, stored_bytes
from lmssc.data.shared_files import NewFile, read_together
from lmssc.data.view import MappedView, RawView, View
from lmssc.data.views import Views
from lmssc.numerics.matrices import Matrix


def part_bounds(n_samples: int, n_parts: int) -> NDArray:
    """First sample of each part, and the number of samples; `n_parts` is a power of two.

    Examples
    --------
    >>> part_bounds(10, 4)
    array([ 0,  2,  5,  7, 10])
    """
    if n_parts > n_samples or n_parts & (n_parts - 1):
        raise ValueError(f"n_parts={n_parts} must be a power of two, and at most the number of samples, {n_samples}")
    bounds = [0, n_samples]
    while len(bounds) <= n_parts:
        middles = [(first + end) // 2 for first, end in pairwise(bounds)]
        bounds = sorted({*bounds, *middles})
    return np.array(bounds)


def dot_on_disk(views: Views, loadings: Sequence[NDArray]) -> NDArray | MappedRows:
    """Σ X^v·W^v in a temporary file, which is deleted with the array; rows are in memory some at a time.

    They are written in the order in which the first view on disk is read. Written where they belong, each batch would
    touch pages all over the file, and ten times the samples would be a hundred times the pages.

    Examples
    --------
    >>> dot_on_disk(Views.from_arrays([np.array([[1.0], [2.0]])]), [np.array([[3.0]])])
    memmap([[3.],
            [6.]])
    """
    dtype = np.result_type(views.dtype, loadings[0].dtype)
    with tempfile.TemporaryFile() as file:
        product = np.memmap(file, dtype, "w+", 0, (views.n_samples, loadings[0].shape[1]))
    lead = next((v for v, view in enumerate(views) if isinstance(view, MappedView)), 0)
    places, first = np.empty(views.n_samples, dtype=np.intp), 0
    for rows, block in views[lead].blocks():
        end = first + len(rows)
        blocks = (block if v == lead else take_view(view, rows) for v, view in enumerate(views))
        product[first:end] = reduce(np.add, map(View.dot, blocks, loadings))
        places[rows] = np.arange(first, end)
        release(product)
        first = end
    return MappedRows(product, places) if isinstance(views[lead], MappedView) else product


def start_positions(views: Views, loadings: Sequence[NDArray]) -> NDArray | MappedRows:
    """Σ X^v·W^v of all samples in a file; written by the workers of a cluster if these read the views."""
    data = [view.data for view in views]
    readers = read_together(data) if views.is_read_together else None
    if readers is None:
        return dot_on_disk(views, loadings)
    n_rows, scales = data[0].array.shape[0], [view.scale for view in views]  # type: ignore[attr-defined]
    product = NewFile(readers.folder, (n_rows, loadings[0].shape[1]), np.result_type(views.dtype, loadings[0].dtype))
    row_bytes = sum(map(stored_bytes, data)) / max(len(data[0]), 1)
    files = [file_of(one.array) for one in data]
    tasks = [(scales, list(loadings), files, product, rows) for rows in slices(n_rows, row_bytes)]
    deque(readers.run(_write_product, tasks), maxlen=0)
    return MappedRows(product.open(), data[0].rows)


def _write_product(
    scales: Sequence[Callable[[RawView], View]],
    loadings: Sequence[NDArray],
    files: Sequence[Any],
    product: NewFile,
    rows: slice,
) -> None:
    arrays = list(map(open_file, files))
    views = Views([scale(RawView("", array[rows], None)) for scale, array in zip(scales, arrays, strict=True)])
    product.write(rows.start, views.dot(loadings))
    for array in arrays:
        release(array)


def scatter(executor: Executor, views: Views, order: NDArray) -> None:
    """Give each part the scaled rows of its samples, as "view0", "view1" …, and what is subtracted from sparse ones.

    Parameters
    ----------
    executor : Executor
        The parts.
    views : Views
        All samples in canonical order; complete.
    order : ndarray of int of shape (n,)
        Canonical number of each sample of the fit.
    """
    ends = list(pairwise(executor.bounds))
    if views.is_read_together and read_together([view.data for view in views]) is not None:
        some = [[_take_mapped(view, order[first:end]) for view in views] for first, end in ends]
        executor.map(_read_views, each=some)
        return
    for number, (first, end) in enumerate(ends):
        rows = order[first:end]
        for v, view in enumerate(views):
            taken = take_view(view, rows)
            nothing: list[tuple[Matrix, NDArray | None] | None] = [None] * (len(executor.bounds) - 1)
            nothing[number] = (taken.data, taken.offset)
            executor.map(_put_view, v, each=nothing)


def _read_views(part: Part, views: Sequence[MappedView]) -> None:
    """Read the rows of a part where it is."""
    for v, view in enumerate(views):
        taken = _read_view(view)
        _put_view(part, v, (taken.data, taken.offset))


def _put_view(part: Part, v: int, given: tuple[Matrix, NDArray | None] | None) -> None:
    if given is not None:
        part[f"view{v}"] = given[0]
        if given[1] is not None:
            part[f"offset{v}"] = given[1]


def take_view(view: View, rows: NDArray) -> View:
    """Some rows of a scaled view, read if they are on disk."""
    return _read_view(_take_mapped(view, rows)) if isinstance(view, MappedView) else View(view.data[rows], view.offset)


def _take_mapped(view: View, rows: NDArray) -> MappedView:
    return MappedView(view.data.take(rows), scale=view.scale)  # type: ignore[attr-defined]


def _read_view(view: MappedView) -> View:
    """All rows of a view on disk, scaled."""
    offset, places, blocks = None, [], []
    dense: NDArray | None = None
    for numbers, block in view.blocks():
        offset = block.offset
        if sparse.issparse(block.data):
            places.append(numbers)
            blocks.append(block.data)
        else:
            if dense is None:
                dense = np.empty(view.data.shape, dtype=block.data.dtype)
            dense[numbers] = block.data
    if dense is not None:
        return View(dense, offset)
    stacked = sparse.vstack(blocks, format="csr")
    return View(sparse.csr_array(stacked[np.argsort(np.concatenate(places))]), offset)


def views_of(part: Part) -> Views:
    """The scaled views of a part."""
    views: list[View] = []
    while f"view{len(views)}" in part:
        v = len(views)
        views.append(View(part[f"view{v}"], part.get(f"offset{v}")))
    return Views(views)
