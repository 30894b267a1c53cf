"""Confidence: recovers known probabilities; held-out labels, rare classes, and its effect on real answers."""

import numpy as np
import pytest

from lmssc import LMSSC
from lmssc.core.calibration import (
    N_FOLDS,
    Calibration,
    abundances,
    calibration_sample,
    doubt_cost,
    fit_calibration,
    held_out_folds,
    temper,
)
from lmssc.core.calibration_loss import PRIOR, ClassDoubtLoss
from lmssc.core.prior_correction import balance
from lmssc.datasets import make_multiview
from lmssc.evaluation.splits import stratified_split
from lmssc.metrics import score


def _draw(rng, distributions):
    """A class for each row, one-hot."""
    return np.array([rng.multinomial(1, row / row.sum()) for row in distributions])


@pytest.mark.parametrize("doubt", [0.0, 0.3])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
def test_finds_the_temperature_and_the_doubt_that_made_the_labels(temperature, doubt):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(4), size=6000)
    true = Calibration(temperature, doubt)(scores)
    found = fit_calibration(scores, _draw(rng, true))
    assert np.abs(found(scores) - true).mean() < 0.01
    if temperature <= 1:  # a high temperature and doubt say much the same
        assert found.temperature == pytest.approx(temperature, rel=0.2)
        assert found.doubt == pytest.approx(doubt, abs=0.06)
    assert found.rarity == 0


def test_finds_how_much_too_often_a_rare_class_is_answered():
    rng = np.random.default_rng(1)
    scores = rng.dirichlet([5.0, 5.0, 0.5], size=20000)
    rare = abundances(np.array([500, 500, 4]))
    found = fit_calibration(scores, _draw(rng, Calibration(1.0, 0.0, 1.2)(scores, rare)), rare)
    assert found.rarity == pytest.approx(1.2, abs=0.15)
    assert fit_calibration(scores, _draw(rng, scores), rare).rarity < 0.1


def test_finds_the_class_whose_answers_are_too_sure():
    rng = np.random.default_rng(2)
    scores = rng.dirichlet([2.0, 1.0, 0.7], size=6000)
    true = Calibration(class_doubt=np.array([0.0, 0.0, 0.6]))(scores)
    labels, costs = _draw(rng, true), doubt_cost(abundances(np.array([600, 200, 100])))
    found = fit_calibration(scores, labels, prior_temperature=1.0, costs=costs)
    assert np.abs(found(scores) - true).mean() < 0.01
    assert found.class_doubt == pytest.approx([0, 0, 0.6], abs=0.1)
    assert (found(scores).argmax(axis=1) == scores.argmax(axis=1)).all()
    shared = fit_calibration(scores, labels, prior_temperature=1.0)
    rows = scores.argmax(axis=1) == 2
    assert np.abs(shared(scores) - true)[rows].mean() > 3 * np.abs(found(scores) - true)[rows].mean()
    answers = np.eye(3)[scores.argmax(axis=1)]
    assert fit_calibration(scores, answers, prior_temperature=1.0, costs=costs).class_doubt is None


def test_a_known_calibration_without_doubts_of_classes_saves_only_time():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.full(3, 0.4), size=300)
    wrong = rng.random(300) < np.where(scores.argmax(axis=1) == 2, 0.5, 0.05)
    targets = np.eye(3)[np.where(wrong, 0, scores.argmax(axis=1))]
    costs = np.array([np.inf, 1.0, 0.5])
    found = fit_calibration(scores, targets, costs=costs)
    again = fit_calibration(scores, targets, costs=costs, shared=fit_calibration(scores, targets))
    assert found.class_doubt is not None
    np.testing.assert_array_equal(found.class_doubt, again.class_doubt)
    assert (found.temperature, found.doubt, found.rarity) == (again.temperature, again.doubt, again.rarity)


def test_gradient_of_the_loss_with_doubts_of_classes():
    rng = np.random.default_rng(3)
    scores, targets = rng.dirichlet(np.ones(3), size=30), rng.dirichlet(np.ones(3), size=30)
    offsets = 0.5 * np.log([1.0, 1.0, 0.3])
    answers = (np.log(scores) * np.exp(-0.2) + offsets).argmax(axis=1)
    costs = np.array([0.5, 0.7])  # class 2 has no doubt of its own
    loss = ClassDoubtLoss(np.log(scores), targets, offsets, np.ones(3), 3, 0.0, 1.0, answers, costs)
    point = np.array([0.2, 0.1, 0.3, 0.2])
    value, gradient = loss(point)
    for k, step in enumerate(1e-6 * np.eye(4)):
        assert (loss(point + step)[0] - loss(point - step)[0]) / 2e-6 == pytest.approx(gradient[k], rel=1e-6), k
    probabilities = Calibration(np.exp(0.2), 0.1, 0.5, np.array([0.3, 0.2, 0.0]))(scores, np.array([1.0, 1.0, 0.1]))
    penalties = (0.2 / PRIOR.log_temperature_std) ** 2 / 2 + 0.1 + 0.5 * 0.3 + 0.7 * 0.2
    assert value == pytest.approx(-(targets * np.log(probabilities)).sum() + penalties, rel=1e-12)


def test_labels_with_weights_count_as_often_as_they_weigh():
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(3), size=50)
    labels = _draw(rng, scores)
    one, other = (
        fit_calibration(np.repeat(scores, 3, axis=0), np.repeat(labels, 3, axis=0)),
        fit_calibration(scores, 3 * labels),
    )
    assert one.temperature == pytest.approx(other.temperature, rel=1e-3)
    assert one.doubt == pytest.approx(other.doubt, abs=1e-3)


def test_few_labels_stay_near_the_usual():
    found = fit_calibration(np.array([[0.6, 0.4]]), np.array([[1, 0]]))
    assert found.temperature == pytest.approx(PRIOR.temperature, rel=0.5)
    assert found.doubt == 0


@pytest.mark.parametrize("sharper", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_sharper_scores_follow_calibrated_ones(sharper, temperature):
    """However much sharper: the temperature is not held back."""
    scores = 0.1 + 0.8 * np.random.default_rng(5).dirichlet(np.ones(4), size=2000)
    targets = temper(scores, temperature)
    sharp = temper(scores, 1 / sharper)
    found = fit_calibration(sharp, targets, prior_temperature=temperature, penalise=False)
    assert found(sharp).max(axis=1).mean() == pytest.approx(targets.max(axis=1).mean(), abs=0.02)


def test_scores_that_are_all_but_certain_can_be_worth_little():
    """Half of them are wrong: no power of these scores says so, doubt does."""
    rng = np.random.default_rng(6)
    scores = np.eye(2)[rng.integers(2, size=400)]
    found = fit_calibration(scores, np.eye(2)[rng.integers(2, size=400)])
    assert found(scores).max() < 0.6


def test_every_class_has_two_labels_in_what_is_calibrated_on():
    codes = np.full(1000, -1)
    codes[[5, 6, 7, 600, 900, 901, 902]] = [0, 0, 0, 1, 2, 2, 2]
    np.testing.assert_array_equal(calibration_sample(codes, 100, 0), [*range(100), 600, 900, 901])
    np.testing.assert_array_equal(calibration_sample(codes, 1000, 0), np.arange(1000))
    np.testing.assert_array_equal(calibration_sample(codes, 100, 6), [*range(100), 600, 900, 901])
    np.testing.assert_array_equal(calibration_sample(codes, 100, 7), [*range(100), 600, 900, 901, 902])


def test_tempering_keeps_the_order_and_the_labels():
    rng = np.random.default_rng(1)
    scores = np.vstack([rng.dirichlet(np.ones(5), size=50), np.eye(5)])
    for temperature in (0.05, 0.7, 10.0):
        tempered = temper(scores, temperature)
        np.testing.assert_allclose(tempered.sum(axis=1), 1)
        np.testing.assert_array_equal(tempered.argmax(axis=1), scores.argmax(axis=1))
        np.testing.assert_array_equal(tempered[-5:], np.eye(5))
        powers = scores ** (1 / temperature)
        np.testing.assert_allclose(tempered, powers / powers.sum(axis=1, keepdims=True), rtol=1e-10, atol=1e-300)


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
    folds = held_out_folds(codes, rng.random(len(codes)))
    assert len(folds) == N_FOLDS
    for held in folds:
        assert set(np.delete(codes, held)) == set(codes)
    everyone = np.concatenate(folds)
    np.testing.assert_array_equal(np.sort(everyone), np.flatnonzero((codes >= 0) & (codes != 4)))


def test_changes_no_answer():
    data = make_multiview(300, labelled=0.1, random_state=0)
    sure, plain = (
        LMSSC(calibrate=calibrate, second_opinion=0.0).fit(data.views, data.y) for calibrate in (True, False)
    )
    np.testing.assert_array_equal(sure.transduction_, plain.transduction_)
    assert plain.temperature_ == 1.0
    assert not np.allclose(sure.label_distributions_, plain.label_distributions_)


def test_confidence_on_digits_means_what_it_says(digits):
    """Issue: expected calibration error at most 0.05 at 10 %; without calibration it is twice as much as with it."""
    order, given = stratified_split(digits.target, 0.1, 0)
    y = np.where(given, digits.target[order], -1)
    views = [view[order] for view in digits.views]
    errors = {}
    for calibrate in (True, False):
        clf = LMSSC(calibrate=calibrate, max_iter=3).fit(views, y)
        proba = clf.label_distributions_[~given]
        record = score(digits.target[order][~given], proba, clf.transduction_[~given])
        errors[calibrate] = record["calibration_error"]
        assert record["accuracy"] > 0.97
    assert errors[True] < 0.03
    assert errors[True] < errors[False] / 2


def _gaussians(seed, n, apart, share=0.5):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < share).astype(int)
    return rng.standard_normal((n, 2)) + apart * truth[:, None] * [1, 0], truth, rng


def test_classes_that_overlap_are_answered_no_surer_than_right():
    """Two Gaussians 0.5 apart, 30 % labels: 55 % right at 73 % before, because the last scores are all but certain."""
    right, sure = [], []
    for seed in range(3):
        X, truth, rng = _gaussians(seed, 2000, apart=0.5)
        y = np.where(rng.random(1000) < 0.3, truth[:1000], -1)
        clf = LMSSC().fit([X[:1000]], y)
        for proba, answers in (
            (clf.label_distributions_[y < 0], truth[:1000][y < 0]),
            (clf.predict_proba([X[1000:]]), truth[1000:]),
        ):
            right.append((proba.argmax(axis=1) == answers).mean())
            sure.append(proba.max(axis=1).mean())
    assert abs(np.mean(right[::2]) - np.mean(sure[::2])) < 0.06
    assert abs(np.mean(right[1::2]) - np.mean(sure[1::2])) < 0.06


@pytest.mark.filterwarnings("ignore:only .* labels are found if they are held out")
@pytest.mark.parametrize("n_labels", [30, 60, 100])
def test_few_labels_of_classes_that_overlap_make_no_one_sure(n_labels):
    """With 60 labels answers were 8 points surer than right."""
    apart = []
    for seed in range(10):
        X, truth, rng = _gaussians(seed, 700, apart=0.5, share=0.5)
        y = np.full(700, -1)
        known = rng.permutation(700)[:n_labels]
        y[known] = truth[known]
        clf = LMSSC().fit([X], y)
        rows = y < 0
        apart.append(clf.label_distributions_[rows].max(axis=1).mean() - (clf.transduction_ == truth)[rows].mean())
    assert abs(np.mean(apart)) <= 0.06


def test_doubt_leaves_the_likeliest_class_the_likeliest():
    scores = np.tile(np.array([[0.4, 0.6]], dtype=np.float32), (200, 1))
    found = fit_calibration(scores, np.tile([[1, 0], [0, 1], [1, 0]], (67, 1))[:200])
    assert (found(scores).argmax(axis=1) == 1).all()


def answers_of_the_second_class(seeds, n_samples, apart, share, labelled):
    """Of the samples that are answered as the second of two Gaussians: which are right, and how sure they are."""
    right, sure = [], []
    for seed in seeds:
        X, truth, rng = _gaussians(seed, n_samples, apart, share)
        y = np.where(rng.random(n_samples) < labelled, truth, -1)
        clf = LMSSC(max_iter=5).fit([X], y)
        rows = (y < 0) & (clf.transduction_ == 1)
        right.extend(truth[rows] == 1)
        sure.extend(clf.label_distributions_[rows, 1])
    return right, sure


def test_a_rare_class_is_not_answered_where_it_is_seldom_right():
    """One in 100, with 30 labels and more: a third of the answers were right at 72 %."""
    right, sure = answers_of_the_second_class(range(6), 4000, apart=3.0, share=0.01, labelled=0.75)
    assert len(right) > 20
    assert np.mean(right) > 0.6
    assert np.mean(sure) - np.mean(right) < 0.1


def test_a_class_with_an_eighth_of_the_samples_is_answered_no_surer_than_right():
    """Its answers were 60 % right at 81 %, then 53 % at 64 %: an answer of two classes is at least 50 % sure."""
    right, sure = answers_of_the_second_class(range(100, 106), 1500, apart=2.0, share=1 / 8, labelled=0.25)
    assert len(right) > 300
    assert np.mean(right) > 0.6
    assert np.mean(sure) - np.mean(right) < 0.06


def test_one_in_a_thousand_is_no_flood():
    """3 to 6 labels in 6,000: some hundred samples were taken for the rare class, 2 % of them rightly, at 75 %."""
    X, truth, rng = _gaussians(0, 20_000, apart=2.0, share=0.001)
    y = np.where(rng.random(20_000) < 0.3, truth, -1)
    clf = LMSSC(max_iter=5).fit([X], y)
    assert ((y < 0) & (clf.transduction_ == 1)).sum() < 10


def test_samples_that_lack_views_are_calibrated_apart():
    data = make_multiview(1000, n_views=4, n_classes=5, missing=0.3, labelled=1.0, random_state=0)
    y = np.where(np.random.default_rng(0).random(1000) < 0.3, data.target, -1)
    clf = LMSSC().fit(data.views, y)
    lacking = sum(np.isnan(view).all(axis=1).astype(int) for view in data.views)
    right, sure = clf.transduction_ == data.target, clf.label_distributions_.max(axis=1)
    for count in (0, 1, 2):
        rows = (y < 0) & (lacking == count)
        assert right[rows].mean() == pytest.approx(sure[rows].mean(), abs=0.08), count


def test_classes_without_score_and_target_are_counted_and_not_computed(monkeypatch):
    rng = np.random.default_rng(0)
    scores = np.zeros((80, 60))
    codes = rng.integers(60, size=80)
    for row, code in enumerate(codes):
        scores[row, rng.choice(60, 4, replace=False)] = rng.dirichlet(np.ones(4))
        scores[row, code] += rng.random()
    scores[0] = np.eye(60)[(codes[0] + 1) % 60]  # its own class has no score
    targets = np.eye(60)[codes]
    merged = fit_calibration(scores, targets)
    monkeypatch.setattr("lmssc.core.calibration.merge_floor", lambda logs, targets, _: (logs, targets, np.ones(60)))
    whole = fit_calibration(scores, targets)
    assert (merged.temperature, merged.doubt) == pytest.approx((whole.temperature, whole.doubt), rel=1e-4)
    assert merged.doubt > 0
