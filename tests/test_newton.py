"""Newton's method within bounds, and the derivatives of the loss that it minimises."""

import numpy as np
import pytest
from scipy.optimize import minimize

from lmssc.core.log_loss import LogLoss
from lmssc.numerics.newton import minimize_within

EPSILON = 1e-6


def made_up(kind, *, offsets):
    """The loss of 40 samples with six columns, of which the last stands for five classes unless there are offsets."""
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(np.ones(6), size=40))
    targets = np.eye(6)[rng.integers(0, 6, 40)] * 1.5 if kind == "labels" else rng.dirichlet(np.full(6, 0.3), size=40)
    own = np.log(rng.uniform(0.1, 1, 6)) if offsets else np.zeros(6)
    repeats = np.ones(6) if offsets else np.array([1.0, 1, 1, 1, 1, 5])
    return logs, targets, own, repeats, LogLoss.of(logs, targets, own, repeats, int(repeats.sum()))


@pytest.mark.parametrize("kind", ["labels", "shares"])
@pytest.mark.parametrize("offsets", [False, True])
def test_loss_and_derivatives(kind, offsets):
    """The loss is the plain sum, and its derivatives are those of finite differences."""
    logs, targets, own, repeats, loss = made_up(kind, offsets=offsets)
    x = np.array([0.2, 0.2, 0.5])
    powers = np.exp(logs / np.exp(x[0]) + x[2] * own)
    probabilities = 0.8 * powers / (powers * repeats).sum(axis=1, keepdims=True) + 0.2 / repeats.sum()
    value, gradient, hessian = loss(x)
    assert value == pytest.approx(-(targets * np.log(probabilities)).sum(), rel=1e-12)
    size = 3 if offsets else 2
    ends = [(loss(x + EPSILON * axis), loss(x - EPSILON * axis)) for axis in np.eye(3)[:size]]
    np.testing.assert_allclose(gradient[:size], [(a[0] - b[0]) / (2 * EPSILON) for a, b in ends], atol=1e-6)
    slopes = [(a[1] - b[1])[:size] / (2 * EPSILON) for a, b in ends]
    np.testing.assert_allclose(hessian[:size, :size], slopes, atol=1e-6)


@pytest.mark.parametrize("kind", ["labels", "shares"])
def test_the_minimum_is_that_of_scipy(kind):
    loss = made_up(kind, offsets=True)[-1]
    bounds = np.array([[-3.0, 3.0], [0.0, 0.99], [0.0, 8.0]])
    start = np.array([0.0, 0.5, 0.0])
    x, value = minimize_within(loss, start, bounds)
    found = minimize(lambda z: loss(z)[:2], start, jac=True, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14})
    assert value <= found.fun + 1e-7
    np.testing.assert_allclose(x, found.x, atol=1e-3)


def test_a_saddle_is_left():
    """x² − y² within [−1, 1]: down along y to a bound, although the curvature is negative there."""

    def saddle(x):
        return float(x[0] ** 2 - x[1] ** 2), np.array([2 * x[0], -2 * x[1]]), np.diag([2.0, -2.0])

    x, value = minimize_within(saddle, np.array([0.5, 0.1]), np.array([[-1.0, 1.0], [-1.0, 1.0]]))
    np.testing.assert_allclose(x, [0, 1], atol=1e-9)
    assert value == pytest.approx(-1)
