"""Latent positions of samples that lack views: their expectation, given the views that they have."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from lmssc.core.embed_views import MIN_NOISE_SHARE, embed_views, gram_of
from lmssc.data.views import Views
from lmssc.numerics.matrices import pseudo_inverse

# Iterations of expectation maximisation.
N_ROUNDS = 20
# Below this reciprocal condition number a matrix counts as singular; Cholesky has about eight correct digits there.
MIN_RCOND = 1e-8


def fit_ridge(views: Views, latent: NDArray, loadings: list[NDArray]) -> NDArray | None:
    """R = σ²·C⁻¹, with σ² the noise variance of a feature and C the second moments of H; None if all views are there.

    In directions that only a missing view determines, least squares amplifies noise. With the prior h ~ N(0, C) the
    most likely positions are those of ridge regression with R. σ² and C come from expectation maximisation with fixed
    loadings, so that the uncertainty of incomplete samples does not count as spread. The fit and predictions for new
    samples use the same R; if all views are there, that of new samples is `new_samples.ridge_from_residuals`.

    Parameters
    ----------
    views : Views
        Scaled views.
    latent : ndarray of shape (n, r)
        H of the start.
    loadings : list of ndarray of shape (d_v, r)
        W^v.

    Returns
    -------
    ndarray of shape (r, r), or None

    Examples
    --------
    >>> from lmssc.data.view import View
    >>> rng = np.random.default_rng(0)
    >>> H, noise = 2 * rng.normal(size=(500, 1)), 0.5 * rng.normal(size=(500, 4))
    >>> X, W = H @ np.full((1, 4), 0.5) + noise, np.full((4, 1), 0.5)
    >>> has = rng.random(500) < 0.5
    >>> views = Views([View(X[:, :2]), View(X[:, 2:] * has[:, None], present=has)])
    >>> fit_ridge(views, H, [W[:2], W[2:]]).round(2)  # 0.5² / 2²
    array([[0.06]])
    """
    if views.complete:
        return None
    products = views.dot(loadings).astype(np.float64)
    patterns = [(rows, gram_of(loadings, has).astype(np.float64), has) for rows, has in views.patterns()]
    widths = np.array([len(loading) for loading in loadings])
    n_numbers = sum(len(rows) * widths[has].sum() for rows, _, has in patterns)
    energy = float(sum(views.energies))
    noise = least = MIN_NOISE_SHARE * energy / n_numbers
    moments = latent.T.astype(np.float64) @ latent / len(latent)
    for _ in range(N_ROUNDS):
        left, total = energy, np.zeros_like(moments)
        ridge = noise * pseudo_inverse(moments)
        for rows, gram, _ in patterns:
            inverse = invert(gram + ridge)
            own = products[rows] @ inverse
            squares = own.T @ own + len(rows) * noise * inverse
            left += float(np.vdot(squares, gram)) - 2 * float(np.vdot(own, products[rows]))
            total += squares
        noise, moments = max(left / n_numbers, least), total / len(latent)
    return (noise * pseudo_inverse(moments)).astype(latent.dtype)


def invert(matrix: NDArray) -> NDArray:
    """Inverse of a positive semidefinite matrix: by Cholesky, or the pseudoinverse if it is close to singular.

    Examples
    --------
    >>> invert(np.array([[4.0, 0.0], [0.0, 2.0]]))
    array([[0.25, 0.  ],
           [0.  , 0.5 ]])
    >>> invert(np.array([[4.0, 0.0], [0.0, 0.0]]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    factor, failed = linalg.lapack.dpotrf(matrix, lower=True)
    if failed or linalg.lapack.dpocon(factor, np.abs(matrix).sum(axis=0).max(), uplo="L")[0] < MIN_RCOND:
        return pseudo_inverse(matrix)
    half = linalg.lapack.dpotri(factor, lower=True)[0]
    return np.tril(half) + np.tril(half, -1).T


def embed_incomplete(views: Views, latent: NDArray, loadings: list[NDArray], ridge: NDArray) -> NDArray:
    """`latent` with the positions of samples that lack views replaced by those of ridge regression.

    Examples
    --------
    >>> from lmssc.data.view import View
    >>> views = Views([View(np.array([[4.0], [4.0]])), View(np.array([[4.0], [0.0]]), present=np.array([True, False]))])
    >>> embed_incomplete(views, np.array([[4.0], [9.0]]), [np.array([[1.0]])] * 2, ridge=np.array([[1.0]]))
    array([[4.],
           [2.]])
    """
    products, result = views.dot(loadings), latent.copy()
    for rows, has in views.patterns():
        if not has.all():
            result[rows] = embed_views(products[rows], gram_of(loadings, has), ridge)
    return result
