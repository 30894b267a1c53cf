"""A small problem, and writers of it in every format that `lmssc classify` reads."""

import csv
import gzip
import io
import json

import numpy as np
import scipy.io
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from lmssc.datasets import make_multiview

N = 60


# Files that `lmssc classify` writes for `make_problem(24)`, in which a label looks wrong.
RESULTS = ["model.lmssc", "predictions.csv", "report.html", "to_label.csv"]


def make_problem(n_samples=N):
    """Two views of numbers that survive being written, ids, and labels with blanks."""
    data = make_multiview(n_samples, n_views=2, n_features=[6, 5], labelled=0.3, random_state=3)
    views = {"a": data.views[0].round(4), "b": data.views[1].round(4)}
    ids = [f"s{number:03d}" for number in range(n_samples)]
    labels = ["" if code == -1 else "uvw"[code] for code in data.y]
    return views, ids, labels


def table_text(header, rows, delimiter=","):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def view_text(name, view, ids, delimiter=","):
    header = ["id", *(f"{name}{column}" for column in range(1, view.shape[1] + 1))]
    rows = [[key, *map(repr, row)] for key, row in zip(ids, view.tolist(), strict=True)]
    return table_text(header, rows, delimiter)


def label_text(ids, labels):
    return table_text(["id", "label"], [[key, label] for key, label in zip(ids, labels, strict=True) if label])


def write_csv(folder, name, view, ids):
    (folder / f"{name}.csv").write_text(view_text(name, view, ids))
    return f"{name}.csv"


def write_tsv(folder, name, view, ids):
    (folder / f"{name}.tsv").write_text(view_text(name, view, ids, "\t"))
    return f"{name}.tsv"


def write_csv_gz(folder, name, view, ids):
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(view_text(name, view, ids).encode()))
    return f"{name}.csv.gz"


def json_lines_text(name, view, ids):
    rows = zip(ids, view.tolist(), strict=True)
    return "".join(
        json.dumps({"id": key} | {f"{name}{column}": value for column, value in enumerate(row, 1)}) + "\n"
        for key, row in rows
    )


def write_jsonl(folder, name, view, ids):
    (folder / f"{name}.jsonl").write_text(json_lines_text(name, view, ids))
    return f"{name}.jsonl"


def write_jsonl_gz(folder, name, view, ids):
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(json_lines_text(name, view, ids).encode()))
    return f"{name}.jsonl.gz"


def _arrow(name, view, ids):
    import pyarrow

    columns = {f"{name}{column}": view[:, column - 1] for column in range(1, view.shape[1] + 1)}
    return pyarrow.table({"id": ids, **columns})


def write_parquet(folder, name, view, ids):
    import pyarrow.parquet

    pyarrow.parquet.write_table(_arrow(name, view, ids), folder / f"{name}.parquet")
    return f"{name}.parquet"


def write_feather(folder, name, view, ids):
    import pyarrow.feather

    pyarrow.feather.write_feather(_arrow(name, view, ids), folder / f"{name}.feather")
    return f"{name}.feather"


def write_npy(folder, name, view, ids):
    np.save(folder / f"{name}.npy", view)
    return f"{name}.npy"


def write_npz(folder, name, view, ids):
    np.savez(folder / f"{name}.npz", **{"id": np.array(ids), name: view})
    return f"{name}.npz"


def write_sparse_npz(folder, name, view, ids):
    sparse.save_npz(folder / f"{name}.npz", sparse.csc_array(view))
    return f"{name}.npz"


def write_mat(folder, name, view, ids):
    scipy.io.savemat(folder / f"{name}.mat", {"ids": np.array(ids, dtype=object), name: view})
    return f"{name}.mat"


def write_mat73(folder, name, view, ids):
    """As MATLAB writes it: transposed, a cell of texts as references to arrays of character codes."""
    import h5py

    with h5py.File(folder / f"{name}.mat", "w", userblock_size=512) as file:
        file.create_dataset(name, data=view.T).attrs["MATLAB_class"] = np.bytes_("double")
        references = []
        for number, key in enumerate(ids):
            text = file.create_dataset(f"#refs#/{number}", data=np.array([[ord(letter)] for letter in key], dtype="u2"))
            text.attrs["MATLAB_class"] = np.bytes_("char")
            references.append(text.ref)
        cell = file.create_dataset("ids", data=np.array([references], dtype=h5py.ref_dtype))
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
    return f"{name}.mat"


def write_mat73_sparse(folder, name, view, ids):
    import h5py

    columns = sparse.csc_array(view)
    with h5py.File(folder / f"{name}.mat", "w", userblock_size=512) as file:
        group = file.create_group(name)
        group.attrs["MATLAB_sparse"] = np.uint64(view.shape[0])
        group["data"], group["ir"], group["jc"] = columns.data, columns.indices, columns.indptr
    return f"{name}.mat"


def write_svmlight(folder, name, view, ids):
    dump_svmlight_file(view, np.zeros(len(view)), str(folder / f"{name}.svm"), zero_based=False)
    return f"{name}.svm"


def write_svmlight_from_0(folder, name, view, ids):
    dump_svmlight_file(view, np.zeros(len(view)), str(folder / f"{name}.libsvm"), zero_based=True)
    return f"{name}.libsvm"


def write_mtx(folder, name, view, ids):
    scipy.io.mmwrite(folder / f"{name}.mtx", sparse.coo_array(view))
    return f"{name}.mtx"


def write_dense_mtx_gz(folder, name, view, ids):
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, view)
    (folder / f"{name}.mtx.gz").write_bytes(gzip.compress(buffer.getvalue()))
    return f"{name}.mtx.gz"


# What is written, and whether it has the ids.
WRITERS = {
    "csv": (write_csv, True),
    "tsv": (write_tsv, True),
    "csv.gz": (write_csv_gz, True),
    "jsonl": (write_jsonl, True),
    "jsonl.gz": (write_jsonl_gz, True),
    "parquet": (write_parquet, True),
    "feather": (write_feather, True),
    "npy": (write_npy, False),
    "npz": (write_npz, True),
    "sparse npz": (write_sparse_npz, False),
    "mat": (write_mat, True),
    "mat 7.3": (write_mat73, True),
    "mat 7.3 sparse": (write_mat73_sparse, False),
    "svm": (write_svmlight, False),
    "svm from 0": (write_svmlight_from_0, False),
    "mtx": (write_mtx, False),
    "dense mtx.gz": (write_dense_mtx_gz, False),
}
