"""One AnnData, in a file or in memory: names of the cells, columns of obs, and matrices by keys such as "obsm:X_pca".

`PartOfFile` and `PartInMemory` have the same attributes and methods: `names` (obs_names), `columns` (what each column
of obs holds: "text", "number", "truth" or "other"), `shapes` (of each matrix), `column`, `matrix`, and `features`, the
names of the columns of a matrix (var_names), None if they have none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc._optional import import_optional
from lmssc.data.frames import is_frame
from lmssc.io import anndata_legacy as legacy
from lmssc.io.anndata_elements import (
    kind_of,
    kind_of_numbers,
    matrix_shape,
    names_in_order,
    read_index,
    read_matrix,
    read_values,
)
from lmssc.io.errors import InputFileError
from lmssc.io.hdf5 import SafeHDF5
from lmssc.io.table import TEXT, reason
from lmssc.io.unpacking import Unpacked
from lmssc.io.zarr_store import open_zarr
from lmssc.numerics.matrices import Matrix

X, RAW, LAYERS, OBSM, OBSP = "X", "raw", "layers", "obsm", "obsp"


@contextmanager
def open_store(path: str) -> Iterator[tuple[Any, Any]]:
    """Open an HDF5 file or zarr folder for reading.

    Yields
    ------
    store : SafeHDF5 or SafeZarr
    root : group
    """
    try:
        if path.lower().rstrip("/").endswith(".zarr"):
            yield open_zarr(path)
            return
        h5py = import_optional("h5py", purpose="AnnData files", extra="files")
        with h5py.File(path, "r") as content:
            yield SafeHDF5(h5py, content, Unpacked(path)), content
    except (ImportError, InputFileError, MemoryError):
        raise
    except Exception as error:  # h5py and zarr raise all kinds of errors on damaged files
        raise InputFileError(f"{path} is not a complete AnnData or MuData file: {reason(error)}") from error


@dataclass(frozen=True)
class PartOfFile:
    """One AnnData of a file: the file itself, or a modality of MuData; nothing is kept open."""

    path: str
    modality: str | None = None

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        with open_store(self.path) as (store, root):
            if self.modality is not None:
                root = store.item(store.item(root, "mod"), self.modality)
            if not store.is_group(root) or not store.has(root, "obs"):
                where = self.path if self.modality is None else f"{self.path}: modality {self.modality!r}"
                raise InputFileError(f"{where} has no table 'obs': it is not AnnData or MuData")
            obs = store.item(root, "obs")
            if not store.is_group(obs) and not legacy.is_legacy(store, obs):
                raise InputFileError(f"{self.path}: 'obs' is not a table")
            yield store, root

    @cached_property
    def names(self) -> NDArray:
        """Names of the cells."""
        with self._open() as (store, root):
            obs = store.item(root, "obs")
            return legacy.read_legacy_index(store, obs) if legacy.is_legacy(store, obs) else read_index(store, obs)

    @cached_property
    def columns(self) -> dict[str, str]:
        """Columns of obs, and what each holds."""
        with self._open() as (store, root):
            obs = store.item(root, "obs")
            if legacy.is_legacy(store, obs):
                return legacy.legacy_columns(store, root, obs)
            return {name: kind_of(store, store.item(obs, name)) for name in names_in_order(obs)}

    def column(self, name: str) -> NDArray:
        """Values of a column of obs."""
        with self._open() as (store, root):
            obs = store.item(root, "obs")
            if legacy.is_legacy(store, obs):
                return legacy.read_legacy_column(store, root, obs, name)
            return self._checked(read_values(store, store.item(obs, name)), f"obs column {name!r}")

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Matrices by key, with their shapes."""
        with self._open() as (store, root):
            found = {key: matrix_shape(store, item) for key, item in _single_matrices(store, root).items()}
            for slot in (LAYERS, OBSM, OBSP):
                if not store.has(root, slot):
                    continue
                group = store.item(root, slot)
                if legacy.is_legacy(store, group):
                    found |= {f"{slot}:{name}": shape for name, shape in legacy.legacy_matrices(group).items()}
                elif store.is_group(group):
                    shapes = {name: matrix_shape(store, store.item(group, name)) for name in store.children(group)}
                    found |= {f"{slot}:{name}": shape for name, shape in shapes.items()}
            links = _old_links(store, root)
            found |= {f"{OBSP}:{name}": matrix_shape(store, item) for name, item in links.items()}
        return {key: shape for key, shape in found.items() if len(shape) == 2 and shape[1]}

    def matrix(self, key: str) -> Matrix:
        """One of the matrices."""
        with self._open() as (store, root):
            slot, _, name = key.partition(":")
            single = _single_matrices(store, root)
            if key in single:
                return self._checked(read_matrix(store, single[key]), key)
            if slot == OBSP and not store.has(root, OBSP):
                return self._checked(read_matrix(store, _old_links(store, root)[name]), key)
            group = store.item(root, slot)
            if legacy.is_legacy(store, group):
                return self._checked(legacy.read_legacy_matrix(store, group, name), key)
            return self._checked(read_matrix(store, store.item(group, name)), key)

    def features(self, key: str) -> list[str] | None:
        """Names of the columns of a matrix."""
        slot = key.partition(":")[0]
        if slot not in (X, RAW, LAYERS):
            return None
        with self._open() as (store, root):
            if slot == RAW:
                parent, name = (store.item(root, RAW), "var") if store.has(root, RAW) else (root, "raw.var")
            else:
                parent, name = root, "var"
            if not store.has(parent, name):
                return None
            var = store.item(parent, name)
            index = legacy.read_legacy_index(store, var) if legacy.is_legacy(store, var) else read_index(store, var)
        return index.tolist() if len(index) == self.shapes[key][1] else None

    def _checked(self, values: Any, what: str) -> Any:
        if values.shape[0] != len(self.names):
            raise InputFileError(
                f"{self.path}: {what} has {values.shape[0]} rows, but there are {len(self.names)} cells"
            )
        return values


def _single_matrices(store: Any, root: Any) -> dict[str, Any]:
    """X and the X of raw, which early versions call raw.X."""
    found = {X: store.item(root, X)} if store.has(root, X) else {}
    if store.has(root, "raw.X"):
        found[RAW] = store.item(root, "raw.X")
    elif store.has(root, RAW) and store.is_group(store.item(root, RAW)) and store.has(store.item(root, RAW), X):
        found[RAW] = store.item(store.item(root, RAW), X)
    return found


def _old_links(store: Any, root: Any) -> dict[str, Any]:
    """Graphs of files before anndata 0.7.4, which are in uns/neighbors instead of obsp."""
    if store.has(root, OBSP) or not store.has(root, "uns") or not store.is_group(store.item(root, "uns")):
        return {}
    uns = store.item(root, "uns")
    if not store.has(uns, "neighbors") or not store.is_group(store.item(uns, "neighbors")):
        return {}
    group = store.item(uns, "neighbors")
    return {name: store.item(group, name) for name in ("connectivities", "distances") if store.has(group, name)}


class PartInMemory:
    """One AnnData in memory, by its attributes alone: neither anndata nor mudata is imported."""

    def __init__(self, data: Any, path: str = "the AnnData object") -> None:
        self._data, self.path = data, path

    @cached_property
    def names(self) -> NDArray:
        """Names of the cells."""
        return np.array([str(name) for name in self._data.obs_names], dtype=object)

    @cached_property
    def columns(self) -> dict[str, str]:
        """Columns of obs, and what each holds."""
        values = {str(name): self.column(name) for name in self._data.obs.columns}
        return {name: TEXT if v.dtype == object else kind_of_numbers(v.dtype) for name, v in values.items()}

    def column(self, name: str) -> NDArray:
        """Values of a column of obs."""
        return column_values(self._data.obs[name])

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Matrices by key, with their shapes."""
        found: dict[str, Any] = {}
        if getattr(self._data, X, None) is not None:
            found[X] = self._data.X
        if getattr(self._data, RAW, None) is not None:
            found[RAW] = self._data.raw.X
        for slot in (LAYERS, OBSM, OBSP):
            found |= {f"{slot}:{name}": value for name, value in (getattr(self._data, slot, None) or {}).items()}
        shapes = {key: tuple(getattr(value, "shape", ())) for key, value in found.items()}
        return {key: shape for key, shape in shapes.items() if len(shape) == 2 and shape[1]}

    def matrix(self, key: str) -> Matrix:
        """One of the matrices; what is on disk is read into memory."""
        slot, _, name = key.partition(":")
        holder = self._data.raw if key == RAW else self._data
        value = getattr(holder, slot)[name] if name else holder.X
        return _as_matrix(value, f"{self.path}: {key}")

    def features(self, key: str) -> list[str] | None:
        """Names of the columns of a matrix."""
        slot = key.partition(":")[0]
        if slot not in (X, RAW, LAYERS):
            return None
        holder = self._data.raw if slot == RAW else self._data
        return [str(name) for name in holder.var_names]


def column_values(values: Any) -> NDArray:
    """Values of a pandas column: numbers with NaN, or text with None.

    Examples
    --------
    >>> import pandas as pd
    >>> column_values(pd.Series(["T", None, "B"], dtype="category")), column_values(pd.Series([1, 2]))
    (array(['T', None, 'B'], dtype=object), array([1, 2]))
    """
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.dtype.kind in "biuf":
        return array
    missing = values.isna().to_numpy() if hasattr(values, "isna") else np.array([value is None for value in array])
    known = array[~missing]
    if all(isinstance(value, bool | np.bool_) for value in known):
        return array.astype(bool) if not missing.any() else np.where(missing, np.nan, array).astype(np.float64)
    if all(isinstance(value, int | float | np.integer | np.floating) for value in known):
        return np.where(missing, np.nan, array).astype(np.float64)
    result = np.array([None if gone else str(value) for value, gone in zip(array, missing, strict=True)], dtype=object)
    return result


def _as_matrix(value: Any, where: str) -> Matrix:
    if hasattr(value, "to_memory"):  # a sparse matrix on disk
        value = value.to_memory()
    if sparse.issparse(value):
        matrix = sparse.csr_array(value)
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    if is_frame(value):
        value = value.to_numpy()
    elif type(value).__module__.startswith("h5py"):  # a dense matrix on disk
        h5py = import_optional("h5py", purpose="AnnData files", extra="files")
        return SafeHDF5(h5py, value.file, Unpacked(str(value.file.filename))).matrix(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InputFileError(f"{where} holds {array.dtype}, not numbers")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


Part = PartOfFile | PartInMemory
