"""Small AnnData and MuData files, written by h5py in the encodings of several versions of anndata."""

from types import SimpleNamespace

import h5py
import numpy as np
from scipy import sparse

TEXTS = h5py.string_dtype()
VERSIONS = {"dataframe": "0.2.0", "array": "0.2.0", "string-array": "0.2.0", "categorical": "0.2.0", "dict": "0.1.0"}


def mark(item, encoding, version=None):
    item.attrs["encoding-type"] = encoding
    item.attrs["encoding-version"] = version or VERSIONS.get(encoding, "0.1.0")
    return item


def write_column(group, name, values):
    """A list of texts (categories if one is None), an array, or a masked array."""
    if isinstance(values, np.ma.MaskedArray):
        made = mark(group.create_group(name), f"nullable-{'boolean' if values.dtype == bool else 'integer'}")
        made["values"], made["mask"] = values.data, np.ma.getmaskarray(values)
    elif isinstance(values, np.ndarray):
        mark(group.create_dataset(name, data=values), "array")
    elif None in values:
        levels = sorted(set(values) - {None})
        made = mark(group.create_group(name), "categorical")
        made.attrs["ordered"] = False
        codes = [-1 if value is None else levels.index(value) for value in values]
        mark(made.create_dataset("codes", data=np.array(codes, dtype=np.int8)), "array")
        mark(made.create_dataset("categories", data=levels, dtype=TEXTS), "string-array")
    else:
        mark(group.create_dataset(name, data=list(values), dtype=TEXTS), "string-array")


def write_frame(group, name, index, columns):
    frame = mark(group.create_group(name), "dataframe")
    frame.attrs["_index"] = "_index"
    frame.attrs.create("column-order", np.array(list(columns), dtype=object), dtype=TEXTS)
    write_column(frame, "_index", list(index))
    for column, values in columns.items():
        write_column(frame, column, values)


def write_matrix(group, name, matrix, **options):
    if not sparse.issparse(matrix):
        mark(group.create_dataset(name, data=matrix, **options), "array")
        return
    made = mark(group.create_group(name), f"{matrix.format}_matrix")
    made.attrs["shape"] = np.array(matrix.shape)
    for part in ("data", "indices", "indptr"):
        made.create_dataset(part, data=getattr(matrix, part))


def write_anndata(group, ids, obs=None, X=None, features=None, **slots):
    mark(group, "anndata")
    write_frame(group, "obs", ids, obs or {})
    if X is not None:
        write_matrix(group, "X", X)
        names = [f"g{i}" for i in range(X.shape[1])] if features is None else features
        write_frame(group, "var", names, {})
    for slot in ("layers", "obsm", "obsp"):
        made = mark(group.create_group(slot), "dict")
        for name, matrix in slots.get(slot, {}).items():
            write_matrix(made, name, matrix)
    mark(group.create_group("uns"), "dict")


def write_h5ad(path, ids, obs=None, X=None, **more):
    with h5py.File(path, "w") as file:
        write_anndata(file, ids, obs, X, **more)


def write_h5mu(path, ids, modalities, obs=None):
    """Modalities: name → (ids, arguments of write_anndata)."""
    with h5py.File(path, "w", userblock_size=512) as file:
        mark(file, "MuData").attrs["axis"] = 0
        write_frame(file, "obs", ids, obs or {})
        group = file.create_group("mod")
        group.attrs.create("mod-order", np.array(list(modalities), dtype=object), dtype=TEXTS)
        masks = mark(file.create_group("obsm"), "dict")
        for name, (own, arguments) in modalities.items():
            write_anndata(group.create_group(name), own, **arguments)
            write_column(masks, name, np.isin(ids, own))
        mark(file.create_group("uns"), "dict")
    with open(path, "r+b") as file:
        file.write(b"MuData (format-version=0.1.0;creator=tests;creator-version=1)")


def write_old_h5ad(path, ids, labels, X, pca):
    """As anndata 0.6 did: a table is one dataset, categories are in uns."""
    levels = sorted(set(labels) - {None})
    obs = np.empty(len(ids), dtype=[("index", "S8"), ("kind", "i1"), ("depth", "<f4")])
    obs["index"], obs["depth"] = ids, np.arange(len(ids))
    obs["kind"] = [-1 if label is None else levels.index(label) for label in labels]
    obsm = np.empty(len(ids), dtype=[("X_pca", pca.dtype, (pca.shape[1],))])
    obsm["X_pca"] = pca
    var = np.empty(X.shape[1], dtype=[("index", "S8")])
    var["index"] = [f"g{i}" for i in range(X.shape[1])]
    with h5py.File(path, "w") as file:
        file["X"], file["obs"], file["obsm"], file["var"] = X, obs, obsm, var
        file["uns/kind_categories"] = np.array(levels, dtype="S8")


def contents(path):
    """Every object of an HDF5 file: its type, values and attributes, as bytes."""
    found = {}

    def look(name, item):
        attributes = {key: _plain(np.asarray(value)) for key, value in item.attrs.items()}
        data = None
        if isinstance(item, h5py.Dataset):
            raw = np.asarray(item[()])
            data = str(item.dtype), item.shape, repr(raw.tolist()) if item.dtype.kind == "O" else raw.tobytes()
        found[name] = type(item).__name__, data, attributes

    with h5py.File(path) as file:
        look("/", file)
        file.visititems(look)
    return found


def _plain(value):
    return value.tolist() if value.ndim else repr(value)


def anndata_like(ids, obs, **slots):
    """What has the attributes of AnnData that are used."""
    import pandas as pd

    frame = pd.DataFrame(obs, index=list(ids))
    slots = {"obsm": {}, "layers": {}, "obsp": {}, "uns": {}, "X": None} | slots
    X = slots["X"]
    names = pd.Index([] if X is None else [f"g{i}" for i in range(X.shape[1])])
    return SimpleNamespace(obs=frame, obs_names=frame.index, var_names=names, raw=None, **slots)
