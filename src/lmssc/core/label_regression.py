"""The class scores that a sample's place lets expect: a ridge regression of the propagated labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from lmssc.numerics.parallel import slices_of, threaded_map

Result = TypeVar("Result")

# Share of the kernel that is radial; the rest is linear.
RADIAL_SHARE = 0.2
# Ridge, for features of unit energy and weights that sum to 1, and by how many times it grows if all is noise.
RIDGE = 1e-3
NOISE_GROWTH = 15.0
# Samples that the radial functions are centred on, at most.
MOST_LANDMARKS = 300
# Numbers in one block of features, and in all that are kept rather than computed again.
BLOCK_NUMBERS = 1 << 18
MOST_KEPT = 1 << 24
# Labelled samples that the regression sees at most, and unlabelled ones: more change nothing in some hundred numbers.
MOST_SEEN = 20_000


@dataclass(frozen=True)
class NystroemFeatures:
    """What the regression sees of a place: the place itself, and radial functions of it.

    Their products are the kernel k(a, b) = 0.8·a·b/e + 0.2·exp(−‖a − b‖²/(2e)), with a and b centred and e their mean
    squared norm; the radial part from landmarks (Nyström), exactly if every sample is one.
    """

    centre: NDArray
    energy: float
    landmarks: NDArray
    whitening: NDArray

    @classmethod
    def of(cls, points: NDArray, some: NDArray | None = None) -> "NystroemFeatures":
        """From the places of all samples; the landmarks are the first of them by content, the order that `some` has."""
        centre = points.mean(axis=0, dtype=np.float64)
        spread = float(points.var(axis=0, dtype=np.float64).sum())
        energy = max(spread, float(np.finfo(points.dtype).tiny))
        chosen = slice(MOST_LANDMARKS) if some is None else some[:MOST_LANDMARKS]
        landmarks = points[chosen].astype(np.float64) - centre
        values, vectors = linalg.eigh(_radial(landmarks, landmarks, energy))
        kept = values > 1e-8 * values[-1]
        return cls(centre, energy, landmarks, vectors[:, kept] / np.sqrt(values[kept]))

    def __call__(self, points: NDArray) -> NDArray:
        """NystroemFeatures of some places, one row each."""
        dtype = points.dtype
        result = np.empty((len(points), self.size), dtype=dtype)
        places, radial = np.split(result, [points.shape[1]], axis=1)
        near = self._parts(points, places)
        np.matmul(near, self._whitening.astype(dtype, copy=False), out=radial)
        return result

    def times(self, points: NDArray, coefficients: NDArray) -> NDArray:
        """The features of some places times some coefficients, without them: there are far fewer products then."""
        dtype = points.dtype
        linear, radial = np.split(coefficients, [points.shape[1]])
        weights = (self._whitening @ radial).astype(dtype, copy=False)
        result = np.empty((len(points), coefficients.shape[1]), dtype=dtype)

        def fill(block: slice) -> None:
            places = np.empty_like(points[block])
            near = self._parts(points[block], places)
            np.matmul(places, linear.astype(dtype, copy=False), out=result[block])
            result[block] += near @ weights

        threaded_map(fill, self.blocks(points))
        return result

    @property
    def _whitening(self) -> NDArray:
        return np.sqrt(RADIAL_SHARE) * self.whitening

    def _parts(self, points: NDArray, places: NDArray) -> NDArray:
        """The linear part, into `places`, and the radial one before it is whitened."""
        dtype = points.dtype
        centred = (points - self.centre).astype(dtype, copy=False)
        np.multiply(centred, dtype.type(np.sqrt((1 - RADIAL_SHARE) / self.energy)), out=places)
        return _radial(centred, self.landmarks.astype(dtype, copy=False), self.energy)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.landmarks.shape[1] + self.whitening.shape[1]

    def blocks(self, points: NDArray) -> list[slice]:
        """Rows of many places whose features are computed at a time."""
        return slices_of(len(points), max(1, BLOCK_NUMBERS // (points.shape[1] + len(self.landmarks))))


class NystroemRows:
    """NystroemFeatures of the places of all samples, which several regressions see; kept if they are few.

    Parameters
    ----------
    points : ndarray of shape (n, r)
        Places Z.
    some : ndarray of int, optional
        Samples in an order by content, if they are not numbered so.
    features : NystroemFeatures, optional
        What is computed of each place; by default from all of them.
    """

    def __init__(self, points: NDArray, some: NDArray | None = None, features: NystroemFeatures | None = None) -> None:
        self.points = points
        self.some = some
        self.features = NystroemFeatures.of(points, some) if features is None else features
        few = len(points) * self.features.size <= MOST_KEPT
        self._blocks = self.features.blocks(points)
        self._kept = threaded_map(self._compute, self._blocks) if few else None

    def _compute(self, block: slice) -> NDArray:
        return self.features(self.points[block])

    def first(self, labelled: NDArray) -> NDArray | None:
        """The first labelled and unlabelled samples, by content; None if that is all of them."""
        if len(labelled) <= 2 * MOST_SEEN:
            return None
        order = np.arange(len(labelled)) if self.some is None else self.some
        is_labelled = labelled[order]
        return np.concatenate([order[kind][:MOST_SEEN] for kind in (is_labelled, ~is_labelled)])

    def times(self, coefficients: NDArray) -> NDArray:
        """The features times some coefficients."""
        if self._kept is None:
            return self.features.times(self.points, coefficients)
        coefficients = coefficients.astype(self.points.dtype, copy=False)
        return np.concatenate(threaded_map(lambda features: features @ coefficients, self._kept))

    def map(self, function: Callable[[slice, NDArray], Result]) -> list[Result]:
        """The function of each block of rows and its features."""
        if self._kept is None:
            return threaded_map(lambda block: function(block, self._compute(block)), self._blocks)
        return threaded_map(function, self._blocks, self._kept)


def _total(parts: Sequence[NDArray]) -> NDArray:
    """Their sum, in float64."""
    total = np.zeros(parts[0].shape)
    for part in parts:
        total += part
    return total


def _radial(points: NDArray, landmarks: NDArray, energy: float) -> NDArray:
    squares = (-2 * points) @ landmarks.T
    squares += np.einsum("ij,ij->i", points, points)[:, None]
    squares += np.einsum("ij,ij->i", landmarks, landmarks)
    np.maximum(squares, 0, out=squares)
    with np.errstate(over="ignore"):  # very far away is −∞, of which the exponential is 0
        squares *= points.dtype.type(-1 / (2 * energy))
    return np.exp(squares, out=squares)


@dataclass(frozen=True)
class LabelRegressor:
    """Expected scores as a function of the place."""

    features: NystroemFeatures
    coefficients: NDArray

    def __call__(self, points: NDArray) -> NDArray:
        """Expected scores, up to a constant for each class, one row for each place."""
        return self.features.times(points, self.coefficients)

    def at(self, rows: NystroemRows) -> NDArray:
        """The same for places whose features may be known."""
        return rows.times(self.coefficients)

    def times(self, factor: float) -> "LabelRegressor":
        """The same in other units."""
        return LabelRegressor(self.features, self.coefficients * factor)


class Regression:
    """Ridge regression of class scores on places, for scores that change.

    Labelled and unlabelled samples have half the say each, and the scores of a class are divided by the root of its
    share of the labels, so that classes with few samples count as much as others.

    Parameters
    ----------
    points : ndarray of shape (n, r), or NystroemRows
        Places Z.
    labelled : ndarray of bool of shape (n,)
        Whose scores are labels; at least one.

    Examples
    --------
    >>> z = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> regression = Regression(z, np.array([True, False, False, True]))
    >>> P = regression.fit(np.array([[1.0, 0.0], [0.7, 0.3], [0.3, 0.7], [0.0, 1.0]]))(z)
    >>> bool((np.diff(P[:, 0]) < 0).all())
    True
    """

    def __init__(self, points: NDArray | NystroemRows, labelled: NDArray) -> None:
        self.rows = points if isinstance(points, NystroemRows) else NystroemRows(points)
        self.chosen = self.rows.first(labelled)
        self.seen = self.rows
        if self.chosen is not None:
            labelled = labelled[self.chosen]
            self.seen = NystroemRows(self.rows.points[self.chosen], features=self.rows.features)
        self.labelled = labelled
        share = 1.0 if labelled.all() else 0.5
        self.say = np.where(labelled, share / labelled.sum(), (1 - share) / max(1, int((~labelled).sum())))

        def moments(block: slice, features: NDArray) -> tuple[NDArray, NDArray]:
            say = self.say[block].astype(features.dtype, copy=False)
            weighted = features * np.sqrt(say)[:, None]
            return weighted.T @ weighted, say @ features

        grams, means = zip(*self.seen.map(moments), strict=True)
        self.mean = _total(means)
        self.gram = _total(grams) - np.outer(self.mean, self.mean)
        self.set_ridge(RIDGE)

    def set_ridge(self, ridge: float) -> None:
        """From now on fit with this ridge."""
        self.ridge = ridge
        self.factor = linalg.cho_factor(self.gram + ridge * np.eye(len(self.gram)))

    def fit(self, scores: NDArray) -> LabelRegressor:
        """Fit to the class scores of all samples."""
        targets = self._targets(scores)

        def products(block: slice, features: NDArray) -> NDArray:
            return features.T @ (targets[block] * self.say[block, None]).astype(features.dtype, copy=False)

        cross = _total(self.seen.map(products)) - np.outer(self.mean, self.say @ targets)
        return LabelRegressor(self.rows.features, linalg.cho_solve(self.factor, cross))

    def adapt(self, scores: NDArray) -> None:
        """Set the ridge by how noisy the labels are: up to 16 times the usual one.

        Noise is what neither explains: the share of the labels' variance that a fit with the usual ridge leaves, times
        the doubt that the scores leave on the unlabelled samples, as a share of that without any knowledge.
        """
        self.set_ridge(RIDGE * (1 + NOISE_GROWTH * self._unexplained(scores) * self._doubt(scores)))

    def _targets(self, scores: NDArray) -> NDArray:
        scores = self._seen(scores)
        shares = scores[self.labelled].mean(axis=0, dtype=np.float64)
        return scores / np.sqrt(len(shares) * np.where(shares > 0, shares, 1))

    def _seen(self, scores: NDArray) -> NDArray:
        return scores if self.chosen is None else scores[self.chosen]

    def _unexplained(self, scores: NDArray) -> float:
        targets = self._targets(scores)[self.labelled]
        errors = targets - self.fit(scores)(self.seen.points[self.labelled])
        left, all_ = (float(part.var(axis=0, dtype=np.float64).sum()) for part in (errors, targets))
        return min(left / all_, 1.0) if all_ else 0.0

    def _doubt(self, scores: NDArray) -> float:
        if self.labelled.all():
            return 0.0
        unlabelled = self._seen(scores)[~self.labelled].astype(np.float64)
        mean = unlabelled.mean(axis=0)
        ignorance = 1 - float(mean @ mean)
        doubt = 1 - float((unlabelled**2).sum()) / len(unlabelled)
        return min(max(doubt / ignorance, 0.0), 1.0) if ignorance > 0 else 0.0
