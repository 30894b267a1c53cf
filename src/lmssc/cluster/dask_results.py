"""Results that stay with the workers of a Dask cluster: dask arrays of files in a folder that all share."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmssc._optional import import_optional
from lmssc.cluster.dask_views import dask
from lmssc.data.file_lock import LockedFolder
from lmssc.data.memmap import FileArray, memory_map, open_file
from lmssc.numerics.batches import gen_batches

# Rows of a block of a result.
BLOCK_ROWS = 1 << 18


class SharedFolder(LockedFolder):
    """A temporary folder, which is deleted with the last array that needs it.

    Parameters
    ----------
    parent : str, optional
        Where to make it; by default where the system has temporary folders.

    Examples
    --------
    >>> SharedFolder().path.rpartition("/")[2].startswith("lmssc-results-")
    True
    """

    def __init__(self, parent: str | None = None) -> None:
        super().__init__("lmssc-results-", parent)

    def keep(self, arrays: Sequence[NDArray]) -> None:
        """Delete all files but those that some memory maps are of."""
        kept = {str(getattr(memory_map(array), "filename", None)) for array in arrays}
        for path in Path(self.path).glob("*.bin"):
            if str(path) not in kept:
                path.unlink()

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (self.path,)  # only the process that made it deletes it


def as_dask_array(
    rows: NDArray, folder: SharedFolder, function: Callable[[NDArray], NDArray] = np.asarray, dtype: Any = None
) -> Any:
    """A dask array of the rows of a file; workers read a block when it is needed.

    Parameters
    ----------
    rows : ndarray of shape (n, …)
        A memory map of a file in the folder.
    folder : SharedFolder
        The folder; it lives as long as the result.
    function : callable
        What a block becomes.
    dtype : dtype
        Type of what `function` returns; by default that of the rows.

    Returns
    -------
    dask.array.Array
    """
    da = import_optional("dask.array", purpose="dask arrays", extra="dask")
    read = dask().delayed(partial(_read_block, function), pure=False)
    file = FileArray.of(rows)
    blocks = [
        da.from_delayed(
            read(file, batch.start, batch.stop, folder),
            (batch.stop - batch.start, *rows.shape[1:]),
            dtype or rows.dtype,
        )
        for batch in gen_batches(len(rows), BLOCK_ROWS)
    ]
    return da.concatenate(blocks)


def _read_block(function: Callable[[NDArray], NDArray], file: FileArray, first: int, end: int, _: object) -> NDArray:
    return function(np.array(open_file(file)[first:end]))
