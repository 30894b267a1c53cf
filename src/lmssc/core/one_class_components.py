"""Components of the graph whose labels are all of one class: how much these labels say about the rest of the component.

Propagation predicts that class there, with certainty, and held-out labels cannot tell how often it is wrong: without
its only label a component is cut off. But labels elsewhere tell how often two samples agree that are as close to each
other as those of the component. One of the n labels of a class has only n − 1 to agree with, so a pair that disagrees
counts (n − 1) / n: with one label per class none can agree, however close they are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.sparse_scores import replace_rows, scale_rows
from lmssc.core.targets import Targets
from lmssc.data.memmap import memory_map, release
from lmssc.numerics.batches import gen_batches
from lmssc.numerics.sparse_ops import components_of

# Labelled samples around which agreement is measured, at least and at most, and the samples visited in all.
MIN_CENTRES, MAX_CENTRES, MAX_VISITS = 10, 200, 2_000_000
# Pairs of labels from which on their agreement counts, and how much larger other components may be that tell it.
MIN_PAIRS, MAX_SIZE_RATIO = 20, 3
# Falls of the confidence that the user is told of.
MATERIAL = 0.2
# Scores on disk that are changed at a time.
BATCH_ROWS = 1 << 18


class OneClassSamples(NamedTuple):
    """Unlabelled samples in components whose labels are all of one class, if others have labels of several.

    Attributes
    ----------
    samples : ndarray of int of shape (m,)
        The samples.
    n_labels : ndarray of int of shape (m,)
        Number of labelled samples in the component of each.
    sizes : ndarray of int of shape (m,)
        Number of samples in the component of each.
    agreement : ndarray of shape (m,), or None
        How often two labelled samples agree that are as close as those of the component, if it is known: see
        `expected_agreement`.
    """

    samples: NDArray
    n_labels: NDArray
    sizes: NDArray
    agreement: NDArray | None = None

    @classmethod
    def of(cls, graph: sparse.csr_array, targets: Targets) -> "OneClassSamples":
        """Find them.

        Examples
        --------
        >>> chain = sparse.csr_array(([1.0, 1.0, 1.0], ([0, 1, 3], [1, 2, 4])), shape=(5, 5))
        >>> OneClassSamples.of(chain, Targets.from_codes(np.array([0, -1, 1, 1, -1]), 2))
        OneClassSamples(samples=array([4]), n_labels=array([1]), sizes=array([2]), agreement=None)
        """
        n_components, component = components_of(graph)
        labelled = targets.labelled
        one_class = doubtful_components(component[labelled], targets, n_components)
        samples = np.flatnonzero(one_class[component] & ~labelled)
        own = component[samples]
        n_labels = np.bincount(component[labelled], minlength=n_components)[own]
        return cls(samples, n_labels, np.bincount(component, minlength=n_components)[own])

    def renumber(self, numbers: NDArray) -> "OneClassSamples":
        """The same samples by other numbers, in ascending order.

        Examples
        --------
        >>> OneClassSamples(np.array([0, 2]), np.array([1, 3]), np.array([5, 9])).renumber(np.array([8, 6, 7]))
        OneClassSamples(samples=array([7, 8]), n_labels=array([3, 1]), sizes=array([9, 5]), agreement=None)
        """
        renumbered = self._replace(samples=numbers[self.samples])
        return renumbered.take(np.argsort(renumbered.samples))

    def take(self, rows: NDArray | slice) -> "OneClassSamples":
        """Some of the samples.

        Examples
        --------
        >>> OneClassSamples(np.array([0, 2]), np.array([1, 3]), np.array([5, 9])).take(np.array([False, True]))
        OneClassSamples(samples=array([2]), n_labels=array([3]), sizes=array([9]), agreement=None)
        """
        return OneClassSamples(*(None if field is None else field[rows] for field in self))  # type: ignore[arg-type]


def doubtful_components(of_labels: NDArray, targets: Targets, n_components: int) -> NDArray:
    """Mark the components whose labels are all of one class; none if no other component has labels of several.

    Then all labelled samples that are close to each other agree, and there is no reason for doubt.

    Parameters
    ----------
    of_labels : ndarray of int of shape (l,)
        Component of each labelled sample.
    targets : Targets
        The labels.
    n_components : int
        Number of components.

    Returns
    -------
    ndarray of bool of shape (n_components,)

    Examples
    --------
    >>> codes = np.array([0, 1, 1, -1])
    >>> doubtful_components(np.array([0, 0, 1]), Targets.from_codes(codes, 2), n_components=3)
    array([False,  True, False])
    >>> doubtful_components(np.array([0, 1, 1]), Targets.from_codes(codes, 2), n_components=3)
    array([False, False, False])
    """
    labelled = np.flatnonzero(targets.labelled)
    pairs = np.unique(of_labels.astype(np.int64) * targets.n_classes + targets.codes[labelled])
    n_classes = np.bincount(pairs // targets.n_classes, minlength=n_components)
    # A sample whose own labels disagree stands for several classes.
    n_classes[of_labels[np.isin(labelled, targets.mixed)]] = 2
    return (n_classes == 1) & (n_classes > 1).any()


def shrink_one_class(
    scores: NDArray, graph: sparse.csr_array, targets: Targets, found: OneClassSamples | None = None
) -> tuple[NDArray, OneClassSamples]:
    """Class scores that are less certain in components whose labels are all of one class.

    A component has one class with probability π; otherwise its classes are drawn by the class frequencies q. With a the
    share of pairs of labelled samples that agree, among pairs that are as close as those of the component, and b = Σ q²
    the share that would agree by chance, π = (a − b) / (1 − b). After n labels of one class it has one class with
    probability P = π / (π + (1 − π)·bⁿ⁻¹), and the scores f of the others become P·f + (1 − P)·q.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        Class scores, not negative.
    graph : csr_array of shape (n, n)
        S.
    targets : Targets
        The labels.
    found : OneClassSamples, optional
        The samples in such components, if they are known.

    Returns
    -------
    scores : ndarray of shape (n, c)
        The same array if nothing changes. Scores on disk are changed in their file, some rows at a time.
    changed : OneClassSamples
        The samples whose confidence falls by more than 0.2.

    Examples
    --------
    >>> edges = np.arange(9), np.arange(1, 10)
    >>> chains = sparse.block_diag([sparse.csr_array((np.ones(9), edges), shape=(10, 10))] * 2, format="csr")
    >>> codes = np.full(20, -1)
    >>> codes[:10], codes[15] = [0, 1] * 5, 0
    >>> scores = np.repeat([[0.5, 0.5], [1.0, 0.0]], 10, axis=0)
    >>> shrunk, changed = shrink_one_class(scores, chains, Targets.from_codes(codes, 2))
    >>> shrunk[[0, 14]].round(2), len(changed.samples)
    (array([[0.5 , 0.5 ],
           [0.55, 0.45]]), 9)
    """
    if found is not None and memory_map(scores) is not None:
        return scores, _shrink_on_disk(scores, graph, targets, found)
    samples, shrunk, changed = shrink_some(scores, graph, targets, found)
    if not len(samples):
        return scores, changed
    if sparse.issparse(scores):
        return replace_rows(scores, samples, shrunk), changed
    result = scores.copy()
    result[samples] = shrunk
    return result, changed


def _shrink_on_disk(
    scores: NDArray, graph: sparse.csr_array, targets: Targets, found: OneClassSamples
) -> OneClassSamples:
    """Shrink scores in their file; the samples whose confidence falls by much."""
    changed = [found.take(np.arange(0))]
    for batch in gen_batches(len(found.samples), BATCH_ROWS):
        samples, shrunk, material = shrink_some(scores, graph, targets, found.take(batch))
        scores[samples] = shrunk
        release(scores)
        changed.append(material)
    samples, n_labels, sizes = (np.concatenate([part[i] for part in changed]) for i in range(3))
    return OneClassSamples(samples, n_labels, sizes)


def shrink_some(
    scores: NDArray, graph: sparse.csr_array, targets: Targets, found: OneClassSamples | None = None
) -> tuple[NDArray, NDArray, OneClassSamples]:
    """`shrink_one_class` for the samples that change alone: which, their scores, and those that change by much.

    `found` are the samples in components with one class, if they are known already.
    """
    found = OneClassSamples.of(graph, targets) if found is None else found
    agreement = found.agreement
    if agreement is None:
        agreement = _agreement(graph, targets, found.sizes) if len(found.samples) else np.ones(0)
    uncertain = agreement < 1
    found = found.take(uncertain)
    if not len(found.samples):
        return found.samples, np.empty((0, scores.shape[1])), found
    frequencies = targets.frequencies
    by_chance = float((frequencies**2).sum())
    pure = np.maximum(agreement[uncertain] - by_chance, 0) / (1 - by_chance)
    pure /= pure + (1 - pure) * by_chance ** (found.n_labels - 1.0)
    if sparse.issparse(scores):
        return _shrink_sparsely(scores, found, pure)
    own = np.maximum(scores[found.samples], 0)
    own /= own.sum(axis=1, keepdims=True)
    shrunk = pure[:, None] * own + (1 - pure[:, None]) * frequencies
    material = own.max(axis=1) - shrunk.max(axis=1) > MATERIAL
    return found.samples, shrunk, found.take(material)


def _shrink_sparsely(
    scores: sparse.csr_array, found: OneClassSamples, pure: NDArray
) -> tuple[NDArray, sparse.csr_array, OneClassSamples]:
    """`shrink_some` of sparse scores: P·f, the rest belongs to classes that are not listed."""
    own = scores[found.samples]
    material = np.asarray(own.max(axis=1).toarray()).ravel() * (1 - pure) > MATERIAL
    # Not nothing: the class that propagation predicts is still the likeliest.
    shrunk = scale_rows(own, np.maximum(pure, 1e-9))
    return found.samples, shrunk, found.take(material)


def _agreement(graph: sparse.csr_array, targets: Targets, sizes: NDArray) -> NDArray:
    """For each component size, how often two labelled samples that close agree."""
    counts = (count(graph, targets, sizes) for count in (_count_nearby, _count_within_components))
    return expected_agreement(*counts)


Pairs = tuple[NDArray, NDArray]
"""Number of agreeing pairs of labelled samples for each size of a component, and weight of all pairs."""


def expected_agreement(nearby: Pairs, within: Pairs) -> NDArray:
    """How often two labelled samples agree, for each size of a component; 1 if there are too few pairs.

    Other components of about that size tell best: as many samples in the midst of others are less pure.

    Parameters
    ----------
    nearby : tuple of ndarray
        Pairs of samples that are as close as those of a component of the size: agreeing ones, and all.
    within : tuple of ndarray
        Pairs within components that are not much larger.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> expected_agreement((np.array([40, 40]), np.array([50, 50])), (np.array([5, 20]), np.array([5, 29]))).round(2)
    array([0.8, 0.7])
    """
    result = np.ones(len(nearby[0]))
    for n_agreeing, n_pairs in (nearby, within):
        enough = n_pairs >= MIN_PAIRS
        result[enough] = ((n_agreeing + 1) / (n_pairs + 1))[enough]  # one more pair that agrees: no certainty
    result[result >= 1] = 1
    return result


def _count_within_components(graph: sparse.csr_array, targets: Targets, sizes: NDArray) -> Pairs:
    """For each size, agreeing and all ordered pairs of labelled samples of a component that is not much larger."""
    n_components, component = components_of(graph)
    return count_within(component[targets.labelled], targets, np.bincount(component, minlength=n_components), sizes)


def count_within(of_labels: NDArray, targets: Targets, extents: NDArray, sizes: NDArray) -> Pairs:
    """Ordered pairs of labelled samples of a component that is not much larger than each size: agreeing ones, and all.

    Parameters
    ----------
    of_labels : ndarray of int of shape (l,)
        Component of each labelled sample.
    targets : Targets
        The labels.
    extents : ndarray of int of shape (n_components,)
        Number of samples of each component.
    sizes : ndarray of int
        Sizes of components.

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0, 0, 1, -1]), 2)
    >>> count_within(np.array([0, 0, 0]), targets, np.array([4]), np.array([1, 3]))
    (array([0., 2.]), array([0., 3.]))
    """
    codes, n_components = targets.codes[targets.labelled], len(extents)
    weights = weights_of_disagreement(targets)
    cells, numbers = np.unique(of_labels.astype(np.int64) * targets.n_classes + codes, return_counts=True)
    owner = cells // targets.n_classes
    agreeing = np.bincount(owner, numbers * (numbers - 1), n_components)
    labels = np.bincount(owner, numbers, n_components)
    disagreeing = np.bincount(
        owner, numbers * (labels[owner] - numbers) * weights[cells % targets.n_classes], n_components
    )
    order = np.argsort(extents, kind="stable")
    last = np.searchsorted(extents[order], MAX_SIZE_RATIO * sizes, side="right")
    totals = [np.append(0, np.cumsum(part[order])) for part in (agreeing, agreeing + disagreeing)]
    return totals[0][last], totals[1][last]


def _count_nearby(graph: sparse.csr_array, targets: Targets, sizes: NDArray) -> Pairs:
    """For each size n, count pairs of a labelled sample and one of its n nearest, in steps: agreeing pairs, and all."""
    largest = int(sizes.max())
    # One byte for each edge: only which there are counts.
    edges = sparse.csr_array(((graph.data != 0).astype(np.int8), graph.indices, graph.indptr), shape=graph.shape)
    both_ways = sparse.csr_array(edges + edges.T)
    ranks, centres, others = [], [], []
    for centre in choose_centres(targets, largest):
        nearest = _nearest_by_steps(both_ways, int(centre), largest)
        found = np.flatnonzero(targets.codes[nearest] >= 0)[1:]  # the first is the centre
        ranks.append(found)
        centres.append(np.full(len(found), centre))
        others.append(nearest[found])
    return count_ranked(np.concatenate(ranks), np.concatenate(centres), np.concatenate(others), targets, sizes)


def weights_of_disagreement(targets: Targets) -> NDArray:
    """What a pair counts that disagrees, for the class of its first sample: (n − 1) / n with n labels of the class.

    Examples
    --------
    >>> weights_of_disagreement(Targets.from_codes(np.array([0, 1, 1, -1]), 2))
    array([0. , 0.5])
    """
    return 1 - 1 / np.maximum(np.bincount(targets.codes[targets.labelled], minlength=targets.n_classes), 1)


def choose_centres(targets: Targets, largest: int) -> NDArray:
    """Labelled samples around which agreement is measured, among so many samples at most; fewer if these are many.

    Examples
    --------
    >>> choose_centres(Targets.from_codes(np.array([0, -1, 1, 1]), 2), largest=3)
    array([0, 2, 3])
    """
    labelled = np.flatnonzero(targets.labelled)
    n_centres = int(np.clip(MAX_VISITS // largest, MIN_CENTRES, MAX_CENTRES))
    return labelled[np.linspace(0, len(labelled) - 1, min(n_centres, len(labelled))).astype(int)]


def count_ranked(rank: NDArray, centres: NDArray, others: NDArray, targets: Targets, sizes: NDArray) -> Pairs:
    """For each size, count pairs with a rank below it: agreeing ones, and all.

    Parameters
    ----------
    rank : ndarray of int of shape (m,)
        Place of the second sample of each pair among those nearest to the first.
    centres, others : ndarray of int of shape (m,)
        First and second sample of each pair.
    targets : Targets
        The labels.
    sizes : ndarray of int
        Sizes of components.

    Examples
    --------
    >>> targets, pairs = Targets.from_codes(np.array([0, 0, 1, 1]), 2), (np.array([0, 2, 1]), np.array([1, 3, 2]))
    >>> count_ranked(np.array([1, 3, 1]), *pairs, targets, np.array([1, 2, 4]))
    (array([0, 1, 2]), array([0. , 1.5, 2.5]))
    """
    order = np.argsort(rank, kind="stable")
    n_pairs = np.searchsorted(rank[order], sizes, side="left")
    codes = targets.codes[centres[order]]
    same = codes == targets.codes[others[order]]
    weights = np.where(same, 1.0, weights_of_disagreement(targets)[codes])
    return np.append(0, np.cumsum(same))[n_pairs], np.append(0.0, np.cumsum(weights))[n_pairs]


def _nearest_by_steps(graph: sparse.csr_array, centre: int, n: int) -> NDArray:
    """The n samples nearest to the centre in steps over the graph, with the centre itself; ties by number."""
    found = frontier = np.array([centre])
    seen = np.zeros(graph.shape[0], dtype=bool)
    while len(found) < n and len(frontier):
        seen[frontier] = True
        reached = graph[frontier].indices
        if len(reached) > graph.shape[0] // 8:  # to mark many takes less time than to sort them
            marked = np.zeros(graph.shape[0], dtype=bool)
            marked[reached] = True
            frontier = np.flatnonzero(marked & ~seen)
        else:
            reached = np.unique(reached)
            frontier = reached[~seen[reached]]
        found = np.concatenate([found, frontier])
    return found[:n]
