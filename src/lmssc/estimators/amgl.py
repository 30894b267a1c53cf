"""AMGL: one graph per view; their weights and the labels are learned together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import alternate, relative_change
from lmssc.core.graph import connect_new, graph_among_all, learn_graph
from lmssc.core.laplacian import laplacian, roughness
from lmssc.core.links import mean_over_links
from lmssc.core.progress import IterationProgress
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import in_input_order
from lmssc.data.parameters import Rule
from lmssc.data.presence import rows_with
from lmssc.data.validation import ViewSpec
from lmssc.data.view import RawView, View
from lmssc.estimators.fixed_neighbors import ITERATIVE_RULES, FixedNeighborsClassifier
from lmssc.estimators.problem import Problem, Solution
from lmssc.estimators.view_weights import self_weights


@dataclass(frozen=True)
class AMGLState:
    """Everything that one iteration changes."""

    weights: NDArray  # a_v
    scores: NDArray  # F, zero where no label reaches
    roughness: NDArray  # Tr(FᵀL_vF) of each view
    unreached: NDArray
    change: float = 1.0  # relative change of F in the last iteration


@dataclass(frozen=True)
class AMGLObjective:
    """The objective Σ_v √Tr(FᵀL_vF) of one problem, and the step that lowers it."""

    laplacians: list[sparse.csr_array]
    targets: Targets

    def start(self) -> AMGLState:
        """Equal weights, and F = 0 for unlabelled samples."""
        n_views, dtype = len(self.laplacians), self.laplacians[0].dtype
        scores = self.targets.matrix(dtype)
        nobody = np.zeros(len(scores), dtype=bool)
        return AMGLState(np.full(n_views, 1 / n_views), scores, np.full(n_views, np.inf), nobody)

    def step(self, state: AMGLState) -> AMGLState:
        """F for the present weights, then the weights a_v = 1/(2·√Tr(FᵀL_vF))."""
        joint = combine(self.laplacians, state.weights)
        scores, unreached = propagate(joint, self.targets, state.scores, normalised=True)
        # L_v is normalised, so a constant is not smooth where degrees differ; zero is.
        scores[unreached] = 0
        rough = np.array([max(roughness(one, scores), 0.0) for one in self.laplacians])
        return AMGLState(self_weights(rough), scores, rough, unreached, relative_change(scores, state.scores))

    def objective(self, state: AMGLState) -> dict[str, float]:
        """Σ_v √Tr(FᵀL_vF)."""
        return {"labels": float(np.sqrt(state.roughness).sum())}


def combine(matrices: Sequence[sparse.csr_array], weights: NDArray) -> sparse.csr_array:
    """Σ_v a_v·L_v.

    Examples
    --------
    >>> combine([sparse.eye_array(2, format="csr")] * 2, np.array([1.0, 0.5])).toarray()
    array([[1.5, 0. ],
           [0. , 1.5]])
    """
    total = matrices[0] * matrices[0].dtype.type(weights[0])
    for matrix, weight in zip(matrices[1:], weights[1:], strict=True):
        total = total + matrix * matrix.dtype.type(weight)
    return total.tocsr()


class AMGL(FixedNeighborsClassifier):
    """Auto-weighted multiple graph learning: one graph per view, weighted without a parameter.

    With L_v = I − D_v^−½·W_v·D_v^−½ the normalised Laplacian of view v's graph, it lowers

        Σ_v √Tr(FᵀL_vF),    F_l = Y_l,

    alternating

        F_u = −L_uu⁻¹·L_ul·Y_l with L = Σ_v a_v·L_v,    a_v = 1 / (2·√Tr(FᵀL_vF)),

    so that views whose graph makes the labels smooth get a large weight. W_v is the symmetrised adaptive-neighbour
    graph of the view, s_j = (d_{k+1} − d_j) / (k·d_{k+1} − Σ_{m≤k} d_m) with d the sorted squared distances.

    Parameters
    ----------
    views : list of int, list of slices, dict of name → columns, or None
        How the columns of one 2-D X are split into views: widths, slices, or column indices or names. None for a
        single view, or if X is a list or dict of views.
    n_neighbors : int or "auto"
        Neighbours k of a sample in each view. "auto" is 5, or fewer for very few samples.
    scaling : "auto", None or the name of a scaling, or a list or dict of these by view
        As for `LMSSC`. None, the default, does not scale, as in the paper; on most data "auto" is better.
    impute : {"median", "mean"} or None
        Replacement of single missing values, as for `LMSSC`. None raises an error if there are any.
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the objective falls by less than this share of itself.
    callback : callable, optional
        Called with an `IterationProgress` after each iteration.
    verbose : int
        If positive, print a line after each iteration.

    Attributes
    ----------
    classes_, transduction_, unreached_, n_neighbors_, n_iter_, scalings_, scaling_reasons_, imputed_, view_names_
        As for `LMSSC`.
    label_distributions_ : ndarray of shape (n, c)
        Class distribution of each sample: F with its rows divided by their sums, which are not 1 for normalised
        Laplacians.
    graph_ : csr_array of shape (n, n)
        Σ_v a_v·D_v^−½·W_v·D_v^−½ / Σ_v a_v: symmetric, without self-loops.
    view_weights_ : ndarray of shape (V,)
        a_v, in the order of the views; only their ratios matter.
    link_weights_ : dict of str to float
        a_v of each graph.
    objective_ : ndarray of shape (n_iterations,)
        Σ_v √Tr(FᵀL_vF) after each iteration; it never rises.

    See Also
    --------
    GFHF : One graph of all views concatenated.
    MLAN : One graph, learned from weighted views.

    Notes
    -----
    The published program multiplies F_u by ½, unlike the minimiser in the paper. That changes the weights, because the
    labelled rows stay as they are. Here F_u is that of the paper.

    A `Graph` is one more Laplacian.

    A sample that lacks a view is not in that view's graph. A view whose graph fits the labels perfectly would get an
    infinite weight; no weight is more than 10⁶ times another.

    A new sample gets the mean of its neighbours' distributions, over the views that it has, with the weights a_v.

    References
    ----------
    Nie, Li and Li, "Parameter-free auto-weighted multiple graph learning", IJCAI 2016.

    Examples
    --------
    >>> from lmssc import AMGL
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(500, noise_views=1, labelled=0.1, random_state=1)
    >>> clf = AMGL().fit(data.views, data.y)
    >>> int(clf.view_weights_.argmin()), clf.score(data.views, data.target) > 0.6  # the last view is noise
    (2, True)
    """

    _default_neighbors = 5
    _takes_graphs = True
    _rules: ClassVar[dict[str, Rule]] = ITERATIVE_RULES

    def __init__(
        self,
        views: ViewSpec = None,
        *,
        n_neighbors: int | str = "auto",
        scaling: str | Sequence[str | None] | Mapping[str, str | None] | None = None,
        impute: str | None = None,
        max_iter: int = 100,
        tol: float = 1e-8,
        callback: Callable[[IterationProgress], object] | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.n_neighbors = n_neighbors
        self.scaling = scaling
        self.impute = impute
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose

    @classmethod
    def _upgrade(cls, parameters: dict[str, Any], fitted: dict[str, Any], saved_by: str) -> None:
        super()._upgrade(parameters, fitted, saved_by)
        fitted.setdefault("link_weights_", {})

    def _fit_method(self, problem: Problem) -> Solution:
        views = self._fit_scalings(problem)
        self.n_neighbors_ = self._choose_neighbors(views.n_samples)
        self._scaled = list(views)
        laplacians = [
            laplacian(own_graph(view, self.n_neighbors_).astype(views.dtype, copy=False), normalised=True)
            for view in views
        ]
        # A graph is one more Laplacian.
        laplacians += [laplacian(graph.links.astype(views.dtype), normalised=True) for graph in problem.graphs]
        model = AMGLObjective(laplacians, problem.targets)
        state, terms, _ = alternate(
            model.start(),
            model.step,
            model.objective,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self._progress(),
            by_objective=True,
        )
        self.view_weights_ = np.array(in_input_order(state.weights[: len(views)], self._order))
        self.link_weights_ = self._by_graph(state.weights[len(views) :])
        self.objective_ = terms["labels"]
        self.n_iter_ = len(self.objective_)
        joint = combine(laplacians, state.weights / state.weights.sum())
        graph = (sparse.diags_array(joint.diagonal(), dtype=joint.dtype) - joint).tocsr()
        graph.eliminate_zeros()
        # Scores decay with each edge on which the views disagree, and can vanish.
        unreached = state.unreached | (state.scores.max(axis=1) <= 0)
        frequencies = problem.targets.frequencies.astype(views.dtype)
        return Solution(np.where(unreached[:, None], frequencies, state.scores), graph, unreached)

    def _predict_new(self, raws: list[RawView]) -> NDArray:
        return self._predict_linked(raws, [])

    def _predict_linked(self, raws: list[RawView], links: list[sparse.csr_array]) -> NDArray:
        distributions = self._known_distributions()
        queries = self._scale_new(raws)
        scores = np.zeros((queries.n_samples, distributions.shape[1]), dtype=distributions.dtype)
        weights = self.view_weights_[self._order.views]
        total = weights.sum() + sum(self.link_weights_.values())
        weights = weights / total
        for graph, one in zip(self._graph_order, links, strict=True):
            weight = self.link_weights_[self.graph_names_[graph]] / total
            scores += scores.dtype.type(weight) * (mean_over_links(one).astype(scores.dtype) @ distributions)
        for weight, known, new in zip(weights, self._scaled, queries, strict=True):
            there = rows_with(known)
            asked = rows_with(new)
            if len(asked):
                k = min(self.n_neighbors_, len(there))
                rows = connect_new(known.data[there], new.data[asked], k) @ distributions[there]
                scores[asked] += scores.dtype.type(weight) * rows
        return scores


def own_graph(view: View, n_neighbors: int) -> sparse.csr_array:
    """Adaptive-neighbour graph of the samples that have a view; the others have no edges.

    Examples
    --------
    >>> view = View(np.array([[0.0], [7.0], [1.0], [3.0]]), present=np.array([True, False, True, True]))
    >>> own_graph(view, 1).toarray()
    array([[0., 0., 1., 0.],
           [0., 0., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 1., 0.]])
    """
    there = rows_with(view)
    n_samples = view.data.shape[0]
    if len(there) < 2:
        return sparse.csr_array((n_samples, n_samples), dtype=view.data.dtype)
    graph = learn_graph(view.data[there], min(n_neighbors, len(there) - 1), beta=1.0)[0]
    return graph_among_all(graph, there, n_samples)
