"""Coordinates Z in which the graph measures distances: the latent positions, or for text their directions."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True)
class Embedding:
    """Map from latent positions to the coordinates of the graph: Z = D⁻¹·H·C, with C and D diagonal and fixed.

    Measurements are compared by H itself. Texts are compared by topic and not by length: components with a large
    singular value, the topics that many texts share, get more weight (C), then rows are divided by their norms (D).
    """

    stretch: NDArray | None = None
    """Diagonal of C."""
    radius: float | None = None
    """Norm that all rows of Z have."""
    norms: NDArray | None = None
    """Diagonal of D."""

    @classmethod
    def of_directions(cls, latent: NDArray) -> "Embedding":
        """Components weighted by the root of their singular value, and rows of equal norm.

        Examples
        --------
        >>> H = np.array([[4.0, 0.0], [0.0, 1.0]])
        >>> embedding = Embedding.of_directions(H)
        >>> embedding.stretch, embedding.embed(H).round(3)
        (array([1. , 0.5]), array([[2.915, 0.   ],
               [0.   , 2.915]]))
        """
        stretch = stretch_of(np.linalg.norm(latent, axis=0))
        radius = float(np.sqrt(np.vdot(latent, latent) / len(latent)))
        return cls(stretch, radius, relative_norms(latent * stretch, radius))

    def embed(self, latent: NDArray) -> NDArray:
        """Z of the samples of fit."""
        return latent if self.stretch is None else latent * self.stretch / self.norms[:, None]  # type: ignore[index]

    def embed_new(self, latent: NDArray) -> NDArray:
        """Z of new samples."""
        if self.stretch is None:
            return latent
        stretched = latent * self.stretch
        return stretched / relative_norms(stretched, self.radius)[:, None]  # type: ignore[arg-type]

    def take(self, samples: NDArray) -> "Embedding":
        """The same map for some of the samples of fit, or for all in another order."""
        return self if self.norms is None else replace(self, norms=self.norms[samples])

    def pull_back(self, laplacian: sparse.csr_array) -> sparse.csr_array:
        """D⁻¹LD⁻¹, with which Tr(ZᵀLZ) = Tr(Hᵀ·D⁻¹LD⁻¹·H·C²)."""
        if self.norms is None:
            return laplacian
        inverse = sparse.diags_array(1 / self.norms)
        return (inverse @ laplacian @ inverse).tocsr()

    @property
    def metric(self) -> NDArray | None:
        """Diagonal of C²."""
        return None if self.stretch is None else self.stretch**2


IDENTITY = Embedding()
"""Z = H."""


def stretch_of(strengths: NDArray) -> NDArray:
    """Diagonal of C, from the norm of each column of H.

    Examples
    --------
    >>> stretch_of(np.array([4.0, 1.0]))
    array([1. , 0.5])
    """
    stretch = np.sqrt(strengths / max(float(strengths.max(initial=0)), np.finfo(strengths.dtype).tiny))
    # A component that no sample uses would make the metric singular.
    return np.maximum(stretch, np.finfo(strengths.dtype).eps).astype(strengths.dtype)


def relative_norms(rows: NDArray, radius: float) -> NDArray:
    """Norm of each row divided by `radius`; 1 for a row of zeros, which has no direction.

    Examples
    --------
    >>> relative_norms(np.array([[3.0, 4.0], [0.0, 0.0]]), radius=2.0)
    array([2.5, 1. ])
    """
    norms = np.linalg.norm(rows, axis=1) / rows.dtype.type(max(radius, np.finfo(rows.dtype).tiny))
    return np.where(norms > np.finfo(rows.dtype).eps, norms, 1).astype(rows.dtype)
