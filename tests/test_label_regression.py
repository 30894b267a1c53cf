"""Label regression: the predicted scores against the N × N formula, the weights, and new samples."""

import numpy as np
import pytest

import oracles
from lmssc.core import label_regression, nystroem
from lmssc.core.alternation import relative_change
from lmssc.core.label_regression import LabelRegressor, Regression
from lmssc.core.nystroem import NystroemFeatures, NystroemRows


def some_places(seed, n=60, r=4, n_classes=3):
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
    Z = rng.normal(size=(n, r)) + 2 * np.eye(n_classes, r)[codes]
    F = rng.dirichlet(np.ones(n_classes), size=n)
    labelled = np.arange(n) < 12
    F[labelled] = np.eye(n_classes)[codes[labelled]]
    return Z, F, labelled, codes


@pytest.mark.parametrize("seed", range(5))
def test_is_kernel_ridge_regression(seed):
    Z, F, labelled, _ = some_places(seed)
    P = Regression(Z, labelled).fit(F)(Z)
    np.testing.assert_allclose(P - P.mean(axis=0), oracles.kernel_ridge(Z, F, labelled), atol=1e-7)


def test_labels_of_many_classes_are_a_sparse_factor(monkeypatch):
    Z, F, labelled, _ = some_places(0)
    dense, regression = Regression(Z, labelled), Regression(Z, labelled)
    dense.adapt(F)
    monkeypatch.setattr(label_regression, "MAX_DENSE_CLASSES", 2)
    regression.adapt(F)
    assert regression.ridge == pytest.approx(dense.ridge, rel=1e-12)
    np.testing.assert_allclose(regression.fit(F)(Z), dense.fit(F)(Z), atol=1e-12)
    P = Regression(Z, labelled).fit(F)(Z)
    np.testing.assert_allclose(P - P.mean(axis=0), oracles.kernel_ridge(Z, F, labelled), atol=1e-7)


def test_products_of_features_are_the_kernel():
    Z = some_places(0)[0]
    features = NystroemFeatures.of(Z)(Z)
    centred = Z - Z.mean(axis=0)
    energy = (centred**2).sum() / len(Z)
    K = 0.8 * centred @ centred.T / energy + 0.2 * np.exp(-oracles.squared_distances(Z) / (2 * energy))
    np.testing.assert_allclose(features @ features.T, K, atol=1e-7)


def test_the_change_of_predictions_needs_no_predictions():
    rng = np.random.default_rng(0)
    rows = NystroemRows(some_places(0, n=400)[0])
    before, after = (LabelRegressor(rows.features, rng.normal(size=(rows.features.size, 500))) for _ in range(2))
    right = relative_change(after.at(rows), before.at(rows))
    np.testing.assert_allclose(after.change_from(before, rows), right, rtol=1e-9)
    assert before.change_from(before, rows) == 0


def test_fewer_landmarks_are_close(monkeypatch):
    Z, F, labelled, _ = some_places(1, n=400)
    exact = Regression(Z, labelled).fit(F)(Z)
    monkeypatch.setattr(nystroem, "MAX_LANDMARKS", 100)
    close = Regression(Z, labelled).fit(F)(Z)
    assert np.corrcoef(exact.ravel(), close.ravel())[0, 1] > 0.99


def test_blocks_change_nothing(monkeypatch):
    Z, F, labelled, _ = some_places(2)
    whole = Regression(Z, labelled).fit(F)(Z)
    monkeypatch.setattr(nystroem, "BATCH_NUMBERS", 500)
    np.testing.assert_allclose(Regression(Z, labelled).fit(F)(Z), whole, atol=1e-9)


def test_some_samples_are_enough(monkeypatch):
    Z, F, labelled, codes = some_places(4, n=3000)
    labelled = np.arange(3000) % 10 == 0
    F[:] = 0.8 * np.eye(3)[codes] + 0.2 * F
    every = Regression(Z, labelled).fit(F)(Z)
    monkeypatch.setattr(nystroem, "MAX_FIT_SAMPLES", 500)
    regression = Regression(Z, labelled)
    assert len(regression.chosen) == 300 + 500, "all that are labelled, and as many others as there may be"
    assert np.corrcoef(every.ravel(), regression.fit(F)(Z).ravel())[0, 1] > 0.99


def test_says_which_class_new_places_are_of():
    Z, _, labelled, codes = some_places(3, n=200)
    expected = Regression(Z, labelled).fit(np.eye(3)[codes])
    rng = np.random.default_rng(9)
    truth = rng.integers(3, size=300)
    new = rng.normal(size=(300, 4)) + 2 * np.eye(3, 4)[truth]
    assert (expected(new).argmax(axis=1) == truth).mean() > 0.75


def test_a_rare_class_is_heard_as_well():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [190, 10])
    Z = np.column_stack([codes + 0.3 * rng.normal(size=200), rng.normal(size=200)])
    labelled = rng.permutation(200) < 60
    labelled[-1] = True
    P = Regression(Z, labelled).fit(np.eye(2)[codes])(Z)
    steps = np.abs(P[codes == 1].mean(axis=0) - P[codes == 0].mean(axis=0))
    assert steps[1] > 3 * steps[0]  # √(19) times in units of scores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_labelled_and_identical_places(dtype):
    Z = np.zeros((6, 2), dtype=dtype)
    P = Regression(Z, np.ones(6, dtype=bool)).fit(np.eye(2)[[0, 1, 0, 1, 0, 1]])(Z)
    np.testing.assert_allclose(P, P[:1].repeat(6, axis=0))


def ridge_for(noise, seed=0):
    """The ridge for two classes a line apart, with some labels wrong and scores that doubt as much."""
    rng = np.random.default_rng(seed)
    codes = np.arange(200) % 2
    Z = np.column_stack([2.0 * codes, rng.normal(size=200)]) + 0.3 * rng.normal(size=(200, 2))
    given = np.where(rng.random(200) < noise, 1 - codes, codes)
    labelled = np.arange(200) < 80
    F = np.where(labelled[:, None], np.eye(2)[given], (1 - noise) * np.eye(2)[codes] + noise * np.eye(2)[1 - codes])
    regression = Regression(Z, labelled)
    regression.adapt(F)
    return regression.ridge


def test_noise_raises_the_ridge():
    clean, some, much = (ridge_for(noise) for noise in (0.0, 0.1, 0.3))
    assert clean == pytest.approx(label_regression.RIDGE)
    assert 1.5 * clean < some < much <= 16 * label_regression.RIDGE


def test_the_noise_by_its_formula():
    Z, F, labelled, _ = some_places(4)
    regression = Regression(Z, labelled)
    regression.adapt(F)
    assert regression.ridge == pytest.approx(oracles.ridge_by_noise(Z, F, labelled))
    assert regression.ridge > 1.1e-3


def test_one_class_and_everything_labelled_have_the_usual_ridge():
    for labelled, F in ((np.ones(4, dtype=bool), np.eye(2)[[0, 1, 0, 1]]), (np.arange(4) < 2, np.ones((4, 1)))):
        regression = Regression(np.arange(4.0)[:, None], labelled)
        regression.adapt(F)
        assert regression.ridge == label_regression.RIDGE
