"""Graphs as views: input, weights, new samples, and what must not change."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import lmssc
from lmssc import LMSSC, LMSSCCV, MLAN, Graph
from lmssc.data.dataset import validate
from lmssc.data.link_reading import looks_like_links
from lmssc.model_selection.refit import hold_out

pytestmark = pytest.mark.usefixtures("uncalibrated")


def papers(n_samples=120, n_classes=3, noise=1.5, p_link=0.1, p_other=0.005, seed=0):
    """Features, links mostly within classes, and the classes."""
    rng = np.random.default_rng(seed)
    topic = rng.permutation(np.arange(n_samples) % n_classes)
    text = noise * rng.normal(size=(n_samples, 8)) + 1.2 * np.eye(n_classes, 8)[topic]
    chance = np.where(topic[:, None] == topic, p_link, p_other)
    cites = np.triu(rng.random((n_samples, n_samples)) < chance, k=1).astype(float)
    return text, sparse.csr_array(cites), topic


def some_labels(topic, share=5):
    return np.where(np.arange(len(topic)) % share == 0, topic, -1)


def accuracy(clf, topic, y):
    return (clf.transduction_ == topic)[y < 0].mean()


@pytest.fixture(scope="module")
def fitted():
    text, cites, topic = papers()
    y = some_labels(topic)
    return text, cites, topic, y, LMSSC().fit({"text": text, "cites": Graph(cites)}, y)


def test_links_help(fitted):
    text, _, topic, y, clf = fitted
    assert clf.link_weights_["cites"] > 0
    assert clf.view_names_ == ["text"]
    assert clf.graph_names_ == ["cites"]
    assert accuracy(clf, topic, y) > accuracy(LMSSC().fit({"text": text}, y), topic, y) + 0.1
    assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[:-1]).all()


@pytest.mark.parametrize("kind", ["dense", "bool", "list", "coo", "frame", "directed", "loops", "unit"])
def test_every_kind_of_graph_gives_the_same_answer(fitted, kind):
    text, cites, _, y, clf = fitted
    dense = cites.toarray()
    ids = [f"p{i}" for i in range(len(y))]
    A = {
        "dense": dense,
        "bool": dense > 0,
        "list": dense.tolist(),
        "coo": cites.tocoo(),
        "frame": pd.DataFrame(dense, index=ids, columns=ids)[ids[::-1]],  # columns in another order
        "directed": dense.T,
        "loops": dense + np.eye(len(y)),
        "unit": 1000 * dense,
    }[kind]
    again = LMSSC().fit({"text": text, "cites": Graph(A)}, y)
    np.testing.assert_allclose(again.label_distributions_, clf.label_distributions_, atol=1e-10)


def test_order_of_samples_changes_no_bit(fitted):
    text, cites, _, y, clf = fitted
    order = np.random.default_rng(1).permutation(len(y))
    views = {"cites": Graph(cites[order][:, order]), "text": text[order]}
    again = LMSSC().fit(views, y[order])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order])
    assert again.link_weights_ == clf.link_weights_


def test_order_of_samples_with_the_same_features_changes_no_bit():
    text, cites, topic = papers(90)
    text = np.round(text[:, :3] / 3)  # many rows are the same, with other links
    y = some_labels(topic, 3)
    views = {"text": text, "cites": Graph(cites)}
    clf = LMSSC().fit(views, y)
    order = np.random.default_rng(1).permutation(len(y))
    again = LMSSC().fit({"text": text[order], "cites": Graph(cites[order][:, order])}, y[order])
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_[order])
    assert len(clf._order.samples) > len(np.unique(text, axis=0))


def test_order_of_graphs_changes_no_bit(fitted):
    text, cites, _, y, _ = fitted
    both = {"cites": Graph(cites), "text": text, "other": Graph(cites @ cites)}
    one = LMSSC().fit(both, y)
    two = LMSSC().fit({name: both[name] for name in ("other", "cites", "text")}, y)
    np.testing.assert_array_equal(one.label_distributions_, two.label_distributions_)
    assert one.link_weights_ == {name: two.link_weights_[name] for name in ("cites", "other")}


@pytest.mark.parametrize("loops", [False, True])
def test_repeating_every_sample_changes_nothing(fitted, loops):
    text, cites, _, y, clf = fitted
    if loops:  # copies are then linked to each other
        cites = cites + sparse.eye_array(len(y))
    views = {"text": np.vstack([text, text]), "cites": Graph(sparse.kron(np.ones((2, 2)), cites, format="csr"))}
    again = LMSSC().fit(views, np.append(y, y))
    np.testing.assert_array_equal(again.label_distributions_[: len(y)], clf.label_distributions_)
    np.testing.assert_array_equal(again.label_distributions_[len(y) :], clf.label_distributions_)


REASONS = {
    "noise": "links of 'cites' are not used: linked samples are no more alike",
    "shuffled": "links of 'cites' are not used: linked samples are no more alike",
    "complete": "links of 'cites' are not used: most samples are linked to most others",
    "empty": "links of 'cites' are not used: there are none",
}


@pytest.mark.parametrize("bad", REASONS)
def test_links_that_say_nothing_cost_nothing(fitted, bad):
    text, cites, _, y, _ = fitted
    rng = np.random.default_rng(5)
    n = len(y)
    order = rng.permutation(n)
    A = {
        "noise": (rng.random((n, n)) < 0.05).astype(float),
        "shuffled": cites[order][:, order],
        "complete": np.ones((n, n)),
        "empty": np.zeros((n, n)),
    }[bad]
    with pytest.warns(UserWarning, match=REASONS[bad]):
        clf = LMSSC().fit({"text": text, "cites": Graph(A)}, y)
    assert clf.link_weights_ == {"cites": 0.0}
    np.testing.assert_array_equal(clf.label_distributions_, LMSSC().fit({"text": text}, y).label_distributions_)


def test_links_that_harm_are_not_used():
    """Links within sites make neighbours of samples of one site, whose classes differ."""
    rng = np.random.default_rng(0)
    target, site = rng.integers(0, 2, 200), rng.integers(0, 4, 200)
    X = np.hstack([3 * np.eye(2)[target] + 0.6 * rng.normal(size=(200, 2)), 2 * np.eye(4)[site]])
    X[:, 2:] += 0.5 * rng.normal(size=(200, 4))
    A = ((rng.random((200, 200)) < 0.3) & (site[:, None] == site)).astype(float)
    y = np.where(rng.permutation(200) < 60, target, -1)
    with pytest.warns(UserWarning, match="links of 'site' are not used: held-out labels are predicted better without"):
        clf = LMSSC(max_iter=2, calibrate=True).fit({"x": X, "site": Graph(A)}, y)
    assert clf.link_weights_ == {"site": 0.0}


def test_two_graphs_have_two_reasons(fitted):
    text, _, _, y, _ = fitted
    nothing, everyone = np.zeros((len(y), len(y))), np.ones((len(y), len(y)))
    with (
        pytest.warns(UserWarning, match="the links of 'b', 'c' are not used: there are none"),
        pytest.warns(UserWarning, match="the links of 'a' are not used: most samples are linked"),
    ):
        LMSSC(max_iter=1).fit({"text": text, "b": Graph(nothing), "a": Graph(everyone), "c": Graph(nothing)}, y)


def test_the_better_graph_has_the_larger_weight(fitted):
    text, cites, topic, y, _ = fitted
    rng = np.random.default_rng(0)
    half = cites + sparse.csr_array(np.triu(rng.random(cites.shape) < 0.06, k=1).astype(float))
    with pytest.warns(UserWarning, match="'all' are not used"):
        clf = LMSSC().fit(
            {"text": text, "cites": Graph(cites), "half": Graph(half), "all": Graph(np.ones(cites.shape))}, y
        )
    assert clf.link_weights_["cites"] > clf.link_weights_["half"] > clf.link_weights_["all"] == 0
    assert accuracy(clf, topic, y) > 0.8


def test_links_that_only_labels_know_of():
    """Features without any information: the agreement of labels along links shows what the links are worth."""
    _, cites, topic = papers(300, p_link=0.08, p_other=0.002)
    noise = np.random.default_rng(0).normal(size=(300, 5))
    y = some_labels(topic, 2)
    clf = LMSSC(calibrate=True).fit({"noise": noise, "cites": Graph(cites)}, y)
    assert clf.link_weights_["cites"] >= 0.3
    assert accuracy(clf, topic, y) > 0.85


def test_samples_without_links(fitted):
    text, cites, _, y, _ = fitted
    links = cites.toarray()
    links[:10], links[:, :10] = 0, 0
    clf = LMSSC().fit({"text": text, "cites": Graph(links)}, y)
    assert np.isfinite(clf.label_distributions_).all()
    assert clf.link_weights_["cites"] > 0


def test_known_samples_are_recognised(fitted):
    text, cites, _, _, clf = fitted
    proba = clf.predict_proba({"text": text, "cites": Graph(cites)})
    np.testing.assert_array_equal(proba, clf.label_distributions_)
    some = np.array([7, 3, 20])
    proba = clf.predict_proba({"cites": Graph(cites[some]), "text": text[some]})
    np.testing.assert_array_equal(proba, clf.label_distributions_[some])


def test_known_samples_are_recognised_by_links_to_themselves(fitted):
    text, cites, _, y, _ = fitted
    links = cites.toarray() + 2 * np.eye(len(y))  # as A + I
    views, some = {"text": text, "cites": Graph(links)}, [7, 3, 50]
    clf = LMSSC().fit(views, y)
    np.testing.assert_array_equal(clf.predict_proba(views), clf.label_distributions_)
    np.testing.assert_array_equal(clf.novelty(views), clf.novelty_)
    subset = {"text": text[some], "cites": Graph(links[some])}
    np.testing.assert_array_equal(clf.predict_proba(subset), clf.label_distributions_[some])
    np.testing.assert_array_equal(
        clf.transform(subset), clf.transform({"text": text[some], "cites": Graph(cites[some])})
    )
    unlabelled = np.flatnonzero(y < 0)[:5]
    rows = {"text": text[unlabelled], "cites": Graph(links[unlabelled])}
    # New samples are ranked among labels that are answered as new ones, samples of fit among held-out ones.
    everyone = np.flatnonzero(y < 0)
    sets = clf.predict_set({"text": text[everyone], "cites": Graph(links[everyone])})
    assert (sets == clf.predict_set()[everyone]).mean() > 0.95
    of_rows, of_fit = clf.explain(X=rows).weights, clf.explain(unlabelled).weights
    np.testing.assert_allclose(of_rows.toarray(), of_fit.toarray())


def test_copies_that_are_linked_to_each_other_are_recognised(fitted):
    text, cites, _, y, _ = fitted
    n = len(y)
    links = np.kron(np.ones((2, 2)), cites.toarray()) + np.kron(1 - np.eye(2), np.eye(n))
    views = {"text": np.vstack([text, text]), "cites": Graph(links), "other": Graph(links.T)}
    clf = LMSSC(max_iter=2).fit(views, np.tile(y, 2))
    np.testing.assert_array_equal(clf.predict_proba(views), clf.label_distributions_)


def test_a_link_to_another_sample_is_no_link_to_itself(fitted):
    text, cites, _, _, clf = fitted
    links = cites.toarray()[:3]
    before = clf.predict_proba({"text": text[:3], "cites": Graph(links)})
    links[0, 60] = 1 - links[0, 60]
    after = clf.predict_proba({"text": text[:3], "cites": Graph(links)})
    assert not np.allclose(before[0], after[0])
    np.testing.assert_array_equal(before[1:], after[1:])


def test_new_samples_with_and_without_links():
    text, cites, topic = papers(240)
    both = (cites + cites.T).tocsr()
    old, new = np.arange(160), np.arange(160, 240)
    y = some_labels(topic[old])
    clf = LMSSC().fit({"text": text[old], "cites": Graph(both[old][:, old])}, y)
    linked = clf.predict({"text": text[new], "cites": Graph(both[new][:, old])})
    with pytest.warns(UserWarning, match="does not have the graph 'cites'"):
        alone = clf.predict({"text": text[new]})
    explicit = clf.predict({"text": text[new], "cites": Graph(np.zeros((len(new), len(old))))})
    np.testing.assert_array_equal(alone, explicit)
    assert (linked == topic[new]).mean() > (alone == topic[new]).mean() + 0.05
    assert clf.transform({"text": text[new], "cites": Graph(both[new][:, old])}).shape == (80, clf.n_components_)


def test_frames_of_new_samples_are_matched_by_name(fitted):
    text, cites, _, y, _ = fitted
    ids = [f"p{i}" for i in range(len(y))]
    A = pd.DataFrame(cites.toarray(), index=ids, columns=ids)
    clf = LMSSC().fit({"text": pd.DataFrame(text, index=ids), "cites": Graph(A)}, y)
    new = {"text": text[:3] + 0.01, "cites": Graph(A.iloc[:3].to_numpy())}
    expected = clf.predict_proba(new)
    found = clf.predict_proba({**new, "cites": Graph(A.iloc[:3].reset_index(drop=True)[ids[::-1]])})
    np.testing.assert_array_equal(found, expected)
    wrong = A.iloc[:3].rename(columns={"p5": "q5"}).reset_index(drop=True)
    with pytest.raises(ValueError, match="graph 'cites': the samples of fit and the columns must be the same"):
        clf.predict({**new, "cites": Graph(wrong)})


def test_samples_that_lack_views(fitted):
    text, cites, topic, y, _ = fitted
    image = text + np.random.default_rng(1).normal(size=text.shape)
    image[::3] = np.nan
    clf = LMSSC().fit({"text": text, "image": image, "cites": Graph(cites)}, y)
    assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[:-1]).all()
    assert accuracy(clf, topic, y) > 0.7
    new = {"text": text[:4] + 0.01, "image": np.full((4, 8), np.nan), "cites": Graph(cites[:4])}
    assert np.isfinite(clf.predict_proba(new)).all()


def test_model_file(fitted, tmp_path):
    text, cites, _, _, clf = fitted
    clf.save(tmp_path / "papers.lmssc")
    again = lmssc.load(tmp_path / "papers.lmssc")
    new = {"text": text[:5] + 0.01, "cites": Graph(cites[:5])}
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))
    known = {"text": text, "cites": Graph(cites)}
    np.testing.assert_array_equal(again.predict_proba(known), clf.label_distributions_)
    assert again.link_weights_ == clf.link_weights_


def test_checkpoint(fitted, tmp_path):
    text, cites, _, y, clf = fitted
    views = {"text": text, "cites": Graph(cites)}

    def stop(progress):
        if progress.iteration == 1:
            raise RuntimeError("stop")

    path = tmp_path / "fit.checkpoint"
    with pytest.raises(RuntimeError, match="stop"):
        LMSSC(callback=stop, checkpoint=path).fit(views, y)
    with pytest.raises(ValueError, match="belongs to a fit to other data"):
        LMSSC(checkpoint=path).fit({"text": text, "cites": Graph(cites[::-1][:, ::-1])}, y)
    again = LMSSC(checkpoint=path).fit(views, y)
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_)


def test_rows_of_a_dataset_keep_their_links(fitted):
    text, cites, _, y, _ = fitted
    data = validate({"text": text, "cites": Graph(cites)}, y)
    rows = np.array([30, 5, 11, 2, 40])
    np.testing.assert_array_equal(data.take(rows).graphs[0].links.toarray(), cites.toarray()[np.ix_(rows, rows)])
    assert data.without_view("cites").graphs == []
    assert data.without_view("cites").names == ["text"]


def test_refits_hide_labels_and_leave_graphs_out(fitted):
    text, cites, _, y, clf = fitted
    found = hold_out(clf, {"text": text, "cites": Graph(cites)}, y, without=[None, "cites"])
    assert found[None].accuracy > found["cites"].accuracy


def test_cross_validation_over_a_graph(fitted):
    text, cites, _, y, _ = fitted
    views = {"text": text, "cites": Graph(cites)}
    search = LMSSCCV(param_grid={"beta": [0.01, 0.1]}, n_repeats=1, n_splits=2).fit(views, y)
    proba = search.predict_proba({"text": text, "cites": Graph(cites)})
    np.testing.assert_array_equal(proba, search.label_distributions_)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones((3, 4)), r"graph 'cites' has the shape \(3, 4\), but there are 6 samples"),
        (np.ones((6, 5)), r"graph 'cites' has the shape \(6, 5\)"),
        (-np.ones((6, 6)), "graph 'cites', row 0: has a negative weight"),
        (np.where(np.eye(6) > 0, np.nan, 1), "graph 'cites', row 0: contains NaN"),
        (np.where(np.eye(6, k=-2) > 0, np.inf, 1), r"graph 'cites', row 2: contains infinity"),
        (np.full((6, 6), "x"), "graph 'cites'"),
        (np.ones(6), "graph 'cites': Expected 2D array"),
    ],
)
def test_bad_graphs(A, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LMSSC().fit({"text": np.eye(6), "cites": Graph(A)}, [0, 1, 0, 1, -1, -1])


def test_names_of_a_graph_are_not_repeated():
    graph = Graph(np.ones((6, 6)), ids=["a", "b", "c", "d", "e", "b"])
    with pytest.raises(ValueError, match="graph 'cites' has the id 'b' more than once"):
        LMSSC().fit({"text": np.eye(6), "cites": graph}, [0, 1, 0, 1, -1, -1])


def test_a_graph_in_another_order_is_refused():
    ids = list("abcdef")
    A = pd.DataFrame(np.ones((6, 6)), index=ids[::-1], columns=ids[::-1])
    text = pd.DataFrame(np.eye(6), index=ids)
    with pytest.raises(ValueError, match="have the same index in another order"):
        LMSSC().fit({"text": text, "cites": Graph(A)}, [0, 1, 0, 1, -1, -1])
    with pytest.raises(ValueError, match="its columns name the samples in another order"):
        LMSSC().fit({"text": text, "cites": Graph(A.reset_index(drop=True))}, [0, 1, 0, 1, -1, -1])
    with pytest.raises(ValueError, match="the index and the columns must be the same samples"):
        LMSSC().fit({"text": np.eye(6), "cites": Graph(A.set_axis(list("uvwxyz"), axis=1))}, [0, 1, 0, 1, -1, -1])


def test_only_graphs_are_refused():
    with pytest.raises(ValueError, match=r"X has only graphs \('cites'\)"):
        LMSSC().fit({"cites": Graph(np.ones((3, 3)))}, [0, 1, -1])
    with pytest.raises(TypeError, match="X is a Graph alone"):
        LMSSC().fit(Graph(np.ones((3, 3))), [0, 1, -1])


def test_methods_without_graphs_say_so(fitted):
    text, cites, _, y, _ = fitted
    with pytest.raises(ValueError, match="MLAN takes views of features only, but 'cites' is a Graph"):
        MLAN().fit({"text": text, "cites": Graph(cites)}, y)


def test_unknown_graphs_are_refused(fitted):
    text, cites, _, _, clf = fitted
    with pytest.raises(ValueError, match=r"X has the graphs \['friends'\], but the model was fitted with \['cites'\]"):
        clf.predict({"text": text, "friends": Graph(cites)})
    with pytest.raises(
        ValueError, match="it needs a row for each of the 2 new samples and a column for each of the 120"
    ):
        clf.predict({"text": text[:2], "cites": Graph(np.ones((2, 2)))})


def test_a_list_of_views_and_graphs(fitted):
    text, cites, _, y, clf = fitted
    again = LMSSC().fit([Graph(cites), text], y)
    np.testing.assert_array_equal(again.label_distributions_, clf.label_distributions_)
    np.testing.assert_array_equal(again.predict_proba([Graph(cites), text]), clf.label_distributions_)


def test_features_that_look_like_links_get_a_hint(fitted):
    text, cites, _, y, _ = fitted
    with pytest.warns(UserWarning, match=r"view 'cites' has a column for each sample and looks like links"):
        LMSSC().fit({"text": text, "cites": cites + cites.T}, y)
    rng = np.random.default_rng(0)
    words = sparse.random_array((400, 400), density=0.05, random_state=rng, format="csr")
    assert not looks_like_links(words)
    assert looks_like_links(papers(400, p_link=0.2)[1])
    dense = rng.random((400, 400))
    assert not looks_like_links(dense)
    assert looks_like_links(dense + dense.T)
    assert not looks_like_links(dense + dense.T + np.eye(400, k=399))


@pytest.mark.parametrize("second_opinion", ["auto", 0.5])
@pytest.mark.parametrize("sure", [True, False])
def test_a_file_keeps_links_and_second_opinion(fitted, tmp_path, second_opinion, sure):
    text, cites, _, y, _ = fitted
    views = {"text": text, "more": text[:, :3] ** 2, "cites": Graph(cites)}
    trust = None if sure else np.where(np.arange(len(y)) % 2, 0.5, 1)
    clf = LMSSC(second_opinion=second_opinion).fit(views, y, sample_weight=trust)
    clf.save(tmp_path / "papers.lmssc")
    again = lmssc.load(tmp_path / "papers.lmssc")
    new = {"text": text[:9] + 0.1, "more": text[:9, :3] ** 2, "cites": Graph(cites[:9])}
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))
    np.testing.assert_array_equal(again.predict_set(new), clf.predict_set(new))
    np.testing.assert_array_equal(again.novelty(new), clf.novelty(new))


@pytest.mark.parametrize("unlabelled_too", [False, True])
def test_links_made_from_the_labels_are_not_used(unlabelled_too):
    """They find every held-out label: on noise, answers had a confidence of 65 %, and 32 % of them were right."""
    rng = np.random.default_rng(0)
    target = rng.integers(3, size=150)
    y = np.where(np.arange(150) < 60, target, -1)
    same = (y[:, None] == y) & ((y >= 0) | unlabelled_too)
    X = rng.normal(size=(150, 6))
    with pytest.warns(UserWarning, match="hardly to unlabelled ones, as if links were made from the labels"):
        clf = LMSSC().fit({"x": X, "same": Graph(same)}, y)
    np.testing.assert_array_equal(clf.label_distributions_, LMSSC().fit([X], y).label_distributions_)
