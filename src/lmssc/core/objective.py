"""The objective J, and the four updates that lower it in turn: W, H, S, F."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.alternation import relative_change
from lmssc.core.embedding import PLAIN, Embedding
from lmssc.core.graph import connect, laplacian, learn_graph, roughness
from lmssc.core.latent import update_latent
from lmssc.core.loadings import nonnegative_loadings, orthonormal_loadings
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets
from lmssc.data.views import Views
from lmssc.numerics.knn.exact import ExactKNN, Search

# Beyond so many samples the solvers' relative residual is this share of the last change of F, within these limits.
MOST_SOLVED_EXACTLY = 5000
CHANGE_SHARE, TIGHTEST, LOOSEST = 3e-2, 1e-10, 1e-3
# That of H, which a few steps solve, in units of that of F.
LATENT_SHARE = 1e-2


@dataclass(frozen=True)
class State:
    """All that the alternation changes."""

    loadings: list[NDArray]  # W
    latent: NDArray  # H
    XtH: list[NDArray]  # X^vᵀH
    graph: sparse.csr_array  # S
    laplacian: sparse.csr_array  # L
    scores: NDArray  # F
    unreached: NDArray
    alpha: NDArray | None  # α of each row; None until the first iteration has set it
    change: float = 1.0  # of F, relative, in the last iteration

    def renumbered(self, order: NDArray) -> "State":
        """The same with the samples in another order, but for the Laplacian, which only the updates need."""
        graph = self.graph[order][:, order].tocsr()
        return replace(
            self,
            latent=self.latent[order],
            graph=graph,
            laplacian=sparse.csr_array(graph.shape, dtype=graph.dtype),
            scores=self.scores[order],
            unreached=self.unreached[order],
            alpha=None if self.alpha is None else self.alpha[order],
        )


@dataclass(frozen=True)
class Objective:
    """The objective J of one problem, and the four updates that lower it in turn."""

    views: Views
    targets: Targets
    n_neighbors: int
    beta: float
    gamma: float
    nonnegative: bool
    shared_alpha: bool
    freeze_alpha: bool
    embedding: Embedding = PLAIN
    expected: NDArray | None = None  # P: the class scores expected of each sample, in the units of its place
    initially_disconnected: NDArray | None = (
        None  # samples that no label reaches on the first graph, which is by Z alone
    )
    ridge: NDArray | None = None  # R: keeps samples that lack views where the others are
    groups: NDArray | None = None  # group of linked views of each sample, if there is more than one
    moving: Search = field(default_factory=ExactKNN)

    def first_state(self, latent: NDArray, loadings: list[NDArray], graph: sparse.csr_array) -> State:
        """The state that the alternation starts from, F still zero where there is no label."""
        return State(
            loadings=[np.maximum(loading, 0) for loading in loadings] if self.nonnegative else loadings,
            latent=latent,
            XtH=self.views.transpose_dot(latent),
            graph=graph,
            laplacian=laplacian(graph),
            scores=self.targets.matrix(self.views.dtype),
            unreached=np.zeros(len(latent), dtype=bool),
            alpha=None,
        )

    def step(self, state: State) -> State:
        """One iteration of Algorithm 1: W, then H, then S, then F."""
        loadings = self.update_loadings(state)
        latent = update_latent(
            self.views,
            loadings,
            self.embedding.pull_back(state.laplacian),
            self.beta,
            state.latent,
            self.embedding.metric,
            LATENT_SHARE * self.tolerance(state.change),
            self.ridge,
        )
        state = replace(state, loadings=loadings, latent=latent, XtH=self.views.transpose_dot(latent))
        return self.propagate(self.update_graph(state))

    def tolerance(self, change: float) -> float:
        """Relative residual of the solvers, which start from what they solved last; so J falls whatever it is."""
        if self.views.n_samples <= MOST_SOLVED_EXACTLY:
            return TIGHTEST
        return min(max(CHANGE_SHARE * change, TIGHTEST), LOOSEST)

    def update_loadings(self, state: State) -> list[NDArray]:
        """W: non-negative, or orthonormal with missing sample-views taken as H·Wᵀ (which keeps J from rising)."""
        if self.nonnegative:
            grams = self.views.grams(state.latent)
            if self.views.complete:
                stacked = nonnegative_loadings(np.vstack(state.XtH), grams[0], np.vstack(state.loadings))
                return self.views.split(stacked)
            return [
                nonnegative_loadings(cross, gram, start)
                for cross, gram, start in zip(state.XtH, grams, state.loadings, strict=True)
            ]
        return orthonormal_loadings(self.views.impute_XtH(state.XtH, state.latent, state.loadings))

    def places(self, latent: NDArray) -> NDArray:
        """Where the graph sees the samples: Z, and P beside it."""
        places = self.embedding.embed(latent)
        return places if self.expected is None else np.hstack([places, self.expected])

    def update_graph(self, state: State) -> State:
        """S, and α if it is not frozen yet, from √β·Z, √β·P and √γ·F."""
        root = np.sqrt(self.beta)
        places = [(self.embedding.embed(state.latent), root)]
        if self.expected is not None:
            places.append((self.expected, root))
        alpha = state.alpha if self.freeze_alpha else None
        graph, alpha = self._learn_graph([*places, (state.scores, np.sqrt(self.gamma))], alpha)
        return replace(state, graph=graph, laplacian=laplacian(graph), alpha=alpha)

    def _learn_graph(
        self, parts: Sequence[tuple[NDArray, float]], alpha: NDArray | None = None
    ) -> tuple[sparse.csr_array, NDArray]:
        """S and α from where the samples are: arrays side by side, each times a number."""
        ends = np.cumsum([part.shape[1] for part, _ in parts])
        points = np.empty((len(parts[0][0]), ends[-1]), dtype=self.views.dtype)
        for columns, (part, factor) in zip(np.split(points, ends[:-1], axis=1), parts, strict=True):
            np.multiply(part, points.dtype.type(factor), out=columns, casting="same_kind")
        if self.groups is not None:
            # Samples that cannot be compared are further apart than any that can.
            far = 10 * float(np.sqrt(np.einsum("ij,ij->i", points, points).max()))
            points = np.hstack([points, (far * self.groups[:, None]).astype(points.dtype)])
        return learn_graph(
            points, self.n_neighbors, self.beta, alpha, shared_alpha=self.shared_alpha, moving=self.moving
        )

    def connect(self, points: NDArray) -> sparse.csr_array:
        """S alone, from the places."""
        return self._learn_graph([(points, np.sqrt(self.beta))])[0]

    def propagate(self, state: State) -> State:
        """F on the present graph."""
        tol = self.tolerance(state.change)
        scores, unreached = propagate(state.laplacian, self.targets, state.scores, tol)
        return replace(state, scores=scores, unreached=unreached, change=relative_change(scores, state.scores))

    def rescue_disconnected(self, state: State) -> State:
        """Scores of samples that only the expected scores cut off from all labels: those of their neighbours by Z."""
        if self.initially_disconnected is None:
            return state
        back = state.unreached & ~self.initially_disconnected
        if not back.any():
            return state
        places = self.embedding.embed(state.latent)
        weights = connect(places[~state.unreached], places[back], min(self.n_neighbors, int((~state.unreached).sum())))
        scores = state.scores.copy()
        scores[back] = weights @ state.scores[~state.unreached]
        return replace(state, scores=scores, unreached=state.unreached & ~back)

    def renumbered(self, order: NDArray) -> "Objective":
        """The same problem with the samples in another order; the neighbour search follows."""
        self.moving.renumber(order)
        return replace(
            self,
            views=self.views.renumbered(order),
            targets=self.targets.take(order),
            embedding=self.embedding.renumbered(order),
            expected=None if self.expected is None else self.expected[order],
            initially_disconnected=None if self.initially_disconnected is None else self.initially_disconnected[order],
            groups=None if self.groups is None else self.groups[order],
        )

    def objective(self, state: State) -> dict[str, float]:
        """The terms of J."""
        row_squares = np.asarray(state.graph.power(2).sum(axis=1)).ravel()
        terms = {
            "fit": self.views.loss(state.latent, state.loadings, state.XtH),
            "smoothness": self.beta * roughness(state.laplacian, self.places(state.latent)),
            "graph": self.beta * float(np.vdot(state.alpha, row_squares)),
            "labels": self.gamma * roughness(state.laplacian, state.scores),
        }
        if self.ridge is not None:
            few = state.latent[self.views.missing_counts() > 0]
            terms["ridge"] = float(np.vdot(few @ self.ridge, few))
        return terms
