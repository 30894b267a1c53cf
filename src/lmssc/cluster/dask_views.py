"""Views that are dask arrays: written to files by the workers for a fit, answered block by block for predictions."""

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc._optional import import_optional
from lmssc.data.shared_files import NewFile
from lmssc.data.validation import is_dask, name_parts
from lmssc.persistence.codec import RUNTIME_ATTRIBUTES, RUNTIME_PARAMS


def dask() -> Any:
    """The module `dask`."""
    return import_optional("dask", purpose="dask arrays", extra="dask")


def _whole_rows(array: Any, name: str) -> Any:
    """The array with blocks of whole rows, of known sizes."""
    if not hasattr(array, "chunks"):
        raise TypeError(f"{name} is a dask data frame; pass its to_dask_array(lengths=True)")
    if array.ndim != 2:
        raise ValueError(f"{name}: Expected 2D array, got {array.ndim}D array instead")
    if any(np.isnan(size) for size in array.chunks[0]):
        raise ValueError(f"{name}: the sizes of its blocks are not known; call compute_chunk_sizes() first")
    return array.rechunk({1: -1}) if len(array.chunks[1]) > 1 else array


def spool(X: Any, folder: str) -> Any:
    """The views with memory maps in place of dask arrays; the workers write them to files of a folder that all share.

    Parameters
    ----------
    X : dask array, or list or dict of arrays, some of them dask arrays
        Dense, or with blocks that are sparse.
    folder : str
        An empty folder.

    Returns
    -------
    The same with arrays on disk.
    """
    if is_dask(X):
        return _spool_one(X, "X", Path(folder) / "0")
    parts = {
        name: _spool_one(part, name, Path(folder) / str(number)) if is_dask(part) else part
        for number, (name, part) in enumerate(name_parts(X).items())
    }
    return parts if isinstance(X, Mapping) else list(parts.values())


def _spool_one(array: Any, name: str, folder: Path) -> Any:
    folder.mkdir()
    array = _whole_rows(array, name)
    if sparse.issparse(array._meta):
        return _spool_sparse(array, folder)
    dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    file = NewFile(str(folder), array.shape, dtype)
    starts = np.concatenate([[0], np.cumsum(array.chunks[0])])
    blocks = array.to_delayed()[:, 0]
    write = dask().delayed(_write_rows, pure=False)
    dask().compute(*(write(block, file, int(start)) for block, start in zip(blocks, starts, strict=False)))
    return file.open()


def _write_rows(block: NDArray, file: NewFile, start: int) -> None:
    file.write(start, block)


def _spool_sparse(array: Any, folder: Path) -> sparse.csr_array:
    """A CSR array of memory maps, of blocks that the workers write."""
    write = dask().delayed(_write_csr, pure=False)
    blocks = array.to_delayed()[:, 0]
    counts = dask().compute(*(write(block, str(folder / str(number))) for number, block in enumerate(blocks)))
    nnz, n_rows = sum(int(count[-1]) for count in counts), sum(len(count) - 1 for count in counts)
    parts = {}
    for part in ("data", "indices"):
        example = np.load(folder / f"0.{part}.npy", mmap_mode="r")
        parts[part] = np.lib.format.open_memmap(folder / f"{part}.npy", "w+", example.dtype, (nnz,))
        first = 0
        for number, count in enumerate(counts):
            source = folder / f"{number}.{part}.npy"
            parts[part][first : first + int(count[-1])] = np.load(source, mmap_mode="r")
            first += int(count[-1])
            source.unlink()
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    indptr[1:] = np.cumsum(np.concatenate([np.diff(count) for count in counts]))
    ends = NewFile(str(folder), indptr.shape, np.dtype(np.int32 if nnz < np.iinfo(np.int32).max else np.int64))
    ends.write(0, indptr)
    result = sparse.csr_array((n_rows, array.shape[1]), dtype=parts["data"].dtype)
    result.data, result.indices, result.indptr = parts["data"], parts["indices"], ends.open()
    return result


def _write_csr(block: Any, prefix: str) -> NDArray:
    """Write the entries of a sparse block; where its rows begin."""
    rows = sparse.csr_array(block)
    rows.sum_duplicates()
    dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    np.save(f"{prefix}.data.npy", rows.data.astype(dtype))
    np.save(f"{prefix}.indices.npy", rows.indices.astype(np.int32))
    return rows.indptr


def map_blocks(model: Any, method: str, X: Any, options: Mapping[str, Any]) -> Any:
    """A dask array of what a method of a fitted model says of each block of rows; nothing is computed yet.

    Parameters
    ----------
    model : classifier of lmssc
        Fitted; each worker gets a copy.
    method : str
        "predict", "predict_proba" or "transform".
    X : dask array, or list or dict of dask arrays with the same number of rows
        Samples.
    options : mapping
        Further arguments of the method.

    Returns
    -------
    dask.array.Array
    """
    views = {"X": X} if is_dask(X) else name_parts(X)
    others = [name for name, view in views.items() if not is_dask(view)]
    if others:
        raise TypeError(f"the view {others[0]!r} is not a dask array, but others are: pass all of them as dask arrays")
    views = {name: _whole_rows(view, name) for name, view in views.items()}
    rows = next(iter(views.values())).chunks[0]
    for name, view in views.items():
        if sum(view.chunks[0]) != sum(rows):
            raise ValueError(f"the view {name!r} has {sum(view.chunks[0])} rows, but the first has {sum(rows)}")
    blocks = [view.rechunk({0: rows}).to_delayed()[:, 0] for view in views.values()]
    kind = dict if isinstance(X, Mapping) else list
    shape, dtype = {
        "predict": ((), model.classes_.dtype),
        "predict_proba": ((len(model.classes_),), model.label_distributions_.dtype),
        "transform": ((getattr(model, "n_components_", 0),), getattr(model, "latent_", np.empty(0)).dtype),
    }[method]
    if options.get("present") is not None:
        raise ValueError("present cannot be combined with dask arrays: rows of NaN say which samples lack a view")
    # What belongs to this process alone does not travel.
    light = copy(model)
    vars(light).update({name: None for name in RUNTIME_PARAMS if name in vars(light) and name != "verbose"})
    for name in RUNTIME_ATTRIBUTES:
        vars(light).pop(name, None)
    shared = dask().delayed(light, traverse=False)
    answer = dask().delayed(_answer)
    da = import_optional("dask.array", purpose="dask arrays", extra="dask")
    parts = [
        da.from_delayed(
            answer(shared, method, None if is_dask(X) else kind.__name__, list(views), list(own), dict(options)),
            (n_rows, *shape),
            dtype,
        )
        for n_rows, own in zip(rows, zip(*blocks, strict=True), strict=True)
    ]
    return da.concatenate(parts)


def _answer(model: Any, method: str, kind: str | None, names: list[str], blocks: list[Any], options: Any) -> NDArray:
    """In a worker: what a model says of one block."""
    blocks = [sparse.csr_array(block) if sparse.issparse(block) else np.asarray(block) for block in blocks]
    X = blocks[0] if kind is None else dict(zip(names, blocks, strict=True)) if kind == "dict" else blocks
    return getattr(model, method)(X, **options)
