"""Which view is informative? Two views show the classes, one is noise."""

import matplotlib.pyplot as plt

from lmssc import LMSSC
from lmssc.datasets import make_multiview
from lmssc.plotting import ViewContributionDisplay

data = make_multiview(200, n_views=3, noise_views=1, labelled=0.2, random_state=0)
views = dict(zip(data.view_names, data.views, strict=True))
clf = LMSSC(max_iter=1, calibrate=False).fit(views, data.y)

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
display = ViewContributionDisplay.from_estimator(clf, X=views, y=data.y, ax=ax)
figure.savefig("view_contribution.png", dpi=110)

print(f"accuracy on held-out labels, all views: {display.accuracy:.0%}")
for name, accuracy in display.without.items():
    print(f"  without {name:7} {accuracy:.0%}")
