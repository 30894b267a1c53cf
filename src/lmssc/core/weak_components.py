"""Groups of samples that strong edges hold together and only weak ones tie to a label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.numerics.conjugate_gradient import conjugate_gradient
from lmssc.numerics.parallel import slices_of, threaded_map
from lmssc.numerics.sparse_ops import threaded_product

# An edge is weak if it is this small a share of the degree of one of its ends.
WEAK = 0.01
# Steps from the labelled samples along strong edges in which all others are reached, or they are told apart.
MOST_STEPS = 12
# Rows that are looked at at a time.
ROWS_AT_ONCE = 25_000


@dataclass(frozen=True)
class WeakComponents:
    """Groups without a label, and their ties: the edges by which they hang on others.

    What is wrong by the same number in a whole group shows in its ties alone. A residual that is summed over all
    samples hardly sees it, and rounding hides it; so the level of each group is solved for by itself.

    Parameters
    ----------
    members : ndarray of int
        The samples in such groups.
    group : ndarray of int
        The group of each.
    unreached : ndarray of bool
        WeakComponents that no label is tied to, not even through other groups.
    ties : csr_array of shape (groups, samples)
        Weight of the ties of each group to each sample of another.
    loose : ndarray
        Weight of the ties of each member.
    """

    members: NDArray
    group: NDArray
    unreached: NDArray
    ties: sparse.csr_array
    loose: NDArray

    @classmethod
    def of(cls, laplacian: sparse.csr_array, labelled: NDArray) -> "WeakComponents":
        """The groups of a graph.

        Examples
        --------
        >>> L = sparse.csr_array([[1e-9, -1e-9, 0, 0], [-1e-9, 1 + 1e-9, -1, 0], [0, -1, 1, 0], [0, 0, 0, 0]])
        >>> groups = WeakComponents.of(L, np.array([True, False, False, False]))
        >>> groups.members, groups.group, groups.unreached
        (array([1, 2, 3]), array([0, 0, 1]), array([False,  True]))
        """
        strong = _strong(laplacian)
        if _reach_all(laplacian, strong, labelled):
            group, n_groups = np.zeros(len(labelled), dtype=np.intp), 1
        else:
            n_groups, group = connected_components(_without_weak(laplacian, strong), connection="strong")
        free = np.ones(n_groups, dtype=bool)
        free[group[labelled]] = False
        number = np.where(free, np.cumsum(free) - 1, -1)[group]
        members = np.flatnonzero(number >= 0)
        n_free = int(free.sum())
        rows = laplacian[members]
        member = np.repeat(np.arange(len(members)), np.diff(rows.indptr))
        tie = (number[rows.indices] != number[members][member]) & (rows.data < 0)
        member, sample, weight = member[tie], rows.indices[tie], -rows.data[tie].astype(np.float64)
        ties = sparse.csr_array((weight, (number[members][member], sample)), shape=(n_free, len(labelled)))
        # The labelled groups are the last vertex.
        ends = np.where(number < 0, n_free, number)[ties.indices]
        joined = sparse.csr_array((ties.data, ends, np.append(ties.indptr, ties.nnz)), shape=(n_free + 1, n_free + 1))
        component = connected_components(joined, directed=False)[1]
        loose = np.bincount(member, weight, len(members))
        return cls(members, number[members], component[:-1] != component[-1], ties, loose)

    def unreached_samples(self, n_samples: int) -> NDArray:
        """Which of all samples no label reaches."""
        result = np.zeros(n_samples, dtype=bool)
        result[self.members[self.unreached[self.group]]] = True
        return result

    def level(self, scores: NDArray) -> None:
        """Add to each group that is reached the constant that minimises Tr(FᵀLF), all of them together.

        Examples
        --------
        >>> L = sparse.csr_array([[1e-9, -1e-9, 0], [-1e-9, 1 + 1e-9, -1], [0, -1, 1]])
        >>> F = np.array([[1.0], [0.4], [0.4]])
        >>> WeakComponents.of(L, np.array([True, False, False])).level(F)
        >>> F.ravel()
        array([1., 1., 1.])
        """
        if not len(self.members):
            return
        n_groups, n_samples = self.ties.shape
        own = sparse.csr_array((self.loose, (self.group, self.members)), shape=self.ties.shape)
        pull = (self.ties - own) @ scores.astype(np.float64)
        total = np.bincount(self.group, self.loose, n_groups)
        pull[self.unreached], total[self.unreached] = 0, 1
        # In units in which the diagonal is 1, so that a group that is tied the more weakly counts as much.
        unit = 1 / np.sqrt(total)[:, None]
        one = np.ones(len(self.members))
        membership = sparse.csr_array((one, (self.members, self.group)), shape=(n_samples, n_groups))
        adjacency = self.ties @ membership
        shift = conjugate_gradient(
            lambda rows: rows - unit * (adjacency @ (unit * rows)), unit * pull, np.zeros_like(pull), np.copy
        )
        scores[self.members] += (unit * shift)[self.group].astype(scores.dtype, copy=False)


def _strong(laplacian: sparse.csr_array) -> NDArray:
    """Which entries are edges that are not weak."""
    least = WEAK * laplacian.diagonal()
    strong = np.empty(laplacian.nnz, dtype=bool)

    def fill(rows: slice) -> None:
        starts = laplacian.indptr[rows.start : rows.stop + 1]
        entries = slice(starts[0], starts[-1])
        ends = np.maximum(np.repeat(least[rows], np.diff(starts)), least[laplacian.indices[entries]])
        np.greater(-laplacian.data[entries], ends, out=strong[entries])

    threaded_map(fill, slices_of(len(least), ROWS_AT_ONCE))
    return strong


def _reach_all(laplacian: sparse.csr_array, strong: NDArray, labelled: NDArray) -> bool:
    """Whether a few steps along strong edges lead from the labelled samples to all others: mostly they do."""
    edges = sparse.csr_array((strong.astype(np.float32), laplacian.indices, laplacian.indptr), shape=laplacian.shape)
    step, reached = threaded_product(edges), labelled
    for _ in range(MOST_STEPS):
        reached = reached | (step(reached.astype(np.float32)) > 0)
        if reached.all():
            return True
    return False


def _without_weak(laplacian: sparse.csr_array, strong: NDArray) -> sparse.csr_array:
    """The graph without its weak edges."""
    before = np.concatenate([[0], np.cumsum(strong)])[laplacian.indptr]
    # `compress` is several times faster than an index of booleans.
    entries = np.compress(strong, laplacian.data), np.compress(strong, laplacian.indices), before
    return sparse.csr_array(entries, shape=laplacian.shape)
