"""Initial H and W: a truncated SVD of the scaled views, or random as in the paper."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils import check_random_state

from lmssc.core.embedding import IDENTITY, Embedding
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.incomplete_samples import embed_incomplete, fit_ridge
from lmssc.core.loadings import orthonormal_loadings
from lmssc.core.truncated_svd import leading_directions, noise_threshold
from lmssc.data.memmap import BATCH_BYTES, MappedRows, stored_bytes
from lmssc.data.views import Views


@dataclass(frozen=True)
class ComponentLimits:
    """Limits of the number of components r that is chosen by default."""

    max_components: int = 80
    max_text_components: int = 150
    """Largest r of measurements, and of text, whose spectrum is flat."""
    min_components: int = 10
    """The noise threshold never leaves fewer."""
    max_trusted_features: int = 20
    """The noise threshold is not applied to so few features: each was measured because it matters."""
    min_samples_per_component: int = 4
    """r is at most the number of samples divided by this."""
    max_noise_ratio: float = 3.0
    """Noise levels of the samples count as equal if the 90 % quantile is at most this multiple of the 10 % quantile."""


COMPONENTS = ComponentLimits()
RANDOM_COMPONENTS = 20
"""r of a random start."""
# Rounds that replace missing sample-views by H·Wᵀ.
N_FILL_ROUNDS = 20
# The noise of each sample is measured on up to this many of them.
MAX_NOISE_SAMPLES = 1500


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
    return int((values > noise_threshold(median, n_samples, n_features)).sum())


def count_above_own_noise(views: Views, directions: NDArray) -> int | None:
    """`count_above_noise` with each sample divided by its own noise level; None if all have about the same.

    If half of the samples are noisier than the others, their noise alone exceeds the median singular value, which is
    that of the quiet half. The noise of a sample is its residual outside of the leading directions, measured on up to
    `MAX_NOISE_SAMPLES` samples.

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
    n_rows = min(views.n_samples, MAX_NOISE_SAMPLES)
    if any(isinstance(view.data, MappedRows) for view in views):  # rows that are on disk stay there, but for a few
        row_bytes = sum(stored_bytes(view.data) for view in views) / views.n_samples
        n_rows = min(n_rows, max(COMPONENTS.min_components, int(BATCH_BYTES / row_bytes)))
    some = views.take(slice(n_rows))
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


def latent_start(views: Views, n_components: int, *, above_noise: bool = False) -> tuple[NDArray, list[NDArray]]:
    """Latent positions and loadings from a truncated SVD of the scaled views.

    The SVD counts missing sample-views as zeros; where there are any, some rounds follow that replace them by H·Wᵀ.

    Parameters
    ----------
    views : Views
        Scaled views.
    n_components : int
        Components r.
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
    directions = start_directions(views, n_components, above_noise=above_noise)
    loadings = views.split(directions)
    latent = views.dot(loadings)
    if not views.complete:
        for _ in range(N_FILL_ROUNDS):
            XtH = views.reconstructed_XtH(views.transpose_dot(latent), latent, loadings)
            loadings = orthonormal_loadings(XtH)
            latent = views.reconstructed_dot(latent, loadings)
    return latent, loadings


def start_directions(views: Views, n_components: int, *, above_noise: bool) -> NDArray:
    """Leading directions of the stacked views, without those that look like noise: see `latent_start`."""
    above_noise = above_noise and views.n_features > COMPONENTS.max_trusted_features
    directions, values, median = leading_directions(
        views, n_components, measure_noise=above_noise, min_wanted=COMPONENTS.min_components
    )
    if above_noise and median is not None:
        found = count_above_noise(values, median, views.n_samples, views.n_features)
        if views.complete and found > COMPONENTS.min_components:
            own = count_above_own_noise(views, directions)
            found = found if own is None else min(found, own)
        if found:  # where no component stands out, such as many classes in all directions, none can be told from noise
            directions = directions[:, : max(found, COMPONENTS.min_components)]
    return directions


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
    n_components, above_noise = wanted_components(views, config)
    latent, loadings = context.reuse(
        ("svd", n_components, above_noise), lambda: latent_start(views, n_components, above_noise=above_noise)
    )
    ridge = fit_ridge(views, latent, loadings)
    if ridge is not None:
        latent = embed_incomplete(views, latent, loadings, ridge)
    embedding = Embedding.of_directions(latent) if config.by_direction else IDENTITY
    return InitialPositions(latent, loadings, embedding, ridge)


def wanted_components(views: Views, config: FitConfig) -> tuple[int, bool]:
    """Number of components to compute, and whether to drop those below the noise threshold."""
    n_components = config.n_components
    if n_components is None:
        n_components = max_components(views.n_samples, views.n_features, text=config.text)
        if config.max_components is not None:
            n_components = min(n_components, config.max_components)
    # The spectrum of text has no gap between signal and noise.
    return n_components, config.n_components is None and not config.text


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
        n_components = min(RANDOM_COMPONENTS, views.n_samples, views.n_features)
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
