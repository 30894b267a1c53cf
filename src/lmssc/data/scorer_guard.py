"""A warning if a scorer of scikit-learn scores unlabelled samples, which it counts as wrong."""

import inspect
import warnings

import numpy as np

from lmssc.data.labels import known_labels
from lmssc.data.warn_caller import warn_caller

# Stack frames that are searched.
MAX_DEPTH = 12
# Name of the variable with the true labels in scorers of scikit-learn.
TRUTH = "y_true"


def warn_of_scored_unlabelled() -> None:
    """Warn if the caller is a scorer of scikit-learn whose true labels include unlabelled samples.

    An estimator does not see the true labels, but the scorer that calls it has them in a local variable. If a later
    scikit-learn stores them elsewhere, there is no warning.

    Examples
    --------
    >>> warn_of_scored_unlabelled()  # nobody is scoring
    """
    frame = inspect.currentframe()
    for _ in range(MAX_DEPTH):
        frame = None if frame is None else frame.f_back
        if frame is None:
            return
        if str(frame.f_globals.get("__name__")).startswith("sklearn.metrics") and TRUTH in frame.f_locals:
            break
    else:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = known_labels(frame.f_locals[TRUTH])[1]
    except (TypeError, ValueError):
        return
    if not known.all():
        warn_caller(
            f"y has {int(np.count_nonzero(~known))} unlabelled samples, and the scorer counts each of them as wrong: "
            "use scoring=lmssc.model_selection.labelled_scorer('accuracy'), or LabelledKFold",
        )
