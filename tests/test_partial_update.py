"""`LMSSC.partial_update`: new samples and labels join a fit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import lmssc
import oracles
from lmssc import LMSSC
from lmssc.core.extended_graph import ExtendedGraph, GraphRule
from lmssc.core.graph import learn_graph
from lmssc.core.laplacian import laplacian
from lmssc.datasets import make_multiview
from lmssc.numerics.knn import mutual
from lmssc.numerics.knn.mutual import near_pairs


@pytest.fixture(scope="module")
def data():
    return make_multiview(240, 2, [12, 9], n_classes=3, labelled=0.2, random_state=3)


@pytest.fixture(scope="module")
def fitted(data):
    return LMSSC().fit(take(data, slice(220)), data.y[:220])


def take(data, rows):
    return [view[rows] for view in data.views]


def copy_of(clf):
    other = LMSSC(**clf.get_params())
    vars(other).update(vars(clf))
    return other


def update(clf, *args, **options):
    return copy_of(clf).partial_update(*args, **options)


def assert_same(one, other, rows=slice(None), columns=slice(None)):
    """Both models say the same of all samples, to the bit."""
    np.testing.assert_array_equal(one.label_distributions_[rows], other.label_distributions_)
    np.testing.assert_array_equal(one.latent_[rows], other.latent_)
    np.testing.assert_array_equal(one.graph_[rows][:, rows].toarray(), other.graph_.toarray())


def test_new_edges_are_those_of_the_graph_learned_anew(data):
    """With fixed positions and scores, old and new rows equal the S of all samples, up to the neighbours that left."""
    points = np.hstack(data.views)
    scores = np.eye(3)[data.target] * 0.8 + 0.2 / 3
    beta, gamma, k = 0.01, 0.5, 6
    joint = np.hstack([np.sqrt(beta) * points, np.sqrt(gamma) * scores])
    graph, alpha = learn_graph(joint[:200], k, beta)
    extended = ExtendedGraph(graph, alpha, points, scores[:200], GraphRule(k, beta, gamma)).connect(scores)
    whole, whole_alpha = learn_graph(joint, k, beta)
    np.testing.assert_allclose(extended.graph.toarray(), whole.toarray(), atol=1e-8)
    np.testing.assert_allclose(extended.alpha, whole_alpha, rtol=1e-8)
    assert 0 < len(extended.changed) < 200


@pytest.mark.parametrize("n_points", [300, 12_000])
def test_near_pairs_are_all_pairs_near_to_either_side(n_points, monkeypatch):
    monkeypatch.setattr(mutual, "SETTINGS", replace(mutual.SETTINGS, min_pairs=0))
    rng = np.random.default_rng(0)
    points, queries = rng.normal(size=(n_points, 6)), rng.normal(size=(20, 6))
    reach = rng.uniform(0, 0.5, n_points)
    found = near_pairs(points, queries, 5, reach, recall=1.0)
    distances = ((queries[:, None] - points) ** 2).sum(axis=2)
    wanted = (distances <= np.sort(distances, axis=1)[:, [4]]) | (distances < reach)
    got = np.zeros_like(wanted)
    got[found.queries, found.points] = True
    assert not (wanted & ~got).any()
    np.testing.assert_allclose(found.squared_distances, distances[found.queries, found.points], rtol=1e-9)
    if n_points > 10_000:
        some = near_pairs(points, queries, 5, reach, recall=0.8)
        got[:] = False
        got[some.queries, some.points] = True
        nearest = distances <= np.sort(distances, axis=1)[:, [4]]
        assert (nearest & got).sum() >= 0.8 * nearest.sum()
        assert len(some.queries) < len(found.queries)


@pytest.mark.parametrize("options", [{}, {"second_opinion": 0.5}, {"init": "random", "random_state": 0}])
def test_scores_solve_the_system_of_the_extended_graph(data, options):
    clf = LMSSC(calibrate=False, balance=0.0, **options).fit(take(data, slice(220)), data.y[:220])
    clf.partial_update(take(data, slice(220, None)), data.y[220:], refit="never" if options else "auto")
    L = laplacian(clf.graph_.astype(np.float64)).toarray()
    known = data.y >= 0
    anchor, opinion = None, None
    if clf._opinion is not None:
        anchor, opinion = np.where(known, 0, clf._opinion.weight), clf._opinion.scores[:, clf._class_order.argsort()]
    expected = oracles.dense_system_scores(
        L, np.eye(3)[data.y] * known[:, None], np.where(known, np.inf, 0.0), anchor, opinion
    )
    np.testing.assert_allclose(clf.label_distributions_, expected, atol=1e-8)
    assert (clf.transduction_[known] == data.y[known]).all()


def test_it_agrees_with_a_fit_to_all_samples(data, fitted):
    clf = update(fitted, take(data, slice(220, None)), data.y[220:])
    again = LMSSC().fit(data.views, data.y)
    assert (clf.transduction_ == again.transduction_).mean() >= 0.98
    assert clf.transduction_.shape == (240,)
    assert clf.latent_.shape == (240, clf.n_components_)
    assert clf.graph_.shape == (240, 240)
    np.testing.assert_allclose(clf.graph_.sum(axis=1), 1)
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)
    new_seen_by_old = clf.graph_[:220][:, 220:]
    assert new_seen_by_old.nnz > 0


def test_all_methods_know_all_samples(data, fitted, tmp_path):
    clf = update(fitted, take(data, slice(220, None)), data.y[220:])
    np.testing.assert_array_equal(clf.predict(data.views), clf.transduction_)
    np.testing.assert_array_equal(clf.predict_proba(data.views), clf.label_distributions_)
    assert len(clf.explain(rows=[230]).names) == 1
    assert clf.novelty_.shape == (240,)
    assert clf.predict_set().shape == (240, 3)
    assert (clf.most_informative(5) < 240).all()
    clf.save(tmp_path / "model.lmssc")
    loaded = lmssc.load(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(loaded.label_distributions_, clf.label_distributions_)
    later = [view[:5] + 0.01 for view in data.views]
    np.testing.assert_allclose(
        update(loaded, later).label_distributions_, update(clf, later).label_distributions_, atol=1e-6
    )


def test_the_order_of_the_new_samples_does_not_matter(data, fitted):
    rows = np.random.default_rng(0).permutation(np.arange(220, 240))
    one = update(fitted, take(data, slice(220, None)), data.y[220:])
    other = update(fitted, take(data, rows), data.y[rows])
    assert_same(one, other, np.r_[np.arange(220), rows])


def test_the_order_of_the_earlier_samples_does_not_matter(data, fitted):
    rows = np.random.default_rng(1).permutation(220)
    shuffled = LMSSC().fit(take(data, rows), data.y[rows])
    new = take(data, slice(220, None)), data.y[220:]
    assert_same(update(fitted, *new), update(shuffled, *new), np.r_[rows, np.arange(220, 240)])


def test_the_order_of_the_computation_does_not_matter(data, fitted, monkeypatch):
    """Many samples are ordered in space, and new ones put beside their neighbours."""
    first, second = slice(220, 230), slice(230, None)
    plain = update(fitted, take(data, first), data.y[first]).partial_update(take(data, second), data.y[second])
    monkeypatch.setattr("lmssc.estimators.partial_update.is_large", lambda n: True)
    clf = copy_of(fitted)
    clf.partial_update(take(data, first), data.y[first])
    assert sorted(clf._inner) == list(range(230))
    assert (np.abs(np.diff(clf._inner)) > 1).any()
    clf.partial_update(take(data, second), data.y[second])
    np.testing.assert_allclose(clf.label_distributions_, plain.label_distributions_, atol=1e-8)
    np.testing.assert_allclose(clf.graph_.toarray(), plain.graph_.toarray(), atol=1e-8)


def test_labels_of_earlier_samples_are_given_changed_and_taken_back(data, fitted):
    y = data.y[:220].copy()
    free, known = np.flatnonzero(y < 0)[:3], np.flatnonzero(y >= 0)[0]
    y[free] = (fitted.transduction_[free] + 1) % 3
    y[known] = -1
    clf = update(fitted, None, y)
    assert (clf.transduction_[free] == y[free]).all()
    assert not clf._labelled[known]
    back = clf.partial_update(None, data.y[:220], refit="never")
    np.testing.assert_allclose(back.label_distributions_, fitted.label_distributions_, atol=1e-6)


def test_labels_of_all_samples_come_with_new_samples(data, fitted):
    y = data.y.copy()
    free = np.flatnonzero(y[:220] < 0)[0]
    y[free] = (fitted.transduction_[free] + 1) % 3
    assert update(fitted, take(data, slice(220, None)), y).transduction_[free] == y[free]


def test_a_copy_of_an_earlier_sample_shares_its_answer(data, fitted):
    clf = update(fitted, take(data, [3, 3, 7]), [-1, -1, int(data.target[7])])
    np.testing.assert_array_equal(clf.label_distributions_[[220, 221]], clf.label_distributions_[[3, 3]])
    assert clf._nodes[222] == clf._nodes[7]
    assert clf.transduction_[7] == data.target[7]
    assert clf.graph_.shape == (223, 223)


def test_views_that_samples_lack(data):
    views = [view.copy() for view in data.views]
    views[0][::3] = np.nan
    clf = LMSSC().fit([view[:220] for view in views], data.y[:220])
    clf.partial_update([view[220:] for view in views], data.y[220:], refit="never")
    again = LMSSC().fit(views, data.y)
    assert (clf.transduction_ == again.transduction_).mean() > 0.95


def test_new_samples_in_another_unit_are_told(data, fitted):
    new = [view[:60] + 0.01 for view in data.views]
    update(fitted, new, refit="never")  # without a warning
    with pytest.warns(UserWarning, match="nearer to zero in view 'view1'.*another unit"):
        update(fitted, [new[0], new[1] / 1000], refit="never")


def test_sparse_texts_by_direction():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.1), size=3)
    target = np.arange(150) % 3
    X = sparse.csr_array(np.array([rng.multinomial(40, topics[t]) for t in target], dtype=float))
    y = np.where(rng.random(150) < 0.3, target, -1)
    clf = LMSSC(compare_by="direction").fit(X[:140], y[:140])
    clf.partial_update(X[140:], y[140:])
    assert clf._embedding.norms.shape == (150,)
    assert (clf.transduction_ == target).mean() > 0.9


def test_a_refit_needs_the_earlier_samples(data, fitted):
    new = take(data, slice(220, None)), data.y[220:]
    with pytest.raises(ValueError, match="pass X, the 220 earlier samples"):
        update(fitted, *new, refit="always")
    with pytest.raises(ValueError, match="X must be the 220 earlier samples"):
        update(fitted, *new, refit="always", X=take(data, slice(20, 240)))
    clf = update(fitted, *new, refit="always", X=take(data, slice(220)))
    again = LMSSC().fit(data.views, data.y)
    assert_same(clf, again)


@pytest.mark.filterwarnings("ignore:.*parts of the graph")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda d: (take(d, slice(60, None)), d.y[60:]), "240 samples, and the last fit had 60"),
        (lambda d: (None, d.target[:60]), "labels were given or changed"),
        (lambda d: ([view[60:90] + 40 for view in d.views], None), "unlike those of the last fit"),
    ],
)
def test_a_refit_is_due(data, make, reason):
    clf = LMSSC().fit(take(data, slice(60)), data.y[:60])
    before = clf.label_distributions_
    with pytest.raises(ValueError, match=reason):
        clf.partial_update(*make(data))
    assert clf.label_distributions_ is before
    with pytest.warns(UserWarning, match=reason):
        clf.partial_update(*make(data), refit="never")
    assert len(clf.transduction_) >= 60


def test_what_cannot_be_done_is_refused(data, fitted):
    new = take(data, slice(220, None))
    cases = [
        (lambda: update(fitted), "pass X_new"),
        (lambda: update(fitted, new, np.full(20, 7)), r"classes that were not in fit: \[7\]"),
        (lambda: update(fitted, new, data.y[:5]), "y_new has 5 labels"),
        (lambda: update(fitted, new[:1]), "view"),
        (lambda: update(fitted, new, np.full((20, 3), 1 / 3)), "one label for each sample"),
        (lambda: update(fitted, None, np.where(data.y[:220] == 0, -1, data.y[:220])), "no label left"),
        (lambda: update(fitted, new, refit="sometimes"), "refit must be"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    mean = LMSSC(alpha="mean").fit(take(data, slice(220)), data.y[:220])
    with pytest.raises(ValueError, match="alpha='mean'"):
        mean.partial_update(new)
    old = copy_of(fitted)
    del vars(old)["_memory"]
    with pytest.raises(ValueError, match="earlier version"):
        old.partial_update(new)


def test_a_model_with_graphs_is_refused(data):
    ring = sparse.csr_array((np.ones(220), (np.arange(220), (np.arange(220) + 1) % 220)), shape=(220, 220))
    clf = LMSSC()
    with pytest.warns(UserWarning, match="not used"):
        clf.fit({"a": data.views[0][:220], "links": lmssc.Graph(ring)}, data.y[:220])
    with pytest.raises(ValueError, match="fitted with the graphs"):
        clf.partial_update({"a": data.views[0][220:]})


@pytest.mark.parametrize("rows", [slice(220, None), slice(None)])
def test_labels_in_another_order_than_the_new_samples_are_refused(data, fitted, rows):
    names = [f"s{row}" for row in range(240)]
    frames = [pd.DataFrame(view, index=names)[220:] for view in data.views]
    y = pd.Series(data.y, index=names)[rows]
    assert_same(update(fitted, frames, y), update(fitted, take(data, slice(220, None)), data.y[rows]))
    mixed = y.iloc[np.r_[: len(y) - 20, range(len(y) - 1, len(y) - 21, -1)]]
    with pytest.raises(ValueError, match="same index in another order"):
        update(fitted, frames, mixed)


def test_a_refit_fills_missing_values_as_a_fit_does(data):
    views = take(data, slice(None))
    views[0] = views[0].copy()
    views[0][[3, 230], [1, 2]] = np.nan
    views[0][220:, 2] += 50
    old, new = ([view[rows] for view in views] for rows in (slice(220), slice(220, None)))
    clf = LMSSC(impute="mean").fit(old, data.y[:220])
    clf.partial_update(new, data.y[220:], X=old, refit="always")
    whole = LMSSC(impute="mean").fit(views, data.y)
    assert_same(clf, whole)
    np.testing.assert_array_equal(clf.imputed_["view0"], whole.imputed_["view0"])
    assert clf.imputed_["view0"][1:3].tolist() == [1, 1]


def test_what_only_a_refit_can_do_is_not_offered_without_one(data):
    clf = LMSSC(label_noise=0.1).fit(take(data, slice(220)), data.y[:220])
    with pytest.raises(ValueError, match=r"pass X, the 220 earlier samples$"):
        update(clf, take(data, slice(220, None)), data.y[220:])


def test_labels_of_no_sample_and_labels_of_another_type_are_refused(data, fitted):
    with pytest.raises(
        ValueError, match="y_new has 0 labels, but there must be one for each of the 220 samples of fit"
    ):
        update(fitted, None, [])
    with pytest.raises(ValueError, match=r"True and False, but the classes are \[0, 1, 2\]"):
        update(fitted, take(data, slice(220, None)), np.arange(20) < 10)
    with pytest.raises(ValueError, match="the class 1 would have no label left"):
        update(fitted, None, np.where(data.y[:220] == 1, -1, data.y[:220]))
