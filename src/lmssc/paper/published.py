"""A port of the published program, with its update order and its row bookkeeping, to measure their effect.

Do not use it on your own data: `lmssc.LMSSC` is the method. The port keeps three quirks that the program's results
depend on: the rows of the class scores are in another order than all other rows, neighbours are chosen by the latent
positions alone, and edges of earlier rounds are never removed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassifierMixin

from lmssc.core.graph import simplex_rows
from lmssc.core.loadings import nonnegative_loadings
from lmssc.data.canonical_order import canonical_order
from lmssc.data.view import RawView
from lmssc.numerics.conjugate_gradient import conjugate_gradient


@dataclass(frozen=True)
class ProgramConstants:
    """Constants of the published program, and of the solvers of this port."""

    n_neighbors: int = 10
    """Neighbours per sample."""
    max_rounds: int = 50
    """Largest number of rounds."""
    tol: float = 1e-5
    """Stop when F changes by less than this share of its norm."""
    empty_column: float = 1e-10
    """A column of H whose norm is below this share of the largest is set to zero: it is rounding error."""
    undetermined: float = 1e-13
    """Eigenvalues below this share of the largest count as zero; the solution has no part along them."""
    max_samples_for_eigh: int = 500
    """Up to this many samples H is solved by a full eigendecomposition, beyond it by conjugate gradients."""


PROGRAM = ProgramConstants()
GRID = [(r, beta, gamma) for r in (20, 50) for beta in (0.01, 0.1, 1.0) for gamma in (0.1, 1.0, 10.0)]
"""Grid of (r, β, γ). For each draw the program reports the setting with the best test accuracy."""


class Answer(NamedTuple):
    """Predicted classes of the unlabelled rows, these rows, the class scores F, and the number of rounds."""

    predicted: NDArray
    unlabelled: NDArray
    scores: NDArray
    n_rounds: int


def draw_labelled(n_samples: int, n_classes: int, rate: float, seed: int) -> NDArray:
    """Draw the labelled rows as the program does, which assumes rows in class order and classes of equal size.

    ⌊rate·n_c⌋ of the first n_c = ⌊N/c⌋ rows are drawn, and the same positions are used in each of the c blocks of n_c
    rows.

    Parameters
    ----------
    n_samples, n_classes : int
        N and c.
    rate : float
        Share of labelled rows in each block.
    seed : int
        Seed of the draw.

    Returns
    -------
    ndarray of int
        Labelled rows, in the order of the draw.

    Examples
    --------
    >>> draw_labelled(10, 2, 0.4, seed=0).tolist()
    [2, 4, 7, 9]
    """
    block = n_samples // n_classes
    drawn = np.random.default_rng(seed).permutation(block)[: int(rate * block + 1e-9)]
    return (drawn + block * np.arange(n_classes)[:, None]).ravel()


def published_program(
    views: Sequence[Any],
    codes: NDArray,
    labelled: NDArray,
    start: NDArray,
    *,
    beta: float,
    gamma: float,
    mended: bool = False,
    max_rounds: int = PROGRAM.max_rounds,
) -> Answer:
    """Run the published program on the rows in the given order.

    Each round updates the loadings W (non-negative least squares for each feature), the latent positions H (a Sylvester
    equation), α, the graph S, and the class scores F. The updates of α and S add two matrices of squared distances. One
    is between the rows of H, in the order of the data. The other is between the rows of F, which the program stores
    with the labelled rows first, in the order of the draw, and the others after them. So entry (i, j) of the two
    matrices is about different pairs of samples, unless `mended`.

    Where H or F is not determined (a component that no loading uses, samples that no path connects with a label), the
    program's answer is arbitrary. The port takes the solution of smallest norm: samples that no label reaches have
    F = 0, and class 0.

    Parameters
    ----------
    views : sequence of array or sparse matrix of shape (N, d_v)
        Views, which are not scaled.
    codes : ndarray of int of shape (N,)
        Classes 0, …, c−1. Only those of the labelled rows are used, and the number of classes.
    labelled : ndarray of int
        Labelled rows, in the order of the draw.
    start : ndarray of shape (N, r)
        Initial H; the program draws it uniformly from [0, 1].
    beta, gamma : float
        Weights β and γ.
    mended : bool
        Keep the rows of F in the order of the data; nothing else changes.
    max_rounds : int
        Largest number of rounds. The program stops earlier once F changes by less than 1e-5 of its norm.

    Returns
    -------
    Answer
        `predicted`, the classes of the rows `unlabelled` (ascending); `scores`, F in the order of the data; `n_rounds`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 20)
    >>> X = rng.random((40, 5)) + codes[:, None]
    >>> labelled = draw_labelled(40, 2, 0.2, seed=0)
    >>> answer = published_program([X], codes, labelled, rng.random((40, 3)), beta=0.1, gamma=1.0)
    >>> answer.predicted.shape, answer.scores.shape
    ((32,), (40, 2))
    """
    data = _stack(views)
    n, c = len(codes), int(codes.max()) + 1
    unlabelled = np.setdiff1d(np.arange(n), labelled)
    kept = np.arange(n) if mended else np.concatenate([labelled, unlabelled])
    latent, loadings = start, None
    graph = np.eye(n)
    scores = np.zeros((n, c))
    scores[labelled, codes[labelled]] = 1
    laplacian = np.zeros((n, n))
    n_rounds, converged = 0, False
    while n_rounds < max_rounds and not converged:
        loadings = nonnegative_loadings(np.asarray(data.T @ latent), latent.T @ latent, loadings)
        latent = _latent(loadings.T @ loadings, np.asarray(data @ loadings), laplacian, beta, latent)
        _rewrite(graph, _squared_distances(latent), _squared_distances(scores[kept]), beta, gamma)
        laplacian = np.diag(graph.sum(axis=1)) - graph
        before, scores = scores, _propagate(graph, laplacian, scores, labelled, unlabelled)
        converged = linalg.norm(scores - before) < PROGRAM.tol * linalg.norm(scores)
        n_rounds += 1
    return Answer(scores[unlabelled].argmax(axis=1), unlabelled, scores, n_rounds)


class PublishedProgram(ClassifierMixin, BaseEstimator):
    """The published program as an estimator, to measure it like any other.

    The labelled rows are ordered by class, then by index, because the program's own draw is ordered by class. The
    initial position of a sample does not depend on its row, so any effect of a permutation is due to the bookkeeping.

    Parameters
    ----------
    n_components : int
        r.
    beta, gamma : float
        β and γ.
    mended : bool
        Whether to keep the rows of F in the order of the data.
    random_state : int
        Seed of the initial H.

    Attributes
    ----------
    transduction_ : ndarray of int of shape (N,)
        Predicted classes of all rows.
    label_distributions_ : ndarray of shape (N, c)
        F.

    Examples
    --------
    >>> from lmssc.datasets import make_multiview
    >>> data = make_multiview(60, labelled=0.3, random_state=0)
    >>> PublishedProgram(n_components=5).fit(data.views, data.y).transduction_.shape
    (60,)
    """

    def __init__(
        self,
        n_components: int = 20,
        beta: float = 0.1,
        gamma: float = 1.0,
        *,
        mended: bool = False,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.beta = beta
        self.gamma = gamma
        self.mended = mended
        self.random_state = random_state

    def fit(self, X: Sequence[Any], y: NDArray) -> Self:
        """Run the program.

        Parameters
        ----------
        X : sequence of array or sparse matrix
            The views.
        y : ndarray of int
            Classes 0, …, c−1; −1 for unlabelled rows.
        """
        y = np.asarray(y)
        by_class = np.argsort(y, kind="stable")
        start = np.empty((len(y), self.n_components))
        drawn = np.random.default_rng(self.random_state).random(start.shape)
        start[canonical_order([RawView("all", _stack(X), None)], y).samples] = drawn
        answer = published_program(
            X,
            y,
            by_class[y[by_class] >= 0],
            start,
            beta=self.beta,
            gamma=self.gamma,
            mended=self.mended,
        )
        self.classes_ = np.arange(answer.scores.shape[1])
        self.label_distributions_ = answer.scores
        self.transduction_ = answer.scores.argmax(axis=1)
        return self


def _stack(views: Sequence[Any]) -> Any:
    """Concatenate the views; the updates of W and H only use sums over all views."""
    if any(sparse.issparse(view) for view in views):
        return sparse.hstack([sparse.csr_array(view) for view in views], format="csr")
    return np.hstack([np.asarray(view, dtype=float) for view in views])


def _latent(gram: NDArray, rhs: NDArray, laplacian: NDArray, beta: float, start: NDArray) -> NDArray:
    """Solve H·A + β·L·H = B for H; the solution of smallest norm if there are several."""
    used = np.diag(gram) > 0
    values, basis = linalg.eigh(gram[np.ix_(used, used)])
    rhs = rhs[:, used] @ basis
    solve = _solve_by_eigenvectors if len(rhs) <= PROGRAM.max_samples_for_eigh else _solve_by_gradients
    latent = np.zeros_like(start)
    latent[:, used] = solve(np.maximum(values, 0), beta * laplacian, rhs, start[:, used] @ basis) @ basis.T
    # A column that is almost zero holds rounding errors, which the next loadings would amplify.
    norms = linalg.norm(latent, axis=0)
    return np.where(norms > PROGRAM.empty_column * norms.max(), latent, 0)


def _solve_by_eigenvectors(values: NDArray, laplacian: NDArray, rhs: NDArray, start: NDArray) -> NDArray:
    """Solve (λ·I + L)·h = b for each column, by all eigenvectors of L: exact, but slow for many rows."""
    frequencies, modes = linalg.eigh(laplacian)
    denominator = np.maximum(frequencies, 0)[:, None] + values
    undetermined = denominator <= PROGRAM.undetermined * denominator.max()
    return modes @ np.where(undetermined, 0, modes.T @ rhs / np.where(undetermined, 1, denominator))


def _solve_by_gradients(values: NDArray, laplacian: NDArray, rhs: NDArray, start: NDArray) -> NDArray:
    """Solve the same equations by conjugate gradients."""
    seen = values > PROGRAM.undetermined * values.max()
    diagonal = values[seen] + np.diag(laplacian)[:, None]
    edges = sparse.csr_array(laplacian)  # a few percent of all pairs, even after 50 rounds
    solution = np.zeros_like(rhs)
    solution[:, seen] = conjugate_gradient(
        lambda columns: columns * values[seen] + edges @ columns,
        rhs[:, seen],
        start[:, seen],
        lambda residual: residual / diagonal,
        tol=1e-12,
    )
    return solution


def _squared_distances(rows: NDArray) -> NDArray:
    """Squared distances between all rows; infinite on the diagonal, so that no row is its own neighbour."""
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = rows @ (-2 * rows.T)
    distances += squares[:, None]
    distances += squares
    np.maximum(distances, 0, out=distances)
    np.fill_diagonal(distances, np.inf)
    return distances


def _rewrite(graph: NDArray, by_latent: NDArray, by_scores: NDArray, beta: float, gamma: float) -> None:
    """Update S in place: write k entries of each row, keep the others, then S ← (S+Sᵀ)/2."""
    k = min(PROGRAM.n_neighbors, len(graph) - 2)
    # For α the two kinds of distances are sorted separately: the j-th nearest by H need not be the j-th nearest by F.
    nearest = [np.sort(np.partition(d, k, axis=1)[:, : k + 1], axis=1) for d in (by_latent, by_scores)]
    sorted_apart = beta * nearest[0] + gamma * nearest[1]
    alpha = np.mean(k * sorted_apart[:, k] - sorted_apart[:, :k].sum(axis=1)) / 2 / (2 * beta)
    neighbors = np.argpartition(by_latent, k - 1, axis=1)[:, :k]
    distances = beta * np.take_along_axis(by_latent, neighbors, 1) + gamma * np.take_along_axis(by_scores, neighbors, 1)
    ranks = np.argsort(distances, axis=1)
    weights, _ = simplex_rows(np.take_along_axis(distances, ranks, 1), np.full(len(graph), 4 * alpha * beta))
    np.put_along_axis(graph, np.take_along_axis(neighbors, ranks, 1), weights, 1)
    np.fill_diagonal(graph, 0)
    graph += graph.T
    graph /= 2


def _propagate(graph: NDArray, laplacian: NDArray, scores: NDArray, labelled: NDArray, unlabelled: NDArray) -> NDArray:
    """F_u = −L_uu⁻¹·L_ul·Y_l; zero where no label reaches."""
    _, component = connected_components(sparse.csr_array(graph), directed=False)
    reached = unlabelled[np.isin(component[unlabelled], component[labelled])]
    result = np.zeros_like(scores)
    result[labelled] = scores[labelled]
    rhs = graph[np.ix_(reached, labelled)] @ scores[labelled]
    inner = laplacian[np.ix_(reached, reached)]
    try:
        result[reached] = linalg.cho_solve(linalg.cho_factor(inner), rhs)
    except linalg.LinAlgError:  # some rows are tied to a label by rounding error only
        result[reached] = linalg.pinvh(inner) @ rhs
    return result
