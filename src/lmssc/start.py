"""Where the alternation starts: a truncated SVD of the scaled views, or chance as in the paper."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lmssc.factors import orthonormal_loadings
from lmssc.views import Views

# Latent dimensions by default, at most: of measurements, and of words, whose spectrum is flat.
MOST_COMPONENTS = 80
MOST_WORD_COMPONENTS = 150
# So many samples there are to each at least.
SAMPLES_PER_COMPONENT = 4
# Latent dimensions of a random start.
RANDOM_COMPONENTS = 20
# Up to so many samples or features a Gram matrix is decomposed; beyond it a subspace is iterated. If the views have
# more numbers than that in all, it is made from strips of so many columns.
MOST_EXACT = 1500
MOST_NUMBERS = 20_000_000
STRIP = 100


def leading_directions(
    views: Views, n_components: int, tol: float = 1e-6, max_rounds: int = 50
) -> tuple[NDArray, NDArray]:
    """Leading right singular vectors of the stacked views.

    From a Gram matrix where the views are small; by block subspace iteration, to which `tol` and `max_rounds` belong,
    where they are not.

    Parameters
    ----------
    views : Views
        Scaled views; rows that are missing count as zeros.
    n_components : int
        How many, at most min(n, Σ d_v).
    tol : float
        Stop when no wanted singular value changes by more than this share of the largest.
    max_rounds : int
        Most rounds; each takes one XᵀH and one XW.

    Returns
    -------
    directions : ndarray of shape (Σ d_v, n_components)
        Orthonormal; the largest entry of each is positive.
    singular_values : ndarray of shape (n_components,)

    Examples
    --------
    >>> views = Views.from_arrays([np.array([[3.0, 0.0], [0.0, 1.0]])])
    >>> directions, values = leading_directions(views, 1)
    >>> directions.ravel().round(6) + 0.0, values.round(6)
    (array([1., 0.]), array([3.]))
    """
    size = (views.n_samples, views.n_features)
    if min(size) <= MOST_EXACT and np.prod(size) <= MOST_NUMBERS:
        return _exact_directions(views, n_components)
    if views.n_features <= MOST_EXACT:
        strips = np.split(np.eye(views.n_features, dtype=views.dtype), range(STRIP, views.n_features, STRIP), axis=1)
        gram = np.hstack([np.vstack(views.transpose_dot(views.dot(views.split(strip)))) for strip in strips])
        return _directions_of_gram(views, gram.astype(np.float64), np.eye(views.n_features), n_components)
    # A wider block converges faster than a narrow one, for the price of a few more columns.
    width = min(2 * n_components + 8, views.n_samples, views.n_features)
    draw = np.random.default_rng(0).standard_normal((views.n_features, width))
    basis = linalg.qr(draw.astype(views.dtype), mode="economic")[0]
    previous = np.zeros(n_components)
    for _ in range(max_rounds):
        image = linalg.qr(views.dot(views.split(basis)), mode="economic")[0]
        left, values, _ = linalg.svd(np.vstack(views.transpose_dot(image)), full_matrices=False)
        basis = left
        wanted = values[:n_components]
        if np.abs(wanted - previous).max() <= tol * wanted[0]:
            break
        previous = wanted
    return _with_positive_peaks(basis[:, :n_components]), wanted


def _exact_directions(views: Views, n_components: int) -> tuple[NDArray, NDArray]:
    """The same from the Gram matrix of the shorter side, which is faster where that side is short."""
    n_samples, n_features = views.n_samples, views.n_features
    if n_features <= n_samples:
        side = views.dot(views.split(np.eye(n_features, dtype=views.dtype)))
        basis = np.eye(n_features)
    else:
        side = np.vstack(views.transpose_dot(np.eye(n_samples, dtype=views.dtype)))
        basis = side
    return _directions_of_gram(views, side.T @ side, basis, n_components)


def _directions_of_gram(views: Views, gram: NDArray, basis: NDArray, n_components: int) -> tuple[NDArray, NDArray]:
    """Directions that a basis of the features and the Gram matrix over it give."""
    leading = linalg.eigh(gram, subset_by_index=[len(gram) - n_components, len(gram) - 1])[1][:, ::-1]
    # The singular vectors within what was found mend what squaring lost.
    q = linalg.qr(basis @ leading, mode="economic")[0]
    image = np.vstack(views.transpose_dot(views.dot(views.split(q.astype(views.dtype)))))
    left, values, _ = linalg.svd(q.T @ image)
    return _with_positive_peaks((q @ left).astype(views.dtype)), np.sqrt(values).astype(views.dtype)


def _with_positive_peaks(directions: NDArray) -> NDArray:
    """Each direction with the sign that makes its largest entry positive."""
    peaks = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return directions * np.where(peaks < 0, -1, 1).astype(directions.dtype)


def choose_components(n_samples: int, n_features: int, *, words: bool = False) -> int:
    """Number of latent dimensions: 80, or 150 for words, and fewer for few samples or features.

    The labels tell which of them matter (`lmssc.expectation`), so more do little harm.

    Examples
    --------
    >>> choose_components(2000, 649), choose_components(208, 60), choose_components(1200, 10000, words=True)
    (80, 52, 150)
    """
    most = MOST_WORD_COMPONENTS if words else MOST_COMPONENTS
    return max(1, min(most, n_samples // SAMPLES_PER_COMPONENT, n_features))


def latent_start(views: Views, n_components: int, rounds: int = 20) -> tuple[NDArray, list[NDArray]]:
    """Latent positions and loadings from a truncated SVD of the scaled views.

    Where samples lack views, the SVD takes their rows for zeros; some rounds in which they are replaced by H·Wᵀ then
    mend that.

    Parameters
    ----------
    views : Views
        Scaled views.
    n_components : int
        Latent dimensions r.
    rounds : int
        Rounds of replacement.

    Returns
    -------
    latent : ndarray of shape (n, r)
    loadings : list of ndarray of shape (d_v, r)

    Examples
    --------
    >>> H, W = latent_start(Views.from_arrays([np.array([[3.0, 0.0], [0.0, 1.0]])]), 1)
    >>> H.ravel().round(6) + 0.0
    array([3., 0.])
    """
    directions, _ = leading_directions(views, n_components)
    loadings = views.split(directions)
    latent = views.dot(loadings)
    if not views.complete:
        for _ in range(rounds):
            crosses = views.fill_crosses(views.transpose_dot(latent), latent, loadings)
            loadings = orthonormal_loadings(crosses)
            latent = views.fill_dot(latent, loadings)
    return latent, loadings


def random_graph(n_samples: int, n_neighbors: int, random: np.random.RandomState, dtype: np.dtype) -> sparse.csr_array:
    """Random S: for each sample k others with random weights that sum to 1.

    Examples
    --------
    >>> S = random_graph(5, 2, np.random.RandomState(0), np.dtype(float))
    >>> S.sum(axis=1), S.diagonal()
    (array([1., 1., 1., 1., 1.]), array([0., 0., 0., 0., 0.]))
    """
    rows = np.repeat(np.arange(n_samples), n_neighbors)
    picks = np.array([random.choice(n_samples - 1, n_neighbors, replace=False) for _ in range(n_samples)])
    columns = picks.ravel() + (picks.ravel() >= rows)
    weights = random.uniform(size=(n_samples, n_neighbors))
    weights = (weights / weights.sum(axis=1, keepdims=True)).ravel().astype(dtype)
    return sparse.coo_array((weights, (rows, columns)), shape=(n_samples, n_samples)).tocsr()
