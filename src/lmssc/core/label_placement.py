"""Whether labelled samples lie among themselves, as no random sample of the data would."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.numerics.batches import gen_batches

BATCH_ROWS = 65_536
"""Rows of the graph that are looked at together."""


@dataclass(frozen=True)
class PlacementCriteria:
    """When labelled samples are no random sample."""

    min_labels: int = 20
    """Fewer labelled samples tell nothing."""
    min_excess: float = 0.3
    """Labelled neighbours beyond those expected, as a share of all neighbours that are expected to have no label.
    Random labels had at most 0.08, or 0.14 if classes have unequal shares of labels; samples that a fit asked for 0.26,
    and 0.49 on Sonar, where it was too sure."""
    min_deviations: float = 5.0
    """Standard deviations between the labelled neighbours and those expected."""


CRITERIA = PlacementCriteria()


@dataclass(frozen=True)
class LabelPlacement:
    """How many neighbours of labelled samples have a label.

    Attributes
    ----------
    share : float
        Share of the neighbours of labelled samples that have a label.
    expected : float
        The same if the labelled samples of each class were drawn at random.
    deviations : float
        Difference in standard deviations.
    n_labelled : int
        Number of labelled samples.
    """

    share: float
    expected: float
    deviations: float
    n_labelled: int

    @property
    def excess(self) -> float:
        """What labelled neighbours exceed their expected number by, relative to the most that they could."""
        return (self.share - self.expected) / (1 - self.expected) if self.expected < 1 else 0.0

    @property
    def is_random(self) -> bool:
        """Whether the labelled samples can be a random sample, or are too few to tell."""
        few = self.n_labelled < CRITERIA.min_labels
        return few or self.excess < CRITERIA.min_excess or self.deviations < CRITERIA.min_deviations


def place_labels(graph: sparse.csr_array, labelled: NDArray, classes: NDArray) -> LabelPlacement:
    """Compare the labelled neighbours of labelled samples with those of samples drawn at random within the classes.

    With a_i = 1 for labelled samples and 0 for others, the statistic is Σ s_ij·a_i·a_j. Its variance is that of a_i
    with means p_i, the labelled share of the class, and the given number of labels in each class: with v = p(1 − p),
    Σ v_i·(g_i − mean of g in the class)² + Σ s_ij(s_ij + s_ji)·v_i·v_j, g = (S + Sᵀ)p. The last sum is taken at its
    largest, s_ji = s_ij.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        S that no label has a part in; rows sum to 1.
    labelled : ndarray of bool of shape (n,)
        Which samples have a label.
    classes : ndarray of int of shape (n,)
        Predicted classes.

    Returns
    -------
    LabelPlacement

    Examples
    --------
    Neighbours on a line, of which the first half or every second has a label:

    >>> line = np.eye(80, k=1) + np.eye(80, k=-1)
    >>> graph, one_class = sparse.csr_array(line / line.sum(axis=1, keepdims=True)), np.zeros(80, dtype=int)
    >>> first = place_labels(graph, np.arange(80) < 40, one_class)
    >>> round(first.share, 2), round(first.expected, 2), first.is_random
    (0.99, 0.49, False)
    >>> place_labels(graph, np.arange(80) % 2 == 0, one_class).is_random
    True
    """
    n_labelled = int(np.count_nonzero(labelled))
    if not n_labelled:
        return LabelPlacement(0.0, 0.0, 0.0, 0)
    members = np.bincount(classes)
    drawn = np.bincount(classes[labelled], minlength=len(members))
    share = (drawn / np.maximum(members, 1))[classes]
    # Of the others in its class if one sample has a label.
    share_of_others = (np.maximum(drawn - 1, 0) / np.maximum(members - 1, 1))[classes]
    variance = share * (1 - share)
    observed = expected = of_pairs = 0.0
    pull = np.zeros(len(classes))
    for batch in gen_batches(len(classes), BATCH_ROWS):  # the arrays below are as large as the graph
        part = graph[batch].tocoo()
        rows, columns, weights = part.row + batch.start, part.col, part.data.astype(np.float64)
        observed += weights[labelled[rows] & labelled[columns]].sum()
        same = classes[rows] == classes[columns]
        expected += (weights * share[rows] * np.where(same, share_of_others[columns], share[columns])).sum()
        of_pairs += 2 * (weights**2 * variance[rows] * variance[columns]).sum()
        pull += np.bincount(rows, weights * share[columns], len(classes))
        pull += np.bincount(columns, weights * share[rows], len(classes))
    pull -= (np.bincount(classes, pull) / np.maximum(members, 1))[classes]
    total = (variance * pull**2).sum() + of_pairs
    deviations = float((observed - expected) / np.sqrt(total)) if total > 0 else 0.0
    return LabelPlacement(float(observed / n_labelled), float(expected / n_labelled), deviations, n_labelled)
