"""Ridge regression of the labels on kernel features, with its leave-one-out errors in closed form."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from lmssc.core.mean_kernel import MeanKernel
from lmssc.core.targets import Targets
from lmssc.data.views import Views
from lmssc.numerics.climb import climb

# Ridges to choose from, for a kernel that is 1 on the diagonal.
RIDGES = [10.0**power for power in np.arange(-4, 2.5, 0.5)]
# The kernel is this much larger than the mean of the views' kernels, which lets the regression fit a constant. Centring
# the kernel instead would make the constant direction singular, and leave-one-out residuals vanish with the ridge.
CONSTANT = 1.0
# Eigenvalues of the kernel below this share of the largest are rounding.
MIN_EIGENVALUE = 1e-12
# Prior of log T, and limits of T.
TEMPERATURE, LOG_TEMPERATURE_STD = 0.2, 0.7
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.02, 5.0


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
