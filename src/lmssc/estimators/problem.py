"""The problem that a method solves: distinct samples, views and classes in canonical order."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.fit_config import FitContext
from lmssc.core.one_class_components import OneClassSamples
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import CanonicalOrder, first_copies, splitmix64
from lmssc.data.dataset import Dataset
from lmssc.data.graph_view import GraphView
from lmssc.data.link_order import graph_order
from lmssc.data.view import RawView
from lmssc.numerics.parallel import threaded_map


@dataclass(frozen=True)
class Problem:
    """Input of `_fit_method`: the m distinct samples, with samples, views and classes in canonical order.

    Attributes
    ----------
    views : list of RawView
        Unscaled; `_fit_scalings` scales them.
    targets : Targets
        The labels.
    context : FitContext
        Work shared with other fits.
    graphs : list of GraphView
        Links between the samples.
    """

    views: list[RawView]
    targets: Targets
    context: FitContext
    graphs: list[GraphView] = field(default_factory=list)


@dataclass(frozen=True)
class Solution:
    """What `_fit_method` returns: rows are the samples of the `Problem`, in its order.

    Attributes
    ----------
    scores : ndarray of shape (m, c)
        Class scores F, columns in the order of `Problem.targets`. Negative scores count as 0. Rows need not sum to 1,
        but each needs a positive score: use `Problem.targets.frequencies` where the method has no answer.
    graph : CSR array of shape (m, m)
        Affinities S, in which `query` and the report find neighbours; all zeros for a method without a graph.
    unreached : ndarray of bool of shape (m,)
        Samples that no label reaches.
    one_class : OneClassSamples, optional
        Samples in components of the graph whose labels are all of one class, if they are known.
    targets : Targets, optional
        The labels that counted, if they are not all of the `Problem`.
    """

    scores: NDArray
    graph: sparse.csr_array
    unreached: NDArray
    one_class: OneClassSamples | None = None
    targets: Targets | None = None


@dataclass(frozen=True)
class Numbering:
    """How distinct samples and classes in canonical order relate to the input.

    Attributes
    ----------
    order : CanonicalOrder
        Order of the distinct samples and the views.
    nodes : ndarray of int of shape (n,)
        For each sample of the input, the index of the distinct sample that it is a copy of.
    class_order : ndarray of int of shape (c,)
        Index in the sorted classes of each class in canonical order.
    graph_order : list of int
        Graph of the input at each position.
    """

    order: CanonicalOrder
    nodes: NDArray
    class_order: NDArray
    graph_order: list[int] = field(default_factory=list)


def make_problem(
    dataset: Dataset,
    select_rows: Callable[[RawView, NDArray], RawView],
    context: FitContext,
    *,
    merge_identical: bool = True,
) -> tuple[Problem, Numbering]:
    """Bring samples, views and classes into canonical order, and merge identical samples.

    Parameters
    ----------
    dataset : Dataset
        Views and labels in the order of the input.
    select_rows : callable
        (view, rows) ↦ the view of these samples.
    context : FitContext
        Work shared with other fits.
    merge_identical : bool
        Whether identical samples become one, which shares their labels.

    Returns
    -------
    problem : Problem
    numbering : Numbering
    """
    order = dataset.order
    codes = dataset.codes[order.samples]
    first = first_copies(order.keys) if merge_identical else np.ones(len(codes), dtype=bool)
    ends = np.append(np.flatnonzero(first)[1:], len(first))
    # Of identical samples the last stands for all: it has a label if any of them has.
    distinct = CanonicalOrder(order.samples[ends - 1], order.views, order.keys[first])
    node = np.cumsum(first) - 1
    targets, class_order = find_targets(node, codes, distinct.keys, len(dataset.classes))
    labelled = codes >= 0
    if dataset.shares is not None:
        shares = dataset.shares[np.ix_(order.samples, class_order)]
        targets = targets.soften(node[labelled], shares[labelled])
    if dataset.trust is not None:
        targets = targets.doubt(node[labelled], dataset.trust[order.samples][labelled])
    chosen = threaded_map(lambda v: select_rows(dataset.views[v], distinct.samples), order.views)
    keys = (dataset.keys_by_view[v][distinct.samples] for v in order.views)
    views = [replace(view, keys=own) for view, own in zip(chosen, keys, strict=True)]
    nodes = np.empty_like(node)
    nodes[order.samples] = node
    graphs = [graph.take(distinct.samples) for graph in dataset.graphs]
    which = graph_order(distinct.keys, graphs)
    problem = Problem(views, targets, context, [graphs[g] for g in which])
    return problem, Numbering(distinct, nodes, class_order, which)


def find_targets(nodes: NDArray, codes: NDArray, keys: NDArray, n_classes: int) -> tuple[Targets, NDArray]:
    """Targets of the distinct samples, and a canonical order of the classes, which depends on the labelled samples.

    Parameters
    ----------
    nodes : ndarray of int of shape (n,)
        The distinct sample that each sample is a copy of, ascending.
    codes : ndarray of int of shape (n,)
        Class of each sample, −1 without a label.
    keys : ndarray of shape (m,)
        Hashes of the distinct samples.
    n_classes : int
        Number of classes.

    Returns
    -------
    targets : Targets
        Classes in canonical order.
    class_order : ndarray of int of shape (n_classes,)

    Examples
    --------
    >>> targets, order = find_targets(np.array([0, 0, 0, 1]), np.array([0, 1, 1, -1]), np.array([5, 7], np.uint64), 2)
    >>> order, targets.shares.round(2)
    (array([1, 0]), array([[0.67, 0.33]]))
    """
    pairs, numbers = np.unique(nodes.astype(np.int64) * (n_classes + 1) + codes + 1, return_counts=True)
    # If all samples are repeated equally often, the copies count as one.
    repeats = int(np.gcd.reduce(numbers))
    numbers //= repeats
    node, code = np.divmod(pairs, n_classes + 1)
    labels = code > 0
    node, code, number = node[labels], code[labels] - 1, numbers[labels]
    # By the first sample of the class, then by the number of its copies, then by a hash of all samples of the class.
    first = np.unique(code, return_index=True)[1]
    signature = np.zeros(n_classes, dtype=np.uint64)
    np.add.at(signature, code, splitmix64(keys[node] ^ number.astype(np.uint64)))
    class_order = np.lexsort((signature, -number[first], node[first]))
    rank = np.argsort(class_order)
    labelled = codes >= 0
    where, ranks = nodes[labelled], rank[codes[labelled]]
    if (keys == keys[0]).all():  # all samples are identical: two copies stand for them
        where, ranks = np.repeat([0, 1], len(ranks)), np.tile(ranks, 2)
    return Targets.from_labels(where, ranks, len(keys), n_classes, repeats), class_order


def to_distributions(scores: NDArray, class_order: NDArray) -> NDArray:
    """Scores of classes in canonical order as distributions, classes sorted; negative scores count as 0.

    Examples
    --------
    >>> to_distributions(np.array([[3.0, 1.0], [-1.0, 2.0]]), class_order=np.array([1, 0]))
    array([[0.25, 0.75],
           [1.  , 0.  ]])
    """
    scores = np.maximum(scores, 0)
    shares = scores / scores.sum(axis=1, keepdims=True)
    result = np.empty_like(shares)
    result[:, class_order] = shares
    return result
