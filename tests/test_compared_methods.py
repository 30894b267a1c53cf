"""The simple strong methods of `lmssc compare`: each against a slow version, and what happens without a package."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.svm import SVC

from lmssc import compare
from lmssc.cli import main
from lmssc.data import present_rows
from lmssc.data.graph_view import LinkRows
from lmssc.data.view import RawView
from lmssc.datasets import make_multiview
from lmssc.evaluation import peers
from lmssc.evaluation.methods import BUILT_IN, fit_and_answer, resolve_methods, scaled_concatenation

NEW = (
    "SVC (mean kernel)", "LogisticRegression (late fusion)", "Ridge", "RandomForest", "SelfTraining",
    "Diffusion (scikit-network)", "Poisson (graphlearning)",
)  # fmt: skip
OTHER_LIBRARIES = NEW[-2:]


def problem(n_classes=3, seed=0, **options):
    data = make_multiview(120, n_classes=n_classes, n_features=8, random_state=seed, **options)
    labels = np.where(np.arange(120) % 3 == 0, data.target, -1)
    raws = [RawView(f"v{i}", view, None) for i, view in enumerate(data.views)]
    return raws, labels, data.target


def answer(name, raws, labels):
    return fit_and_answer(BUILT_IN[name](0), raws, labels, scaled_concatenation(raws))


def test_links_that_are_read_in_several_batches_are_features(monkeypatch):
    """Some rows of the links keep all columns; ACM failed, whose links are read in 35 batches."""
    monkeypatch.setattr(present_rows, "VALUES_PER_BATCH", 100)
    links = sparse.random_array((40, 40), density=0.5, format="csr", random_state=0)
    found = scaled_concatenation([LinkRows("links", links, None)])
    expected = scaled_concatenation([RawView("links", links, None)])
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", NEW)
def test_distributions_and_answers_agree(name, n_classes):
    raws, labels, target = problem(n_classes)
    proba, predicted = answer(name, raws, labels)
    assert proba.shape == ((labels < 0).sum(), n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba >= 0).all()
    np.testing.assert_array_equal(predicted, proba.argmax(axis=1))
    assert (predicted == target[labels < 0]).mean() > 1.5 / n_classes


def standardised(raws):
    return [(raw.data - raw.data.mean(0)) / raw.data.std(0) for raw in raws]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mean_kernel_by_loops(n_classes):
    raws, labels, _ = problem(n_classes)
    known, hidden = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    kernel = np.zeros((120, 120))
    for view in standardised(raws):
        centre = view[known].mean(axis=0)
        width = np.mean([np.sum((view[i] - centre) ** 2) for i in known])
        for i in range(120):
            kernel[i] += np.exp(-((view - view[i]) ** 2).sum(axis=1) / width) / len(raws)
    svc = SVC(kernel="precomputed").fit(kernel[np.ix_(known, known)], labels[known])
    decision = svc.decision_function(kernel[np.ix_(hidden, known)])
    expected = (
        1 / (1 + np.exp(-np.column_stack([-decision, decision]))) if n_classes == 2 else softmax(decision, axis=1)
    )
    np.testing.assert_allclose(answer("SVC (mean kernel)", raws, labels)[0], expected, atol=1e-6)


def test_late_fusion_by_hand():
    raws, labels, _ = problem()
    known, hidden = labels >= 0, labels < 0
    models = [LogisticRegression(max_iter=2000).fit(view[known], labels[known]) for view in standardised(raws)]
    each = [model.predict_proba(view[hidden]) for model, view in zip(models, standardised(raws), strict=True)]
    np.testing.assert_allclose(
        answer("LogisticRegression (late fusion)", raws, labels)[0], sum(each) / len(each), atol=1e-6
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ridge_is_that_of_scikit_learn(n_classes):
    raws, labels, _ = problem(n_classes)
    known, hidden = labels >= 0, labels < 0
    rows = scaled_concatenation(raws)
    plain = RidgeClassifierCV(alphas=[10.0**power for power in range(-3, 6)]).fit(rows[known], labels[known])
    proba, predicted = answer("Ridge", raws, labels)
    np.testing.assert_array_equal(predicted, plain.predict(rows[hidden]))
    np.testing.assert_array_equal(proba.argmax(axis=1), plain.predict(rows[hidden]))


def test_poisson_by_a_dense_solve():
    """L u = Σ_j δ_j (y_j − ȳ), up to a constant of each class and the tolerance of the library."""
    raws, labels, _ = problem(2)
    rows = np.asarray(scaled_concatenation(raws))
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    weights = np.zeros((120, 120))
    for i in range(120):
        near = np.argsort(distances[i], kind="stable")[:10]
        weights[i, near] = np.exp(-4 * distances[i, near] ** 2 / distances[i, near[-1]] ** 2)
    weights = (weights + weights.T) / 2
    source = np.zeros((120, 2))
    known = np.flatnonzero(labels >= 0)
    source[known, labels[known]] = 1
    source[known] -= source[known].mean(axis=0)
    scores = np.linalg.pinv(np.diag(weights.sum(axis=0)) - weights) @ source
    clf = peers.Poisson().fit(rows, labels)
    gap = np.log(clf.label_distributions_[:, 1] / clf.label_distributions_[:, 0])
    by_hand = scores[:, 1] - scores[:, 0]
    assert np.corrcoef(gap, by_hand)[0, 1] > 0.9999


def test_a_part_of_the_graph_without_labels_is_no_sure_answer():
    """Two far groups, labels in one: the diffusion never reaches the other."""
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 100])
    labels = np.where(np.arange(80) < 10, np.arange(80) % 2, -1)
    proba, _ = answer("Diffusion (scikit-network)", [RawView("a", rows, None)], labels)
    np.testing.assert_allclose(proba[30:], 0.5)


def test_sparse_and_missing_views():
    data = make_multiview(120, n_features=60, missing=0.2, sparse=[True, False, False], random_state=1)
    result = compare(data.views, data.target, list(NEW), rates=[0.3], repeats=1)
    assert {record["error"] for record in result.records} == {""}


def test_identical_rows_have_weights():
    rows = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 12, axis=0)
    labels = np.where(np.arange(60) % 12 == 0, np.arange(60) // 12 % 2, -1)
    for name in OTHER_LIBRARIES:
        proba, _ = answer(name, [RawView("a", sparse.csr_array(rows), None)], labels)
        assert np.isfinite(proba).all()


class TestWithoutThePackages:
    @pytest.fixture(autouse=True)
    def _absent(self, monkeypatch):
        monkeypatch.setattr(peers, "find_spec", lambda module: None)

    def test_all_methods_are_those_that_can_run(self):
        names = list(resolve_methods(None, ["a"], 0))
        assert not {*OTHER_LIBRARIES} & {*names}
        assert {*NEW[:-2]} < {*names}

    def test_a_name_says_what_to_install(self):
        with pytest.raises(ImportError, match=r"'Poisson \(graphlearning\)' needs graphlearning: pip install"):
            resolve_methods(["Poisson (graphlearning)"], ["a"], 0)

    def test_the_command_says_what_is_left_out(self, tmp_path, capsys, monkeypatch):
        np.savez(tmp_path / "d.npz", a=np.arange(20.0)[:, None] + [0, 0.5], y=np.arange(20) // 10)
        words = ["compare", str(tmp_path / "d.npz"), "--rates", "0.3", "--repeats", "1", "--out", str(tmp_path / "o")]
        keep = {name: BUILT_IN[name] for name in ("1-NN", *OTHER_LIBRARIES)}
        monkeypatch.setattr("lmssc.evaluation.methods.METHOD_NAMES", tuple(keep))
        assert main(words) == 0
        assert "not compared: Diffusion (scikit-network), Poisson (graphlearning)" in capsys.readouterr().out
        assert main([*words, "--methods", "Diffusion (scikit-network)"]) == 2
        assert "needs scikit-network" in capsys.readouterr().err
