"""Positions of samples that lack views: what is expected of a sample like the others, given the views that it has."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from lmssc.core.new_samples import LEAST_NOISE, gram_of, place
from lmssc.data.views import Views

# Rounds in which noise and spread of the positions are estimated.
ROUNDS = 20


def fit_ridge(views: Views, latent: NDArray, loadings: list[NDArray]) -> NDArray | None:
    """σ²·C⁻¹, with σ² the noise of a feature and C the second moments of the positions; None if no sample lacks a view.

    Views that a sample lacks leave directions open in which least squares would only blow up noise. With positions
    drawn from a normal distribution around 0 with the moments C, the likeliest ones are those with this ridge. σ² and C
    are from expectation maximisation with the loadings as they are, so that positions that are little known do not
    pass for widely spread.

    Parameters
    ----------
    views : Views
        Scaled views.
    latent : ndarray of shape (n, r)
        First positions.
    loadings : list of ndarray of shape (d_v, r)
        W^v.

    Returns
    -------
    ndarray of shape (r, r), or None

    Examples
    --------
    >>> from lmssc.data.views import View
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
    noise = least = LEAST_NOISE * energy / n_numbers
    moments = latent.T.astype(np.float64) @ latent / len(latent)
    for _ in range(ROUNDS):
        left, total = energy, np.zeros_like(moments)
        ridge = noise * linalg.pinvh(moments)
        for rows, gram, _ in patterns:
            unsure = noise * linalg.pinvh(gram + ridge)
            own = place(products[rows], gram, ridge)
            squares = own.T @ own + len(rows) * unsure
            left += float(np.vdot(squares, gram)) - 2 * float(np.vdot(own, products[rows]))
            total += squares
        noise, moments = max(left / n_numbers, least), total / len(latent)
    return (noise * linalg.pinvh(moments)).astype(latent.dtype)


def place_few(views: Views, latent: NDArray, loadings: list[NDArray], ridge: NDArray) -> NDArray:
    """`latent`, but with samples that lack views where the ridge has them.

    Examples
    --------
    >>> from lmssc.data.views import View
    >>> views = Views([View(np.array([[4.0], [4.0]])), View(np.array([[4.0], [0.0]]), present=np.array([True, False]))])
    >>> place_few(views, np.array([[4.0], [9.0]]), [np.array([[1.0]])] * 2, ridge=np.array([[1.0]]))
    array([[4.],
           [2.]])
    """
    products, result = views.dot(loadings), latent.copy()
    for rows, has in views.patterns():
        if not has.all():
            result[rows] = place(products[rows], gram_of(loadings, has), ridge)
    return result
