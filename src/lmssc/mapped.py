"""Views that stay on disk: rows of a memory map are read, scaled and multiplied block by block."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

# A view of fewer bytes than this is read at once.
FEWEST_BYTES = 1 << 26
# Bytes of rows that are in memory at a time.
BLOCK_BYTES = 1 << 25


@dataclass(frozen=True)
class MappedRows:
    """Rows of a memory map in an order of their own, each minus `mean`, times `scale`; nothing of it is kept.

    Attributes
    ----------
    array : memmap of shape (m, d)
        The numbers.
    rows : ndarray of int of shape (n,)
        Which rows, in which order. They are read in the order of the file.
    mean, scale : ndarray of shape (d,), or None
        What is subtracted from each row, and what it is then multiplied by.

    Examples
    --------
    >>> import tempfile
    >>> array = np.memmap(tempfile.NamedTemporaryFile(), np.float64, "w+", shape=(3, 2))
    >>> array[:] = [[1, 2], [3, 4], [5, 6]]
    >>> rows = MappedRows(array, np.array([2, 0]), mean=np.array([1.0, 2.0]))
    >>> rows @ np.eye(2)
    array([[4., 4.],
           [0., 0.]])
    >>> rows.transpose_dot(np.array([[1.0], [1.0]])).ravel()
    array([4., 4.])
    """

    array: np.memmap
    rows: NDArray
    mean: NDArray | None = None
    scale: NDArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), self.array.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """As in the file."""
        return self.array.dtype

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: slice | NDArray) -> NDArray:
        return self._scaled(np.asarray(self.array[self.rows[index]]))

    def blocks(self) -> Iterator[tuple[NDArray, NDArray]]:
        """Row numbers, as they come in the file, and the rows."""
        order = np.argsort(self.rows, kind="stable")
        size = max(1, BLOCK_BYTES // (self.array.shape[1] * self.dtype.itemsize))
        for first in range(0, len(order), size):
            part = order[first : first + size]
            yield part, self[part]

    def _scaled(self, block: NDArray) -> NDArray:
        if self.mean is not None:
            block = block - self.mean
        if self.scale is not None:
            block = block * self.scale
        return block

    def scaled(self, mean: NDArray | None, scale: NDArray | None) -> "MappedRows":
        """The same rows, scaled."""
        return replace(self, mean=mean, scale=scale)

    def __matmul__(self, columns: NDArray) -> NDArray:
        result = np.empty((len(self), columns.shape[1]), dtype=np.result_type(self.dtype, columns.dtype))
        for rows, block in self.blocks():
            result[rows] = block @ columns
        return result

    def transpose_dot(self, latent: NDArray) -> NDArray:
        """XᵀH."""
        result = np.zeros((self.shape[1], latent.shape[1]), dtype=np.result_type(self.dtype, latent.dtype))
        for rows, block in self.blocks():
            result += block.T @ latent[rows]
        return result

    def squared_norm(self) -> float:
        """‖X‖²."""
        return sum(float(np.vdot(block, block)) for _, block in self.blocks())

    def moments(self) -> tuple[NDArray, NDArray]:
        """Mean and variance of each column, in float64."""
        mean = sum(block.sum(axis=0, dtype=np.float64) for _, block in self.blocks()) / len(self)
        squares = sum(((block - mean) ** 2).sum(axis=0) for _, block in self.blocks())
        return mean, squares / len(self)
