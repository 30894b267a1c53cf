"""Links in the objective: each block against an obvious version, and the methods that take graphs."""

import numpy as np
import pytest
from scipy import sparse

import lmssc
import oracles
from lmssc import AMGL, GFHF, LMSSC, Graph
from lmssc.core.link_evidence import weigh_graphs
from lmssc.core.linked_samples import LinkMemory
from lmssc.core.links import LinkWeights, join_affinities, join_walks, smooth_twice
from lmssc.core.targets import Targets
from lmssc.data.view import View
from lmssc.data.views import Views
from test_graph_views import papers, some_labels


def dense_laplacian(A):
    """Laplacian of D^−½·(A + Aᵀ)/2·D^−½, by the formula."""
    both = (A + A.T) / 2
    degrees = both.sum(axis=1)
    B = np.array(
        [
            [both[i, j] / np.sqrt(degrees[i] * degrees[j]) if both[i, j] else 0.0 for j in range(len(A))]
            for i in range(len(A))
        ]
    )
    return np.diag(B.sum(axis=1)) - B


def dense_mean(A, X):
    """Mean of each sample and its neighbours, by loops; a link of usual weight counts as much as the sample."""
    both, unit = (A + A.T) / 2, np.median([row[row > 0].mean() for row in A if row.any()])
    result = np.zeros_like(X)
    for i in range(len(A)):
        weights = both[i] / unit
        result[i] = (X[i] + weights @ X) / (1 + weights.sum())
    return result


@pytest.fixture
def graphs():
    rng = np.random.default_rng(0)
    return [sparse.csr_array(rng.random((20, 20)) * (rng.random((20, 20)) < share)) for share in (0.1, 0.3)]


def test_laplacian_is_that_of_the_formula(graphs):
    weights = LinkWeights.of(graphs, np.array([3.0, 1.0]), 0.4)
    expected = 0.4 * (0.75 * dense_laplacian(graphs[0].toarray()) + 0.25 * dense_laplacian(graphs[1].toarray()))
    np.testing.assert_allclose(join_affinities(graphs, weights).laplacian.toarray(), expected, atol=1e-12)


def test_smoothing_is_that_of_the_formula(graphs):
    X = np.random.default_rng(1).normal(size=(20, 3))
    weights = LinkWeights.of(graphs, np.array([3.0, 1.0]), 0.4)
    once = 0.75 * dense_mean(graphs[0].toarray(), X) + 0.25 * dense_mean(graphs[1].toarray(), X)
    twice = 0.75 * dense_mean(graphs[0].toarray(), once) + 0.25 * dense_mean(graphs[1].toarray(), once)
    expected = twice * np.linalg.norm(X) / np.linalg.norm(twice)
    _, found, _ = smooth_twice(View(X), join_walks(graphs, weights))
    np.testing.assert_allclose(found.data, expected, atol=1e-12)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_centred_views_are_smoothed_as_dense_ones(graphs, stored):
    X = np.random.default_rng(1).normal(size=(20, 3)) * (np.random.default_rng(2).random((20, 3)) < 0.5)
    present = np.arange(20) % 4 != 0
    step = join_walks(graphs[:1], LinkWeights.of(graphs[:1], np.ones(1), 0.4))
    X = X * present[:, None]
    offset = np.array([1.0, 2.0, 3.0])
    _, found, _ = smooth_twice(View(stored(X), offset, present), step)
    _, plain, _ = smooth_twice(View((X - offset) * present[:, None], None, present), step)
    np.testing.assert_allclose(found.dot(np.eye(3)), plain.dot(np.eye(3)), atol=1e-10)


def test_a_new_sample_is_smoothed_like_a_known_one():
    """Directed links from a sample that nobody links to: it is the same whether it is known or new."""
    rng = np.random.default_rng(0)
    A = (rng.random((30, 30)) < 0.2) * 1.0
    A = np.triu(A, 1) + np.triu(A, 1).T
    X = rng.normal(size=(31, 4))
    row = (rng.random(30) < 0.2) * 1.0
    weights = LinkWeights(np.ones(1), np.ones(1), 0.1)
    memory, _ = LinkMemory.of(Views([View(X[:30])]), [sparse.csr_array(A)], weights)
    (found,) = memory.smooth_new(Views([View(X[30:])]), [sparse.csr_array(row[None])])
    once = (X[30] + row @ X[:30]) / (1 + row.sum())
    known = (X[:30] + A @ X[:30]) / (1 + A.sum(axis=1, keepdims=True))
    twice = (once + row @ known) / (1 + row.sum())
    np.testing.assert_allclose(found.data[0], memory.factors[0] * twice, atol=1e-12)


def test_objective_and_scores_are_those_of_the_formula():
    """F is harmonic for L + w·L_g at the end, and J has the terms of all Laplacians."""
    text, cites, topic = papers(60, noise=0.8, p_link=0.2)
    y = some_labels(topic, 4)
    clf = LMSSC(calibrate=False, balance=0, second_opinion=0.0, max_iter=3, tol=0).fit(
        {"text": text, "cites": Graph(cites)}, y
    )
    weight = clf.link_weights_["cites"]
    S = clf.graph_.toarray()
    L = np.diag(((S + S.T) / 2).sum(axis=1)) - (S + S.T) / 2 + weight * dense_laplacian(cites.toarray())
    F = oracles.harmonic_by_inverse(L, y, 3)
    np.testing.assert_allclose(clf.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-6)
    smoothness = 0.01 * np.trace(clf.latent_.T @ L @ clf.latent_)
    expected = clf._embedded[:, clf.n_components_ :]
    smoothness += 0.01 * np.trace(expected.T @ L @ expected)
    np.testing.assert_allclose(clf.objective_terms_["smoothness"][-1], smoothness, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_objective_never_rises(seed):
    text, cites, topic = papers(90, noise=0.6, p_link=0.2, seed=seed)
    views = {"text": text, "cites": Graph(cites), "more": Graph(cites @ cites)}
    clf = LMSSC(max_iter=10, tol=0, calibrate=False).fit(views, some_labels(topic))
    assert clf.link_weights_["cites"] > 0
    assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[:-1]).all()


def test_strength_is_morans_i():
    text, cites, _ = papers(100, noise=0.5, p_link=0.3)
    A = cites.toarray() + cites.toarray().T
    roots = np.sqrt(A.sum(axis=1))
    B = A / np.outer(roots, roots)
    centred = text - (B.sum(axis=1) @ text) / B.sum()
    numerator = sum(B[i, j] * centred[i] @ centred[j] for i in range(100) for j in range(100))
    expected = numerator / sum(B[i].sum() * centred[i] @ centred[i] for i in range(100))
    found = weigh_graphs([cites], text, Targets.from_codes(np.full(100, -1), 2))
    np.testing.assert_allclose(found, [expected], rtol=1e-10)


def test_amgl_has_one_more_laplacian():
    text, cites, topic = papers(60, noise=0.8)
    y = some_labels(topic, 3)
    clf = AMGL(max_iter=1, tol=0, scaling=None).fit({"text": text, "cites": Graph(cites)}, y)
    (own,) = oracles.amgl([text], y, 3, 5, 1)[2]
    A = (cites + cites.T).toarray() / 2
    roots = np.sqrt(np.where(A.sum(axis=1) > 0, A.sum(axis=1), 1))
    links = np.diag((A.sum(axis=1) > 0) * 1.0) - A / np.outer(roots, roots)
    F = oracles.harmonic_by_inverse((own + links) / 2, y, 3)
    weights = [1 / (2 * np.sqrt(np.trace(F.T @ L @ F))) for L in (own, links)]
    np.testing.assert_allclose([clf.view_weights_[0], clf.link_weights_["cites"]], weights, rtol=1e-6)


@pytest.mark.parametrize("method", [AMGL(scaling="auto"), GFHF(), GFHF(graph="gaussian")])
def test_peers_use_links(method, tmp_path):
    text, cites, topic = papers(200, noise=1.0)
    y = some_labels(topic)
    both = (cites + cites.T).tocsr()
    old, new = np.arange(160), np.arange(160, 200)
    views = {"text": text[old], "cites": Graph(both[old][:, old])}
    clf = method.fit(views, y[old])
    known = clf.transduction_ == topic[old]
    alone = type(method)(**method.get_params()).fit({"text": text[old]}, y[old]).transduction_ == topic[old]
    assert known[y[old] < 0].mean() > alone[y[old] < 0].mean() + 0.03
    linked = clf.predict({"text": text[new], "cites": Graph(both[new][:, old])})
    unlinked = clf.predict({"text": text[new], "cites": Graph(np.zeros((len(new), len(old))))})
    assert (linked == topic[new]).mean() > (unlinked == topic[new]).mean()
    clf.save(tmp_path / "m.lmssc")
    again = lmssc.load(tmp_path / "m.lmssc").predict({"text": text[new], "cites": Graph(both[new][:, old])})
    np.testing.assert_array_equal(again, linked)


def test_a_precomputed_graph_takes_no_other():
    with pytest.raises(ValueError, match="graph='precomputed' takes one affinity as X, without a Graph beside it"):
        GFHF(graph="precomputed").fit({"a": np.eye(4), "b": Graph(np.ones((4, 4)))}, [0, 1, -1, -1])


def test_one_mistaken_weight_does_not_silence_the_other_links():
    """Of 500 short texts with links, 97 % were right, and 86 % after one weight of 1e9 (two draws)."""
    rng = np.random.default_rng(0)
    topic = rng.integers(5, size=500)
    words = sparse.csr_array(rng.poisson(0.02 * np.exp(0.7 * rng.normal(size=(5, 1000))[topic])))
    links = sparse.csr_array(rng.random((500, 500)) < np.where(topic[:, None] == topic, 0.028, 0.003), dtype=float)
    y = np.where(rng.random(500) < 0.1, topic, -1)
    mistaken = links.copy()
    mistaken.data[7] = 1e9
    right = [
        (LMSSC(max_iter=3).fit([words, Graph(graph)], y).transduction_ == topic)[y == -1].mean()
        for graph in (links, mistaken)
    ]
    assert right[1] > right[0] - 0.03


def with_noisy_weights(links, sigma, seed=0):
    upper = sparse.triu(links, k=1).tocoo()
    upper.data = np.exp(sigma * np.random.default_rng(seed).normal(size=upper.nnz))
    return (upper + upper.T).tocsr()


@pytest.mark.parametrize("sigma", [2, 3])
def test_weights_of_links_that_say_nothing_do_not_count(sigma, tmp_path):
    text, cites, topic = papers(200, noise=0.8, p_link=0.05)
    cites = (cites + cites.T).tocsr()
    y, old, new = some_labels(topic), np.arange(160), np.arange(160, 200)
    noisy = with_noisy_weights(cites, sigma)
    models, answers = [], []
    for links in (cites, noisy):
        clf = LMSSC().fit({"text": text[old], "cites": Graph(links[old][:, old])}, y[old])
        clf.save(tmp_path / "model.lmssc")
        models.append(clf)
        answers.append(
            lmssc.load(tmp_path / "model.lmssc").predict_proba({"text": text[new], "cites": Graph(links[new][:, old])})
        )
    assert [clf.weighted_links_ for clf in models] == [{"cites": True}, {"cites": False}]
    np.testing.assert_array_equal(models[1].label_distributions_, models[0].label_distributions_)
    np.testing.assert_array_equal(answers[1], answers[0])
    order = np.random.default_rng(1).permutation(160)
    views = {"text": text[old][order], "cites": Graph(noisy[old][:, old][order][:, order])}
    np.testing.assert_array_equal(
        LMSSC().fit(views, y[old][order]).label_distributions_, models[1].label_distributions_[order]
    )


def test_weights_of_links_that_say_much_count():
    text, cites, topic = papers(200, noise=0.8, p_link=0.05, p_other=0.05)
    cites = with_noisy_weights(cites, 0.5).tocoo()
    cites.data *= np.where(topic[cites.row] == topic[cites.col], 10, 1)
    clf = LMSSC().fit({"text": text, "cites": Graph(cites)}, some_labels(topic))
    assert clf.weighted_links_ == {"cites": True}
    assert clf.link_weights_["cites"] > 0


def test_starts_with_and_without_links_are_judged_by_the_same_labels():
    """From 3,001 samples on, the labels that judge are drawn; they were drawn by H, which links change."""
    text, links, topic = papers(3100, p_link=0.005, p_other=0.0005)
    y = some_labels(topic, share=3)
    clf = LMSSC().fit({"text": text, "cites": Graph(links)}, y)
    assert clf.link_weights_["cites"] > 0
    assert (clf.transduction_ == topic)[y < 0].mean() > 0.9


@pytest.mark.parametrize("seed", [10, 19])
def test_the_heaviest_weight_of_links_is_tried_whatever_the_middle_one_gains(seed):
    """Links are all that tells: with 0.3 they gain too little over 0.03 to be sure, with 3 they find most labels."""
    rng = np.random.default_rng(seed)
    topic = rng.permutation(np.arange(600) % 4)
    links = np.triu(rng.random((600, 600)) < np.where(topic[:, None] == topic, 0.05, 0.01), 1)
    y = np.where(np.arange(600) < 120, topic, -1)
    clf = LMSSC().fit({"noise": rng.normal(size=(600, 2)), "links": Graph((links | links.T).astype(float))}, y)
    assert (clf.transduction_ == topic)[120:].mean() > 0.6
