"""Why, what if a label is wrong, none of these, and sets that keep their promise: from a fitted LMSSC."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

import lmssc
from lmssc import GFHF, LMSSC, LMSSCCV, Graph
from lmssc.core.conformal import conformal_p_values, interpolated_p_values
from lmssc.core.held_out_folds import LatentProblem, fold_scores
from lmssc.core.influence import label_weights
from lmssc.core.label_system import LabelSolver
from lmssc.core.laplacian import laplacian
from lmssc.core.targets import Targets
from lmssc.datasets import make_multiview
from lmssc.estimators.trust_state import label_folds, label_solver, label_system, latent_problem
from oracles import dense_laplacian, dense_system_scores


@pytest.fixture(scope="module")
def data():
    return make_multiview(300, labelled=0.2, random_state=0)


@pytest.fixture(scope="module")
def clf(data):
    return LMSSC().fit(data.views, data.y)


def scores_of_fit(clf, y):
    """F at the graph of the fit, dense; the samples of these data are distinct."""
    classes = np.arange(len(clf.classes_))
    Y = (y[:, None] == classes).astype(float)
    trust = np.where(y >= 0, np.inf, 0.0)
    return dense_system_scores(dense_laplacian(clf.graph_.toarray().astype(float)), Y, trust)


def test_weights_of_an_explanation_give_the_scores(data):
    clf = LMSSC(second_opinion=0.0).fit(data.views, data.y)
    why = clf.explain()
    F = scores_of_fit(clf, data.y)
    Y = (data.y[:, None] == np.arange(3)).astype(float)
    np.testing.assert_allclose(why.weights @ Y, F, atol=1e-6)
    assert why.weights.data.min() >= 0
    assert not why.weights[:, data.y < 0].nnz
    np.testing.assert_allclose(why.weights.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(sum(why.view_shares.values()), 1)
    dense = why.weights.toarray()
    assert (why.strongest[:, 0] == dense.argmax(axis=1)).all()
    assert ((why.bottleneck > 0) & (why.bottleneck <= 1)).all()


def test_the_second_opinion_is_a_line_of_its_own(data):
    rows = np.arange(300) < 250
    clf = LMSSC(balance=0, calibrate=False, second_opinion=0.5).fit([view[rows] for view in data.views], data.y[rows])
    found = label_weights(label_solver(clf), np.arange(250))
    Y = clf._targets.matrix(np.dtype(float))
    expected = clf.label_distributions_[np.ix_(clf._order.samples, clf._class_order)]
    np.testing.assert_allclose(found.weights @ Y + found.opinion, expected, atol=1e-5)
    hidden = int(np.flatnonzero(data.y[rows] < 0)[0])
    for why in (clf.explain([hidden]), clf.explain(X=[view[~rows] for view in data.views])):
        assert (why.regression > 0.1).all()
        np.testing.assert_allclose(why.weights.sum(axis=1) + why.regression, 1, atol=1e-9)
        assert "the regression on the features" in str(why)


def test_links_between_samples_are_edges_too(data):
    rng = np.random.default_rng(0)
    alike = data.target[:, None] == data.target
    cites = sparse.csr_array(np.triu(rng.random((300, 300)) < np.where(alike, 0.05, 0.002), k=1).astype(float))
    views = {"text": data.views[0], "cites": Graph(cites)}
    clf = LMSSC(balance=0, calibrate=False, second_opinion=0.0).fit(views, data.y)
    assert clf.link_weights_["cites"] > 0
    Y = (data.y[:, None] == np.arange(3)).astype(float)
    np.testing.assert_allclose(clf.explain().weights @ Y, clf.label_distributions_, atol=1e-5)
    np.testing.assert_array_equal(clf.novelty(views), clf.novelty_)
    assert clf.predict_set(views).shape == (300, 3)


def test_an_explanation_in_words_and_as_a_table(clf, data):
    hidden, given = int(np.flatnonzero(data.y < 0)[0]), int(np.flatnonzero(data.y >= 0)[0])
    why = clf.explain([hidden, given], n=3, ids=[f"s{i}" for i in range(300)])
    frame = why.to_frame()
    assert frame["id"].tolist() == [f"s{hidden}"] * 3 + [f"s{given}"]
    assert frame["weight"].tolist()[-1] == pytest.approx(1)
    assert "The label was given" in str(why)
    assert f"s{hidden} is labelled" in str(why)
    assert "<p" in why._repr_html_()
    assert "s0<" not in why._repr_html_()
    assert "&lt;b&gt;" in clf.explain([0], ids=["<b>"] * 300)._repr_html_()


def test_a_new_sample_is_explained_by_the_labels_behind_its_answer(data):
    rows = np.arange(300) < 250
    clf = LMSSC(balance=0, calibrate=False).fit([view[rows] for view in data.views], data.y[rows])
    new = [view[~rows] for view in data.views]
    why = clf.explain(X=new)
    Y = (data.y[rows][:, None] == np.arange(3)).astype(float)
    np.testing.assert_allclose(why.weights @ Y, clf.predict_proba(new), atol=1e-5)
    known = clf.explain(X=[view[:5] for view in data.views])
    np.testing.assert_allclose(known.weights.toarray(), clf.explain(np.arange(5)).weights.toarray(), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda clf: clf.explain([300]), "from 0 to 299"),
        (lambda clf: clf.explain([0.5]), "row numbers"),
        (lambda clf: clf.explain([0], n=0), "n must be"),
        (lambda clf: clf.explain([0], ids=["a"]), "ids must have"),
        (lambda clf: clf.predict_set(coverage=1.0), "coverage"),
        (lambda clf: clf.predict_set(groups=[1, 2]), "groups must have one entry"),
        (lambda clf: clf.predict_set(groups=np.zeros(300)), "at least 2 groups"),
        (lambda clf: LMSSC(label_noise=1.0).fit([np.eye(4)], [0, 1, -1, -1]), "label_noise"),
        (lambda clf: LMSSC(label_noise="auto", init="random").fit([np.eye(4)], [0, 1, -1, -1]), "init='svd'"),
    ],
)
def test_what_cannot_be_asked(clf, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(clf)


def test_methods_without_latent_positions_say_so(data):
    search = LMSSCCV(estimator=GFHF(), param_grid={"n_neighbors": [5]}, n_splits=2).fit(data.views, data.y)
    with pytest.raises(TypeError, match="GFHF has no latent positions"):
        search.suspect_labels()


def flipped(data, share, seed=0):
    rng = np.random.default_rng(seed)
    labelled = np.flatnonzero(data.y >= 0)
    wrong = np.sort(rng.choice(labelled, round(share * len(labelled)), replace=False))
    y = data.y.copy()
    y[wrong] = (y[wrong] + rng.integers(1, 3, len(wrong))) % 3
    return y, wrong


def test_wrong_labels_are_the_most_suspect():
    data = make_multiview(300, labelled=0.5, random_state=0)
    y, wrong = flipped(data, 0.2)
    found = LMSSC(max_iter=3).fit(data.views, y).suspect_labels()
    assert sorted(found.rows) == np.flatnonzero(y >= 0).tolist()
    assert (np.diff(found.probability) <= 1e-12).all()
    top = found.rows[: len(wrong)]
    assert np.isin(top, wrong).mean() >= 0.75
    assert (found.proposed[: len(wrong)] == data.target[top]).mean() >= 0.7
    assert found.to_frame()["row"].tolist() == found.rows.tolist()
    assert "more likely wrong than right" in repr(found)


def test_right_labels_are_not_suspected(clf):
    found = clf.suspect_labels()
    assert found.noise == 0
    assert (found.probability > 0.5).mean() < 0.05


def test_labels_that_may_be_wrong_are_overruled(data):
    y, wrong = flipped(data, 0.2, seed=1)
    hidden = data.y < 0
    plain, robust = (LMSSC(label_noise=noise, second_opinion=0.0).fit(data.views, y) for noise in (0.0, "auto"))
    assert not len(plain.overruled_)
    assert np.isin(robust.overruled_, wrong).mean() > 0.8
    right, before = ((one.transduction_ == data.target)[hidden].mean() for one in (robust, plain))
    assert right > before
    assert (np.diff(robust.objective_) <= 1e-9 * robust.objective_[0]).all()
    # The scores of the fit are those of the system that explanations are read from.
    why = robust.explain()
    np.testing.assert_allclose(why.weights.sum(axis=1), 1, atol=1e-9)
    given = (y[:, None] == np.arange(3)).astype(float)
    np.testing.assert_allclose((why.weights @ given)[~hidden], robust.label_distributions_[~hidden], atol=1e-4)


def test_without_noise_label_noise_changes_nothing(clf, data):
    other = LMSSC(label_noise="auto").fit(data.views, data.y)
    assert (clf.label_distributions_ == other.label_distributions_).all()


@pytest.mark.filterwarnings("ignore:most new samples have far larger values")
def test_a_class_without_a_label_is_none_of_these():
    data = make_multiview(400, n_classes=4, labelled=0.2, random_state=1)
    y = np.where(data.target == 3, -1, data.y)
    clf = LMSSC().fit(data.views, y)
    hidden = y < 0
    known = hidden & (data.target != 3)
    assert (clf.novelty_[known] <= 0.05).mean() < 0.12
    assert np.median(clf.novelty_[data.target == 3]) < np.median(clf.novelty_[known]) / 2
    far = [100 + 50 * view for view in data.views]
    assert (clf.novelty(far) <= 0.05).all()
    assert (clf.predict(far, reject=0.05) == -1).all()
    np.testing.assert_array_equal(clf.novelty(data.views), clf.novelty_)
    assert set(clf.predict(data.views, reject=0.05)) >= {-1, 0, 1, 2}


@pytest.mark.filterwarnings("ignore:most new samples have far larger values")
def test_rejected_names_are_none(data):
    y = np.array(["a", "b", "c", None], dtype=object)[data.y]
    clf = LMSSC(max_iter=1).fit(data.views, y)
    labels = clf.predict([100 + 50 * view for view in data.views], reject=0.05)
    assert set(labels) == {None}
    with pytest.raises(ValueError, match="reject"):
        clf.predict(data.views, reject=2)


def test_interpolated_p_values_keep_the_promise_with_few_hidden_samples():
    rng = np.random.default_rng(0)
    drawn = rng.exponential(size=(4000, 29))
    kept = {0.8: [], 0.9: []}
    for *hidden, new in drawn:
        stepwise = conformal_p_values(np.array(hidden), np.array([new]))
        p_value = interpolated_p_values(np.array(hidden), np.array([new]))
        assert stepwise - 1 / 29 <= p_value <= stepwise
        for coverage, found in kept.items():
            found.append((p_value > 1 - coverage, stepwise > 1 - coverage))
    for coverage, found in kept.items():
        share, share_of_steps = np.mean(found, axis=0).ravel()
        assert abs(share - coverage) < 0.015
        assert share_of_steps > coverage + 0.02
    ties = rng.integers(4, size=50).astype(float)
    np.testing.assert_array_equal(interpolated_p_values(ties, np.arange(4.0)), conformal_p_values(ties, np.arange(4.0)))
    np.testing.assert_array_equal(interpolated_p_values(np.empty(0), np.ones(2), 3), [1.0, 1.0])


def test_held_out_labels_are_judged_with_the_second_opinion_on_the_sample_itself():
    data = make_multiview(200, labelled=0.3, noise=3.0, random_state=0)
    clf = LMSSC(max_iter=1, second_opinion=0.5).fit(data.views, data.y)
    folds, samples = label_folds(clf), clf._order.samples
    by_graph = fold_scores(latent_problem(clf, second_opinion=False), clf._targets, folds)
    found = fold_scores(latent_problem(clf), clf._targets, folds)
    np.testing.assert_allclose(found, 0.5 * by_graph + 0.5 * clf._opinion.scores[samples], atol=1e-12)
    # That of a labelled sample does not depend on its label.
    row = int(np.flatnonzero(data.y >= 0)[0])
    other = np.where(np.arange(200) == row, (data.y + 1) % 3, data.y)
    changed = LMSSC(max_iter=1, second_opinion=0.5).fit(data.views, other)
    np.testing.assert_allclose(changed._opinion.scores[row], clf._opinion.scores[row], atol=0.05)


def test_sets_contain_the_true_class_as_often_as_promised():
    shares, new_shares = {False: [], True: []}, {False: [], True: []}
    for seed in range(4):
        data = make_multiview(360, labelled=0.25, noise=3.0, random_state=seed)
        seen = np.arange(360) < 300
        clf = LMSSC(max_iter=1, calibrate=False).fit([view[seen] for view in data.views], data.y[seen])
        hidden, given = np.flatnonzero(data.y[seen] < 0), np.flatnonzero(data.y[seen] >= 0)
        for by_class in shares:
            sets = clf.predict_set(coverage=0.8, by_class=by_class)
            shares[by_class].append(sets[hidden, data.target[hidden]].mean())
            new = clf.predict_set([view[~seen] for view in data.views], coverage=0.8, by_class=by_class)
            new_shares[by_class].append(new[np.arange(60), data.target[~seen]].mean())
            assert (sets[given].sum(axis=1) == 1).all()
            assert sets[given, data.y[given]].all()
    for by_class in shares:
        assert 0.74 <= np.mean(shares[by_class]) <= 0.9, by_class
        assert 0.72 <= np.mean(new_shares[by_class]) <= 0.92, by_class


def test_with_few_labels_sets_leave_nothing_out():
    data = make_multiview(120, random_state=0)
    y = np.full(120, -1)
    for code in range(3):
        y[np.flatnonzero(data.target == code)[:2]] = code
    sets = LMSSC(max_iter=1).fit(data.views, y).predict_set(coverage=0.9)
    assert sets[y < 0].all()


@pytest.mark.filterwarnings("ignore:labelled samples lie among themselves")
def test_groups_are_hidden_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(15), 20)
    target = rng.integers(2, size=300)
    X = rng.normal(size=(300, 5)) + 1.2 * target[:, None] + 2.5 * rng.normal(size=(15, 5))[groups]
    found = {"with": [], "without": []}
    for new in range(0, 15, 3):
        y = np.where(np.isin(groups, [new, new + 1, new + 2]), -1, target)
        clf = LMSSC(max_iter=1, calibrate=False).fit([X], y)
        rows = np.flatnonzero(y < 0)
        for name, given_groups in (("with", groups), ("without", None)):
            found[name].append(clf.predict_set(coverage=0.8, groups=given_groups)[rows, target[rows]].mean())
    assert np.mean(found["with"]) >= 0.74
    assert np.mean(found["without"]) < 0.65


def test_order_of_the_input_does_not_matter(clf, data):
    order = np.random.default_rng(0).permutation(300)
    reversed_codes = np.where(data.y < 0, -1, 2 - data.y)
    other = LMSSC().fit([view[order] for view in data.views[::-1]], reversed_codes[order])
    np.testing.assert_array_equal(other.novelty_, clf.novelty_[order])
    np.testing.assert_array_equal(other.predict_set()[:, ::-1], clf.predict_set()[order])
    one, two = clf.suspect_labels(), other.suspect_labels()
    np.testing.assert_array_equal(np.sort(one.probability), np.sort(two.probability))
    np.testing.assert_array_equal(
        other.explain().weights.toarray(), clf.explain().weights.toarray()[np.ix_(order, order)]
    )


def test_identical_samples_share_the_weight_of_their_labels(clf, data):
    twice = LMSSC().fit([np.vstack([view, view]) for view in data.views], np.concatenate([data.y, data.y]))
    weights = twice.explain(np.arange(300)).weights.toarray()
    np.testing.assert_allclose(weights[:, :300] + weights[:, 300:], clf.explain().weights.toarray(), atol=1e-9)
    np.testing.assert_array_equal(twice.novelty_[:300], clf.novelty_)
    np.testing.assert_array_equal(twice.predict_set()[300:], clf.predict_set())


def test_a_loaded_model_answers_alike(data, tmp_path):
    y, _ = flipped(data, 0.2)
    clf = LMSSC(label_noise="auto", max_iter=2).fit(data.views, y)
    clf.ids_ = np.array([f"s{i}" for i in range(300)])
    novelty = clf.novelty_
    clf.save(tmp_path / "model.lmssc")
    again = lmssc.load(tmp_path / "model.lmssc")
    np.testing.assert_array_equal(again.novelty_, novelty)
    np.testing.assert_array_equal(again.overruled_, clf.overruled_)
    np.testing.assert_array_equal(again.predict_set(), clf.predict_set())
    assert str(again.explain([0, 1])) == str(clf.explain([0, 1]))
    assert "s0" in str(again.explain([0]))


def test_a_search_judges_by_its_best_estimator(data):
    search = LMSSCCV(estimator=LMSSC(max_iter=1), param_grid={"n_neighbors": [8]}, n_splits=2, n_repeats=1)
    search.fit(data.views, data.y)
    np.testing.assert_array_equal(search.predict_set(), search.best_estimator_.predict_set())
    np.testing.assert_array_equal(search.novelty_, search.best_estimator_.novelty_)
    assert len(search.explain([0])) == 1


@pytest.mark.filterwarnings("ignore:most new samples have far larger values")
@pytest.mark.filterwarnings("ignore:only one labelled sample")
@pytest.mark.parametrize("n_single", [0, 1])
def test_a_rejection_that_cannot_happen_is_told(data, n_single):
    y = np.full(300, -1)
    for label in range(3):
        y[np.flatnonzero(data.target == label)[: 1 if label < n_single else 8]] = label
    few = LMSSC(max_iter=2).fit(data.views, y)
    n_labels = (y >= 0).sum()
    least = (1 + n_single) / (n_labels + 1)  # a label that is alone in its class is never held out
    far = [np.full_like(view[:1], 1e3) for view in data.views]
    assert few.novelty(far) == pytest.approx(least)
    with pytest.warns(UserWarning, match="rejects nothing: with these labels no p-value is below"):
        assert few.predict(far, reject=least * 0.9) != -1
    assert few.predict(far, reject=least * 1.1) == -1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": "90 %"}, "coverage must be a number between 0 and 1, got '90 %'"),
        ({"coverage": None}, "coverage must be"),
        (
            {"groups": np.where(np.arange(300) == 7, np.nan, np.arange(300) % 4)},
            "groups has no group for sample 7: nan",
        ),
        ({"groups": [None] * 300}, "groups has no group for sample 0: None"),
        ({"groups": ["a"] * 299 + [float("nan")]}, "groups has no group for sample 299: nan"),
    ],
)
def test_wrong_calls_of_predict_set(clf, options, message):
    with pytest.raises(ValueError, match=message):
        clf.predict_set(**options)


def test_explain_takes_rows_or_samples_but_not_both(clf, data):
    with pytest.raises(ValueError, match="not both"):
        clf.explain([0], X=data.views)
    with pytest.raises(TypeError, match=r"got booleans; use np\.flatnonzero"):
        clf.explain(data.y == 0)
    with pytest.raises(TypeError, match="use X=") as caught:
        clf.explain(np.linspace(0, 1, 300))
    assert len(str(caught.value)) < 200


def test_an_explanation_says_that_the_weights_are_for_another_class(data):
    """Far from the samples of fit the label is the most frequent class, whatever the neighbours say."""
    clf = LMSSC(max_iter=1).fit(data.views, data.y)
    unlabelled = np.flatnonzero(data.y < 0)
    usual = clf.explain(unlabelled)
    votes = (usual.weights @ (data.y[:, None] == np.arange(3))).argmax(axis=1)
    told = ["By weight alone" in " ".join(usual.sentences(i)) for i in range(len(unlabelled))]
    assert not any(np.array(told) & (votes == usual.labels))
    with pytest.warns(UserWarning, match="far larger values"):
        far = clf.explain(X=[np.full_like(view[:1], 1e6) for view in data.views])
    best = int((far.weights @ (data.y[:, None] == np.arange(3))).argmax())
    assert best != far.labels[0]
    assert f"By weight alone it would be {best} (" in str(far)


def test_sets_of_samples_of_fit_are_the_same_when_they_are_given_again(data):
    views = [view[:200] for view in data.views]
    clf = LMSSC(max_iter=1, calibrate=False, second_opinion=0.3).fit(views, data.y[:200])
    unlabelled = np.flatnonzero(data.y[:200] < 0)
    for options in ({}, {"groups": np.arange(200) % 7}, {"by_class": True, "coverage": 0.8}):
        again = clf.predict_set(views, **options)
        np.testing.assert_array_equal(again[unlabelled], clf.predict_set(**options)[unlabelled])


def test_the_set_of_a_sample_whose_label_is_not_certain(data):
    """It was the likeliest class alone, even if the answer was another one."""
    labelled = np.flatnonzero(data.y >= 0)
    soft = (data.y[:, None] == np.arange(3)).astype(float)
    soft[labelled[0]], soft[labelled[1]] = np.roll([0.7, 0.2, 0.1], data.y[labelled[0]]), 1 / 3
    clf = LMSSC(max_iter=1, calibrate=False).fit(data.views, soft)
    for coverage, size in ((0.6, 1), (0.85, 2), (0.95, 3)):
        sets = clf.predict_set(coverage=coverage)
        assert sets[labelled[0]].sum() == size
        assert sets[labelled[1]].all()
        np.testing.assert_array_equal(sets[labelled[2:]], soft[labelled[2:]].astype(bool))
    y, _ = flipped(data, 0.2, seed=1)
    clf = LMSSC(label_noise=0.2).fit(data.views, y)
    sets = clf.predict_set(coverage=0.9)
    assert len(clf.overruled_) > 3
    assert sets[clf.overruled_, y[clf.overruled_]].all()
    assert sets[clf.overruled_, clf.transduction_[clf.overruled_]].mean() > 0.8
    weights = np.where(np.arange(300) == labelled[0], 0.7, 1.0)
    clf = LMSSC(max_iter=1, calibrate=False).fit(data.views, data.y, sample_weight=weights)
    assert clf.predict_set(coverage=0.6)[labelled[0]].sum() == 1
    assert clf.predict_set(coverage=0.99)[labelled[0]].sum() > 1


@pytest.mark.filterwarnings("ignore:only one labelled sample")
def test_a_copy_of_the_only_label_of_a_class_can_be_of_any_class(data):
    """The label cannot be held out, so nothing is known about its copies: their sets were empty."""
    only = int(np.flatnonzero(data.y == 2)[0])
    y = np.append(np.where((data.y == 2) & (np.arange(300) != only), -1, data.y), -1)
    views = [np.vstack([view, view[only]]) for view in data.views]
    clf = LMSSC(max_iter=1, calibrate=False).fit(views, y)
    for sets in (clf.predict_set(), clf.predict_set(views)):
        assert sets[300].all()
        assert sets[only, 2]
    assert clf.predict_set()[only].sum() == 1


def test_ids_are_taken_by_position(clf, data):
    """A pandas Series with another index gave samples the names of others."""
    pandas = pytest.importorskip("pandas")
    names = [f"s{i}" for i in range(300)]
    mixed_up = pandas.Series(names, index=np.arange(300)[::-1])
    assert clf.explain([7], ids=mixed_up).names == ["s7"]
    assert str(clf.explain([7], ids=mixed_up)) == str(clf.explain([7], ids=iter(names)))


@pytest.mark.filterwarnings("ignore:most new samples have far larger values")
def test_sets_of_samples_in_another_unit_come_with_a_warning(clf, data):
    with pytest.warns(UserWarning, match="far larger values"):
        clf.predict_set([1e3 * view[:3] for view in data.views])


def test_groups_of_any_kind(clf):
    number = np.arange(300) % 4
    expected = clf.predict_set(groups=number)
    for names in ([f"site {i}" for i in number], [("site", i) for i in number], ["1" if i == 0 else i for i in number]):
        np.testing.assert_array_equal(clf.predict_set(groups=names), expected)


def test_a_sample_of_several_groups_is_in_the_same_one_whatever_the_order():
    rng = np.random.default_rng(0)
    target = rng.integers(2, size=160)
    X = np.rint(1.5 * rng.normal(size=(160, 2)) + 2 * target[:, None])
    y, groups, order = np.where(rng.random(160) < 0.4, target, -1), rng.integers(8, size=160), rng.permutation(160)
    one = LMSSC(max_iter=1, calibrate=False).fit([X], y)
    assert len(one._order.samples) < 120
    other = LMSSC(max_iter=1, calibrate=False).fit([X[order]], y[order])
    np.testing.assert_array_equal(
        other.predict_set(groups=[f"site {7 - i}" for i in groups[order]]), one.predict_set(groups=groups)[order]
    )


def test_right_labels_are_not_suspected_with_two_of_each_class():
    """Half of them were, at 100 %: one label of each class says nothing about the variance within classes."""
    shares, costs = [], []
    for seed in range(8):
        data = make_multiview(150, n_classes=4, random_state=seed)
        y = np.full(150, -1)
        for code in range(4):
            y[np.flatnonzero(data.target == code)[:2]] = code
        clf = LMSSC(max_iter=1, calibrate=False).fit(data.views, y)
        shares.append((clf.suspect_labels().probability > 0.5).mean())
        trusting = LMSSC(max_iter=1, calibrate=False, label_noise="auto").fit(data.views, y)
        costs.append(np.mean(clf.transduction_ == data.target) - np.mean(trusting.transduction_ == data.target))
    assert np.mean(shares) < 0.1
    assert np.mean(costs) < 0.06  # 0.25 before


def test_sets_of_samples_that_are_identical_but_differ_in_class():
    """An unlabelled copy of a labelled sample may be of another class: 77 % of the sets were right before."""
    shares, new_shares = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        target = rng.integers(3, size=240)
        X = np.rint(1.2 * rng.normal(size=(3, 3))[target] + rng.normal(size=(240, 3)))
        y, fitted = np.where(rng.random(240) < 0.4, target, -1), np.arange(240) < 200
        clf = LMSSC(max_iter=1, calibrate=False).fit([X[fitted]], y[fitted])
        sets, hidden = clf.predict_set(coverage=0.9), np.flatnonzero(y[fitted] < 0)
        shares.append(sets[hidden, target[hidden]].mean())
        given = np.flatnonzero(y[fitted] >= 0)
        np.testing.assert_array_equal(sets[given], np.eye(3, dtype=bool)[y[given]])
        assert clf.predict_set([X[fitted]])[given, y[given]].all()
        new_shares.append(clf.predict_set([X[~fitted]])[np.arange(40), target[~fitted]].mean())
    assert np.mean(shares) > 0.85  # 0.9 less three standard errors of 12 draws
    assert np.mean(new_shares) > 0.85


def test_suspects_of_many_samples_are_judged_among_some_and_found_once(monkeypatch):
    """Ten of 99 labels are wrong: 150 of 401 unlabelled samples show most of them, and the second time at once."""
    data = make_multiview(500, labelled=0.2, random_state=0)
    y = data.y.copy()
    wrong = np.flatnonzero(y >= 0)[:10]
    y[wrong] = (y[wrong] + 1) % len(np.unique(data.target))
    monkeypatch.setattr("lmssc.estimators.trust.MAX_UNLABELLED", 150)
    sizes, label = [], LatentProblem.label
    monkeypatch.setattr(
        LatentProblem, "label", lambda self, targets: sizes.append(len(targets)) or label(self, targets)
    )
    clf = LMSSC(max_iter=2, calibrate=False).fit(data.views, y)
    found = clf.suspect_labels()
    assert set(sizes) == {99 + 150}
    assert len(set(found.rows[:10]) & set(wrong)) >= 6  # by chance 1
    assert clf.suspect_labels() is found
    clf.fit(data.views, data.y)
    assert clf.suspect_labels() is not found


def test_many_samples_are_labelled_in_spatial_order(data, monkeypatch):
    rng = np.random.default_rng(0)
    links = sparse.csr_array(np.triu(rng.random((300, 300)) < 0.01, k=1).astype(float))
    problem = LatentProblem(data.views[0], 8, 1.0, 0.5, 0.5, links=laplacian(links), tol=1e-10)
    targets = Targets.from_codes(data.y, 3)
    expected = problem.label(targets)
    monkeypatch.setattr("lmssc.core.held_out_folds.is_large", lambda n: True)
    found = LatentProblem(data.views[0], 8, 1.0, 0.5, 0.5, links=laplacian(links), tol=1e-10).label(targets)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.fixture(scope="module")
def many():
    """Enough samples for the fast methods: few classes in few dimensions, so that the fit takes seconds."""
    data = make_multiview(12_000, labelled=0.1, noise=2.0, random_state=0)
    return data, LMSSC(max_iter=1, calibrate=False).fit(data.views, data.y)


def test_many_labels_are_held_out_once_for_all_questions(many, monkeypatch):
    """One fold of a third of the labels, which no fit that ranks it has seen, and one graph."""
    data, clf = many
    folds, targets = label_folds(clf), clf._targets
    held = targets.labelled & (folds.number == 0)
    assert (folds.number[~targets.labelled] == 0).all()
    assert 0.3 < held.sum() / targets.n_labelled < 0.36
    seen, fit = [], LatentProblem.fit
    monkeypatch.setattr(
        LatentProblem, "fit", lambda self, targets: seen.append(int(targets.labelled.sum())) or fit(self, targets)
    )
    hidden = np.flatnonzero(data.y < 0)
    for coverage in (0.8, 0.9, 0.95):
        sets = clf.predict_set(coverage=coverage)
        assert abs(sets[hidden, data.target[hidden]].mean() - coverage) < 0.045  # two deviations of 400 labels
    assert set(seen) == {targets.n_labelled - int(held.sum())}
    assert len(seen) == 2  # in the order of the input and in that of space: once
    assert (clf.novelty_[hidden] <= 0.05).mean() < 0.08
    known = np.flatnonzero(data.y >= 0)
    assert np.isfinite(clf.novelty_[known]).all()
    assert (clf.novelty_[known] <= 0.05).mean() < 0.1
    assert (clf.predict_set()[known] == np.eye(3, dtype=bool)[data.y[known]]).all()


def test_scores_of_many_samples_are_those_of_the_slow_way(many):
    data, clf = many
    problem, folds = latent_problem(clf), label_folds(clf)
    assert problem.fast
    fast = fold_scores(problem, clf._targets, folds)
    slow = fold_scores(replace(problem, fast=False), clf._targets, folds)
    seen = folds.number >= 0
    assert np.isnan(fast[~seen]).all()
    assert (fast[seen].argmax(axis=1) == slow[seen].argmax(axis=1)).mean() > 0.98
    truth = data.target[clf._order.samples][seen]
    own_class = np.argsort(clf._class_order)[truth]
    right = [(scores[seen].argmax(axis=1) == own_class).mean() for scores in (fast, slow)]
    assert right[0] > right[1] - 0.005
    # The weights of an explanation are in single precision, to five digits.
    rows = np.flatnonzero(data.y < 0)[:4]
    exact = LabelSolver(label_system(clf), tol=1e-12)
    weights = label_weights(exact, clf._nodes[rows]).weights.toarray()
    found = label_weights(label_solver(clf), clf._nodes[rows]).weights.toarray()
    np.testing.assert_allclose(found, weights, atol=3e-5)


def test_weights_of_many_explanations_are_those_of_each(many):
    """Enough rows for the solver of many right-hand sides; its weights give the scores, too."""
    data, clf = many
    rows = np.flatnonzero(data.y < 0)[:40]
    why = clf.explain(rows)
    exact = label_weights(LabelSolver(label_system(clf), tol=1e-12), clf._nodes[rows]).weights.toarray()
    weights = np.zeros((len(rows), len(data.y)))
    weights[:, clf._order.samples] = exact
    np.testing.assert_allclose(why.weights.toarray(), weights, atol=3e-5)
    few = clf.explain(rows[:3])
    np.testing.assert_allclose(why.weights[:3].toarray(), few.weights.toarray(), atol=3e-5)


def test_candidates_of_many_samples_have_seen_no_label(many, tmp_path):
    """Other labels, the same candidates; a saved model keeps them, and an update drops them."""
    data, clf = many
    other = np.where(data.y >= 0, (data.y + 1) % 3, -1)
    other[np.flatnonzero(data.y >= 0)[::2]] = 0
    again = LMSSC(max_iter=1, calibrate=False).fit(data.views, other)
    np.testing.assert_array_equal(again._candidates, clf._candidates)
    clf.save(tmp_path / "model.lmssc")
    loaded = lmssc.load(tmp_path / "model.lmssc")
    vars(loaded).pop("_novelty", None)  # asked for before, and saved
    np.testing.assert_array_equal(loaded.novelty_, clf.novelty_)
    np.testing.assert_array_equal(loaded.predict_set(), clf.predict_set())
    loaded.partial_update([view[:5] + 0.01 for view in data.views])
    assert len(loaded.novelty_) == len(data.y) + 5
    assert "_candidates" not in vars(loaded)


def test_candidates_are_those_of_a_new_index(many):
    """The graph on Z alone has nearly the same edges whether candidates are kept or sought again."""
    _, clf = many
    kept = latent_problem(clf)
    edges = [problem.graph.astype(bool).astype(int) for problem in (kept, replace(kept, candidates=None))]
    shared = edges[0].multiply(edges[1]).sum()
    assert shared > 0.9 * max(one.sum() for one in edges)
    assert kept.in_space[1]._first_search.n_full_searches == 0


def test_wrong_labels_among_many_are_the_most_suspect(many):
    data, _ = many
    y, wrong = flipped(data, 0.1)
    found = LMSSC(max_iter=1, calibrate=False).fit(data.views, y).suspect_labels()
    assert sorted(found.rows) == np.flatnonzero(y >= 0).tolist()
    first = np.isin(found.rows, wrong)
    assert roc_auc_score(first, -np.arange(len(first))) > 0.95
    assert first[: len(wrong)].mean() > 0.7  # which of a few come first depends on rounding
    assert 0.05 < found.noise < 0.2


def test_a_copy_of_a_sample_whose_label_is_known_may_be_of_another_class(many):
    """The set of a copy does not rest on the label of the sample that it is a copy of."""
    data, clf = many
    folds = label_folds(clf)
    rows = np.flatnonzero((data.y >= 0) & (folds.number[clf._nodes] < 0))
    sets = clf.predict_set([view[rows] for view in data.views], coverage=0.99)
    assert sets[np.arange(len(rows)), data.y[rows]].all()
    assert (sets.sum(axis=1) > 1).any()


def test_sets_of_new_samples_do_not_rest_on_scores_that_have_seen_the_held_out_labels():
    """Held-out samples had neighbours by such scores, and new samples with links got sets that were too small."""
    rng = np.random.default_rng(0)
    target = rng.integers(3, size=200)
    X = rng.normal(size=(3, 12))[target] + 2 * rng.normal(size=(200, 12))
    alike = target[:, None] == target
    links = np.triu(rng.random((200, 200)) < np.where(alike, 0.05, 0.01), k=1)
    links = sparse.csr_array((links | links.T).astype(float))
    y, seen = np.where(rng.random(200) < 0.4, target, -1), np.arange(200) < 150
    fitted, new = ({"x": X[rows], "links": Graph(links[rows][:, seen])} for rows in (seen, ~seen))
    clf = LMSSC(max_iter=1).fit(fitted, y[seen])
    sets = clf.predict_set(new, coverage=0.8)
    n_components = clf.latent_.shape[1]
    assert clf._embedded.shape[1] > n_components
    told = clf._embedded.copy()
    told[:, n_components:] = 9 * np.eye(3)[target[seen]]
    clf._embedded = told
    np.testing.assert_array_equal(clf.predict_set(new, coverage=0.8), sets)
    assert 0.7 < sets[np.arange(50), target[~seen]].mean() < 0.95
