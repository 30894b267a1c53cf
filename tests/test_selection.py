"""Parameters chosen by the labelled rows: the right ones, whatever the order, without a look at hidden labels."""

import numpy as np
import pytest

from lmssc import GFHF, LMSSC, compare
from lmssc.datasets import make_multiview
from lmssc.experiments import runs
from lmssc.experiments.runs import Data, Run
from lmssc.experiments.selection import TransductiveSearch, count_folds, held_out_accuracy, labelled_folds
from lmssc.experiments.splits import Split
from lmssc.experiments.store import Store
from lmssc.inputs import make_raw_views

NEIGHBORS = [{}, {"n_neighbors": 3}, {"n_neighbors": 40}]


@pytest.fixture(scope="module")
def planted():
    """Two views, of which only "signal" knows the classes; a fifth of the labels is given."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat([0, 1, 2], 40))
    views = {
        "noise": rng.normal(size=(120, 4)),
        "signal": rng.normal(size=(120, 2)) * 0.4 + 3 * np.eye(3)[truth][:, :2],
    }
    given = np.zeros(120, dtype=bool)
    for code in range(3):
        given[np.flatnonzero(truth == code)[:8]] = True
    return views, np.where(given, truth, -1), truth


class TestFolds:
    def test_every_label_is_held_out_once_and_every_class_keeps_one(self, planted):
        views, y, _ = planted
        y = y.copy()
        y[np.flatnonzero(y == 2)[2:]] = -1  # two labels left
        folds = labelled_folds(make_raw_views(views, None), y, seed=4)
        assert len(folds) == 2
        np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.flatnonzero(y >= 0))
        for fold in folds:
            left = y.copy()
            left[fold] = -1
            assert set(left) == {-1, 0, 1, 2}

    def test_they_depend_on_the_rows_and_not_on_their_order(self, planted):
        views, y, _ = planted
        shuffle = np.random.default_rng(1).permutation(len(y))
        mixed = {name: view[shuffle] for name, view in reversed(views.items())}
        one = labelled_folds(make_raw_views(views, None), y, seed=0)
        two = labelled_folds(make_raw_views(mixed, None), y[shuffle], seed=0)
        assert [set(fold) for fold in one] == [set(shuffle[fold]) for fold in two]

    def test_the_seed_decides(self, planted):
        views, y, _ = planted
        one, two = ([set(f) for f in labelled_folds(make_raw_views(views, None), y, seed)] for seed in (0, 1))
        assert one != two

    def test_numbers_of_folds(self):
        assert count_folds(np.repeat([0, 1, -1], [9, 3, 5])) == 3
        assert count_folds(np.repeat([0, 1, -1], [9, 2, 5])) == 2
        assert count_folds(np.repeat([0, 1, -1], [9, 1, 5])) == 0

    def test_score_is_that_of_fits_with_the_others(self, planted):
        views, y, _ = planted
        folds = labelled_folds(make_raw_views(views, None), y, seed=0)
        right = []
        for fold in folds:
            part = y.copy()
            part[fold] = -1
            right += (GFHF().fit(views, part).transduction_[fold] == y[fold]).tolist()
        assert held_out_accuracy(GFHF(), make_raw_views(views, None), y, folds) == pytest.approx(np.mean(right))


class TestSearch:
    def test_finds_the_planted_setting(self, planted):
        views, y, truth = planted
        search = TransductiveSearch(GFHF(), [{"view": "noise"}, {"view": "signal"}]).fit(views, y)
        assert search.best_params_ == {"view": "signal"}
        assert search.held_out_accuracies_[1] > 0.8 > 0.6 > search.held_out_accuracies_[0]
        alone = GFHF(view="signal").fit(views, y)
        np.testing.assert_allclose(search.label_distributions_, alone.label_distributions_)
        np.testing.assert_array_equal(search.transduction_, alone.transduction_)
        new = {name: view + 1e-3 for name, view in views.items()}
        np.testing.assert_allclose(search.predict_proba(new), alone.predict_proba(new))
        assert (search.transduction_ == truth).mean() > 0.9

    def test_views_by_number_are_those_of_the_user(self, planted):
        views, y, _ = planted
        for order in (["noise", "signal"], ["signal", "noise"]):
            search = TransductiveSearch(GFHF(), [{"view": v} for v in (0, 1)]).fit([views[name] for name in order], y)
            assert search.best_params_ == {"view": order.index("signal")}

    def test_a_tie_keeps_the_first(self, planted):
        views, y, _ = planted
        search = TransductiveSearch(GFHF(view="signal"), [{"width": 2.0}, {"width": 1.0}]).fit(views, y)
        assert len(set(search.held_out_accuracies_)) == 1  # the adaptive graph has no width
        assert search.best_params_ == {"width": 2.0}

    def test_order_of_rows_and_views_does_not_matter(self, planted):
        views, y, _ = planted
        shuffle = np.random.default_rng(3).permutation(len(y))
        one = TransductiveSearch(GFHF(), NEIGHBORS).fit(views, y)
        two = TransductiveSearch(GFHF(), NEIGHBORS).fit({n: v[shuffle] for n, v in reversed(views.items())}, y[shuffle])
        assert one.held_out_accuracies_ == two.held_out_accuracies_
        np.testing.assert_array_equal(one.label_distributions_[shuffle], two.label_distributions_)

    def test_one_label_in_a_class_keeps_the_first_setting(self, planted):
        views, y, _ = planted
        y = y.copy()
        y[np.flatnonzero(y == 1)[1:]] = -1
        search = TransductiveSearch(GFHF(), [{"n_neighbors": 7}, {"view": "signal"}]).fit(views, y)
        assert search.best_params_ == {"n_neighbors": 7}
        assert search.held_out_accuracies_ == []

    def test_names_as_labels_and_missing_views(self):
        data = make_multiview(120, missing=0.2, labelled=0.3, random_state=0)
        names = np.array(["a", "b", "c"], dtype=object)[data.y]
        names[data.y == -1] = None
        search = TransductiveSearch(LMSSC(max_iter=2), [{}, {"n_neighbors": 20}]).fit(data.views, names)
        assert set(search.transduction_) == {"a", "b", "c"}
        assert (search.transduction_ == np.array(["a", "b", "c"])[data.target]).mean() > 0.7

    def test_can_be_compared(self):
        data = make_multiview(100, random_state=0)
        result = compare(data.views, data.target, {"cv": TransductiveSearch(GFHF(), NEIGHBORS)}, rates=[0.3], repeats=1)
        assert result.records[0]["error"] == ""
        assert result.records[0]["accuracy"] > 0.5

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"settings": []}, "settings must be a list of at least one dict"),
            ({"settings": [{"colour": 1}]}, "colour"),
            ({"n_splits": 1}, "n_splits must be an integer of at least 2"),
        ],
    )
    def test_bad_arguments(self, planted, change, message):
        views, y, _ = planted
        with pytest.raises(ValueError, match=message):
            TransductiveSearch(**{"estimator": GFHF(), "settings": NEIGHBORS, **change}).fit(views, y)


def test_hidden_labels_have_no_part_in_the_choice(planted, monkeypatch):
    """The same rows are labelled, and all other true labels are others: nothing that is chosen by may change."""
    views, y, truth = planted
    false = np.where(y >= 0, truth, (truth + 1) % 3)
    monkeypatch.setattr(runs, "stratified_split", lambda *_: Split(np.arange(len(y)), y >= 0))
    scores = []
    for codes in (truth, false):
        store = Store(None)
        data = Data.read(views, codes)
        wanted = [Run(data, "GFHF", GFHF(**setting), 0.2, 0, 0, held_out=True) for setting in NEIGHBORS]
        hidden = Run(data, "GFHF", GFHF(), 0.2, 0, 0)
        runs.do_runs([*wanted, hidden], store)
        scores.append([store.read(run.key)["accuracy"] for run in wanted])
        scores[-1].append(store.read(hidden.key)["accuracy"])
    assert scores[0][:-1] == scores[1][:-1]
    assert scores[0][-1] > 0.8 > 0.2 > scores[1][-1]  # while the test accuracy does see them
