"""GFHF: labels propagated over one graph, of one view or of all views concatenated."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Tags

from lmssc.core.graph import connect_new, graph_from_rows, learn_graph
from lmssc.core.laplacian import laplacian, roughness
from lmssc.core.links import mean_over_links, normalise_degrees
from lmssc.core.propagation import propagate
from lmssc.data.canonical_order import sample_keys
from lmssc.data.imputation import IMPUTE
from lmssc.data.parameters import COUNT_OR_AUTO, POSITIVE, Rule, one_of
from lmssc.data.validation import ViewSpec
from lmssc.data.view import RawView
from lmssc.estimators.fixed_neighbors import FixedNeighborsClassifier
from lmssc.estimators.problem import Problem, Solution
from lmssc.numerics.knn.exact import Neighbors, nearest_neighbors, other_neighbors
from lmssc.numerics.matrices import Matrix

# Lower bound of Gaussian weights: keeps outliers connected, and visible to the solver.
MIN_WEIGHT = 1e-12

WIDTH = Rule(lambda v: POSITIVE.accepts(v) or (isinstance(v, str) and v == "median"), f"'median' or {POSITIVE.wanted}")
VIEW = Rule(
    lambda v: v is None or isinstance(v, str) or (isinstance(v, int | np.integer) and not isinstance(v, bool)),
    "the name or index of a view, or None for all",
)


class GFHF(FixedNeighborsClassifier):
    """Gaussian fields and harmonic functions: labels propagated over one graph.

    With W the symmetrised graph, D its row sums and L = D − W, the class scores F keep the known labels, F_l = Y_l,
    and are harmonic elsewhere, each the weighted mean of its neighbours:

        F_u = −L_uu⁻¹·L_ul·Y_l,    the minimiser of Tr(FᵀLF).

    On all views, scaled and concatenated (the default), this is the strongest simple baseline; on a single view it is
    what the paper of LMSSC calls HFPF(v).

    Parameters
    ----------
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X are split into views: widths, slices, or column indices or names. None for a
        single view, or if X is a list or dict of views.
    view : str, int or None
        Name or index of the only view that is used; None for all views.
    graph : {"adaptive", "gaussian", "precomputed"}
        "adaptive": k neighbours of each sample, s_j = (d_{k+1} − d_j) / (k·d_{k+1} − Σ_{m≤k} d_m) with d the sorted
        squared distances. "gaussian": w_ij = exp(−d_ij / (2·width²)) if i is among the k nearest of j or j among those
        of i. "precomputed": X is the graph, a sparse or dense affinity matrix, n × n and not negative. If it is not
        symmetric, (W + Wᵀ)/2 is used; the diagonal is ignored. `predict` then takes the affinities of new samples
        (rows) to the samples of fit (columns).
    n_neighbors : int or "auto"
        Neighbours k of a sample. "auto" is 10, or fewer for very few samples.
    width : "median" or float
        Width of the Gaussian. "median" is the median distance between neighbours in the scaled views.
    scaling : "auto", None or the name of a scaling, or a list or dict of these by view
        As for `LMSSC`.
    impute : {"median", "mean"} or None
        Replacement of single missing values, as for `LMSSC`. None raises an error if there are any.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreached_, imputed_, view_names_
        As for `LMSSC`.
    graph_ : csr_array of shape (n, n)
        The graph, without self-loops: S with rows that sum to 1 for "adaptive", the symmetric W for "gaussian", and X
        for "precomputed".
    width_ : float
        Width of the Gaussian, for `graph="gaussian"`.
    objective_ : ndarray of shape (1,)
        Tr(FᵀLF).
    n_neighbors_ : int
        Number of neighbours k, given or chosen; not for `graph="precomputed"`.
    n_iter_ : int
        Always 1.
    scalings_ : dict of str to str
        Scaling of each view that is used; none for `graph="precomputed"`.
    scaling_reasons_ : dict of str to str
        Why "auto" chose it.

    See Also
    --------
    AMGL : One graph per view, with learned weights.
    MLAN : One graph, learned from weighted views.

    Notes
    -----
    Each `Graph` beside the views is added to W, with its degrees normalised: D^−½·A·D^−½. A new sample with links gets
    the mean over these too.

    A missing view of a sample counts as zeros after scaling, which is the mean of a standardised view. A new sample
    gets the weighted mean of its neighbours' distributions, with weights like those of the graph.

    References
    ----------
    Zhu, Ghahramani and Lafferty, "Semi-supervised learning using Gaussian fields and harmonic functions", ICML 2003.

    Examples
    --------
    >>> from lmssc import GFHF
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(500, labelled=0.1, random_state=1)
    >>> unlabelled = data.y == -1
    >>> clf = GFHF().fit(data.views, data.y)
    >>> bool((clf.transduction_ == data.target)[unlabelled].mean() > 0.85)
    True
    >>> same = GFHF(graph="precomputed").fit(clf.graph_, data.y)
    >>> bool((same.transduction_ == clf.transduction_).all())
    True
    """

    _default_neighbors = 10
    _takes_graphs = True
    _rules: ClassVar[dict[str, Rule]] = {
        "impute": IMPUTE,
        "view": VIEW,
        "graph": one_of("adaptive", "gaussian", "precomputed"),
        "n_neighbors": COUNT_OR_AUTO,
        "width": WIDTH,
    }

    def __init__(
        self,
        views: ViewSpec = None,
        *,
        view: str | int | None = None,
        graph: str = "adaptive",
        n_neighbors: int | str = "auto",
        width: float | str = "median",
        scaling: str | Sequence[str | None] | Mapping[str, str | None] | None = "auto",
        impute: str | None = None,
    ) -> None:
        self.views = views
        self.view = view
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.width = width
        self.scaling = scaling
        self.impute = impute

    def _fit_method(self, problem: Problem) -> Solution:
        if self.graph == "precomputed":
            if problem.graphs:
                raise ValueError("graph='precomputed' takes one affinity as X, without a Graph beside it")
            graph = self._read_affinity(problem.views, square=True)
            self.scalings_ = {}
            self.scaling_reasons_ = {}
        else:
            graph = self._learn(self._embed(problem))
            for one in problem.graphs:
                graph = (graph + normalise_degrees(one.links).astype(graph.dtype)).tocsr()
        fields = laplacian(graph)
        scores, unreached = propagate(fields, problem.targets)
        self.objective_ = np.array([roughness(fields, scores)])
        self.n_iter_ = 1
        self._frequencies = problem.targets.frequencies.astype(scores.dtype)
        return Solution(scores, graph, unreached)

    def _embed(self, problem: Problem) -> Matrix:
        """Scale the views that are used, and concatenate them."""
        self._used = self._choose_views()
        chosen = Problem([problem.views[v] for v in self._used], problem.targets, problem.context)
        self._points = self._fit_scalings(chosen, used=self._used).points()
        return self._points

    def _choose_views(self) -> list[int]:
        """Indices, in canonical order, of the views that are used."""
        if self.view is None:
            return list(range(len(self.view_names_)))
        names = self.view_names_
        if isinstance(self.view, str):
            if self.view not in names:
                raise ValueError(f"view={self.view!r} is not one of the views {names}")
            number = names.index(self.view)
        else:
            number = int(self.view)
            if not 0 <= number < len(names):
                raise ValueError(f"view={number} must be from 0 to {len(names) - 1}: the views are {names}")
        return [self._order.views.index(number)]

    def _learn(self, points: Matrix) -> sparse.csr_array:
        n_samples = points.shape[0]
        self.n_neighbors_ = self._choose_neighbors(n_samples)
        n_neighbors = self.n_neighbors_
        if self.graph == "adaptive":
            return learn_graph(points, n_neighbors, beta=1.0)[0]
        # More than k are fetched, so that ties at the end of the list are broken by index for dense and sparse views.
        found = first_of(other_neighbors(points, min(2 * n_neighbors + 2, n_samples - 1)), n_neighbors)
        self.width_ = median_distance(found.squared_distances) if isinstance(self.width, str) else float(self.width)
        one_way = graph_from_rows(found.indices, gaussian(found.squared_distances, self.width_), n_samples)
        return one_way.maximum(one_way.T).tocsr()

    def _read_affinity(self, raws: list[RawView], *, square: bool) -> sparse.csr_array:
        """The affinities given as X, columns in canonical order like the rows."""
        if len(raws) > 1 or self.view is not None or self.impute is not None:
            raise ValueError("graph='precomputed' takes one affinity matrix as X: leave out views, view and impute")
        (raw,) = raws
        n_rows, n_columns = raw.data.shape
        if square and n_rows != n_columns:
            raise ValueError(
                f"graph='precomputed' takes a square affinity, n × n, as X; got {n_rows} rows and {n_columns} columns"
            )
        if raw.present is not None:
            raise ValueError(
                "graph='precomputed' takes an affinity without missing (NaN) rows; write 0 where there is no edge"
            )
        affinity = sparse.csr_array(raw.data[:, self._order.samples])
        affinity.eliminate_zeros()
        if affinity.nnz and affinity.data.min() < 0:
            raise ValueError(
                f"graph='precomputed' takes affinities that are not negative, but X has {affinity.data.min():g}. "
                "If X has distances d, pass exp(−d²/(2·width²))"
            )
        if square:
            # Self-loops cancel in L.
            affinity = (affinity - sparse.diags_array(affinity.diagonal(), dtype=affinity.dtype)).tocsr()
            affinity.eliminate_zeros()
        return affinity

    def _merges_identical(self) -> bool:
        return self.graph != "precomputed"  # samples with equal affinities are not identical

    def _known_answers(self, keys: NDArray) -> tuple[NDArray, NDArray]:
        if self.graph != "precomputed":
            return super()._known_answers(keys)
        # Samples with the same affinities share their predictions, except those without any.
        known, first, counts = np.unique(self._order.keys, return_index=True, return_counts=True)
        shared = np.add.reduceat(self.label_distributions_[self._order.samples], first) / counts[:, None]
        place = np.searchsorted(known, keys, side="right") - 1
        return shared[place], (known[place] != keys) | (keys == self._empty_key())

    def _empty_key(self) -> NDArray:
        return sample_keys([RawView("X", sparse.csr_array((1, self.n_features_in_)), None)])[0]

    def _predict_linked(self, raws: list[RawView], links: list[sparse.csr_array]) -> NDArray:
        distributions = self._known_distributions()
        scores = np.maximum(self._predict_new(raws), 0)
        scores = scores / scores.sum(axis=1, keepdims=True)
        return scores + sum(mean_over_links(one).astype(scores.dtype) @ distributions for one in links)

    def _predict_new(self, raws: list[RawView]) -> NDArray:
        samples = self._order.samples
        distributions = self._known_distributions()
        if self.graph == "precomputed":
            scores = self._read_affinity(raws, square=False) @ distributions
            return np.where(scores.sum(axis=1, keepdims=True) > 0, scores, self._frequencies)
        queries = self._scale_new([raws[v] for v in self._used]).points()
        n_neighbors = self.n_neighbors_
        if self.graph == "adaptive":
            return connect_new(self._points, queries, n_neighbors) @ distributions
        found = first_of(nearest_neighbors(self._points, queries, min(2 * n_neighbors + 2, len(samples))), n_neighbors)
        # Relative to the nearest, so that weights do not vanish far from all samples.
        excess = found.squared_distances - found.squared_distances[:, :1]
        weights = gaussian(excess, self.width_)
        return graph_from_rows(found.indices, weights, len(samples)) @ distributions

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.graph == "precomputed"
        tags.input_tags.allow_nan &= self.graph != "precomputed"
        return tags


def first_of(found: Neighbors, n_neighbors: int) -> Neighbors:
    """The first k of each list."""
    return Neighbors(found.indices[:, :n_neighbors], found.squared_distances[:, :n_neighbors])


def median_distance(squared_distances: NDArray) -> float:
    """Median of the non-zero distances; 1 if all are zero.

    Examples
    --------
    >>> median_distance(np.array([[1.0, 4.0], [0.0, 9.0]]))
    2.0
    """
    apart = squared_distances[squared_distances > 0]
    return float(np.sqrt(np.median(apart))) if len(apart) else 1.0


def gaussian(squared_distances: NDArray, width: float) -> NDArray:
    """exp(−d/(2·width²)), at least `MIN_WEIGHT`, which keeps outliers connected.

    Examples
    --------
    >>> gaussian(np.array([0.0, 2.0, 1e9]), 1.0).round(3)
    array([1.   , 0.368, 0.   ])
    """
    ratio: Any = squared_distances / squared_distances.dtype.type(2 * width**2)
    return np.maximum(np.exp(-ratio), squared_distances.dtype.type(MIN_WEIGHT))
