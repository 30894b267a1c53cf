"""How many held-out labels a model of the studio finds again."""

import warnings
from typing import Any

from lmssc.data.dataset import Dataset
from lmssc.estimators.lmssc import LMSSC
from lmssc.model_selection.intervals import wilson
from lmssc.model_selection.refit import hold_out, sample_rows, shortened

# Iterations, folds and samples of the fits.
N_ITERATIONS, N_FOLDS, MAX_SAMPLES = 5, 3, 5000


def held_out_accuracy(clf: LMSSC, dataset: Dataset) -> dict[str, Any] | None:
    """Hold out a third of the labels at a time, fit again, and count how many are found.

    Parameters
    ----------
    clf : LMSSC
        Its parameters count.
    dataset : Dataset
        The samples; of many, some are drawn.

    Returns
    -------
    dict or None
        Number of labels that were held out and found, their share, and its interval; None if none can be held out.

    Examples
    --------
    >>> from lmssc.data.dataset import validate
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.3, separation=5.0, random_state=0)
    >>> held_out_accuracy(LMSSC(), validate(data.views, data.y))["hidden"]
    18
    """
    rows = sample_rows(dataset.codes, min(dataset.n_samples, MAX_SAMPLES), 0)
    short = shortened(clf, N_ITERATIONS).set_params(calibrate=False)
    with quiet():
        found = hold_out(short, dataset.take(rows), n_folds=N_FOLDS, random_state=0)[None]
    if not len(found.rows):
        return None
    low, high = wilson(found.accuracy, len(found.rows))
    return {
        "hidden": len(found.rows),
        "found": int(found.right.sum()),
        "accuracy": round(found.accuracy, 4),
        "low": round(low, 4),
        "high": round(high, 4),
    }


class quiet(warnings.catch_warnings):  # noqa: N801 (a context manager)
    """Warnings of a fit are for those who call it; the page says what matters in its own words."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore")
