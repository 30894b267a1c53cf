"""`lmssc explain`, the columns `because` and `novelty`, and `check_labels.csv`, from files to words."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from lmssc.cli import main
from lmssc.datasets import make_multiview


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Views, labels of half of the samples with some wrong, and what `classify` makes of them."""
    path = tmp_path_factory.mktemp("explain")
    data = make_multiview(120, labelled=0.5, noise=0.5, random_state=6)
    names = np.array(["red", "green", "blue"])
    for number, view in enumerate(data.views):
        lines = [",".join(["id", *(f"f{j}" for j in range(view.shape[1]))])]
        lines += [",".join([f"s{i}", *map(repr, row.tolist())]) for i, row in enumerate(view)]
        (path / f"view{number}.csv").write_text("\n".join(lines))
    labelled = np.flatnonzero(data.y >= 0)
    given = data.y.copy()
    wrong = labelled[:8]
    given[wrong] = (given[wrong] + 1) % 3
    lines = ["id,label", *(f"s{i},{names[given[i]]}" for i in labelled)]
    (path / "labels.csv").write_text("\n".join(lines))
    views = [str(path / f"view{number}.csv") for number in range(len(data.views))]
    call = ["classify", *views, "--labels", str(path / "labels.csv"), "--out", str(path / "out"), "--no-report"]
    assert main(call) == 0
    return path, {f"s{i}" for i in wrong}


def test_predictions_name_the_labels_behind_them(folder):
    path, _ = folder
    rows = read_rows(path / "out" / "predictions.csv")
    labels = {row["id"]: row["label"] for row in read_rows(path / "labels.csv")}
    hidden = [row for row in rows if row["given"] == "no"]
    assert all(set(row["because"].split()) <= set(labels) for row in rows)
    assert all(len(row["because"].split()) == 3 for row in hidden)
    agree = [labels[row["because"].split()[0]] == row["label"] for row in hidden]
    assert np.mean(agree) > 0.8
    assert all(0 < float(row["novelty"]) <= 1 for row in rows)


def test_wrong_labels_are_listed(folder):
    path, wrong = folder
    rows = read_rows(path / "out" / "check_labels.csv")
    assert list(rows[0]) == ["id", "given", "proposed", "probability"]
    assert len(wrong & {row["id"] for row in rows}) >= 3
    assert all(row["given"] != row["proposed"] and float(row["probability"]) > 0.5 for row in rows)


def test_explain_says_why(folder, capsys):
    path, _ = folder
    model = str(path / "out" / "model.lmssc")
    hidden = next(row for row in read_rows(path / "out" / "predictions.csv") if row["given"] == "no")
    assert main(["explain", model, "--id", hidden["id"], "--top", "3"]) == 0
    said = capsys.readouterr().out
    assert f"{hidden['id']} is labelled {hidden['label']}" in said
    assert "Labelled samples that count most:" in said
    assert main(["explain", model, "--id", hidden["id"], "--top", "3", "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)["samples"][0]
    assert [one["id"] for one in facts["because"]] == hidden["because"].split()
    assert sum(facts["views"].values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--id", "nobody"], "no sample has the id 'nobody'"), (["--id", "s0", "--top", "0"], "--top must be at least 1")],
)
def test_explain_refuses(folder, capsys, arguments, message):
    path, _ = folder
    assert main(["explain", str(path / "out" / "model.lmssc"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_explain_without_a_model(tmp_path: Path, capsys):
    assert main(["explain", str(tmp_path / "none.lmssc"), "--id", "a"]) == 2
    assert "none.lmssc" in capsys.readouterr().err


def test_new_samples_get_a_novelty(folder):
    path, _ = folder
    views = sorted(map(str, path.glob("view*.csv")))
    out = path / "new.csv"
    assert main(["predict", str(path / "out" / "model.lmssc"), *views, "--out", str(out)]) == 0
    found = {row["id"]: row["novelty"] for row in read_rows(out)}
    assert found == {row["id"]: row["novelty"] for row in read_rows(path / "out" / "predictions.csv")}
