"""How much of the calibration error of LMSSC is noise of the measure, into results/accuracy/calibration_floor.csv.

With a few hundred samples in 15 bins, perfectly calibrated predictions have an error above zero, too. Their error is
the floor: the predictions and confidences stay, and whether each is right is drawn with its confidence. Sets from
wheels have the splits of fresh.py, the others two. A second call runs only the sets that are missing.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from development import NAMES, WHEELS, load_views
from fresh import read_rows
from wheel_data import DATASETS

from lmssc import LMSSC
from lmssc.evaluation.splits import stratified_split
from lmssc.metrics import expected_calibration_error
from lmssc.persistence.atomic import write_csv

COLUMNS = ("dataset", "rate", "repeat", "samples", "accuracy", "confidence", "calibration_error", "floor", "floor_95")
RATES = (0.1, 0.3)
N_DRAWS = 200


def draw_errors(confidence, n_draws=N_DRAWS):
    """Calibration errors that perfectly calibrated predictions with these confidences have by chance."""
    rng = np.random.default_rng(0)
    draws = rng.random((n_draws, len(confidence))) < confidence
    return np.array([expected_calibration_error(right, confidence) for right in draws])


def measure(views, codes, rate, repeat):
    """Accuracy, mean confidence, calibration error and its floor on the samples without a label of one split."""
    order, given = stratified_split(codes, rate, repeat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with one label
        model = LMSSC().fit({name: view[order] for name, view in views.items()}, np.where(given, codes[order], -1))
    predicted, proba = model.transduction_[~given], model.label_distributions_[~given]
    confidence = proba[np.arange(len(predicted)), predicted]
    right = predicted == codes[order][~given]
    errors = draw_errors(confidence)
    measured = (right.mean(), confidence.mean(), expected_calibration_error(right, confidence))
    values = (len(right), *(f"{value:.4f}" for value in (*measured, errors.mean(), np.quantile(errors, 0.95))))
    return dict(zip(COLUMNS[1:], (rate, repeat, *values), strict=True))


def run(datasets, repeats, out, wheels):
    """Measure the sets that the table lacks; it is written after each."""
    for name in datasets:
        rows = read_rows(out)
        if name in {row["dataset"] for row in rows}:
            continue
        print(name, file=sys.stderr, flush=True)
        views, target = load_views(name, wheels)
        codes = np.unique(target, return_inverse=True)[1]
        splits = range(repeats if name in DATASETS else min(2, repeats))
        rows += [{"dataset": name} | measure(views, codes, rate, repeat) for rate in RATES for repeat in splits]
        write_csv(out, COLUMNS, sorted(rows, key=lambda row: NAMES.index(row["dataset"])))


def main():
    """Run the requested data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--repeats", type=int, default=5, help="splits of the sets from wheels; of the others two")
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="folder of the wheels")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy/calibration_floor.csv"))
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
