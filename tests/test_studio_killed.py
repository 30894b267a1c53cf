"""Killed at any moment, `lmssc label` loses no answer and has none twice (`make kill-test`: 100 times)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

COUNT = int(os.environ.get("LMSSC_KILLS", "8"))


def test_killed_while_someone_labels_nothing_is_lost_and_nothing_is_there_twice(tmp_path, loopback, capsys):
    program = Path(__file__).with_name("killing_studio.py")
    ended = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "work"), str(COUNT)],
        capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["faults"] == []
    assert len(found["confirmed"]) == COUNT
    assert sum(found["confirmed"]) > COUNT
    if COUNT > 30:
        with capsys.disabled():
            print(f"\n{COUNT} kills, {sum(found['confirmed'])} answers confirmed: 0 lost, 0 twice")
