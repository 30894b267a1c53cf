"""Units and the last digit of the data change no answer, although labels are held out in random folds."""

import numpy as np
import pytest

from lmssc import LMSSC
from lmssc.core.drawn_order import draw_numbers, project_views
from lmssc.data.views import Views


def overlapping(seed, n=240, n_labels=24):
    """Two views of four classes that overlap, and few labels, so that another deal of folds changes answers."""
    rng = np.random.default_rng(seed)
    target = rng.integers(4, size=n)
    centres = rng.normal(size=(4, 5))
    views = [centres[target] @ rng.normal(size=(5, d)) + 2.2 * rng.normal(size=(n, d)) for d in (12, 30)]
    labels = np.full(n, -1)
    for code in range(4):
        rows = np.flatnonzero(target == code)[: n_labels // 4]
        labels[rows] = code
    return views, labels


def last_digit(view, seed):
    """The view with the last bit of a third of its numbers changed."""
    chosen = np.random.default_rng(seed).random(view.shape) < 1 / 3
    return np.where(chosen, np.nextafter(view, np.inf), view)


CHANGES = {
    "last digit": lambda views: [last_digit(view, 0) for view in views],
    "units": lambda views: [3.7 * views[0], views[1] / 2.54],
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("change", CHANGES)
def test_units_and_rounding_change_no_answer(seed, change):
    views, labels = overlapping(seed)
    changed = CHANGES[change](views)
    before, after = LMSSC().fit(views, labels), LMSSC().fit(changed, labels)
    np.testing.assert_allclose(after.label_distributions_, before.label_distributions_, atol=1e-5)
    halfway = [view[:50] + 0.3 for view in views]
    scaled = [view[:50] + 0.3 * factor for view, factor in zip(changed, (3.7, 1 / 2.54), strict=True)]
    new = scaled if change == "units" else halfway
    np.testing.assert_allclose(after.predict_proba(new), before.predict_proba(halfway), atol=1e-5)


def test_units_change_no_answer_with_next_to_no_labels():
    views, labels = overlapping(3, n_labels=8)
    before, after = (LMSSC().fit(data, labels) for data in (views, CHANGES["units"](views)))
    np.testing.assert_allclose(after.label_distributions_, before.label_distributions_, atol=1e-5)


def test_the_draw_does_not_follow_the_order_of_samples_and_views():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(30, 4)), rng.normal(size=(30, 7))
    numbers = draw_numbers(project_views(Views.from_arrays([one, two])))
    np.testing.assert_array_equal(draw_numbers(project_views(Views.from_arrays([two[::-1], one[::-1]]))), numbers[::-1])
    assert np.unique(numbers).size == 30
