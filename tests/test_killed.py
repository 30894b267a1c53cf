"""Killed at any moment, `lmssc classify` leaves the old result or the new one, whole (`make kill-test`: 100 times)."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

COUNT = int(os.environ.get("LMSSC_KILLS", "8"))


def killing(folder, *arguments):
    folder.mkdir()
    program = Path(__file__).with_name("killing.py")
    command = [sys.executable, str(program), arguments[0], str(folder), *map(str, arguments[1:])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_killed_at_random_moments_the_result_is_old_or_new_and_whole(tmp_path, capsys):
    found = killing(tmp_path / "work", "runs", COUNT, 0, *(["brief"] if COUNT < 30 else []))
    trials = found["trials"]
    assert [trial for trial in trials if trial["fault"]] == []
    assert found["left"] == []
    assert found["whole"]
    assert {trial["signal"] for trial in trials} == {"KILL", "TERM", "INT"}
    assert {trial["has"] for trial in trials} == {"old", "new"}
    if COUNT > 30:
        with capsys.disabled():
            counts = Counter((trial["signal"], trial["into"], trial["has"], trial["code"]) for trial in trials)
            print(f"\n{len(trials)} signals to runs of {found['seconds']:.2f} s:")
            for (signal, into, has, code), count in sorted(counts.items()):
                print(
                    f"  {signal:4} over {'nothing' if into == 'new' else 'a result'}: has {has}, exit {code}: {count}"
                )


def test_killed_before_each_step_of_a_replacement_all_files_are_old_or_all_are_new(tmp_path):
    trials = killing(tmp_path / "work", "steps")
    mine = {"mine.txt": "mine"}
    old = {"a.txt": "old", "b.txt": "old"} | mine
    new = {"a.txt": "new", "b.txt": "new", "c.txt": "new"} | mine
    for trial in trials:
        assert trial["found"] in (old, new), trial
        assert trial["later"] == {"a.txt": "next", "b.txt": "next", "c.txt": "next"} | mine
        if trial["signal"] == "KILL":
            assert trial["code"] == -9
        else:
            assert trial["left"] == []
            assert trial["code"] == {"TERM": 143, "INT": 130}[trial["signal"]]
    kills = [trial["found"] for trial in trials if trial["signal"] == "KILL"]
    assert len(kills) > 15
    assert old in kills
    assert new in kills
