"""What the parts share, and the updates of W, H, S and F over them: `lmssc.core.objective` in parts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmssc.core.fit_config import FitConfig
from lmssc.core.graph import stack_coordinates
from lmssc.core.latent import MAX_STEPS, LatentBasis, find_basis
from lmssc.core.loadings import nonnegative_loadings, orthonormal_loadings
from lmssc.core.objective import TOLERANCE
from lmssc.core.parts.executor import Executor, Message, Part, total
from lmssc.core.parts.halo import rows_for_others, with_halo
from lmssc.core.parts.neighbors import PartedKNN
from lmssc.core.parts.parted_graph import learn_graph
from lmssc.core.parts.partition import views_of
from lmssc.core.parts.scores import propagate
from lmssc.core.parts.solver import PartedSystem, product, solve
from lmssc.core.targets import Targets
from lmssc.data.views import loss_from_products
from lmssc.numerics.conjugate_gradient import solver_tolerance


@dataclass(frozen=True)
class PartedState:
    """What an iteration changes besides the arrays of the parts.

    Attributes
    ----------
    loadings : list of ndarray of shape (d_v, r)
        W.
    XtH : list of ndarray of shape (d_v, r)
        X^vᵀH.
    gram : ndarray of shape (r, r)
        HᵀH.
    has_alpha : bool
        Whether α is that of the fit; that of the graphs of the start is not kept.
    change : float
        Relative change of F in the last iteration.
    """

    loadings: list[NDArray]
    XtH: list[NDArray]
    gram: NDArray
    has_alpha: bool = False
    change: float = 1.0


@dataclass(frozen=True)
class PartedObjective:
    """The objective J of samples in parts, and the four updates that lower it in turn.

    The parts have "view0" …, "latent", "labels", "labelled", and once they are known "expected" and "opinion".

    Attributes
    ----------
    search : PartedKNN
        Neighbour search, which knows the parts.
    config : FitConfig
        Parameters.
    targets : Targets
        Y, samples in the order of the fit.
    energies : list of float
        ‖X^v‖².
    dtype : dtype
        That of H and F.
    stretch : ndarray of shape (r,), or None
        Diagonal of C, if samples are compared by direction; parts then have the diagonal of D as "norms".
    gamma : float
        γ.
    opinion_weight : float
        η; 0 without a second opinion.
    """

    search: PartedKNN
    config: FitConfig
    targets: Targets
    energies: list[float]
    dtype: np.dtype
    stretch: NDArray | None = None
    gamma: float = 0.0
    opinion_weight: float = 0.0

    @property
    def executor(self) -> Executor:
        """The parts."""
        return self.search.executor

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.search.n_points

    def tolerance(self, change: float = 1.0) -> float:
        """Relative residual of the solvers after a relative change of F by `change`."""
        return TOLERANCE(self.n_samples, change)

    def step(self, state: PartedState) -> PartedState:
        """One iteration: W, then H, then S, then F."""
        loadings = self.update_loadings(state)
        tol = self.tolerance(state.change)
        state = replace(state, loadings=loadings)
        state = self.update_latent(state, TOLERANCE.latent_share * tol)
        state = self.update_graph(state)
        return replace(state, change=self.propagate(tol))

    def update_loadings(self, state: PartedState) -> list[NDArray]:
        """W: non-negative, or orthonormal."""
        if not self.config.nonnegative:
            return orthonormal_loadings(state.XtH)
        stacked = nonnegative_loadings(np.vstack(state.XtH), state.gram, np.vstack(state.loadings))
        return np.vsplit(stacked, np.cumsum([len(loading) for loading in state.loadings])[:-1])

    def update_latent(self, state: PartedState, tol: float) -> PartedState:
        """H, by conjugate gradients, and its products with the views."""
        metric = None if self.stretch is None else self.stretch**2
        basis = find_basis(state.loadings, metric)
        if basis is None:
            products = self.executor.map(_set_latent_to_zero)
        else:
            self.executor.map(_begin_latent, basis)
            system = LatentSystem(self.config.beta, basis.eigenvalues)
            solve(PartedSystem(self.executor, system), solver_tolerance(self.dtype, tol), MAX_STEPS)
            products = self.executor.map(_set_latent, basis.whole)
        *XtH, gram = total(products)
        return replace(state, XtH=list(XtH), gram=gram)

    def connect(self, *, expected: bool) -> None:
        """S from Z, and P if it is `expected`, without F; and L."""
        self.executor.map(_set_points, self.config.beta, None, self.stretch, expected)
        self._learn(new_alpha=True)

    def update_graph(self, state: PartedState) -> PartedState:
        """S, and α if it is not frozen yet, from √β·Z, √β·P and √γ·F; and L."""
        self.executor.map(_set_points, self.config.beta, self.gamma, self.stretch, True)
        self._learn(new_alpha=not (state.has_alpha and self.config.freeze_alpha))
        return replace(state, has_alpha=True)

    def _learn(self, *, new_alpha: bool) -> None:
        config = self.config
        shared_alpha = config.shared_alpha
        learn_graph(self.search, config.n_neighbors, config.beta, new_alpha=new_alpha, shared_alpha=shared_alpha)

    def propagate(self, tol: float) -> float:
        """F on the present graph; its relative change."""
        return propagate(self.executor, self.targets.frequencies, tol, self.opinion_weight)

    def objective(self, state: PartedState) -> dict[str, float]:
        """The terms of J."""
        sums = self.executor.exchange(_send_coordinates, _terms, self.stretch, bool(self.opinion_weight))
        smoothness, graph, labels, opinion = total(sums)
        grams = [state.gram] * len(state.loadings)
        terms = {
            "fit": loss_from_products(self.energies, state.loadings, state.XtH, grams),
            "smoothness": self.config.beta * smoothness,
            "graph": self.config.beta * graph,
            "labels": self.gamma * labels,
        }
        if self.opinion_weight:
            terms["opinion"] = self.gamma * self.opinion_weight * opinion
        return terms


@dataclass(frozen=True)
class LatentSystem:
    """λ_j·I + β·D⁻¹LD⁻¹, one for each column; D = I unless samples are compared by direction."""

    beta: float
    eigenvalues: NDArray

    def outgoing(self, part: Part, rows: NDArray) -> NDArray:
        """D⁻¹·X."""
        norms = part.get("norms")
        return rows if norms is None else rows / norms[:, None]

    def apply(self, part: Part, rows: NDArray, messages: Mapping[int, Message]) -> NDArray:
        """Rows of the product with X."""
        image = self.outgoing(part, product(part, self.outgoing(part, rows), messages))
        image *= rows.dtype.type(self.beta)
        image += rows * self.eigenvalues
        return image

    def diagonal(self, part: Part) -> NDArray:
        """Diagonal of each of the systems."""
        norms, diagonal = part.get("norms"), part["diagonal"][:, None]
        return self.eigenvalues + self.beta * (diagonal if norms is None else diagonal / norms[:, None] ** 2)


def embedded(part: Part, stretch: NDArray | None, rows: NDArray | slice = slice(None)) -> NDArray:
    """Z of some samples of a part."""
    latent = part["latent"][rows]
    return latent if stretch is None else latent * stretch / part["norms"][rows][:, None]


def _begin_latent(part: Part, basis: LatentBasis) -> None:
    part["cg_r"] = np.ascontiguousarray(views_of(part).dot(basis.loadings))
    part["cg_x"] = part["latent"] @ basis.scaled


def _set_latent(part: Part, whole: NDArray) -> tuple[NDArray, ...]:
    part["latent"] = part["cg_x"] @ whole.T
    return latent_products(part)


def _set_latent_to_zero(part: Part) -> tuple[NDArray, ...]:
    part["latent"] = np.zeros_like(part["latent"])
    return latent_products(part)


def latent_products(part: Part) -> tuple[NDArray, ...]:
    """X^vᵀH of each view, and HᵀH."""
    latent = part["latent"]
    return (*views_of(part).transpose_dot(latent), latent.T @ latent)


def _set_points(part: Part, beta: float, gamma: float | None, stretch: NDArray | None, with_expected: bool) -> None:
    root = np.sqrt(beta)
    blocks = [(embedded(part, stretch), root)]
    if with_expected and "expected" in part:
        blocks.append((part["expected"], root))
    if gamma is not None:
        blocks.append((part["scores"], np.sqrt(gamma)))
    part["points"] = stack_coordinates(blocks, blocks[0][0].dtype)


def coordinates(part: Part, stretch: NDArray | None) -> NDArray:
    """Z, and P beside it if there is one."""
    own = embedded(part, stretch)
    return np.hstack([own, part["expected"]]) if "expected" in part else own


def _send_coordinates(part: Part, stretch: NDArray | None, *_: object) -> Mapping[int, Message]:
    return rows_for_others(part, "edge", coordinates(part, stretch), part["scores"])


def _terms(
    part: Part, messages: Mapping[int, Message], stretch: NDArray | None, has_opinion: bool
) -> tuple[float, float, float, float]:
    """Sums over the samples of a part: roughness of Z and P, of S, of F, and the distance of F from Q."""
    points, scores, graph = coordinates(part, stretch), part["scores"], part["graph"]
    squares = np.asarray(graph.power(2).sum(axis=1)).ravel()
    matrix = part["laplacian"]
    rough = float(np.vdot(points, matrix @ with_halo(points, messages)))
    labels = float(np.vdot(scores, matrix @ with_halo(scores, messages, 1)))
    opinion = 0.0
    if has_opinion:
        away = (scores - part["opinion"])[~part["labelled"]]
        opinion = float(np.vdot(away, away))
    return rough, float(np.vdot(part["alpha"], squares)), labels, opinion
