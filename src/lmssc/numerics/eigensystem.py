"""All eigenvalues of a symmetric matrix, and then as many leading eigenvectors as these show to be worth computing."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dormqr, dsytrd

# Columns that LAPACK reduces at a time, if it has the memory.
BLOCK = 64


class Eigensystem:
    """Eigenvalues and leading eigenvectors of a symmetric matrix, which is reduced to a tridiagonal one only once.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        The matrix; its lower triangle is used.

    Attributes
    ----------
    values : ndarray of shape (n,)
        All eigenvalues, smallest first.

    Examples
    --------
    >>> eigen = Eigensystem(np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]]))
    >>> eigen.values.round(6)
    array([1., 3., 5.])
    >>> np.abs(eigen.leading(2).round(4))
    array([[0.    , 0.7071],
           [0.    , 0.7071],
           [1.    , 0.    ]])
    """

    def __init__(self, matrix: NDArray) -> None:
        # A copy in the order of Fortran: the reduction works in place.
        reduced = np.array(matrix, dtype=np.float64, order="F")
        self._reflectors, self._diagonal, self._beside, self._factors, _ = dsytrd(
            reduced, lower=1, lwork=max(1, BLOCK * len(matrix)), overwrite_a=1
        )
        if len(matrix) == 1:  # older releases of scipy refuse a matrix of one number
            self.values = self._diagonal
        else:
            self.values = linalg.eigh_tridiagonal(self._diagonal, self._beside, eigvals_only=True)

    def leading(self, n_vectors: int) -> NDArray:
        """Eigenvectors of the largest eigenvalues, these first; of shape (n, n_vectors)."""
        size = len(self._diagonal)
        if size == 1:
            return np.ones((1, n_vectors))
        vectors = linalg.eigh_tridiagonal(
            self._diagonal, self._beside, select="i", select_range=(size - n_vectors, size - 1)
        )[1]
        # The reflectors are those of a QR decomposition of all rows but the first.
        below = np.asfortranarray(self._reflectors[1:, :-1])
        length = max(1, BLOCK * n_vectors)
        vectors[1:] = dormqr("L", "N", below, self._factors, vectors[1:], length)[0]
        return vectors[:, ::-1]
