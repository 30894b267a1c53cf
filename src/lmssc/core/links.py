"""Links between the samples that the data come with: what each graph adds to the model.

A graph adds a Laplacian to that of S, for Z and F, and a smoothed copy of each view: the mean over each sample and its
neighbours, taken twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.laplacian import laplacian, symmetrise
from lmssc.data.storage import smaller
from lmssc.data.view import View
from lmssc.numerics.matrices import Matrix

MIN_DENSE_SHARE = 0.1
"""Share of links among all pairs from which on products with them are dense."""
MAX_MEAN_DEGREE = 100
"""Links per sample up to which a graph is in the Laplacian: means over more are much the same for all samples."""


@dataclass(frozen=True)
class LinkWeights:
    """How the graphs of a fit are combined.

    Attributes
    ----------
    shares : ndarray of shape (G,)
        u_g: share of each graph, which sum to 1; 0 for a graph that says nothing.
    units : ndarray of shape (G,)
        The `usual_weight` of a link of each graph, which counts as much as a sample itself in the smoothing.
    weight : float
        w: weight of the links beside S.
    weighted : ndarray of bool of shape (G,), or None
        Whether the weights of the links of each graph count, or only the links; None if all do.
    """

    shares: NDArray
    units: NDArray
    weight: float
    weighted: NDArray | None = None

    @classmethod
    def of(
        cls, graphs: Sequence[sparse.csr_array], strengths: NDArray, weight: float, weighted: NDArray | None = None
    ) -> "LinkWeights":
        """Shares in proportion to the strengths of the graphs.

        Examples
        --------
        >>> graphs = [sparse.csr_array([[0.0, 2.0], [4.0, 0.0]])] * 2
        >>> LinkWeights.of(graphs, np.array([3.0, 1.0]), 0.1, weighted=np.array([True, False]))
        LinkWeights(shares=array([0.75, 0.25]), units=array([3., 1.]), weight=0.1, weighted=array([ True, False]))
        """
        weights = cls(strengths / strengths.sum(), np.ones(len(graphs)), weight, weighted)
        return replace(weights, units=np.array([usual_weight(graph) for graph in weights.apply(graphs)]))

    def apply(self, graphs: Sequence[sparse.csr_array]) -> list[sparse.csr_array]:
        """The links with the weights that count."""
        return list(graphs) if self.weighted is None else weigh_links(graphs, self.weighted)


class LinkChoice(NamedTuple):
    """How a fit uses its links.

    Attributes
    ----------
    weights : LinkWeights or None
        None if the links are not used.
    refused : ndarray of bool of shape (G,)
        Graphs that say something about the samples, but not used because held-out labels are found better without.
    """

    weights: LinkWeights | None
    refused: NDArray


def weigh_links(graphs: Sequence[sparse.csr_array], weighted: NDArray) -> list[sparse.csr_array]:
    """The links of all graphs, with their weights or without."""
    return [graph if one else without_weights(graph) for graph, one in zip(graphs, weighted, strict=True)]


def without_weights(links: sparse.csr_array) -> sparse.csr_array:
    """The same links, each with the weight 1.

    Examples
    --------
    >>> without_weights(sparse.csr_array([[0.0, 4.0]])).toarray()
    array([[0., 1.]])
    """
    return sparse.csr_array((np.ones_like(links.data), links.indices, links.indptr), shape=links.shape)


def usual_weight(links: sparse.csr_array) -> float:
    """Median, over the samples with links, of their mean weight; one weight of 1e9 does not change it. 1 without any.

    Examples
    --------
    >>> usual_weight(sparse.csr_array([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0], [1e9, 0.0, 0.0]]))
    2.0
    """
    sums = links.astype(np.float64).sum(axis=1)
    linked = sums > 0
    return float(np.median(sums[linked] / np.diff(links.indptr)[linked])) if linked.any() else 1.0


@dataclass(frozen=True)
class Links:
    """The links of all graphs in the objective: w·Σ_g u_g·L_g is added to the Laplacian of S.

    Attributes
    ----------
    affinity : csr_array of shape (n, n)
        Σ_g u_g·D_g^−½·A_g·D_g^−½, symmetric.
    weight : float
        w.
    n_without : ndarray of int of shape (n,), or None
        Number of graphs that have a share and no link of the sample; None if each sample has links in all of them.
    """

    affinity: sparse.csr_array
    weight: float
    n_without: NDArray | None = None

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """The weighted Laplacian."""
        return laplacian(self.affinity) * self.affinity.dtype.type(self.weight)

    def take(self, rows: NDArray) -> "Links":
        """The links among some of the samples."""
        n_without = None if self.n_without is None else self.n_without[rows]
        return replace(self, affinity=self.affinity[rows][:, rows].tocsr(), n_without=n_without)


def normalise_degrees(links: sparse.csr_array) -> sparse.csr_array:
    """D^−½·A·D^−½ of the symmetrised links: those of samples with many links count less. Rows without links stay zero.

    Examples
    --------
    >>> star = sparse.csr_array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> normalise_degrees(star).toarray().round(3)
    array([[0.   , 0.707, 0.707],
           [0.707, 0.   , 0.   ],
           [0.707, 0.   , 0.   ]])
    """
    both = symmetrise(links)
    scale = sparse.diags_array(inverse_roots(both.sum(axis=1)))
    return (scale @ both @ scale).tocsr()


def inverse_roots(degrees: NDArray) -> NDArray:
    """d^−½, and 0 where d is 0.

    Examples
    --------
    >>> inverse_roots(np.array([4.0, 0.0]))
    array([0.5, 0. ])
    """
    return np.sqrt(np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0))


def mean_over_links(links: sparse.csr_array) -> sparse.csr_array:
    """Links divided by their sum in each row; a row without links stays zero.

    Examples
    --------
    >>> mean_over_links(sparse.csr_array([[1.0, 3.0], [0.0, 0.0]])).toarray()
    array([[0.25, 0.75],
           [0.  , 0.  ]])
    """
    sums = links.sum(axis=1)
    return (sparse.diags_array(np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)) @ links).tocsr()


def join_affinities(
    graphs: Sequence[sparse.csr_array], weights: LinkWeights, dtype: np.dtype | type = np.float64
) -> Links:
    """The links of all graphs that have a share, combined for the objective; graphs with very many links are left out.

    Examples
    --------
    >>> pair = sparse.csr_array([[0.0, 3.0], [0.0, 0.0]])
    >>> join_affinities([pair], LinkWeights(np.ones(1), np.ones(1), 0.5)).laplacian.toarray()
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    n_samples = graphs[0].shape[0]
    total = sparse.csr_array((n_samples, n_samples))
    for graph, share in zip(graphs, weights.shares, strict=True):
        if share > 0 and graph.nnz <= MAX_MEAN_DEGREE * n_samples:
            total = total + share * normalise_degrees(graph.astype(np.float64))
    degrees = [np.diff(graph.indptr) + np.bincount(graph.indices, minlength=n_samples) for graph in graphs]
    n_without = count_without_links(degrees, weights)
    return Links(total.tocsr().astype(dtype), weights.weight, n_without if n_without.any() else None)


def count_without_links(degrees: Sequence[NDArray], weights: LinkWeights) -> NDArray:
    """Number of graphs with a share in which each sample has no link, from its number of links in each graph.

    Examples
    --------
    >>> weights = LinkWeights(np.array([0.5, 0.5, 0.0]), np.ones(3), 0.1)
    >>> count_without_links([np.array([2, 0]), np.array([0, 0]), np.array([1, 1])], weights)
    array([1, 2])
    """
    used = [degree == 0 for degree, share in zip(degrees, weights.shares, strict=True) if share > 0]
    return np.array(used).sum(axis=0, dtype=np.intp)


def kinds_of(n_missing: NDArray, n_without: NDArray | None, n_views: int) -> NDArray:
    """One number for what a sample lacks: how many of the views, and in how many graphs it has no links.

    Samples of one kind share a calibration. Without graphs it is the number of missing views.

    Examples
    --------
    >>> kinds_of(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), n_views=2)
    array([0, 1, 3, 4])
    """
    return n_missing if n_without is None else n_missing + (n_views + 1) * n_without


def walk(links: sparse.csr_array, unit: float) -> tuple[sparse.csr_array, NDArray]:
    """Means over each sample and its neighbours: the weights of the neighbours, and of the sample itself.

    A link of weight `unit` counts as much as the sample itself.

    Examples
    --------
    >>> others, own = walk(sparse.csr_array([[0.0, 2.0, 2.0], [0.0, 0.0, 0.0]]), unit=2.0)
    >>> others.toarray().round(2), own.round(2)
    (array([[0.  , 0.33, 0.33],
           [0.  , 0.  , 0.  ]]), array([0.33, 1.  ]))
    """
    relative = links * (1 / unit)
    own = 1 / (1 + relative.sum(axis=1))
    return (sparse.diags_array(own) @ relative).tocsr(), own


def join_walks(graphs: Sequence[sparse.csr_array], weights: LinkWeights) -> sparse.csr_array:
    """Σ_g u_g·P_g of the links of the samples of fit, with P_g the mean over each sample and its neighbours.

    Rows sum to 1, and a sample without links is its own mean.

    Examples
    --------
    >>> pair = sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> join_walks([pair], LinkWeights(np.ones(1), np.ones(1), 0.1)).toarray()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    used = [symmetrise(graph) if share > 0 else graph for graph, share in zip(graphs, weights.shares, strict=True)]
    others, own = join_new_walks(used, weights)
    return (others + sparse.diags_array(own)).tocsr()


def join_new_walks(graphs: Sequence[sparse.csr_array], weights: LinkWeights) -> tuple[sparse.csr_array, NDArray]:
    """`walk` of each graph, averaged by the shares: weights of the samples of fit, and of the new sample itself.

    Examples
    --------
    >>> others, own = join_new_walks([sparse.csr_array([[0.0, 1.0]])], LinkWeights(np.ones(1), np.ones(1), 0.1))
    >>> others.toarray(), own
    (array([[0. , 0.5]]), array([0.5]))
    """
    total, itself = sparse.csr_array(graphs[0].shape), np.zeros(graphs[0].shape[0])
    for graph, share, unit in zip(graphs, weights.shares, weights.units, strict=True):
        if share > 0:
            others, own = walk(graph.astype(np.float64), float(unit))
            total, itself = total + share * others, itself + share * own
    return total.tocsr(), itself


def smooth(view: View, step: sparse.csr_array) -> View:
    """The mean of a view over each sample and its neighbours that have it.

    Parameters
    ----------
    view : View
        A scaled view, in memory.
    step : csr_array of shape (n, n)
        P, whose rows sum to 1.

    Returns
    -------
    View
        A sample has it if it has the view, or a neighbour has.

    Examples
    --------
    >>> step = sparse.csr_array([[0.5, 0.5], [0.5, 0.5]])
    >>> smooth(View(np.array([[1.0], [3.0]])), step).data
    array([[2.],
           [2.]])
    """
    dtype = view.data.dtype
    data = _times(step.astype(dtype), view.data)
    if view.present is None:
        return View(_stored(data), view.offset)
    mass = step @ view.present.astype(np.float64)
    present = mass > 0
    scale = sparse.diags_array(np.divide(1, mass, out=np.zeros_like(mass), where=present).astype(dtype))
    return View(_stored(scale @ data), view.offset, None if present.all() else present)


def _times(step: sparse.csr_array, data: Matrix) -> Matrix:
    """P·X; with very many links the dense product is several times faster."""
    if step.nnz < MIN_DENSE_SHARE * step.shape[0] * step.shape[1]:
        return step @ data
    return step.toarray() @ (data.toarray() if sparse.issparse(data) else data)


def _stored(data: NDArray | sparse.csr_array) -> NDArray | sparse.csr_array:
    return smaller(sparse.csr_array(data)) if sparse.issparse(data) else np.asarray(data)


def smooth_twice(view: View, step: sparse.csr_array) -> tuple[View, View, float]:
    """A view smoothed once, and twice with the mean squared row norm that it had before; and the factor of the latter.

    Examples
    --------
    >>> step = sparse.csr_array([[0.5, 0.5], [0.5, 0.5]])
    >>> _, twice, factor = smooth_twice(View(np.array([[1.0], [3.0]])), step)
    >>> twice.data.round(3), round(factor, 3)
    (array([[2.236],
           [2.236]]), 1.118)
    """
    once = smooth(view, step)
    twice = smooth(once, step)
    energy = energy_of(twice)
    factor = float(np.sqrt(energy_of(view) / energy)) if energy > 0 else 1.0
    return once, scale_view(twice, factor), factor


def energy_of(view: View) -> float:
    """Mean squared norm of the rows that a view has.

    Examples
    --------
    >>> energy_of(View(np.array([[3.0, 4.0], [0.0, 0.0]])))
    12.5
    """
    n_rows = view.data.shape[0] if view.present is None else int(view.present.sum())
    return view.squared_norm() / max(n_rows, 1)


def scale_view(view: View, factor: float) -> View:
    """A view times a constant.

    Examples
    --------
    >>> scale_view(View(np.array([[2.0]])), 0.5).data
    array([[1.]])
    """
    scale = view.data.dtype.type(factor)
    return View(view.data * scale, None if view.offset is None else view.offset * scale, view.present)
