"""AnnData and MuData, from a file or in memory: matrices and columns of all cells, by keys such as "mod:rna/X"."""

import difflib
import os
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.io.anndata_elements import TRUTH
from lmssc.io.anndata_parts import OBSP, Part, PartInMemory, PartOfFile, X, open_store
from lmssc.io.errors import InputFileError
from lmssc.io.place_rows import place_rows
from lmssc.io.table import NUMBER, OTHER, TEXT, Column, LazyBlocks, Rows, Table, clean_texts, some
from lmssc.numerics.matrices import Matrix

OBS, MOD = "obs:", "mod:"
NAMES = "obs_names"
ENDINGS = (".h5ad", ".h5mu", ".zarr")


def is_links(key: str) -> bool:
    """Whether a key names links between the cells.

    Examples
    --------
    >>> is_links("mod:rna/obsp:connectivities"), is_links("obsm:X_pca")
    (True, False)
    """
    return key.rpartition("/")[2].startswith(f"{OBSP}:")


class Cells:
    """Cells with matrices and columns, whose rows are those of `names`.

    Parameters
    ----------
    root : Part
        The AnnData, or what MuData has for all modalities.
    modalities : dict of str to Part
        The modalities of MuData; empty for AnnData.
    """

    def __init__(self, root: Part, modalities: Mapping[str, Part]) -> None:
        self.root, self.modalities, self.path = root, modalities, root.path

    @cached_property
    def names(self) -> NDArray:
        """Names of all cells, which are checked to be unique."""
        _check_unique(self.root.names, self.path)
        return self.root.names

    @cached_property
    def matrices(self) -> dict[str, tuple[int, ...]]:
        """Keys of all matrices, with the shapes that they have in their part."""
        # In MuData, obsm has a mask for each modality as well.
        found = {key: shape for key, shape in self.root.shapes.items() if key.partition(":")[2] not in self.modalities}
        for name, part in self.modalities.items():
            found |= {f"{MOD}{name}" if key == X else f"{MOD}{name}/{key}": s for key, s in part.shapes.items()}
        return found

    @property
    def default(self) -> list[str]:
        """Matrices that are views if none is named: X, or the X of each modality."""
        return [key for key in self.matrices if key == X or (key.startswith(MOD) and "/" not in key)]

    @cached_property
    def columns(self) -> dict[str, str]:
        """Keys of all columns, and what each holds: "text", "number", "truth" or "other"."""
        found = {f"{OBS}{name}": kind for name, kind in self.root.columns.items()}
        for name, part in self.modalities.items():
            found |= {f"{MOD}{name}/{OBS}{column}": kind for column, kind in part.columns.items()}
        return found

    def _part(self, key: str) -> tuple[Part, str, NDArray | None]:
        """The part that has a matrix or column, its key there, and the cells of its rows; None if they are all."""
        if not key.startswith(MOD):
            return self.root, key, None
        name, _, inner = key.removeprefix(MOD).partition("/")
        part = self.modalities[name]
        if np.array_equal(part.names, self.names):
            return part, inner or X, None
        _check_unique(part.names, f"{self.path}: modality {name!r}")
        place = {cell: row for row, cell in enumerate(self.names.tolist())}
        lost = [cell for cell in part.names.tolist() if cell not in place]
        if lost:
            raise InputFileError(
                f"{self.path}: modality {name!r} has {len(lost)} cells that are not among all cells, such as "
                f"{lost[0]!r}; call update() on the MuData object and save it again"
            )
        return part, inner or X, np.array([place[cell] for cell in part.names.tolist()], dtype=np.int64)

    def present(self, key: str) -> NDArray:
        """Which cells a matrix has."""
        place = self._part(key)[2]
        if place is None:
            return np.ones(len(self.names), dtype=bool)
        present = np.zeros(len(self.names), dtype=bool)
        present[place] = True
        return present

    def matrix(self, key: str) -> Matrix:
        """A matrix with a row for each cell; rows of cells that it lacks are NaN, or empty if it is sparse."""
        part, inner, place = self._part(key)
        data = part.matrix(inner)
        if is_links(key) and data.shape[1] != data.shape[0]:
            raise InputFileError(f"{self.path}: {key} has the shape {data.shape}; links are between cells and cells")
        if place is None:
            return data
        if is_links(key):
            data = sparse.csr_array(place_rows(sparse.csr_array(data), place, len(self.names)).T)
            return place_rows(data, place, len(self.names)).T.tocsr()
        return place_rows(data, place, len(self.names))

    def features(self, key: str) -> list[str] | None:
        """Names of the columns of a matrix, `var_names`; None if they have none."""
        part, inner, _ = self._part(key)
        return part.features(inner)

    def column(self, key: str) -> NDArray:
        """Values of a column for all cells: numbers with NaN, or text with None."""
        part, inner, place = self._part(key)
        values = part.column(inner.removeprefix(OBS))
        if place is None:
            return values
        everywhere = np.full(len(self.names), None, dtype=object)
        everywhere[place] = values
        if values.dtype == object:
            return everywhere
        return np.array([np.nan if value is None else value for value in everywhere], dtype=np.float64)

    def find_column(self, name: str) -> str:
        """The key of a column, which may be given with or without "obs:"."""
        for key in (name, f"{OBS}{name}"):
            if key in self.columns:
                return key
        near = difflib.get_close_matches(name, [*self.columns, *(k.removeprefix(OBS) for k in self.columns)], 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {some(self.columns, 8) or 'none'}"
        raise InputFileError(f"{self.path} has no column {name!r} in obs; {hint}")

    def find_matrix(self, name: str) -> str:
        """The key of a matrix."""
        key = name.removesuffix(f"/{X}") if name.startswith(MOD) else name
        if key in self.matrices:
            return key
        near = difflib.get_close_matches(name, self.matrices, 1, 0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputFileError(f"{self.path} has no matrix {name!r}; {hint}There are {some(self.matrices, 12) or 'none'}")


def _check_unique(names: NDArray, where: str) -> None:
    if not len(names):
        raise InputFileError(f"{where} has no cells")
    seen: set[str] = set()
    for row, name in enumerate(names.tolist(), 1):
        if name in seen:
            raise InputFileError(
                f"{where}, row {row}: the cell {name!r} appears twice in obs_names; call obs_names_make_unique() first"
            )
        seen.add(name)


def open_cells(data: Any) -> Cells:
    """Open AnnData or MuData.

    Parameters
    ----------
    data : AnnData, MuData, str or path
        An object of these classes, or of any class with the same attributes; or a file that ends in .h5ad, .h5mu or
        .zarr.

    Returns
    -------
    Cells
    """
    if not isinstance(data, str | os.PathLike):
        if not hasattr(data, "obs") or not hasattr(data, "obs_names"):
            raise TypeError(f"pass an AnnData or MuData object, or the path of a file, not {type(data).__name__}")
        if not hasattr(data, "mod"):
            return Cells(PartInMemory(data), {})
        _check_axis(getattr(data, "axis", 0), "the MuData object")
        parts = {name: PartInMemory(part, f"modality {name!r}") for name, part in data.mod.items()}
        return Cells(PartInMemory(data, "the MuData object"), parts)
    path = os.fspath(data)
    if not path.lower().rstrip("/").endswith(ENDINGS):
        raise InputFileError(f"{path}: a file of cells ends in {', '.join(ENDINGS)}")
    if not os.path.exists(path):
        raise InputFileError(f"{path}: no such file")
    with open_store(path) as (store, root):
        modalities = []
        if store.has(root, "mod") and store.is_group(store.item(root, "mod")):
            _check_axis(int(root.attrs.get("axis", 0)), path)
            group = store.item(root, "mod")
            order = [str(name) for name in np.asarray(group.attrs.get("mod-order", ())).ravel()]
            modalities = sorted(
                store.children(group), key=lambda name: order.index(name) if name in order else len(order)
            )
    return Cells(PartOfFile(path), {name: PartOfFile(path, name) for name in modalities})


def _check_axis(axis: int, where: str) -> None:
    if axis != 0:
        raise InputFileError(
            f"{where}: its modalities share the variables (axis={axis}), not the cells; read one of them"
        )


def read_cells(path: str) -> Table:
    """Read an AnnData or MuData file; its matrices are read when they are used."""
    cells = open_cells(path)
    columns = {NAMES: Column(TEXT, lambda: cells.names, feature=False)}
    columns |= {key: _column(cells, key, kind) for key, kind in cells.columns.items()}
    return Table(
        Rows(path, len(cells.names)),
        columns,
        LazyBlocks({key: partial(cells.matrix, key) for key in cells.matrices}),
        id_column=NAMES,
        usual_blocks=tuple(cells.default),
        features=cells.features,
        present=cells.present,
        links=tuple(key for key in cells.matrices if is_links(key)),
    )


def _column(cells: Cells, key: str, kind: str) -> Column:
    """A column, whose values are read when they are used."""
    if kind == OTHER:
        fault = f"{cells.path}, column {key!r}: it holds neither numbers nor text"
        return Column(OTHER, lambda: np.empty(0), fault, feature=False)
    if kind == TEXT:
        return Column(TEXT, lambda: clean_texts(cells.column(key)), feature=False)
    truth = kind == TRUTH
    return Column(NUMBER, lambda: cells.column(key) * 1, feature=False, truth=truth)
