"""One view: as the user gave it, scaled in memory, or scaled batch by batch from disk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.memmap import MIN_MAPPED_BYTES, MappedRows, memory_map, slices, stored_bytes
from lmssc.data.shared_files import map_rows, readers_of
from lmssc.numerics.matrices import Matrix, times_columns, transpose_times_columns

# Columns of a sparse or centred view that are made dense at a time.
STRIP = 100


@dataclass(frozen=True)
class RawView:
    """One view as the user gave it, validated but not scaled.

    Attributes
    ----------
    name : str
        Name of the view.
    data : ndarray or csr_array of shape (n, d)
        Values. Rows of samples that lack the view are undefined.
    present : ndarray of bool of shape (n,), or None
        Which samples have the view; None if all do.
    keys : ndarray of uint64 of shape (n,), or None
        Hashes of the rows, if they are known.
    """

    name: str
    data: Matrix
    present: NDArray | None
    keys: NDArray | None = None

    def map(self, rows: NDArray) -> "RawView":
        """`take`, but large memory maps stay on disk."""
        if isinstance(self.data, MappedRows):
            return self._with(self.data.take(rows), rows)
        is_large = memory_map(self.data) is not None and stored_bytes(self.data) >= MIN_MAPPED_BYTES
        if is_large or readers_of(self.data) is not None:
            return self._with(MappedRows(self.data, rows), rows)
        return self.take(rows)

    def take(self, rows: NDArray | slice) -> "RawView":
        """The view of some of the samples, in the order of `rows`."""
        return self._with(self.data[rows], rows)

    def _with(self, data: Matrix, rows: NDArray | slice) -> "RawView":
        present, keys = (None if part is None else part[rows] for part in (self.present, self.keys))
        return RawView(self.name, data, present, keys)


@dataclass(frozen=True)
class View:
    """One scaled view: X = data − present·offsetᵀ, zero where a sample lacks the view.

    Attributes
    ----------
    data : ndarray or csr_array of shape (n, d)
        Zero in the rows of samples that lack the view.
    offset : ndarray of shape (d,), or None
        What is subtracted from each present row, so that a sparse view can be centred and stay sparse.
    present : ndarray of bool of shape (n,), or None
        Which samples have the view; None if all do.
    """

    data: Matrix
    offset: NDArray | None = None
    present: NDArray | None = None

    def astype(self, dtype: np.dtype) -> "View":
        """The view in another precision."""
        offset = None if self.offset is None else self.offset.astype(dtype)
        return View(self.data.astype(dtype, copy=False), offset, self.present)

    def blocks(self) -> Iterator[tuple[NDArray, "View"]]:
        """Some rows at a time: their numbers, and the view of them. Rows on disk come in the order of the file."""
        n_rows = self.data.shape[0]
        for rows in slices(n_rows, stored_bytes(self.data) / max(n_rows, 1)):
            present = None if self.present is None else self.present[rows]
            yield np.arange(rows.start, rows.stop), View(self.data[rows], self.offset, present)

    def keep_present(self, rows: NDArray) -> NDArray:
        """`rows` with zeros for the samples that lack the view."""
        return rows if self.present is None else rows * self.present[:, None].astype(rows.dtype)

    def transpose_dot(self, latent: NDArray) -> NDArray:
        """XᵀH, of shape (d, r)."""
        product = transpose_times_columns(self.data, latent)
        if self.offset is not None:
            product -= np.outer(self.offset, self.keep_present(latent).sum(axis=0))
        return product

    def dot(self, loadings: NDArray) -> NDArray:
        """X·W, of shape (n, r)."""
        product = times_columns(self.data, loadings)
        if self.offset is not None:
            product -= self.keep_present(np.broadcast_to(self.offset @ loadings, product.shape))
        return product

    def columns(self) -> Iterator[tuple[slice, NDArray]]:
        """The columns of X as dense arrays: all at once if they are stored so, else some at a time."""
        n_columns = self.data.shape[1]
        if isinstance(self.data, np.ndarray) and self.offset is None:
            yield slice(0, n_columns), self.data
            return
        for first in range(0, n_columns, STRIP):
            strip = slice(first, min(first + STRIP, n_columns))
            yield strip, self.dot(np.eye(n_columns, dtype=self.data.dtype)[:, strip])

    def points(self) -> Matrix:
        """Rows with the same distances as those of X; sparse if the view is, and therefore not centred."""
        if self.offset is None or self.present is None:
            return self.data
        # A sample that lacks the view is a row of zeros in X, so one of the offset here.
        missing = sparse.csr_array((~self.present).astype(self.data.dtype)[:, None])
        result = (self.data + missing @ sparse.csr_array(self.offset[None])).tocsr()
        result.sum_duplicates()  # which sorts
        return result

    def sample_gram(self) -> NDArray:
        """X·Xᵀ, in float64."""
        data = self.data.astype(np.float64, copy=False)
        product = data @ data.T
        if sparse.issparse(product):
            product = product.toarray()
        if self.offset is not None:
            offset = self.offset.astype(np.float64, copy=False)
            present = self.keep_present(np.ones((len(product), 1)))
            shift = (data @ offset)[:, None] - present * (offset @ offset / 2)
            product -= shift @ present.T
            product -= present @ shift.T
        return product

    def row_energies(self) -> NDArray:
        """Squared norm of each row of X, in float64."""
        if sparse.issparse(self.data):
            squares = np.asarray(self.data.astype(np.float64).power(2).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", self.data, self.data, dtype=np.float64)
        if self.offset is None:
            return squares
        shift = float(self.offset @ self.offset) - 2 * (self.data @ self.offset)
        return squares + self.keep_present(shift[:, None])[:, 0]

    def squared_norm(self) -> float:
        """‖X‖²."""
        values = self.data.data if sparse.issparse(self.data) else self.data
        energy = float(np.vdot(values, values))
        if self.offset is None:
            return energy
        count = self.data.shape[0] if self.present is None else int(self.present.sum())
        totals = np.asarray(self.data.sum(axis=0)).ravel()
        return energy + float(count * (self.offset @ self.offset) - 2 * (self.offset @ totals))


@dataclass(frozen=True)
class MappedView(View):
    """One view on disk: each batch of rows is read, scaled and multiplied.

    Attributes
    ----------
    data : MappedRows
        The numbers, not scaled.
    scale : callable
        Makes a `View` of a block of them.

    Examples
    --------
    >>> import tempfile
    >>> array = np.memmap(tempfile.NamedTemporaryFile(), np.float64, "w+", shape=(2, 2))
    >>> array[:] = [[1, 2], [3, 4]]
    >>> view = MappedView(MappedRows(array, np.array([1, 0])), scale=lambda raw: View(raw.data / 2))
    >>> view.dot(np.eye(2))
    array([[1.5, 2. ],
           [0.5, 1. ]])
    """

    scale: Callable[[RawView], View] = field(kw_only=True)

    def blocks(self) -> Iterator[tuple[NDArray, View]]:
        """Some rows at a time, read and scaled."""
        for rows, block in self.data.blocks():
            yield rows, self.scale(RawView("", block, None if self.present is None else self.present[rows]))

    def transpose_dot(self, latent: NDArray) -> NDArray:
        """XᵀH, of shape (d, r)."""
        total = np.zeros((self.data.shape[1], latent.shape[1]), dtype=np.result_type(self.data.dtype, latent.dtype))
        for rows, block in self.blocks():
            total += block.transpose_dot(latent[rows])
        return total

    def dot(self, loadings: NDArray) -> NDArray:
        """X·W, of shape (n, r)."""
        product = np.empty((len(self.data), loadings.shape[1]), dtype=np.result_type(self.data.dtype, loadings.dtype))
        for rows, block in self.blocks():
            product[rows] = block.dot(loadings)
        return product

    def squared_norm(self) -> float:
        """‖X‖²."""
        if self.present is not None:
            return sum(block.squared_norm() for _, block in self.blocks())
        return sum(norm for _, norm in map_rows(partial(_squared_norm, self.scale), self.data))


def _squared_norm(scale: Callable[[RawView], View], block: Matrix) -> float:
    return scale(RawView("", block, None)).squared_norm()
