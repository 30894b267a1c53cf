"""How much the links of a graph say about the samples, and whether their weights say more than the links alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.laplacian import symmetrise
from lmssc.core.links import mean_over_links, normalise_degrees, without_weights
from lmssc.core.targets import Targets


@dataclass(frozen=True)
class EvidenceLimits:
    """When links count as more than chance, and their weights as more than the links."""

    n_shifts: int = 16
    """Times that samples and links are paired at random, to see what chance gives."""
    min_noise_ratio: float = 3.0
    min_assortativity: float = 0.01
    """Least similarity along links that counts: as a multiple of its root mean square by chance, and from 0 (chance)
    to 1."""
    label_deviations: float = 3.0
    """Standard deviations by which the agreement of labels along links must exceed chance."""
    min_gain: float = 0.05
    """Share by which the correlation with linked samples must rise for links to be tried without their weights."""
    n_components: int = 20
    """Leading components of Z that are compared."""
    min_share_across: float = 0.25
    """Links between labelled and unlabelled samples, as a share of those expected by chance, below which a graph says
    nothing about unlabelled samples."""
    min_links_across: float = 10.0
    """Such links that must be expected, for their number to tell anything."""
    dense_share: float = 0.5
    """Share of all pairs that are linked, above which links that say nothing are called dense."""


EVIDENCE = EvidenceLimits()


def weigh_graphs(graphs: Sequence[sparse.csr_array], embedded: NDArray, targets: Targets) -> NDArray:
    """How much each graph says about the samples: their similarity along its links, or the agreement of their labels.

    Similarity is Moran's I of Z, 0 by chance and at most 1. What chance gives is measured by moving the samples along
    in their canonical order, which is as good as random. A graph that is not above chance counts by its labels, if
    they agree along its links more often than chance; else it says nothing. Neither does a graph that links labelled
    samples among themselves (`reaches_unlabelled`).

    Parameters
    ----------
    graphs : sequence of csr_array of shape (n, n)
        The links.
    embedded : ndarray of shape (n, r)
        Z, in canonical order.
    targets : Targets
        The labels.

    Returns
    -------
    ndarray of shape (G,)
        From 0 to 1; 0 for a graph that says nothing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = np.repeat(rng.normal(size=(2, 3)), 30, axis=0)[rng.permutation(60)]
    >>> alike = sparse.csr_array((np.abs(Z[:, None] - Z).sum(axis=2) < 0.1) & (rng.random((60, 60)) < 0.2), dtype=float)
    >>> anyone = sparse.csr_array(rng.random((60, 60)) < 0.1, dtype=float)
    >>> weigh_graphs([alike, anyone], Z, Targets.from_codes(np.full(60, -1), 2)).round(1)
    array([1., 0.])
    """
    leading = embedded[:, : EVIDENCE.n_components]
    return np.array([_strength(normalise_degrees(graph.astype(np.float64)), leading, targets) for graph in graphs])


def _strength(affinity: sparse.csr_array, embedded: NDArray, targets: Targets) -> float:
    if not affinity.nnz or not reaches_unlabelled(affinity, targets):
        return 0.0
    found = assortativity(affinity, embedded)
    n_samples = len(embedded)
    shifts = np.unique(np.arange(1, EVIDENCE.n_shifts + 1) * n_samples // (EVIDENCE.n_shifts + 1))
    by_chance = [assortativity(affinity, np.roll(embedded, shift, axis=0)) for shift in shifts if 0 < shift < n_samples]
    noise = float(np.sqrt(np.mean(np.square(by_chance)))) if by_chance else 1.0
    if found >= max(EVIDENCE.min_noise_ratio * noise, EVIDENCE.min_assortativity):
        return found
    return label_assortativity(affinity, targets)


class Unused(StrEnum):
    """Why the links of a graph are not used."""

    EMPTY = "empty"
    FROM_LABELS = "from labels"
    DENSE = "dense"
    CHANCE = "chance"
    HARMFUL = "harmful"


def why_unused(links: sparse.csr_array, targets: Targets, *, harmful: bool) -> Unused:
    """Why the links of a graph are not used; `harmful` if held-out labels are found better without them.

    Examples
    --------
    >>> everyone = sparse.csr_array(np.ones((4, 4)) - np.eye(4))
    >>> targets = Targets.from_codes(np.array([0, 1, -1, -1]), 2)
    >>> [why_unused(links, targets, harmful=False).value for links in (everyone, 0 * everyone)]
    ['dense', 'empty']
    """
    affinity = symmetrise(links)
    affinity.eliminate_zeros()
    if not affinity.nnz:
        return Unused.EMPTY
    if not reaches_unlabelled(affinity, targets):
        return Unused.FROM_LABELS
    if harmful:
        return Unused.HARMFUL
    n_samples = affinity.shape[0]
    return Unused.DENSE if affinity.nnz > EVIDENCE.dense_share * n_samples * (n_samples - 1) else Unused.CHANCE


def weights_tell(links: sparse.csr_array, embedded: NDArray) -> bool:
    """Whether the mean over linked samples says as much about a sample with the weights of the links as without them.

    Weights that say nothing do not change the similarity of linked samples, but leave fewer of them for each mean.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.permutation(np.arange(200) % 4)
    >>> Z = np.eye(4)[group] + rng.normal(size=(200, 4))
    >>> links = sparse.coo_array((rng.random((200, 200)) < 0.1).astype(float))
    >>> told = links.copy()
    >>> told.data = np.where(group[links.row] == group[links.col], 1.0, 0.1)
    >>> noise = told * (told > 0.5)
    >>> noise.data *= np.exp(2 * rng.normal(size=noise.nnz))
    >>> [weights_tell(sparse.csr_array(one), Z) for one in (told, noise)]
    [True, False]
    """
    if not links.nnz or links.data.min() == links.data.max():
        return True
    leading = embedded[:, : EVIDENCE.n_components].astype(np.float64)
    links = links.astype(np.float64)
    alone = neighbor_correlation(without_weights(links), leading)
    return alone <= (1 + EVIDENCE.min_gain) * neighbor_correlation(links, leading)


def neighbor_correlation(links: sparse.csr_array, embedded: NDArray) -> float:
    """Correlation of Z with its mean over linked samples, of the samples that have links.

    Examples
    --------
    >>> pairs = sparse.csr_array(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]))
    >>> neighbor_correlation(pairs, np.array([[1.0], [1.0], [5.0], [5.0]]))
    1.0
    """
    both = symmetrise(links)
    linked = np.diff(both.indptr) > 0
    own, means = embedded[linked], (mean_over_links(both) @ embedded)[linked]
    own, means = own - own.mean(axis=0), means - means.mean(axis=0)
    size = float(np.sqrt(np.vdot(own, own) * np.vdot(means, means)))
    return float(np.vdot(own, means)) / size if size > 0 else 0.0


def reaches_unlabelled(affinity: sparse.csr_array, targets: Targets) -> bool:
    """Whether labelled samples have links to unlabelled ones, about as many as if the labels were given at random.

    Links that were made from the labels find every held-out label, and say nothing about any other sample.

    Examples
    --------
    >>> same_class = sparse.csr_array(np.kron(np.eye(2), np.ones((10, 10))))
    >>> reaches_unlabelled(same_class, Targets.from_codes(np.repeat([0, -1], 10), 1))
    False
    >>> reaches_unlabelled(same_class, Targets.from_codes(np.tile([0, -1], 10), 1))
    True
    """
    n_links = np.diff(affinity[targets.labelled].indptr).sum()
    n_across = n_links - np.diff(affinity[targets.labelled][:, targets.labelled].indptr).sum()
    expected = float(n_links) * (1 - targets.n_labelled / len(targets))
    return expected < EVIDENCE.min_links_across or bool(n_across >= EVIDENCE.min_share_across * expected)


def assortativity(affinity: sparse.csr_array, embedded: NDArray) -> float:
    """Moran's I: the correlation of Z between linked samples.

    Examples
    --------
    >>> pairs = sparse.csr_array(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]))
    >>> assortativity(pairs, np.array([[1.0], [1.0], [5.0], [5.0]]))
    1.0
    """
    degrees = affinity.sum(axis=1)
    centred = embedded - (degrees @ embedded) / degrees.sum()
    spread = float(degrees @ np.einsum("ij,ij->i", centred, centred))
    return float(np.vdot(centred, affinity @ centred)) / spread if spread > 0 else 0.0


def label_assortativity(affinity: sparse.csr_array, targets: Targets) -> float:
    """Agreement of labels along links beyond chance, as far as it is certain; 0 if it is not.

    Examples
    --------
    >>> pairs = sparse.csr_array(np.kron(np.eye(20), [[0.0, 1.0], [1.0, 0.0]]))
    >>> round(label_assortativity(pairs, Targets.from_codes(np.repeat([0, 1], 20), 2)), 2)
    0.33
    """
    labelled = np.flatnonzero(targets.labelled)
    among = affinity[labelled][:, labelled].tocoo()
    total = float(among.data.sum())
    if total <= 0:
        return 0.0
    codes = targets.codes[labelled]
    agreement = float(among.data[codes[among.row] == codes[among.col]].sum()) / total
    chance = float((targets.frequencies**2).sum())
    n_pairs = total**2 / (2 * float(np.square(among.data).sum()))  # each pair is there twice
    deviation = np.sqrt(chance * (1 - chance) / n_pairs)
    return max(0.0, float(agreement - chance - EVIDENCE.label_deviations * deviation) / max(1 - chance, 1e-12))
