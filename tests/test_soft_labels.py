"""Labels that are not certain: distributions as labels, and a trust in each label."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from lmssc import GFHF, LMSSC, stack_views
from lmssc.core.laplacian import laplacian
from lmssc.core.propagation import propagate
from lmssc.core.targets import Targets
from lmssc.datasets import make_multiview
from oracles import dense_laplacian, dense_system_scores


@pytest.fixture(scope="module")
def data():
    return make_multiview(150, labelled=0.3, random_state=0)


def one_hot(y):
    return (y[:, None] == np.arange(3)).astype(float)


def test_certain_distributions_are_plain_labels(data):
    plain = LMSSC(max_iter=2).fit(data.views, data.y)
    soft = LMSSC(max_iter=2).fit(data.views, one_hot(data.y))
    np.testing.assert_array_equal(soft.label_distributions_, plain.label_distributions_)
    weighted = LMSSC(max_iter=2).fit(data.views, data.y, sample_weight=np.ones(150))
    np.testing.assert_array_equal(weighted.label_distributions_, plain.label_distributions_)


def test_a_soft_label_is_the_answer_of_its_sample(data):
    shares = one_hot(data.y)
    i = int(np.flatnonzero(data.y == 0)[0])
    shares[i] = [0.6, 0.4, 0.0]
    for clf in (LMSSC(max_iter=2), GFHF()):
        clf.fit(data.views, shares)
        np.testing.assert_allclose(clf.label_distributions_[i], [0.6, 0.4, 0.0], atol=1e-6)
    X, views = stack_views(data.views)
    again = LMSSC(max_iter=2, views=views).fit(X, shares)
    np.testing.assert_allclose(again.label_distributions_[i], [0.6, 0.4, 0.0], atol=1e-6)


def test_columns_of_a_frame_are_the_classes(data):
    frame = pd.DataFrame(one_hot(data.y)[:, [2, 0, 1]], columns=["c", "a", "b"])
    frame.loc[data.y < 0] = np.nan
    clf = LMSSC(max_iter=1).fit(data.views, frame)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    given = data.y >= 0
    assert (clf.transduction_[given] == np.array(["a", "b", "c"])[data.y[given]]).all()


def test_labels_without_trust_do_not_count(data):
    i = int(np.flatnonzero(data.y >= 0)[0])
    weights = np.ones(150)
    weights[i] = 0
    y = data.y.copy()
    y[i] = -1
    one = LMSSC(max_iter=2).fit(data.views, data.y, sample_weight=weights)
    other = LMSSC(max_iter=2).fit(data.views, y)
    np.testing.assert_array_equal(one.label_distributions_, other.label_distributions_)


def test_a_label_that_is_hardly_trusted_is_overruled(data):
    i = int(np.flatnonzero(data.y == 0)[0])
    y, weights = data.y.copy(), np.ones(150)
    y[i], weights[i] = 1, 0.02
    clf = LMSSC(max_iter=3).fit(data.views, y, sample_weight=weights)
    assert clf.overruled_.tolist() == [i]
    assert clf.transduction_[i] == 0
    assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[0]).all()


@pytest.mark.parametrize("seed", range(6))
def test_uncertain_labels_are_springs(seed):
    rng = np.random.default_rng(seed)
    S = rng.random((20, 20)) * (rng.random((20, 20)) < 0.15)
    np.fill_diagonal(S, 0)
    codes = np.where(rng.random(20) < 0.4, rng.integers(3, size=20), -1)
    codes[0] = 0
    trust = np.where(rng.random(20) < 0.6, rng.uniform(0.05, 3, 20), np.inf)
    targets = Targets.from_codes(codes, 3)
    targets = Targets(targets.codes, 3, targets.mixed, targets.shares, targets.counts, trust)
    found = propagate(laplacian(sparse.csr_array(S)), targets)
    mu = np.where(codes >= 0, trust, 0.0)
    expected = dense_system_scores(dense_laplacian(S), targets.matrix(np.dtype(float)), mu)
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def rows(data, **changes):
    shares = one_hot(data.y)
    for row, values in changes.items():
        shares[int(row[1:])] = values
    return shares


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        (lambda d: rows(d, r3=[0.5, 0.2, 0.0]), None, "row 3 of y is not a distribution"),
        (lambda d: rows(d, r3=[1.5, -0.5, 0.0]), None, "row 3 of y is not a distribution"),
        (
            lambda d: np.hstack([one_hot(d.y), np.zeros((150, 1))]),
            None,
            "class 3 is not the most likely class in any row",
        ),
        (lambda d: one_hot(d.y)[:-1], None, "150 rows, y has 149"),
        (lambda d: d.y, np.ones(149), "sample_weight has the shape"),
        (lambda d: d.y, ["high"] * 150, "sample_weight must be numbers"),
        (lambda d: d.y, np.full(150, -1.0), "from 0 .* to 1"),
        (lambda d: d.y, np.zeros(150), "sample_weight is all zeros"),
        (lambda d: d.y, (np.arange(150) == 0) + 0.0, "sample_weight is 0 for all labels of class"),
    ],
)
def test_what_is_refused(data, y, weights, message):
    with pytest.raises(ValueError, match=message):
        LMSSC().fit(data.views, y(data), sample_weight=weights)


def test_a_score_needs_labels(data):
    clf = LMSSC(max_iter=1).fit(data.views, data.y)
    with pytest.raises(ValueError, match="y has 3 columns: score needs one true label"):
        clf.score(data.views, one_hot(data.y))
