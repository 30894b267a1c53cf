"""Parameters of the reproduction: chosen by the labelled rows, without a look at held-out labels."""

import numpy as np
import pytest

from lmssc import GFHF
from lmssc.data.folds import labelled_folds
from lmssc.data.missing_views import make_raw_views
from lmssc.evaluation import runs
from lmssc.evaluation.runs import Data, Run
from lmssc.evaluation.selection import held_out_accuracy
from lmssc.evaluation.splits import Split
from lmssc.evaluation.store import Store
from made_up import planted_views

NEIGHBORS = [{}, {"n_neighbors": 3}, {"n_neighbors": 40}]


@pytest.fixture(scope="module")
def planted():
    return planted_views()


def test_score_is_that_of_fits_with_the_others(planted):
    views, y, _ = planted
    folds = labelled_folds(make_raw_views(views, None), y, seed=0)
    right = []
    for fold in folds:
        part = y.copy()
        part[fold] = -1
        right += (GFHF().fit(views, part).transduction_[fold] == y[fold]).tolist()
    assert held_out_accuracy(GFHF(), make_raw_views(views, None), y, folds) == pytest.approx(np.mean(right))


def test_held_out_labels_have_no_part_in_the_choice(planted, monkeypatch):
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
