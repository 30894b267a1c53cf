"""A look inside: how J falls, and a map of the samples."""

import matplotlib.pyplot as plt
import numpy as np

from lmssc import LMSSC
from lmssc.datasets import make_multiview
from lmssc.plotting import ConvergenceDisplay, LatentMapDisplay

data = make_multiview(300, labelled=0.05, random_state=2)
clf = LMSSC(beta=0.1).fit(data.views, data.y)

figure, axes = plt.subplots(2, 1, figsize=(7, 8), layout="constrained")
ConvergenceDisplay.from_estimator(clf, ax=axes[0])
LatentMapDisplay.from_estimator(clf, y=data.y, y_true=data.target, ax=axes[1])
figure.savefig("latent_map.png", dpi=110)

print(f"{clf.n_iter_} iterations; J never rose: {(np.diff(clf.objective_) <= 0).all()}")
print(f"{clf.latent_.shape[1]} components for {len(clf.latent_)} samples")
