"""Target distributions of the nodes: one class, or shares of several where identical samples disagree.

Identical samples are one node of the graph. Its target is the share of each class among its labels.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import xlogy

# Fewer labels of nodes with several labels are not enough to estimate how reliable labels are.
MIN_REPEATED_LABELS = 10
# Range of the concentration κ, the weight of the neighbours' scores counted in labels.
MIN_CONCENTRATION, MAX_CONCENTRATION = 1e-3, 1e3
# Trust μ in a label that is as likely right as wrong.
STIFFNESS = 0.3
# Least weight of a label in a regression.
MIN_WEIGHT = 0.01
# Share of the class frequencies in the neighbours' scores, so that no label is impossible.
PRIOR_SHARE = 0.02


@dataclass(frozen=True)
class Targets:
    """Target distributions of the nodes.

    Attributes
    ----------
    codes : ndarray of int of shape (n,)
        Most frequent class among the labels of each node, −1 where there is none.
    n_classes : int
        Number of classes c.
    mixed : ndarray of int
        Nodes whose target is not one class alone.
    shares : ndarray of shape (len(mixed), c)
        Their targets; rows sum to 1.
    counts : tuple of ndarray (nodes, classes, numbers)
        Number of labels of each class of each node, where there are any.
    trust : ndarray of shape (n,), or None
        μ: how far the label of each node is trusted, in units of the weights of its neighbours, which sum to about 1;
        ∞ is certain, and 0 does not count: see `counted`. None if all labels are certain.

    Examples
    --------
    >>> targets = Targets.from_labels(np.array([0, 0, 0, 2]), np.array([1, 1, 0, 0]), n_nodes=3, n_classes=2)
    >>> targets.codes, targets.matrix(np.dtype(float))
    (array([ 1, -1,  0]), array([[0.33333333, 0.66666667],
           [0.        , 0.        ],
           [1.        , 0.        ]]))
    """

    codes: NDArray
    n_classes: int
    mixed: NDArray
    shares: NDArray
    counts: tuple[NDArray, NDArray, NDArray]
    trust: NDArray | None = None

    # Whether the columns of the targets are classes, which may be weighed by their number of labels.
    has_classes: ClassVar[bool] = True

    @classmethod
    def from_codes(cls, codes: NDArray, n_classes: int) -> "Targets":
        """Targets of distinct samples: `codes` is the class of each, −1 without a label."""
        labelled = np.flatnonzero(codes >= 0)
        return cls.from_labels(labelled, codes[labelled], len(codes), n_classes)

    @classmethod
    def from_labels(cls, nodes: NDArray, classes: NDArray, n_nodes: int, n_classes: int, repeats: int = 1) -> "Targets":
        """Targets from the node and the class of each label; `repeats` equal labels count as one."""
        pairs, numbers = np.unique(nodes.astype(np.int64) * n_classes + classes, return_counts=True)
        numbers //= repeats
        node, code = np.divmod(pairs, n_classes)
        codes = np.full(n_nodes, -1)
        # The last assignment wins: the most frequent class, and of several the first.
        order = np.lexsort((-code, numbers))
        codes[node[order]] = code[order]
        mixed = np.flatnonzero(np.bincount(node, minlength=n_nodes) > 1)
        shares = np.zeros((len(mixed), n_classes))
        of_mixed = np.isin(node, mixed)
        shares[np.searchsorted(mixed, node[of_mixed]), code[of_mixed]] = numbers[of_mixed]
        shares /= shares.sum(axis=1, keepdims=True)
        return cls(codes, n_classes, mixed, shares, (node, code, numbers))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def labelled(self) -> NDArray:
        """Which nodes have a label."""
        return self.codes >= 0

    @property
    def n_labelled(self) -> int:
        """Number of nodes with a label."""
        return int(np.count_nonzero(self.labelled))

    def matrix(self, dtype: np.dtype) -> NDArray:
        """Y: the target of each node; zeros without a label."""
        result = (self.codes[:, None] == np.arange(self.n_classes)).astype(dtype)
        result[self.mixed] = self.shares
        return result

    @cached_property
    def frequencies(self) -> NDArray:
        """Share of each class among all labels."""
        _, classes, numbers = self.counts
        return np.bincount(classes, numbers, self.n_classes) / numbers.sum()

    def take(self, nodes: NDArray) -> "Targets":
        """Targets of some nodes, or of all in another order."""
        position = np.full(len(self), -1)
        position[nodes] = np.arange(len(nodes))
        node, code, numbers = self.counts
        kept = position[node] >= 0
        mixed = position[self.mixed]
        order = np.argsort(mixed, kind="stable")[np.count_nonzero(mixed < 0) :]
        return replace(
            self,
            codes=self.codes[nodes],
            mixed=mixed[order],
            shares=self.shares[order],
            counts=(position[node[kept]], code[kept], numbers[kept]),
            trust=None if self.trust is None else self.trust[nodes],
        )

    def without_labels(self, nodes: NDArray) -> "Targets":
        """The targets without the labels of some nodes."""
        codes = self.codes.copy()
        codes[nodes] = -1
        node, code, numbers = self.counts
        kept, still = codes[node] >= 0, codes[self.mixed] >= 0
        return Targets(
            codes,
            self.n_classes,
            self.mixed[still],
            self.shares[still],
            (node[kept], code[kept], numbers[kept]),
            self.trust,
        )

    @property
    def counted(self) -> "Targets":
        """The targets without the labels that have no trust at all, as if these had never been given.

        Examples
        --------
        >>> targets = Targets.from_codes(np.array([0, 1, 1, -1]), 2)
        >>> left = replace(targets, trust=np.array([np.inf, 0.0, np.inf, np.inf])).counted
        >>> left.codes, left.frequencies, left.trust
        (array([ 0, -1,  1, -1]), array([0.5, 0.5]), None)
        """
        if self.trust is None:
            return self
        left = self.without_labels(np.flatnonzero(self.trust == 0))
        return left if len(left.uncertain) else replace(left, trust=None)

    def with_uncounted(self, given: "Targets") -> "Targets":
        """The targets with the labels of `given` that they lack, which have no trust: `counted` takes them off again.

        Examples
        --------
        >>> given = Targets.from_codes(np.array([0, 1, 1, -1]), 2)
        >>> found = given.without_labels(np.array([1])).with_uncounted(given)
        >>> found.codes, found.trust
        (array([ 0,  1,  1, -1]), array([inf,  0., inf, inf]))
        """
        lost = given.labelled & ~self.labelled
        if not lost.any():
            return self
        again = lost[given.mixed]
        mixed = np.concatenate([self.mixed, given.mixed[again]])
        shares, order = np.concatenate([self.shares, given.shares[again]]), np.argsort(mixed)
        trust = np.where(lost, 0.0, np.inf if self.trust is None else self.trust)
        codes = np.where(lost, given.codes, self.codes)
        return Targets(codes, self.n_classes, mixed[order], shares[order], given.counts, trust)

    def with_trust_of(self, found: "Targets") -> "Targets":
        """These labels with the trust that `found` has in them, without those that do not count there."""
        counted = found.counted
        lost = np.flatnonzero(self.labelled & ~counted.labelled)
        left = self.without_labels(lost) if len(lost) else self
        return left if left.trust is counted.trust else replace(left, trust=counted.trust)

    def soften(self, nodes: NDArray, shares: NDArray) -> "Targets":
        """The targets with labels that are distributions: of `nodes`, one row of `shares` for each label.

        Examples
        --------
        >>> targets = Targets.from_codes(np.array([0, 1, -1]), 2)
        >>> targets.soften(np.array([0, 1]), np.array([[0.7, 0.3], [0.0, 1.0]])).matrix(np.dtype(float))
        array([[0.7, 0.3],
               [0. , 1. ],
               [0. , 0. ]])
        """
        sums = np.zeros((len(self), self.n_classes))
        np.add.at(sums, nodes, shares)
        mixed = np.flatnonzero((sums > 0).sum(axis=1) > 1)
        own = sums[mixed] / sums[mixed].sum(axis=1, keepdims=True)
        return replace(self, codes=self._with_codes(mixed, own), mixed=mixed, shares=own)

    def doubt(self, nodes: NDArray, probability: NDArray) -> "Targets":
        """The targets with labels that are right with some probability, one for each of `nodes`.

        Examples
        --------
        >>> Targets.from_codes(np.array([0, 1, -1]), 2).doubt(np.array([0, 1]), np.array([0.5, 1.0])).trust
        array([0.3, inf, inf])
        """
        best = np.zeros(len(self))
        np.maximum.at(best, nodes, probability)
        best[~self.labelled] = 1
        with np.errstate(divide="ignore"):
            return replace(self, trust=STIFFNESS * best / (1 - best))

    @property
    def weights(self) -> NDArray:
        """Weight of each label in a regression: the probability that it is right, at least 1 %; 1 if it is certain."""
        if self.trust is None:
            return np.ones(len(self))
        with np.errstate(invalid="ignore"):
            right = np.where(np.isinf(self.trust), 1.0, self.trust / (self.trust + STIFFNESS))
        return np.maximum(right, MIN_WEIGHT)

    @property
    def certain_labels(self) -> NDArray:
        """Which nodes have a label that nothing can overrule."""
        return self.labelled if self.trust is None else self.labelled & np.isinf(self.trust)

    @property
    def uncertain(self) -> NDArray:
        """Nodes whose label is not certain, so that their neighbours can overrule it."""
        if self.trust is None:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(self.labelled & np.isfinite(self.trust))

    def with_label_nodes(self, labels: NDArray) -> "Targets":
        """The targets with one more node for each of `labels`, which has its label for certain instead of it."""
        nodes = np.concatenate([np.arange(len(self)), labels])
        position = np.arange(len(self))
        position[labels] = len(self) + np.arange(len(labels))
        codes = self.codes[nodes]
        codes[labels] = -1
        node, code, numbers = self.counts
        return Targets(codes, self.n_classes, position[self.mixed], self.shares, (position[node], code, numbers))

    def shrink(self, opinions: NDArray) -> "Targets":
        """Shrink the label shares towards the scores of the neighbours, where labels of identical samples disagree.

        Labels of a node are draws from its true distribution, which has a Dirichlet prior around the scores g of its
        neighbours. So a node with n labels has the target (n·share + κ·g) / (n + κ). The concentration κ maximises the
        leave-one-out likelihood of the labels. Without disagreement, or with too few repeated labels to estimate κ,
        the targets do not change.

        Parameters
        ----------
        opinions : ndarray of shape (n, c)
            Scores g of the neighbours of each node; rows sum to 1.

        Returns
        -------
        Targets

        Examples
        --------
        >>> nodes = np.repeat(np.arange(20), 4)
        >>> targets = Targets.from_labels(nodes, np.tile([0, 0, 0, 1], 20), n_nodes=20, n_classes=2)
        >>> targets.shrink(np.full((20, 2), [0.7, 0.3])).shares[0].round(2)
        array([0.7, 0.3])
        """
        if not len(self.mixed):
            return self
        node, code, numbers = self.counts
        totals = np.bincount(node, numbers, len(self))
        repeated = totals[node] > 1
        if numbers[repeated].sum() < MIN_REPEATED_LABELS:
            return self
        opinions = (1 - PRIOR_SHARE) * opinions + PRIOR_SHARE * self.frequencies
        own, seen, total = numbers[repeated], opinions[node[repeated], code[repeated]], totals[node[repeated]]
        concentration = fit_concentration(own, seen, total)
        labelled = np.flatnonzero(totals)
        shares = self.matrix(np.dtype(float))[labelled] * totals[labelled, None] + concentration * opinions[labelled]
        shares /= shares.sum(axis=1, keepdims=True)
        return replace(self, codes=self._with_codes(labelled, shares), mixed=labelled, shares=shares)

    def _with_codes(self, nodes: NDArray, shares: NDArray) -> NDArray:
        codes = self.codes.copy()
        codes[nodes] = shares.argmax(axis=1)
        return codes


def fit_concentration(own: NDArray, seen: NDArray, total: NDArray, log_std: float = np.inf) -> float:
    """The κ with the largest leave-one-out likelihood of repeated labels, with a normal prior of ln κ around 0.

    Parameters
    ----------
    own, total : ndarray of shape (m,)
        Labels of one class of a node, and all its labels.
    seen : ndarray of shape (m,)
        Probability of this class without the labels of the node.
    log_std : float
        Standard deviation of the prior; infinite for none.

    Examples
    --------
    >>> own, seen, total = np.array([3.0, 1.0]), np.array([0.7, 0.3]), np.array([4.0, 4.0])
    >>> fit_concentration(own, seen, total) > fit_concentration(own, seen, total, log_std=1.0)
    True
    """

    def loss(log_concentration: float) -> float:
        concentration = np.exp(log_concentration)
        likelihood = xlogy(own, (own - 1 + concentration * seen) / (total - 1 + concentration)).sum()
        return float(log_concentration**2 / (2 * log_std**2) - likelihood)

    bounds = np.log([MIN_CONCENTRATION, MAX_CONCENTRATION])
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
