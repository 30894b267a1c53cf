"""Connected components of the graph in parts: each finds its own, and these are joined over the edges between parts."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.core.one_class_components import (
    OneClassSamples,
    choose_centres,
    count_ranked,
    count_within,
    doubtful_components,
    expected_agreement,
)
from lmssc.core.parts.executor import Executor, Message, Part, forget, gather
from lmssc.core.parts.graph_steps import rank_labelled
from lmssc.core.parts.halo import rows_for_others, with_halo
from lmssc.core.permutation import Permutation
from lmssc.core.targets import Targets


def one_class_samples(executor: Executor, targets: Targets, permutation: Permutation) -> OneClassSamples:
    """`OneClassSamples.of` the graph of all parts, with the agreement that labels elsewhere show.

    Parameters
    ----------
    executor : Executor
        The parts, which have their "laplacian".
    targets : Targets
        The labels, samples in canonical order.
    permutation : Permutation
        The order of the fit.

    Returns
    -------
    OneClassSamples
        Samples by their canonical numbers, ascending.
    """
    order, positions = np.asarray(permutation.order), np.asarray(permutation.positions)
    names, component, sizes = _joined(executor)
    of_labels = component[np.searchsorted(names, gather(executor, "component", positions[targets.labelled]))]
    n_labels = np.bincount(of_labels, minlength=len(sizes))
    one_class = doubtful_components(of_labels, targets, len(sizes))
    members = np.hstack(executor.map(_members, names[one_class[component]]))
    executor.map(forget, ("component",))
    own = component[np.searchsorted(names, members[1])]
    found = OneClassSamples(order[members[0]], n_labels[own], sizes[own])
    found = found.take(np.argsort(found.samples))
    if not len(found.samples):
        return found._replace(agreement=np.ones(0))
    # Samples of components of the same size share their agreement.
    distinct, size = np.unique(found.sizes, return_inverse=True)
    largest = int(distinct[-1])
    centres = choose_centres(targets, largest)
    centre, number, rank = rank_labelled(executor, positions[centres], largest, order)
    nearby = count_ranked(rank, centres[centre], number, targets, distinct)
    agreement = expected_agreement(nearby, count_within(of_labels, targets, sizes, distinct))
    return found._replace(agreement=agreement[size])


def _joined(executor: Executor) -> tuple[NDArray, NDArray, NDArray]:
    """Components of the parts by name, the first sample of each; the whole component of each; sizes of the whole."""
    joined = np.hstack(executor.exchange(_send_components, _joined_components))
    found = executor.map(_sizes)
    names = np.concatenate([own for own, _ in found])
    ends = np.searchsorted(names, joined)
    entries = (np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1]))
    n_components, component = connected_components(
        sparse.csr_array(entries, shape=(len(names), len(names))), directed=False
    )
    sizes = np.bincount(component, np.concatenate([counts for _, counts in found]), n_components)
    return names, component, sizes.astype(np.int64)


def _send_components(part: Part) -> dict[int, Message]:
    """Find the components within a part, and send their names over its edges to others."""
    matrix: sparse.csr_array = part["laplacian"]
    n_components, component = connected_components(matrix[:, : len(part)], directed=False)
    first = np.full(n_components, len(part), dtype=np.int64)
    np.minimum.at(first, component, np.arange(len(part)))
    part["component"] = part.start + first[component]
    return rows_for_others(part, "edge", part["component"])


def _joined_components(part: Part, messages: Mapping[int, Message]) -> NDArray:
    """Pairs of components that an edge between parts joins, of shape (2, m)."""
    names, matrix = with_halo(part["component"], messages), part["laplacian"]
    rows = np.repeat(np.arange(len(part)), np.diff(matrix.indptr))
    across = matrix.indices >= len(part)
    return np.unique(np.stack([names[rows[across]], names[matrix.indices[across]]]), axis=1)


def _sizes(part: Part) -> tuple[NDArray, NDArray]:
    """Names of the components within a part, ascending, and their numbers of samples."""
    return np.unique(part["component"], return_counts=True)


def _members(part: Part, names: NDArray) -> NDArray:
    """Unlabelled samples in some components, and the names of these, of shape (2, m)."""
    rows = np.flatnonzero(np.isin(part["component"], names) & ~part["labelled"])
    return np.stack([part.start + rows, part["component"][rows]])
