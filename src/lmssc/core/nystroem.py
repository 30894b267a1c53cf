"""Features of the coordinates Z for a mostly linear kernel, whose radial part is a Nyström approximation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.parallel import threaded_map

Result = TypeVar("Result")
# Share of the kernel that is radial; the rest is linear.
RADIAL_SHARE = 0.2
# Landmarks of the Nyström approximation.
MAX_LANDMARKS = 300
# Eigenvalues of their kernel below this share of the largest are rounding. If no pivot of a Cholesky factor is smaller
# than this share of the trace, none is, and the factor takes a tenth of the time of the eigenvectors.
MIN_EIGENVALUE, MIN_PIVOT = 1e-8, 1e-7
# Numbers in one batch of features, and in all features that are cached; beyond, they are computed each time.
BATCH_NUMBERS = 1 << 18
MAX_CACHED_NUMBERS = 1 << 24
# The regression is fitted to at most this many labelled and as many unlabelled samples: enough for a few hundred
# coefficients.
MAX_FIT_SAMPLES = 20_000


@dataclass(frozen=True)
class NystroemFeatures:
    """Features of a point of Z: its coordinates, and radial functions around landmarks.

    Their inner products are the kernel k(a, b) = 0.8·a·b/e + 0.2·exp(−‖a − b‖²/(2e)), with a and b centred and e their
    mean squared norm. The radial part is a Nyström approximation, exact if every sample is a landmark.
    """

    centre: NDArray
    energy: float
    landmarks: NDArray
    whitening: NDArray

    @classmethod
    def of(cls, points: NDArray, order: NDArray | None = None) -> "NystroemFeatures":
        """From the points of all samples; `order` is a random order of them, whose first are the landmarks."""
        centre = points.mean(axis=0, dtype=np.float64)
        spread = float(points.var(axis=0, dtype=np.float64).sum())
        chosen = slice(MAX_LANDMARKS) if order is None else order[:MAX_LANDMARKS]
        return cls.from_moments(centre, spread, points[chosen])

    @classmethod
    def from_moments(cls, centre: NDArray, spread: float, chosen: NDArray) -> "NystroemFeatures":
        """From the mean of all points, their mean squared distance from it, and the points that are landmarks."""
        energy = max(spread, float(np.finfo(chosen.dtype).tiny))
        landmarks = chosen.astype(np.float64) - centre
        return cls(centre, energy, landmarks, _whiten(_radial(landmarks, landmarks, energy)))

    def __call__(self, points: NDArray) -> NDArray:
        """Features of some points, one row each."""
        dtype = points.dtype
        result = np.empty((len(points), self.size), dtype=dtype)
        linear, radial = np.split(result, [points.shape[1]], axis=1)
        near = self._parts(points, linear)
        np.matmul(near, self._whitening.astype(dtype, copy=False), out=radial)
        return result

    def times(self, points: NDArray, coefficients: NDArray) -> NDArray:
        """Features times coefficients, without computing the features: far fewer products."""
        dtype = points.dtype
        linear, radial = np.split(coefficients, [points.shape[1]])
        weights = (self._whitening @ radial).astype(dtype, copy=False)
        result = np.empty((len(points), coefficients.shape[1]), dtype=dtype)

        def fill(block: slice) -> None:
            centred = np.empty_like(points[block])
            near = self._parts(points[block], centred)
            np.matmul(centred, linear.astype(dtype, copy=False), out=result[block])
            result[block] += near @ weights

        threaded_map(fill, self.blocks(points))
        return result

    @property
    def _whitening(self) -> NDArray:
        return np.sqrt(RADIAL_SHARE) * self.whitening

    def _parts(self, points: NDArray, linear: NDArray) -> NDArray:
        """The radial part before it is whitened; the linear part is written to `linear`."""
        dtype = points.dtype
        centred = (points - self.centre).astype(dtype, copy=False)
        np.multiply(centred, dtype.type(np.sqrt((1 - RADIAL_SHARE) / self.energy)), out=linear)
        return _radial(centred, self.landmarks.astype(dtype, copy=False), self.energy)

    @property
    def size(self) -> int:
        """Number of features."""
        return self.landmarks.shape[1] + self.whitening.shape[1]

    def blocks(self, points: NDArray) -> list[slice]:
        """Batches of points whose features are computed at a time."""
        return list(gen_batches(len(points), max(1, BATCH_NUMBERS // (points.shape[1] + len(self.landmarks)))))


class NystroemRows:
    """Features of all samples, shared by several regressions; cached if they fit into memory.

    Parameters
    ----------
    points : ndarray of shape (n, r)
        Z.
    order : ndarray of int, optional
        Random order of the samples, if their own is not random.
    features : NystroemFeatures, optional
        The feature map; by default one that is fitted to `points`.
    """

    def __init__(self, points: NDArray, order: NDArray | None = None, features: NystroemFeatures | None = None) -> None:
        self.points = points
        self.order = order
        self.features = NystroemFeatures.of(points, order) if features is None else features
        few = len(points) * self.features.size <= MAX_CACHED_NUMBERS
        self._blocks = self.features.blocks(points)
        self._cached = threaded_map(self._compute, self._blocks) if few else None

    def _compute(self, block: slice) -> NDArray:
        return self.features(self.points[block])

    @cached_property
    def moments(self) -> tuple[NDArray, NDArray]:
        """ΦᵀΦ and Φᵀ1 of all samples."""
        return self.moments_of(np.ones(len(self.points)))

    def moments_of(self, weights: NDArray) -> tuple[NDArray, NDArray]:
        """Σ_i w_i·φ_i·φ_iᵀ and Σ_i w_i·φ_i, in float64."""

        def of_block(block: slice, features: NDArray) -> tuple[NDArray, NDArray]:
            own = weights[block].astype(features.dtype, copy=False)
            weighted = features * np.sqrt(own)[:, None]
            return weighted.T @ weighted, own @ features

        grams, sums = zip(*self.map(of_block), strict=True)
        return sum_parts(grams), sum_parts(sums)

    def moments_within(self, chosen: NDArray) -> tuple[NDArray, NDArray]:
        """The same of some samples, each with the weight 1."""

        def of_block(block: slice, features: NDArray) -> tuple[NDArray, NDArray]:
            own = features[chosen[block]]
            return own.T @ own, own.sum(axis=0)

        grams, sums = zip(*self.map(of_block), strict=True)
        return sum_parts(grams), sum_parts(sums)

    def first(self, labelled: NDArray) -> NDArray | None:
        """Random labelled and unlabelled samples to fit to; None for all of them."""
        if len(labelled) <= 2 * MAX_FIT_SAMPLES:
            return None
        return first_of_each(labelled, self.order)

    def times(self, coefficients: NDArray, chosen: NDArray | None = None) -> NDArray:
        """Features of all samples, or of those `chosen` by a boolean array, times coefficients."""
        if self._cached is None:
            points = self.points if chosen is None else self.points[chosen]
            return self.features.times(points, coefficients)
        coefficients = coefficients.astype(self.points.dtype, copy=False)

        def of_block(block: slice, features: NDArray) -> NDArray:
            return (features if chosen is None else features[chosen[block]]) @ coefficients

        return np.concatenate(self.map(of_block))

    def map(self, function: Callable[[slice, NDArray], Result]) -> list[Result]:
        """`function` of each batch of rows and its features."""
        if self._cached is None:
            return threaded_map(lambda block: function(block, self._compute(block)), self._blocks)
        return threaded_map(function, self._blocks, self._cached)


def _whiten(kernel: NDArray) -> NDArray:
    """A matrix whose product with its transpose is the inverse of the kernel, without directions that are rounding."""
    try:
        factor = linalg.cholesky(kernel, check_finite=False)
        if factor.diagonal().min() ** 2 > MIN_PIVOT * len(kernel):
            return linalg.solve_triangular(factor, np.eye(len(kernel)), check_finite=False)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(kernel, check_finite=False)
    kept = values > MIN_EIGENVALUE * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def first_of_each(labelled: NDArray, order: NDArray | None) -> NDArray:
    """The first labelled samples, then the first others, in a random order of the samples."""
    order = np.arange(len(labelled)) if order is None else order
    is_labelled = labelled[order]
    return np.concatenate([order[kind][:MAX_FIT_SAMPLES] for kind in (is_labelled, ~is_labelled)])


def sum_parts(parts: Sequence[NDArray]) -> NDArray:
    """Sum of arrays, in float64; if there is only one, that array itself."""
    if len(parts) == 1:
        return parts[0].astype(np.float64, copy=False)
    total = np.zeros(parts[0].shape)
    for part in parts:
        total += part
    return total


def _radial(points: NDArray, landmarks: NDArray, energy: float) -> NDArray:
    squares = (-2 * points) @ landmarks.T
    squares += np.einsum("ij,ij->i", points, points)[:, None]
    squares += np.einsum("ij,ij->i", landmarks, landmarks)
    np.maximum(squares, 0, out=squares)
    with np.errstate(over="ignore"):  # far away the exponent is −∞ and the result 0
        squares *= points.dtype.type(-1 / (2 * energy))
    return np.exp(squares, out=squares)
