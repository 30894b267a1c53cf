"""The warm start: how many rounds it takes, and that none is stopped too early."""

import numpy as np

from lmssc.core import warm_start as module
from lmssc.core.graph import learn_graph
from lmssc.core.label_regression import LabelRegressor
from lmssc.core.targets import Targets
from lmssc.core.warm_start import MAX_ROUNDS, warm_start


def settled(share):
    """The first rounds on two classes that overlap, some of them labelled, and the number of graphs learned."""
    rng = np.random.default_rng(0)
    target = np.arange(400) % 2
    places = rng.normal(size=(400, 3)) + 1.2 * target[:, None]
    codes = np.where(rng.random(400) < share, target, -1)
    learned = []

    def learn(points):
        learned.append(points)
        return learn_graph(points, 10, 1.0)[0]

    result = warm_start(places, learn(places), Targets.from_codes(codes, 2), 1.0, learn)
    return result, learned[1:]


def test_rounds_end_when_what_is_expected_rests(monkeypatch):
    short, graphs = settled(0.9)
    assert len(graphs) < MAX_ROUNDS
    np.testing.assert_array_equal(graphs[-1][:, 3:], short.expected)  # the graph and P belong together
    monkeypatch.setattr(module, "MIN_CHANGE", 0.0)
    long, graphs = settled(0.9)
    assert len(graphs) == MAX_ROUNDS
    assert np.linalg.norm(long.scores - short.scores) < 0.02 * np.linalg.norm(long.scores)


def test_one_round_there_is_whatever_rests(monkeypatch):
    monkeypatch.setattr(module, "MIN_CHANGE", np.inf)
    result, graphs = settled(0.05)
    assert len(graphs) == 1
    assert result.regressor is not None


def test_with_many_classes_the_expected_scores_have_fewer_columns_and_the_same_distances(monkeypatch):
    """Forty classes on five coordinates: the graph, and so the scores, are those of all forty columns."""
    monkeypatch.setattr("lmssc.core.nystroem.MAX_LANDMARKS", 10)
    rng = np.random.default_rng(0)
    codes = np.arange(200) % 40
    points = rng.normal(size=(40, 5))[codes] + 0.3 * rng.normal(size=(200, 5))
    targets = Targets.from_codes(np.where(np.arange(200) < 80, codes, -1), 40)
    graph = learn_graph(points, 5, 1.0)[0]

    def start():
        return warm_start(points, graph, targets, 1.0, lambda coordinates: learn_graph(coordinates, 5, 1.0)[0])

    short = start()
    monkeypatch.setattr(LabelRegressor, "is_wide", False)
    long = start()
    assert short.expected.shape[1] <= 15 < long.expected.shape[1] == 40
    np.testing.assert_allclose(short.scores, long.scores, atol=1e-9)
    np.testing.assert_allclose(short.regressor(points), short.expected, atol=1e-9)
