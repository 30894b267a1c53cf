"""Confidence of samples that are identical to a labelled one, where too few labels are repeated to know their noise."""

import numpy as np
from numpy.typing import NDArray

from lmssc.core.targets import MIN_REPEATED_LABELS, PRIOR_SHARE, Targets, fit_concentration

LOG_CONCENTRATION_STD = 1.5
"""Standard deviation of ln κ, whose mean is 0: without any repeated label, a label counts as much as what the other
labels say about its sample, and its class stays the most likely."""


def doubt_copies(
    scores: NDArray,
    targets: Targets,
    held_out: tuple[NDArray, NDArray] | None,
    nodes: NDArray,
    labelled: NDArray,
) -> NDArray:
    """Lower the confidence in nodes that have labels and samples without one, if few labels are repeated.

    A label need not be that of an identical sample. With ten repeated labels, `Targets.shrink` measures how often they
    agree. With fewer, a node with n labels gets (n·share + κ·g) / (n + κ), as there, with a normal prior of ln κ and
    the calibrated probabilities g that its sample has without its labels.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        Class scores of the nodes; those of labelled nodes are the shares of their labels.
    targets : Targets
        The labels.
    held_out : tuple of ndarray of int of shape (l,) and ndarray of shape (l, c), or None
        Nodes whose labels were held out, and their calibrated probabilities; None if they are not known.
    nodes : ndarray of int of shape (N,)
        Node of each sample.
    labelled : ndarray of bool of shape (N,)
        Which samples have a label.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> targets, known = Targets.from_codes(np.array([0, 1, -1]), 2), (np.array([0, 1]), np.full((2, 2), 0.5))
    >>> nodes, labelled = np.array([0, 1, 2, 0]), np.array([True, True, False, False])
    >>> doubt_copies(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), targets, known, nodes, labelled)
    array([[0.75, 0.25],
           [0.  , 1.  ],
           [0.5 , 0.5 ]])
    """
    node, code, numbers = targets.counts
    totals = np.bincount(node, numbers, len(targets))
    repeated = totals[node] > 1
    shared = (np.bincount(nodes[~labelled], minlength=len(targets)) > 0) & targets.labelled
    few = numbers[repeated].sum() < MIN_REPEATED_LABELS
    # Two nodes are copies of one sample if all are identical: then their labels are all that is known.
    if held_out is None or not few or not shared.any() or len(targets) < 3 or targets.trust is not None:
        return scores
    opinions = np.tile(targets.frequencies, (len(targets), 1))
    opinions[held_out[0]] = (1 - PRIOR_SHARE) * held_out[1] + PRIOR_SHARE * targets.frequencies
    own, seen, total = numbers[repeated], opinions[node[repeated], code[repeated]], totals[node[repeated]]
    concentration = fit_concentration(own, seen, total, LOG_CONCENTRATION_STD) if repeated.any() else 1.0
    result, count = scores.copy(), totals[shared, None]
    given = scores[shared] / scores[shared].sum(axis=1, keepdims=True)
    result[shared] = (count * given + concentration * opinions[shared]) / (count + concentration)
    return result
