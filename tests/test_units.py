"""Units and the last digit of the data change no answer, although labels are held out in random folds."""

import numpy as np
import pytest

from lmssc import LMSSC
from lmssc.core.drawn_order import draw_numbers, project_views
from lmssc.core.fit_config import FitConfig
from lmssc.core.latent import find_basis
from lmssc.core.parts.executor import InMemoryExecutor
from lmssc.core.parts.parted_fit import fit_in_parts
from lmssc.core.parts.partition import part_bounds
from lmssc.core.targets import Targets
from lmssc.data.views import Views

# What rounding leaves of a double, after some thousand sums and solvers that take the same steps.
ROUNDING = 1e-10


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
    np.testing.assert_allclose(after.label_distributions_, before.label_distributions_, atol=ROUNDING)
    halfway = [view[:50] + 0.3 for view in views]
    scaled = [view[:50] + 0.3 * factor for view, factor in zip(changed, (3.7, 1 / 2.54), strict=True)]
    new = scaled if change == "units" else halfway
    np.testing.assert_allclose(after.predict_proba(new), before.predict_proba(halfway), atol=ROUNDING)


def test_units_change_no_answer_with_next_to_no_labels():
    views, labels = overlapping(3, n_labels=8)
    before, after = (LMSSC().fit(data, labels) for data in (views, CHANGES["units"](views)))
    np.testing.assert_allclose(after.label_distributions_, before.label_distributions_, atol=ROUNDING)


def test_the_draw_does_not_follow_the_order_of_samples_and_views():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(30, 4)), rng.normal(size=(30, 7))
    numbers = draw_numbers(project_views(Views.from_arrays([one, two])))
    np.testing.assert_array_equal(draw_numbers(project_views(Views.from_arrays([two[::-1], one[::-1]]))), numbers[::-1])
    assert np.unique(numbers).size == 30


def ask(clf, new, n_samples):
    """Answers to all questions: probabilities, p-values and doubts of labels, and rows or sets."""
    suspects = clf.suspect_labels()
    wrong = np.zeros(n_samples)
    wrong[suspects.rows] = suspects.probability
    smooth = [clf.label_distributions_, clf.predict_proba(new), clf.latent_]
    ranked = [clf.predict_set(), clf.predict_set(new, coverage=0.8), clf.most_informative(5)]
    return smooth, [wrong, clf.novelty_, clf.novelty(new)], ranked


@pytest.mark.parametrize("n_samples", [600, 3500, 12_000])
def test_units_and_rounding_change_no_answer_to_any_question(n_samples):
    views, labels = overlapping(0, n_samples, n_labels=80)
    noise = np.random.default_rng(1)
    shifts = [0.3 * noise.normal(size=view.shape) for view in views]
    answers = []
    for change in (list, *CHANGES.values()):
        changed = change(views)
        new = [view + shift for view, shift in zip(changed, change(shifts), strict=True)]
        answers.append(ask(LMSSC().fit(changed, labels), new, n_samples))
    (smooth, judged, ranked), *others = answers
    for other_smooth, other_judged, other_ranked in others:
        for one, other in zip(smooth, other_smooth, strict=True):
            np.testing.assert_allclose(other, one, atol=ROUNDING)
        for one, other in zip(judged, other_judged, strict=True):
            # From 10,000 samples on the graph of these questions is in single precision.
            np.testing.assert_allclose(other, one, atol=1e-6 if n_samples >= 10_000 else ROUNDING)
        for one, other in zip(ranked, other_ranked, strict=True):
            np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("loadings", ["orthonormal", "nonnegative"])
def test_units_change_no_answer_if_samples_lack_views_or_labels_are_doubted(loadings):
    views, labels = overlapping(1, 3200, n_labels=60)
    views[0][::7], views[1][3::7] = np.nan, np.nan
    before, after = (
        LMSSC(loadings=loadings, label_noise="auto").fit(data, labels) for data in (views, CHANGES["units"](views))
    )
    np.testing.assert_allclose(after.label_distributions_, before.label_distributions_, atol=ROUNDING)
    np.testing.assert_array_equal(after.predict_set(), before.predict_set())


class Parts:
    """Four parts in memory."""

    def maker(self, views, config, n_classes):
        return lambda n_components: InMemoryExecutor(part_bounds(views.n_samples, 4))


@pytest.mark.parametrize("n_samples", [3500, 12_000])
def test_a_fit_in_parts_does_not_follow_the_order_of_hashes(n_samples):
    views, labels = overlapping(0, n_samples, n_labels=80)
    scaled = [(view - view.mean(0)) / view.std(0) / np.sqrt(2 * view.shape[1]) for view in views]
    order = np.random.default_rng(0).permutation(n_samples)
    config = FitConfig(n_neighbors=10, n_components=8)
    found = [
        fit_in_parts(
            Views.from_arrays([view[rows] for view in scaled]), Targets.from_codes(labels[rows], 4), config, Parts()
        )
        for rows in (np.arange(n_samples), order)
    ]
    np.testing.assert_allclose(found[1].scores, found[0].scores[order], atol=ROUNDING)
    np.testing.assert_allclose(found[1].latent, found[0].latent[order], atol=ROUNDING)
    assert found[1].calibration.overall.temperature == pytest.approx(found[0].calibration.overall.temperature)


def test_rounding_does_not_choose_a_basis():
    loadings = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 6)))[0]
    for basis in (find_basis([loadings]), find_basis([np.nextafter(loadings, 1)])):
        np.testing.assert_array_equal(basis.inner, np.eye(6))
