"""Temperature: against a search over a grid, hidden labels, and what it does to real answers."""

import numpy as np
import pytest

from lmssc import LMSSC
from lmssc.calibration import (
    FOLDS,
    MOST_CHANGE,
    USUAL,
    balance,
    fit_temperature,
    held_out_scores,
    match_confidence,
    mean_confidence,
    temper,
)
from lmssc.datasets import make_multiview
from lmssc.experiments.scores import score
from lmssc.experiments.splits import stratified_split


@pytest.mark.parametrize("true_temperature", [0.3, 1.0, 3.0])
def test_finds_the_temperature_that_made_the_labels(true_temperature):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(4), size=4000)
    truth = np.array([rng.choice(4, p=row) for row in temper(scores, true_temperature)])
    assert fit_temperature(scores, truth) == pytest.approx(true_temperature, rel=0.15)


def test_few_labels_stay_near_the_usual():
    assert fit_temperature(np.array([[0.6, 0.4]]), np.array([0])) == pytest.approx(USUAL, rel=0.5)


@pytest.mark.parametrize("sharper", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_sharper_scores_get_the_same_confidence(sharper, temperature):
    scores = np.random.default_rng(5).dirichlet(np.ones(4), size=300)
    confidence = mean_confidence(scores, temperature)
    found = match_confidence(temper(scores, 1 / sharper), confidence, temperature)
    assert found == pytest.approx(temperature * sharper, rel=1e-3)


def test_a_confidence_out_of_reach_changes_the_temperature_by_no_more_than_the_most():
    scores = np.random.default_rng(6).dirichlet(np.ones(4), size=300)
    assert match_confidence(scores, 1.0, 0.9) == pytest.approx(0.9 / MOST_CHANGE)
    assert match_confidence(scores, 0.25, 0.9) == pytest.approx(0.9 * MOST_CHANGE)
    assert match_confidence(np.eye(4), 0.8, 0.9) == 0.9


def test_tempering_keeps_the_order_and_the_labels():
    rng = np.random.default_rng(1)
    scores = np.vstack([rng.dirichlet(np.ones(5), size=50), np.eye(5)])
    for temperature in (0.05, 0.7, 10.0):
        tempered = temper(scores, temperature)
        np.testing.assert_allclose(tempered.sum(axis=1), 1)
        np.testing.assert_array_equal(tempered.argmax(axis=1), scores.argmax(axis=1))
        np.testing.assert_array_equal(tempered[-5:], np.eye(5))


def _balanced_by_hand(scores, codes, power):
    """The formula, number by number."""
    n_classes = scores.shape[1]
    result = np.empty_like(scores)
    for j in range(n_classes):
        share = (np.sum(codes == j) + 1) / (np.sum(codes >= 0) + n_classes)
        missing = min(max(share / scores[:, j].mean(), 0.5), 2.0)
        result[:, j] = scores[:, j] * share**-power * missing ** min(1, 2 * power)
    return result / result.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5, 1.0])
def test_balance_is_the_formula_keeps_labels_and_follows_the_classes(power):
    rng = np.random.default_rng(4)
    codes = np.array([0, 0, 0, 0, 1, 2, 2, *[-1] * 30])
    scores = np.vstack([np.eye(3)[codes[:7]], rng.dirichlet([9.0, 0.3, 3.0], size=30)])
    balanced = balance(scores, codes, power)
    np.testing.assert_array_equal(balanced[:7], scores[:7])
    np.testing.assert_allclose(balanced, _balanced_by_hand(scores, codes, power))
    if power == 0:
        np.testing.assert_allclose(balanced, scores)
    permuted = balance(scores[:, [2, 0, 1]], np.array([1, 2, 0, -1])[codes], power)
    np.testing.assert_allclose(permuted, balanced[:, [2, 0, 1]])


def test_balance_gives_a_class_what_the_place_of_its_labels_took():
    """As many labels of each class, but one is at the edge of its class: propagation leaves it less than its share."""
    codes = np.array([0, 1, *[-1] * 98])
    scores = np.vstack([np.eye(2), np.tile([0.9, 0.1], (49, 1)), np.tile([0.6, 0.4], (49, 1))])
    answers = balance(scores, codes, 0.5).argmax(axis=1)
    np.testing.assert_array_equal(answers, [0, 1, *[0] * 49, *[1] * 49])


def test_one_sample_without_a_label_is_no_reason_to_doubt_its_scores():
    codes = np.array([0, 1] * 50 + [-1])
    scores = np.vstack([np.eye(2)[codes[:-1]], [[0.6, 0.4]]])
    np.testing.assert_allclose(balance(scores, codes, 0.5)[-1], [0.6, 0.4], atol=0.01)


def test_a_class_that_reaches_no_one_is_not_given_everyone():
    codes = np.array([0, 1, *[-1] * 998])
    scores = np.vstack([np.eye(2), np.tile([0.99, 0.01], (998, 1))])
    assert (balance(scores, codes, 0.5)[2:, 1] < 0.05).all()


def test_a_class_with_few_labels_is_found_as_well():
    """Classes of one size, but one has a tenth of the labels of the others."""
    data = make_multiview(400, n_classes=2, random_state=3, separation=1.0)
    y = np.full(400, -1)
    for code, count in ((0, 40), (1, 4)):
        y[np.flatnonzero(data.target == code)[:count]] = code
    found = {}
    for power in (0.0, 0.5):
        clf = LMSSC(balance=power).fit(data.views, y)
        found[power] = (clf.transduction_ == data.target)[(y < 0) & (data.target == 1)].mean()
    assert found[0.5] > found[0.0] + 0.02


def test_every_label_is_hidden_once_and_each_class_keeps_one():
    rng = np.random.default_rng(2)
    codes = np.append(rng.integers(-1, 4, size=80), [4, 5, 5])
    hidden = []

    def refit(labels):
        kept = labels >= 0
        assert set(labels[kept]) == set(codes[codes >= 0])
        hidden.append(np.flatnonzero((codes >= 0) & ~kept))
        return np.full((len(codes), 6), 1 / 6)

    _, labels = held_out_scores(codes, refit)
    everyone = np.concatenate(hidden)
    assert len(hidden) == FOLDS
    np.testing.assert_array_equal(np.sort(everyone), np.flatnonzero((codes >= 0) & (codes != 4)))
    np.testing.assert_array_equal(labels, codes[everyone])


def test_changes_no_answer():
    data = make_multiview(300, labelled=0.1, random_state=0)
    sure, plain = (LMSSC(calibrate=calibrate).fit(data.views, data.y) for calibrate in (True, False))
    np.testing.assert_array_equal(sure.transduction_, plain.transduction_)
    assert plain.temperature_ == 1.0
    assert not np.allclose(sure.label_distributions_, plain.label_distributions_)


def test_confidence_on_digits_means_what_it_says(digits):
    """Issue: expected calibration error at most 0.05 at 10 %; without calibration it is twice as much as with it."""
    errors = {True: [], False: []}
    for seed in range(2):
        order, given = stratified_split(digits.target, 0.1, seed)
        y = np.where(given, digits.target[order], -1)
        views = [view[order] for view in digits.views]
        for calibrate in errors:
            clf = LMSSC(calibrate=calibrate, max_iter=3).fit(views, y)
            proba = clf.label_distributions_[~given]
            record = score(digits.target[order][~given], proba, clf.transduction_[~given])
            errors[calibrate].append(record["calibration_error"])
    assert np.mean(errors[True]) < 0.03
    assert np.mean(errors[True]) < np.mean(errors[False]) / 2
