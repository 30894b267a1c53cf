"""The README's examples run as typed, and its table is what the demo prints."""

import re
from pathlib import Path

import pytest

from page_code import blocks, commands, run_commands, run_python

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def text():
    return README.read_text(encoding="utf-8")


def test_python_blocks_run(text, tmp_path, monkeypatch):
    assert len(blocks(text, "python")) >= 3
    monkeypatch.chdir(tmp_path)
    names = run_python(text)
    assert (names["clf"].predict(names["data"].views) == names["clf"].transduction_).all()
    assert (names["same"].transduction_ == names["clf"].transduction_).all()
    assert names["search"].best_score_ > 0.8
    hidden = names["y"] == -1
    assert (names["partly"].transduction_ == names["data"].target)[hidden].mean() > 0.8


def test_classify_example_runs_as_typed_and_prints_what_is_shown(text, tmp_path, capsys, monkeypatch):
    # The report has tests of its own, and fits many times.
    monkeypatch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
    monkeypatch.chdir(tmp_path)
    block = re.search(r"<!-- classify -->\n```console\n(.*?)```", text, flags=re.DOTALL).group(1)
    typed = [command.split()[0] for command, _ in commands(block)]
    assert typed == ["demo", "classify"]
    run_commands(block, capsys)


def test_demo_table_is_what_the_demo_prints(text, tmp_path, capsys):
    from lmssc.cli import main

    assert main(["demo", "--no-figures", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    shown = re.search(r"<!-- demo -->\n```text\n(.*?)```", text, flags=re.DOTALL).group(1)

    def scores(table):
        return re.findall(r"^[* ] (.+?)  +([\d.]+) %  +([\d.]+) %", table, flags=re.MULTILINE)

    assert len(scores(shown)) == 4
    for (method, *numbers), (same, *right) in zip(scores(shown), scores(printed), strict=True):
        assert method == same
        # Another BLAS may turn a sample or two.
        for number, wanted in zip(numbers, right, strict=True):
            assert float(number) == pytest.approx(float(wanted), abs=0.3)
