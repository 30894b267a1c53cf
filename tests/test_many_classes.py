"""Very many classes: sparse scores against dense ones, and what a model with sparse distributions does and refuses."""

import numpy as np
import pytest
from scipy import sparse

import lmssc
from lmssc import LMSSC
from lmssc.core import many_classes
from lmssc.core.calibration import fit_calibration
from lmssc.core.class_codes import CodedTargets, class_codes, label_matrix
from lmssc.core.graph import learn_graph
from lmssc.core.laplacian import laplacian
from lmssc.core.prior_correction import balance
from lmssc.core.propagation import propagate
from lmssc.core.sparse_scores import (
    balance_sparsely,
    calibrate_sparsely,
    fit_sparse_calibration,
    largest_entries,
    propagate_sparsely,
)
from lmssc.core.targets import Targets

N_CLASSES = 60


@pytest.fixture(scope="module")
def data():
    """Classes of five samples, two of them labelled."""
    rng = np.random.default_rng(0)
    target = rng.permutation(np.repeat(np.arange(N_CLASSES), 5))
    X = rng.normal(size=(N_CLASSES, 12))[target] @ rng.normal(size=(12, 30)) + 0.6 * rng.normal(size=(300, 30))
    y = np.full(300, -1)
    for code in range(N_CLASSES):
        y[np.flatnonzero(target == code)[:2]] = code
    return [X[:, :12], X[:, 12:]], target, y


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(many_classes, "MIN_CLASSES", 10)
    monkeypatch.setattr(many_classes, "MAX_DENSE_SCORES", 1000)


@pytest.fixture
def problem(data):
    views, _, y = data
    L = laplacian(learn_graph(np.hstack(views), 6, 1.0)[0])
    return L, Targets.from_codes(y, N_CLASSES)


class TestScores:
    def test_propagation_is_that_of_the_dense_solver(self, problem):
        found, unreached = propagate_sparsely(*problem)
        np.testing.assert_allclose(found.toarray(), propagate(*problem).scores, atol=1e-6)
        assert not unreached.any()

    def test_samples_that_no_label_reaches(self):
        L = laplacian(sparse.csr_array(([1.0, 1.0], ([0, 2], [1, 3])), shape=(4, 4)))
        targets = Targets.from_labels(np.array([0, 0, 0]), np.array([0, 0, 1]), 4, 2)
        found, unreached = propagate_sparsely(L, targets)
        dense = propagate(L, targets)
        np.testing.assert_array_equal(unreached, dense.unreached)
        np.testing.assert_allclose(found.toarray(), dense.scores, atol=1e-6)

    def test_balance_and_calibration(self, problem):
        scores = propagate(*problem).scores
        codes = problem[1].codes
        found = balance_sparsely(sparse.csr_array(scores), codes, 0.5)
        np.testing.assert_allclose(found.toarray(), balance(scores, codes, 0.5), atol=1e-12)
        rows = np.flatnonzero(codes < 0)
        answers = np.eye(N_CLASSES)[scores[rows].argmax(axis=1)]
        some = found[rows]
        one = fit_sparse_calibration(some, sparse.csr_array(answers))
        other = fit_calibration(some.toarray(), answers)
        assert one.temperature == pytest.approx(other.temperature, rel=1e-6)
        assert one.doubt == pytest.approx(other.doubt, abs=1e-6)
        listed = calibrate_sparsely(some, one).toarray()
        np.testing.assert_allclose(listed[listed > 0], other(some.toarray())[listed > 0], atol=1e-6)

    def test_ties_go_to_the_first(self):
        matrix = sparse.csr_array(np.full((2, 5), 0.2))
        np.testing.assert_array_equal(largest_entries(matrix, 2).indices, [0, 1, 0, 1])


def test_codes_keep_distances(data):
    codes = class_codes(500)
    squares = ((codes[:, None] - codes[None, :20]) ** 2).sum(axis=2)
    assert abs(np.sort(squares.ravel())[20:] - 2).max() < 0.7
    coded = CodedTargets.of(Targets.from_codes(data[2], N_CLASSES))
    some = coded.take(np.arange(50))
    assert isinstance(some, CodedTargets)
    np.testing.assert_allclose(some.matrix(np.dtype(float)), coded.matrix(np.dtype(float))[:50])
    np.testing.assert_allclose(coded.frequencies, class_codes(N_CLASSES).mean(axis=0), atol=1e-6)


@pytest.mark.usefixtures("few_are_many")
class TestModel:
    def test_answers_are_those_of_a_dense_fit(self, data, monkeypatch):
        views, target, y = data
        clf = LMSSC().fit(views, y)
        monkeypatch.setattr(many_classes, "MIN_CLASSES", 1000)
        dense = LMSSC().fit(views, y)
        unlabelled = y == -1
        right = [(one.transduction_ == target)[unlabelled].mean() for one in (clf, dense)]
        assert abs(right[0] - right[1]) < 0.03
        assert (clf.transduction_ == dense.transduction_).mean() > 0.95
        assert (np.diff(clf.objective_) <= 1e-9 * clf.objective_[0]).all()

    def test_distributions(self, data):
        views, _, y = data
        clf = LMSSC().fit(views, y)
        found = clf.label_distributions_
        assert isinstance(found, sparse.csr_array)
        sums = found.sum(axis=1)
        assert (sums <= 1 + 1e-9).all()
        assert (sums > 0).all()
        assert np.diff(found.indptr).max() <= 64
        np.testing.assert_array_equal(clf.classes_[found.toarray().argmax(axis=1)], clf.transduction_)
        labelled = y >= 0
        np.testing.assert_array_equal(
            found[labelled].toarray(), label_matrix(Targets.from_codes(y[labelled], 60)).toarray()
        )

    @pytest.mark.filterwarnings("ignore:most new samples have far larger values")
    def test_new_samples_and_files(self, data, tmp_path):
        views, _, y = data
        clf = LMSSC().fit(views, y)
        np.testing.assert_array_equal(clf.predict(views), clf.transduction_)
        near = [view + 1e-3 for view in views]
        proba = clf.predict_proba(near)
        assert isinstance(proba, sparse.csr_array)
        assert (clf.predict(near) == clf.transduction_).mean() > 0.9
        far = clf.predict_proba([view[:3] + 1e3 for view in views])
        assert far.sum(axis=1).max() < 1e-6
        clf.save(tmp_path / "model.lmssc")
        again = lmssc.load(tmp_path / "model.lmssc")
        np.testing.assert_array_equal(again.predict_proba(near).toarray(), proba.toarray())

    def test_order_changes_nothing(self, data):
        views, _, y = data
        clf = LMSSC().fit(views, y)
        rows = np.random.default_rng(1).permutation(len(y))
        names = np.random.default_rng(2).permutation(N_CLASSES)
        other = LMSSC().fit([view[rows] for view in views[::-1]], np.where(y[rows] >= 0, names[y[rows]], -1))
        np.testing.assert_array_equal(other.transduction_, names[clf.transduction_][rows])
        np.testing.assert_array_equal(
            other.label_distributions_.toarray()[:, names], clf.label_distributions_.toarray()[rows]
        )

    def test_what_is_refused(self, data, tmp_path):
        views, _, y = data
        for parameters, words in [({"label_noise": 0.1}, "label_noise"), ({"second_opinion": 0.5}, "second_opinion")]:
            with pytest.raises(ValueError, match=f"60 classes of 300 distinct samples.*{words}"):
                LMSSC(**parameters).fit(views, y)
        clf = LMSSC().fit(views, y)
        assert len(clf.most_uncertain(5)) == len(clf.most_informative(5)) == 5
        for ask in (
            lambda: clf.explain([0]),
            lambda: clf.suspect_labels(),
            lambda: clf.partial_update([view[:1] + 1 for view in views]),
            lambda: clf.report(tmp_path / "report.html"),
        ):
            with pytest.raises(ValueError, match="needs a dense array of 300 samples × 60 classes"):
                ask()

    def test_one_label_per_class_is_told_of(self, data):
        views, _, y = data
        single = np.full_like(y, -1)
        first = np.unique(y[y >= 0], return_index=True)[1]
        single[np.flatnonzero(y >= 0)[first]] = y[y >= 0][first]
        with pytest.warns(UserWarning, match="no class has two labels.*not calibrated"):
            LMSSC().fit(views, single)
