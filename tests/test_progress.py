"""Progress: what is shown where, and when."""

import sys

import pytest

from lmssc.core.progress import ProgressMeter, TimeLeft


def advance(total, seconds_apart, capsys, **arguments):
    now = [0.0]
    with ProgressMeter(total, 0, TimeLeft(["kind"] * total, 1), clock=lambda: now[0], **arguments) as meter:
        for _ in range(total):
            now[0] += seconds_apart
            meter.advance("kind", seconds_apart)
    return capsys.readouterr().err


def test_a_line_now_and_then_without_a_terminal(capsys):
    assert advance(8, 20.0, capsys, show=True).splitlines() == [
        "2 of 8 runs, about 2 min left",
        "4 of 8 runs, about 1 min left",
        "6 of 8 runs, less than a minute left",
        "8 of 8 runs, less than a minute left",
    ]


def test_nothing_if_it_is_not_wanted(capsys):
    assert advance(4, 100.0, capsys, show=False) == ""


@pytest.mark.parametrize("installed", [True, False])
def test_a_terminal_gets_a_bar_if_tqdm_is_there(installed, capsys, monkeypatch):
    if installed:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = advance(3, 100.0, capsys, show=True)
    assert ("3/3 runs" in shown) == installed
    assert ("3 of 3 runs" in shown) != installed


def test_runs_that_failed_or_were_done_before():
    left = TimeLeft(["a", "a", "b"], workers=1)
    left.learn("a", 10.0)
    left.done("a", float("nan"))
    assert left.seconds() == 20.0  # one "a" as before, and one "b" like it
