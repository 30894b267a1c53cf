"""The scripts in examples run, without a warning, and leave what the gallery shows."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_example_runs(script, tmp_path, monkeypatch):
    from matplotlib import pyplot

    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    from gallery import run_example, wide_lines

    printed = run_example(script, tmp_path)
    pyplot.close("all")
    assert 2 <= len(printed.splitlines()) <= 10
    assert "nan" not in printed
    assert wide_lines(script.read_text(encoding="utf-8") + printed) == []
    pictures = [f"{script.stem}.png"] if "savefig" in script.read_text(encoding="utf-8") else []
    assert [path.name for path in tmp_path.iterdir()] == pictures
