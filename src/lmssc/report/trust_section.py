"""What a report says about single answers: the labels behind them, labels to check, samples like no class."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from lmssc.estimators.explain import strongest_ids
from lmssc.report.rendering import percent
from lmssc.report.subject import Subject

# Labelled samples named for each dot of the map, and labels to check that are listed.
N_BECAUSE, MAX_CHECKED = 3, 10
# Samples with a smaller p-value are like none of the classes; so is this share of all others, by chance.
REJECT = 0.05
# A class seems to have no label if a group of such samples is so many times as large as chance makes all of them
# together, and if there are so many labels.
MIN_EXCESS, MIN_LABELS = 2, 80
# Smaller groups of such samples are not listed, nor more than this many; samples named of each.
MIN_GROUP, MAX_GROUPS, MAX_NAMED = 5, 5, 5


class NovelSamples(NamedTuple):
    """Unlabelled samples that are like none of the classes.

    Attributes
    ----------
    n_samples : int
        How many.
    expected : float
        How many would be by chance.
    groups : list of ndarray of int
        Their rows, those that the graph links together; the largest group first.
    """

    n_samples: int
    expected: float
    groups: list[NDArray]

    def suggests_a_class(self, n_labelled: int) -> bool:
        """Whether one group is so large that a class seems to have no label."""
        largest = len(self.groups[0]) if self.groups else 0
        return bool(n_labelled >= MIN_LABELS and largest >= max(MIN_GROUP, MIN_EXCESS * self.expected))


def find_novel(clf: Any, given: NDArray) -> NovelSamples:
    """Samples without a given label whose novelty says that they are like none of the classes, in groups.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from scipy import sparse
    >>> links = sparse.csr_array(np.kron(np.eye(2), np.ones((2, 2))))
    >>> clf = SimpleNamespace(novelty_=np.array([0.01, 0.9, 0.02, 0.03]), graph_=links)
    >>> find_novel(clf, np.zeros(4, dtype=bool))
    NovelSamples(n_samples=3, expected=0.2, groups=[array([2, 3]), array([0])])
    """
    members = np.flatnonzero((clf.novelty_ <= REJECT) & ~given)
    expected = REJECT * int((~given).sum())
    if not len(members):
        return NovelSamples(0, expected, [])
    component = connected_components(clf.graph_[members][:, members], directed=False)[1]
    sizes = np.bincount(component)
    parts = np.split(members[np.argsort(component, kind="stable")], np.cumsum(sizes)[:-1])
    return NovelSamples(len(members), expected, [parts[number] for number in np.argsort(-sizes, kind="stable")])


def can_judge(subject: Subject) -> bool:
    """Whether the model has what it takes: an `LMSSC` with latent positions."""
    return hasattr(getattr(subject.clf, "best_estimator_", subject.clf), "_targets")


def because(subject: Subject, rows: NDArray) -> list[str]:
    """For each sample the labelled samples that count most, with their labels; empty if it is not known."""
    found = (
        strongest_ids(getattr(subject.clf, "best_estimator_", subject.clf), N_BECAUSE) if can_judge(subject) else None
    )
    if found is None:
        return [""] * len(rows)
    return [
        ", ".join(f"{subject.ids[j]} ({subject.labels[subject.codes[j]]})" for j in found[row] if j >= 0)
        for row in rows.tolist()
    ]


def labels_to_check(subject: Subject) -> dict[str, Any]:
    """Given labels that the others contradict; empty if there are none, or if they cannot be judged."""
    if not can_judge(subject):
        return {}
    found = subject.clf.suspect_labels()
    n_suspect = len(found.suspect)
    if not n_suspect:
        return {}
    rows = [
        [str(subject.ids[found.rows[i]]), str(found.given[i]), str(found.proposed[i]), percent(found.probability[i])]
        for i in range(min(n_suspect, MAX_CHECKED))
    ]
    return {"n": f"{n_suspect:,}", "one": n_suspect == 1, "rows": rows, "more": n_suspect > MAX_CHECKED}


def none_of_these(subject: Subject) -> dict[str, Any]:
    """Samples that are like no class, in groups that the graph links; empty if they are no more than by chance."""
    if not can_judge(subject) or subject.given.all():
        return {}
    found = find_novel(subject.clf, subject.given)
    if found.n_samples <= found.expected + 2 * np.sqrt(found.expected):
        return {}
    groups = []
    for own in found.groups[:MAX_GROUPS]:
        if len(own) >= MIN_GROUP:
            named = ", ".join(str(subject.ids[row]) for row in own[:MAX_NAMED])
            groups.append([f"{len(own):,}", named + (", …" if len(own) > MAX_NAMED else "")])
    return {"n": f"{found.n_samples:,}", "expected": f"{found.expected:,.0f}", "groups": groups}
