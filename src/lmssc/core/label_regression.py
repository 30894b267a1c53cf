"""Ridge regression of the propagated labels on the coordinates Z, with a mostly linear kernel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dpotrf, dpotrs

from lmssc.core.nystroem import NystroemFeatures, NystroemRows, sum_parts
from lmssc.numerics.sparse_ops import rows_of_zeros

# Ridge for features of unit variance and sample weights that sum to 1; pure noise makes it 1 + NOISE_GROWTH times that.
RIDGE = 1e-3
NOISE_GROWTH = 15.0
# Regressions on at most this many samples share the moments of their features.
MAX_SHARED_SAMPLES = 5000
# With more classes, the scores of labelled samples are multiplied as a sparse matrix.
MAX_DENSE_CLASSES = 200


def _total_variance(rows: NDArray) -> float:
    """Sum of the variances of all columns."""
    squares = np.einsum("ij,ij->", rows, rows, dtype=np.float64)
    mean = rows.mean(axis=0, dtype=np.float64)
    return max(float(squares / len(rows) - mean @ mean), 0.0)


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

        cross = sum_parts(self.fit_rows.map(products)) - np.outer(self.mean, self.weights @ scores)
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
