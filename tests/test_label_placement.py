"""Labelled samples that are no random sample of the data: a fit says so."""

import warnings

import numpy as np
import pytest

from lmssc import LMSSC
from lmssc.core.label_placement import place_labels
from lmssc.datasets import make_multiview

N_SAMPLES = 600
DATA = make_multiview(N_SAMPLES, random_state=3)
FEATURES = np.hstack(DATA.views)


def said(views, y):
    """What a fit says of the place of the labels, and its answers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = LMSSC(max_iter=1).fit(views, y)
    messages = [str(one.message) for one in caught if "lie among themselves" in str(one.message)]
    return messages, clf.label_distributions_


def labels_of(rows, target=DATA.target):
    """The classes of these rows, and -1 for all others."""
    y = np.full(len(target), -1)
    y[rows] = target[rows]
    return y


def near_copies(rows, seed=0):
    """Rows of the views, with a little noise, and their classes."""
    rng = np.random.default_rng(seed)
    return [v[rows] + 0.05 * v.std() * rng.normal(size=(len(rows), v.shape[1])) for v in DATA.views], DATA.target[rows]


def whole_groups():
    views, target = near_copies(np.repeat(np.arange(60), 10))
    return views, labels_of(np.arange(100), target)


def copies_of_labelled():
    rows = np.concatenate([np.arange(N_SAMPLES), np.repeat(np.arange(20), 4)])
    views, target = near_copies(rows)
    return views, labels_of(np.concatenate([np.arange(20), np.arange(N_SAMPLES, len(rows))]), target)


def small_values():
    along = np.linalg.svd(FEATURES - FEATURES.mean(axis=0), full_matrices=False)[0][:, 0]
    return DATA.views, labels_of(np.concatenate([part[:30] for part in _by_class(along)]))


def clear_cases():
    means = np.array([FEATURES[DATA.target == c].mean(axis=0) for c in range(3)])
    distances = np.square(FEATURES[:, None] - means).sum(axis=2)
    own = distances[np.arange(N_SAMPLES), DATA.target]
    return DATA.views, labels_of(np.concatenate([part[:30] for part in _by_class(own)]))


def first_half_of_a_walk():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(N_SAMPLES, 10)), axis=0)
    target = (walk @ rng.normal(size=(10, 3))).argmax(axis=1)
    return [walk[:, :5], walk[:, 5:]], labels_of(np.arange(N_SAMPLES // 2), target)


def _by_class(values):
    """The rows of each class, those with the smallest values first."""
    return [rows[np.argsort(values[rows])] for rows in (np.flatnonzero(DATA.target == c) for c in range(3))]


@pytest.mark.parametrize("biased", [whole_groups, copies_of_labelled, small_values, clear_cases, first_half_of_a_walk])
def test_labels_in_one_place_are_told(biased):
    views, y = biased()
    messages, distributions = said(views, y)
    assert len(messages) == 1
    confidence = distributions[y < 0].max(axis=1).mean()
    assert f"mean confidence of their answers is {confidence:.2f}" in messages[0]


@pytest.mark.parametrize("n_labels", [20, 60, 300, 590])
@pytest.mark.parametrize("seed", range(3))
def test_a_random_sample_is_not(n_labels, seed):
    assert not said(DATA.views, labels_of(np.random.default_rng(seed).permutation(N_SAMPLES)[:n_labels]))[0]


def test_nor_are_random_rows_of_groups():
    """Groups of near-copies are no reason, if labels are given to samples and not to groups."""
    views, target = near_copies(np.repeat(np.arange(60), 10))
    assert not said(views, labels_of(np.random.default_rng(0).permutation(N_SAMPLES)[:100], target))[0]


def test_the_order_of_samples_changes_nothing():
    views, y = whole_groups()
    order = np.random.default_rng(1).permutation(len(y))
    messages, distributions = said(views, y)
    permuted, again = said([view[order] for view in views], y[order])
    assert messages
    assert permuted == messages
    assert np.array_equal(again, distributions[order])


def test_the_variance_is_that_of_random_labels():
    """The deviations of labels drawn at random have a mean of 0 and a variance of at most 1."""
    rng = np.random.default_rng(0)
    graph = LMSSC(max_iter=1).fit(DATA.views, labels_of(np.arange(60))).graph_
    found = []
    for _ in range(300):
        labelled = np.zeros(N_SAMPLES, dtype=bool)
        for code, number in enumerate([10, 30, 100]):
            labelled[rng.permutation(np.flatnonzero(DATA.target == code))[:number]] = True
        found.append(place_labels(graph, labelled, DATA.target).deviations)
    assert abs(np.mean(found)) < 0.2
    assert 0.7 < np.std(found) < 1.05


def test_a_resumed_fit_says_it_too(tmp_path):
    views, y = clear_cases()

    def stop(progress):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        LMSSC(checkpoint=tmp_path / "fit.ckpt", callback=stop).fit(views, y)
    with pytest.warns(UserWarning, match="lie among themselves"):
        LMSSC(checkpoint=tmp_path / "fit.ckpt").fit(views, y)
