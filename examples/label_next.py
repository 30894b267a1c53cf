"""What to label next: batches of eight labels, chosen by the model or at random."""

import matplotlib.pyplot as plt
import numpy as np

from lmssc import LMSSC
from lmssc.datasets import make_multiview

data = make_multiview(160, n_classes=4, labelled=1, random_state=0)
unlabelled = data.y == -1  # scored throughout, even once they have a label


def grow(choose):
    """Accuracy after each batch."""
    y, right = data.y.copy(), []
    for _ in range(4):
        clf = LMSSC(max_iter=1).fit(data.views, y)
        right.append((clf.transduction_ == data.target)[unlabelled].mean())
        rows = choose(clf, np.flatnonzero(y == -1))
        y[rows] = data.target[rows]  # ask an expert
    return right


rng = np.random.default_rng(0)
asked = grow(lambda clf, unlabelled: clf.most_informative(8))
drawn = grow(lambda clf, unlabelled: rng.choice(unlabelled, 8, replace=False))

labels = [4 + 8 * batch for batch in range(4)]
print("labels          " + "".join(f"{n:6}" for n in labels))
print("most_informative" + "".join(f"{right:6.0%}" for right in asked))
print("at random       " + "".join(f"{right:6.0%}" for right in drawn))

figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.plot(labels, asked, marker="o", label="most_informative")
ax.plot(labels, drawn, marker="s", linestyle="--", label="at random")
ax.set(xlabel="labels", ylabel="accuracy")
ax.legend()
figure.savefig("label_next.png", dpi=110)
