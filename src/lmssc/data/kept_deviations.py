"""Columns that keep their variances although the view was standardised."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmssc.data.view import View


@dataclass(frozen=True)
class KeptDeviations:
    """x_j ↦ w_j·x_j, with w_j in proportion to the standard deviation of column j before it was standardised.

    Attributes
    ----------
    weights : ndarray of shape (d,)
        w.
    """

    weights: NDArray

    @classmethod
    def of(cls, view: View, deviations: NDArray) -> "KeptDeviations":
        """The weights with which a standardised view keeps its mean squared row norm.

        Examples
        --------
        >>> view = View(np.array([[1.0, 1.0], [-1.0, -1.0]]))
        >>> KeptDeviations.of(view, np.array([3.0, 4.0])).weights.round(3)
        array([0.849, 1.131])
        """
        relative = deviations / max(deviations.max(initial=0), np.finfo(deviations.dtype).tiny)
        energies = sum(np.einsum("ij,ij->j", b.data, b.data, dtype=np.float64) for _, b in view.blocks())
        before, after = energies.sum(), energies @ relative**2
        return cls(relative * np.sqrt(before / after) if after > 0 else np.ones_like(relative))

    def apply(self, rows: NDArray) -> NDArray:
        """The rows with these weights.

        Examples
        --------
        >>> KeptDeviations(np.array([2.0, 0.5])).apply(np.array([[1.0, 1.0]]))
        array([[2. , 0.5]])
        """
        return rows * self.weights.astype(rows.dtype, copy=False)
