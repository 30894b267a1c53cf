"""LMSSC and its peers on data that had no part in the choice of its defaults, into results/accuracy.

Two sets that come with scikit-learn, their columns as views: mean, error and worst value of ten properties of cell
nuclei (breast cancer), and the acids, phenols and colours of wines. Finished runs are kept: started again, it goes on.
"""

import argparse
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_wine

from lmssc import compare

COLUMNS = {
    "cancer": (load_breast_cancer, {"mean": range(10), "error": range(10, 20), "worst": range(20, 30)}),
    "wine": (load_wine, {"acids": range(5), "phenols": range(5, 9), "colours": range(9, 13)}),
}
RATES = {"cancer": (0.02, 0.05, 0.1, 0.3), "wine": (0.05, 0.1, 0.3)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/accuracy"))
    arguments = parser.parse_args()
    for name, (load, views) in COLUMNS.items():
        data = load()
        blocks = {view: data.data[:, list(columns)] for view, columns in views.items()}
        runs = arguments.out / "runs" / name
        compare(blocks, data.target, None, RATES[name], arguments.repeats, out=runs, progress=True)
        (arguments.out / f"{name}.csv").write_bytes((runs / "runs.csv").read_bytes())
