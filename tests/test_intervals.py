"""Verdicts on confidence and accuracy with few labels, at the boundaries of all three outcomes."""

import numpy as np
import pytest
from scipy.stats import binomtest

from lmssc.metrics import expected_calibration_error
from lmssc.model_selection.intervals import (
    MAX_HALF_WIDTH,
    gap_by_chance,
    judge_change,
    judge_confidence,
    labels_that_tell,
    wilson,
)
from lmssc.report.held_out_labels import say_confidence


@pytest.mark.parametrize("n", [1, 2, 7, 44, 1000])
def test_intervals_are_those_of_scipy(n):
    for right in {0, 1, n // 2, n}:
        truth = binomtest(right, n).proportion_ci(method="wilson")
        assert wilson(right / n, n) == pytest.approx((truth.low, truth.high), abs=1e-12)


def test_all_right_or_all_wrong_reaches_the_end_exactly():
    for n in range(1, 300):
        assert wilson(1.0, n)[1] == 1
        assert wilson(0.0, n)[0] == 0


@pytest.mark.parametrize("rate", [0.0, 0.03, 0.2, 0.5, 0.568, 0.9, 0.99, 1.0])
def test_labels_that_tell_is_the_first_number_with_an_interval_of_five_points(rate):
    enough = labels_that_tell(rate)
    halves = {n: (wilson(rate, n)[1] - wilson(rate, n)[0]) / 2 for n in range(1, 500)}
    assert enough == min(n for n, half in halves.items() if half <= MAX_HALF_WIDTH)


@pytest.mark.parametrize(("rate", "n"), [(0.568, 44), (0.568, 1000), (0.9, 30), (0.5, 2)])
def test_a_claim_at_the_end_of_the_interval_is_inside_and_one_beyond_is_not(rate, n):
    low, high = wilson(rate, n)
    inside = "fits" if n >= labels_that_tell(rate) else "too few"
    assert judge_confidence(low, rate, n) == judge_confidence(high, rate, n) == inside
    assert judge_confidence(np.nextafter(low, 0), rate, n) == "too modest"
    assert judge_confidence(np.nextafter(high, 1), rate, n) == "too sure"


@pytest.mark.parametrize("rate", [0.5, 0.9, 1.0])
def test_one_label_makes_the_difference_between_fits_and_too_few(rate):
    enough = labels_that_tell(rate)
    assert judge_confidence(rate, rate, enough) == "fits"
    assert judge_confidence(rate, rate, enough - 1) == "too few"


def test_certain_and_always_right_is_never_too_sure():
    assert {judge_confidence(np.nextafter(1.0, 2), 1.0, n) for n in range(1, 200)} == {"too few", "fits"}


def test_the_report_no_longer_says_that_anything_fits_with_few_labels():
    """The case that was reported: claimed 42.8 %, right for 56.8 %, "That fits."."""
    text = say_confidence(0.428, 25 / 44, 44)
    assert "fits:" in text
    assert "44 held-out labels are too few to tell" in text
    assert f"About {labels_that_tell(25 / 44)} labels would tell" in text
    assert "That fits" not in text
    assert say_confidence(0.9, 0.5, 1).startswith("1 held-out label is too few")


@pytest.mark.parametrize(
    ("claimed", "rate", "n", "start"),
    [
        (0.9, 0.9, 141, "That fits"),
        (0.9, 0.9, 140, "140 held-out labels are too few to tell"),
        (0.99, 0.9, 140, "It is too sure"),
        (0.8, 0.9, 140, "It is too modest"),
    ],
)
def test_three_outcomes_of_the_confidence_in_words(claimed, rate, n, start):
    assert say_confidence(claimed, rate, n).startswith(start)


def changed(n, lost, won):
    before = np.r_[np.ones(lost, bool), np.zeros(won, bool), np.ones(n - lost - won, bool)]
    after = np.r_[np.zeros(lost, bool), np.ones(won, bool), np.ones(n - lost - won, bool)]
    return before, after


@pytest.mark.parametrize(
    ("n", "lost", "won", "verdict"),
    [
        (2, 2, 0, "too few"),  # was "worse without it": all of two labels
        (5, 5, 0, "too few"),  # p = 0.0625
        (6, 6, 0, "worse"),  # p = 0.031
        (100, 0, 6, "better"),
        (100, 6, 1, "too few"),
        (37, 0, 0, "too few"),
        (38, 0, 0, "same"),
        (1000, 20, 20, "same"),
    ],
)
def test_outcomes_of_leaving_out_a_view(n, lost, won, verdict):
    assert judge_change(*changed(n, lost, won))[0] == verdict


@pytest.mark.parametrize(("n", "lost", "won"), [(20, 0, 0), (40, 2, 1), (40, 2, 2), (10, 5, 0), (30, 15, 15)])
def test_the_number_of_labels_that_would_tell_a_change_does(n, lost, won):
    verdict, enough = judge_change(*changed(n, lost, won))
    assert verdict == "too few"
    times = -(-enough // n)  # as large a share of changes among enough labels
    assert judge_change(*changed(times * n, times * lost, times * won))[0] != "too few"
    fewer = (enough - 1) // n
    assert fewer == 0 or judge_change(*changed(fewer * n, fewer * lost, fewer * won))[0] != "same"


def test_a_gap_by_chance_is_what_deserved_confidence_has():
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.4, 1, 60)
    errors = [expected_calibration_error(rng.uniform(size=60) < confidence, confidence, 10) for _ in range(2000)]
    assert np.mean(np.array(errors) <= gap_by_chance(confidence, 10)) == pytest.approx(0.95, abs=0.02)
