"""A warning where a scorer of scikit-learn counts unlabelled samples, all of which it takes for wrong."""

import inspect
import warnings

import numpy as np

from lmssc.data.labels import known_labels

# Callers that are looked at.
MAX_DEPTH = 12
# What a scorer of scikit-learn calls the labels that it compares answers with.
TRUTH = "y_true"


def warn_of_scored_unlabelled() -> None:
    """Warn if a scorer of scikit-learn is asking for answers, and has unlabelled samples among its labels.

    An estimator does not see the labels that its answers are compared with. The scorer that called it does, and has
    them in a variable; where a later scikit-learn has them elsewhere, there is no warning.

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
        warnings.warn(
            f"y has {int(np.count_nonzero(~known))} unlabelled samples, and the scorer counts each of them as wrong: "
            "use scoring=lmssc.model_selection.labelled_scorer('accuracy'), or LabelledKFold",
            UserWarning,
            stacklevel=3,
        )
