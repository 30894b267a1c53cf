"""Wrong labels: the judges against slow versions, and what they must not be misled by."""

import numpy as np
import pytest
from scipy.special import softmax

from lmssc.core.held_out_folds import HeldOutFolds, LatentProblem
from lmssc.core.label_noise import doubt_labels, trust_labels
from lmssc.core.noise_estimate import EXPONENTS, LOG_STD, class_mean_logs, fit_exponents
from lmssc.core.targets import Targets


def test_class_means_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    points, codes = rng.normal(size=(30, 4)), rng.integers(-1, 3, 30)
    known = Targets.from_codes(codes, 3)
    labelled = np.flatnonzero(codes >= 0)
    known = known.doubt(labelled, rng.uniform(0.2, 1.0, len(labelled)))
    members = np.flatnonzero(codes < 0)
    weights = known.weights
    means = [np.average(points[codes == k], axis=0, weights=weights[codes == k]) for k in range(3)]
    total, freedom = 0.0, 0.0
    for k in range(3):
        own = weights[codes == k]
        total += sum(w * ((z - means[k]) ** 2).sum() for w, z in zip(own, points[codes == k], strict=True))
        freedom += own.sum() - (own**2).sum() / own.sum()
    expected = [[-((points[i] - mean) ** 2).sum() / (2 * total / freedom / 4) for mean in means] for i in members]
    np.testing.assert_allclose(class_mean_logs(points, known, members), expected, rtol=1e-10)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_no_other_powers_of_the_judges_make_the_labels_more_likely(noise):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, 60)
    logs = rng.normal(size=(2, 60, 3))
    logs[:, np.arange(60), codes] += [[1.5], [0.7]]

    def penalised(exponents):
        found = softmax(np.tensordot(exponents, logs, 1), axis=1)[np.arange(60), codes]
        likelihood = np.log((1 - noise) * found + noise / 2 * (1 - found)).sum()
        return likelihood - (np.square(np.log(exponents / EXPONENTS) / LOG_STD)).sum() / 2

    exponents, best = fit_exponents(logs, codes, noise)
    assert best == pytest.approx(penalised(exponents), abs=1e-9)
    grid = np.exp(np.linspace(-3, 2, 60))
    assert best >= max(penalised(np.array([a, b])) for a in grid for b in grid) - 1e-6


def blobs(seed, n_wrong):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], 60)
    points = rng.normal(size=(120, 3)) + 4.0 * truth[:, None]
    order = rng.permutation(120)
    points, truth = points[order], truth[order]
    codes = np.where(np.arange(120) < 30, truth, -1)
    codes[:n_wrong] = 1 - codes[:n_wrong]
    targets = Targets.from_codes(codes, 2)
    folds = HeldOutFolds.draw(targets, np.zeros(120, dtype=np.uint64))
    return LatentProblem(points, 8, 1.0, 1.0, 0.5), targets, folds


@pytest.mark.parametrize("seed", range(3))
def test_wrong_labels_of_clear_classes_are_doubted_more_than_all_others(seed):
    problem, targets, folds = blobs(seed, n_wrong=5)
    for noise in (None, 0.2):
        found = doubt_labels(problem, targets, folds, noise)
        assert found.wrong[:5].min() > found.wrong[5:30].max()
    trust = trust_labels(targets, found).trust
    assert trust[:5].max() < trust[5:30].min()


@pytest.mark.parametrize("seed", range(3))
def test_without_wrong_labels_the_targets_are_the_same_object(seed):
    problem, targets, folds = blobs(seed, n_wrong=0)
    found = doubt_labels(problem, targets, folds)
    assert found.noise == 0
    assert trust_labels(targets, found) is targets


def test_labels_that_are_alone_in_their_class_are_not_doubted():
    problem, targets, _ = blobs(0, n_wrong=0)
    codes = np.where(targets.labelled, 0, -1)
    codes[0] = 1
    alone = Targets.from_codes(codes, 2)
    found = doubt_labels(problem, alone, HeldOutFolds.draw(alone, np.zeros(120, dtype=np.uint64)), noise=0.2)
    assert np.isnan(found.wrong[0])
    assert np.isinf(trust_labels(alone, found).trust[0])
