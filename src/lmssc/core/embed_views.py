"""Latent positions of samples by the views that they have, and what these positions leave unexplained."""

import numpy as np
from numpy.typing import NDArray

from lmssc.data.memmap import release, slices, stored_bytes
from lmssc.data.views import Views
from lmssc.numerics.matrices import pseudo_inverse

MIN_NOISE_SHARE = 1e-3
"""Lower bound of the noise, as a share of the squared norms."""


def ridge_from_residuals(views: Views, latent: NDArray, loadings: list[NDArray], samples: NDArray) -> NDArray:
    """R = σ²·C⁻¹ of new samples that lack views, if no sample of fit does.

    σ² comes from the least-squares residuals of some samples, and C are the second moments of H. If samples of fit lack
    views, they and new samples share the R that `incomplete_samples.fit_ridge` finds at the start.

    Parameters
    ----------
    views : Views
        Scaled views.
    latent : ndarray of shape (n, r)
        H.
    loadings : list of ndarray of shape (d_v, r)
        W^v.
    samples : ndarray of int of shape (m,)
        Samples that σ² is estimated on.

    Returns
    -------
    ndarray of shape (r, r)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> H, W = 2 * rng.normal(size=(500, 1)), np.full((4, 1), 0.5)
    >>> views = Views.from_arrays([H @ W.T + 0.5 * rng.normal(size=(500, 4))])
    >>> ridge_from_residuals(views, H, [W], np.arange(300)).round(2)  # ¾ of 0.5² / 2²
    array([[0.04]])
    """
    moments = latent.T @ latent / latent.dtype.type(len(latent))
    return residual_noise(views, loadings, samples) * pseudo_inverse(moments)


def residual_noise(views: Views, loadings: list[NDArray], samples: NDArray) -> float:
    """σ²: mean squared least-squares residual of a number, over some samples."""
    left, total, n_numbers = 0.0, 0.0, 0
    row_bytes = sum(stored_bytes(view.data) for view in views) / views.n_samples
    for batch in slices(len(samples), 8 * row_bytes):  # scaled copies, and what the system reads ahead
        some = views.take(samples[batch])
        products = np.array([view.dot(loading) for view, loading in zip(some, loadings, strict=True)])
        energies = np.array([view.row_energies() for view in some])
        total += energies.sum()
        for rows, has in some.patterns():
            gram = gram_of(loadings, has)
            whole = products[:, rows].sum(axis=0)
            left += squared_residuals(energies[:, rows].sum(axis=0), embed_views(whole, gram), whole, gram).sum()
            n_numbers += len(rows) * sum(len(loading) for loading, there in zip(loadings, has, strict=True) if there)
        for view in views:
            release(view.data)
    return max(left, MIN_NOISE_SHARE * total) / max(n_numbers, 1)


def gram_of(loadings: list[NDArray], has: NDArray) -> NDArray:
    """Σ W^vᵀ·W^v over some views.

    Examples
    --------
    >>> gram_of([np.array([[2.0]]), np.array([[5.0]])], has=np.array([True, False]))
    array([[4.]])
    """
    return np.sum([loading.T @ loading for loading, there in zip(loadings, has, strict=True) if there], axis=0)


def embed_views(products: NDArray, gram: NDArray, ridge: NDArray | None = None) -> NDArray:
    """Latent positions of samples from Σ X^v·W^v and Σ W^vᵀ·W^v over the views that they have.

    Least squares; with a ridge σ²·C⁻¹ for samples that lack views, whose least squares would only amplify noise. It
    makes the result the expected position of a sample with these views.

    Examples
    --------
    >>> embed_views(np.array([[8.0]]), np.array([[4.0]]))
    array([[2.]])
    >>> embed_views(np.array([[8.0]]), np.array([[4.0]]), ridge=np.array([[4.0]]))
    array([[1.]])
    """
    return products @ pseudo_inverse(gram if ridge is None else gram + ridge.astype(gram.dtype))


def squared_residuals(energies: NDArray, latent: NDArray, products: NDArray, gram: NDArray) -> NDArray:
    """Squared norm of the residual x − h·Wᵀ of each sample.

    Examples
    --------
    >>> squared_residuals(np.array([25.0]), np.array([[2.0]]), products=np.array([[8.0]]), gram=np.array([[4.0]]))
    array([9.])
    """
    return np.maximum(energies - np.einsum("ij,ij->i", latent, 2 * products - latent @ gram), 0)
