"""Warnings name the line of the user's code, whatever it called."""

import warnings
from inspect import currentframe

import numpy as np
import pytest

from lmssc import GFHF, LMSSC, LMSSCCV
from lmssc.datasets import make_multiview


@pytest.fixture(scope="module")
def single():
    """Views and labels of which one class has a single one, so that every fit to them warns."""
    data = make_multiview(120, n_views=2, labelled=0.3, random_state=0)
    one = np.flatnonzero(data.y == 0)[0]
    y = np.where(data.y == 0, -1, data.y)
    y[one] = 0
    return list(data.views), y


CALLS = {
    "LMSSC": lambda views, y: LMSSC(max_iter=1, calibrate=False).fit(views, y),
    "GFHF": lambda views, y: GFHF().fit(views, y),
    "a search": lambda views, y: LMSSCCV(estimator=GFHF(), param_grid={"n_neighbors": [5, 6]}, n_repeats=1).fit(
        views, y
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_line_that_called(call, single):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        CALLS[call](*single)
    line = CALLS[call].__code__.co_firstlineno
    assert found
    assert {(one.filename, one.lineno) for one in found} == {(__file__, line)}


def test_a_prediction():
    rng = np.random.default_rng(0)
    words = rng.poisson(0.1, (120, 200)).astype(float)
    clf = LMSSC(max_iter=1, scaling="log").fit([words], np.arange(120) % 2)
    with pytest.warns(UserWarning, match="only zeros") as found:
        clf.predict([np.zeros((3, 200))])
    assert [(one.filename, one.lineno) for one in found] == [(__file__, currentframe().f_lineno - 1)]
