"""Samples that lack views: how few would be left if only complete ones were used, and how right the labels stay."""

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
    # NaN in a view's whole row: the sample lacks the view.
    views = [np.where(lot[:, [v]] < share, np.nan, view[::4]) for v, view in enumerate(data.views)]
    clf = LMSSC(max_iter=1, calibrate=False).fit(views, y)
    complete = (lot >= share).all(axis=1).sum()
    right = (clf.transduction_ == truth)[y == -1].mean()
    print(f"{share:3.0%} missing: {complete:3} of {len(truth)} digits have all views, {right:.0%} of all answers right")
