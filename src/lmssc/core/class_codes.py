"""Very many classes as points in a few hundred dimensions: only distances between label distributions count in J."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.targets import Targets
from lmssc.data.canonical_order import splitmix64

# Dimensions of the codes: squared distances between distributions are off by about √(2/256) = 9 %.
N_DIMENSIONS = 256


def class_codes(n_classes: int) -> NDArray:
    """A code of length 1 for each class, with signs that are as good as random, so that all are nearly orthogonal.

    Examples
    --------
    >>> codes = class_codes(1000)
    >>> codes.shape, float((codes[0] ** 2).sum()), bool(abs(codes[0] @ codes[1:].T).max() < 0.3)
    ((1000, 256), 1.0, True)
    """
    n_words = N_DIMENSIONS // 64
    words = splitmix64(splitmix64(np.arange(n_classes * n_words, dtype=np.uint64)))
    bits = np.unpackbits(words.view(np.uint8)).reshape(n_classes, N_DIMENSIONS)
    return (1 - 2 * bits.astype(np.float32)) / np.float32(np.sqrt(N_DIMENSIONS))


@dataclass(frozen=True)
class CodedTargets(Targets):
    """Targets whose classes are codes: the target of a labelled node is the mean code of its labels.

    The columns are dimensions, not classes, so that none of them counts more than another.
    """

    has_classes: ClassVar[bool] = False

    @classmethod
    def of(cls, targets: Targets) -> "CodedTargets":
        """The targets with coded classes.

        Examples
        --------
        >>> coded = CodedTargets.of(Targets.from_codes(np.array([0, 1, -1]), 2))
        >>> coded.matrix(np.dtype(float)).shape, coded.labelled
        ((3, 256), array([ True,  True, False]))
        """
        labelled = np.flatnonzero(targets.labelled)
        shares = label_matrix(targets)[labelled] @ class_codes(targets.n_classes)
        numbers = np.bincount(targets.counts[0], targets.counts[2], len(targets))[labelled].astype(np.intp)
        counts = (labelled, np.zeros(len(labelled), dtype=np.intp), np.maximum(numbers, 1))
        codes = np.where(targets.labelled, 0, -1)
        return cls(codes, shares.shape[1], labelled, shares, counts, targets.trust)

    @cached_property
    def frequencies(self) -> NDArray:
        """Mean code of all labels."""
        return np.average(self.shares, axis=0, weights=self.counts[2])

    def shrink(self, opinions: NDArray) -> "CodedTargets":
        """The same: disagreement of identical samples is not judged among so many classes."""
        return self


def label_matrix(targets: Targets) -> sparse.csr_array:
    """Y as a sparse matrix; rows without a label are empty.

    Examples
    --------
    >>> label_matrix(Targets.from_codes(np.array([1, -1, 0]), 2)).toarray()
    array([[0., 1.],
           [0., 0.],
           [1., 0.]])
    """
    single = targets.labelled.copy()
    single[targets.mixed] = False
    rows = np.flatnonzero(single)
    mixed = sparse.coo_array(targets.shares)
    data = np.concatenate([np.ones(len(rows)), mixed.data])
    places = (
        np.concatenate([rows, targets.mixed[mixed.row]]),
        np.concatenate([targets.codes[rows], mixed.col]),
    )
    return sparse.csr_array((data, places), shape=(len(targets), targets.n_classes))
