"""Hostile and damaged containers: one line says what is wrong, exit code 2, and nothing is written."""

import json
import os
import re

import h5py
import numpy as np
import pytest
from scipy import sparse

from cell_files import TEXTS, mark, write_anndata, write_frame, write_h5ad, write_h5mu
from lmssc.cli import main
from small_files import make_problem

pytestmark = pytest.mark.usefixtures("quick_fits")

N = 24
VIEWS, IDS, LABELS = make_problem(N)
A, B = VIEWS["a"], VIEWS["b"]
KIND = [label or None for label in LABELS]
CALL = "classify x.h5ad --label-column kind --out out"


def good(file):
    write_anndata(file, IDS, {"kind": KIND, "depth": np.arange(N)}, sparse.csr_array(A), obsm={"X_pca": B})


def h5(change, call=CALL, name="x.h5ad"):
    """A good file after a change."""

    def write(folder):
        with h5py.File(folder / name, "w") as file:
            good(file)
            change(file)

    return write, call


def put(path, value, **attrs):
    """Replace an item."""

    def change(file):
        if path in file:
            del file[path]
        file[path] = value
        for key, content in attrs.items():
            file[path].attrs[key.replace("_", "-") if key != "shape" else key] = content

    return change


def gone(path):
    def change(file):
        del file[path]

    return change


def attribute(path, name, value):
    def change(file):
        file[path].attrs[name] = value

    return change


def no_storage(path, shape, **options):
    """A dataset of absurd shape that takes no room."""

    def change(file):
        del file[path]
        file.create_dataset(path, shape=shape, dtype="f4", chunks=True, **options)

    return change


def external(file):
    del file["X"]
    file.create_dataset("X", shape=A.shape, dtype="f8", external=[("/etc/passwd", 0, A.nbytes)])


def virtual(file):
    del file["X"]
    layout = h5py.VirtualLayout(shape=A.shape, dtype="f8")
    layout[:] = h5py.VirtualSource("other.h5", "X", shape=A.shape)
    file.create_virtual_dataset("X", layout)


def in_loop(file):
    del file["X"]
    file["X"] = h5py.SoftLink("/Y")
    file["Y"] = h5py.SoftLink("/X")


def itself(file):
    """A group that contains itself."""
    del file["obsm/X_pca"]
    file["obsm/X_pca"] = file["obsm"]


def long_texts(file):
    """A few bytes that say they are many texts."""
    del file["obs/_index"]
    file.create_dataset("obs/_index", shape=(1 << 40,), dtype=TEXTS, chunks=(1 << 16,))


def strange_filter(file):
    del file["X"]
    file.create_dataset("X", data=A, chunks=True, scaleoffset=2)


def compound(file):
    del file["X"]
    file["X"] = np.zeros(N, dtype=[("a", "f8"), ("b", "f8")])


def sparse_with(**parts):
    def change(file):
        for part, value in parts.items():
            if part == "shape":
                file["X"].attrs["shape"] = value
            else:
                put(f"X/{part}", value)(file)

    return change


def awkward(file):
    del file["obs/kind"]
    mark(file.create_group("obs/kind"), "awkward-array")


CSR = sparse.csr_array(A)
MATRICES = {
    "a link to another file": (h5(put("X", h5py.ExternalLink("/etc/passwd", "/"))), r"'X' is a link to another file"),
    "obs in another file": (h5(put("obs", h5py.ExternalLink("o.h5", "/"))), r"'obs' is a link to another file"),
    "a column in another file": (h5(put("obs/kind", h5py.ExternalLink("o", "/"))), r"'obs/kind' is a link to another"),
    "numbers in another file": (h5(external), r"has its numbers in another file \(.*passwd"),
    "a virtual dataset": (h5(virtual), r"is assembled from other files"),
    "links in a loop": (h5(in_loop), r"'X' is a link that leads back to itself"),
    "a group in itself": (h5(itself, CALL + " --views obsm:X_pca"), r"no file has a column 'obsm:X_pca'"),
    "a link to nothing": (h5(put("X", h5py.SoftLink("/nowhere"))), r"'X' is a link to '/nowhere', which is not in"),
    "an absurd shape": (h5(no_storage("X", (1 << 30, 1 << 30))), r"unpacks to more than the limit"),
    "an absurd shape, compressed": (
        h5(no_storage("X", (1 << 30, 1 << 20), compression="gzip")),
        r"unpacks to more than the limit",
    ),
    "absurdly many names": (h5(long_texts), r"unpacks to more than the limit"),
    "another filter": (h5(strange_filter), r"compressed by another filter than gzip or lzf"),
    "other rows than cells": (h5(put("X", A[:9])), r"x\.h5ad: X has 9 rows, but there are 24 cells"),
    "a vector": (h5(put("X", A[:, 0])), r"which matrices are the views\? --views obsm:X_pca"),
    "three dimensions": (h5(put("X", A[:, None, :])), r"which matrices are the views"),
    "complex numbers": (h5(put("X", A * 1j)), r"which matrices are the views"),
    "texts": (h5(put("X", np.array([[b"a"]] * N))), r"which matrices are the views"),
    "fields": (h5(compound), r"which matrices are the views"),
    "no X": (h5(gone("X")), r"which matrices are the views\? --views obsm:X_pca"),
    "a sparse matrix without data": (h5(gone("X/data")), r"'X/data' is not in the file"),
    "a sparse matrix without a shape": (h5(lambda f: f["X"].attrs.__delitem__("shape")), r"not a complete AnnData"),
    "a sparse matrix of one size": (h5(attribute("X", "shape", [N])), r"which matrices are the views"),
    "a negative shape": (h5(attribute("X", "shape", [-5, 6])), r"a sparse matrix has two sizes, not \(-5, 6\)"),
    "an absurd sparse shape": (h5(attribute("X", "shape", [1 << 50, 6])), r"unpacks to more than the limit"),
    "pointers that go back": (
        h5(sparse_with(indptr=CSR.indptr[::-1].copy())),
        r"'/X' is not a complete sparse matrix",
    ),
    "too few pointers": (h5(sparse_with(indptr=CSR.indptr[:5])), r"'/X' is not a complete sparse matrix"),
    "columns beyond the shape": (h5(sparse_with(indices=CSR.indices + 9)), r"'/X' is not a complete sparse matrix"),
    "negative columns": (h5(sparse_with(indices=CSR.indices - 9)), r"'/X' is not a complete sparse matrix"),
    "columns that are not whole": (h5(sparse_with(indices=CSR.indices * 0.5)), r"its indices and indptr whole numbers"),
    "sparse texts": (h5(sparse_with(data=np.array([b"a"] * CSR.nnz))), r"its data must be numbers"),
    "another encoding": (h5(attribute("X", "encoding-type", "awkward-array")), r"which matrices are the views"),
    "infinity": (
        h5(put("X", np.where(np.arange(A.size).reshape(A.shape) == 20, np.inf, A))),
        r"row 4, column 3 of 'X': infinite",
    ),
    "a sparse NaN": (h5(sparse_with(data=CSR.data * np.nan)), r"row 1, column 1 of 'X': blank or NaN"),
    "a matrix that is not there": (h5(lambda f: None, CALL + " --views obsm:X_pc"), r"did you mean 'obsm:X_pca'"),
    "links that are not square": (
        h5(lambda f: f.create_dataset("obsp/near", data=A), CALL + " --views X,obsp:near"),
        r"obsp:near has the shape \(24, 6\); links are between cells and cells",
    ),
}
TABLES = {
    "no obs": (h5(gone("obs")), r"x\.h5ad has no table 'obs': it is not AnnData"),
    "obs is a matrix": (h5(put("obs", A)), r"'obs' is not a table"),
    "no index": (h5(gone("obs/_index")), r"'obs/_index' is not in the file"),
    "an index of other length": (h5(put("obs/_index", IDS[:5])), r"rows, but there are 5 cells"),
    "a cell twice": (h5(put("obs/_index", [*IDS[1:], IDS[1]])), r"row 24: the cell 's001' appears twice in obs_names"),
    "no cells": (h5(put("obs/_index", np.array([], dtype="S1"))), r"x\.h5ad has no cells"),
    "an index with two dimensions": (h5(put("obs/_index", np.array([IDS], dtype="S4"))), r"one value for each row"),
    "a column that is not there": (h5(gone("obs/kind")), r"'obs/kind' is not in the file"),
    "a column of another kind": (h5(awkward), r"'obs:kind': it holds neither numbers nor text"),
    "a column of objects": (h5(put("obs/kind", np.zeros(N, "V8"))), r"'obs:kind': it holds neither numbers nor text"),
    "a column of other length": (h5(put("obs/kind", IDS[:7])), r"obs column 'kind' has 7 rows, but there are 24"),
    "codes beyond the categories": (
        h5(put("obs/kind/codes", np.full(N, 7, "i1"))),
        r"a code is not one of its 3 categories",
    ),
    "codes below -1": (h5(put("obs/kind/codes", np.full(N, -2, "i1"))), r"a code is not one of its 3 categories"),
    "codes that are not whole": (h5(put("obs/kind/codes", np.zeros(N))), r"must be a list of whole numbers"),
    "no categories": (h5(gone("obs/kind/categories")), r"'obs/kind/categories' is not in the file"),
    "no labels at all": (h5(put("obs/kind/codes", np.full(N, -1, "i1"))), r"no sample has a label"),
    "no such column": (h5(lambda f: None, CALL.replace("kind", "obs:kinds")), r"--label-column obs:kinds: no file has"),
}


def mu(change, call="classify x.h5mu --label-column kind --out out"):
    def write(folder):
        write_h5mu(folder / "x.h5mu", IDS, {"rna": (IDS, {"X": A}), "adt": (IDS[4:], {"X": B[4:]})}, {"kind": KIND})
        with h5py.File(folder / "x.h5mu", "r+") as file:
            change(file)

    return write, call


def other_names(file):
    del file["mod/adt/obs"]
    write_frame(file["mod/adt"], "obs", ["stranger", *IDS[5:]], {})


MUDATA = {
    "modalities of variables": (mu(attribute("/", "axis", 1)), r"share the variables \(axis=1\), not the cells"),
    "a cell that is not among all": (mu(other_names), r"modality 'adt' has 1 cells that are not among all cells"),
    "a modality in another file": (mu(put("mod/adt", h5py.ExternalLink("o", "/"))), r"'mod/adt' is a link to another"),
    "a modality without obs": (mu(gone("mod/adt/obs")), r"modality 'adt' has no table 'obs'"),
    "no modality": (mu(lambda f: [f["mod"].pop(name) for name in list(f["mod"])]), r"x\.h5mu contains no view"),
    "a modality that is a number": (mu(put("mod/adt", 5)), r"modality 'adt' has no table 'obs'"),
}


def content(name, data, call=None):
    def write(folder):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    return write, call or f"classify {name.partition('/')[0]} --label-column kind --out out"


def truncated(folder):
    write_h5ad(folder / "x.h5ad", IDS, {"kind": KIND}, A)
    data = (folder / "x.h5ad").read_bytes()
    (folder / "x.h5ad").write_bytes(data[: len(data) // 2])


def parts(folder, second=B):
    for name, view in {"a": A, "b": second}.items():
        (folder / "set" / name).mkdir(parents=True)
        np.save(folder / "set" / name / f"{name}_0.npy", view)


def saved_set(folder, filename="d.arrow", indices=None, data=b"no arrow"):
    (folder / "set").mkdir()
    (folder / "set" / "d.arrow").write_bytes(data)
    state = {"_data_files": [{"filename": filename}], "_indices_data_files": indices}
    (folder / "set" / "state.json").write_text(json.dumps(state))


def linked(folder):
    parts(folder)
    os.symlink("/etc", folder / "set" / "c")


def zarr_with(codec):
    def write(folder):
        (folder / "x.zarr" / "X").mkdir(parents=True)
        (folder / "x.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
        about = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "fill_value": None, "order": "C"}
        about |= {"compressor": None, "filters": [{"id": codec}]}
        (folder / "x.zarr" / "X" / ".zarray").write_text(json.dumps(about))

    return write


def nan_in_parquet(folder):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    values = A.copy()
    values[7, 2] = np.nan
    columns = {"id": IDS, "vector": values.tolist(), "kind": pa.array(list(KIND), pa.string())}
    pyarrow.parquet.write_table(pa.table(columns), folder / "x.parquet")


SET = "classify set --label-column kind --out out"
OTHERS = {
    "not HDF5": (content("x.h5ad", b"id,x\n" * 99), r"x\.h5ad is not a complete AnnData or MuData file"),
    "empty": (content("x.h5ad", b""), r"x\.h5ad is not a complete AnnData"),
    "cut off": ((truncated, CALL), r"x\.h5ad is not a complete AnnData"),
    "not a workbook": (content("x.xlsx", b"PK\x03\x04 no"), r"x\.xlsx is not a complete Excel workbook"),
    "not xz": (content("x.csv.xz", b"a,b\n1,2\n"), r"not a complete xz file"),
    "not zstd": (content("x.csv.zst", b"a,b\n1,2\n"), r"not a complete zstd file"),
    "a folder of nothing": (content("set/readme.md", b"-", SET), r"set is a folder; name the files in it"),
    "a part that is no array": (content("set/a/a_0.npy", b"no", SET), r"a_0\.npy is not a complete numpy array"),
    "parts of other lengths": ((lambda f: parts(f, B[:5]), SET), r"'b' and 'a' have parts of other lengths"),
    "a part of objects": ((lambda f: parts(f, np.array([[{}]] * N)), SET), r"b_0\.npy is not a complete numpy array"),
    "a link out of the folder": ((linked, SET), r"c is a link to outside the folder"),
    "a data set outside its folder": ((lambda f: saved_set(f, "../x.arrow"), SET), r"names no file of the folder"),
    "a data set of chosen rows": ((lambda f: saved_set(f, indices=[{"filename": "i"}]), SET), r"flatten_indices"),
    "a damaged data set": ((saved_set, SET), r"set is not a complete data set"),
    "splits": (content("set/dataset_dict.json", b'{"splits": ["train", "test"]}', SET), r"name one: set/train"),
    "state that is no JSON": (content("set/state.json", b"{", SET), r"state\.json is not JSON"),
    "a NaN in an embedding": (
        (nan_in_parquet, "classify x.parquet --label-column kind --impute none --out out"),
        r"x\.parquet, row 8, column 3 of 'vector': blank or NaN",
    ),
    "pickle in zarr": ((zarr_with("pickle"), "classify x.zarr --label-column kind --out out"), r"packed by 'pickle'"),
    "no zarr": (content("x.zarr/.zgroup", b"{", "classify x.zarr --label-column kind --out out"), r"x\.zarr"),
    "in place of zarr": (
        (zarr_with("zlib"), "classify x.zarr --label-column kind --in-place"),
        r"--in-place: x\.zarr is a folder, which cannot be replaced in one step; write to --out",
    ),
    "in place into another file": (
        h5(put("uns", h5py.ExternalLink("/tmp/other.h5", "/")), CALL.replace("--out out", "--in-place")),
        r"'uns' is a link to another file",
    ),
}
CASES = {**MATRICES, **TABLES, **MUDATA, **OTHERS}


@pytest.mark.parametrize("name", CASES)
def test_bad_container(name, tmp_path, monkeypatch, capsys):
    (write, call), message = CASES[name]
    for package in ("zarr", "openpyxl", "zstandard"):
        if {"zarr": ".zarr", "openpyxl": ".xlsx", "zstandard": ".zst"}[package] in call:
            pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main([*call.split(), "-q"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("lmssc: error: ")
    assert re.search(message, error), error
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_there_are_many_cases():
    assert len(CASES) >= 60
