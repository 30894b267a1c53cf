"""Measures for large data change no answer: the spatial order of the samples, solvers that stop earlier."""

import numpy as np
import pytest

from lmssc import LMSSC
from lmssc.core.objective import SolverTolerance
from lmssc.datasets import make_multiview
from lmssc.numerics.spatial_order import spatial_order

DATA = make_multiview(600, 3, 30, n_classes=4, labelled=0.05, random_state=0)


@pytest.mark.parametrize(
    ("name", "value", "atol", "rtol"),
    [
        ("numerics.scale.MIN_SAMPLES_FOR_LARGE_SCALE", 100, 1e-6, 1e-6),
        ("core.objective.TOLERANCE", SolverTolerance(100), 2e-3, 5e-3),  # the relative residual is 1e-3 at first
    ],
)
def test_fit(monkeypatch, name, value, atol, rtol):
    plain = LMSSC(tol=0.0, max_iter=6).fit(DATA.views, DATA.y)
    monkeypatch.setattr(f"lmssc.{name}", value)
    clf = LMSSC(tol=0.0, max_iter=6, neighbor_recall=1.0).fit(DATA.views, DATA.y)
    np.testing.assert_array_equal(clf.transduction_, plain.transduction_)
    np.testing.assert_allclose(clf.label_distributions_, plain.label_distributions_, atol=atol)
    np.testing.assert_allclose(clf.latent_, plain.latent_, atol=1e-5)
    np.testing.assert_allclose(clf.alpha_, plain.alpha_, rtol=rtol)
    assert (np.diff(clf.objective_) <= 1e-12 * clf.objective_[0]).all()


def test_neighbours_stand_together():
    rng = np.random.default_rng(0)
    centres = 10 * rng.normal(size=(20, 5))
    points = centres[rng.integers(20, size=4000)] + rng.normal(size=(4000, 5))
    order = spatial_order(points)
    assert sorted(order) == list(range(4000))
    steps = np.linalg.norm(np.diff(points[order], axis=0), axis=1).mean()
    assert steps < 0.5 * np.linalg.norm(np.diff(points, axis=0), axis=1).mean()


def test_points_that_are_read_in_batches_have_the_same_order(monkeypatch):
    points = np.random.default_rng(0).normal(size=(5000, 3))
    expected = spatial_order(points)
    released = []
    monkeypatch.setattr("lmssc.numerics.spatial_order.BATCH_ROWS", 700)
    order = spatial_order(points, lambda: released.append(1))
    np.testing.assert_array_equal(order, expected)
    # Three levels in batches of 700 rows, and then each of the eight parts once.
    assert len(released) == 8 + 2 * 4 + 4 * 2 + 8
