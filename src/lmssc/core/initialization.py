"""Where the alternation starts: a truncated SVD of the scaled views, or chance as in the paper."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from lmssc.core.loadings import orthonormal_loadings
from lmssc.data.memmap import memory_map
from lmssc.data.views import Views
from lmssc.numerics.conjugate_gradient import solver_tolerance

# Latent dimensions by default, at most: of measurements, and of words, whose spectrum is flat.
MOST_COMPONENTS = 80
MOST_WORD_COMPONENTS = 150
# Fewer are not taken by default because the others look like noise.
FEWEST_COMPONENTS = 10
# So few features are measured because each matters: none is taken for noise.
FEW_FEATURES = 20
# So many samples there are to each at least.
SAMPLES_PER_COMPONENT = 4
# Latent dimensions of a random start.
RANDOM_COMPONENTS = 20
# Up to so many samples or features, and if it is samples so many numbers in all, a Gram matrix is decomposed.
MOST_EXACT = 1500
MOST_NUMBERS = 20_000_000
# Noise of loud samples over that of quiet ones, at the 9th and the 1st tenth, from which on it is not taken for equal.
UNEVEN = 3.0
# Samples that the Gram matrix of the features is from, at most twice as many: they are in an order by chance.
MOST_IN_GRAM = 30_000


class Spectrum(NamedTuple):
    """Leading right singular vectors (orthonormal, the largest entry of each positive) and singular values.

    `median` is that of all singular values, None where they are too many to be had.
    """

    directions: NDArray
    values: NDArray
    median: float | None


def leading_directions(views: Views, n_components: int, tol: float = 1e-6, max_rounds: int = 50) -> Spectrum:
    """Leading right singular vectors of the stacked views.

    From a Gram matrix where the views are small. Where they are not, by Lanczos iteration if they are sparse, which
    takes hundreds of products with one column, and else by block subspace iteration, which takes a few with many.

    Parameters
    ----------
    views : Views
        Scaled views; rows that are missing count as zeros.
    n_components : int
        How many, at most min(n, Σ d_v).
    tol : float
        A block is done when no wanted singular value changes by more than this share of the largest.
    max_rounds : int
        Most rounds of a block; each takes one XᵀH and one XW.

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> views = Views.from_arrays([np.array([[3.0, 0.0], [0.0, 1.0]])])
    >>> directions, values, median = leading_directions(views, 1)
    >>> directions.ravel().round(6) + 0.0, values.round(6), round(median, 6)
    (array([1., 0.]), array([3.]), 2.0)
    """
    if views.n_features <= min(views.n_samples, MOST_EXACT):
        return _of_features(views, n_components)
    if views.n_samples <= MOST_EXACT and views.n_samples * views.n_features <= MOST_NUMBERS:
        return _of_samples(views, n_components)
    cheap_columns = all(sparse.issparse(view.data) and memory_map(view.data) is None for view in views)
    if cheap_columns and 2 * n_components < min(views.n_samples, views.n_features):
        try:
            return _by_lanczos(views, n_components)
        except ArpackError:
            pass  # views that are all zero, say
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
    return Spectrum(_with_positive_peaks(basis[:, :n_components]), wanted, None)


def _of_features(views: Views, n_components: int) -> Spectrum:
    """From the Gram matrix of the features; of very many samples some tell it."""
    step = max(1, views.n_samples // MOST_IN_GRAM)
    squares, directions = linalg.eigh(views.every(step).gram() * step, driver="evd")
    values = np.sqrt(np.maximum(squares[::-1], 0))
    leading = _with_positive_peaks(directions[:, ::-1][:, :n_components].astype(views.dtype))
    return Spectrum(leading, values[:n_components].astype(views.dtype), float(np.median(values)))


def _of_samples(views: Views, n_components: int) -> Spectrum:
    """From the Gram matrix of the samples."""
    side = np.vstack(views.transpose_dot(np.eye(views.n_samples, dtype=views.dtype)))
    gram = side.T @ side
    leading = linalg.eigh(gram, subset_by_index=[len(gram) - n_components, len(gram) - 1])[1][:, ::-1]
    # The singular vectors within what was found mend what squaring lost.
    q = linalg.qr(side @ leading, mode="economic")[0]
    image = np.vstack(views.transpose_dot(views.dot(views.split(q.astype(views.dtype)))))
    left, values, _ = linalg.svd(q.T @ image)
    median = float(np.median(np.sqrt(np.maximum(linalg.eigvalsh(gram), 0))))
    return Spectrum(_with_positive_peaks((q @ left).astype(views.dtype)), np.sqrt(values).astype(views.dtype), median)


def _by_lanczos(views: Views, n_components: int) -> Spectrum:
    """By products with one column at a time, on the side of the samples or of the features, whichever are fewer."""
    by_samples = views.n_samples <= views.n_features
    size = min(views.n_samples, views.n_features)

    def multiply(column: NDArray) -> NDArray:
        column = column.reshape(-1, 1)
        if by_samples:
            return views.dot(views.transpose_dot(column))
        return np.vstack(views.transpose_dot(views.dot(views.split(column))))

    vectors = eigsh(
        LinearOperator((size, size), matvec=multiply, dtype=views.dtype),
        n_components,
        v0=np.random.default_rng(0).standard_normal(size).astype(views.dtype),
        tol=solver_tolerance(views.dtype, 1e-8),
    )[1]
    image = vectors if by_samples else linalg.qr(views.dot(views.split(vectors)), mode="economic")[0]
    left, values, _ = linalg.svd(np.vstack(views.transpose_dot(image)), full_matrices=False)
    return Spectrum(_with_positive_peaks(left), values, None)


def _with_positive_peaks(directions: NDArray) -> NDArray:
    """Each direction with the sign that makes its largest entry positive."""
    peaks = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return directions * np.where(peaks < 0, -1, 1).astype(directions.dtype)


def most_components(n_samples: int, n_features: int, *, words: bool = False) -> int:
    """Number of latent dimensions, at most: 80, or 150 for words, and fewer for few samples or features.

    Examples
    --------
    >>> most_components(2000, 649), most_components(208, 60), most_components(1200, 10000, words=True)
    (80, 52, 150)
    """
    most = MOST_WORD_COMPONENTS if words else MOST_COMPONENTS
    return max(1, min(most, n_samples // SAMPLES_PER_COMPONENT, n_features))


def count_above_noise(values: NDArray, median: float, n_samples: int, n_features: int) -> int:
    """How many singular values noise alone would not give, by the optimal hard threshold of Gavish and Donoho (2014).

    Half of all singular values are taken for noise. A matrix of noise has none above some multiple of its median.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 60)) + 3 * np.outer(rng.normal(size=300), rng.normal(size=60))
    >>> values = linalg.svdvals(X)
    >>> count_above_noise(values, float(np.median(values)), *X.shape)
    1
    """
    shape = min(n_samples, n_features) / max(n_samples, n_features)
    threshold = 0.56 * shape**3 - 0.95 * shape**2 + 1.82 * shape + 1.43
    return int((values > threshold * median).sum())


def count_above_own_noise(views: Views, directions: NDArray) -> int | None:
    """`count_above_noise` with each sample in units of its own noise; None if all have about as much.

    If half of the samples are loud, noise of theirs alone stands out from the median, which is that of the quiet ones.
    The noise of a sample is what the leading directions leave of it; up to 1,500 samples tell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 400)) * np.where(np.arange(300) % 2, 5, 1)[:, None]
    >>> values, directions = linalg.svd(X)[1:]
    >>> count_above_noise(values, float(np.median(values)), *X.shape)
    84
    >>> count_above_own_noise(Views.from_arrays([X]), directions[:10].T)
    0
    """
    some = views.take(np.arange(min(views.n_samples, MOST_EXACT)))
    inside = some.dot(some.split(directions[:, :FEWEST_COMPONENTS]))
    energies = np.sum([view.row_energies() for view in some], axis=0)
    left = energies - np.einsum("ij,ij->i", inside, inside, dtype=np.float64)
    noise = np.sqrt(np.maximum(left, 1e-6 * energies.mean()))
    quiet, loud = np.quantile(noise, [0.1, 0.9])
    if loud <= UNEVEN * quiet:
        return None
    gram = np.zeros((len(noise), len(noise)))
    for view in some:
        for _, columns in view.columns():
            rows = columns / noise[:, None]
            gram += rows @ rows.T
    values = np.sqrt(np.maximum(linalg.eigvalsh(gram), 0))[-min(gram.shape[0], views.n_features) :]
    return count_above_noise(values, float(np.median(values)), len(noise), views.n_features)


def latent_start(
    views: Views, n_components: int, rounds: int = 20, *, above_noise: bool = False
) -> tuple[NDArray, list[NDArray]]:
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
    above_noise : bool
        Leave out those that may be noise, but keep `FEWEST_COMPONENTS`, and all of at most `FEW_FEATURES` features.

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
    directions, values, median = leading_directions(views, n_components)
    if above_noise and median is not None and views.n_features > FEW_FEATURES:
        found = count_above_noise(values, median, views.n_samples, views.n_features)
        if views.complete and found > FEWEST_COMPONENTS:
            own = count_above_own_noise(views, directions)
            found = found if own is None else min(found, own)
        directions = directions[:, : max(found, FEWEST_COMPONENTS)]
    loadings = views.split(directions)
    latent = views.dot(loadings)
    if not views.complete:
        for _ in range(rounds):
            XtH = views.impute_XtH(views.transpose_dot(latent), latent, loadings)
            loadings = orthonormal_loadings(XtH)
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
