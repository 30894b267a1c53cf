"""Ids among the features: `fit` names them, and nothing else."""

import warnings

import numpy as np
import pandas as pd
import pytest

from lmssc import LMSSC
from lmssc.data.dataset import validate
from lmssc.data.id_columns import find_ids
from lmssc.datasets import make_multiview


def ids_of(column, y=None):
    column = np.asarray(column, dtype=float)
    return find_ids(validate({"a": column[:, None]}, np.arange(len(column)) % 3 if y is None else y), 0)


RNG = np.random.default_rng(0)
IDS = {
    "running number": np.arange(300),
    "in tens, from the end": 5000 - 10 * np.arange(300),
    "shuffled": RNG.permutation(300),
    "a part of a running number": RNG.choice(3000, 300, replace=False),
    "random number": RNG.choice(10**9, 300, replace=False),
    "hash": RNG.integers(0, 2**63, 300).astype(float),
    "few rows in order": np.arange(20),
}
MEASUREMENTS = {
    "floats": RNG.random(300),
    "counts": RNG.poisson(50, 300),
    "normal": np.rint(1e6 * RNG.normal(size=300)),
    "incomes": np.rint(1e5 * RNG.lognormal(size=300)),
    "waiting times": np.rint(1e5 * RNG.exponential(size=300)),
    "few shuffled rows": RNG.permutation(50),
    "ranks that tell the class": (np.arange(300) % 3 * 100 + np.arange(300) // 3),
    "times that tell the class": 10**9 + 10**6 * (np.arange(300) % 3) + RNG.choice(10**6, 300, replace=False),
    "constant": np.ones(300),
}


@pytest.mark.parametrize("what", IDS)
def test_ids_are_found(what):
    assert ids_of(IDS[what]) == [0]


@pytest.mark.parametrize("what", MEASUREMENTS)
def test_measurements_are_not_taken_for_ids(what):
    assert ids_of(MEASUREMENTS[what]) == []


def test_fit_names_view_and_column():
    data = make_multiview(200, labelled=0.1, random_state=0)
    meta = pd.DataFrame({"age": RNG.normal(size=200), "patient": RNG.permutation(200)})
    with pytest.warns(UserWarning, match="view 'meta', column 'patient' looks like an id"):
        LMSSC(max_iter=1).fit({"x": data.views[0], "meta": meta}, data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LMSSC(max_iter=1).fit({"x": data.views[0], "meta": meta[["age"]]}, data.y)
