"""Whether held-out labels are found more often than by chance, and what a fit claims if they are not."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lmssc.core.targets import Targets


@dataclass(frozen=True)
class ChanceCriteria:
    """When a fit claims more than its held-out labels support."""

    min_labels: int = 20
    """Fewer held-out labels tell nothing."""
    max_risk: float = 0.1
    """Labels are found by chance if classes drawn by their frequencies find as many with a larger probability."""
    min_excess: float = 0.02
    min_gap: float = 0.05
    """Mean confidence of unlabelled samples that needs support: beyond the share of the largest class, and beyond the
    share of held-out labels that are found."""


CRITERIA = ChanceCriteria()


class HeldOutCount(NamedTuple):
    """Number of held-out labels that were predicted, and of all; and the mean confidence of unlabelled samples."""

    n_right: int
    n_labels: int
    confidence: float


def unsupported(
    held_out: tuple[NDArray, NDArray] | None, targets: Targets, probabilities: NDArray
) -> HeldOutCount | None:
    """What held-out labels say of a fit that is confident, if it finds them no more often than chance would.

    Parameters
    ----------
    held_out : tuple of ndarray of int of shape (l,) and ndarray of shape (l, c), or None
        Samples whose labels were held out, and their probabilities without them.
    targets : Targets
        The labels.
    probabilities : ndarray of shape (n, c)
        Distributions of all samples.

    Returns
    -------
    HeldOutCount or None
        None if the labels support the fit, or if they are too few to tell.

    Examples
    --------
    >>> targets = Targets.from_codes(np.tile([0, 1, -1], 10), 2)
    >>> rows, sure = np.flatnonzero(targets.labelled), np.tile([0.9, 0.1], (30, 1))
    >>> unsupported((rows, sure[rows]), targets, sure)
    HeldOutCount(n_right=10, n_labels=20, confidence=0.9)
    >>> unsupported((rows, np.eye(2)[targets.codes[rows]]), targets, sure) is None
    True
    """
    if held_out is None or len(held_out[0]) < CRITERIA.min_labels or targets.labelled.all():
        return None
    rows, found = held_out
    n_right = int((found.argmax(axis=1) == targets.codes[rows]).sum())
    chance = float(np.square(targets.frequencies).sum())
    confidence = float(probabilities[~targets.labelled].max(axis=1).mean())
    supported = special.bdtrc(n_right - 1, len(rows), chance) <= CRITERIA.max_risk if n_right else False
    claimed = max(targets.frequencies.max() + CRITERIA.min_excess, n_right / len(rows) + CRITERIA.min_gap)
    if supported or confidence < claimed:
        return None
    return HeldOutCount(n_right, len(rows), confidence)
