"""Markdown of the tables, and what is not a table."""

import math

import pytest

from lmssc.paper.tables import (
    RUN_COLUMNS,
    dataset_markdown,
    lmssc_markdown,
    read_tables,
    summarise,
    tables_markdown,
)


def records(dataset, column="fixed", **accuracies):
    """Runs at 10 %, an accuracy a split."""
    names = {"knn": "1-NN", "constant": "constant answer"}
    return [
        dict.fromkeys(RUN_COLUMNS, 0.5)
        | {"dataset": dataset, "column": column, "method": names.get(method, method), "rate": 0.1, "repeat": repeat}
        | {"accuracy": accuracy, "error": ""}
        for method, values in accuracies.items()
        for repeat, accuracy in enumerate(values)
    ]


@pytest.fixture
def rows():
    runs = records("bbc", LMSSC=[0.90, 0.92, 0.95], knn=[0.91, 0.94, 0.96], AMGL=[0.5, 0.52, 0.55], constant=[0.9] * 3)
    runs += records("bbc", "cv", LMSSC=[0.93]) + records("bbc", "best-by-test", LMSSC=[0.99])
    return summarise(runs, {("bbc", "LMSSC"): "LMSSC", ("bbc", "AMGL"): "AMGL"})


def cells(text, start):
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {start} |") and "±" in line)
    return [cell.strip().replace("\xa0", " ") for cell in line.strip("|").split("|")]


def test_fixed_defaults_beside_the_paper(rows):
    table = dataset_markdown(rows, "bbc").split("\n\n")[1]
    assert table.splitlines()[0] == "| method | in the paper | 10 %: paper | 10 %: here |"
    assert cells(table, "LMSSC") == ["LMSSC", "LMSSC", "92.9 ± 1.2", "92.3 ± 2.5"]
    assert cells(table, "1-NN") == ["1-NN", "–", "–", "**93.7 ± 2.5** ~"]  # better by 1, 2 and 1: p = 0.057
    assert cells(table, "AMGL") == ["AMGL", "AMGL", "49.5 ± 2.7", "52.3 ± 2.5"]


def test_unbalanced_data_have_more_scores_and_others_not(rows):
    assert "10 %: macro-F1" in tables_markdown(rows)
    others = summarise(records("sonar", LMSSC=[0.9, 0.8]), {})
    assert "macro-F1" not in tables_markdown(others)


def test_the_oracle_is_called_so(rows):
    text = tables_markdown(rows)
    assert "| method | 10 %: cross-validated | 10 %: best by test (oracle) |" in text
    assert "| LMSSC | 93.0 | 99.0 |" in text
    assert "1 split:" in text


def test_summary_of_lmssc(rows):
    head, _, line = lmssc_markdown(rows).splitlines()
    assert "best by test (oracle)" in head
    one = "93.0 (1 split) | 99.0 (1 split)"
    assert line.replace("\xa0", " ") == f"| BBC | 10 % | 92.9 ± 1.2 | 92.3 (86.1 to 98.6) | {one} | 93.7 1-NN | 90.0 |"


def test_failed_runs_do_not_count():
    runs = records("sonar", LMSSC=[0.9, 0.8, math.nan], knn=[math.nan])
    for run in (runs[2], runs[3]):
        run["error"] = "ValueError: no"
    lmssc, knn = summarise(runs, {})
    assert (lmssc["fixed_n"], lmssc["fixed_mean"]) == (2, pytest.approx(85))
    assert knn["fixed_n"] == 0
    assert "| 1-NN | – | – | – |" in dataset_markdown([lmssc, knn], "sonar")


def test_a_file_that_is_no_table(tmp_path):
    (tmp_path / "t.csv").write_text("dataset,rate\nsonar,0.1\n")
    with pytest.raises(ValueError, match=r"t\.csv is not a table of the reproduction: it has no column 'method'"):
        read_tables(tmp_path / "t.csv")
