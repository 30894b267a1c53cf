"""Samples that lack views: how few are complete, and how accurate the labels stay."""

import numpy as np

from lmssc import LMSSC
from lmssc.datasets import load_digits_views

data = load_digits_views()
truth = data.target[::4]
rng = np.random.default_rng(0)
y = np.where(rng.uniform(size=len(truth)) < 0.1, truth, -1)
lot = rng.uniform(size=(len(truth), 6))
lot[np.arange(len(truth)), lot.argmax(axis=1)] = 1  # every sample keeps a view

for share in (0.0, 0.2, 0.4):
    # A row of NaN: the sample lacks the view.
    views = [
        np.where(lot[:, [v]] < share, np.nan, view[::4])
        for v, view in enumerate(data.views)
    ]
    clf = LMSSC(max_iter=1, calibrate=False).fit(views, y)
    complete = (lot >= share).all(axis=1).sum()
    accuracy = (clf.transduction_ == truth)[y == -1].mean()
    counts = f"{complete:3} of {len(truth)} digits complete"
    print(f"{share:3.0%} missing: {counts}, accuracy on all {accuracy:.0%}")
