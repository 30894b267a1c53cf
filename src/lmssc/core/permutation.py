"""An order of the samples, applied at the beginning of a fit and undone at its end."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.embedding import Embedding
from lmssc.core.targets import Targets
from lmssc.data.views import Views
from lmssc.numerics.batches import gen_batches

# Rows of lists that are renumbered at a time.
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Permutation:
    """Order in which a fit holds the samples, relative to the canonical order in which it is given them.

    Large fits number the samples by position in space, so that neighbours are close in memory. What is computed from
    some of the samples takes the first ones of a random order: `first` finds them in the order of the fit.

    Attributes
    ----------
    order : ndarray of int of shape (n,), or None
        Canonical index of the sample at each position; None is the identity.
    drawn : ndarray of int of shape (n,), or None
        Canonical indices of the samples in random order; None is the canonical order itself.

    Examples
    --------
    >>> permutation = Permutation(np.array([2, 0, 1]))
    >>> permutation.apply(np.array([10, 11, 12]))
    array([12, 10, 11])
    >>> permutation.undo(permutation.apply(np.array([10, 11, 12])))
    array([10, 11, 12])
    >>> permutation.first(2, of=3)  # where the canonical samples 0 and 1 are
    array([1, 2])
    >>> Permutation(np.array([2, 0, 1]), np.array([2, 1, 0])).first(2, of=3)
    array([0, 2])
    """

    order: NDArray | None = None
    drawn: NDArray | None = None

    @property
    def is_identity(self) -> bool:
        """Whether the samples keep their canonical order."""
        return self.order is None

    @cached_property
    def positions(self) -> NDArray | None:
        """Position of each canonical sample, the inverse of `order`; None for the identity."""
        return None if self.order is None else np.argsort(self.order)

    def apply(self, rows: NDArray) -> NDArray:
        """Rows in canonical order, put into the order of the fit."""
        return rows if self.order is None else rows[self.order]

    def apply_to_views(self, views: Views) -> Views:
        """The views with their samples in the order of the fit; nothing is copied."""
        return views if self.order is None else views.renumbered(self.order)

    def apply_to_targets(self, targets: Targets) -> Targets:
        """The targets in the order of the fit."""
        return targets if self.order is None else targets.take(self.order)

    def apply_to_embedding(self, embedding: Embedding) -> Embedding:
        """The embedding of the samples in the order of the fit."""
        return embedding if self.order is None else embedding.take(self.order)

    def undo(self, rows: NDArray) -> NDArray:
        """Rows in the order of the fit, put back into canonical order."""
        return rows if self.positions is None else rows[self.positions]

    def undo_targets(self, targets: Targets) -> Targets:
        """Targets in the order of the fit, put back into canonical order."""
        return targets if self.positions is None else targets.take(self.positions)

    def undo_graph(self, graph: sparse.csr_array) -> sparse.csr_array:
        """A graph of the samples in the order of the fit, with rows and columns in canonical order."""
        return graph if self.positions is None else graph[self.positions][:, self.positions].tocsr()

    def undo_lists(self, lists: NDArray) -> NDArray:
        """Lists of samples, one for each sample, with rows and numbers put back into canonical order.

        Examples
        --------
        >>> Permutation(np.array([2, 0, 1])).undo_lists(np.array([[1], [0], [0]]))
        array([[2],
               [2],
               [0]])
        """
        if self.order is None or self.positions is None:
            return lists
        numbers, result = self.order.astype(lists.dtype), np.empty_like(lists)
        for batch in gen_batches(len(lists), BATCH_ROWS):  # no second array of that size
            result[batch] = numbers[lists[self.positions[batch]]]
        return result

    def first(self, n: int, of: int) -> NDArray:
        """Positions of the first `n` of all `of` samples in random order, or of all if there are fewer."""
        samples = self.first_samples(n, of)
        return samples if self.positions is None else self.positions[samples]

    def first_samples(self, n: int, of: int) -> NDArray:
        """Canonical indices of the same samples."""
        return np.arange(min(n, of)) if self.drawn is None else self.drawn[:n]

    def shuffled(self, n: int) -> NDArray:
        """Positions of all `n` samples in random order."""
        return self.first(n, of=n)

    def shuffled_samples(self, n: int) -> NDArray:
        """Canonical indices of the same samples."""
        return self.first_samples(n, of=n)

    @property
    def random_order(self) -> NDArray | None:
        """Positions of all samples in random order; None if they are in one."""
        if self.drawn is None:
            return self.positions
        return self.drawn if self.positions is None else self.positions[self.drawn]
