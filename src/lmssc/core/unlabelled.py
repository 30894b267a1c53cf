"""The graph of samples of which none has a label yet, and which of them to label first."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.active import sigma_optimal_batch
from lmssc.core.begin import choose_order
from lmssc.core.fit_config import FitConfig, FitContext
from lmssc.core.graph import learn_graph, separate_groups
from lmssc.core.initialization import initialize
from lmssc.data.views import Views
from lmssc.numerics.knn.approximate import choose_search


def unlabelled_graph(
    views: Views, config: FitConfig, context: FitContext | None = None, groups: NDArray | None = None
) -> tuple[sparse.csr_array, NDArray]:
    """The first graph of a fit, on Z alone: the best there is without labels.

    Parameters
    ----------
    views : Views
        Scaled views of distinct samples, in canonical order.
    config : FitConfig
        Parameters.
    context : FitContext, optional
        Work shared with later fits: the SVD.
    groups : ndarray of int of shape (n,), optional
        Group of connected views of each sample, if there is more than one group.

    Returns
    -------
    graph : csr_array of shape (n, n)
        S, in canonical order.
    points : ndarray of shape (n, r)
        H, in the same order.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.3], [5.0], [5.1], [5.3]])
    >>> graph, _ = unlabelled_graph(Views.from_arrays([X]), FitConfig(n_neighbors=2))
    >>> bool((graph.toarray()[:3, 3:] == 0).all())
    True
    """
    latent, loadings, embedding, _ = initialize(views, config, context)
    permutation = choose_order(views, latent, loadings)
    points = permutation.apply(embedding.embed(latent)) * views.dtype.type(np.sqrt(config.beta))
    if groups is not None:
        (points,) = separate_groups((points, permutation.apply(groups)))
    search = choose_search(views.n_samples, config.neighbor_recall)
    graph, _ = learn_graph(points, config.n_neighbors, config.beta, None, search=search)
    return permutation.undo_graph(graph), latent


def first_to_label(graph: sparse.csr_array, n: int) -> NDArray:
    """Samples to label first: each stands for many others, and no two for the same.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        S.
    n : int
        Number of samples; all if there are fewer.

    Returns
    -------
    ndarray of int
        The most useful first.

    Examples
    --------
    Two groups, of four and of three samples:

    >>> from scipy import sparse
    >>> graph = sparse.csr_array(sparse.block_diag([np.ones((4, 4)) - np.eye(4), np.ones((3, 3)) - np.eye(3)]))
    >>> first_to_label(graph, 2)
    array([0, 4])
    """
    n_samples = graph.shape[0]
    none = np.zeros(n_samples, dtype=bool)
    return sigma_optimal_batch(graph, np.ones(n_samples), none, ~none, n)
