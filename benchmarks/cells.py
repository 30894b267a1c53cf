"""Labels of cells from 5 % of them: LMSSC on the file as it is, beside what is done today with its `X_pca`.

    python benchmarks/cells.py --wheels FOLDER [--out results/cells]

The cells are those that scanpy and scirpy ship for their tests; the wheels are downloaded and not installed. All methods
see the same 10 draws of labels. kNN transfer and logistic regression see one representation, as in the usual workflow.
"""

import argparse
import csv
from pathlib import Path
from tempfile import TemporaryDirectory

from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from wheels import read_member

import lmssc

RATE, REPEATS = 0.05, 10
METRICS = ("accuracy", "balanced_accuracy", "log_loss", "calibration_error")
COLUMNS = ("data", "cells", "classes", "method", "views", "draw", *METRICS)
FILES = {
    "pbmc68k": ("scanpy", "scanpy/datasets/10x_pbmc68k_reduced.h5ad"),
    "wu2020": ("scirpy", "scirpy/tests/data/wu2020_200.h5mu"),
}


def pbmc68k(path: Path) -> tuple[dict, dict, list]:
    """700 blood cells of 10 types: the views of LMSSC, the one representation, the labels."""
    cells = lmssc.read_anndata(path, {"X_pca": "obsm:X_pca", "X": "X"}, labels="bulk_labels")
    return dict(cells.views), {"X_pca": cells.views["X_pca"]}, cells.labels.tolist()


def wu2020(path: Path) -> tuple[dict, dict, list]:
    """150 T cells from blood, tumour and the tissue beside it."""
    cells = lmssc.read_anndata(path, {"gex": "mod:gex", "umap": "mod:gex/obsm:X_umap_orig"}, "mod:gex/obs:source")
    counts = sparse.csr_array(cells.views["gex"])
    logs = counts.multiply(1e4 / counts.sum(axis=1)[:, None]).tocsr().log1p()  # the usual normalisation
    svd = TruncatedSVD(50, random_state=0).fit_transform(logs)
    return {"gex": logs, "umap": cells.views["umap"]}, {"X_pca": svd}, cells.labels.tolist()


def main() -> None:
    """Run all methods and write runs.csv and summary.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/cells"), help="folder for the CSV files")
    args = parser.parse_args()
    rows = []
    for name, make in (("pbmc68k", pbmc68k), ("wu2020", wu2020)):
        package, member = FILES[name]
        with TemporaryDirectory() as folder:
            path = Path(folder) / Path(member).name
            path.write_bytes(read_member(args.wheels, package, member))
            views, single, y = make(path)
        simple = {
            "kNN transfer": KNeighborsClassifier(15, weights="distance"),
            "logistic regression": LogisticRegression(max_iter=2000),
        }
        for shown, data, methods in ((views, views, ["LMSSC"]), (single, single, ["LMSSC"]), (single, single, simple)):
            result = lmssc.compare(data, y, methods, rates=[RATE], repeats=REPEATS)
            about = {"data": name, "cells": len(y), "classes": len(set(y)), "views": " + ".join(shown)}
            rows += [{**about, "draw": record["repeat"], **record} for record in result.records]
    args.out.mkdir(parents=True, exist_ok=True)
    write(args.out / "runs.csv", COLUMNS, rows)
    summary = []
    for key in dict.fromkeys((row["data"], row["method"], row["views"]) for row in rows):
        chosen = [row for row in rows if (row["data"], row["method"], row["views"]) == key and not row["error"]]
        means = {metric: sum(row[metric] for row in chosen) / max(1, len(chosen)) for metric in METRICS}
        summary.append({**chosen[0], **means, "draw": len(chosen)})
        print(*key, *(f"{metric} {means[metric]:.3f}" for metric in METRICS), sep="  ")
    write(args.out / "summary.csv", COLUMNS, summary)


def write(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    """Write rows as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{row[key]:.4f}" if isinstance(row[key], float) else row[key] for key in columns})


if __name__ == "__main__":
    main()
