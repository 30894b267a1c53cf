"""Samples that nothing links to a label are unreached, with a reason; so is a class with one label."""

import numpy as np
import pytest

from lmssc import AMGL, GFHF, LMSSC, MLAN
from lmssc.datasets import make_multiview

HALF = np.arange(300) % 2 == 0
WEAK = r"\d+ samples have only views that few labelled samples have \(\d for some of them\)"


@pytest.fixture(scope="module")
def data():
    return make_multiview(300, labelled=0.2, random_state=0)


@pytest.mark.parametrize("method", [LMSSC, GFHF, AMGL, MLAN], ids=lambda method: method.__name__)
def test_views_that_no_sample_links_to_a_label(method, data):
    views = data.views[:2]
    y = np.where(HALF, data.y, -1)
    with pytest.warns(UserWarning, match=r"150 samples have only views \(view1\) that no labelled sample has"):
        clf = method().fit(views, y, present=[HALF, ~HALF])
    np.testing.assert_array_equal(clf.unreached_, np.flatnonzero(~HALF))
    frequencies = np.bincount(y[y >= 0]) / (y >= 0).sum()
    np.testing.assert_allclose(clf.label_distributions_[~HALF], np.tile(frequencies, (150, 1)), atol=1e-6)
    new = [view[:6] + 0.01 for view in views]
    answers = clf.predict_proba(new, present=[np.arange(6) < 3, np.arange(6) >= 3])
    np.testing.assert_allclose(answers[3:], np.tile(frequencies, (3, 1)), atol=1e-6)


def test_samples_that_cannot_be_compared_do_not_disturb_those_that_can(data):
    """The half with labels is answered as if the other half were not there."""
    views, y = data.views[:2], np.where(HALF, data.y, -1)
    with pytest.warns(UserWarning, match="no sample has both"):
        both = LMSSC().fit(views, y, present=[HALF, ~HALF])
    alone = LMSSC().fit([views[0][HALF]], y[HALF])
    hidden = y[HALF] < 0
    right = [
        (answers == data.target[HALF])[hidden].mean() for answers in (both.transduction_[HALF], alone.transduction_)
    ]
    assert right[0] > right[1] - 0.05
    assert both.graph_[HALF][:, ~HALF].nnz == both.graph_[~HALF][:, HALF].nnz == 0


@pytest.mark.filterwarnings("ignore:.*without a label")
def test_one_sample_with_both_views_links_them(data):
    first, second = HALF.copy(), ~HALF
    first[1] = True
    y = np.where(HALF, data.y, -1)
    with pytest.warns(UserWarning, match=WEAK):
        clf = LMSSC().fit(data.views[:2], y, present=[first, second])
    assert len(clf.unreached_) < 150


@pytest.mark.parametrize("n_both", [1, 10])
def test_few_labels_in_the_views_of_some_samples_are_told_of(n_both, data):
    """Samples with both views, one of them labelled: the others were .44 right at .99, without a word."""
    first, second = HALF.copy(), ~HALF
    second[np.flatnonzero(HALF & (data.y < 0))[1:n_both]] = True
    second[np.flatnonzero(HALF & (data.y >= 0))[0]] = True
    with pytest.warns(UserWarning, match=WEAK):
        LMSSC(max_iter=1, calibrate=False).fit(data.views[:2], np.where(HALF, data.y, -1), present=[first, second])


def test_no_word_if_the_labels_of_a_view_are_enough(data):
    known = data.y >= 0
    LMSSC(max_iter=1, calibrate=False).fit(data.views[:2], data.y, present=[HALF | known, ~HALF | known])


def test_a_class_with_one_label_is_named(data):
    y = np.array(["cat", "dog", "owl", "none"])[data.y].astype(object)
    y[data.y == -1] = None
    owls = np.flatnonzero(y == "owl")
    y[owls[1:]] = None
    with pytest.warns(UserWarning, match="only one labelled sample for 'owl'"):
        LMSSC().fit(data.views, y)


def test_no_word_where_every_class_has_few_labels(data):
    y = np.full(300, -1)
    for code in range(3):
        y[np.flatnonzero(data.target == code)[0]] = code
    LMSSC().fit(data.views, y)  # a warning would be an error
