"""Ids and labels that a spreadsheet would compute: harmless in what is written, and read back as they were."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmssc.cli import main
from lmssc.io.formats import read_table
from lmssc.io.outputs import write_predictions, write_to_label
from lmssc.io.spreadsheet import escape_formula, unescape_formula
from small_files import make_problem, table_text

NASTY = ["=1+1", "+x", "-a", "@SUM(A1)", "\tx", "\rx", "'=1+1", "''-a", "'", "'tis", "-1.5", "+7", "-", "=", "plain"]
COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n")
STARTS = st.sampled_from(["", "'", "''", "=", "'=", "-", "+1", "@", "\t", "\r", "-1", "'-1"])


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text


@given(STARTS, st.text(max_size=8))
def test_every_text_comes_back_and_none_is_a_formula(start, rest):
    text = start + rest
    written = escape_formula(text)
    assert unescape_formula(written) == text
    assert not written.startswith(COMPUTED) or is_number(written)


@given(st.lists(st.builds(str.__add__, STARTS, st.text(max_size=4)), min_size=2, unique=True))
def test_different_texts_stay_different(texts):
    assert len({escape_formula(text) for text in texts}) == len(texts)


@pytest.mark.parametrize("number", ["-1", "-1.5", "+7", "-.5", "-1e-300", "3"])
def test_plain_numbers_stay_as_they_are(number):
    assert escape_formula(number) == number


def test_ids_and_labels_that_look_like_formulas_come_back_from_all_that_classify_and_predict_write(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    views, ids, labels = make_problem(60)
    formulas = {f"s{number:03d}": text for number, text in enumerate(text for text in NASTY if text.strip() == text)}
    ids = [formulas.get(key, key) for key in ids]
    names = {"u": "=cmd|' /C calc'!A0", "v": "-v", "w": "@w", "": ""}
    labels = [names[label] for label in labels]
    for name, view in views.items():
        rows = [[escape_formula(key), *row] for key, row in zip(ids, view.tolist(), strict=True)]
        header = ["id", *(f"{name}{i}" for i in range(view.shape[1]))]
        (tmp_path / f"{name}.csv").write_text(table_text(header, rows))
    rows = [[escape_formula(key), label] for key, label in zip(ids, labels, strict=True) if label]
    (tmp_path / "labels.csv").write_text(table_text(["id", "label"], rows))
    assert main(["classify", "a.csv", "b.csv", "--labels", "labels.csv", "--out", "out", "-q"]) == 0
    assert main(["predict", "out/model.lmssc", "a.csv", "b.csv", "--out", "new.csv", "-q"]) == 0
    for file in ("out/predictions.csv", "out/to_label.csv", "new.csv"):
        with open(file, newline="") as text:
            cells = [cell for row in csv.reader(text) for cell in row]
        assert not [cell for cell in cells if cell.startswith(COMPUTED) and not is_number(cell)]
        table = read_table(file, keep_text=lambda name: True)
        assert set(table.texts("id")) <= set(ids)
        assert set(table.texts("runner_up" if "to_label" in file else "label")) - {None} <= set(names.values())
    # What was written is taken as labels, and all samples are found.
    assert read_table("out/predictions.csv", keep_text=lambda name: True).texts("id").tolist() == ids
    call = "classify a.csv b.csv --labels out/predictions.csv --label-column label --out again -q"
    assert main(call.split()) == 0
    again = read_table("again/predictions.csv", keep_text=lambda name: True)
    assert again.texts("label").tolist() == read_table("new.csv", keep_text=lambda name: True).texts("label").tolist()


class Model:
    """As much of a model as is written."""

    classes_ = np.array(sorted(NASTY), dtype=object)
    transduction_ = classes_
    label_distributions_ = np.eye(len(NASTY)) * 0.9 + 0.1 / len(NASTY)


@pytest.mark.parametrize("name", ["predictions", "to_label"])
def test_every_nasty_id_and_class_is_written_and_read_as_it_is(name, tmp_path):
    path, ids = tmp_path / f"{name}.csv", np.array(NASTY, dtype=object)
    if name == "predictions":
        with open(path, "wb") as file:
            write_predictions(file, ids, Model, Model.label_distributions_, Model.transduction_, {})
    else:
        write_to_label(path, ids, Model, np.arange(len(ids)))
    table = read_table(str(path), keep_text=lambda name: True)
    assert table.texts("id").tolist() == NASTY
    assert table.texts("label" if name == "predictions" else "guess").tolist() == Model.classes_.tolist()
