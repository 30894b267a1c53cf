"""Initial H and W: a truncated SVD of the scaled views, or random as in the paper."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from sklearn.utils import check_random_state

from lmssc.core.embedding import IDENTITY, Embedding
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.incomplete_samples import embed_incomplete, fit_ridge
from lmssc.core.loadings import orthonormal_loadings
from lmssc.data.memmap import BATCH_BYTES, MappedRows, memory_map, stored_bytes
from lmssc.data.views import Views
from lmssc.numerics.conjugate_gradient import solver_tolerance


@dataclass(frozen=True)
class ComponentLimits:
    """Limits of the number of components r that is chosen by default.

    Attributes
    ----------
    max_components, max_text_components : int
        Largest r of measurements, and of text, whose spectrum is flat.
    min_components : int
        The noise threshold never leaves fewer.
    max_trusted_features : int
        The noise threshold is not applied to so few features: each was measured because it matters.
    min_samples_per_component : int
        r is at most the number of samples divided by this.
    max_noise_ratio : float
        Noise levels of the samples count as equal if the 90 % quantile is at most this multiple of the 10 % quantile.
    random_components : int
        r of a random start.
    """

    max_components: int = 80
    max_text_components: int = 150
    min_components: int = 10
    max_trusted_features: int = 20
    min_samples_per_component: int = 4
    max_noise_ratio: float = 3.0
    random_components: int = 20


@dataclass(frozen=True)
class SVDLimits:
    """Sizes up to which the SVD is computed from a Gram matrix.

    Attributes
    ----------
    max_gram_size : int
        Largest number of features, or of samples, of a Gram matrix.
    max_gram_entries : int
        Largest number of entries of views whose Gram matrix of the samples is computed.
    min_gram_samples : int
        The Gram matrix of the features comes from an even subset of the samples, at least so many.
    """

    max_gram_size: int = 1500
    max_gram_entries: int = 20_000_000
    min_gram_samples: int = 30_000


COMPONENTS = ComponentLimits()
SVD = SVDLimits()


class Spectrum(NamedTuple):
    """Leading right singular vectors (orthonormal, the largest entry of each positive) and singular values.

    `median` is the median of all singular values; None where not all are computed.
    """

    directions: NDArray
    values: NDArray
    median: float | None


def leading_directions(views: Views, n_components: int, tol: float = 1e-6, max_rounds: int = 50) -> Spectrum:
    """Leading right singular vectors of the stacked views.

    Small views: from a Gram matrix. Large sparse views: by Lanczos iteration, hundreds of products with one column.
    Large dense views: by block subspace iteration, a few products with many columns.

    Parameters
    ----------
    views : Views
        Scaled views; missing rows count as zeros.
    n_components : int
        Number of vectors, at most min(n, Σ d_v).
    tol : float
        Subspace iteration stops when no wanted singular value changes by more than this share of the largest.
    max_rounds : int
        Largest number of subspace iterations; each takes one XᵀH and one XW.

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
    if views.n_features <= min(views.n_samples, SVD.max_gram_size):
        return _of_features(views, n_components)
    if views.n_samples <= SVD.max_gram_size and views.n_samples * views.n_features <= SVD.max_gram_entries:
        return _of_samples(views, n_components)
    cheap_columns = all(sparse.issparse(view.data) and memory_map(view.data) is None for view in views)
    if cheap_columns and 2 * n_components < min(views.n_samples, views.n_features):
        try:
            return _by_lanczos(views, n_components)
        except ArpackError:
            pass  # all views are zero, for example
    # A wider block converges faster, at the cost of a few more columns.
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
    """From the Gram matrix of the features, of a subset of very many samples."""
    step = max(1, views.n_samples // SVD.min_gram_samples)
    squares, directions = linalg.eigh(views.every(step).gram() * step, driver="evd")
    values = np.sqrt(np.maximum(squares[::-1], 0))
    leading = _with_positive_peaks(directions[:, ::-1][:, :n_components].astype(views.dtype))
    return Spectrum(leading, values[:n_components].astype(views.dtype), float(np.median(values)))


def _of_samples(views: Views, n_components: int) -> Spectrum:
    """From the Gram matrix of the samples."""
    side = np.vstack(views.transpose_dot(np.eye(views.n_samples, dtype=views.dtype)))
    gram = side.T @ side
    leading = linalg.eigh(gram, subset_by_index=[len(gram) - n_components, len(gram) - 1])[1][:, ::-1]
    # An SVD within the subspace restores the digits that squaring lost.
    q = linalg.qr(side @ leading, mode="economic")[0]
    image = np.vstack(views.transpose_dot(views.dot(views.split(q.astype(views.dtype)))))
    left, values, _ = linalg.svd(q.T @ image)
    median = float(np.median(np.sqrt(np.maximum(linalg.eigvalsh(gram), 0))))
    return Spectrum(_with_positive_peaks((q @ left).astype(views.dtype)), np.sqrt(values).astype(views.dtype), median)


def _by_lanczos(views: Views, n_components: int) -> Spectrum:
    """By Lanczos iteration on the side of the samples or of the features, whichever are fewer."""
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
    """Directions with signs that make the largest entry of each positive."""
    peaks = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return directions * np.where(peaks < 0, -1, 1).astype(directions.dtype)


def max_components(n_samples: int, n_features: int, *, text: bool = False) -> int:
    """Largest default number of components: 80, or 150 for text, and fewer for few samples or features.

    Examples
    --------
    >>> max_components(2000, 649), max_components(208, 60), max_components(1200, 10000, text=True)
    (80, 52, 150)
    """
    most = COMPONENTS.max_text_components if text else COMPONENTS.max_components
    return max(1, min(most, n_samples // COMPONENTS.min_samples_per_component, n_features))


def count_above_noise(values: NDArray, median: float, n_samples: int, n_features: int) -> int:
    """Number of singular values above the optimal hard threshold of Gavish and Donoho (2014).

    The threshold is a multiple of the median singular value, which no singular value of a matrix of noise exceeds.

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
    """`count_above_noise` with each sample divided by its own noise level; None if all have about the same.

    If half of the samples are noisier than the others, their noise alone exceeds the median singular value, which is
    that of the quiet half. The noise of a sample is its residual outside of the leading directions, measured on up to
    `SVDLimits.max_gram_size` samples.

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
    n_rows = min(views.n_samples, SVD.max_gram_size)
    if any(isinstance(view.data, MappedRows) for view in views):  # rows that are on disk stay there, but for a few
        row_bytes = sum(stored_bytes(view.data) for view in views) / views.n_samples
        n_rows = min(n_rows, max(COMPONENTS.min_components, int(BATCH_BYTES / row_bytes)))
    some = views.take(np.arange(n_rows))
    inside = some.dot(some.split(directions[:, : COMPONENTS.min_components]))
    energies = np.sum([view.row_energies() for view in some], axis=0)
    left = energies - np.einsum("ij,ij->i", inside, inside, dtype=np.float64)
    noise = np.sqrt(np.maximum(left, 1e-6 * energies.mean()))
    quiet, loud = np.quantile(noise, [0.1, 0.9])
    if loud <= COMPONENTS.max_noise_ratio * quiet:
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

    The SVD counts missing sample-views as zeros; where there are any, some rounds follow that replace them by H·Wᵀ.

    Parameters
    ----------
    views : Views
        Scaled views.
    n_components : int
        Components r.
    rounds : int
        Number of rounds that replace missing sample-views.
    above_noise : bool
        Whether to drop components below the noise threshold, as far as `ComponentLimits` allows.

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
    if above_noise and median is not None and views.n_features > COMPONENTS.max_trusted_features:
        found = count_above_noise(values, median, views.n_samples, views.n_features)
        if views.complete and found > COMPONENTS.min_components:
            own = count_above_own_noise(views, directions)
            found = found if own is None else min(found, own)
        directions = directions[:, : max(found, COMPONENTS.min_components)]
    loadings = views.split(directions)
    latent = views.dot(loadings)
    if not views.complete:
        for _ in range(rounds):
            XtH = views.reconstructed_XtH(views.transpose_dot(latent), latent, loadings)
            loadings = orthonormal_loadings(XtH)
            latent = views.reconstructed_dot(latent, loadings)
    return latent, loadings


class InitialPositions(NamedTuple):
    """H, W^v, the embedding that maps H to Z, and the ridge R of samples that lack views; None if none does."""

    latent: NDArray
    loadings: list[NDArray]
    embedding: Embedding
    ridge: NDArray | None


def initialize(views: Views, config: FitConfig, context: FitContext | None = None) -> InitialPositions:
    """Initial positions by a truncated SVD; they do not depend on the labels, so fits to the same views share them.

    Parameters
    ----------
    views : Views
        Scaled views.
    config : FitConfig
        Parameters of the fit.
    context : FitContext, optional
        Shares the SVD between fits.

    Returns
    -------
    InitialPositions

    Examples
    --------
    >>> views = Views.from_arrays([np.array([[3.0, 0.0], [0.0, 1.0]])])
    >>> initialize(views, FitConfig(n_neighbors=1, n_components=1)).latent.round(6) + 0.0
    array([[3.],
           [0.]])
    """
    context = FitContext() if context is None else context
    n_components = config.n_components
    if n_components is None:
        n_components = max_components(views.n_samples, views.n_features, text=config.text)
        if config.max_components is not None:
            n_components = min(n_components, config.max_components)
    # The spectrum of text has no gap between signal and noise.
    above_noise = config.n_components is None and not config.text
    latent, loadings = context.reuse(
        ("svd", n_components, above_noise), lambda: latent_start(views, n_components, above_noise=above_noise)
    )
    ridge = fit_ridge(views, latent, loadings)
    if ridge is not None:
        latent = embed_incomplete(views, latent, loadings, ridge)
    embedding = Embedding.of_directions(latent) if config.by_direction else IDENTITY
    return InitialPositions(latent, loadings, embedding, ridge)


def initialize_randomly(views: Views, config: FitConfig) -> tuple[InitialPositions, sparse.csr_array]:
    """Random H, W = 0 and a random graph S, as in the paper.

    Examples
    --------
    >>> views = Views.from_arrays([np.eye(4)])
    >>> positions, graph = initialize_randomly(views, FitConfig(n_neighbors=2, n_components=3, random_state=0))
    >>> positions.latent.shape, graph.sum(axis=1)
    ((4, 3), array([1., 1., 1., 1.]))
    """
    random = check_random_state(config.random_state)
    n_components = config.n_components
    if n_components is None:
        n_components = min(COMPONENTS.random_components, views.n_samples, views.n_features)
    latent = random.uniform(size=(views.n_samples, n_components)).astype(views.dtype)
    loadings = [np.zeros((view.data.shape[1], n_components), views.dtype) for view in views]
    graph = random_graph(views.n_samples, config.n_neighbors, random, views.dtype)
    return InitialPositions(latent, loadings, IDENTITY, None), graph


def random_graph(n_samples: int, n_neighbors: int, random: np.random.RandomState, dtype: np.dtype) -> sparse.csr_array:
    """Random S: k random neighbours of each sample, with random weights that sum to 1.

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
