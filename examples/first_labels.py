"""Label 450 digits in six views from 2 labels per class; compare with two methods."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from lmssc import LMSSC
from lmssc.datasets import load_digits_views

data = load_digits_views()
views = {
    name: view[::4] for name, view in zip(data.view_names, data.views, strict=True)
}
truth = data.target[::4]

rng = np.random.default_rng(0)
labelled = np.concatenate(
    [rng.permutation(np.flatnonzero(truth == digit))[:2] for digit in range(10)]
)
y = np.full(len(truth), -1)
y[labelled] = truth[labelled]
unknown = y == -1

clf = LMSSC().fit(views, y)
table = StandardScaler().fit_transform(np.hstack(list(views.values())))
spreading = LabelSpreading(kernel="knn", n_neighbors=10).fit(table, y)
logistic = LogisticRegression(max_iter=1000).fit(table[~unknown], y[~unknown])

print(f"{len(truth)} digits, {len(labelled)} labels given, {unknown.sum()} to find")
for name, answers in {
    "LMSSC": clf.transduction_,
    "label spreading": spreading.transduction_,
    "logistic regression": logistic.predict(table),
}.items():
    print(f"{name:20} {100 * np.mean(answers[unknown] == truth[unknown]):.0f} % right")
