"""Connected components of the graph in parts: each finds its own, and these are joined over the edges between parts."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lmssc.core.one_class_components import OneClassSamples, doubtful_components
from lmssc.core.parts.executor import Executor, Message, Part, gather
from lmssc.core.parts.halo import rows_for_others, with_halo
from lmssc.core.targets import Targets


def one_class_samples(executor: Executor, targets: Targets, order: NDArray) -> OneClassSamples:
    """`OneClassSamples.of` the graph of all parts.

    Parameters
    ----------
    executor : Executor
        The parts, which have their "laplacian".
    targets : Targets
        The labels, samples in the order of the fit.
    order : ndarray of int of shape (n,)
        Canonical number of each sample of the fit.

    Returns
    -------
    OneClassSamples
        Samples by their canonical numbers, ascending.
    """
    # A component is named by its first sample in a part.
    joined = np.hstack(executor.exchange(_send_components, _joined_components))
    found = executor.map(_sizes)
    names = np.concatenate([own for own, _ in found])
    ends = np.searchsorted(names, joined)
    entries = (np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1]))
    n_components, component = connected_components(
        sparse.csr_array(entries, shape=(len(names), len(names))), directed=False
    )
    sizes = np.bincount(component, np.concatenate([counts for _, counts in found]), n_components).astype(np.int64)
    labelled = np.flatnonzero(targets.labelled)
    of_labels = component[np.searchsorted(names, gather(executor, "component", labelled))]
    n_labels = np.bincount(of_labels, minlength=n_components)
    one_class = doubtful_components(of_labels, targets, n_components)
    members = np.hstack(executor.map(_members, names[one_class[component]]))
    own = component[np.searchsorted(names, members[1])]
    numbers = order[members[0]]
    by_number = np.argsort(numbers)
    return OneClassSamples(numbers[by_number], n_labels[own][by_number], sizes[own][by_number])


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
