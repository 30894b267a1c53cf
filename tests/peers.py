"""What the tests of estimators share: how one must behave whatever it computes."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from lmssc import LMSSC, stack_views
from lmssc.datasets import make_multiview


def interrupt_and_resume(path, views, y, **parameters):
    """LMSSC that was interrupted in its second iteration and resumed from its checkpoint, and one that was not."""

    def stop(progress):
        if progress.iteration == 2:
            raise RuntimeError("stopped")

    parameters["tol"] = 0.0
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("lmssc.persistence.checkpoint.INTERVAL", 0)
        with pytest.raises(RuntimeError, match="stopped"):
            LMSSC(**parameters, checkpoint=path, callback=stop).fit(views, y)
        resumed, whole = LMSSC(**parameters, checkpoint=path).fit(views, y), LMSSC(**parameters).fit(views, y)
    np.testing.assert_array_equal(resumed.label_distributions_, whole.label_distributions_)
    return resumed, whole


def assert_order_does_not_matter(make, seeds=range(5)):
    """Permuting samples, views and classes permutes the answer, to the bit."""
    data = make_multiview(120, labelled=0.2, random_state=0)
    clf = make().fit(data.views, data.y)
    names = np.array(["pear", "apple", "fig"], dtype=object)
    new = [view[:20] + 0.1 for view in data.views]
    for seed in seeds:
        shuffle = np.random.default_rng(seed).permutation(len(data.y))
        views = [view[shuffle] for view in data.views]
        named = np.where(data.y[shuffle] < 0, None, names[data.y[shuffle]])
        other = make().fit([views[2], views[0], views[1]], named)
        columns = [list(names).index(name) for name in other.classes_]
        np.testing.assert_array_equal(other.transduction_, names[clf.transduction_[shuffle]])
        np.testing.assert_array_equal(other.label_distributions_, clf.label_distributions_[shuffle][:, columns])
        assert (other.graph_ != clf.graph_[shuffle][:, shuffle]).nnz == 0
        np.testing.assert_array_equal(other.objective_, clf.objective_)
        if hasattr(clf, "view_weights_"):
            np.testing.assert_array_equal(other.view_weights_, clf.view_weights_[[2, 0, 1]])
        found = other.predict_proba([new[2], new[0], new[1]])
        np.testing.assert_array_equal(found, clf.predict_proba(new)[:, columns])


def assert_interface(make):
    """Attributes, forms of X, storage, known and new samples, missing views."""
    data = make_multiview(120, labelled=0.2, random_state=0)
    clf = make().fit(data.views, data.y)
    assert clf.transduction_.shape == (120,)
    np.testing.assert_allclose(clf.label_distributions_.sum(axis=1), 1)
    assert (clf.transduction_[data.y >= 0] == data.y[data.y >= 0]).all()
    assert clf.graph_.shape == (120, 120)
    assert clf.graph_.diagonal().max() == 0
    assert clf.graph_.nnz < 120 * 40
    assert len(clf.objective_) == clf.n_iter_
    assert list(clf.scalings_) == clf.view_names_
    np.testing.assert_array_equal(clf.predict(data.views), clf.transduction_)
    np.testing.assert_array_equal(clf.predict_proba(data.views), clf.label_distributions_)

    proba = clf.predict_proba([view[:30] + 0.05 for view in data.views])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba.argmax(axis=1) == clf.transduction_[:30]).mean() > 0.7
    assert np.isfinite(clf.predict_proba([view[:3] + 1e3 for view in data.views])).all()

    X, views = stack_views(data.views)
    stacked = make().set_params(views=views).fit(X, data.y)
    np.testing.assert_array_equal(stacked.label_distributions_, clf.label_distributions_)

    single = make().fit([view.astype(np.float32) for view in data.views], data.y)
    assert single.label_distributions_.dtype == single.graph_.dtype == np.float32
    assert (single.transduction_ == clf.transduction_).mean() > 0.95

    partial = make_multiview(120, labelled=0.2, missing=0.3, random_state=0)
    clf = make().fit(partial.views, partial.y)
    assert (clf.transduction_ == partial.target)[partial.y < 0].mean() > 0.4
    lacking = [partial.views[0], np.full_like(partial.views[1], np.nan), np.nan_to_num(partial.views[2])]
    np.testing.assert_allclose(clf.predict_proba(lacking).sum(axis=1), 1)


def assert_sparse_and_dense_agree(make):
    data = make_multiview(120, n_features=60, sparse=True, labelled=0.2, missing=0.0, random_state=0)
    dense = [view.toarray() for view in data.views]
    for scaling in ("auto", "zscore", "unit", None, "sample"):
        one, two = (make().set_params(scaling=scaling).fit(views, data.y) for views in (dense, data.views))
        np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-6)
        new = [view[:9] * 1.01 for view in dense]
        np.testing.assert_allclose(one.predict_proba(new), two.predict_proba(new), atol=1e-6)
    # With samples that lack a sparse view, whose zeros are then its mean.
    has = np.random.default_rng(0).uniform(size=120) > 0.3
    present = [None, has, None]
    one, two = (make().set_params(scaling="zscore").fit(views, data.y, present) for views in (dense, data.views))
    np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-6)


def assert_refused(make, X, y, error, message, **parameters):
    clf = make().set_params(**parameters)
    with pytest.raises(error, match=message) as caught:
        clf.fit(X, y)
    assert len(str(caught.value)) < 400
    assert not hasattr(clf, "classes_")
    with pytest.raises(NotFittedError):
        clf.predict(X)


def assert_bad_input_is_refused(make, parameters):
    """The cases that every estimator refuses, and wrong values of its own parameters."""
    rng = np.random.default_rng(0)
    A, B, y = rng.normal(size=(20, 4)), rng.normal(size=(20, 3)), np.where(np.arange(20) < 10, np.arange(20) % 2, -1)
    broken = B.copy()
    broken[5, 1] = np.nan
    assert_refused(make, [A, B[1:]], y, ValueError, "different length")
    assert_refused(make, [A, broken], y, ValueError, "'view1', row 5")
    assert_refused(make, [A, B * np.nan], y, ValueError, "'view1' is missing")
    assert_refused(make, [A, B], y[1:], ValueError, "20 rows.*19 labels")
    assert_refused(make, [A, B], np.full(20, -1), ValueError, "no labelled sample")
    assert_refused(make, [A, B], y, ValueError, "n_neighbors=20.*less than.*20", n_neighbors=20)
    assert_refused(make, [A, B], y, ValueError, "scaling must be.*'minmax'", scaling="minmax")
    for name, values in {"n_neighbors": [0, -1, 2.5, "many", None, True], **parameters}.items():
        for value in values:
            assert_refused(make, [A, B], y, ValueError, f"^{name} must be .*, got ", **{name: value})
    for fitted, new, message in (
        ([A, B], [A], "1 views.*fitted with 2"),
        ([A, B], [B, A], "'view0' has 3 features"),
        ({"image": A, "text": B}, {"image": B, "text": A}, "'image' has 3 features"),
        ({"image": A, "text": B}, [A, B], "pass a dict with the names"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(fitted, y).predict(new)


def assert_unreached_are_named(make):
    """A part of the graph without a label is warned of, listed, and gets the frequencies of the classes."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[9.0, 0, -70, 0, 50], [40.0, -40, 0, 20, 9], [-30.0, 60, 9, -50, 4]], 20, axis=0)
    views = [centres + rng.normal(size=(60, 5)), 2 * centres + rng.normal(size=(60, 5))]
    y = np.full(60, -1)
    y[[0, 1, 2, 20]] = [0, 0, 0, 1]
    with pytest.warns(UserWarning, match="20 of 60 samples .* without a label"):
        clf = make().fit(views, y)
    np.testing.assert_array_equal(clf.unreached_, np.arange(40, 60))
    np.testing.assert_allclose(clf.label_distributions_[40:], np.tile([0.75, 0.25], (20, 1)))
    np.testing.assert_array_equal(clf.transduction_[:40], np.repeat([0, 1], 20))
    return clf
