"""Ridge regression of the propagated labels on the coordinates Z, with a mostly linear kernel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dpotrf, dpotrs

from lmssc.numerics.batches import gen_batches
from lmssc.numerics.parallel import threaded_map
from lmssc.numerics.sparse_ops import rows_of_zeros

Result = TypeVar("Result")

# Share of the kernel that is radial; the rest is linear.
RADIAL_SHARE = 0.2
# Ridge for features of unit variance and sample weights that sum to 1; pure noise makes it 1 + NOISE_GROWTH times that.
RIDGE = 1e-3
NOISE_GROWTH = 15.0
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
# Regressions on at most this many samples share the moments of their features.
MAX_SHARED_SAMPLES = 5000
# With more classes, the scores of labelled samples are multiplied as a sparse matrix.
MAX_DENSE_CLASSES = 200


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
        return _total(grams), _total(sums)

    def moments_within(self, chosen: NDArray) -> tuple[NDArray, NDArray]:
        """The same of some samples, each with the weight 1."""

        def of_block(block: slice, features: NDArray) -> tuple[NDArray, NDArray]:
            own = features[chosen[block]]
            return own.T @ own, own.sum(axis=0)

        grams, sums = zip(*self.map(of_block), strict=True)
        return _total(grams), _total(sums)

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


def _total(parts: Sequence[NDArray]) -> NDArray:
    """Sum of arrays, in float64; if there is only one, that array itself."""
    if len(parts) == 1:
        return parts[0].astype(np.float64, copy=False)
    total = np.zeros(parts[0].shape)
    for part in parts:
        total += part
    return total


def _total_variance(rows: NDArray) -> float:
    """Sum of the variances of all columns."""
    squares = np.einsum("ij,ij->", rows, rows, dtype=np.float64)
    mean = rows.mean(axis=0, dtype=np.float64)
    return max(float(squares / len(rows) - mean @ mean), 0.0)


def _radial(points: NDArray, landmarks: NDArray, energy: float) -> NDArray:
    squares = (-2 * points) @ landmarks.T
    squares += np.einsum("ij,ij->i", points, points)[:, None]
    squares += np.einsum("ij,ij->i", landmarks, landmarks)
    np.maximum(squares, 0, out=squares)
    with np.errstate(over="ignore"):  # far away the exponent is −∞ and the result 0
        squares *= points.dtype.type(-1 / (2 * energy))
    return np.exp(squares, out=squares)


@dataclass(frozen=True)
class LabelRegressor:
    """Class scores as a function of a point of Z."""

    features: NystroemFeatures
    coefficients: NDArray

    def __call__(self, points: NDArray) -> NDArray:
        """Predicted scores of each point, up to a constant for each class."""
        return self.features.times(points, self.coefficients)

    def at(self, rows: NystroemRows, chosen: NDArray | None = None) -> NDArray:
        """The same for points, or some of them, whose features may be cached."""
        return rows.times(self.coefficients, chosen)

    def compressed(self) -> "LabelRegressor":
        """A regressor whose predictions have the same distances, in as many columns as features if these are fewer.

        Only distances between predictions count. Those of Φ·B are those of Φ·U·√Λ, with B·Bᵀ = U·Λ·Uᵀ.

        Examples
        --------
        >>> regressor = LabelRegressor(NystroemFeatures.of(np.array([[0.0], [1.0]])), np.arange(15.0).reshape(3, 5))
        >>> points = np.array([[0.3], [0.7]])
        >>> step, short = np.diff(regressor(points), axis=0), np.diff(regressor.compressed()(points), axis=0)
        >>> step.shape, short.shape, bool(np.isclose(np.vdot(step, step), np.vdot(short, short)))
        ((1, 5), (1, 3), True)
        """
        if not self.is_wide:
            return self
        values, vectors = linalg.eigh(self.coefficients @ self.coefficients.T)
        return LabelRegressor(self.features, vectors * np.sqrt(np.maximum(values, 0)))

    @property
    def is_wide(self) -> bool:
        """Whether there are more classes than features."""
        return self.coefficients.shape[1] > self.coefficients.shape[0]

    def change_from(self, before: "LabelRegressor", rows: NystroemRows) -> float:
        """`relative_change` of the predictions for all points, without computing them: ‖ΦB‖² = Tr(Bᵀ·ΦᵀΦ·B).

        Examples
        --------
        >>> rows = NystroemRows(np.array([[0.0], [1.0]]))
        >>> regressor = LabelRegressor(rows.features, np.arange(15.0).reshape(3, 5))
        >>> round(regressor.times(1.5).change_from(regressor, rows), 9)
        0.5
        """
        gram = rows.moments[0]
        moved = self.coefficients - before.coefficients
        squares = [max(float(np.vdot(part, gram @ part)), 0.0) for part in (moved, before.coefficients)]
        return float(np.sqrt(squares[0] / max(squares[1], np.finfo(float).tiny)))

    def times(self, factor: float) -> "LabelRegressor":
        """The same with all predictions times `factor`."""
        return LabelRegressor(self.features, self.coefficients * factor)


class Regression:
    """Ridge regression of class scores on Z, factorised once for several sets of scores.

    Labelled and unlabelled samples each have half of the weight, and the scores of a class are divided by the root of
    its share of the labels, so that small classes count as much as others.

    Parameters
    ----------
    points : ndarray of shape (n, r), or NystroemRows
        Z.
    labelled : ndarray of bool of shape (n,)
        Which samples have a label; at least one.
    weigh_classes : bool
        Whether small classes count as much as others; otherwise all columns of the scores count as they are.

    Examples
    --------
    >>> z = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> regression = Regression(z, np.array([True, False, False, True]))
    >>> P = regression.fit(np.array([[1.0, 0.0], [0.7, 0.3], [0.3, 0.7], [0.0, 1.0]]))(z)
    >>> bool((np.diff(P[:, 0]) < 0).all())
    True
    """

    def __init__(self, points: NDArray | NystroemRows, labelled: NDArray, *, weigh_classes: bool = True) -> None:
        self.weigh_classes = weigh_classes
        self.rows = points if isinstance(points, NystroemRows) else NystroemRows(points)
        self.chosen = self.rows.first(labelled)
        self.fit_rows = self.rows
        if self.chosen is not None:
            labelled = labelled[self.chosen]
            self.fit_rows = NystroemRows(self.rows.points[self.chosen], features=self.rows.features)
        self.labelled = labelled
        share = 1.0 if labelled.all() else 0.5
        self.weights = np.where(labelled, share / labelled.sum(), (1 - share) / max(1, int((~labelled).sum())))

        gram, self.mean = self._weighted_moments()
        gram -= np.outer(self.mean, self.mean)
        self.gram = gram
        self.set_ridge(RIDGE)
        # The scores of the last fit, and what it needs of them, for another fit with another ridge.
        self._last: tuple[NDArray, NDArray] | None = None

    def _weighted_moments(self) -> tuple[NDArray, NDArray]:
        """Weighted second and first moments of the features.

        Of few samples from the moments of all, which regressions without some of the labels share, and those of the
        rarer of labelled and unlabelled ones. These have the larger weight, so both terms are positive.
        """
        rows, labelled = self.fit_rows, self.labelled
        if len(labelled) > MAX_SHARED_SAMPLES:
            return rows.moments_of(self.weights)
        rarer = labelled if 2 * int(labelled.sum()) <= len(labelled) else ~labelled
        small = float(self.weights.min())
        more = float(self.weights.max()) - small
        (gram, total), (own_gram, own_total) = rows.moments, rows.moments_within(rarer)
        own_gram *= more
        own_gram += small * gram
        return own_gram, small * total + more * own_total

    def set_ridge(self, ridge: float) -> None:
        """Use this ridge from now on."""
        self.ridge = ridge
        # It is symmetric: its transpose is in the order of Fortran, so that the factor takes no further copy.
        matrix = self.gram.copy().T
        np.einsum("ii->i", matrix)[:] += ridge
        # What scipy's own `cho_factor` adds to this takes as long as half of a small factor.
        self.factor, info = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if info:
            raise linalg.LinAlgError("the features have numbers that are not finite")

    def fit(self, scores: NDArray) -> LabelRegressor:
        """Fit to the class scores of all samples."""
        if self._last is None or self._last[0] is not scores:
            self._last = scores, self._cross(scores)
        return LabelRegressor(self.rows.features, dpotrs(self.factor, self._last[1], lower=1)[0])

    def _cross(self, scores: NDArray) -> NDArray:
        """Weighted covariance of the features and the targets."""
        scores = self._select(scores)
        few = scores.shape[1] <= MAX_DENSE_CLASSES

        def products(block: slice, features: NDArray) -> NDArray:
            own, weights = scores[block], self.weights[block, None]
            if few:
                return features.T @ (own * weights).astype(features.dtype, copy=False)
            weighted = features * weights.astype(features.dtype)
            known = self.labelled[block]  # nearly all of their scores are zeros
            rest = weighted[~known].T @ own[~known].astype(features.dtype, copy=False)
            return rest + (rows_of_zeros(own[known]).T @ weighted[known]).T

        cross = _total(self.fit_rows.map(products)) - np.outer(self.mean, self.weights @ scores)
        return cross * self._class_scales(scores[self.labelled])

    def adapt(self, scores: NDArray) -> None:
        """Set the ridge by how noisy the labels are: up to 16 times the default.

        The noise is the product of two shares: the variance of the labels that a fit with the default ridge does not
        explain, and the uncertainty of the scores of unlabelled samples relative to that of the class frequencies.
        """
        self.set_ridge(RIDGE * (1 + NOISE_GROWTH * self._unexplained(scores) * self._doubt(scores)))

    def _class_scales(self, known: NDArray) -> NDArray:
        """What the scores of each class are multiplied by; `known` are those of the labelled samples."""
        if not self.weigh_classes:
            return np.ones(known.shape[1])
        shares = known.mean(axis=0, dtype=np.float64)
        return 1 / np.sqrt(len(shares) * np.where(shares > 0, shares, 1))

    def _select(self, scores: NDArray) -> NDArray:
        return scores if self.chosen is None else scores[self.chosen]

    def _unexplained(self, scores: NDArray) -> float:
        targets = self._select(scores)[self.labelled]
        targets = np.multiply(targets, self._class_scales(targets), out=targets, casting="same_kind")
        errors = self.fit(scores).at(self.fit_rows, self.labelled)
        errors -= targets
        left, all_ = _total_variance(errors), _total_variance(targets)
        return min(left / all_, 1.0) if all_ else 0.0

    def _doubt(self, scores: NDArray) -> float:
        if self.labelled.all():
            return 0.0
        unlabelled = self._select(scores)[~self.labelled].astype(np.float64)
        mean = unlabelled.mean(axis=0)
        ignorance = 1 - float(mean @ mean)
        doubt = 1 - float((unlabelled**2).sum()) / len(unlabelled)
        return min(max(doubt / ignorance, 0.0), 1.0) if ignorance > 0 else 0.0
