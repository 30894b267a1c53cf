"""`lmssc reproduce`: each column is what it says, nothing is done twice, nothing is lost when it is stopped."""

import csv
import json
import signal
import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from lmssc import GFHF, LMSSC, LMSSCCV, compare
from lmssc.cli import main
from lmssc.datasets import make_multiview
from lmssc.evaluation import runs
from lmssc.paper import reproduction as module
from lmssc.paper.reproduction import GRIDS, METHODS, reproduce
from lmssc.paper.tables import COLUMNS, RUN_COLUMNS, read_tables

FAST = ["GFHF (concatenated)", "GFHF (view v)", "1-NN", "constant answer"]


def small(name="sonar"):
    """Data of the size of a test, in place of a real data set."""
    data = make_multiview(90, n_features=12, noise_views=1, random_state=len(name))
    return SimpleNamespace(views=data.views, view_names=["a", "b", "c"], target=data.target)


@pytest.fixture(autouse=True)
def _small_data(monkeypatch):
    monkeypatch.setattr(module, "load", small)


def read_runs(folder, **wanted):
    with open(folder / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def without_time(folder):
    return [{name: value for name, value in row.items() if name != "fit_seconds"} for row in read_runs(folder)]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """All columns of a few fast methods, and one of LMSSC, once for all tests."""
    folder = tmp_path_factory.mktemp("reproduce")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "load", small)
        reproduce(folder, ["sonar"], FAST, [0.1, 0.3], 3, tuned_repeats=2)
        rows = reproduce(folder, ["sonar"], ["LMSSC"], [0.1, 0.3], 3, columns=["fixed"]).rows
    return folder, rows


class TestColumns:
    def test_fixed_is_the_comparison_on_the_same_splits(self, done):
        folder, _ = done
        data = small()
        right = compare(dict(zip("abc", data.views, strict=True)), data.target, ["LMSSC", "1-NN"], [0.1, 0.3], 3)
        for record in right.records:
            (row,) = read_runs(
                folder, column="fixed", method=record["method"], rate=str(record["rate"]), repeat=str(record["repeat"])
            )
            assert float(row["accuracy"]) == pytest.approx(record["accuracy"], rel=1e-5)
            assert row["setting"] == "defaults"

    def test_cross_validated_is_the_search_on_the_labelled_rows(self, done):
        folder, _ = done
        data = small()
        views = dict(zip("abc", data.views, strict=True))
        for repeat in range(2):
            grid = [{name: [value] for name, value in setting.items()} for setting in ({}, *GRIDS["GFHF"])]
            search = LMSSCCV(estimator=GFHF(), param_grid=grid, n_repeats=1, margin=None, random_state=repeat)
            right = compare(views, data.target, {"cv": search}, [0.3], 1, random_state=repeat).records[0]
            (row,) = read_runs(folder, column="cv", method="GFHF (concatenated)", rate="0.3", repeat=str(repeat))
            assert float(row["accuracy"]) == pytest.approx(right["accuracy"], rel=1e-5)

    def test_best_by_test_is_the_best_of_the_grid(self, done):
        folder, _ = done
        data = small()
        views = dict(zip("abc", data.views, strict=True))
        grid = {str(k): GFHF(n_neighbors=k) for k in (5, 10, 15)}
        records = compare(views, data.target, grid, [0.1], 2).records
        for repeat in range(2):
            right = max(record["accuracy"] for record in records if record["repeat"] == repeat)
            (row,) = read_runs(
                folder, column="best-by-test", method="GFHF (concatenated)", rate="0.1", repeat=str(repeat)
            )
            assert float(row["accuracy"]) == pytest.approx(right, rel=1e-5)
            assert row["setting"] in ("n_neighbors=5", "n_neighbors=10", "n_neighbors=15")

    def test_best_by_test_is_never_below_what_was_chosen_from_the_grid(self, done):
        folder, _ = done
        for row in read_runs(folder, column="cv"):
            if row["setting"].startswith("n_"):
                same = {name: row[name] for name in ("method", "rate", "repeat")}
                (oracle,) = read_runs(folder, **same, column="best-by-test")
                assert float(oracle["accuracy"]) >= float(row["accuracy"])

    def test_chosen_columns_have_the_first_splits_and_methods_with_a_grid(self, done):
        folder, rows = done
        assert {row["repeat"] for row in read_runs(folder, column="cv")} == {"0", "1"}
        for row in rows:
            tuned = row["method"].startswith("GFHF")
            assert (row["fixed_n"], row["cv_n"], row["best_by_test_n"]) == (3, 2 * tuned, 2 * tuned)

    def test_one_label_in_a_class_keeps_the_defaults(self, tmp_path, monkeypatch):
        data = small()
        few = np.flatnonzero(data.target == 2)[4:]
        keep = np.setdiff1d(np.arange(90), few)  # 4 of the third class: one label at 30 %
        cut = SimpleNamespace(views=[v[keep] for v in data.views], view_names=["a", "b", "c"], target=data.target[keep])
        monkeypatch.setattr(module, "load", lambda name: cut)
        reproduce(tmp_path, ["bbc"], ["GFHF (concatenated)"], [0.3], 1, columns=["fixed", "cv"])
        fixed, cv = read_runs(tmp_path)
        assert cv["setting"] == "defaults, too few labels"
        assert cv["accuracy"] == fixed["accuracy"]
        assert len(list(tmp_path.glob("runs/*.json"))) == 1

    def test_a_grid_point_on_a_split_is_one_run(self, tmp_path):
        reproduce(tmp_path, ["sonar"], ["GFHF (concatenated)"], [0.3], 1)
        # The defaults and 3 points with all labels, shared by the columns, and 4 that are scored on held-out labels.
        assert len(list(tmp_path.glob("runs/*.json"))) == 8

    def test_cross_validated_alone_fits_the_chosen_setting_only(self, tmp_path):
        reproduce(tmp_path, ["sonar"], ["GFHF (concatenated)"], [0.3], 1, columns=["cv"])
        assert len(list(tmp_path.glob("runs/*.json"))) == 5

    def test_components_are_capped_by_the_data(self, tmp_path):
        data = runs.Data.read([np.random.default_rng(0).normal(size=(60, 30))], np.arange(60) % 2)
        case = module.Case("sonar", data, "LMSSC", LMSSC(), 0.1, 0, ["best-by-test"])
        assert {setting["n_components"] for setting in case.grid} == {20, 30}
        assert len(case.grid) == 18

    def test_all_methods_run(self, tmp_path):
        rows = reproduce(tmp_path, ["sonar"], None, [0.2], 1, columns=["fixed"]).rows
        assert [row["fixed_n"] for row in rows] == [1] * (len(METHODS) + 2)  # GFHF once a view
        assert {row["error"] for row in read_runs(tmp_path)} == {""}

    def test_methods_that_take_minutes_have_fewer_splits(self, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "SLOW", {("sonar", "1-NN")})
        rows = reproduce(tmp_path, ["sonar"], FAST, [0.2], 3, tuned_repeats=1, columns=["fixed"]).rows
        assert {row["method"]: row["fixed_n"] for row in rows if "view" not in row["method"]} == {
            "GFHF (concatenated)": 3,
            "1-NN": 1,
            "constant answer": 3,
        }
        assert "Fewer splits: 1-NN at 20 % (1)." in (tmp_path / "tables.md").read_text()


class TestTables:
    def test_means_intervals_and_tests(self, done):
        folder, rows = done
        by_method = {row["method"]: row for row in rows if row["rate"] == 0.3}
        values = {}
        for method in ("LMSSC", "1-NN"):
            found = read_runs(folder, column="fixed", method=method, rate="0.3")
            values[method] = np.array([100 * float(record["accuracy"]) for record in found])
        row, knn = by_method["LMSSC"], values["1-NN"]
        assert row["fixed_mean"] == pytest.approx(values["LMSSC"].mean(), rel=1e-5)
        assert by_method["1-NN"]["fixed_std"] == pytest.approx(knn.std(ddof=1), rel=1e-4)
        low, high = stats.t.interval(0.95, 2, loc=knn.mean(), scale=stats.sem(knn))
        assert by_method["1-NN"]["fixed_ci_low"] == pytest.approx(low, rel=1e-4)
        assert by_method["1-NN"]["fixed_ci_high"] == pytest.approx(high, rel=1e-4)
        p_value = stats.ttest_rel(values["LMSSC"], knn).pvalue
        assert by_method["1-NN"]["fixed_p_value"] == pytest.approx(p_value, rel=1e-3)
        assert np.isnan(row["fixed_p_value"])

    def test_the_papers_numbers_are_beside_ours(self, done):
        _, rows = done
        papers = {
            (row["method"], row["rate"]): (row["paper_name"], row["paper_mean"], row["paper_std"]) for row in rows
        }
        assert papers["LMSSC", 0.1] == ("LMSSC", 69.84, 5.54)
        assert papers["GFHF (view b)", 0.3] == ("HFPF(2)", 57.97, 4.19)
        name, mean, _ = papers["1-NN", 0.1]
        assert name == ""
        assert np.isnan(mean)

    def test_constant_answer(self, done):
        _, rows = done
        (row,) = (row for row in rows if row["method"] == "constant answer" and row["rate"] == 0.1)
        assert row["fixed_balanced_accuracy_mean"] == pytest.approx(100 / 3, rel=1e-5)

    def test_csv_gives_the_rows_back(self, done):
        folder, rows = done
        again = read_tables(folder / "tables.csv")
        for one, two in zip(rows, again, strict=True):
            assert one.keys() == two.keys()
            for name, value in one.items():
                same = value if isinstance(value, str) else pytest.approx(value, rel=1e-5, nan_ok=True)
                assert two[name] == same

    def test_files(self, done):
        folder, rows = done
        machine = json.loads((folder / "machine.json").read_text())
        assert machine["seeds"] == [0, 1, 2]
        assert machine["numpy"] == np.__version__
        text = (folder / "tables.md").read_text(encoding="utf-8")
        assert f"numpy {np.__version__}" in text
        assert "best by test (oracle)" in text
        assert tuple(read_runs(folder)[0]) == RUN_COLUMNS
        assert len(read_runs(folder)) == sum(row[f"{prefix}_n"] for row in rows for prefix in COLUMNS.values())


class TestSeveralCalls:
    def test_what_earlier_calls_found_stays_in_the_tables(self, tmp_path):
        reproduce(tmp_path, ["sonar"], ["1-NN"], [0.3], 2, columns=["fixed"])
        rows = reproduce(tmp_path, ["bbc"], ["1-NN"], [0.3], 3, columns=["fixed"]).rows
        assert [(row["dataset"], row["fixed_n"]) for row in rows] == [("bbc", 3), ("sonar", 2)]
        assert len(read_runs(tmp_path)) == 5
        rows = reproduce(tmp_path, ["sonar"], ["1-NN"], [0.3], 1, columns=["fixed"]).rows
        assert [(row["dataset"], row["fixed_n"]) for row in rows] == [("bbc", 3), ("sonar", 2)]

    def test_runs_of_another_version_do_not(self, tmp_path):
        reproduce(tmp_path, ["sonar"], ["1-NN"], [0.3], 2, columns=["fixed"])
        machine = json.loads((tmp_path / "machine.json").read_text()) | {"lmssc": "0.0.1"}
        (tmp_path / "machine.json").write_text(json.dumps(machine))
        rows = reproduce(tmp_path, ["bbc"], ["1-NN"], [0.3], 1, columns=["fixed"]).rows
        assert [row["dataset"] for row in rows] == ["bbc"]

    def test_a_run_that_failed_is_tried_again(self, tmp_path, monkeypatch):
        def fail(*_):
            raise MemoryError("none left")

        with monkeypatch.context() as patch:
            patch.setattr(runs, "fit_and_answer", fail)
            assert all(r["error"] for r in reproduce(tmp_path, ["sonar"], ["1-NN"], [0.3], 1).records)
        assert not any(r["error"] for r in reproduce(tmp_path, ["sonar"], ["1-NN"], [0.3], 1).records)


class TestStopAndGoOn:
    WORDS = ("reproduce", "--datasets", "sonar", "--rates", "0.2", "--no-figures", "--methods", *FAST)

    def test_interrupted(self, tmp_path, capsys, monkeypatch):
        words = [*self.WORDS, "--repeats", "2", "--tuned-repeats", "1", "--quiet", "--out"]
        assert main([*words, str(tmp_path / "whole")]) == 0
        total = len(list(tmp_path.glob("whole/runs/*.json")))
        answered = []
        fit_and_answer = runs.fit_and_answer

        def counted(*args):
            if len(answered) == 5:
                raise KeyboardInterrupt
            answered.append(0)
            return fit_and_answer(*args)

        with monkeypatch.context() as patch:
            patch.setattr(runs, "fit_and_answer", counted)
            assert main([*words, str(tmp_path / "cut")]) == 130
        error = capsys.readouterr().err
        assert "run the same command again to continue" in error
        assert str(tmp_path / "cut") in error
        assert 5 <= len(list(tmp_path.glob("cut/runs/*.json"))) < total
        assert not (tmp_path / "cut" / "tables.csv").exists()
        assert main([*words, str(tmp_path / "cut")]) == 0
        assert (tmp_path / "cut" / "tables.csv").read_bytes() == (tmp_path / "whole" / "tables.csv").read_bytes()
        assert without_time(tmp_path / "cut") == without_time(tmp_path / "whole")

    def test_killed(self, tmp_path):
        words = [*self.WORDS, "LMSSC", "--repeats", "4", "--columns", "fixed", "--quiet", "--out"]
        program = (
            "import sys; sys.path.insert(0, sys.argv.pop(1)); import test_reproduce, lmssc.cli; "
            "test_reproduce.module.load = test_reproduce.small; sys.exit(lmssc.cli.main(sys.argv[1:]))"
        )
        command = [sys.executable, "-c", program, str(__file__).rpartition("/")[0], *words, str(tmp_path / "cut")]
        killed = subprocess.Popen(command)  # with two jobs: test_compare.py
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("cut/runs/*.json"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert 3 <= len(list(tmp_path.glob("cut/runs/*.json"))) < 28
        assert not (tmp_path / "cut" / "tables.csv").exists()
        assert main([*words, str(tmp_path / "cut")]) == 0
        assert main([*words, str(tmp_path / "whole")]) == 0
        assert (tmp_path / "cut" / "tables.csv").read_bytes() == (tmp_path / "whole" / "tables.csv").read_bytes()

    def test_another_version_does_its_own_runs(self, tmp_path, monkeypatch):
        arguments = (tmp_path, ["sonar"], ["1-NN"], [0.2], 2)
        reproduce(*arguments, columns=["fixed"])
        reproduce(*arguments, columns=["fixed"])
        assert len(list(tmp_path.glob("runs/*.json"))) == 2
        monkeypatch.setattr(runs, "version", lambda package: "another")
        reproduce(*arguments, columns=["fixed"])
        assert len(list(tmp_path.glob("runs/*.json"))) == 4


class TestCommand:
    def test_prints_the_summary_and_calls_figures_and_report(self, tmp_path, capsys, monkeypatch):
        calls = []
        figures, report = ModuleType("figures"), ModuleType("report")
        figures.draw_figures = lambda datasets, out, **more: calls.append((datasets, out, more))
        report.write_report = lambda out: calls.append(out)
        monkeypatch.setitem(sys.modules, "lmssc.paper.figures", figures)
        monkeypatch.setitem(sys.modules, "lmssc.paper.reproduction_page", report)
        words = ["reproduce", "--datasets", "sonar", "--rates", "0.2", "--repeats", "2", "--columns", "fixed"]
        assert main([*words, "--methods", "LMSSC", "1-NN", "--out", str(tmp_path)]) == 0
        assert calls == [(["sonar"], tmp_path, {"jobs": 1, "progress": True}), tmp_path]
        printed = capsys.readouterr().out
        assert "| Sonar | 20 % | 80.2 ± 4.7 |" in printed.replace("\xa0", " ")
        assert "report.html" in printed

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--datasets", "mnist"], "datasets: 'mnist' is not known; there are 'bbc', 'sonar'"),
            (["--methods", "LMSCC"], "methods: 'LMSCC' is not known"),
            (["--columns", "oracle"], "columns: 'oracle' is not known; there are 'fixed', 'cv', 'best-by-test'"),
            (["--rates", "10"], "rates must be between 0 and 1"),
            (["--repeats", "0"], "at least one rate and one repeat"),
            (["--tuned-repeats", "0"], "tuned_repeats must be at least 1"),
            (["--columns", "cv", "--methods", "1-NN"], "none of these methods has parameters to choose"),
        ],
    )
    def test_bad_calls(self, words, message, tmp_path, capsys):
        assert main(["reproduce", *words, "--no-figures", "--out", str(tmp_path / "o")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == 1

    def test_folder_that_is_a_file(self, tmp_path, capsys):
        (tmp_path / "o").touch()
        assert main(["reproduce", "--datasets", "sonar", "--out", str(tmp_path / "o")]) == 2
        assert "is a file" in capsys.readouterr().err

    def test_figures_without_matplotlib_are_refused_before_any_run(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert main(["reproduce", "--datasets", "sonar", "--out", str(tmp_path)]) == 2
        assert "figures (or --no-figures) need matplotlib" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())

    def test_failed_runs_are_told(self, tmp_path, capsys, monkeypatch):
        def refuse(*args):
            raise RuntimeError("no, thanks")

        monkeypatch.setattr(runs, "fit_and_answer", refuse)
        words = ["reproduce", "--datasets", "sonar", "--rates", "0.2", "--repeats", "1", "--methods", "1-NN"]
        assert main([*words, "--no-figures", "--out", str(tmp_path)]) == 0
        assert "failed: sonar, 1-NN, 0.2, split 0: RuntimeError: no, thanks" in capsys.readouterr().out

    def test_names_are_listed(self, capsys):
        with pytest.raises(SystemExit):
            main(["reproduce", "--list-methods"])
        assert capsys.readouterr().out.splitlines() == list(METHODS)
