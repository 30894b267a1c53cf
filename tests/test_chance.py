"""Views that say nothing about the classes: a confident fit says so."""

import warnings

import numpy as np
import pytest

from lmssc import LMSSC
from lmssc.core.chance import unsupported
from lmssc.core.targets import Targets


def test_confident_answers_from_noise_are_told():
    """Of fits to noise of two classes that are more than 60 % sure, half or more say so."""
    said = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, target = rng.normal(size=(300, 20)), rng.integers(0, 2, 300)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clf = LMSSC(max_iter=1).fit([X[:, :10], X[:, 10:]], np.where(np.arange(300) < 24, target, -1))
        if clf.label_distributions_[24:].max(axis=1).mean() > 0.6:
            said.append(any("labels are found if they are held out, which may be chance" in str(one) for one in caught))
    assert len(said) >= 2
    assert np.mean(said) >= 0.5


@pytest.mark.parametrize(("n_right", "confidence", "told"), [(12, 0.9, True), (20, 0.9, False), (12, 0.51, False)])
def test_what_labels_support(n_right, confidence, told):
    codes = np.tile([0, 1], 20)
    codes[24:] = -1
    targets, rows = Targets.from_codes(codes, 2), np.arange(24)
    found = np.eye(2)[np.where(rows < n_right, codes[rows], 1 - codes[rows])]
    result = unsupported((rows, found), targets, np.tile([confidence, 1 - confidence], (40, 1)))
    assert result == ((n_right, 24, pytest.approx(confidence)) if told else None)
    assert unsupported((rows[:19], found[:19]), targets, np.tile([0.9, 0.1], (40, 1))) is None
