"""The objective J, and the four updates that lower it in turn: W, H, S, F."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import relative_change
from lmssc.core.embedding import IDENTITY, Embedding
from lmssc.core.graph import learn_graph, separate_groups, stack_coordinates
from lmssc.core.laplacian import laplacian, roughness
from lmssc.core.latent import update_latent
from lmssc.core.links import Links, kinds_of
from lmssc.core.loadings import nonnegative_loadings, orthonormal_loadings
from lmssc.core.propagation import propagate
from lmssc.core.second_opinion import Opinion
from lmssc.core.targets import Targets
from lmssc.data.views import Views
from lmssc.numerics.knn.exact import Search


@dataclass(frozen=True)
class SolverTolerance:
    """Relative residual at which the linear solvers of one iteration stop.

    Every step of a solver lowers J, so a loose tolerance never makes J rise. Small problems are solved to `tightest`;
    in larger ones the residual follows the last change of F, because more digits than that are lost in the next
    iteration anyway.
    """

    max_exact_samples: int = 3000
    """Problems of at most this size are solved to `tightest`."""
    change_share: float = 3e-2
    """Residual of F, as a share of the last relative change of F."""
    tightest: float = 1e-10
    loosest: float = 1e-3
    """Limits of the residual of F."""
    latent_share: float = 1e-2
    """Residual of H, as a share of that of F: a few more steps are enough for it."""

    def __call__(self, n_samples: int, change: float) -> float:
        """Residual for F after a relative change of F by `change`."""
        if n_samples <= self.max_exact_samples:
            return self.tightest
        return min(max(self.change_share * change, self.tightest), self.loosest)


TOLERANCE = SolverTolerance()


@dataclass(frozen=True)
class IterationState:
    """Everything that one iteration changes.

    `search` is working memory: a step hands it on to the state it returns and may update it in place, so only the
    newest state may be stepped.
    """

    loadings: list[NDArray]  # W
    latent: NDArray  # H
    XtH: list[NDArray]  # X^vᵀH
    graph: sparse.csr_array  # S; that of the start comes from `Objective.connect`
    laplacian: sparse.csr_array  # L
    scores: NDArray  # F
    unreached: NDArray  # samples in components without a label
    search: Search  # neighbour lists of the last graph
    alpha: NDArray | None = None  # α of each row; None until the S update of the first `step`, whatever the graph
    change: float = 1.0  # relative change of F in the last iteration


@dataclass(frozen=True)
class Objective:
    """The objective J of one problem, and the four updates that lower it in turn.

    Attributes
    ----------
    views : Views
        X^v, scaled.
    targets : Targets
        Y.
    n_neighbors : int
        k.
    beta, gamma : float
        β and γ.
    nonnegative : bool
        Whether W ≥ 0; otherwise the stacked W has orthonormal columns.
    shared_alpha : bool
        Whether all rows of S share the mean α.
    freeze_alpha : bool
        Whether α stays as the S update of the first `step` sets it. Rows have at most k neighbours when it is set;
        later they may have more.
    embedding : Embedding
        Maps H to Z, in which the graph measures distances.
    expected : ndarray of shape (n, c), or None
        P: the class scores that the label regression expects of each sample, in units of Z.
    ridge : ndarray of shape (r, r), or None
        R: the prior precision of the latent positions, for samples that lack views.
    groups : ndarray of int of shape (n,), or None
        Group of connected views of each sample, if there is more than one group.
    spatially_ordered : bool
        Whether samples that are close in space have close indices, which lets the solver of F use a coarse level.
    opinion : Opinion, or None
        Q and η: the second opinion on the unlabelled samples, to which F is drawn.
    links : Links or None
        Links between the samples that the data came with, whose Laplacian is added to that of S.
    """

    views: Views
    targets: Targets
    n_neighbors: int
    beta: float
    gamma: float
    nonnegative: bool
    shared_alpha: bool
    freeze_alpha: bool
    embedding: Embedding = IDENTITY
    expected: NDArray | None = None
    ridge: NDArray | None = None
    groups: NDArray | None = None
    spatially_ordered: bool = False
    opinion: Opinion | None = None
    links: Links | None = None

    def laplacian(self, graph: sparse.csr_array) -> sparse.csr_array:
        """L of the graph S, plus that of the links."""
        own = laplacian(graph)
        return own if self.links is None else (own + self.links.laplacian).tocsr()

    def sample_kinds(self) -> NDArray:
        """What each sample lacks, as one number: see `kinds_of`."""
        n_without = None if self.links is None else self.links.n_without
        return kinds_of(self.views.missing_counts(), n_without, len(self.views))

    def step(self, state: IterationState) -> IterationState:
        """One iteration of Algorithm 1: W, then H, then S, then F."""
        loadings = self.update_loadings(state)
        latent = update_latent(
            self.views,
            loadings,
            self.embedding.pull_back(state.laplacian),
            self.beta,
            state.latent,
            self.embedding.metric,
            TOLERANCE.latent_share * self.tolerance(state.change),
            self.ridge,
        )
        state = replace(state, loadings=loadings, latent=latent, XtH=self.views.transpose_dot(latent))
        return self.propagate(self.update_graph(state))

    def tolerance(self, change: float = 1.0) -> float:
        """Relative residual of the solvers after a relative change of F by `change`."""
        return TOLERANCE(self.views.n_samples, change)

    def update_loadings(self, state: IterationState) -> list[NDArray]:
        """W: non-negative, or orthonormal with H·Wᵀ in place of missing sample-views (which keeps J from rising)."""
        if self.nonnegative:
            grams = self.views.grams(state.latent)
            if self.views.complete:
                stacked = nonnegative_loadings(np.vstack(state.XtH), grams[0], np.vstack(state.loadings))
                return self.views.split(stacked)
            return [
                nonnegative_loadings(cross, gram, start)
                for cross, gram, start in zip(state.XtH, grams, state.loadings, strict=True)
            ]
        return orthonormal_loadings(self.views.reconstructed_XtH(state.XtH, state.latent, state.loadings))

    def embed(self, latent: NDArray) -> NDArray:
        """Coordinates in which the graph is learned, but for F: Z, and P beside it."""
        embedded = self.embedding.embed(latent)
        return embedded if self.expected is None else np.hstack([embedded, self.expected])

    def update_graph(self, state: IterationState) -> IterationState:
        """S, and α if it is not frozen yet, from √β·Z, √β·P and √γ·F."""
        root = np.sqrt(self.beta)
        parts = [(self.embedding.embed(state.latent), root)]
        if self.expected is not None:
            parts.append((self.expected, root))
        parts.append((state.scores, np.sqrt(self.gamma)))
        alpha = state.alpha if self.freeze_alpha else None
        graph, alpha = self._learn_graph(parts, state.search, alpha)
        return replace(state, graph=graph, laplacian=self.laplacian(graph), alpha=alpha)

    def connect(self, embedded: NDArray, search: Search) -> sparse.csr_array:
        """S from the coordinates `embedded` alone, without F, for the start; `search` is updated in place.

        The α of these graphs is discarded: that of J is set in the S update of the first `step`.
        """
        return self._learn_graph([(embedded, np.sqrt(self.beta))], search)[0]

    def _learn_graph(
        self, parts: Sequence[tuple[NDArray, float]], search: Search, alpha: NDArray | None = None
    ) -> tuple[sparse.csr_array, NDArray]:
        """S and α from blocks of coordinates, each times a factor."""
        points = stack_coordinates(parts, self.views.dtype)
        if self.groups is not None:
            (points,) = separate_groups((points, self.groups))
        return learn_graph(points, self.n_neighbors, self.beta, alpha, shared_alpha=self.shared_alpha, search=search)

    def propagate(self, state: IterationState) -> IterationState:
        """F on the present graph."""
        tol = self.tolerance(state.change)
        scores, unreached = propagate(
            state.laplacian,
            self.targets,
            state.scores,
            tol,
            spatially_ordered=self.spatially_ordered,
            opinion=self.opinion,
        )
        return replace(state, scores=scores, unreached=unreached, change=relative_change(scores, state.scores))

    def objective(self, state: IterationState) -> dict[str, float]:
        """The terms of J."""
        row_squares = np.asarray(state.graph.power(2).sum(axis=1)).ravel()
        terms = {
            "fit": self.views.loss(state.latent, state.loadings, state.XtH),
            "smoothness": self.beta * roughness(state.laplacian, self.embed(state.latent)),
            "graph": self.beta * float(np.vdot(state.alpha, row_squares)),
            "labels": self.gamma * roughness(state.laplacian, state.scores),
        }
        uncertain = self.targets.uncertain
        if len(uncertain):
            away = state.scores[uncertain] - self.targets.matrix(state.scores.dtype)[uncertain]
            terms["trust"] = self.gamma * float(np.asarray(self.targets.trust)[uncertain] @ (away**2).sum(axis=1))
        if self.opinion is not None:
            away = (state.scores - self.opinion.scores)[~self.targets.certain_labels]
            terms["opinion"] = self.gamma * self.opinion.weight * float(np.vdot(away, away))
        if self.ridge is not None:
            incomplete = state.latent[self.views.missing_counts() > 0]
            terms["ridge"] = float(np.vdot(incomplete @ self.ridge, incomplete))
        return terms
