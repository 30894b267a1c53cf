"""Partial whitening of one view: its columns are decorrelated, so that what many of them share counts less."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.data.view import View

MIN_EIGENVALUE = 1e-10
"""Smaller eigenvalues of the covariance, as a share of the largest, are rounding."""
MIN_FLOOR = 0.01
"""Smallest m, as a share of the mean variance of the columns: the median may be rounding."""


@dataclass(frozen=True)
class Whitening:
    """x ↦ x·V·diag(g)·Vᵀ + g₀·(x − x·V·Vᵀ): each principal direction is multiplied by a factor of its own.

    Attributes
    ----------
    directions : ndarray of shape (d, k)
        V: principal directions, orthonormal.
    factors : ndarray of shape (k,)
        g of each.
    rest : float
        g₀, for what lies outside of them.
    strength : float
        From 0, which changes nothing, to 1.
    """

    directions: NDArray
    factors: NDArray
    rest: float
    strength: float

    def apply(self, rows: NDArray) -> NDArray:
        """The whitened rows, in the same features.

        Examples
        --------
        >>> Whitening(np.eye(2)[:, :1], np.array([2.0]), 1.0, 0.5).apply(np.array([[1.0, 1.0]]))
        array([[2., 1.]])
        """
        dtype = rows.dtype
        directions = self.directions.astype(dtype, copy=False)
        within = rows @ directions
        within *= (self.factors - self.rest).astype(dtype)
        return within @ directions.T + dtype.type(self.rest) * rows


@dataclass(frozen=True)
class PrincipalVariances:
    """Principal directions of a view whose columns are centred, and the variance along each that is not 0.

    Attributes
    ----------
    directions : ndarray of shape (d, k)
        Orthonormal.
    variances : ndarray of shape (k,)
        Descending.
    floor : float
        m, which is added to the variances: the median of those of all directions, also without variance, or a hundredth
        of the mean variance of the columns if that is more. It keeps directions of next to no variance, which are noise
        or rounding, from growing.
    """

    directions: NDArray
    variances: NDArray
    floor: float

    @classmethod
    def of(cls, view: View) -> "PrincipalVariances":
        """Those of the rows that are present, by the smaller one of the two Gram matrices.

        Examples
        --------
        >>> PrincipalVariances.of(View(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))).variances
        array([2. , 0.5])
        """
        rows = view.data if view.present is None else view.data[view.present]
        rows = rows.astype(np.float64, copy=False)
        n_rows, width = rows.shape
        # That of numpy takes a fifth less time for all vectors; scipy's with the same driver fails for a single column.
        values, vectors = np.linalg.eigh(rows.T @ rows if width <= n_rows else rows @ rows.T)
        variances = np.maximum(values, 0) / n_rows
        floor = max(float(np.median(variances)), MIN_FLOOR * float(variances.sum()) / width)
        kept = values > MIN_EIGENVALUE * max(values[-1], np.finfo(float).tiny)
        values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
        if width > n_rows:
            vectors = rows.T @ vectors / np.sqrt(values)
        # In the order in which a saved model has them: some versions of BLAS round other orders differently.
        return cls(np.ascontiguousarray(vectors, dtype=view.data.dtype), values / n_rows, floor)

    def whitening(self, strength: float) -> Whitening:
        """The whitening that multiplies each direction by (λ + m)^(−strength / 2), with λ its variance.

        A common factor keeps the mean squared row norm.

        Examples
        --------
        >>> PrincipalVariances(np.eye(3), np.array([8.0, 1.0, 0.0]), 1.0).whitening(1.0).factors.round(2)
        array([0.85, 1.8 , 2.55])
        """
        if not len(self.variances):
            return Whitening(self.directions, self.variances, 1.0, float(strength))
        factors = (self.variances + self.floor) ** (-strength / 2)
        scale = np.sqrt(self.variances.sum() / (self.variances * factors**2).sum())
        return Whitening(
            self.directions, scale * factors, float(scale * self.floor ** (-strength / 2)), float(strength)
        )
