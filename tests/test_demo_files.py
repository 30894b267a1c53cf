"""`lmssc demo --files` writes the digits as files, and says what to type next."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from lmssc.cli import digits_demo as demo
from lmssc.cli import main
from lmssc.cli.demo_files import grey_png
from lmssc.datasets import load_digits_views
from lmssc.io.labelled_files import read_labelled_files
from lmssc.io.options import Options


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path("my digits")


def test_the_files_have_the_digits(folder, capsys):
    assert main(["demo", "--files", str(folder)]) == 0
    assert capsys.readouterr().out.endswith(
        "\n  lmssc classify 'my digits'/views/* --labels 'my digits'/labels.csv --out 'my digits-result'\n"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["images", "labels.csv", "truth.csv", "views"]
    assert len(list((folder / "images").iterdir())) == 1797
    picture = (folder / "images" / "digit-0003.png").read_bytes()
    assert picture == grey_png(255 - 15 * load_digits().images[3])
    problem = read_labelled_files(
        [str(path) for path in (folder / "views").iterdir()], str(folder / "labels.csv"), Options()
    )
    digits = load_digits_views()
    rows = np.array([int(key.removeprefix("digit-")) for key in problem.joined.ids])
    np.testing.assert_array_equal(np.sort(rows), np.arange(1797))
    for name, view in problem.joined.views.items():
        has = problem.joined.present[name]
        truth = digits.views[digits.view_names.index(name)][rows]
        np.testing.assert_allclose(view[has], truth[has], rtol=1e-6)
        assert has.sum() == (1707 if name == "fourier" else 1797)
    known = problem.labels.known
    np.testing.assert_array_equal(problem.labels.y[known], digits.target[rows[known]])
    assert set(problem.labels.counts.values()) == {9}
    with open(folder / "truth.csv", newline="") as file:
        truth = {line["id"]: int(line["label"]) for line in csv.DictReader(file)}
    assert [truth[key] for key in problem.joined.ids] == digits.target[rows].tolist()


def test_quiet_and_nothing_else_is_done(folder, capsys, monkeypatch):
    monkeypatch.setattr(demo, "run", lambda *args, **kwargs: pytest.fail("ran the demo"))
    assert main(["demo", "--files", str(folder), "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert not Path("lmssc-demo").exists()


def test_a_folder_with_something_in_it_is_left_alone(folder, capsys):
    folder.mkdir()
    (folder / "mine").touch()
    assert main(["demo", "--files", str(folder)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["mine"]
