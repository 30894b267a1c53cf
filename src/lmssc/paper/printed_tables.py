"""The result tables of the paper, as printed."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from scipy.stats import t

DATASETS = {"bbc": "BBC", "sonar": "Sonar", "handwritten": "HW", "reuters": "Reuters"}
"""Names of the data sets here, and in the tables of the paper."""
DRAWS = 20
"""Number of splits behind each mean and standard deviation."""


@dataclass(frozen=True)
class PaperCell:
    """One cell of the paper's Tables 2–5; accuracies are in percent."""

    dataset: str
    method: str
    rate: float
    mean: float
    std: float


def interval_half_width(std: float) -> float:
    """Half-width of the 95 % confidence interval of a printed mean, from the printed standard deviation.

    Examples
    --------
    >>> round(interval_half_width(4.65), 2)
    2.18
    """
    return float(t.ppf(0.975, DRAWS - 1) * std / np.sqrt(DRAWS))


@cache
def paper_tables() -> tuple[PaperCell, ...]:
    """All cells of the paper's Tables 2–5.

    Returns
    -------
    tuple of PaperCell
        The data sets by their names here (the keys of `DATASETS`), the methods by the paper's: LMSSC, AMGL, MLAN, and
        HFPF(v) for propagation on view v alone. Means and standard deviations over 20 splits, in percent.

    Examples
    --------
    >>> cells = paper_tables()
    >>> len(cells)
    120
    >>> [cell.mean for cell in cells if (cell.dataset, cell.method) == ("sonar", "LMSSC")]
    [69.84, 80.21, 90.14, 95.48]
    """
    names = {paper: ours for ours, paper in DATASETS.items()}
    text = files("lmssc.paper").joinpath("paper_tables.csv").read_text(encoding="utf-8")
    return tuple(
        PaperCell(
            names[row["dataset"]],
            row["method"],
            float(row["label_rate"]),
            float(row["accuracy_mean"]),
            float(row["accuracy_std"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


def paper_cell(dataset: str, method: str, rate: float) -> PaperCell | None:
    """One cell of the paper's tables; None if they do not have it.

    Parameters
    ----------
    dataset, method : str
        As in `paper_tables`.
    rate : float
        Share of labelled samples.

    Examples
    --------
    >>> paper_cell("reuters", "LMSSC", 0.5)
    PaperCell(dataset='reuters', method='LMSSC', rate=0.5, mean=87.28, std=1.38)
    """
    cells = (cell for cell in paper_tables() if (cell.dataset, cell.method) == (dataset, method))
    return next((cell for cell in cells if abs(cell.rate - rate) < 1e-9), None)
