"""What a report says about single answers: the labels behind them, labels to check, samples like no class."""

from typing import Any

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
# Smaller groups of such samples are not listed, nor more than this many; samples named of each.
MIN_GROUP, MAX_GROUPS, MAX_NAMED = 5, 5, 5


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
    novel = (subject.clf.novelty_ <= REJECT) & ~subject.given
    expected = REJECT * int((~subject.given).sum())
    members = np.flatnonzero(novel)
    if len(members) <= expected + 2 * np.sqrt(expected):
        return {}
    component = connected_components(subject.clf.graph_[members][:, members], directed=False)[1]
    sizes = np.bincount(component)
    groups = []
    for number in np.argsort(-sizes, kind="stable")[:MAX_GROUPS]:
        if sizes[number] >= MIN_GROUP:
            own = members[component == number]
            named = ", ".join(str(subject.ids[row]) for row in own[:MAX_NAMED])
            groups.append([f"{sizes[number]:,}", named + (", …" if len(own) > MAX_NAMED else "")])
    return {"n": f"{len(members):,}", "expected": f"{expected:,.0f}", "groups": groups}
