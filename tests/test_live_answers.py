"""Answers that move at once: equal to solving again at the fixed graph, taken back to the bit; and the engine."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lmssc import LMSSC
from lmssc.core.laplacian import laplacian
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets
from lmssc.datasets import make_multiview
from lmssc.estimators.unlabelled_fit import SampleGraph
from lmssc.studio.engine import Engine
from lmssc.studio.live_answers import LiveAnswers


def random_graph(rng, n, links=4):
    weights = sparse.lil_array((n, n))
    for i in range(n):
        others = rng.choice(np.delete(np.arange(n), i), links, replace=False)
        weights[i, others] = rng.dirichlet(np.ones(links))
    graph = sparse.csr_array(weights)
    return SampleGraph(graph, np.arange(n), np.arange(n), rng.normal(size=(n, 2)))


def solved(graph, classes, labels):
    """The oracle: propagation on the same graph with the same labels."""
    codes = np.full(len(graph.samples), -1)
    for row, label in labels.items():
        codes[row] = classes.index(label)
    return propagate(laplacian(graph.graph.astype(float)), Targets.from_codes(codes, len(classes)), tol=1e-13).scores


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_every_label_gives_what_solving_again_gives(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 30)
    classes = ["a", "b", "c"]
    live = LiveAnswers(graph, classes, {0: "a", 1: "b"})
    labels = {0: "a", 1: "b"}
    for _ in range(12):
        row = int(rng.integers(30))
        label = None if row in labels and len(labels) > 2 and rng.random() < 0.5 else str(rng.choice(classes))
        live.prepare([int(rng.integers(30))])
        live.set_label(row, label)
        labels = {one: name for one, name in {**labels, row: label}.items() if name is not None}
        np.testing.assert_allclose(live.scores, solved(graph, classes, labels), atol=1e-6)


def test_taking_back_restores_every_bit():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 60)
    live = LiveAnswers(graph, ["a", "b"], {0: "a", 1: "b"}, lambda scores, codes: scores**2)
    states = []
    for row in range(2, 22):
        states.append((live.scores.copy(), live.probabilities.copy(), live.labelled.copy(), dict(live.labels)))
        live.prepare([row, row + 1])
        live.set_label(row, "ab"[row % 2])
    for row in reversed(range(2, 22)):
        live.set_label(row, None)
        scores, probabilities, labelled, labels = states.pop()
        assert (live.scores == scores).all()
        assert (live.probabilities == probabilities).all()
        assert (live.labelled == labelled).all()
        assert live.labels == labels


def test_classes_come_up_one_by_one_even_many():
    graph = random_graph(np.random.default_rng(1), 40)
    live = LiveAnswers(graph, [], {})
    names = []
    for row in range(14):
        names.append(f"class {row}")
        live.add_classes(names)
        live.set_label(row, names[-1])
    np.testing.assert_allclose(live.scores, solved(graph, names, dict(enumerate(names))), atol=1e-6)


def test_the_weights_are_the_votes():
    graph = random_graph(np.random.default_rng(2), 40)
    classes = ["a", "b"]
    live = LiveAnswers(graph, classes, {0: "a"})
    for row, label in {5: "b", 7: "a", 9: "b"}.items():
        live.set_label(row, label)
    reasons = dict(live.reasons(20, 4))
    assert sum(reasons.values()) == pytest.approx(1)
    share = sum(weight for row, weight in reasons.items() if live.labels[row] == "a")
    assert share == pytest.approx(live.scores[20, 0])
    assert list(reasons.values()) == sorted(reasons.values(), reverse=True)

    # Of a labelled sample they are the others, as if its own label were not there.
    others = {row: label for row, label in live.labels.items() if row != 0}
    oracle = LiveAnswers(graph, classes, others)
    assert dict(live.reasons(0, 4)) == pytest.approx(dict(oracle.reasons(0, 4)), abs=1e-6)
    np.testing.assert_allclose(live.without_own(0), oracle.of_sample(0), atol=1e-6)


def test_identical_samples_are_one_node():
    graph = random_graph(np.random.default_rng(3), 10)
    copies = SampleGraph(graph.graph, np.r_[np.arange(10), 0], graph.samples, graph.points)
    live = LiveAnswers(copies, ["a", "b"], {1: "b"})
    live.set_label(10, "a")
    assert live.of_sample(0).tolist() == [1, 0]
    live.set_label(0, "b")  # a tie: no label
    assert not live.labelled[0]
    live.set_label(10, None)
    assert live.of_sample(10).tolist() == [0, 1]


# ---- the engine


@pytest.fixture(scope="module")
def data():
    return make_multiview(150, n_views=2, random_state=1)


def engine_of(data, **options):
    return Engine({"one": data.views[0], "two": data.views[1]}, background=False, **options)


def label_some(engine, data, n):
    names = list(engine.classes)
    for _ in range(n):
        row = engine.queue()[0]
        name = str(data.target[row])
        names += [] if name in names else [name]
        engine.prepare(row)
        engine.set_label(row, name, names)


def test_from_zero_labels_two_per_class_give_a_useful_model(digits):
    some = SimpleNamespace(views=[view[:500] for view in digits.views[:2]], target=digits.target[:500])
    engine = engine_of(some)
    engine.start([], {})
    assert engine.facts()["status"] == "none"
    assert engine.guesses(0) == []
    label_some(engine, some, 20)
    assert len(engine.classes) == 10  # the first samples are diverse
    while engine._work(idle=False):
        pass
    shares, names = engine.predictions(range(500))
    assert np.mean(np.array(names)[shares.argmax(axis=1)] == some.target.astype(str)) > 0.85
    facts = engine.facts()
    assert (facts["status"], facts["fits"], facts["labels_in_fit"], facts["up_to_date"]) == ("fitted", 1, 20, True)


@pytest.mark.parametrize("trust", [0.0, 0.6])
def test_after_a_fit_the_page_shows_the_answers_of_the_fit(data, trust):
    engine = engine_of(data, estimator=LMSSC(second_opinion=trust))
    engine.start([], {})
    label_some(engine, data, 12)
    while engine._work(idle=False):
        pass
    y = np.array([engine._live.labels.get(row) for row in range(150)], dtype=object)
    clf = LMSSC(second_opinion=trust).fit({"one": data.views[0], "two": data.views[1]}, y)
    shares, names = engine.predictions(range(150))
    order = [names.index(name) for name in clf.classes_]
    np.testing.assert_allclose(shares[:, order], clf.label_distributions_, atol=1e-6)


def test_with_a_second_opinion_every_label_gives_what_solving_again_gives(data):
    engine = engine_of(data, estimator=LMSSC(second_opinion=0.5))
    engine.start([], {})
    label_some(engine, data, 12)
    while engine._work(idle=False):
        pass
    live = engine._live
    L = live._laplacian  # with the links and the graphs of single views that the fit found
    for row in engine.queue()[:4]:
        live.set_label(row, live.classes[0])
        codes = live._codes
        targets = Targets.from_codes(codes, 3)
        opinion = replace(live.graph.opinion, scores=live._solver.original.opinion[:, :3])
        np.testing.assert_allclose(live.scores, propagate(L, targets, tol=1e-13, opinion=opinion).scores, atol=1e-6)


def test_labels_that_come_during_a_fit_are_not_lost(data, monkeypatch):
    engine = engine_of(data, estimator=LMSSC(second_opinion=0.0))
    engine.start([], {})
    label_some(engine, data, 8)
    original = LMSSC._fit_dataset

    def fit_while_someone_labels(self, *args):
        result = original(self, *args)
        row = engine.queue()[0]
        engine.set_label(row, "new class", [*engine.classes, "new class"])
        monkeypatch.undo()
        return result

    monkeypatch.setattr(LMSSC, "_fit_dataset", fit_while_someone_labels)
    engine._fit()
    assert "new class" in engine._live.labels.values()
    assert len(engine._live.labels) == 9
    assert not engine.facts()["up_to_date"]
    live = engine._live
    np.testing.assert_allclose(
        live.scores,
        solved_with_copies(live),
        atol=1e-6,
    )


def solved_with_copies(live):
    return solved(live.graph, live.classes, {int(live.graph.nodes[row]): name for row, name in live.labels.items()})


def test_a_fit_that_fails_is_told_and_labelling_goes_on(data, monkeypatch):
    engine = engine_of(data)
    engine.start([], {})
    label_some(engine, data, 6)
    monkeypatch.setattr(LMSSC, "_fit_dataset", lambda self, *args: (_ for _ in ()).throw(ValueError("no memory of it")))
    engine.settle()
    assert engine.facts()["error"] == "ValueError: no memory of it"
    label_some(engine, data, 1)
    assert len(engine._live.labels) == 7


def test_undone_labels_leave_nothing_behind(data):
    engine = engine_of(data)
    engine.start([], {})
    label_some(engine, data, 10)
    engine.settle()
    row, names = engine.queue()[0], engine.classes
    before, facts = engine._live.probabilities.copy(), engine.facts()
    engine.set_label(row, names[0], names)
    assert (engine._live.probabilities != before).any()
    engine.set_label(row, None, names)
    assert (engine._live.probabilities == before).all()
    after = engine.facts()
    assert {**after, "up_to_date": None} == {**facts, "up_to_date": None}


def test_a_wrong_label_is_suspected(data):
    engine = engine_of(data)
    truth = data.target.astype(str)
    rows = np.random.default_rng(0).permutation(150)[:40]
    labels = {int(row): truth[row] for row in rows}
    wrong = int(rows[0])
    labels[wrong] = str((int(truth[wrong]) + 1) % 3)
    engine.start(["0", "1", "2"], labels)
    engine.settle()
    assert wrong in engine.suspected()[:3]
    assert engine.guesses(wrong)[0]["label"] == truth[wrong]  # what the others say
    assert engine._suspects[0] == engine._version
    engine.set_label(wrong, truth[wrong], ["0", "1", "2"])
    assert wrong not in engine.suspected()


def test_held_out_labels_and_the_curve(data):
    engine = engine_of(data)
    engine.start([], {})
    label_some(engine, data, 18)
    while engine._work(idle=False):
        pass
    label_some(engine, data, 8)
    engine.settle()
    facts = engine.facts()
    assert facts["hidden"]["labels"] == facts["hidden"]["hidden"] == 26
    assert facts["hidden"]["low"] < facts["hidden"]["accuracy"] <= facts["hidden"]["high"]
    assert facts["curve"][-1] == [26, facts["expected"]]
    assert facts["going_on"]["more"] == 20
    drawn = engine.map()
    assert len(drawn["x"]) == 150
    assert min(drawn["x"]) >= 0
    assert max(drawn["y"]) <= 1000
    assert {name["text"] for name in drawn["names"]} <= {"0", "1", "2"}
    assert "x" not in engine.map(since=drawn["version"])
