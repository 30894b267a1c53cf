"""The published program, ported: its update order and its bookkeeping of rows, to measure what they do.

Nothing here is meant for use on data of one's own: `lmssc.LMSSC` is the method. What is kept of the program, although
one would not do it so, is what its results depend on: the rows of the class scores stand in another order than the
rows of everything else, the neighbours are those of the latent positions alone, and edges once written stay.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassifierMixin

from lmssc.core.graph import simplex_rows
from lmssc.core.loadings import nonnegative_loadings
from lmssc.data.canonical_order import canonical_order
from lmssc.data.views import RawView
from lmssc.numerics.conjugate_gradient import conjugate_gradient

N_NEIGHBORS = 10
MOST_ROUNDS = 50
TOLERANCE = 1e-5
EMPTY = 1e-10
UNDETERMINED = 1e-13
MOST_BY_MODES = 500
GRID = [(r, beta, gamma) for r in (20, 50) for beta in (0.01, 0.1, 1.0) for gamma in (0.1, 1.0, 10.0)]
"""The settings (r, β, γ) from which the program takes the one with the best test accuracy, anew for each draw."""


class Answer(NamedTuple):
    """Class of each sample without a label, these samples, and after how many rounds."""

    predicted: NDArray
    unlabelled: NDArray
    scores: NDArray
    n_rounds: int


def draw_labelled(n_samples: int, n_classes: int, rate: float, seed: int) -> NDArray:
    """The program's rule for which rows have a label, made for rows in class order and classes of one size.

    ⌊rate·n_c⌋ positions are drawn from the first n_c = ⌊N/c⌋ rows, and used in each of the c blocks of n_c rows.

    Parameters
    ----------
    n_samples, n_classes : int
        N and c.
    rate : float
        Share of each block.
    seed : int
        Decides the draw.

    Returns
    -------
    ndarray of int
        Rows, in the order in which they were drawn.

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
    max_rounds: int = MOST_ROUNDS,
) -> Answer:
    """Run the published program on rows in the order in which they are given.

    A round updates the loadings W (non-negative least squares for each feature), the latent positions H (a Sylvester
    equation), α, the graph S, and the class scores F. Two lists of squared distances enter α and S: between rows of H,
    which are in the order of the data, and between rows of F, which are kept as the labelled rows, in the order in
    which they were drawn, over the others, ascending. Entry (i, j) of the one and of the other is therefore not about
    the same two samples, unless `mended`.

    Two cases in which the program's answer is left to chance have a definite one here: where H or F is not determined
    (a component that no loading uses, samples that no path connects with a label) it is the solution of the
    smallest norm. For samples that no label reaches this is F = 0, and class 0.

    Parameters
    ----------
    views : sequence of array or sparse matrix of shape (N, d_v)
        As they are, not scaled.
    codes : ndarray of int of shape (N,)
        Classes 0, …, c−1; read at the labelled rows only, but for the number of classes.
    labelled : ndarray of int
        Rows with a label, in the order in which they were drawn.
    start : ndarray of shape (N, r)
        H at the start; the program draws it uniformly from [0, 1].
    beta, gamma : float
        Weights β and γ.
    mended : bool
        Put the rows of F into the order of the data, and change nothing else.
    max_rounds : int
        Most rounds; it ends before when F changes by less than 1e-5 of its norm.

    Returns
    -------
    Answer
        `predicted`, classes of the rows `unlabelled` (ascending); `scores`, F of all rows in the order of the data;
        `n_rounds`.

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
    n_rounds, settled = 0, False
    while n_rounds < max_rounds and not settled:
        loadings = nonnegative_loadings(np.asarray(data.T @ latent), latent.T @ latent, loadings)
        latent = _latent(loadings.T @ loadings, np.asarray(data @ loadings), laplacian, beta, latent)
        _rewrite(graph, _squared_distances(latent), _squared_distances(scores[kept]), beta, gamma)
        laplacian = np.diag(graph.sum(axis=1)) - graph
        before, scores = scores, _propagate(graph, laplacian, scores, labelled, unlabelled)
        settled = linalg.norm(scores - before) < TOLERANCE * linalg.norm(scores)
        n_rounds += 1
    return Answer(scores[unlabelled].argmax(axis=1), unlabelled, scores, n_rounds)


class PublishedProgram(ClassifierMixin, BaseEstimator):
    """The published program as an estimator, so that it can be measured like any other.

    The labelled rows are taken class by class, ascending, as the program's own draw gives them class by class. A sample
    has the same start wherever it stands, so that what a permutation changes is due to the bookkeeping alone.

    Parameters
    ----------
    n_components : int
        r.
    beta, gamma : float
        β and γ.
    mended : bool
        Whether the rows of F are in the order of the data.
    random_state : int
        Decides H at the start.

    Attributes
    ----------
    transduction_ : ndarray of int of shape (N,)
        Classes of all rows.
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
        """Run it.

        Parameters
        ----------
        X : sequence of array or sparse matrix
            The views.
        y : ndarray of int
            Classes 0, …, c−1, and −1 where it is not known.
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
    """All views side by side; the updates of W and H see nothing but their sums over views."""
    if any(sparse.issparse(view) for view in views):
        return sparse.hstack([sparse.csr_array(view) for view in views], format="csr")
    return np.hstack([np.asarray(view, dtype=float) for view in views])


def _latent(gram: NDArray, rhs: NDArray, laplacian: NDArray, beta: float, start: NDArray) -> NDArray:
    """H of H·A + β·L·H = B, the smallest if there are many."""
    used = np.diag(gram) > 0
    values, basis = linalg.eigh(gram[np.ix_(used, used)])
    rhs = rhs[:, used] @ basis
    solve = _solve_by_modes if len(rhs) <= MOST_BY_MODES else _solve_by_gradients
    latent = np.zeros_like(start)
    latent[:, used] = solve(np.maximum(values, 0), beta * laplacian, rhs, start[:, used] @ basis) @ basis.T
    # What is left of a column that is all but empty are rounding errors, which the next loadings would blow up.
    norms = linalg.norm(latent, axis=0)
    return np.where(norms > EMPTY * norms.max(), latent, 0)


def _solve_by_modes(values: NDArray, laplacian: NDArray, rhs: NDArray, start: NDArray) -> NDArray:
    """Columns h of (λ·I + L)·h = b, by all eigenvectors of L: sure, but slow for many rows."""
    frequencies, modes = linalg.eigh(laplacian)
    denominator = np.maximum(frequencies, 0)[:, None] + values
    undetermined = denominator <= UNDETERMINED * denominator.max()
    return modes @ np.where(undetermined, 0, modes.T @ rhs / np.where(undetermined, 1, denominator))


def _solve_by_gradients(values: NDArray, laplacian: NDArray, rhs: NDArray, start: NDArray) -> NDArray:
    """The same by conjugate gradients."""
    seen = values > UNDETERMINED * values.max()
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
    """Squared distances of all rows from each other; infinite from itself, so that no row is its own neighbour."""
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = rows @ (-2 * rows.T)
    distances += squares[:, None]
    distances += squares
    np.maximum(distances, 0, out=distances)
    np.fill_diagonal(distances, np.inf)
    return distances


def _rewrite(graph: NDArray, by_latent: NDArray, by_scores: NDArray, beta: float, gamma: float) -> None:
    """One update of S in place: k entries a row are written, the others stay, then S ← (S+Sᵀ)/2."""
    k = min(N_NEIGHBORS, len(graph) - 2)
    # α takes each kind of distance sorted on its own: the j-th nearest by H need not be the j-th nearest by F.
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
    """F_u = −L_uu⁻¹·L_ul·Y_l; 0 where no label reaches."""
    _, component = connected_components(sparse.csr_array(graph), directed=False)
    reached = unlabelled[np.isin(component[unlabelled], component[labelled])]
    result = np.zeros_like(scores)
    result[labelled] = scores[labelled]
    rhs = graph[np.ix_(reached, labelled)] @ scores[labelled]
    inner = laplacian[np.ix_(reached, reached)]
    try:
        result[reached] = linalg.cho_solve(linalg.cho_factor(inner), rhs)
    except linalg.LinAlgError:  # what ties some of them to a label is no more than a rounding error
        result[reached] = linalg.pinvh(inner) @ rhs
    return result
