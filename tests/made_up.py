"""Made-up results of a reproduction, for the tests of the report, and made-up views."""

import csv
import math

import numpy as np

from lmssc import paper_settings
from lmssc.datasets import make_multiview
from lmssc.paper import figure_data, figures
from lmssc.paper.figure_data import Grid
from lmssc.paper.printed_tables import paper_cell
from lmssc.paper.tables import RUN_COLUMNS, TABLE_COLUMNS

# (data set, rate, method) → (name in the paper, fixed mean, half of its interval, cross-validated, best by test)
CELLS = {
    ("sonar", 0.2, "LMSSC"): ("LMSSC", 75.0, 1.0, 74.0, 79.0),
    ("sonar", 0.2, "AMGL"): ("AMGL", 72.0, 1.5, math.nan, math.nan),
    ("sonar", 0.2, "SVC <RBF> & more"): ("", 76.0, 0.5, math.nan, math.nan),
    ("bbc", 0.1, "LMSSC"): ("LMSSC", 97.0, 0.4, 96.0, 97.0),
    ("bbc", 0.1, "1-NN"): ("", 95.0, 1.0, math.nan, math.nan),
    ("bbc", 0.1, "constant answer"): ("", 92.4, 0.0, math.nan, math.nan),
    ("handwritten", 0.1, "LMSSC"): ("LMSSC", 96.5, 0.3, math.nan, math.nan),
}


def write_results(folder):
    """Write ``tables.csv`` and ``runs.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for (dataset, rate, method), (name, mean, half, chosen, best) in CELLS.items():
        row = dict.fromkeys(TABLE_COLUMNS, "")
        row |= {"dataset": dataset, "rate": rate, "method": method, "paper_name": name}
        printed = paper_cell(dataset, name, rate)
        if printed is not None:
            row |= {"paper_mean": printed.mean, "paper_std": printed.std}
        row |= {"fixed_mean": mean, "fixed_std": 2 * half, "fixed_n": 20}
        row |= {"fixed_ci_low": mean - half, "fixed_ci_high": mean + half, "fixed_balanced_accuracy_mean": mean - 5}
        row |= {"fixed_p_value": 0.0004 if method == "AMGL" else "", "cv_n": 0, "best_by_test_n": 0}
        if not math.isnan(chosen):
            row |= {"cv_mean": chosen, "cv_std": 1.0, "cv_n": 5, "best_by_test_mean": best, "best_by_test_n": 5}
        rows.append(row)
    runs = [
        dict.fromkeys(RUN_COLUMNS, "")
        | {"dataset": "sonar", "column": "fixed", "method": "LMSSC", "rate": 0.2, "repeat": i, "fit_seconds": 1800}
        for i in range(3)
    ]
    runs.append(runs[0] | {"method": "AMGL", "fit_seconds": "", "error": "ValueError: <script>alert(1)</script>"})
    for name, columns, lines in (("tables.csv", TABLE_COLUMNS, rows), ("runs.csv", RUN_COLUMNS, runs)):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(lines)


def draw_tiny_figures(monkeypatch, folder):
    """Draw all figures of 60 made-up samples that go by the name of Sonar, on the smallest grids."""
    data = make_multiview(60, random_state=0)
    data.target_names = ["ant", "bee & co", "<cow>"]
    monkeypatch.setattr(figures, "load", {"sonar": data}.__getitem__)
    monkeypatch.setattr(figures, "WIDE", Grid((5, 15), (0.01, 1.0), (0.001, 1.0), repeats=2))
    monkeypatch.setattr(figures, "PUBLISHED", Grid((5, 15), (0.01,), (0.1, 1.0), repeats=1))
    monkeypatch.setattr(figures, "paper_settings", lambda: {**paper_settings(), "max_iter": 5})
    monkeypatch.setattr(figures, "DIMENSIONS", (5, 15))
    monkeypatch.setattr(figures, "PANELS", (5, 15))
    monkeypatch.setattr(figure_data, "CALIBRATION_REPEATS", 2)
    return figures.draw_figures(["sonar"], folder)


def planted_views():
    """Two views, of which only "signal" knows the classes; a fifth of the labels is given."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], 40))
    views = {
        "noise": rng.normal(size=(120, 4)),
        "signal": rng.normal(size=(120, 2)) * 0.4 + 3 * np.eye(3)[truth][:, :2],
    }
    given = np.zeros(120, dtype=bool)
    for code in range(3):
        given[np.flatnonzero(truth == code)[:8]] = True
    return views, np.where(given, truth, -1), truth
