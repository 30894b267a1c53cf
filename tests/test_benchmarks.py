"""The benchmarks still run: they reach into the library, which moves."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lmssc import GFHF
from lmssc.datasets import make_multiview

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch):
    if not FOLDER.is_dir():
        pytest.skip("the benchmarks are not in a source distribution")
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.parametrize("many", [False, True])
def test_first_propagation_is_one_over_the_plain_graph(benchmarks, monkeypatch, many):
    from ablation import FirstPropagation

    if many:  # samples are numbered by place, as where there are many
        monkeypatch.setattr("lmssc.estimators.lmssc.FEWEST_SAMPLES", 100)
    data = make_multiview(150, labelled=0.15, random_state=0)
    first = FirstPropagation().fit(data.views, data.y)
    again = GFHF(graph="precomputed").fit(first.graph_, data.y)
    np.testing.assert_allclose(first.label_distributions_, again.label_distributions_, atol=1e-6)


def test_speed_measures_a_fit(benchmarks):
    command = [sys.executable, FOLDER / "speed.py", "--case", "LMSSC", "--samples", "300", "--features", "60"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["accuracy"] > 30
    assert {"start", "W", "H", "S", "F"} <= set(found["detail"])
