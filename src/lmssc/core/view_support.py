"""Which views support the edges of a sample: in which of them it is close to its neighbours."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lmssc.core.embed_views import gram_of


def view_support(weights: sparse.csr_array, latent: NDArray, queries: NDArray, loadings: list[NDArray]) -> NDArray:
    """Share of each view in the edges of some samples.

    In view v, as the latent positions reproduce it, two samples are d = (h − h')·W^vᵀW^v·(h − h')ᵀ apart, and t on
    average over all pairs. The view supports an edge by (1 − d/t)₊ times its weight; the shares are what each view
    supports of what all support together.

    Parameters
    ----------
    weights : csr_array of shape (m, n)
        Weights of the edges from each query to the samples.
    latent : ndarray of shape (n, r)
        H.
    queries : ndarray of shape (m, r)
        Latent positions of the queries.
    loadings : list of ndarray of shape (d_v, r)
        W^v.

    Returns
    -------
    ndarray of shape (m, V)
        Rows sum to 1; equal shares if no view supports any edge.

    Examples
    --------
    >>> H = np.array([[0.0, 0.0], [0.0, 3.0], [3.0, 0.0], [3.0, 3.0]])
    >>> edge = sparse.csr_array([[0.0, 1.0, 0.0, 0.0]])
    >>> view_support(edge, H, H[:1], [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])])
    array([[1., 0.]])
    """
    one = np.ones(1, dtype=bool)
    row = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    away = queries[row].astype(np.float64) - latent[weights.indices]
    centred = latent - latent.mean(axis=0, dtype=np.float64)
    moments = centred.T @ centred / len(latent)
    supported = np.empty((weights.shape[0], len(loadings)))
    for v, loading in enumerate(loadings):
        gram = gram_of([loading.astype(np.float64)], one)
        distances = np.einsum("ij,ij->i", away @ gram, away)
        usual = max(2 * float(np.vdot(gram, moments)), np.finfo(float).tiny)
        closeness = np.maximum(1 - distances / usual, 0)
        supported[:, v] = np.bincount(row, weights.data * closeness, weights.shape[0])
    total = supported.sum(axis=1, keepdims=True)
    return np.where(total > 0, supported / np.where(total > 0, total, 1), 1 / len(loadings))
