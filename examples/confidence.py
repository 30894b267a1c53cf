"""Is the confidence deserved? Calibrated and raw scores against the accuracy."""

import matplotlib.pyplot as plt

from lmssc import LMSSC
from lmssc.datasets import make_multiview
from lmssc.plotting import CalibrationDisplay

data = make_multiview(500, labelled=0.1, separation=1.2, random_state=0)
unlabelled = data.y == -1

calibrated = LMSSC().fit(data.views, data.y)
plain = LMSSC(calibrate=False).fit(data.views, data.y)

figure, axes = plt.subplots(
    2, 1, figsize=(5, 6), height_ratios=[3, 1], layout="constrained"
)
CalibrationDisplay.from_distributions(
    {
        "calibrated": calibrated.label_distributions_[unlabelled],
        "plain": plain.label_distributions_[unlabelled],
    },
    data.target[unlabelled],
    calibrated.classes_,
    ax=tuple(axes),
)
figure.savefig("confidence.png", dpi=110)

print(f"accuracy: {(calibrated.transduction_ == data.target)[unlabelled].mean():.0%}")
for name, clf in {"calibrated": calibrated, "plain": plain}.items():
    confidence = clf.label_distributions_[unlabelled].max(axis=1)
    print(f"{name:10} mean confidence {confidence.mean():.0%}")
