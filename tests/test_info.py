"""``lmssc info``: what it says of a model, and what it refuses."""

import json

import numpy as np
import pytest

from lmssc import AMGL, LMSSC, LMSSCCV
from lmssc.cli import main
from lmssc.datasets import make_multiview

pytestmark = pytest.mark.usefixtures("uncalibrated")


@pytest.fixture(scope="module")
def data():
    return make_multiview(60, labelled=0.3, random_state=1)


def save(clf, data, path):
    names = np.array(["ant", "bee", "ü"], dtype=object)
    y = np.where(data.y >= 0, names[np.maximum(data.y, 0)], None)
    clf.fit({"image": data.views[0], "sound": data.views[1]}, y).save(path)
    return clf


def test_json_has_all_facts(data, tmp_path, capsys):
    path = tmp_path / "a model.lmssc"
    clf = save(LMSSC(max_iter=2, tol=0.0, beta=0.25), data, path)
    assert main(["info", str(path), "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["class"] == "LMSSC"
    assert facts["bytes"] == path.stat().st_size
    assert (facts["samples"], facts["labelled"], facts["unreached"]) == (60, 18, 0)
    assert (facts["iterations"], facts["converged"]) == (2, False)
    assert facts["views"] == [{"name": name, "features": 20, "scaling": "zscore"} for name in ("image", "sound")]
    assert [one["label"] for one in facts["classes"]] == ["ant", "bee", "ü"]
    assert [one["labelled"] for one in facts["classes"]] == np.bincount(data.y[data.y >= 0]).tolist()
    assert [one["samples"] for one in facts["classes"]] == [
        int((clf.transduction_ == name).sum()) for name in ("ant", "bee", "ü")
    ]
    assert facts["parameters"]["beta"] == "0.25"
    assert set(facts["made"]) == {"lmssc", "numpy", "scipy", "scikit-learn", "date"}


def test_text_is_for_people(data, tmp_path, capsys):
    save(LMSSC(max_iter=2, tol=0.0), data, tmp_path / "m.lmssc")
    assert main(["info", str(tmp_path / "m.lmssc")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{tmp_path / 'm.lmssc'}: LMSSC"
    assert "samples     60, 18 labelled, 0 unreached" in lines
    assert "iterations  2, stopped by max_iter" in lines
    assert "image        20   zscore" in lines
    assert "  max_iter = 2" in lines


@pytest.mark.parametrize("clf", [AMGL(), LMSSCCV(n_repeats=1, param_grid=[{}, {"n_neighbors": [5]}])])
def test_other_classes(clf, data, tmp_path, capsys):
    save(clf, data, tmp_path / "m.lmssc")
    assert main(["info", str(tmp_path / "m.lmssc")]) == 0
    assert type(clf).__name__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"id,label\n", "not a model file"), (None, "x y: No such file"), ("folder", "is a folder")],
)
def test_what_is_no_model_ends_with_one_line(content, message, tmp_path, capsys):
    path = tmp_path / "x y"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    assert main(["info", str(path)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert message in error
    assert "x y" in error
    assert error.count("\n") == 1
