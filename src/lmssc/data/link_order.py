"""The canonical order of samples that have links: by their features, and where these are the same by their links.

Samples are copies of each other if they have the same features and the same links to the same samples; links of copies
to each other do not tell them apart. Samples with the same features and other links are ordered by a hash of their
neighbourhood, as in the test of Weisfeiler and Leman: it does not depend on the order of the input.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.data.canonical_order import CanonicalOrder, entry_keys, order_by_keys, row_keys, splitmix64
from lmssc.data.graph_view import GraphView
from lmssc.data.view import RawView

# Rounds of hashing: each tells samples apart that differ one step further away.
MAX_ROUNDS = 50
INCOMING = np.uint64(0x5851F42D4C957F2D)


def order_with_links(
    keys_by_view: Sequence[NDArray], codes: NDArray, widths: Sequence[int], graphs: Sequence[GraphView]
) -> CanonicalOrder:
    """`order_by_keys` for samples with links; the keys of two samples are equal if they are copies.

    Parameters
    ----------
    keys_by_view : sequence of ndarray of shape (n,)
        The `row_keys` of each view of features.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 without a label.
    widths : sequence of int
        Number of columns of each view.
    graphs : sequence of GraphView
        The links.

    Returns
    -------
    CanonicalOrder

    Examples
    --------
    >>> same = np.zeros(4, dtype=np.uint64)
    >>> chain = GraphView("a", sparse.csr_array(np.eye(4, k=1)))
    >>> order = order_with_links([same], np.full(4, -1), [1], [chain])
    >>> other = order_with_links([same], np.full(4, -1), [1], [chain.take(np.array([3, 1, 0, 2]))])
    >>> bool((order.samples == np.array([3, 1, 0, 2])[other.samples]).all())
    True
    """
    plain = order_by_keys(keys_by_view, codes, widths)
    features = np.empty_like(plain.keys)
    features[plain.samples] = plain.keys
    copies = features
    for graph in graphs:
        for links in (graph.links, graph.links.T.tocsr()):
            looped = _with_loops(links, features)
            copies = splitmix64(copies ^ row_keys(RawView(graph.name, looped, None)))
    _, first, node = np.unique(copies, return_index=True, return_inverse=True)
    n_labels = np.bincount(node.ravel(), codes >= 0, len(first)).astype(np.uint64)
    colours = _colours(features[first], n_labels, [graph.take(first) for graph in graphs])
    by_colour = np.argsort(colours, kind="stable")
    keys = np.empty_like(colours)
    keys[by_colour] = _strictly_ascending(colours[by_colour])
    samples = np.lexsort((codes, keys[node]))
    return CanonicalOrder(samples, plain.views, keys[node][samples])


def _with_loops(links: sparse.csr_array, features: NDArray) -> sparse.csr_array:
    """Link each sample to itself as strongly as to any sample of the same features.

    Copies that are linked to each other then have the same row; without this each lacks the link to itself.
    """
    entries = links.tocoo()
    alike = features[entries.row] == features[entries.col]
    if not alike.any():
        return links
    loops = np.zeros(len(features), dtype=links.dtype)
    np.maximum.at(loops, entries.row[alike], entries.data[alike])
    return sparse.csr_array(links + sparse.diags_array(loops, dtype=links.dtype))


def _colours(features: NDArray, n_labels: NDArray, graphs: Sequence[GraphView]) -> NDArray:
    """Hash of the features of each sample, and where these are not unique of its neighbourhood and its labels."""
    both = [(links, links.T.tocsr()) for links in _in_canonical_order(features, graphs)]
    colours, n_colours = features, len(np.unique(features))
    for seed in (None, n_labels):
        if n_colours == len(colours):
            break
        if seed is not None:
            colours = splitmix64(colours ^ splitmix64(seed))
        for _ in range(MAX_ROUNDS):
            finer = colours
            for outgoing, incoming in both:
                finer = splitmix64(finer ^ _gather(colours, outgoing) ^ (INCOMING * _gather(colours, incoming)))
            before, n_colours = n_colours, len(np.unique(finer))
            colours = finer
            if n_colours == before:
                break
    return colours


def _gather(colours: NDArray, links: sparse.csr_array) -> NDArray:
    """Hash of the weights and colours of the neighbours of each sample, in any order."""
    bits = links.data.astype(np.float64).view(np.uint64)
    entries = splitmix64(colours[links.indices] ^ splitmix64(bits))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return splitmix64(sums[links.indptr[1:]] - sums[links.indptr[:-1]])


def _in_canonical_order(features: NDArray, graphs: Sequence[GraphView]) -> list[sparse.csr_array]:
    return [graphs[g].links for g in graph_order(features, graphs)]


def graph_order(features: NDArray, graphs: Sequence[GraphView]) -> list[int]:
    """An order of the graphs that does not depend on the order of the input.

    Parameters
    ----------
    features : ndarray of uint64 of shape (n,)
        A hash of the features of each sample.
    graphs : sequence of GraphView
        The graphs.

    Returns
    -------
    list of int

    Examples
    --------
    >>> a, b = GraphView("a", sparse.csr_array(np.eye(3, k=1))), GraphView("b", sparse.csr_array(np.eye(3, k=2)))
    >>> features = np.arange(3, dtype=np.uint64)
    >>> graph_order(features, [a, b]) == graph_order(features, [b, a])[::-1]
    True
    """
    totals = [int(splitmix64(features ^ _gather(features, graph.links)).sum(dtype=np.uint64)) for graph in graphs]
    return sorted(range(len(graphs)), key=totals.__getitem__)


def _strictly_ascending(keys: NDArray) -> NDArray:
    """Count up equal ones among sorted keys, so that all differ: samples with equal keys are not copies here."""
    run_starts = np.concatenate([[True], keys[1:] != keys[:-1]])
    start = np.maximum.accumulate(np.where(run_starts, np.arange(len(keys)), 0))
    return keys + (np.arange(len(keys)) - start).astype(np.uint64)


def link_keys(keys: NDArray, links: Sequence[sparse.csr_array]) -> NDArray:
    """Hash of each sample, by its features and the rows of its links.

    Parameters
    ----------
    keys : ndarray of uint64 of shape (m,)
        Hash of the features of each sample.
    links : sequence of csr_array of shape (m, n)
        Its links to the distinct samples of `fit`, in canonical order.

    Returns
    -------
    ndarray of uint64 of shape (m,)

    Examples
    --------
    >>> links = sparse.csr_array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    >>> keys = link_keys(np.zeros(3, dtype=np.uint64), [links])
    >>> bool(keys[0] == keys[1]), bool(keys[0] == keys[2])
    (True, False)
    """
    for one in links:
        keys = splitmix64(keys ^ row_keys(RawView("", one, None)))
    return keys


def merge_columns(links: sparse.csr_array, nodes: NDArray) -> sparse.csr_array:
    """Links to samples as links to distinct samples: the strongest of those to copies of one sample.

    Parameters
    ----------
    links : csr_array of shape (m, n)
        Links to the samples of `fit`, in the order of the input.
    nodes : ndarray of int of shape (n,)
        The distinct sample that each is a copy of.

    Returns
    -------
    csr_array of shape (m, number of distinct samples)

    Examples
    --------
    >>> merge_columns(sparse.csr_array([[1.0, 3.0, 2.0]]), np.array([1, 0, 1])).toarray()
    array([[3., 2.]])
    """
    entries = links.tocoo()
    row, column = entries.row, nodes[entries.col]
    by_weight = np.lexsort((entries.data, column, row))
    row, column, weight = row[by_weight], column[by_weight], entries.data[by_weight]
    last = np.concatenate([(row[1:] != row[:-1]) | (column[1:] != column[:-1]), [True]])[: len(row)]
    shape = (links.shape[0], int(nodes.max()) + 1)
    return sparse.csr_array((weight[last], (row[last], column[last])), shape=shape)


def drop_own_links(keys: NDArray, links: Sequence[sparse.csr_array], known: NDArray) -> list[sparse.csr_array]:
    """The links of samples without those of samples of `fit` to themselves, which `fit` ignores as well.

    A link is one of a sample to itself if without it the sample has the features and the links of the one that it leads
    to. Hashes of rows are sums over their entries, so each link is tried in constant time.

    Parameters
    ----------
    keys : ndarray of uint64 of shape (m,)
        Hash of the features of each sample.
    links : sequence of csr_array of shape (m, n)
        Its links to the distinct samples of `fit`, as from `merge_columns`.
    known : ndarray of uint64 of shape (n,)
        The `link_keys` of the samples of `fit`.

    Returns
    -------
    list of csr_array of shape (m, n)

    Examples
    --------
    >>> features, links = np.array([5, 7], dtype=np.uint64), sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> known = link_keys(features, [links])
    >>> drop_own_links(features, [sparse.csr_array([[2.0, 1.0], [1.0, 0.0]])], known)[0].toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    entries = [one.tocoo() for one in links]
    pairs = [one.row.astype(np.int64) * len(known) + one.col for one in entries]
    tried = np.unique(np.concatenate([np.empty(0, np.int64), *pairs]))
    row, column = np.divmod(tried, len(known))
    found = keys[row]
    for one, own in zip(entries, pairs, strict=True):
        hashes = entry_keys(one.data, one.col)
        sums = np.zeros(len(keys), dtype=np.uint64)
        np.add.at(sums, one.row, hashes)
        left = sums[row]
        left[np.searchsorted(tried, own)] -= hashes
        found = splitmix64(found ^ splitmix64(left))
    to_itself = tried[found == known[column]]
    if not len(to_itself):
        return list(links)
    kept = [~np.isin(own, to_itself) for own in pairs]
    return [
        sparse.csr_array((one.data[keep], (one.row[keep], one.col[keep])), shape=one.shape)
        for one, keep in zip(entries, kept, strict=True)
    ]
