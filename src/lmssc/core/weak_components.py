"""Components of the graph without a label that only weak edges tie to the rest."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.conjugate_gradient import conjugate_gradient
from lmssc.numerics.parallel import threaded_map
from lmssc.numerics.sparse_ops import threaded_product

# An edge is weak if its weight is below this share of the degree of one of its ends.
WEAK_EDGE = 0.01
# If this many steps along strong edges lead from the labelled samples to all others, there are no weak components.
MAX_STEPS = 12
BATCH_ROWS = 25_000
# Among fewer edges, building a sparse matrix takes longer than the products with it.
MAX_SMALL_EDGES = 200_000


@dataclass(frozen=True)
class WeakComponents:
    """Components without a label in the graph of the strong edges, and the weak edges that leave them.

    An error that is the same for a whole component shows only at its weak edges. The residual of a solver, a sum over
    all samples, hardly sees it, and rounding hides it; so the mean of each component is solved for separately.

    Attributes
    ----------
    members : ndarray of int of shape (m,)
        Samples in such components.
    component : ndarray of int of shape (m,)
        Component of each member.
    unreached : ndarray of bool of shape (n_components,)
        Components that no path leads from to a label.
    outgoing : csr_array of shape (n_components, n)
        Weight of the edges from each component to each sample outside of it.
    outgoing_degree : ndarray of shape (m,)
        Weight of the edges that leave the component at each member.
    """

    members: NDArray
    component: NDArray
    unreached: NDArray
    outgoing: sparse.csr_array
    outgoing_degree: NDArray

    @classmethod
    def of(cls, laplacian: sparse.csr_array, labelled: NDArray) -> "WeakComponents":
        """The weak components of the graph with this Laplacian, if these samples are labelled.

        Examples
        --------
        >>> L = sparse.csr_array([[1e-9, -1e-9, 0, 0], [-1e-9, 1 + 1e-9, -1, 0], [0, -1, 1, 0], [0, 0, 0, 0]])
        >>> found = WeakComponents.of(L, np.array([True, False, False, False]))
        >>> found.members, found.component, found.unreached
        (array([1, 2, 3]), array([0, 0, 1]), array([False,  True]))
        """
        strong = _strong_edges(laplacian)
        if _reach_all(laplacian, strong, labelled):
            nothing = np.empty(0, dtype=np.intp)
            return cls(nothing, nothing, np.empty(0, bool), sparse.csr_array((0, len(labelled))), np.empty(0))
        n_components, component = connected_components(_select_edges(laplacian, strong), connection="strong")
        unlabelled = np.ones(n_components, dtype=bool)
        unlabelled[component[labelled]] = False
        number = np.where(unlabelled, np.cumsum(unlabelled) - 1, -1)[component]
        members = np.flatnonzero(number >= 0)
        n_weak = int(unlabelled.sum())
        rows = laplacian[members]
        member = np.repeat(np.arange(len(members)), np.diff(rows.indptr))
        leaves = (number[rows.indices] != number[members][member]) & (rows.data < 0)
        member, sample, weight = member[leaves], rows.indices[leaves], -rows.data[leaves].astype(np.float64)
        outgoing = sparse.csr_array((weight, (number[members][member], sample)), shape=(n_weak, len(labelled)))
        # All components with a label are one more vertex, the last.
        ends = np.where(number < 0, n_weak, number)[outgoing.indices]
        shape = (n_weak + 1, n_weak + 1)
        joined = sparse.csr_array((outgoing.data, ends, np.append(outgoing.indptr, outgoing.nnz)), shape=shape)
        joint = connected_components(joined, directed=False)[1]
        degree = np.bincount(member, weight, len(members))
        return cls(members, number[members], joint[:-1] != joint[-1], outgoing, degree)

    def unreached_samples(self, n_samples: int) -> NDArray:
        """Which of all samples no path joins to a label."""
        result = np.zeros(n_samples, dtype=bool)
        result[self.members[self.unreached[self.component]]] = True
        return result

    def correct_component_means(self, scores: NDArray) -> None:
        """Add, in place, to each component that a label reaches the constant that minimises Tr(FᵀLF), all jointly.

        Examples
        --------
        >>> L = sparse.csr_array([[1e-9, -1e-9, 0], [-1e-9, 1 + 1e-9, -1], [0, -1, 1]])
        >>> F = np.array([[1.0], [0.4], [0.4]])
        >>> WeakComponents.of(L, np.array([True, False, False])).correct_component_means(F)
        >>> F.ravel()
        array([1., 1., 1.])
        """
        if not len(self.members):
            return
        n_components, n_samples = self.outgoing.shape
        own = sparse.csr_array((self.outgoing_degree, (self.component, self.members)), shape=self.outgoing.shape)
        rhs = (self.outgoing - own) @ scores.astype(np.float64)
        degree = np.bincount(self.component, self.outgoing_degree, n_components)
        rhs[self.unreached], degree[self.unreached] = 0, 1
        # Scaled to a unit diagonal, so that the most weakly tied component counts as much as any other.
        unit = 1 / np.sqrt(degree)[:, None]
        one = np.ones(len(self.members))
        membership = sparse.csr_array((one, (self.members, self.component)), shape=(n_samples, n_components))
        adjacency = self.outgoing @ membership
        shift = conjugate_gradient(
            lambda rows: rows - unit * (adjacency @ (unit * rows)), unit * rhs, np.zeros_like(rhs), np.copy
        )
        scores[self.members] += (unit * shift)[self.component].astype(scores.dtype, copy=False)


def _strong_edges(laplacian: sparse.csr_array) -> NDArray:
    """Which stored entries are edges that are not weak."""
    least = WEAK_EDGE * laplacian.diagonal()
    strong = np.empty(laplacian.nnz, dtype=bool)

    def fill(rows: slice) -> None:
        starts = laplacian.indptr[rows.start : rows.stop + 1]
        entries = slice(starts[0], starts[-1])
        ends = np.maximum(np.repeat(least[rows], np.diff(starts)), least[laplacian.indices[entries]])
        np.greater(-laplacian.data[entries], ends, out=strong[entries])

    threaded_map(fill, gen_batches(len(least), BATCH_ROWS))
    return strong


def _reach_all(laplacian: sparse.csr_array, strong: NDArray, labelled: NDArray) -> bool:
    """Whether `MAX_STEPS` steps along strong edges lead from the labelled samples to all others: usually they do."""
    step, reached = _steps(laplacian, strong), labelled
    for _ in range(MAX_STEPS):
        reached = reached | step(reached)
        if reached.all():
            return True
    return False


def _steps(laplacian: sparse.csr_array, strong: NDArray) -> Callable[[NDArray], NDArray]:
    """The function that maps some samples to those that a strong edge joins to one of them."""
    starts = laplacian.indptr
    if laplacian.nnz <= MAX_SMALL_EDGES and (starts[1:] > starts[:-1]).all():
        return lambda reached: np.logical_or.reduceat(strong & reached[laplacian.indices], starts[:-1])
    edges = sparse.csr_array((strong.astype(np.float32), laplacian.indices, starts), shape=laplacian.shape)
    product = threaded_product(edges)
    return lambda reached: product(reached.astype(np.float32)) > 0


def _select_edges(laplacian: sparse.csr_array, selected: NDArray) -> sparse.csr_array:
    """The graph of some of the stored entries."""
    before = np.concatenate([[0], np.cumsum(selected)])[laplacian.indptr]
    # `compress` is several times faster than indexing by booleans.
    entries = np.compress(selected, laplacian.data), np.compress(selected, laplacian.indices), before
    return sparse.csr_array(entries, shape=laplacian.shape)
