"""The accuracy that the defaults reach, in small: a few splits of each data set, with a margin for chance.

The whole tables are in docs/accuracy.md. What is checked here is that no change loses them unseen.
"""

import numpy as np
import pytest

from lmssc import GFHF, LMSSC
from lmssc.datasets import load
from lmssc.evaluation.splits import stratified_split
from lmssc.metrics import score

# Data set, share of labels, splits, least mean accuracy: some points below what 20 splits have.
FLOORS = [
    ("bbc", 0.1, 4, 0.98),
    ("sonar", 0.2, 6, 0.71),
    ("sonar", 0.5, 6, 0.80),
    ("handwritten", 0.1, 1, 0.975),
    ("reuters", 0.1, 1, 0.66),
    ("reuters", 0.3, 1, 0.74),
    ("msrc", 0.05, 4, 0.83),
    ("msrc", 0.1, 4, 0.89),
    ("bbcsport", 0.05, 2, 0.975),
    ("leaves", 0.05, 1, 0.95),
]


@pytest.fixture
def load_or_skip(paper_file):
    """Give the views and class codes of a data set of the paper, or skip the test."""

    def load_one(name):
        paper_file(name)
        data = load(name, download=False)
        return data.views, np.unique(data.target, return_inverse=True)[1]

    return load_one


def fit(estimator, views, target, order, given):
    """The estimator fitted to shuffled rows, its accuracy and calibration error on those without a label."""
    estimator.fit([view[order] for view in views], np.where(given, target[order], -1))
    answers = score(target[order][~given], estimator.label_distributions_[~given], estimator.transduction_[~given])
    return answers["accuracy"], answers["calibration_error"]


@pytest.mark.filterwarnings("ignore:only one labelled sample:UserWarning")  # of BBC's smaller class, at 10 %
@pytest.mark.parametrize(("name", "rate", "repeats", "floor"), FLOORS)
def test_defaults_stay_above_the_floor_and_above_propagation_on_the_concatenation(
    name, rate, repeats, floor, load_or_skip
):
    views, target = load_or_skip(name)
    splits = [stratified_split(target, rate, seed) for seed in range(repeats)]
    ours = np.array([fit(LMSSC(max_iter=5), views, target, *split) for split in splits])
    plain = np.array([fit(GFHF(), views, target, *split) for split in splits])
    assert ours[:, 0].mean() > floor
    assert ours[:, 0].mean() > plain[:, 0].mean() - 0.01
    assert ours[:, 1].mean() < 0.16


def test_two_labels_per_class_on_handwritten_digits(load_or_skip):
    views, target = load_or_skip("handwritten")
    order, given = stratified_split(target, 2 / 200, 10)  # the labels of the threes lie badly
    assert given.sum() == 20
    assert fit(LMSSC(max_iter=5), views, target, order, given)[0] > 0.965


def test_digits(digits):
    """5 % labels; with 10 % see test_calibration.py."""
    order, given = stratified_split(digits.target, 0.05, 0)
    accuracy, error = fit(LMSSC(max_iter=5), digits.views, digits.target, order, given)
    assert accuracy > 0.96
    assert error < 0.05


@pytest.mark.filterwarnings("ignore:only .* labels are found if they are held out")
def test_labels_by_chance_teach_nothing(load_or_skip):
    """A guard against leaks: with labels that have nothing to do with the views, held-out ones cannot be found."""
    views, target = load_or_skip("bbc")
    found = []
    for seed in range(6):
        shuffled = np.random.default_rng(seed).permutation(target)
        order, given = stratified_split(shuffled, 0.3, seed)
        clf = LMSSC(max_iter=5).fit([view[order] for view in views], np.where(given, shuffled[order], -1))
        answers = score(shuffled[order][~given], clf.label_distributions_[~given], clf.transduction_[~given])
        found.append(answers["balanced_accuracy"])
    assert 0.35 < np.mean(found) < 0.65
