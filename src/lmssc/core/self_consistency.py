"""Confidence with next to no labels: do the answers come back if some of them are taken for the labels?"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lmssc.core.targets import Targets

MIN_LABELS_PER_CLASS = 3
"""With at least this many labels per class on average, held-out labels alone calibrate the confidence."""
MAX_DRAWS = 3
"""Sets of labels that are drawn from the answers, at most."""
MAX_DRAWN_LABELS = 600
"""No further set is drawn after this many labels: it would tell no more, and with so many classes it takes long."""
WEIGHT = 200.0
"""What all answers that come back, or do not, count together, in labels."""
SHARED_ERRORS = 0.4
"""Answers that come back are wrong in this multiple of the share that does not: errors come back, too."""


def has_few_labels(targets: Targets) -> bool:
    """Whether labels are so few that the held-out ones alone cannot calibrate.

    Examples
    --------
    >>> has_few_labels(Targets.from_codes(np.array([0, 1, 1, -1]), 2))
    True
    """
    return targets.n_labelled < MIN_LABELS_PER_CLASS * targets.n_classes


def draw_labels(answers: NDArray, targets: Targets, order: NDArray) -> Iterator[Targets]:
    """Labels that are answers: of each class as many as it has labels, of other samples.

    Parameters
    ----------
    answers : ndarray of int of shape (n,)
        Likeliest class of each sample.
    targets : Targets
        The labels.
    order : ndarray of int of shape (n,)
        The samples in random order.

    Yields
    ------
    Targets

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0, 1, -1, -1, -1, -1]), 2)
    >>> [drawn.codes.tolist() for drawn in draw_labels(np.array([0, 1, 0, 1, 0, 1]), targets, np.arange(6))][:2]
    [[-1, -1, 0, 1, -1, -1], [-1, -1, -1, -1, 0, 1]]
    """
    numbers = np.bincount(targets.codes[targets.labelled], minlength=targets.n_classes)
    n_draws = min(MAX_DRAWS, -(-MAX_DRAWN_LABELS // max(1, targets.n_labelled)))
    shuffled, known = answers[order], targets.codes[order]
    for draw in range(n_draws):
        codes = np.full(len(targets), -1)
        for code, number in enumerate(numbers):
            members = order[(shuffled == code) & (known < 0)]
            if len(members) < number:
                members = order[shuffled == code]
            if not len(members):
                members = order[known == code]
            codes[np.roll(members, -draw * number)[:number]] = code
        yield Targets.from_codes(codes, targets.n_classes)


def expected_classes(scores: NDArray, answers: NDArray) -> NDArray:
    """Classes that samples are taken to have, as distributions: mostly their answers.

    If a share a of the answers comes back, those that do are still wrong with probability 0.4·(1 − a).

    Parameters
    ----------
    scores : ndarray of shape (m, c)
        Scores of samples from labels that are answers.
    answers : ndarray of int of shape (m,)
        Their answers.

    Returns
    -------
    ndarray of shape (m, c)
        Rows sum to 1.

    Examples
    --------
    >>> expected_classes(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]))
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    n_classes = scores.shape[1]
    back = scores.argmax(axis=1) == answers
    wrong = SHARED_ERRORS * (1 - float(back.mean()))
    result = np.eye(n_classes)[answers]
    others = np.maximum(scores, 0) * (1 - result)
    total = others.sum(axis=1, keepdims=True)
    others = np.where(total > 0, others / np.where(total > 0, total, 1), (1 - result) / (n_classes - 1))
    return np.where(back[:, None], (1 - wrong) * result + wrong * others, result)
