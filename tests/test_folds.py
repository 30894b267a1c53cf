"""Folds of the labelled rows: all are held out, each class keeps a label, and the order of the rows plays no part."""

import numpy as np
import pytest

from lmssc.data.folds import count_folds, labelled_folds
from lmssc.data.missing_views import make_raw_views
from made_up import planted_views


@pytest.fixture(scope="module")
def planted():
    return planted_views()


def test_every_label_is_held_out_once_and_every_class_keeps_one(planted):
    views, y, _ = planted
    y = y.copy()
    y[np.flatnonzero(y == 2)[2:]] = -1  # two labels left
    folds = labelled_folds(make_raw_views(views, None), y, seed=4)
    assert len(folds) == 3
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.flatnonzero(y >= 0))
    for fold in folds:
        left = y.copy()
        left[fold] = -1
        assert set(left) == {-1, 0, 1, 2}


def test_they_depend_on_the_rows_and_not_on_their_order(planted):
    views, y, _ = planted
    shuffle = np.random.default_rng(1).permutation(len(y))
    mixed = {name: view[shuffle] for name, view in reversed(views.items())}
    one = labelled_folds(make_raw_views(views, None), y, seed=0)
    two = labelled_folds(make_raw_views(mixed, None), y[shuffle], seed=0)
    assert [set(fold) for fold in one] == [set(shuffle[fold]) for fold in two]


def test_the_seed_decides(planted):
    views, y, _ = planted
    one, two = ([set(f) for f in labelled_folds(make_raw_views(views, None), y, seed)] for seed in (0, 1))
    assert one != two


def test_numbers_of_folds():
    assert count_folds(np.repeat([0, 1, -1], [9, 3, 5])) == 3
    assert count_folds(np.repeat([0, 1, -1], [9, 1, 5])) == 3
    assert count_folds(np.repeat([0, 1, -1], [2, 2, 5])) == 2
    assert count_folds(np.repeat([0, 1, -1], [1, 1, 5])) == 0


def test_the_only_label_of_a_class_is_never_held_out(planted):
    views, y, _ = planted
    y = y.copy()
    only, *others = np.flatnonzero(y == 1)
    y[others] = -1
    held = np.concatenate(labelled_folds(make_raw_views(views, None), y, seed=0))
    assert set(held) == set(np.flatnonzero(y >= 0)) - {only}
