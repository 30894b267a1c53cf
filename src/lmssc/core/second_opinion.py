"""A second opinion beside the graph: kernel ridge regression of the labels on all features of all views."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from lmssc.core.mean_kernel import MeanKernel, map_batches, presence
from lmssc.core.targets import Targets
from lmssc.data.views import Views
from lmssc.numerics.climb import climb

# Labelled samples whose kernel functions are the features (Nyström); with fewer labels the regression is exact.
MAX_LANDMARKS = 1000
# The regression is fitted to at most this many labelled samples: enough for a thousand coefficients.
MAX_FIT_SAMPLES = 20_000
# Ridges to choose from, for a kernel that is 1 on the diagonal.
RIDGES = [10.0**power for power in np.arange(-4, 2.5, 0.5)]
# The kernel is this much larger than the mean of the Gaussians, which lets the regression fit a constant. Centring the
# kernel instead would make the constant direction singular, and leave-one-out residuals vanish with the ridge.
CONSTANT = 1.0
# Laplacian kernels are tried up to this many absolute differences of numbers, which take a quarter of a second.
MAX_ABSOLUTE_DIFFERENCES = 200_000_000
# Standard errors by which a Laplacian kernel has to be better: two are tried, the chance of one is that of one error.
ERRORS_OF_LAPLACIAN = 1.4
# Views are weighed by their share of explained variance, or its square: powers that are tried, and standard errors by
# which the kernel has to be better; the least share; and labels that are enough to measure it.
POWERS, ERRORS_OF_WEIGHTS = (1.0, 2.0), 1.4
MIN_EXPLAINED, MAX_WEIGHED = 0.01, 500
# Eigenvalues of the kernel below this share of the largest are rounding.
MIN_EIGENVALUE = 1e-12
# Largest trust: with more, labels would hardly travel over the graph.
MAX_TRUST = 0.99
# Prior of log T, and limits of T.
TEMPERATURE, LOG_TEMPERATURE_STD = 0.2, 0.7
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.02, 5.0


@dataclass(frozen=True)
class Opinion:
    """The second opinion on the samples of a fit, as the objective sees it: J has the term γ·η·Σ_u ‖f_u − q_u‖².

    Attributes
    ----------
    scores : ndarray of shape (n, c)
        Q; rows sum to 1. That of a labelled sample does not use its own label, if the regression is fitted to it.
    weight : float
        η, positive.
    """

    scores: NDArray
    weight: float

    def take(self, rows: Callable[[NDArray], NDArray]) -> "Opinion":
        """The same with the samples in another order; `rows` orders an array."""
        return Opinion(rows(self.scores), self.weight)


def anchor_weight(trust: float) -> float:
    """η of a trust t, from 0 to below 1: t is the share of Q in the scores of a sample that has one neighbour.

    Examples
    --------
    >>> anchor_weight(0.0), anchor_weight(0.5), anchor_weight(0.75)
    (0.0, 1.0, 3.0)
    """
    return trust / (1 - trust)


class KernelRidge:
    """Ridge regression of the labels on features that a kernel with landmarks gives, for one kernel.

    The ridge has the least squared leave-one-out error, which falls up to some ridge and then rises.

    Parameters
    ----------
    kernel : MeanKernel
        The kernel; its landmarks are the first of the labelled samples.
    values : ndarray of shape (l, m)
        Kernel between the labelled samples and the landmarks.
    targets : ndarray of shape (l, c)
        Y of these.
    weights : ndarray of shape (l,), optional
        Weight of each; by default all are equal. The rows of Φ and Y are multiplied by their roots.

    Attributes
    ----------
    ridge : float
        λ.
    errors : ndarray of shape (l, c)
        Y minus the leave-one-out predictions.
    """

    def __init__(self, kernel: MeanKernel, values: NDArray, targets: NDArray, weights: NDArray | None = None) -> None:
        self.kernel = kernel
        self.roots = np.ones((len(targets), 1)) if weights is None else np.sqrt(weights)[:, None]
        self.targets = targets * self.roots
        values = values + CONSTANT
        n_landmarks = values.shape[1]
        self.gram, vectors = np.linalg.eigh(values[:n_landmarks])
        kept = self.gram > MIN_EIGENVALUE * self.gram[-1]
        self.gram, self.whitening = self.gram[kept], vectors[:, kept] / np.sqrt(self.gram[kept])
        self.features = values @ self.whitening * self.roots
        if len(values) > n_landmarks or weights is not None:  # otherwise the features are orthogonal already
            self.gram, rotation = np.linalg.eigh(self.features.T @ self.features)
            self.features, self.whitening = self.features @ rotation, self.whitening @ rotation
        self.cross = self.features.T @ self.targets
        self.ridge = climb(RIDGES, lambda ridge: -float(np.square(self._left_out_errors(ridge)).sum()))
        self.errors = self._left_out_errors(self.ridge) / self.roots

    def _coefficients(self, ridge: float) -> NDArray:
        return self.cross / (self.gram + ridge)[:, None]

    def _left_out_errors(self, ridge: float) -> NDArray:
        """Leave-one-out errors, times the roots of the weights."""
        leverage = np.square(self.features) @ (1 / (self.gram + ridge))
        errors = self.targets - self.features @ self._coefficients(ridge)
        return errors / np.maximum(1 - leverage, np.finfo(float).eps)[:, None]

    def errors_without(self, positions: NDArray) -> NDArray:
        """Y minus the predictions for some labelled samples, from the labels of the others: (I − A)⁻¹·(Y − ΦB).

        A is the block of these samples in the hat matrix Φ·(ΦᵀΦ + λ)⁻¹·Φᵀ.
        """
        return self._errors_without(positions) / self.roots[positions]

    def _errors_without(self, positions: NDArray) -> NDArray:
        features = self.features[positions]
        hat = (features / (self.gram + self.ridge)) @ features.T
        errors = self.targets[positions] - features @ self._coefficients(self.ridge)
        return np.linalg.solve(np.eye(len(hat)) - hat, errors)

    def coefficients(self, left_out: NDArray | None = None) -> NDArray:
        """Coefficients of the landmarks, of shape (m, c), without the labels of the rows at some positions.

        If e are their errors without their labels, the other labels have the coefficients B − (ΦᵀΦ + λ)⁻¹·Φᵀe.
        """
        coefficients = self._coefficients(self.ridge)
        if left_out is not None:
            scaled = self.features[left_out] / (self.gram + self.ridge)
            coefficients = coefficients - scaled.T @ self._errors_without(left_out)
        return self.whitening @ coefficients


def has_smaller_errors(one: NDArray, other: NDArray, n_errors: float = 1.0) -> bool:
    """Whether squared errors are smaller, by more than some standard errors of the mean difference.

    Examples
    --------
    >>> has_smaller_errors(np.full((9, 2), 0.1), np.full((9, 2), 0.2))
    True
    >>> has_smaller_errors(np.array([[0.1], [0.2]]), np.array([[0.2], [0.1]]))
    False
    """
    gain = np.square(other).sum(axis=1) - np.square(one).sum(axis=1)
    return len(gain) > 1 and bool(gain.mean() > n_errors * gain.std(ddof=1) / np.sqrt(len(gain)))


def kernels(rows: Views, landmarks: Views, *, laplacian: bool) -> Iterator[tuple[MeanKernel, NDArray]]:
    """Kernels to choose from, and their values between labelled samples and landmarks; the Gaussian one comes first."""
    gaussian, linear = MeanKernel.of(landmarks), MeanKernel.of(landmarks, linear=True)
    values = gaussian(rows)
    yield gaussian, values
    yield linear, linear(rows)
    if laplacian:
        absolute = MeanKernel.of(landmarks, laplacian=1.0)
        found = absolute(rows)
        yield absolute, found
        yield replace(absolute, laplacian=0.5), (values + found) / 2


class OpinionRegression:
    """Ridge regression of the labels on kernel features of the labelled samples.

    It is exact kernel ridge regression with up to `MAX_LANDMARKS` labels; with more, the kernel functions of some of
    them are the features. The kernel is Gaussian, unless the leave-one-out errors of a linear one are smaller by more
    than a standard error, or those of a Laplacian one or of half a Gaussian and half a Laplacian one by more than 1.4.
    Views that explain more alone weigh more, if that makes the errors smaller by 1.4 standard errors, too. The
    temperature has the largest leave-one-out likelihood.

    Parameters
    ----------
    views : Views
        All scaled views.
    targets : Targets
        Y. Labels that are not certain weigh less.
    order : ndarray of int of shape (n,), optional
        Random order of the samples, if their own is not random: the first labelled ones are the landmarks.
    laplacian : bool, default=False
        Whether Laplacian kernels are tried, if the samples and features are few enough.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [3.0], [3.2], [0.1]])
    >>> regression = OpinionRegression(Views.from_arrays([X]), Targets.from_codes(np.array([0, 0, 1, 1, -1]), 2))
    >>> regression.finish(trust=0.5)(Views.from_arrays([X])).argmax(axis=1)
    array([0, 0, 1, 1, 0])
    """

    def __init__(
        self, views: Views, targets: Targets, order: NDArray | None = None, *, laplacian: bool = False
    ) -> None:
        labelled = np.flatnonzero(targets.labelled) if order is None else order[targets.labelled[order]]
        self.rows = labelled[:MAX_FIT_SAMPLES]
        self.targets = targets.matrix(np.dtype(float))[self.rows]
        rows = views.take(self.rows)
        landmarks = rows.take(np.arange(min(len(self.rows), MAX_LANDMARKS)))
        weights = None if targets.trust is None else targets.weights[self.rows]
        n_differences = views.n_samples * landmarks.n_samples * views.n_features
        laplacian = laplacian and n_differences <= MAX_ABSOLUTE_DIFFERENCES
        self.fit, linear, *others = (
            KernelRidge(kernel, values, self.targets, weights)
            for kernel, values in kernels(rows, landmarks, laplacian=laplacian)
        )
        self._replace_by([linear], 1.0)
        self._replace_by(others, ERRORS_OF_LAPLACIAN)
        if len(self.fit.kernel.landmarks) > 1:
            weighed = [replace(self.fit.kernel, weights=one) for one in self._view_weights(rows, weights)]
            fits = [KernelRidge(kernel, kernel(rows), self.targets, weights) for kernel in weighed]
            self._replace_by(fits, ERRORS_OF_WEIGHTS)
        self.kernel = self.fit.kernel
        self.temperature = fit_temperature(self.targets - self.fit.errors, self.targets * self.fit.roots**2)

    def _replace_by(self, others: Sequence[KernelRidge], n_errors: float) -> None:
        """Take the best of other kernels if its errors are smaller by more than some standard errors."""
        errors = [one.errors * one.roots for one in others]
        if errors:
            best = min(range(len(errors)), key=lambda i: float(np.square(errors[i]).sum()))
            if has_smaller_errors(errors[best], self.fit.errors * self.fit.roots, n_errors):
                self.fit = others[best]

    def _view_weights(self, rows: Views, weights: NDArray | None) -> list[NDArray]:
        """Weights of the views, with mean 1: powers of the variance that a regression on each alone explains."""
        n_some = min(self.fit.kernel.landmarks[0].data.shape[0], MAX_WEIGHED)
        targets, weights = self.targets[:n_some], None if weights is None else weights[:n_some]

        def left_out(kernel: MeanKernel, values: NDArray) -> float:
            fit = KernelRidge(kernel, values, targets, weights)
            return float(np.square(fit.errors * fit.roots).sum())

        alone = [self.fit.kernel.only(v, n_some) for v in range(len(rows))]
        some = rows.take(slice(n_some))
        errors = np.array([left_out(one, one(Views([view]))) for one, view in zip(alone, some, strict=True)])
        nothing = left_out(alone[0], np.zeros((n_some, 1)))  # all that is left is a constant
        explained = np.maximum(1 - errors / max(nothing, np.finfo(float).tiny), MIN_EXPLAINED)
        return [explained**power / np.mean(explained**power) for power in POWERS]

    def _positions(self, samples: NDArray) -> NDArray:
        return np.flatnonzero(np.isin(self.rows, samples))

    def coefficients(self, held_out: NDArray | None = None) -> NDArray:
        """Coefficients of the landmarks, of shape (m, c), without the labels of some samples."""
        return self.fit.coefficients(None if held_out is None else self._positions(held_out))

    def distributions(self, kernel: NDArray, coefficients: NDArray) -> NDArray:
        """Q of samples, given their kernel with the landmarks."""
        return softmax((kernel @ coefficients + CONSTANT * coefficients.sum(axis=0)) / self.temperature, axis=1)

    def held_out_distributions(self, held_out: NDArray) -> NDArray:
        """Q of some of the labelled samples that the regression is fitted to, in its order, without their labels."""
        positions = self._positions(held_out)
        return softmax((self.targets[positions] - self.fit.errors_without(positions)) / self.temperature, axis=1)

    def left_out_distributions(self) -> NDArray:
        """Q of all labelled samples that the regression is fitted to, each without its own label."""
        return softmax((self.targets - self.fit.errors) / self.temperature, axis=1)

    def finish(self, trust: float) -> "SecondOpinion":
        """What predicts Q, fitted to all labels."""
        return SecondOpinion(self.kernel, self.coefficients(), self.temperature, trust)

    def opinion(self, views: Views, trust: float, kernel: NDArray | None = None) -> Opinion:
        """Q of all samples of fit, and η; `kernel` is that between the samples and the landmarks, if it is known."""
        if kernel is None:
            scores = self.finish(trust)(views)
        else:
            scores = self.distributions(kernel, self.coefficients()).astype(views.dtype, copy=False)
        scores[self.rows] = self.left_out_distributions()
        return Opinion(scores, anchor_weight(trust))


def left_out_error(views: Views, targets: Targets) -> float:
    """Mean squared leave-one-out error of the regression with Gaussian kernels.

    Parameters
    ----------
    views : Views
        All scaled views of labelled samples.
    targets : Targets
        Y. Labels that are not certain weigh less.

    Returns
    -------
    float

    Examples
    --------
    >>> targets = Targets.from_codes(np.array([0, 0, 1, 1]), 2)
    >>> near, far = (Views.from_arrays([np.array([[0.0], [0.1], [gap], [gap + 0.1]])]) for gap in (0.2, 2.0))
    >>> left_out_error(near, targets) > left_out_error(far, targets)
    True
    """
    kernel = MeanKernel.of(views)
    weights = None if targets.trust is None else targets.weights
    fit = KernelRidge(kernel, kernel(views), targets.matrix(np.dtype(float)), weights)
    return float(np.square(fit.errors * fit.roots).sum(axis=1).mean())


def fit_temperature(scores: NDArray, targets: NDArray) -> float:
    """T at which softmax(scores / T) has the largest likelihood, with a normal prior of log T.

    Examples
    --------
    >>> round(fit_temperature(np.array([[0.9, 0.1], [0.1, 0.9]] * 20), np.array([[1.0, 0.0], [0.0, 1.0]] * 20)), 2)
    0.14
    >>> fit_temperature(np.array([[0.9, 0.1], [0.1, 0.9]] * 20), np.full((40, 2), 0.5)) > 1
    True
    """

    def loss(log_temperature: float) -> float:
        away = (log_temperature - np.log(TEMPERATURE)) / LOG_TEMPERATURE_STD
        return -float((targets * log_softmax(scores / np.exp(log_temperature), axis=1)).sum()) + away**2 / 2

    bounds = np.log([MIN_TEMPERATURE, MAX_TEMPERATURE])
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


@dataclass(frozen=True)
class SecondOpinion:
    """Class distributions as a function of the views: softmax of kernel ridge scores.

    Attributes
    ----------
    kernel : MeanKernel
        Kernel between samples and landmarks, views in canonical order.
    coefficients : ndarray of shape (m, c)
        Of the landmarks.
    temperature : float
        T of the softmax.
    trust : float
        t: how much it counts beside the neighbours of a sample.
    """

    kernel: MeanKernel
    coefficients: NDArray
    temperature: float
    trust: float

    def __call__(self, views: Views) -> NDArray:
        """Q of samples, of shape (n, c)."""

        def of_batch(batch: Views) -> NDArray:
            return self.decide(self.by_view(batch), presence(batch)).astype(views.dtype, copy=False)

        return map_batches(of_batch, views, len(self.coefficients))

    def by_view(self, views: Views) -> NDArray:
        """What each view contributes to the scores of samples, of shape (V, n, c)."""
        return np.array([near @ self.coefficients for near in self.kernel.by_view(views)])

    def by_view_given(self, views: Views, opinions: NDArray) -> NDArray:
        """`by_view` of samples of fit, shifted so that all views together give the Q that is known.

        Otherwise the contributions of a labelled sample would know its label, as those of a new sample never do.
        """
        contributions, has = self.by_view(views), presence(views)
        logs = [np.log(np.maximum(part, np.finfo(float).tiny)) for part in (opinions, self.decide(contributions, has))]
        shift = self.temperature * (logs[0] - logs[1]) / np.sqrt(self.kernel.totals(has))[:, None]
        return contributions + (has * self.kernel.shares).T[:, :, None] * shift

    def decide(self, contributions: NDArray, has: NDArray) -> NDArray:
        """Q from the contributions of the views, of which each sample has those in its row of `has`, (n, V)."""
        totals = np.sqrt(self.kernel.totals(has))[:, None]
        scores = np.einsum("vij,iv->ij", contributions, has.astype(float)) / totals
        return softmax((scores + CONSTANT * self.coefficients.sum(axis=0)) / self.temperature, axis=1)

    def blend(self, scores: NDArray, opinions: NDArray) -> NDArray:
        """Scores of samples from the averages over their neighbours, and Q: the update of F for a single node."""
        share = scores.dtype.type(self.trust)
        return (1 - share) * scores + share * opinions.astype(scores.dtype, copy=False)
