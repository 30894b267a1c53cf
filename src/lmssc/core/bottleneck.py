"""How weakly a sample hangs on the labels: the weakest edge on the strongest path to a label."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree


class Bottleneck(NamedTuple):
    """Weakest edge on the strongest path from each sample to a label.

    Attributes
    ----------
    strength : ndarray of shape (n,)
        Weight of the edge as a share of the weights of its better connected end: 1 for labelled samples, 0 if no path
        leads to a label.
    edge : ndarray of int of shape (n, 2)
        The two samples that it joins, −1 where there is none; the first is the one further from the label.
    """

    strength: NDArray
    edge: NDArray


def weakest_edges(laplacian: sparse.csr_array, labelled: NDArray) -> Bottleneck:
    """Find them in the maximum spanning tree, whose paths are the strongest there are.

    Parameters
    ----------
    laplacian : csr_array of shape (n, n)
        L.
    labelled : ndarray of bool of shape (n,)
        Which samples have a label.

    Returns
    -------
    Bottleneck

    Examples
    --------
    >>> L = sparse.csr_array([[1.0, -1, 0, 0], [-1, 1.1, -0.1, 0], [0, -0.1, 1.1, -1], [0, 0, -1, 1]])
    >>> found = weakest_edges(L, np.array([True, False, False, False]))
    >>> found.strength.round(2), found.edge[3]
    (array([1.  , 0.91, 0.09, 0.09]), array([2, 1]))
    """
    n_samples = len(labelled)
    degree = laplacian.diagonal()
    edges = laplacian.tocoo()
    row, column = edges.row, edges.col
    real = (edges.data < 0) & (row < column)
    row, column, weight = row[real], column[real], -edges.data[real].astype(np.float64)
    strength = np.minimum(weight / np.maximum(degree[row], degree[column]), 1.0)
    # All labelled samples hang on one more vertex, by edges that are better than any other. Costs must not be zero.
    roots = np.flatnonzero(labelled)
    # The spanning tree of scipy 1.12 takes no other integers.
    start = np.concatenate([row, np.full(len(roots), n_samples)]).astype(np.int32)
    end = np.concatenate([column, roots]).astype(np.int32)
    cost = np.concatenate([1 / strength, np.full(len(roots), 0.5)])
    tree = minimum_spanning_tree(sparse.csr_array((cost, (start, end)), shape=(n_samples + 1,) * 2))
    order, parent = breadth_first_order(tree + tree.T, n_samples, directed=False)
    to_parent = np.zeros(n_samples + 1)
    upward = (tree + tree.T).tocsr()
    to_parent[order[1:]] = np.asarray(upward[order[1:], parent[order[1:]]]).ravel()
    # The edge that costs most on the path to the label, of equal ones the nearest. Each round doubles the path.
    worst, weakest = to_parent.copy(), np.arange(n_samples + 1)
    above = np.where(parent < 0, n_samples, parent)
    worst[above == n_samples] = 0  # the edges to the additional vertex do not count
    while (above != n_samples).any():
        better = worst[above] > worst
        weakest = np.where(better, weakest[above], weakest)
        worst, above = np.maximum(worst, worst[above]), above[above]
    edge = np.full((n_samples + 1, 2), -1)
    counted = worst > 0
    edge[counted] = np.stack([weakest, parent[weakest]], axis=1)[counted]
    found = np.zeros(n_samples)
    reached = order[1:]
    found[reached] = 1 / np.maximum(worst[reached], 1)
    return Bottleneck(found, edge[:-1])
