"""`compare`: the same splits for all, honest scores, nothing lost when it is killed."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from lmssc import GFHF, compare
from lmssc.cli import main
from lmssc.datasets import make_multiview
from lmssc.evaluation.methods import METHOD_NAMES, resolve_methods
from lmssc.evaluation.runs import source_digest
from lmssc.evaluation.splits import stratified_split
from lmssc.metrics import METRICS, expected_calibration_error, paired_p_value, score


class SeesEverything(ClassifierMixin, BaseEstimator):
    """Remembers what it was shown."""

    seen = []  # noqa: RUF012

    def fit(self, X, y):
        self.seen.append((X.shape, np.array(y)))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X):
        return np.eye(len(self.classes_))[np.zeros(len(X), int)]


class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no, thanks\nreally")


class OnlyPredicts(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


CHANGING = """
from sklearn.base import BaseEstimator, ClassifierMixin
import numpy as np

class Base(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.eye(len(self.classes_))[self.predict(X)]

class Changing(Base):
    def predict(self, X):
        return np.full(len(X), ANSWER)
"""


@pytest.fixture(scope="module")
def data():
    return make_multiview(120, random_state=0)


class TestSplits:
    def test_shares_of_each_class(self):
        codes = np.repeat([0, 1, 2], [50, 30, 3])
        order, given = stratified_split(codes, 0.2, seed=3)
        assert sorted(order) == list(range(83))
        assert np.bincount(codes[order][given]).tolist() == [10, 6, 1]
        assert np.any(np.diff(codes[order]) < 0)  # not sorted by class

    def test_seed_decides(self):
        codes = np.repeat([0, 1], 20)
        one, two, other = (stratified_split(codes, 0.5, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one.order, two.order)
        assert (one.order != other.order).any()


class TestScores:
    def test_calibration_error_by_hand(self):
        confidence = np.array([0.95, 0.95, 0.95, 0.95, 0.55, 0.55])
        right = np.array([1, 1, 1, 0, 1, 0])
        by_hand = 4 / 6 * abs(0.95 - 0.75) + 2 / 6 * abs(0.55 - 0.5)
        assert expected_calibration_error(right, confidence) == pytest.approx(by_hand)

    def test_constant_answer_on_unbalanced_classes(self):
        truth = np.repeat([0, 1], [90, 10])
        scores = score(truth, np.tile([0.9, 0.1], (100, 1)), np.zeros(100, int))
        assert scores["accuracy"] == 0.9
        assert scores["balanced_accuracy"] == 0.5
        assert scores["macro_f1"] == pytest.approx(0.5 * 2 * 0.9 / 1.9)
        assert scores["calibration_error"] == pytest.approx(0)
        assert scores["log_loss"] == pytest.approx(log_loss(truth, np.tile([0.9, 0.1], (100, 1))))


class TestPairedTest:
    def test_agrees_with_the_formula(self):
        one, other = {0: 0.9, 1: 0.8, 2: 0.85, 7: 0.1}, {2: 0.8, 0: 0.85, 1: 0.79}
        lead = np.array([0.05, 0.01, 0.05])
        statistic = lead.mean() / (lead.std(ddof=1) / np.sqrt(3))
        assert paired_p_value(one, other) == pytest.approx(2 * stats.t.sf(statistic, df=2))

    def test_no_spread_but_rounding(self):
        one = {split: 100 * score for split, score in enumerate((0.90, 0.92, 0.95))}
        assert paired_p_value(one, {split: score - 40 for split, score in one.items()}) == 0
        assert paired_p_value(one, dict(one)) == 1
        assert np.isnan(paired_p_value({0: 1.0}, {0: 0.5}))


class TestCompare:
    def test_all_built_in_methods_run(self, data):
        result = compare(data.views, data.target, rates=[0.2], repeats=1)
        assert {record["error"] for record in result.records} == {""}
        assert len(result.records) == len(METHOD_NAMES) - 1 + 3  # GFHF once a view
        for record in result.records:
            assert 0.3 < record["accuracy"] <= 1
            assert all(np.isfinite(record[metric]) for metric in METRICS)
            assert record["fit_seconds"] > 0

    def test_every_method_gets_the_same_labels_and_supervised_ones_no_more(self, data):
        SeesEverything.seen.clear()
        compare(data.views, data.target, {"a": SeesEverything(), "b": SeesEverything()}, rates=[0.25], repeats=2)
        (shape, y), (_, same), (_, other), _ = SeesEverything.seen
        assert shape == (len(y), 60)
        assert len(y) == sum(round(0.25 * n) for n in np.bincount(data.target))
        np.testing.assert_array_equal(y, same)
        assert (y != other).any()

    def test_scores_are_those_of_the_method_itself(self, data):
        result = compare(data.views, data.target, {"nb": GaussianNB()}, rates=[0.3], repeats=1, random_state=5)
        order, given = stratified_split(data.target, 0.3, 5)
        X = np.hstack([(v - v.mean(0)) / v.std(0) for v in data.views])[order]
        clf = GaussianNB().fit(X[given], data.target[order][given])
        right = clf.score(X[~given], data.target[order][~given])
        assert result.records[0]["accuracy"] == pytest.approx(right)

    def test_a_failure_is_a_row_and_not_the_end(self, data):
        result = compare(data.views, data.target, {"bad": Broken(), "1-NN": None}, rates=[0.2], repeats=2)
        bad, good = result.records[:2]
        assert bad["error"] == "RuntimeError: no, thanks really"
        assert np.isnan(bad["accuracy"])
        assert good["error"] == ""
        assert "failed" in result.table()

    def test_a_mean_over_some_splits_is_marked(self, data):
        result = compare(data.views, data.target, ["1-NN", "SVC (RBF)"], rates=[0.2], repeats=3)
        worst = min(result.records[::2], key=lambda record: record["accuracy"])
        worst["error"] = "no"
        one, other = result.summary()
        assert (one["n"], one["n_failed"], other["n"], other["n_failed"]) == (2, 1, 3, 0)
        cells = [line.partition("  ")[2].strip() for line in result.table().splitlines()[1:]]
        assert cells[0].startswith(f"(2 of 3) {100 * one['mean']:.1f} ±")
        assert cells[1].startswith(f"{100 * other['mean']:.1f} ±")

    def test_a_pipeline_around_a_semi_supervised_method_sees_all_rows(self, data):
        spreading = LabelSpreading(kernel="knn")
        methods = {
            "alone": spreading,
            "in steps": make_pipeline("passthrough", make_pipeline("passthrough", spreading)),
        }
        result = compare(data.views, data.target, methods, rates=[0.1], repeats=1)
        alone, steps = [[record[metric] for metric in METRICS] for record in result.records]
        assert alone == steps
        supervised = make_pipeline("passthrough", SeesEverything())
        SeesEverything.seen.clear()
        compare(data.views, data.target, {"a": supervised}, rates=[0.1], repeats=1)
        assert SeesEverything.seen[0][0][0] == sum(round(0.1 * n) for n in np.bincount(data.target))

    def test_a_pipeline_of_ours_sees_all_rows(self, data):
        result = compare(data.views, data.target, {"a": make_pipeline("passthrough", GFHF())}, rates=[0.1], repeats=1)
        assert result.records[0]["error"] == ""
        assert result.records[0]["accuracy"] > 0.5

    def test_scores_need_a_column_for_each_class(self):
        data = make_multiview(120, n_classes=4, random_state=0)
        methods = {
            "by pairs": SVC(decision_function_shape="ovo"),
            "right": SVC(),
            "no scores": OnlyPredicts(),
        }
        pairs, right, none = compare(data.views, data.target, methods, rates=[0.3], repeats=1).records
        assert re.match(
            r"ValueError: SVC returns scores of shape \(\d+, 6\) for \d+ rows and 4 classes", pairs["error"]
        )
        assert right["error"] == ""
        assert none["error"].endswith("has neither predict_proba nor decision_function")

    def test_parallel_gives_the_same(self, data):
        one, two = (
            compare(data.views, data.target, ["GFHF (concatenated)", "1-NN"], rates=[0.2], repeats=3, n_jobs=n)
            for n in (1, 2)
        )
        assert [r["accuracy"] for r in one.records] == [r["accuracy"] for r in two.records]

    def test_summary_and_tables(self, data):
        result = compare(data.views, data.target, ["LMSSC", "1-NN"], rates=[0.1, 0.3], repeats=3)
        rows = result.summary()
        assert [(row["rate"], row["method"]) for row in rows] == [
            (0.1, "LMSSC"), (0.1, "1-NN"), (0.3, "LMSSC"), (0.3, "1-NN"),
        ]  # fmt: skip
        accuracies = [r["accuracy"] for r in result.records if (r["method"], r["rate"]) == ("LMSSC", 0.1)]
        assert rows[0]["mean"] == pytest.approx(np.mean(accuracies))
        assert rows[0]["std"] == pytest.approx(np.std(accuracies, ddof=1))
        assert sum(row["best"] for row in rows) == 2
        assert all(np.isnan(row["p_value"]) == row["best"] for row in rows)
        assert len(result.table().splitlines()) == 3
        assert result.table(markdown=True).splitlines()[1] == "| --- | --- | --- |"
        lowest = next(row for row in result.summary("log_loss") if row["best"] and row["rate"] == 0.1)
        assert lowest["mean"] == min(row["mean"] for row in result.summary("log_loss")[:2])
        frame = result.to_frame()
        assert len(frame) == 12
        assert set(METRICS) <= set(frame.columns)

    def test_missing_views_and_sparse_ones(self):
        data = make_multiview(120, n_features=60, missing=0.2, sparse=[True, False, False], random_state=1)
        result = compare(data.views, data.target, rates=[0.3], repeats=1)
        assert {record["error"] for record in result.records} == {""}

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"methods": ["LMSCC"]}, "unknown method 'LMSCC'"),
            ({"methods": []}, "methods is empty"),
            ({"methods": {"x": 3}}, "'x' must be a scikit-learn classifier"),
            ({"rates": [0.1, 1.5]}, "rates must be between 0 and 1"),
            ({"rates": []}, "at least one rate"),
            ({"repeats": 0}, "at least one rate and one repeat"),
            ({"random_state": -1}, "random_state"),
        ],
    )
    def test_bad_arguments(self, data, change, message):
        with pytest.raises((ValueError, TypeError), match=message):
            compare(data.views, data.target, **{"methods": ["1-NN"], **change})

    def test_unlabelled_rows_cannot_be_scored(self, data):
        y = data.target.copy()
        y[7] = -1
        with pytest.raises(ValueError, match="row 7 has no label"):
            compare(data.views, y, ["1-NN"])

    def test_names_of_single_views(self):
        assert list(resolve_methods(["GFHF (view b)"], ["a", "b"], 0)) == ["GFHF (view b)"]


class TestDisk:
    def test_a_second_start_does_only_what_is_missing(self, data, tmp_path):
        SeesEverything.seen.clear()
        arguments = {"rates": [0.2], "out": tmp_path}
        compare(data.views, data.target, {"a": SeesEverything()}, repeats=2, **arguments)
        assert len(SeesEverything.seen) == 2
        result = compare(data.views, data.target, {"a": SeesEverything()}, repeats=3, **arguments)
        assert len(SeesEverything.seen) == 3
        assert len(result.records) == 3
        # Other data or other parameters are other runs.
        compare(data.views, data.target[::-1], {"a": SeesEverything()}, repeats=1, **arguments)
        assert len(SeesEverything.seen) == 4
        knn = [compare(data.views, data.target, {"a": KNeighborsClassifier(k)}, repeats=1, **arguments) for k in (1, 9)]
        assert knn[0].records[0]["log_loss"] != knn[1].records[0]["log_loss"]

    @pytest.mark.parametrize("written", [True, False])
    def test_a_method_whose_code_changed_runs_again(self, data, tmp_path, monkeypatch, written):
        """Also inside a pipeline, and if the source cannot be read, as that of a class typed into an interpreter."""

        def accuracy(answer, wrap):
            path = tmp_path / f"changing{answer}.py"
            source = CHANGING.replace("ANSWER", str(answer))
            if written:
                path.write_text(source)
            module = types.ModuleType("changing")
            module.__file__ = str(path)
            monkeypatch.setitem(sys.modules, "changing", module)
            exec(compile(source, str(path), "exec"), vars(module))
            method = {"a": wrap(module.Changing())}
            y = np.minimum(data.target, 1)
            record = compare(data.views, y, method, rates=[0.2], repeats=1, out=tmp_path).records[0]
            assert record["error"] == ""
            return record["accuracy"], len(list(tmp_path.glob("runs/*.json")))

        for n_runs, wrap in ((0, lambda method: method), (2, lambda method: make_pipeline("passthrough", method))):
            (zeros, first), (same, again), (ones, last) = (accuracy(answer, wrap) for answer in (0, 0, 1))
            assert zeros == same != ones
            assert (first, again, last) == (n_runs + 1, n_runs + 1, n_runs + 2)

    def test_methods_of_the_libraries_keep_their_key(self):
        assert source_digest(GFHF()) == source_digest(make_pipeline("passthrough", SVC())) == ""
        assert source_digest(Broken()) != source_digest(OnlyPredicts())

    def test_csv(self, data, tmp_path):
        compare(data.views, data.target, {"a, b": Broken(), "1-NN": None}, rates=[0.2], repeats=1, out=tmp_path)
        with open(tmp_path / "runs.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["method"] for row in rows] == ["a, b", "1-NN"]
        assert rows[0]["accuracy"] == ""
        assert float(rows[1]["accuracy"]) > 0.5

    def test_killed_and_started_again(self, data, tmp_path):
        np.savez(tmp_path / "d.npz", one=data.views[0], two=data.views[1], y=data.target)
        words = ["compare", str(tmp_path / "d.npz"), "--methods", "LMSSC", "GFHF (concatenated)", "1-NN", "SVC (RBF)"]
        words += ["--rates", "0.1", "0.3", "--repeats", "3", "--quiet", "--out"]
        command = [sys.executable, "-m", "lmssc", *words, str(tmp_path / "killed"), "--jobs", "2"]
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while len(list((tmp_path / "killed").glob("runs/*.json"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        done = len(list((tmp_path / "killed").glob("runs/*.json")))
        assert 3 <= done < 24
        assert not (tmp_path / "killed" / "runs.csv").exists()
        for path in (tmp_path / "killed").glob("runs/*.json"):
            json.loads(path.read_text())
        for folder in ("killed", "whole"):
            assert main([*words, str(tmp_path / folder)]) == 0
        assert self.without_cost(tmp_path / "killed") == self.without_cost(tmp_path / "whole")

    @staticmethod
    def without_cost(folder):
        """The CSV but for what no two runs have alike: seconds and memory."""
        with open(folder / "runs.csv", newline="") as file:
            return [
                {key: value for key, value in row.items() if key not in ("fit_seconds", "peak_megabytes")}
                for row in csv.DictReader(file)
            ]


class TestCommand:
    def test_file_of_arrays(self, data, tmp_path, capsys):
        np.savez(tmp_path / "d.npz", one=data.views[0], two=data.views[1], y=data.target)
        words = ["compare", str(tmp_path / "d.npz"), "--methods", "1-NN", "LMSSC", "--rates", "0.2", "--repeats", "2"]
        assert main([*words, "--out", str(tmp_path / "o"), "--markdown"]) == 0
        printed = capsys.readouterr().out
        assert "| LMSSC |" in printed
        assert "4 runs (0 failed)" in printed

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["nothing"], "DATA must be"),
            (["nothing.csv"], "nothing.csv: no such file"),
            (["absent.npz"], "absent.npz"),
            (["digits", "--methods", "LMSCC"], "unknown method 'LMSCC'"),
            (["digits", "--rates", "2"], "rates must be between 0 and 1"),
            (["digits", "--metric", "auc"], "--metric auc"),
        ],
    )
    def test_bad_calls(self, words, message, tmp_path, capsys):
        assert main(["compare", *words, "--out", str(tmp_path / "o")]) == 2
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize("content", [b"junk", b"", b"PK\x03\x04 cut short"])
    def test_damaged_file(self, content, tmp_path, capsys):
        (tmp_path / "d.npz").write_bytes(content)
        assert main(["compare", str(tmp_path / "d.npz"), "--out", str(tmp_path / "o")]) == 2
        assert "d.npz" in capsys.readouterr().err

    def test_names_are_listed(self, capsys):
        with pytest.raises(SystemExit):
            main(["compare", "--list-methods"])
        assert capsys.readouterr().out.splitlines() == list(METHOD_NAMES)
